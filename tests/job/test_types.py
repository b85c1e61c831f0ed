"""Decimals and times through a whole job: from lines of JSON in Spark's tasks to Delta, and back by DuckDB and by Spark."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import rollup
from rollup.stores.dead_letters import DeadLetters
from tests.job.jobs import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP = """define stream Sales (shop string, price decimal(20, 4), sold timestamp, day date);
define aggregation Takings from Sales[price > 0.1]
select day, sum(price) as total, avg(price) as mean, max(price) as most, min(sold) as first, count() as n
group by day aggregate by sold every hour ... year;
"""
LINES = [
    '{"shop": "a", "price": 1234567890123456.7891, "sold": "2018-01-05T09:00:00.000001Z", "day": "2018-01-05"}',
    '{"shop": "a", "price": 0.1000, "sold": "2018-01-05T09:00:00Z", "day": "2018-01-05"}',
    '{"shop": "a", "price": 0.1001, "sold": 1515142800000, "day": "2018-01-05"}',
    '{"shop": "b", "price": "7", "sold": "2018-01-05T23:30:00-01:00", "day": "2018-01-06"}',
    '{"shop": "b", "price": 0.00001, "sold": "2018-01-05T09:00:00Z", "day": "2018-01-06"}',
]
WANTED = [
    {
        "day": date(2018, 1, 5),
        "total": Decimal("1234567890123456.8892"),
        "mean": Decimal("617283945061728.4446000000"),
        "most": Decimal("1234567890123456.7891"),
        "first": datetime(2018, 1, 5, 9, 0, tzinfo=UTC),
        "n": 2,
    },
    {
        "day": date(2018, 1, 6),
        "total": Decimal("7.0000"),
        "mean": Decimal("7.0000000000"),
        "most": Decimal("7.0000"),
        "first": datetime(2018, 1, 6, 0, 30, tzinfo=UTC),
        "n": 1,
    },
]


@pytest.mark.slow
def test_decimals_and_times_go_through_a_job(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("\n".join(LINES))
    job = Job(tmp_path, {"kind": "json", "path": str(tmp_path / "in")}, app=APP, streams=("Sales",))
    job.run(spark)
    question = "from Takings within '2018' per 'years' select day, total, mean, most, first, n order by day"
    assert rollup.query(job.path, question).to_pylist() == WANTED
    letters = DeadLetters(job.conf.tables).read().to_pylist()
    assert [(json.loads(each["raw"])["price"], each["reason"]) for each in letters] == [
        (0.00001, "price is not a decimal(20, 4)")
    ]
    fields = {
        each.name: each.type
        for each in pa.schema(DeltaTable(str(tmp_path / "tables" / "Takings_HOURS")).schema().to_arrow())
    }
    assert fields["AGG_SUM_price"] == pa.decimal128(30, 4) and fields["day"] == pa.date32()
    assert fields["AGG_MIN_sold"] == pa.timestamp("us", "UTC")
    rows = rollup.read(spark, job.path, "Takings", "2018-**-** **:**:**", "years").orderBy("day").toArrow()
    assert [{name: row[name] for name in WANTED[0]} for row in rows.to_pylist()] == WANTED
