"""A snapshot of PostgreSQL is one commit, however long it is read and whatever is written meanwhile."""

from __future__ import annotations

import math

import pytest

from rollup.core.calendar import Duration
from rollup.lang.siddhi.apps import parse_query
from rollup.retrieval.questions import plan
from tests.stores.conftest import NewUrl
from tests.stores.samples import FIRST, app, host
from tests.stores.test_postgres import on

pytestmark = pytest.mark.postgres


def test_a_snapshot_stays_at_its_commit_while_the_job_goes_on(new_url: NewUrl) -> None:
    stored = host(app("@OutOfOrder('correct')", select="select k, count() as n"), on(new_url()))
    seconds = [[("x", 1, 1.0, "a", True, FIRST + 1_000 * second)] for second in range(40)]
    for batch in seconds[:20]:
        stored.send("S", batch)
    ask = plan(
        parse_query("from Agg within '2017-01-01 00:00:00', '2019-01-01 00:00:00' per 'years' select sum(n) as n"),
        stored.program.aggregations,
    )
    snapshot = stored.stores["Agg"].snapshot()
    assert snapshot.number == 20
    before, sizes = snapshot.rows(Duration.SECONDS).num_rows, snapshot.sizes()
    for batch in seconds[20:]:
        stored.send("S", batch)
    assert snapshot.rows(Duration.SECONDS).num_rows == before == 19
    assert snapshot.loaded().number == snapshot.number == 20
    assert snapshot.answer(ask).to_pylist() == [{"n": 20}]
    assert {a: s.rows for a, s in snapshot.sizes().items()} == {a: s.rows for a, s in sizes.items()}
    assert stored.stores["Agg"].snapshot().loaded().number == 40


def test_a_question_that_the_server_refuses_is_answered_all_the_same_and_does_not_move_a_snapshot(
    new_url: NewUrl,
) -> None:
    stored = host(app(select="select k, last(i) as latest, count() as n"), on(new_url()))
    stored.send("S", [("x", 2**31 - 1, 1.0, "a", True, FIRST)])
    within = "within '2017-**-** **:**:**' per 'years' select"
    wrong, right = (
        plan(parse_query(f"from Agg {within} {what}"), stored.program.aggregations)
        for what in ("math:exp(latest) as x, latest + latest as y", "sum(n) as n")
    )
    snapshot = stored.stores["Agg"].snapshot()
    assert snapshot.answer(right).to_pylist() == [{"n": 1}]
    stored.send("S", [("x", 2**31 - 1, 1.0, "a", True, FIRST + 1)])
    assert snapshot.answer(wrong).to_pylist() == [{"x": math.inf, "y": None}]
    assert snapshot.answer(right).to_pylist() == [{"n": 1}]


def test_a_snapshot_that_nobody_has_any_more_gives_its_connection_back(new_url: NewUrl) -> None:
    stored = host(app(), on(new_url()))
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST)])
    store = stored.stores["Agg"]
    for _ in range(40):  # more than the pool has
        assert store.snapshot().loaded().number == 1
    assert store.database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    kept = store.snapshot()
    assert kept.number == 1 and store.database.engine.pool.checkedout() == 1  # type: ignore[attr-defined]
    kept.close()  # type: ignore[attr-defined]
    assert store.database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
