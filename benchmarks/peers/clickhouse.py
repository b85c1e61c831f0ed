"""ClickHouse through PyPI ``chdb``, the way its users do rollups.

A raw table of engine Null is fed from the Parquet files; a chain of materialized views merges what each insert
brought sec→min→hour→day→month→year into AggregatingMergeTree tables on disk. Two threads, background merges
included as they come, nothing synced to disk. Two variants: ``clickhouse`` with the settings it comes with, and
``clickhouse tuned``, where a user who knows it lets the views run in parallel (by default they run one after the
other on one core) and leaves merging equal keys to the background; the tuned one is up to three times as fast.
Run in a process of its own: chdb beside DuckDB or PyArrow in one process may clash, so nothing here
imports them; the events are generated beforehand.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.common import THREADS, Events, Stopwatch, bench_events, emit, event_files, scratch, skipped

LEVELS = ("seconds", "minutes", "hours", "days", "months", "years")
FLOORS = {
    "seconds": "toStartOfSecond(fromUnixTimestamp64Milli(ts, 'UTC'))",
    "minutes": "toStartOfMinute(bucket)",
    "hours": "toStartOfHour(bucket)",
    "days": "toStartOfDay(bucket)",
    "months": "toDateTime(toStartOfMonth(bucket), 'UTC')",
    "years": "toDateTime(toStartOfYear(bucket), 'UTC')",
}
STATES = {
    "price_avg": "avg, Float64",
    "quantity_sum": "sum, Int64",
    "price_min": "min, Float64",
    "price_max": "max, Float64",
    "event_count": "count",
}
SETTINGS = {"max_threads": THREADS, "max_insert_threads": THREADS}
TUNED = {"parallel_view_processing": 1, "materialized_views_squash_parallel_inserts": 0, "optimize_on_insert": 0}


def ddl() -> list[str]:
    """Statements making the raw table, the six tables and the five views of the chain plus the first one."""
    statements = ["CREATE TABLE raw (symbol String, price Float64, quantity Int64, ts Int64) ENGINE = Null"]
    for finer, level in zip((None, *LEVELS), LEVELS, strict=False):
        statements += [_table(level), _view(level, finer)]
    return statements


def _table(level: str) -> str:
    columns = ", ".join(f"{name} AggregateFunction({state})" for name, state in STATES.items())
    return (
        f"CREATE TABLE agg_{level} (bucket DateTime('UTC'), symbol String, {columns})"
        " ENGINE = AggregatingMergeTree ORDER BY (symbol, bucket)"
    )


def _view(level: str, finer: str | None) -> str:
    if finer is None:
        arguments = {"avg": "price", "sum": "quantity", "min": "price", "max": "price", "count": ""}
        states = [f"{kind}State({arguments[kind]}) AS {name}" for name, kind in _kinds()]
        source = "raw"
    else:
        states = [f"{kind}MergeState({name}) AS {name}" for name, kind in _kinds()]
        source = f"(SELECT bucket AS finer, * EXCEPT bucket FROM agg_{finer})"
    floor = FLOORS[level].replace("bucket", "finer")
    return (
        f"CREATE MATERIALIZED VIEW view_{level} TO agg_{level} AS"
        f" SELECT {floor} AS bucket, symbol, {', '.join(states)} FROM {source} GROUP BY bucket, symbol"
    )


def _kinds() -> list[tuple[str, str]]:
    return [(name, state.split(",")[0]) for name, state in STATES.items()]


def open_store(folder: Path, tuned: bool = False) -> Any:
    """A chdb session whose tables live in ``folder``."""
    from chdb import session  # only here: a process that merely builds SQL needs no chdb

    store = session.Session(str(folder))
    for name, value in (SETTINGS | (TUNED if tuned else {})).items():
        store.query(f"SET {name} = {value}")
    return store


def insert(store: Any, files: Sequence[Path]) -> None:
    """Feed the files through the chain in one INSERT."""
    names = ",".join(file.name for file in files)
    glob = f"{files[0].parent}/{{{names}}}" if len(files) > 1 else str(files[0])
    store.query(f"INSERT INTO raw SELECT symbol, price, quantity, ts FROM file('{glob}', Parquet)")


def counted(store: Any) -> tuple[int, int]:
    """Number of events and sum of quantities in the coarsest level, to compare with other engines."""
    answer = store.query("SELECT countMerge(event_count), sumMerge(quantity_sum) FROM agg_years", "CSV")
    events, total = str(answer).strip().split(",")
    return int(events), int(total)


def measure(events: Events, tuned: bool) -> None:
    """Print a hot rate (all files after the first, which warms up) and the total with start-up."""
    watch = Stopwatch()
    with scratch("clickhouse") as folder:
        store = open_store(folder, tuned)
        for statement in ddl():
            store.query(statement)
        insert(store, events.files[:1])
        watch.lap()
        insert(store, events.files[1:])
        rest, total = watch.lap(), watch.total()
        found = counted(store)
        store.close()
    name = "clickhouse tuned" if tuned else "clickhouse"
    _report(name, events, events.events, total, "cold", found)
    _report(name, events, events.events - events.file_rows, rest, "hot", found)


def _report(name: str, events: Events, count: int, seconds: float, temperature: str, found: tuple[int, int]) -> None:
    emit(
        "cascade", "sec…year, materialized views", count / seconds, "events/s", temperature=temperature,
        peer=name, keys=events.keys, events=count, seconds=seconds, counted=found[0], total=found[1],
    )  # fmt: skip


def main() -> None:
    """Command line of this peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--events", type=int, default=bench_events())
    parser.add_argument("--tuned", action="store_true", help="with the settings of the tuned variant")
    options = parser.parse_args()
    if find_spec("chdb") is None:
        skipped("cascade", "clickhouse", "chdb is not installed (pip install chdb)")
        return
    measure(event_files(options.keys, options.events), options.tuned)


if __name__ == "__main__":
    main()
