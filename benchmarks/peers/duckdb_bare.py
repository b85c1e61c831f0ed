"""Bare DuckDB doing the cascade's group-bys over the same files: the floor of what an engine without upkeep needs.

It knows all files beforehand, keeps no open buckets, survives nothing, and by default writes nothing:
each level is a temporary table made from the next finer one. ``--write`` also writes every level as Parquet.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import duckdb

from benchmarks.common import THREADS, Events, Stopwatch, bench_events, emit, event_files, scratch

LEVELS = ("second", "minute", "hour", "day", "month", "year")


def level_sql(level: str, finer: str | None, files: Sequence[Path]) -> str:
    """The group-by of one level, over the files for the finest and over the next finer level's table otherwise."""
    if finer is None:
        names = ", ".join(f"'{file}'" for file in files)
        return f"""CREATE OR REPLACE TEMP TABLE level_{level} AS
            SELECT symbol, make_timestamp(ts // 1000 * 1000000) AS bucket, sum(price) AS price_sum,
                   count(price) AS price_count, sum(quantity) AS total, min(price) AS low, max(price) AS high,
                   count(*) AS events
            FROM read_parquet([{names}]) GROUP BY ALL"""
    return f"""CREATE OR REPLACE TEMP TABLE level_{level} AS
        SELECT symbol, date_trunc('{level}', bucket) AS bucket, sum(price_sum) AS price_sum,
               sum(price_count) AS price_count, sum(total) AS total, min(low) AS low, max(high) AS high,
               sum(events) AS events
        FROM level_{finer} GROUP BY ALL"""


def cascade(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], target: Path | None) -> None:
    """Make all six levels once; writes each as a Parquet file into ``target`` when given."""
    for finer, level in zip((None, *LEVELS), LEVELS, strict=False):
        connection.execute(level_sql(level, finer, files))
        if target is not None:
            connection.execute(f"COPY level_{level} TO '{target / level}.parquet' (FORMAT parquet, COMPRESSION snappy)")


def counted(connection: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """Number of events and sum of quantities in the coarsest level, to compare with other engines."""
    row = connection.execute("SELECT sum(events)::BIGINT, sum(total)::BIGINT FROM level_year").fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def measure(events: Events, runs: int, write: bool) -> None:
    """Print a cold rate (connection and first pass) and the best hot rate over ``runs`` further passes."""
    watch, what = Stopwatch(), "sec…year, Parquet written" if write else "sec…year, nothing written"
    with scratch("duckdb") as folder, duckdb.connect(config={"threads": THREADS}) as connection:
        seconds: list[float] = []
        for _ in range(runs + 1):
            cascade(connection, events.files, folder if write else None)
            seconds.append(watch.lap())
        found = counted(connection)
    for temperature, best in (("cold", seconds[0]), ("hot", min(seconds[1:]))):
        emit(
            "cascade", what, events.events / best, "events/s", temperature=temperature, peer="duckdb",
            keys=events.keys, events=events.events, seconds=best, counted=found[0], total=found[1],
        )  # fmt: skip


def main() -> None:
    """Command line of this peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--events", type=int, default=bench_events())
    parser.add_argument("--runs", type=int, default=2, help="hot passes; the best one counts")
    parser.add_argument("--write", action="store_true", help="also write every level as Parquet")
    options = parser.parse_args()
    measure(event_files(options.keys, options.events), options.runs, options.write)


if __name__ == "__main__":
    main()
