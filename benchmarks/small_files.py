"""Ten thousand small files: seconds to the first batch, files a second and memory, beside DuckDB over the same files.

``python -m benchmarks.small_files`` (``--smoke`` for a moment, ``--kinds``, ``--files``, ``--batch``): files of 20
events, in batches of 100 and of 1,000. The real job, ``rollup run --once``, commits seconds to years into Delta; DuckDB
writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import rollup
from benchmarks.common import FIRST_MS, ROOT, THREADS, Stopwatch, emit, machine, scratch

BENCH, ROWS = "small_files", 20
NAMES = ("symbol", "price", "quantity", "ts")
APP = """define stream Trades (symbol string, price double, quantity long, ts long);
define aggregation TradeAgg from Trades
select symbol, sum(quantity) as total, avg(price) as mean, count() as events
group by symbol aggregate by ts every sec ... year;
"""
READ = {"json": "read_json", "csv": "read_csv", "parquet": "read_parquet"}


def written(folder: Path, kind: str, files: int) -> None:
    """Files of `ROWS` events each, ten milliseconds apart."""
    folder.mkdir()
    for number in range(files):
        count = range(number * ROWS, (number + 1) * ROWS)
        events = [(f"k{at % 50}", float(at % 7), at % 9, FIRST_MS + at * 10) for at in count]
        path = folder / f"{number:06d}.{kind}"
        if kind == "json":
            path.write_text("".join(json.dumps(dict(zip(NAMES, event, strict=True))) + "\n" for event in events))
        elif kind == "csv":
            path.write_text("\n".join([",".join(NAMES), *(",".join(map(str, event)) for event in events), ""]))
        else:
            pq.write_table(
                pa.table([pa.array(column) for column in zip(*events, strict=True)], names=list(NAMES)), path
            )
        os.utime(path, ns=(0, (FIRST_MS + number) * 1_000_000))  # the order of arrival


def job(folder: Path, kind: str, batch: int) -> dict[str, Any]:
    """The job over the files: seconds to its first commit and in all, events counted, MiB of all processes."""
    (folder / "app.siddhi").write_text(APP)
    path = folder / "job.toml"
    source = f'[sources.Trades]\nkind = "{kind}"\npath = "{folder}/in"\nmax_files_per_batch = {batch}'
    path.write_text(
        f'app = "app.siddhi"\ncheckpoint = "state-{batch}"\n{source}\n[store]\nkind = "delta"\npath = "t{batch}"\n'
    )
    command = [sys.executable, "-m", "rollup.cli.main", "run", str(path), "--once"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    began, first, most = time.monotonic(), None, dict[str, int]()
    with (folder / "said.txt").open("w") as said:
        process = subprocess.Popen(command, env=environment, stderr=said, stdout=said, start_new_session=True)
        while process.poll() is None:
            if first is None and any((folder / f"t{batch}" / "_rollup").glob("*/commit-*.json")):
                first = time.monotonic() - began
            most |= resident(process.pid)
            time.sleep(0.05)
    total = time.monotonic() - began
    if process.returncode:
        raise SystemExit((folder / "said.txt").read_text()[-2000:])
    text = "from TradeAgg within 0L, 253402300799000L per 'years' select events"
    events = sum(rollup.query(path, text)["events"].to_pylist())
    return {"first": first or total, "total": total, "events": events, "memory": sum(most.values())}


def resident(session: int) -> Mapping[str, int]:
    """The most memory (MiB) that each process of a session has had."""
    found = dict[str, int]()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                lines = dict(line.split(":", 1) for line in (entry / "status").read_text().splitlines())
                found[entry.name] = int(lines["VmHWM"].split()[0]) // 1024
        except (OSError, KeyError):
            continue
    return found


def bare(folder: Path, kind: str) -> float:
    """DuckDB's seconds for all files at once, read and grouped by second."""
    query = f"""SELECT symbol, ts // 1000 AS second, SUM(quantity), SUM(price), COUNT(price), COUNT(*)
        FROM {READ[kind]}('{folder}/in/*.{kind}') GROUP BY ALL"""
    with duckdb.connect(config={"threads": THREADS}) as connection:
        watch = Stopwatch()
        connection.execute(query).fetchall()
        return watch.total()


def main() -> int:
    """Command line; exit code 1 when an event is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="200 files: proves that it runs")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--batch", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--kinds", nargs="+", choices=list(READ), default=["json"])
    options = parser.parse_args()
    machine(BENCH)
    files = 200 if options.smoke else options.files
    for kind in options.kinds:
        with scratch(f"{BENCH}-{kind}") as folder:
            written(folder / "in", kind, files)
            theirs = files / bare(folder, kind)
            for batch in options.batch:
                found = job(folder, kind, batch)
                if found["events"] != files * ROWS:
                    emit(BENCH, kind, None, "files/s", error=f"{found['events']} of {files * ROWS} events")
                    return 1
                what = f"{files} files of {kind}, {batch} a batch"
                emit(BENCH, f"{what}: first batch", found["first"], "s", temperature="cold")
                rate = files / found["total"]
                emit(BENCH, what, rate, "files/s", ratio=rate / theirs, peer="duckdb", temperature="cold")
                emit(BENCH, f"{what}: events", rate * ROWS, "events/s", temperature="cold")
                emit(BENCH, f"{what}: all processes at most", found["memory"], "MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
