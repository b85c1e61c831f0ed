"""A job whose folder, database or user goes by another name is the same job: it goes on, and nothing comes twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from rollup.hosts.spark.ownership import claim
from tests.job.jobs import EVENTS, TRADES, Job, answers, trades_in, write_trades
from tests.servers.postgres import NewUrl, execute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP = f"{TRADES} from Trades select symbol, quantity insert into Taken;"
SINK = '[sinks.Taken]\nkind = "delta"\npath = "taken"\n'
MORE = [("c", 1.0, 7, EVENTS[-1][3] + 1_000), ("d", 1.0, 8, EVENTS[-1][3] + 9_000)]
"""Two trades that come when the job has moved."""


def go_on(spark: SparkSession, job: Job) -> None:
    """What `rollup run --once` does, on the session of the tests, with one more file of events."""
    write_trades(job.folder / "in" / "two.json", MORE)
    claim(job.conf, job.conf.program())
    job.run(spark)


def assert_once(job: Job) -> None:
    """Every event is once in the sink and in the sums."""
    taken = DeltaTable(str(job.folder / "taken")).to_pyarrow_table()
    assert Counter(zip(taken["symbol"].to_pylist(), taken["quantity"].to_pylist(), strict=True)) == Counter(
        (symbol, quantity) for symbol, _, quantity, _ in [*EVENTS, *MORE]
    )
    assert answers(job.conf, "symbol, total, events") == [
        (symbol, quantity, 1) for symbol, _, quantity, _ in sorted([*EVENTS, *MORE], key=repr)
    ]


@pytest.mark.spark
def test_a_folder_that_has_moved_is_taken_up_there(spark: SparkSession, tmp_path: Path) -> None:
    first = tmp_path / "first"
    job = Job(first, trades_in(first), app=APP, more=SINK)
    claim(job.conf, job.conf.program())
    job.run(spark)
    first.rename(tmp_path / "another name")
    job.folder = tmp_path / "another name"
    job.path = job.folder / job.path.name
    go_on(spark, job)
    assert_once(job)


@pytest.mark.spark
@pytest.mark.postgres
def test_a_database_by_another_host_name_and_user_is_the_same(
    spark: SparkSession, tmp_path: Path, new_url: NewUrl
) -> None:
    url = new_url()
    assert "127.0.0.1" in url
    job = Job(tmp_path, trades_in(tmp_path), app=APP, more=SINK, store=f'kind = "sql"\nurl = "{url}"')
    claim(job.conf, job.conf.program())
    job.run(spark)
    role = f"other_{tmp_path.name[-8:]}".replace("-", "_").lower()
    execute(url, f"create role {role} superuser login password 'other'")
    try:
        known = url.rpartition("@")[0]
        again = url.replace(known, f"postgresql://{role}:other").replace("127.0.0.1", "localhost")
        job.path.write_text(job.path.read_text().replace(url, again))
        go_on(spark, job)
        assert_once(job)
    finally:
        execute(url, f"drop owned by {role} cascade; drop role {role}")
