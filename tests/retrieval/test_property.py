"""Random events, batch cuts, ranges and levels against a group-by over the raw events.

Under the policy `correct` every event is admitted to its own bucket, so that group-by is the whole truth: an event that
is lost, counted twice, or put on the wrong side of a range's end shows here first.
"""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rollup.core.calendar import Duration
from rollup.hosts.local import LocalHost
from rollup.lang.siddhi.apps import parse_query
from rollup.program import compile_app
from rollup.retrieval.questions import plan
from tests.profiles import examples
from tests.retrieval.trades import DAY, HOUR, SECOND, START, Event, app, grouped

PROGRAM = compile_app(app("correct"))
STEPS = (1, SECOND, 60 * SECOND, HOUR, DAY, 31 * DAY)
times = st.builds(
    lambda n, step, off: START + n * step + off,
    st.integers(-3, 3),
    st.sampled_from(STEPS),
    st.sampled_from((0, 1, 999, 59_999)),
)
events = st.lists(st.tuples(st.sampled_from(("a", "b", None)), st.integers(-9, 9), times), min_size=1, max_size=14)


def cut(rows: list[Event], sizes: list[int]) -> list[list[Event]]:
    """The events in batches of the sizes drawn; what is left is the last one."""
    batches, at = list[list[Event]](), 0
    for size in sizes:
        batches.append(rows[at : at + size])
        at += size
    return [batch for batch in [*batches, rows[at:]] if batch]


@examples(18)
@given(
    events,
    st.lists(st.integers(1, 5), max_size=4),
    times,
    st.integers(1, 40 * DAY),
    st.sampled_from([*Duration, "auto"]),
)
def test_an_answer_is_the_group_by_over_the_raw_events(
    rows: list[Event], sizes: list[int], start: int, width: int, per: Duration | str
) -> None:
    host = LocalHost(PROGRAM)
    for batch in cut(rows, sizes):
        host.send("S", batch)
    word = per if isinstance(per, str) else per.plural
    text = f"from A within {start}L, {start + width}L per '{word}' select AGG_TIMESTAMP, AGG_PER, k, total, n"
    ask = plan(parse_query(text), host.program.aggregations)
    found = {
        (row["AGG_TIMESTAMP"], row["k"], row["AGG_PER"]): (row["total"], row["n"]) for row in host.ask(ask).to_pylist()
    }
    expected = {
        (bucket, key, level.plural): values
        for level in ask.relations.values()
        for low, high in ask.ranges(level)
        for (bucket, key), values in grouped(rows, level, low, high).items()
    }
    assert found == expected
    if per == "auto":
        covered = sorted(both for level in ask.relations.values() for both in ask.ranges(level))
        assert covered[0][0] == start and covered[-1][1] == start + width
        assert all(before[1] == after[0] for before, after in itertools.pairwise(covered))


constants = st.one_of(
    st.integers(-3, 9).map(str),
    st.integers(-(2**63), 2**63 - 1).map(lambda n: f"{n}L"),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda x: f"{x!r}"),
    st.text(st.characters(blacklist_characters="'\0", blacklist_categories=("Cs",)), max_size=5).map(
        lambda t: f"'{t}'"
    ),
    st.sampled_from(("true", "false", "null", "cast(1, 'int')", "-(1)", "(2)")),
)


@examples(12)
@given(constants, constants)
def test_a_constant_in_any_clause_is_a_value_and_no_number_of_a_column(one: str, other: str) -> None:
    host = LocalHost(PROGRAM)
    host.send("S", [("a", 3, START), ("b", 9, START), ("c", 1, START)])
    asked = "from A within '2018-01-01 **:**:**' per 'hours' select"
    ordered = f"{asked} k, total, {one} as c, {other} as d order by c, {other}, d desc, {one} desc, total desc limit 2"
    assert [row["k"] for row in host.query(ordered).to_pylist()] == ["b", "a"]
    grouped = host.query(f"{asked} sum(total) as s, {one} as c group by {one}, {other} order by {one}, c").to_pylist()
    assert [row["s"] for row in grouped] == [13]
    if "null" not in one:
        keyed = LocalHost(compile_app(app().replace("group by k", f"group by k, {one}").replace("k, sum", "sum")))
        keyed.send("S", [("a", 3, START), ("a", 4, START), ("b", 5, START)])
        assert keyed.query(f"{asked} total order by total").to_pylist() == [{"total": 5}, {"total": 7}]
