"""SQLite as the embedded choice: a real file, opened again.

What SQLite cannot hold by itself (NaN, whole numbers beyond 64 bits, lists) must come back as it went in.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import FencedError, StoreError
from rollup.stores.base import Commit, Rewrite
from rollup.stores.databases import store_of
from rollup.stores.memory import MemoryStore
from rollup.stores.sql.store import SqlStore
from tests.stores.samples import FIRST, NUL_EVENTS, added, aggregation, answers, app, batches, host


def _at(path: Path) -> str:
    return f"sqlite:///{path}/agg.db"


@pytest.mark.parametrize("annotations", ["@BufferSize('2')", "@OutOfOrder('correct')"])
@pytest.mark.few(1)
def test_answers_are_those_of_the_store_in_memory_also_after_every_restart(annotations: str, tmp_path: Path) -> None:
    text = app(annotations)
    memory, stored = host(text, MemoryStore), host(text, lambda a, e: store_of(a, e, _at(tmp_path)))
    for number, batch in enumerate(batches(3)):
        memory.send("S", batch)
        stored.send("S", batch)
        if number % 3 == 1:
            stored = host(text, lambda a, e: store_of(a, e, _at(tmp_path)))
    assert answers(stored) == answers(memory)
    assert stored.pipelines["Agg"].state.clocks == memory.pipelines["Agg"].state.clocks


def test_nan_infinity_and_wide_sums_survive(tmp_path: Path) -> None:
    text = app(select="select k, max(d) as high, sum(d) as s, sum(ts * 0 + 9223372036854775807L) as wide, min(b) as b")
    events = [
        ("x", 1, float("nan"), "a", True, FIRST),
        ("y", 1, float("-inf"), "a", False, FIRST),
        ("x", 1, 1.0, "a", None, FIRST),
    ]
    memory, stored = host(text, MemoryStore), host(text, lambda a, e: store_of(a, e, _at(tmp_path)))
    for made in (memory, stored):
        made.send("S", events)
    again = host(text, lambda a, e: store_of(a, e, _at(tmp_path)))
    assert repr(answers(again)) == repr(answers(memory))
    wide = again.pipelines["Agg"].state.open[again.program.aggregations["Agg"].root]
    assert max(
        value for name in wide.schema.names if name.startswith("AGG_SUM_ts") for value in wide[name].to_pylist()
    ) == 2 * (2**63 - 1)


def test_text_with_a_nul_comes_back_as_it_went_in(tmp_path: Path) -> None:
    text = app("@OutOfOrder('correct')")
    memory, stored = host(text, MemoryStore), host(text, lambda a, e: store_of(a, e, _at(tmp_path)))
    for batch in NUL_EVENTS:
        memory.send("S", batch)
        stored.send("S", batch)
        assert answers(stored) == answers(memory)
        stored = host(text, lambda a, e: store_of(a, e, _at(tmp_path)))


def test_sketches_come_back(tmp_path: Path) -> None:
    text = app(select="select k, hll(s) as about, quantiles(d) as spread, topK(s, 2) as top")
    memory, stored = host(text, MemoryStore), host(text, lambda a, e: store_of(a, e, _at(tmp_path)))
    for batch in batches(7, 3):
        memory.send("S", batch)
        stored.send("S", batch)
    assert answers(stored) == answers(memory)


def test_of_two_jobs_the_later_is_fenced(tmp_path: Path) -> None:
    one, two = (host(app(), lambda a, e: store_of(a, e, _at(tmp_path))) for _ in range(2))
    one.send("S", [("x", 1, 1.0, "a", True, FIRST)])
    with pytest.raises(FencedError, match="commit 1 of Agg is taken"):
        two.send("S", [("x", 1, 1.0, "a", True, FIRST)])


@pytest.mark.slow
def test_a_locked_file_is_waited_for_and_then_named(tmp_path: Path) -> None:
    store: list[SqlStore] = []

    def make(a: object, e: object) -> SqlStore:
        store.append(store_of(aggregation(), ColumnEngine(), _at(tmp_path) + "?timeout=0.1", patience=0.5))
        return store[-1]

    stored = host(app(), make)
    other = sqlite3.connect(tmp_path / "agg.db", isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(StoreError, match="Agg: commit: the database does not answer: database is locked"):
        stored.send("S", [("x", 1, 1.0, "a", True, FIRST)])
    other.execute("rollback")
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST)])
    assert len(answers(stored)["years"]) == 1


def test_a_table_of_somebody_else_is_refused(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "agg.db")
    other.execute('create table "Agg_DAYS" (x int)')
    other.commit()
    with pytest.raises(StoreError, match="table 'Agg_DAYS' has no column 'AGG_TIMESTAMP'"):
        store_of(aggregation(), ColumnEngine(), _at(tmp_path)).load()


def test_columns_are_added_and_the_past_is_rewritten(tmp_path: Path) -> None:
    old = host(app(select="select k, count() as n"), lambda a, e: store_of(a, e, _at(tmp_path)))
    old.send("S", [("x", 5, 1.0, "a", True, FIRST + 1_000 * second) for second in range(3)])
    text = app(select="select k, count() as n, sum(i) as total")
    new = host(text, MemoryStore).program.aggregations["Agg"]
    store = store_of(new, ColumnEngine(), _at(tmp_path))
    for _ in range(2):
        store.evolve(added(old, new), [])
    loaded, stored = store.load(), store.snapshot().rows(Duration.SECONDS)
    assert loaded is not None
    removal = Rewrite(None, FIRST + 1_000, stored.slice(0, 0))
    with pytest.raises(StoreError, match="Agg_MINUTES has 0 events where Agg_SECONDS has 1: nothing was removed"):
        store.commit(Commit(loaded.number + 1, loaded.state, {}, rewrites={Duration.SECONDS: removal}))
    nothing = Rewrite(FIRST, FIRST + 1_000, stored.slice(0, 0))
    store.commit(Commit(loaded.number + 1, loaded.state, {}, rewrites={Duration.SECONDS: nothing}))
    assert store.snapshot().extent(Duration.SECONDS) == (FIRST + 1_000, FIRST + 1_000)
    assert [size.rows for size in store.snapshot().sizes().values()] == [1, 0, 0, 0, 0, 0]
    assert store.snapshot().committed() > 0
    again = host(text, lambda a, e: store_of(a, e, _at(tmp_path)))
    again.send("S", [("x", 5, 1.0, "a", True, FIRST + 9_000)])
    question = "within '2017-12-31 23:59:55', '2018-02-03 00:00:00' per 'auto' select sum(n) as n, sum(total) as t"
    assert again.query(f"from Agg {question}").to_pylist() == [{"n": 1, "t": 5}]


def test_a_file_that_was_put_back_is_noticed_and_the_next_start_goes_on_from_there(tmp_path: Path) -> None:
    events = batches(5)
    memory, stored = host(app(), MemoryStore), host(app(), lambda a, e: store_of(a, e, _at(tmp_path)))
    for batch in events:
        memory.send("S", batch)
    stored.send("S", events[0])
    with sqlite3.connect(tmp_path / "agg.db") as now, sqlite3.connect(tmp_path / "backup.db") as backup:
        now.backup(backup)
    for batch in events[1:3]:
        stored.send("S", batch)
    with sqlite3.connect(tmp_path / "agg.db") as now, sqlite3.connect(tmp_path / "backup.db") as backup:
        backup.backup(now)
    with pytest.raises(StoreError, match="newest commit of Agg is 1 where this job has made 3"):
        stored.send("S", events[3])
    again = host(app(), lambda a, e: store_of(a, e, _at(tmp_path)))
    for batch in events[again.pipelines["Agg"].number :]:
        again.send("S", batch)
    assert answers(again) == answers(memory)
