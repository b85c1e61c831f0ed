"""StreamCruncher over columns against the kernel on rows: the same events, instants, ticks of the clock and restarts.

`Cruncher(columns=None)` is the oracle and gets every event in a submit of its own, in the order of instants. The other
kernel gets tables of many instants, goes over at a random one, and is taken out and restored at random places. Batches
are compared one by one, to the last bit.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.errors import QueryError
from rollup.engine.columns.cycles.clocked import Events
from rollup.engine.rows.cycles.running import Batch
from rollup.lang.streamcruncher import queries
from rollup.lang.streamcruncher.kernel import Cruncher
from rollup.lang.streamcruncher.queries import pieces
from tests.profiles import examples
from tests.rereading import reread

NEW, DEAD = "as x where x.$row_status is new", "as x where x.$row_status is dead"
COVERED = {
    "new": f"select k, n, s, a from t (partition by k store last 7 milliseconds with count(w) as n, sum(v) as s, "
    f"avg(w) as a) {NEW} and (s > 2 or a is null);",
    "dead": f"select k, n, s, a from t (partition by k store last 7 milliseconds with count(v) as n, sum(w) as s, "
    f"avg(v) as a) {DEAD};",
    "pinned": f"select k, f, n, s, e from t (partition by k, f store last 5 milliseconds with pinned count(id) as n, "
    f"sum(w) as s, sum(w) entrance only as e where w > 1 or v = 2) {NEW};",
    "pinned dead": f"select f, n from t (partition by f store last 3 milliseconds with pinned count(id) as n) {DEAD};",
    "difference": f"select k, n, s from t (partition by k store last 9 milliseconds with count(id $diff) as n, "
    f"sum(w $diff) as s) {NEW};",
    "alert": "select i, w, n, case when n is null then 'none' else p end as what from alert a.v as i, a.w as w, b.w as n, "
    "b.k as p using t (partition store last 6 milliseconds) as a correlate on v, "
    "u (partition store last 4 milliseconds where w > 0.5) as b correlate on v "
    "when present(a and b) or present(a and not b);",
    "three": "select i, j, l from alert a.k as i, b.k as j, c.k as l using t (partition store last 5 milliseconds) as a "
    "correlate on k, u (partition store last 5 milliseconds) as b correlate on k, t (partition store last 3 milliseconds "
    "where v > 1) as c correlate on k when present(a and b and not c) or present(a and not b and not c) "
    "or present(a and b and c) or present(b and c);",
}
UNCOVERED = {
    "sliding": f"select id from t (partition store last 3) {NEW};",
    "ordered": f"select n from t (partition store last 3 milliseconds with count(id) as n) {NEW} order by n;",
    "longs": f"select s from t (partition store last 3 milliseconds with sum(id) as s) {NEW};",
    "least": f"select s from t (partition store last 3 milliseconds with min(w) as s) {NEW};",
}
SEVERAL = [
    ["new"],
    ["dead", "pinned dead"],
    ["pinned", "difference"],
    ["alert"],
    ["three"],
    ["new", "sliding", "alert"],
]
COLUMNS = {"id": "long", "at": "ts", "k": "str", "f": "bool", "v": "int", "w": "double"}
TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.int64()),
        ("k", pa.string()),
        ("f", pa.bool_()),
        ("v", pa.int32()),
        ("w", pa.float64()),
    ]
)

gap = st.sampled_from([0, 0, 0, 1, 1, 2, 5, 30])
lag = st.sampled_from([0, 0, 0, 0, 1, 3, 9, -2])
values = st.tuples(
    st.sampled_from(["a", "b", "c", None]),
    st.sampled_from([True, False, None]),
    st.one_of(st.none(), st.integers(0, 3)),
    st.one_of(st.none(), st.sampled_from([0.1, 0.2, 0.7, 1e16, float("nan")]), st.floats(-5, 5)),
)
event = st.tuples(st.sampled_from(["t", "t", "u"]), gap, lag, values)
sends = st.tuples(st.sampled_from(["table", "table", "submit"]), st.lists(event, max_size=12))
ticks = st.tuples(st.just("advance"), st.sampled_from([0, 1, 4, 20]))
steps = st.lists(st.one_of(sends, sends, ticks, st.sampled_from([("restart", None), ("finish", None)])), max_size=8)
Found = list[tuple[str, Batch]]


def _kernel(names: list[str], columns: int | None, found: Found) -> Cruncher:
    made = Cruncher(columns=columns)
    for stream in ("t", "u"):
        made.define(stream, COLUMNS, "at")
    for name in names:
        made.register({**COVERED, **UNCOVERED}[name], lambda batch, name=name: found.append((name, batch)))
    return made


def _run(names: list[str], columns: int | None, script: list[Any]) -> list[Any]:
    found, number = Found(), 0
    made = _kernel(names, columns, found)
    for what, value in script:
        match what:
            case "table" | "submit":
                events, at = list[Any](), made.now
                for stream, after, behind, rest in value:
                    at, number = at + after, number + 1
                    events.append((stream, at, (number, at - behind, *rest)))
                if what == "table" and columns is not None:
                    _send(made, events)
                else:
                    for stream, at, row in events:
                        made.submit(stream, [row], at)
            case "advance":
                made.advance(made.now + value)
            case "finish":
                made.finish()
            case _ if columns is not None:
                states = [reread(state) for state in made.snapshot()]
                made = _kernel(names, columns, found)
                made.restore(states)
            case _:
                pass
    made.advance(made.now + 100)
    return [(name, batch.at, [_bits(row) for row in batch.rows]) for name, batch in found]


def _send(made: Cruncher, events: list[Any]) -> None:
    tables, at = dict[str, pa.Table](), dict[str, list[int]]()
    for stream in ("u", "t"):
        rows = [row for name, _, row in events if name == stream]
        tables[stream] = pa.table([pa.array(list(c), f.type) for c, f in zip(zip(*rows, strict=True), TYPES, strict=True)]
                                  if rows else [pa.array([], f.type) for f in TYPES], schema=TYPES)  # fmt: skip
        at[stream] = [when for name, when, _ in events if name == stream]
    made.send(tables, at)


def _bits(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(struct.pack("<d", value) if isinstance(value, float) else value for value in row)


def test_everything_that_is_said_to_be_covered_runs_over_columns() -> None:
    assert {each.executor for each in _kernel(list(COVERED), 1, []).plan()} == {"columns"}
    reasons = {name: _kernel([name], 1, []).plan()[0].reason for name in UNCOVERED}
    assert reasons == {
        "sliding": "the window sliding",
        "ordered": "a select that the database answers",
        "longs": "sum of long",
        "least": "the aggregate min",
    }
    assert _kernel(["new"], None, []).plan()[0].executor == "rows"


@pytest.mark.parametrize("names", SEVERAL, ids=["-".join(each) for each in SEVERAL])
@examples(12)
@given(script=steps, least=st.sampled_from([1, 1, 6]))
@pytest.mark.few(3)
def test_over_columns_a_kernel_says_what_it_says_on_rows(names: list[str], script: list[Any], least: int) -> None:
    assert _run(names, least, script) == _run(names, None, script)


@examples(30)
@given(
    gaps=st.lists(st.tuples(st.sampled_from("tu"), st.sampled_from([0, 0, 1, 3])), min_size=1, max_size=30),
    size=st.integers(1, 9),
)
def test_pieces_are_cut_at_ends_of_instants_and_the_last_instant_stays_open(
    gaps: list[tuple[str, int]], size: int
) -> None:
    at, times = 0, dict[str, list[int]]()
    for stream, after in gaps:
        at += after
        times.setdefault(stream, []).append(at)
    whole = {stream: Events((pa.array(each),), np.array(each, np.int64)) for stream, each in times.items()}
    found, over = dict[str, list[int]](), -1
    for part, until, to in pieces(whole, size):
        every = [each for events in part.values() for each in events.times.tolist()]
        assert min(every) > over and max(every) == to and until == (to - 1 if to == at else to)
        over = to
        for stream, events in part.items():
            assert events.columns[0].to_pylist() == events.times.tolist()
            found.setdefault(stream, []).extend(events.times.tolist())
    assert (found, over) == (times, at)


def test_a_table_that_does_not_fit_is_refused_and_nothing_of_it_is_taken() -> None:
    found = Found()
    made = _kernel(["new"], 1, found)
    good = pa.Table.from_pylist([{"id": 1, "at": 5, "k": "a", "f": None, "v": 3, "w": 1.0}], TYPES)
    wrong = {
        "unknown stream": {"x": good},
        "has the columns": {"t": good.drop_columns(["w"])},
        "cannot be null": {"t": good.set_column(1, "at", pa.nulls(1, pa.int64()))},
        "go back": {"t": pa.concat_tables([good.set_column(1, "at", pa.array([6])), good])},
        "t.v is int": {"t": good.set_column(4, "v", pa.array(["many"]))},
    }
    for message, tables in wrong.items():
        with pytest.raises(QueryError, match=message):
            made.send(tables)
    with pytest.raises(QueryError, match="as many instants"):
        made.send({"t": good}, {"t": [1, 2]})
    made.send({"t": good})
    made.send({"t": good})  # of the same instant, so of the same cycle
    made.finish()
    assert found == [("new", Batch(5, [("a", 2, 6, 1.0)]))]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("before", "goes"), [(3, "columns"), (9, "rows")])
def test_a_query_goes_over_as_long_as_all_that_it_has_heard_is_known(
    monkeypatch: pytest.MonkeyPatch, before: int, goes: str, restarts: bool
) -> None:
    monkeypatch.setattr(queries, "MOST", 8)
    name = next(iter(COVERED))
    rest = ("a", True, 1, 0.5)
    singly = [("submit", [("t", 1, 0, rest)]) for _ in range(before)]
    script = [*singly, *([("restart", None)] if restarts else []), ("table", [("t", 1, 0, rest)] * 6)]
    assert _run([name], 5, script) == _run([name], None, script)
    kernel = _kernel([name], 5, [])
    for n in range(before):
        kernel.submit("t", [(n, n, *rest)], n)
    _send(kernel, [("t", 20, (n, 20, *rest)) for n in range(6)])
    assert [each.executor for each in kernel.plan()] == [goes]
    assert kernel.snapshot()[0].scalars.get("executor", "rows") == goes
