"""Actions and sub-queries that name a table's key: the same answers as by looking through the table, without doing so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.errors import QueryError
from rollup.engine.rows.stores.named import NamedWindow
from rollup.engine.rows.stores.tables import Table
from rollup.engine.rows.windows.base import Kept
from rollup.live import Engine
from tests.profiles import examples

MODULE = """
create schema S(k string, n int, v double);
create table T(k string primary key, n int primary key, v double, c int);
@name('merge') on S(v > 20) as s merge T as t where {equal}
  when matched and s.v > 90 then delete
  when matched then update set v = t.v + s.v, c = t.c + 1
  when not matched then insert select s.k as k, s.n as n, s.v as v, 1 as c;
@name('update') on S(v > 10, v <= 20) as s update T as t set c = s.n where {equal} and t.c > 1;
@name('delete') on S(v > 8, v <= 10) as s delete from T as t where {equal};
@name('select') on S(v <= 8) as s select s.v as x, t.v as y, t.c as c from T as t where {equal};
@name('asked') select k, (select v from T as t where {equal}) as v, exists (select * from T as t where {equal} and t.c > 1) as e
  from S as s;
"""
BY_KEY = "t.k = s.k and s.n = t.n"
LOOKED_THROUGH = (
    "coalesce(t.k, '-') = coalesce(s.k, '-') and t.k = t.k and coalesce(s.n, -1) = coalesce(t.n, -1) and t.n = t.n"
)

events = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", None]),
            "n": st.one_of(st.none(), st.integers(0, 2)),
            "v": st.sampled_from([1.0, 9.0, 15.0, 30.0, 40.0, 95.0]),
        }
    ),
    max_size=30,
)


WINDOWED = """
create schema S(k string, n int, v double);
create window T#{window} as (k string, n int, v double, c int);
@name('fills') insert into T select k, n, v, n as c from S(v = 40);
@name('sum') select sum(v) as s from T;
"""
WINDOWS = [
    "length(5)",
    "keepall",
    "time(1)",
    "unique(k)",
    "unique(n)",
    "firstlength(3)",
    "length_batch(3)",
    "sort(3, v)",
]


def _windowed(window: str) -> str:
    """The same over a named window."""
    own = MODULE[MODULE.index("@name('merge')") :]
    return WINDOWED.replace("{window}", window) + own


def _answers(equal: str, found: list[dict[str, Any]], module: str = MODULE) -> list[Any]:
    engine = Engine()
    engine.deploy(module.format(equal=equal))
    said: list[Any] = []
    for number, event in enumerate(found):
        if number == len(found) // 2:
            engine = Engine.restored(engine.snapshot())
        try:
            engine.send("S", [event], at=[100 * number])
        except QueryError as problem:  # a key that is there already
            said.append(str(problem))
        said += [(each.statement, each.new, each.old) for each in engine.heard()]
    return [*said, engine.query("select * from T")]


@examples(40)
@given(found=events)
def test_a_key_finds_what_looking_through_finds(found: list[dict[str, Any]]) -> None:
    assert _answers(BY_KEY, found) == _answers(LOOKED_THROUGH, found)


@pytest.mark.parametrize("window", WINDOWS)
@examples(6)
@given(found=events)
@pytest.mark.few(3)
def test_values_find_in_a_named_window_what_looking_through_finds(window: str, found: list[dict[str, Any]]) -> None:
    module = _windowed(window)
    assert _answers(BY_KEY, found, module) == _answers(LOOKED_THROUGH, found, module)
    assert _answers("t.n = s.n", found, module) == _answers("t.n = coalesce(s.n, -1)", found, module)


ASKED = """
create schema S(k string, n int, v double);
@name('asked') select irstream k, (select v from S(v < 40)#{window} as t where {equal} and t.v > 5) as v,
  (select window(t.v) from S#{window} as t where {equal}) as w, exists (select * from S(v > 20)#{window} as t where {equal}) as e
  from S#length(2) as s where not exists (select * from S(v > 50)#{window} as t where {equal});
create window T#keepall as S; insert into T select * from S;
@name('deletes') on S(v > 30) as s delete from T as d where d.n in (select t.n from S#{window} as t where {equal});
"""


@pytest.mark.parametrize("window", ["length(3)", "time(250 msec)", "keepall", "time_batch(300 msec)", "unique(n)"])
@examples(10)
@given(found=events)
@pytest.mark.few(3)
def test_values_find_in_the_window_of_a_sub_query_what_looking_through_finds(window: str, found: Any) -> None:
    module = ASKED.replace("{window}", window)
    assert _answers(BY_KEY, found, module) == _answers(LOOKED_THROUGH, found, module)


def test_the_window_of_a_sub_query_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(columns=None)
    engine.deploy("create schema S(k string, n int)")
    engine.deploy("select n, exists (select * from S(n < 3)#length(100) as t where t.k = s.k) as e from S(n > 2) as s")
    engine.send("S", [{"k": "a", "n": 1}, {"k": "b", "n": 3}])
    monkeypatch.setattr(Kept, "content", _refuse)
    engine.send("S", [{"k": "c", "n": 2}, {"k": "b", "n": 4}, {"k": "c", "n": 5}, {"k": "a", "n": 6}])
    assert [row["e"] for each in engine.heard() for row in each.new] == [False, False, True, True]


def test_a_named_window_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.deploy(_windowed("keepall").format(equal=BY_KEY))
    engine.send("S", [{"k": k, "n": n, "v": 30.0} for k in "abc" for n in range(3)])
    engine.send("S", [{"k": "a", "n": 1, "v": v} for v in (1.0, 9.0, 15.0)])

    def refuse(self: NamedWindow) -> Any:
        raise AssertionError("looked through")

    monkeypatch.setattr(NamedWindow, "content", refuse)
    engine.send("S", [{"k": "a", "n": 2, "v": v} for v in (1.0, 9.0, 15.0, 30.0, 95.0)])
    monkeypatch.undo()
    assert len(engine.query("select * from T")) == 7


def test_a_table_is_not_looked_through_for_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.deploy(MODULE.format(equal=BY_KEY))
    engine.send("S", [{"k": k, "n": n, "v": 30.0} for k in "abc" for n in range(3)])

    def refuse(self: Table) -> Any:
        raise AssertionError("looked through")

    monkeypatch.setattr(Table, "content", refuse)
    engine.send("S", [{"k": "a", "n": 1, "v": v} for v in (1.0, 9.0, 15.0, 30.0, 95.0)])
    monkeypatch.undo()
    assert len(engine.query("select * from T")) == 8


def _refuse(self: NamedWindow) -> Any:
    raise AssertionError("looked through")


def test_a_unique_index_is_not_looked_through_for_what_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.deploy("create schema S(k string, n int); create window W#length(2) as S; create unique index I on W(n, k)")
    engine.deploy("insert into W select * from S")
    engine.send("S", {"k": "a", "n": 1})
    monkeypatch.setattr(NamedWindow, "content", _refuse)
    engine.send("S", {"k": "a", "n": 2})
    with pytest.raises(QueryError, match="index I is unique"):
        engine.send("S", {"k": "a", "n": 2})
    engine.send("S", {"k": "b", "n": 2})
    engine.send("S", [{"k": "a", "n": 1}, {"k": "b", "n": 3}])  # the first have left
    monkeypatch.undo()
    assert engine.query("select * from W") == [{"k": "a", "n": 1}, {"k": "b", "n": 3}]


def test_actions_of_one_event_do_not_look_through_what_the_first_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.deploy(
        "create schema S(k string, n int); create window W#keepall as S; @name('sum') select sum(n) as s from W"
    )
    engine.deploy("on S as s merge W as w where w.k = s.k when not matched then insert select *")
    engine.deploy("@name('doubled') on S as s update W as w set n = w.n * 2 where w.k = s.k")
    engine.deploy("@name('found') on S as s select w.n as n from W as w where w.k = s.k")
    engine.send("S", {"k": "a", "n": 1})
    monkeypatch.setattr(NamedWindow, "content", _refuse)
    engine.heard()
    engine.send("S", {"k": "b", "n": 5})
    assert {each.statement: each.new for each in engine.heard() if each.statement in ("found", "doubled", "sum")} == {
        "doubled": [{"k": "b", "n": 10}],
        "found": [{"n": 10}],
        "sum": [{"s": 12}],
    }


@pytest.mark.parametrize("window", ["#unique(v)", "#groupwin(v)#length(1)"])
def test_each_nan_is_the_same_key_of_a_window(window: str) -> None:
    engine = Engine(columns=None)
    engine.deploy(f"create schema S(v double); @name('s') select irstream v from S{window}")
    engine.send("S", [{"v": float("nan")}, {"v": float("nan")}])
    assert [(len(each.new), len(each.old)) for each in engine.heard()] == [(1, 0), (1, 1)]


def test_a_unique_index_of_a_named_window_takes_nan_once() -> None:
    engine = Engine()
    engine.deploy("create schema S(v double); create window W#keepall as S; create unique index I on W(v);")
    engine.deploy("insert into W select * from S")
    engine.send("S", {"v": float("nan")})
    with pytest.raises(QueryError, match="nan"):
        engine.send("S", {"v": float("nan")})


def test_a_partition_of_nan_hears_filters_for_its_key() -> None:
    engine = Engine(columns=None)
    engine.deploy("create schema S(k string, v double); create context C partition by v from S;")
    engine.deploy("@name('pairs') context C select a.k as x, b.k as y from pattern [every a=S -> b=S(v = a.v)]")
    engine.deploy("@name('counts') context C select k, count(*) as n from S(v = context.key1)")
    engine.send("S", [{"k": k, "v": v} for k, v in (("a", float("nan")), ("b", float("nan")), ("c", 2.0), ("d", 2.0))])
    heard: dict[str, list[Any]] = {"pairs": [], "counts": []}
    for each in engine.heard():
        heard[each.statement] += each.new
    assert heard["pairs"] == [{"x": "a", "y": "b"}, {"x": "c", "y": "d"}]
    assert [row["n"] for row in heard["counts"]] == [1, 2, 1, 2]
