"""Retention: spelled as Siddhi 5 does, and no row goes before its parent has it. The tables are real; the check that
nothing was lost is the coarser levels' answer before and after."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rollup.core.calendar import Duration
from rollup.core.errors import PlanError
from rollup.lifecycle.maintenance.between_batches import Chores
from rollup.lifecycle.maintenance.retention import due
from rollup.plan.retention import retention
from rollup.program import compile_app
from rollup.stores.base import Rewrite
from rollup.stores.delta import store as delta
from rollup.stores.sql import store as sql
from tests.lifecycle.conftest import EVERY_STORE, ON_POSTGRES, trades
from tests.lifecycle.filejob import APP, MIDNIGHT, FileJob, Place

DAY = 86_400_000
PURGE = (
    "@purge(enable='true', interval='10 sec', "
    "@retentionPeriod(sec='120 sec', min='24 hours', hours='30 days', days='1 year', months='all', years='all')) "
)


def plan(annotation: str) -> object:
    aggregation = compile_app(APP.format(annotations=annotation, extra="")).aggregations["TradeAgg"]
    return retention(aggregation.purge, aggregation.levels)


def test_the_spelling_of_siddhi_5_is_read() -> None:
    found = plan(PURGE)
    assert found is not None and found.interval == 10_000  # type: ignore[attr-defined]
    keep = found.keep  # type: ignore[attr-defined]
    assert [keep[level] for level in Duration] == [120_000, DAY, 30 * DAY, 365 * DAY, None, None]


@pytest.mark.parametrize("annotation", ["", "@purge(enable='false') "])
def test_without_purge_nothing_is_ever_removed(annotation: str) -> None:
    assert plan(annotation) is None


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("@purge(enable='maybe') ", "enable is 'true' or 'false'"),
        ("@purge(every='1 min') ", "@purge has no 'every'"),
        ("@purge(@retentionPeriod(sec='soon')) ", "'soon' is no length of time"),
        ("@purge(@retentionPeriod(sec='3 fortnights')) ", "'fortnights' in '3 fortnights' is no unit"),
        ("@purge(@retentionPeriod(weeks='1 day')) ", "weeks"),
        ("@purge(@retentionPeriod(sec='0 sec')) ", "keeps nothing"),
        ("@purge(interval='all') ", "interval cannot be 'all'"),
        ("@purge(@keep(sec='1 day')) ", "@keep does not stand in @purge"),
    ],
)
def test_a_wrong_purge_is_refused_by_name_when_the_app_is_read(annotation: str, message: str) -> None:
    with pytest.raises(PlanError, match=message) as caught:
        plan(annotation)
    assert caught.value.line is not None


def job(place: Place, width: int = 4 * DAY) -> FileJob:
    place = replace(place, annotations=place.annotations + PURGE).write()
    events = trades(1500, width=width)
    for at in range(0, 1500, 500):
        place.add(*events[at : at + 500])
    return FileJob(place.conf).run()


def counts(job: FileJob) -> dict[Duration, int]:
    """Rows a level; bytes are left out, since PostgreSQL's own vacuum changes a table's size at any moment."""
    return {level: size.rows for level, size in job.store.snapshot().sizes().items()}


def years(job: FileJob) -> list[dict[str, object]]:
    return (
        job.pipeline.store.snapshot()
        .rows(Duration.DAYS)
        .sort_by([("AGG_TIMESTAMP", "ascending"), ("symbol", "ascending")])
        .to_pylist()
    )


@EVERY_STORE
def test_rows_go_level_by_level_and_coarser_answers_stay(place: Place, rollup: Callable[..., tuple[int, str]]) -> None:
    running = job(place)
    sizes, days = running.store.snapshot().sizes(), years(running)
    assert re.search(r"removed seconds before \d{4}-\d\d-\d\d", "\n".join(running.chores.purge()))
    after = running.store.snapshot()
    assert (
        after.sizes()[Duration.SECONDS].rows < 10
        and 0 < after.sizes()[Duration.MINUTES].rows < sizes[Duration.MINUTES].rows
    )
    assert after.sizes()[Duration.HOURS].rows == sizes[Duration.HOURS].rows and years(running) == days
    assert running.chores.purge() == [], "a second time there is nothing to remove"
    config = running.conf.path
    assert rollup("verify", config) == (0, f"TradeAgg, commit {running.pipeline.number}: every level is right\n")
    assert "removed before" in rollup("status", config)[1]
    code, said = rollup("verify", config, "--from", "2018-01-01", "--to", "2018-01-02")
    assert code == 0 and re.search(r"TradeAgg: seconds before [\d: -]+ have been removed by retention", said)
    code, said = rollup("verify", config, "--from", "2049-01-01", "--to", "2049-01-02")
    assert code == 0 and "there are no rows from 2049-01-01 00:00:00 to 2049-01-02 00:00:00" in said
    assert "removed by retention" not in said


@EVERY_STORE
def test_a_row_whose_parent_lacks_it_stays_and_is_named(place: Place) -> None:
    running = job(place)
    start = running.store.snapshot().rows(Duration.MINUTES)["AGG_TIMESTAMP"][100].as_py()
    empty = running.aggregation.table_schema.empty_table()
    running.pipeline.rewrite({Duration.MINUTES: Rewrite(start, start + 1, empty)})
    before = running.store.snapshot().sizes()[Duration.SECONDS].rows
    said = running.chores.purge()
    assert any("TradeAgg_SECONDS: 1 buckets are not all in TradeAgg_MINUTES" in line for line in said)
    assert running.store.snapshot().sizes()[Duration.SECONDS].rows == before


@ON_POSTGRES
def test_a_replay_that_reaches_into_what_was_removed_is_refused_with_what_is_possible(
    place: Place, rollup: Callable[..., tuple[int, str]]
) -> None:
    running = job(place)
    running.chores.purge()
    config = running.conf.path
    code, output = rollup("replay", config, "--from", "2018-01-02", "--to", "2018-01-03")
    assert (
        code == 2 and "have been removed by retention" in output and "choose a range that starts at or after" in output
    )
    assert rollup("verify", config)[0] == 0


@EVERY_STORE
def test_late_events_after_a_purge_keep_every_level_right(place: Place, rollup: Callable[..., tuple[int, str]]) -> None:
    running = job(place)
    running.chores.purge()
    place = replace(place, annotations=place.annotations + PURGE, files=3)
    place.add(("A", 1.0, 5, MIDNIGHT + DAY), ("A", 1.0, 5, MIDNIGHT + 5 * DAY))
    running.run()
    assert rollup("verify", running.conf.path)[0] == 0
    running.chores.purge()
    assert rollup("verify", running.conf.path)[0] == 0


@ON_POSTGRES
def test_a_kill_between_the_book_and_the_commit_loses_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    running = job(place)
    before = counts(running)

    def killed(point: str) -> None:
        if point == "commit.open":
            raise KeyboardInterrupt

    for store in (delta, sql):
        monkeypatch.setattr(store, "point", killed)
    with pytest.raises(KeyboardInterrupt):
        running.chores.purge()
    monkeypatch.undo()
    again = FileJob(running.conf)
    assert counts(again) == before
    assert isinstance(again.chores, Chores) and again.chores.purge()


def test_what_goes_is_looked_at_piece_by_piece(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    running = job(place)
    snapshot = running.store.snapshot()
    whole = due(running.engine, running.pipeline.cascade, snapshot, running.chores.plan)
    seen: list[int] = []
    rows = type(snapshot).rows

    def counted(self: Any, *arguments: Any) -> Any:
        found = rows(self, *arguments)
        seen.append(found.num_rows)
        return found

    monkeypatch.setattr(type(snapshot), "rows", counted)
    monkeypatch.setattr("rollup.lifecycle.maintenance.retention._AT_ONCE", 100)
    assert due(running.engine, running.pipeline.cascade, snapshot, running.chores.plan) == whole
    assert whole.cuts and max(seen) < 400 < sum(seen), seen
