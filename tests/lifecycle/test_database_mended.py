"""An aggregation in a database that has lost a table, its open rows or a part of its record: `recover --rebuild` makes
anew what can be, in one transaction, keeps what was open and the place in the stream, and says what only a replay can
bring back, from when to when."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.lifecycle.conftest import execute, remove_table, trades
from tests.lifecycle.filejob import FileJob, Place
from tests.lifecycle.opened import everything
from tests.lifecycle.test_missing_tables import contents

Cli = Callable[..., tuple[int, str]]
DATABASES = pytest.mark.parametrize(
    "new_store", ["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.slow])], indirect=True
)


def begun(place: Place) -> list[tuple[str, float, int, int]]:
    """Four files taken of five; coarser levels are closed in part."""
    events = trades(300, width=90 * 86_400_000)
    for at in range(0, 240, 60):
        place.add(*events[at : at + 60])
    FileJob(place.conf).run()
    return events


def finished(place: Place, events: list[tuple[str, float, int, int]], rollup: Cli) -> None:
    """The stream goes on where it was, and every row is what the raw events say: nothing was lost, nothing counted twice."""
    place.add(*events[240:])
    FileJob(place.conf).run()
    code, said = rollup("verify", place.conf.path, "--raw", "--true-buckets")
    assert code == 0, said


@DATABASES
@pytest.mark.parametrize(
    "gone",
    [("HOURS", "LATE", "YEARS"), pytest.param(("MINUTES", "HOURS", "DAYS", "MONTHS", "YEARS"), marks=pytest.mark.slow)],
)
@pytest.mark.slow
def test_tables_of_coarser_levels_that_are_gone_cost_nothing(place: Place, rollup: Cli, gone: tuple[str, ...]) -> None:
    events = begun(place)
    before, answers = contents(place), everything(place.conf.path)
    for table in gone:
        remove_table(place, table)
    assert rollup("recover", place.conf.path)[0] == 2, "only looking changes nothing"
    code, said = rollup("recover", place.conf.path, "--rebuild")
    assert code == 0 and all(f"{table.lower()}: " in said for table in gone if table != "LATE"), said
    assert "commit 5 has the same open rows and goes on at the same place" in said
    assert contents(place) == before and everything(place.conf.path) == answers
    finished(place, events, rollup)


@DATABASES
def test_clocks_that_cannot_be_read_are_told_by_the_rows(place: Place, rollup: Cli) -> None:
    events = begun(place)
    clocks, before = FileJob(place.conf).pipeline.state.clocks, contents(place)
    execute(place, "update \"TradeAgg_COMMIT\" set clocks = '{'")
    code, said = rollup("recover", place.conf.path, "--rebuild", "--aggregation", "TradeAgg")
    assert code == 0 and "the clocks of commit 4 were read from its open rows and the tables" in said, said
    assert FileJob(place.conf).pipeline.state.clocks == clocks
    assert contents(place) == before
    finished(place, events, rollup)


@DATABASES
@pytest.mark.slow
def test_open_rows_that_are_gone_are_said_from_when_to_when_and_a_replay_brings_them_back(
    place: Place, rollup: Cli
) -> None:
    events = begun(place)
    before = contents(place)
    remove_table(place, "OPEN")
    code, said = rollup("recover", place.conf.path, "--rebuild")
    found = re.search(r"seconds: what was open, from (\S+ \S+) to (\S+ \S+), is lost", said)
    assert code == 0 and found is not None, said
    after = contents(place)
    assert {table for table in before if before[table] != after[table]} <= {"open seconds"}
    assert before["open seconds"] and not after["open seconds"]
    place.add(*events[240:])
    FileJob(place.conf).run()
    assert rollup("replay", place.conf.path, "--from", found[1], "--to", found[2])[0] == 0
    code, said = rollup("verify", place.conf.path, "--raw", "--true-buckets")
    assert code == 0, said


@DATABASES
def test_what_the_finest_table_had_is_said_and_comes_back_with_a_replay(place: Place, rollup: Cli) -> None:
    events = begun(place)
    before = contents(place)
    remove_table(place, "SECONDS")
    code, said = rollup("recover", place.conf.path, "--rebuild")
    assert code == 0 and "seconds: what was stored and is gone is lost: bring it back with `rollup replay`" in said
    after = contents(place)
    assert {table for table in before if before[table] != after[table]} == {"seconds"}
    assert rollup("replay", place.conf.path, "--from", "2018-01-01", "--to", "2018-05-01")[0] == 0
    finished(place, events, rollup)


@DATABASES
@pytest.mark.slow
def test_without_its_place_in_the_stream_only_the_tables_count_and_what_is_lost_is_said(
    place: Place, rollup: Cli
) -> None:
    begun(place)
    execute(place, "update \"TradeAgg_COMMIT\" set source = 'nothing'")
    code, said = rollup("recover", place.conf.path, "--rebuild")
    assert code == 0 and "lost: what was still open at seconds, that is events from 2018-" in said, said


@DATABASES
@pytest.mark.slow
def test_a_table_of_another_type_is_refused_and_nothing_is_forgotten(place: Place, rollup: Cli) -> None:
    begun(place)
    before = contents(place)
    execute(place, 'alter table "TradeAgg_HOURS" rename column "AGG_SUM_price" to "mine"')
    code, said = rollup("recover", place.conf.path, "--rebuild")
    assert code == 2 and "'AGG_SUM_price'" in said, said
    execute(place, 'alter table "TradeAgg_HOURS" rename column "mine" to "AGG_SUM_price"')
    assert contents(place) == before
