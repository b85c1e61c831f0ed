"""Retention beside the levels' rows: the ledger of late events follows them, and old partitions go as a whole.

What must not change is what the kept levels answer, late counts included; so answers before and after are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from rollup.core.calendar import Duration
from rollup.core.errors import StoreError
from rollup.hosts.local import LocalHost
from rollup.lifecycle.book import Book
from rollup.lifecycle.maintenance.retention import purge
from rollup.plan.retention import Retention
from rollup.stores.base import Rewrite
from rollup.stores.databases import store_of
from tests.stores.conftest import NewUrl, execute
from tests.stores.samples import FIRST, app, host, rows

DAY = 86_400_000
TEXT = app("@OutOfOrder('correct')", select="select k, count() as n")
KEEP = Retention(1, dict.fromkeys(Duration) | {Duration.SECONDS: 1000, Duration.MINUTES: 3 * DAY})


@pytest.fixture(params=[pytest.param("postgres", marks=pytest.mark.postgres), "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with nothing in it."""
    return request.getfixturevalue("new_url")() if request.param == "postgres" else f"sqlite:///{tmp_path}/agg.db"


def fed(url: str, options: dict[str, str] | None = None) -> LocalHost:
    """Ten days, an event an hour and key, each followed by two late ones of the minute before."""
    job = host(TEXT, lambda a, e: store_of(a, e, {"type": "rdbms", "url": url, **(options or {})}))
    for day in range(10):
        events = list[tuple[Any, ...]]()
        for hour in range(24):
            now = FIRST + day * DAY + hour * 3_600_000
            events += [(k, 1, 1.0, "a", True, now - late) for late in (0, 30_000, 40_000) for k in ("x", "y")]
        job.send("S", events)
    return job


def clean(job: LocalHost, tmp_path: Path) -> dict[Duration, int]:
    """Remove what is over; how far each level was cut."""
    pipeline = job.pipelines["Agg"]
    return dict(purge(pipeline, job.engine, KEEP, Book(tmp_path / "book")).cuts)


def counted(job: LocalHost, level: Duration) -> list[Any]:
    within = f"within '2017-01-01 00:00:00', '2019-01-01 00:00:00' per '{level.plural}'"
    found = job.query(f"from Agg {within} select AGG_TIMESTAMP, k, n, AGG_LATE_CORRECTED")
    return sorted(rows(found), key=repr)


@pytest.mark.few(1)
def test_late_counts_of_the_levels_that_stay_are_what_they_were_and_the_ledger_is_shorter(
    url: str, tmp_path: Path
) -> None:
    job = fed(url)
    store = job.stores["Agg"]
    kept = [Duration.HOURS, Duration.DAYS, Duration.MONTHS, Duration.YEARS]
    before, ledger = {level: counted(job, level) for level in kept}, store.snapshot().ledger()
    cuts = clean(job, tmp_path)
    after = store.snapshot().ledger()
    assert set(cuts) == {Duration.SECONDS, Duration.MINUTES}
    assert {level: counted(job, level) for level in kept} == before
    assert any(count for level in kept for _, _, _, count in before[level] if count)
    assert after.num_rows < ledger.num_rows and sum(after["AGG_EVENTS"].to_pylist()) == sum(
        ledger["AGG_EVENTS"].to_pylist()
    )
    hours = {t for t in after["AGG_TIMESTAMP"].to_pylist() if t < cuts[Duration.MINUTES]}
    assert hours and all(t % 3_600_000 == 0 for t in hours)
    assert clean(job, tmp_path) == {}
    again = host(TEXT, lambda a, e: store_of(a, e, url))
    again.send("S", [("x", 1, 1.0, "a", True, FIRST + 40 * DAY), ("x", 1, 1.0, "a", True, FIRST)])
    assert set(clean(again, tmp_path)) >= {Duration.SECONDS}


def test_late_counts_of_a_finer_level_that_stays_are_kept(url: str, tmp_path: Path) -> None:
    job = fed(url)
    before = {level: counted(job, level) for level in (Duration.SECONDS, Duration.HOURS)}
    keep = Retention(1, dict.fromkeys(Duration) | {Duration.MINUTES: 1000})
    assert set(purge(job.pipelines["Agg"], job.engine, keep, Book(tmp_path / "book")).cuts) == {Duration.MINUTES}
    assert {level: counted(job, level) for level in (Duration.SECONDS, Duration.HOURS)} == before


def test_below_the_coarsest_cut_the_ledger_goes(url: str, tmp_path: Path) -> None:
    job = fed(url)
    keep = Retention(1, dict.fromkeys(Duration, 1000))
    pipeline = job.pipelines["Agg"]
    job.send("S", [("x", 1, 1.0, "a", True, FIRST + 800 * DAY * year) for year in range(1, 8)])
    cuts = purge(pipeline, job.engine, keep, Book(tmp_path / "book")).cuts
    assert set(cuts) == set(Duration)
    assert job.stores["Agg"].snapshot().ledger().num_rows == 0


def test_parents_that_went_after_they_were_looked_at_keep_the_rows(url: str) -> None:
    job = fed(url)
    store, pipeline = job.stores["Agg"], job.pipelines["Agg"]
    empty = pipeline.aggregation.table_schema.empty_table()
    before = store.snapshot().sizes()
    pipeline.rewrite({Duration.MINUTES: Rewrite(FIRST, FIRST + DAY, empty)})
    with pytest.raises(StoreError, match=r"Agg_MINUTES has .* events where Agg_SECONDS has .*: nothing was removed"):
        pipeline.rewrite({Duration.SECONDS: Rewrite(None, FIRST + 2 * DAY, empty)})
    assert store.snapshot().sizes()[Duration.SECONDS] == before[Duration.SECONDS]


def partitions(url: str) -> Callable[[str], list[str]]:
    query = "select inhrelid::regclass::text from pg_inherits where inhparent = '\"Agg_{}\"'::regclass order by 1"
    return lambda level: [str(name) for (name,) in execute(url, query.format(level))]


@pytest.mark.postgres
def test_partitions_that_are_over_as_a_whole_are_dropped_and_come_back_when_they_are_needed(
    new_url: NewUrl, tmp_path: Path
) -> None:
    url = new_url()
    there = partitions(url)
    job = fed(url, {"partition": "day"})
    before = counted(job, Duration.DAYS)
    assert len(there("SECONDS")) == 11
    cuts = clean(job, tmp_path)
    assert len(there("SECONDS")) == 1 and len(there("MINUTES")) < 8
    assert counted(job, Duration.DAYS) == before
    assert (
        min(job.stores["Agg"].snapshot().rows(Duration.SECONDS)["AGG_TIMESTAMP"].to_pylist()) >= cuts[Duration.SECONDS]
    )
    job.send("S", [("x", 1, 1.0, "a", True, FIRST)])  # a late event into a partition that went
    assert len(there("SECONDS")) == 2 and counted(job, Duration.DAYS) != before


@pytest.mark.postgres
def test_a_partition_whose_rows_are_computed_again_stays(new_url: NewUrl) -> None:
    url = new_url()
    job = fed(url, {"partition": "day"})
    pipeline, snapshot = job.pipelines["Agg"], job.stores["Agg"].snapshot()
    start, end = FIRST - FIRST % DAY + DAY, FIRST - FIRST % DAY + 3 * DAY
    there = snapshot.rows(Duration.SECONDS, start, end)
    pipeline.rewrite({Duration.SECONDS: Rewrite(start, end, there)})
    assert job.stores["Agg"].snapshot().rows(Duration.SECONDS).num_rows == snapshot.rows(Duration.SECONDS).num_rows > 0
    assert len(partitions(url)("SECONDS")) == 11


@pytest.mark.postgres
@pytest.mark.slow
def test_a_reader_that_uses_an_old_partition_is_not_held_up_and_the_rows_go_anyway(
    new_url: NewUrl, tmp_path: Path
) -> None:
    url = new_url()
    there = partitions(url)
    job = fed(url, {"partition": "day"})
    reader = psycopg2.connect(url)
    try:
        with reader.cursor() as cursor:
            cursor.execute('select count(*) from "Agg_SECONDS"')
            count = cursor.fetchone()
            cuts = clean(job, tmp_path)
            cursor.execute('select count(*) from "Agg_SECONDS"')
            assert cuts and cursor.fetchone() != count and len(there("SECONDS")) == 11
    finally:
        reader.close()
    job.send("S", [("x", 1, 1.0, "a", True, FIRST + 12 * DAY), ("x", 1, 1.0, "a", True, FIRST + 14 * DAY)])
    clean(job, tmp_path)
    assert len(there("SECONDS")) <= 2, "the empty ones go the next time"
