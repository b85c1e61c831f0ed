"""Files of JSON lines and CSV beside DuckDB's own reading of the same files with the same group-by of seconds.

``python -m benchmarks.formats`` (``--smoke`` for a moment): batches of 5 M events of 100 keys, files of a million. The
job commits seconds to years into Delta; DuckDB writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb

from benchmarks.common import THREADS, Stopwatch, cache_dir, emit, event_files, machine, scratch
from benchmarks.ours import run_cascade

BENCH = "formats"
AIM = 0.4
READ = {
    "json": "read_json([{}], format = 'newline_delimited', columns = {})",
    "csv": "read_csv([{}], header = true, columns = {})",
}
WRITE = {"json": "FORMAT json", "csv": "FORMAT csv, HEADER"}
_COLUMNS = "{symbol: 'VARCHAR', price: 'DOUBLE', quantity: 'BIGINT', ts: 'BIGINT'}"


def written(kind: str, files: Sequence[Path]) -> list[Path]:
    """The files of events in another format, made once and kept."""
    folder = cache_dir(f"{files[0].parent.name}-{kind}")
    made = [folder / f"{file.stem}.{kind}" for file in files]
    with duckdb.connect(config={"threads": THREADS}) as connection:
        for source, target in zip(files, made, strict=True):
            if not target.exists():
                half = target.with_suffix(".half")
                connection.execute(f"COPY (FROM read_parquet('{source}')) TO '{half}' ({WRITE[kind]})")
                half.rename(target)
    return made


def bare(kind: str, files: Sequence[Path], batch: int) -> float:
    """DuckDB's best seconds for one batch, read and grouped."""
    names = ", ".join(f"'{file}'" for file in files[:batch])
    query = f"""CREATE OR REPLACE TEMP TABLE seconds AS SELECT symbol, ts // 1000 AS second, SUM(price), COUNT(price),
        SUM(quantity), MIN(price), MAX(price), COUNT(*) FROM {READ[kind].format(names, _COLUMNS)} GROUP BY ALL"""
    best = float("inf")
    with duckdb.connect(config={"threads": THREADS}) as connection:
        for _ in range(3):
            watch = Stopwatch()
            connection.execute(query)
            best = min(best, watch.total())
    return best


def main() -> int:
    """Command line; exit code 1 when an event is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="20,000 events: proves that it runs")
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--kinds", nargs="+", choices=list(READ), default=list(READ))
    options = parser.parse_args()
    machine(BENCH)
    events = event_files(100, 20_000 if options.smoke else options.events)
    batch = max(1, len(events.files) // 4)
    for kind in options.kinds:
        files = written(kind, events.files)
        with scratch(kind) as folder:
            found = run_cascade(files, events.keys, folder, batch, kind=kind)
        if found["events"] != events.events:
            emit(BENCH, kind, None, "events/s", error=f"our job read {found['events']} of {events.events} events")
            return 1
        theirs = events.events / len(files) * batch / bare(kind, files, batch)
        emit(BENCH, f"{kind}, sec…year into Delta", found["hot_rate"], "events/s", temperature="hot")
        emit(BENCH, f"{kind}, DuckDB's read and group-by", theirs, "events/s", temperature="hot", peer="duckdb")
        ratio = found["hot_rate"] / theirs
        emit(BENCH, f"{kind}, ours / duckdb", ratio, "ratio", ratio=ratio, peer="duckdb", aim=AIM)
    return 0


if __name__ == "__main__":
    sys.exit(main())
