"""Streaming SQL, UQL and StreamCruncher in one job on Spark: what each gives is known by hand, a restart in the middle.

The third file is late for SQL, whose rowtime may only rise; UQL puts the row into the oldest window that is open, and
StreamCruncher takes it when it comes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.job.jobs import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NOON, MINUTE = 1_700_000_040_000, 60_000
APP = """@time('ts') define stream S (k string, v double, ts long);
@sink(type='file', path='latest') define stream Latest (k string, v double);
@sink(type='file', path='slices') define stream Slices (k string, total double);
@sink(type='file', path='minutes') define stream Minutes (ended long, k string, total double);
@lang('sql') {
  INSERT INTO Minutes
  SELECT STREAM TUMBLE_END(rowtime, INTERVAL '1' MINUTE) AS ended, k, SUM(v) AS total
  FROM S GROUP BY TUMBLE(rowtime, INTERVAL '1' MINUTE), k;
}
@lang('uql') {
  from S group by k window slice 60 seconds based on rowtime aggregate sum(v) as total append k, total to Slices
}
@lang('streamcruncher', into='Latest') {
  select k, v from S (partition by k store last 1) as s where s.$row_status is new;
}
"""
FILES = [
    [("a", 1.0, NOON), ("a", 2.0, NOON + 1000), ("b", 5.0, NOON + MINUTE + 1000), ("b", 6.0, NOON + MINUTE + 2000)],
    [("a", 7.0, NOON + 2 * MINUTE)],
    [("a", 9.0, NOON + 5), ("a", 8.0, NOON + 3 * MINUTE + 1000)],
]
GIVEN = {
    "minutes": [(NOON + MINUTE, "a", 3.0), (NOON + 2 * MINUTE, "b", 11.0), (NOON + 3 * MINUTE, "a", 7.0)],
    "slices": [("a", 3.0), ("b", 11.0), ("a", 16.0)],
    "latest": [("a", 1.0), ("a", 2.0), ("b", 5.0), ("b", 6.0), ("a", 7.0), ("a", 9.0)],
}


def test_three_languages_answer_on_spark_as_worked_out(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "in").mkdir()
    job = Job(tmp_path, {"kind": "parquet", "path": "in", "max_files_per_batch": 1}, app=APP, streams=("S",))
    for runs in ((0, 1), (2,)):
        for number in runs:
            _write(tmp_path / "in" / f"{number}.parquet", FILES[number], number)
        job.run(spark)
    assert {name: _read(tmp_path / name) for name in GIVEN} == {name: sorted(rows) for name, rows in GIVEN.items()}


def _write(file: Path, rows: list[tuple[str, float, int]], number: int) -> None:
    pq.write_table(pa.table(list(zip(*rows, strict=True)), names=["k", "v", "ts"]), file)
    os.utime(file, (1_600_000_000 + number, 1_600_000_000 + number))


def _read(folder: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist())
