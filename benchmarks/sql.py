"""Streaming SQL beside Flink SQL over one Parquet file: `python -m benchmarks.sql [rows] [query ..]`, in one run.

* tumble: count and sum by minute and product. * hop: the same over an hour, every 10 seconds. * range: the sum of the
  last minute, a row for each row. * join: each row with its product's name.

Flink runs with parallelism 2 from a Python of its own, since it pins old libraries: `ROLLUP_FLINK_PYTHON` names one
that has `apache-flink`, `ROLLUP_FLINK_JARS` a folder with flink-sql-parquet and Hadoop's client. Without them ours runs
alone and the output says why. Both count what they give and write it nowhere; the start of processes and a first small
run are left out on both sides.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollup.engine.flows.flow import AT
from rollup.engine.flows.source import Arrivals
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.session import Session

PRODUCTS = 100
BATCH = 1 << 20
MODEL = {
    "Orders": {
        "columns": {"rowtime": "TIMESTAMP", "productId": "INTEGER", "orderId": "BIGINT", "units": "INTEGER"},
        "kind": "stream",
        "monotonic": {"rowtime": "increasing"},
    },
    "Products": {"columns": {"productId": "INTEGER", "name": "VARCHAR"}},
}
GROUPED = "productId, COUNT(*) AS c, SUM(units) AS u FROM Orders GROUP BY"
HOP = "(rowtime, INTERVAL '10' SECOND, INTERVAL '1' HOUR)"
TUMBLE = "(rowtime, INTERVAL '1' MINUTE)"
OVER = "OVER (PARTITION BY productId ORDER BY rowtime RANGE INTERVAL '1' MINUTE PRECEDING)"
QUERIES = {
    "tumble": f"SELECT STREAM TUMBLE_END{TUMBLE} AS e, {GROUPED} TUMBLE{TUMBLE}, productId",
    "hop": f"SELECT STREAM HOP_END{HOP} AS e, {GROUPED} HOP{HOP}, productId",
    "range": f"SELECT STREAM orderId, SUM(units) {OVER} AS u FROM Orders",
    "join": "SELECT STREAM orderId, p.name FROM Orders AS o JOIN Products AS p ON o.productId = p.productId",
}


def write(path: Path, rows: int) -> None:
    """The input: a row each 10 ms, on average, of 100 products."""
    duckdb.sql(
        f"COPY (SELECT TIMESTAMP '2030-01-01' + to_microseconds(i * 10_000 + (hash(i) % 10_000)::BIGINT) AS rowtime, "
        f"(hash(i + 1) % {PRODUCTS})::INTEGER AS productId, i AS orderId, (hash(i + 2) % 10)::INTEGER AS units "
        f"FROM range({rows}) AS r(i)) TO '{path}' (FORMAT parquet, COMPRESSION snappy)"
    )


def _batches(path: Path) -> Iterator[tuple[pa.Table, bool]]:
    file, at = pq.ParquetFile(path), 0
    total = file.metadata.num_rows
    for batch in file.iter_batches(BATCH):
        rows = pa.Table.from_batches([batch]).append_column(AT, pa.array(np.arange(at, at + batch.num_rows)))
        at += batch.num_rows
        yield rows, at == total


def ours(name: str, path: Path) -> tuple[float, int]:
    """Seconds and rows given."""
    session = Session(Model.of({"tables": MODEL}))
    session.load("Products", [[number, f"product {number}"] for number in range(PRODUCTS)])
    standing = session.prepare(QUERIES[name]).standing
    assert standing is not None
    states, given, began = standing.start(), 0, time.perf_counter()
    for rows, ended in _batches(path):
        states, output, _ = standing.step(states, {"orders": Arrivals(rows, (), ended)}, session.engine)
        given += output.num_rows
    return time.perf_counter() - began, given


def flink(path: Path, names: list[str]) -> dict[str, float] | str:
    """Seconds of each query, or why there are none."""
    python, jars = os.environ.get("ROLLUP_FLINK_PYTHON"), os.environ.get("ROLLUP_FLINK_JARS")
    if not python or not jars:
        return "ROLLUP_FLINK_PYTHON and ROLLUP_FLINK_JARS name no Flink"
    script = Path(__file__).with_name("peers") / "flink_sql.py"
    command = [python, str(script), str(path), ",".join(str(jar) for jar in sorted(Path(jars).glob("*.jar"))), *names]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode or not lines:
        return f"Flink failed: {(ran.stderr.strip().splitlines() or ['without a word'])[-1]}"
    return json.loads(lines[-1])


def main(rows: int, names: list[str]) -> None:
    """Run everything and print the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        small, path = Path(folder) / "small.parquet", Path(folder) / "orders.parquet"
        write(small, 10_000)
        write(path, rows)
        mine: dict[str, float] = {}
        for name in names:
            ours(name, small)
            mine[name], given = ours(name, path)
            print(f"{name:8} rollup {mine[name]:.2f} s, {rows / mine[name] / 1e6:.2f} M rows/s, {given:,} rows given")
        theirs = flink(path, names)
        if isinstance(theirs, str):
            print(f"Flink is left out: {theirs}")
            return
        for name, seconds in theirs.items():
            print(f"{name:8} Flink {seconds:.2f} s: rollup is {seconds / mine[name]:.1f} times as fast")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000_000, sys.argv[2:] or list(QUERIES))
