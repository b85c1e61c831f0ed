"""What is refused over columns is the very event that is refused on rows, and nothing else is lost."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.errors import QueryError
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.running.instance import ColumnInstance
from rollup.engine.rows.patterns import algebra
from rollup.lang.fitting import UndeclaredField
from rollup.live import Engine
from tests.live.deploying import TYPES, deployed, exact, gaps, row, run, some_events
from tests.live.statements import COVERED, SCHEMA
from tests.profiles import examples

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.parametrize("rate", ["", "output last every 2 events"])
@pytest.mark.parametrize(
    "window",
    [
        "#ext_timed(volume, 2 msec)",
        "#ext_timed_batch(volume, 2 msec)",
        "#time_order(volume, 2 msec)",
        "#timetolive(volume + current_timestamp)",
    ],
)
def test_the_very_event_whose_time_is_null_is_refused(window: str, rate: str) -> None:
    text = f"select symbol, sum(price) as s from S(price > 1){window} group by symbol {rate}"
    events = [{"symbol": "a", "price": 2.0 * i, "volume": None if i == 7 else i} for i in range(12)]
    events[0]["volume"] = None  # which does not pass the filter
    said = list[Any]()
    for columns in (1, None):
        engine = Engine(columns=columns)
        engine.deploy(SCHEMA)
        engine.deploy(text, "carried")
        engine.send("S", pa.Table.from_pylist(events[:5], TYPES))
        with pytest.raises(QueryError, match="no time"):
            engine.send("S", pa.Table.from_pylist(events[5:], TYPES))
        engine.send("S", pa.Table.from_pylist(events[8:], TYPES))
        said.append([exact(each) for each in engine.heard()])
        assert engine.plan()[0].executor == ("columns" if "#ext_timed" in text else "rows")
    assert said[0] == said[1]


@pytest.mark.parametrize("window", ["#ext_timed(volume, 2 msec)", "#time_order(volume, 2 msec)"])
def test_an_event_that_is_refused_has_begun_its_partition(window: str) -> None:
    events = [{"symbol": "abacxadxe"[i], "price": 2.0 * i, "volume": None if i == 4 else i} for i in range(9)]
    said = list[Any]()
    for columns in (1, None):
        engine = Engine(columns=columns)
        engine.deploy(SCHEMA)
        engine.deploy("select symbol from S", "before")
        engine.deploy(f"context C select context.id as i, symbol, sum(price) as s from S{window}", "carried")
        engine.deploy("select price from S", "after")
        engine.send("S", pa.Table.from_pylist(events[:2], TYPES))
        with pytest.raises(QueryError, match="no time"):
            engine.send("S", pa.Table.from_pylist(events[2:], TYPES))
        engine.send("S", pa.Table.from_pylist(events[5:], TYPES))
        said.append([exact(each) for each in engine.heard()])
    assert said[0] == said[1]


@pytest.mark.parametrize("columns", [1, None])
@pytest.mark.parametrize(
    "window",
    [
        "ext_timed(volume, 9 msec)",
        "ext_timed_batch(volume, 1 msec)",
        "time_order(volume, 9 msec)",
        "timetolive(cast(volume, long))",
    ],
)
def test_what_its_window_refuses_is_no_earlier_event(window: str, columns: int | None) -> None:
    events = [{"symbol": "a", "price": float(i), "volume": None if i == 3 else 10 * i} for i in range(1, 8)]
    engine = Engine(columns=columns)
    engine.deploy(SCHEMA)
    engine.deploy(f"select price, prior(1, price) as p from S#{window}", "earlier")
    with pytest.raises(QueryError, match="no time"):
        engine.send("S", pa.Table.from_pylist(events, TYPES))
    engine.send("S", pa.Table.from_pylist(events[3:], TYPES))
    found = [(row["price"], row["p"]) for each in engine.heard() for row in each.new]
    expected = [(1.0, None), (2.0, 1.0), (4.0, 2.0), (5.0, 4.0), (6.0, 5.0), (7.0, 6.0)]
    assert found == expected[: 5 if "batch" in window else 6]  # as in Esper; the last batch is open


def test_an_event_is_refused_for_the_time_that_it_was_changed_to() -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    events = pa.Table.from_pylist([{"symbol": "a", "price": 2.0, "volume": i} for i in range(12)], TYPES)
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy("select symbol, price from S#ext_timed(volume, 2 msec)", "carried")
        engine.deploy("update istream S set volume = null where volume = 7", "change")
        engine.send("S", events.slice(0, 5))
        with pytest.raises(QueryError, match="no time"):
            engine.send("S", events.slice(5))
        engine.send("S", events.slice(8))
    assert engines[0].heard() == engines[1].heard()


def test_what_is_inserted_into_a_window_by_a_time_comes_event_by_event() -> None:
    engine = Engine(columns=1)
    engine.deploy(SCHEMA)
    engine.deploy("insert into T select symbol, price as p, volume as v from S", "into")
    engine.deploy("select sum(p) as s from T#ext_timed(v, 2 msec)", "carried")
    assert {each.executor for each in engine.plan()} == {"rows"}
    assert all("a window by a time over what is inserted" in (each.reason or "") for each in engine.plan())


def test_a_batch_that_is_stopped_inserts_what_had_come_before() -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(COVERED["into T"], "first")
        engine.deploy("create table K(k string primary key, v int); create unique index U on K(v);", "k")
        engine.deploy(
            "on S as s merge K where K.k = s.symbol when not matched then insert select s.symbol as k, 1 as v", "m"
        )
        engine.deploy(COVERED["of T"], "of T")
        with pytest.raises(QueryError):
            engine.send(
                "S", pa.table({"symbol": ["a", "b"] * 2, "price": [50.0] * 4, "volume": pa.array([1] * 4, pa.int32())})
            )
    assert engines[0].heard() == engines[1].heard() != []
    assert engines[0].rows("of T") == engines[1].rows("of T")


def test_what_a_statement_on_rows_refuses_stops_the_batch_there_for_everybody() -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy("select sum(volume) as s from S#length(9)", "sum")
        engine.deploy("create table W(k string primary key, v int); create unique index U on W(v);", "w")
        engine.deploy(
            "on S as s merge W where W.k = s.symbol when not matched then insert select s.symbol as k, 1 as v", "m"
        )
        engine.deploy("select sum(volume) as s from S#length(9)", "after")
        with pytest.raises(QueryError):
            engine.send("S", some_events(3))
    assert engines[0].heard() == engines[1].heard() != []
    assert [engine.rows("sum") for engine in engines] == [[{"s": 3}]] * 2
    assert [engine.rows("after") for engine in engines] == [[{"s": 1}]] * 2


@pytest.mark.parametrize(
    "text",
    [
        "select a.price as p, b.price as q from pattern [every a=S(volume > 0) -> b=R(symbol=a.symbol)]",
        "select a.price as p, b.price as q from pattern [every a=S(volume > 0) -> b=R(symbol=a.symbol) "
        "where timer:within(30 msec)]",
        "select a.price as p, c.price as q from pattern [every a=S(volume > 0) -> (b=S(symbol=a.symbol) -> c=R(symbol=a.symbol)) "
        "where timer:within(30 msec)]",
        "context C select a.price as p, b.price as q from pattern [every a=S(volume > 0) -> b=S(volume = 1)]",
    ],
)
@examples(40)
@given(
    found=st.lists(st.tuples(st.sampled_from(["S", "S", "R"]), st.lists(st.tuples(gaps, row), max_size=8)), max_size=9)
)
@pytest.mark.few(2)
def test_a_pattern_that_is_full_refuses_the_events_that_are_too_many_and_no_others(text: str, found: Any) -> None:
    said: list[list[Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(algebra, "Pattern", partial(algebra.Pattern, limit=10))
        for least in (1, 4, None):
            engine, heard = Engine(columns=least), list[Any]()
            engine.deploy(SCHEMA)
            engine.deploy(COVERED["grouped"], "grouped")
            engine.deploy(text, "full")
            engine.deploy(COVERED["each"], "each")
            for stream, events in found:
                at = [engine.now + sum(gap for gap, _ in events[: i + 1]) for i in range(len(events))]
                try:
                    engine.send(stream, pa.Table.from_pylist([event for _, event in events], TYPES), at=at)
                except QueryError as problem:
                    heard.append(str(problem))
                heard += [exact(each) for each in engine.heard()]
            said.append(heard)
            assert len({each.executor for each in engine.plan()}) == 1
    assert said[0] == said[2] and said[1] == said[2]


@examples(40)
@given(found=st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([1, 2])), max_size=12), max_size=5))
def test_an_event_that_ends_a_partial_match_makes_no_room_for_the_one_it_would_begin(found: Any) -> None:
    """On rows a first filter with conditions is asked before what waits."""
    said: list[list[Any]] = []
    text = (
        "select a.price as p, b.price as q from pattern [every a=S(volume > 0) -> b=S(symbol = a.symbol, volume = 1)]"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(algebra, "Pattern", partial(algebra.Pattern, limit=6))
        for least in (1, None):
            engine, heard = Engine(columns=least), list[Any]()
            engine.deploy(SCHEMA)
            engine.deploy(text, "full")
            for events in found:
                rows = [
                    {"symbol": symbol, "price": float(n), "volume": volume} for n, (symbol, volume) in enumerate(events)
                ]
                try:
                    engine.send("S", pa.Table.from_pylist(rows, TYPES))
                except QueryError as problem:
                    heard.append(str(problem))
                heard += [exact(each) for each in engine.heard()]
            said.append(heard)
    assert said[0] == said[1]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each batch has that statements over columns take."""
    found, take = list[int](), ColumnInstance.take

    def counted(instance: ColumnInstance, batch: Batch) -> Output:
        found.append(batch.rows)
        return take(instance, batch)

    monkeypatch.setattr(ColumnInstance, "take", counted)
    return found


def test_a_pattern_that_is_nearly_full_takes_events_that_begin_nothing_as_one_batch(
    taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algebra, "Pattern", partial(algebra.Pattern, limit=10))
    engine = Engine(columns=1)
    engine.deploy(SCHEMA)
    engine.deploy("select a.price as p from pattern [every a=S(volume > 0) -> b=R(symbol = a.symbol)]", "full")
    engine.send("S", [{"symbol": "a", "price": 1.0, "volume": 1}] * 5)
    engine.send("R", [{"symbol": "b", "price": 1.0, "volume": 1}] * 50)
    assert taken == [5, 50]


@pytest.mark.parametrize(
    ("name", "gap"), [("in turn", 1000), ("several at once", 1)], ids=["by the clock", "with events"]
)
def test_a_batch_that_would_begin_too_many_partitions_comes_event_by_event(
    name: str, gap: int, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollup.engine.columns.cores.lifecycle_statement._MOST", 8)
    events = [("timed", "S", [(gap, {"symbol": "a", "price": 60.0 + n, "volume": 1}) for n in range(5)])]
    said = run(deployed([name], 1), events, 1)
    assert taken == [1] * 5
    assert said == run(deployed([name], None), events, None)


def test_instants_that_go_back_or_are_missing_are_refused() -> None:
    engine = deployed(["filter"], 1)
    for at in ([5, 4, 3, 2, 1, 0], [1, 2], [None] * 6):
        with pytest.raises(QueryError, match="instants"):
            engine.send("S", some_events(3), at=at)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="price"):
        engine.send("S", some_events(3), at="price")
    engine.send("S", some_events(3), at=[1, 2, 3, 4, 5, 6])
    assert engine.now == 6


def test_a_column_of_another_width_is_read_as_its_fields_type_and_one_that_does_not_fit_is_refused() -> None:
    engine = deployed(["filter"], 1)
    engine.send("S", pa.table({"symbol": pa.array(["a"], pa.large_string()), "price": [50], "volume": pa.array([2])}))
    assert [each.new for each in engine.heard()] == [[{"symbol": "a", "n": 100.0}]]
    with pytest.raises(QueryError, match=r"S\.volume"):
        engine.send("S", pa.table({"volume": pa.array([1, 2**40])}))
    with pytest.warns(UndeclaredField, match="`S` declares no `x`"):
        engine.send("S", pa.table({"x": [1]}))
