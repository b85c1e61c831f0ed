"""EPL: an expression whose types do not fit is refused when it is deployed; one that is deployed has an answer to every event.

Operators, functions and methods over operands of every type, right and wrong ones, at each place where expressions stand.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollup import Engine
from rollup.core.errors import PlanError, RollupError
from rollup.lang.epl.java import NUMBERS, STATIC, TEXTS
from rollup.lang.epl.lowering.values.enumerating import METHODS
from rollup.lang.epl.semantics import AGGREGATING
from tests.profiles import examples

OPERANDS = ["k", "v", "p", "b", "arr", "items", "sub", "d", "null", "'x'", "'('", "3", "2.5", "sub.a", "items[0].b"]
LAMBDAS = ["", "x => x", "x => x.a", "x => x.b", "x => x > 1", "x => x.a, x => x.b", "0, (r, x) => r + x", "x => null"]
operand = st.sampled_from(OPERANDS)
operands = st.lists(operand, max_size=3).map(", ".join)
operator = st.sampled_from(
    ["+", "-", "*", "/", "%", "||", "=", "!=", "<", ">=", "is", "is not", "and", "&", "like", "regexp"]
)
expressions = st.one_of(
    st.builds("{} {} {}".format, operand, operator, operand),
    st.builds("{} between {} and {}".format, operand, operand, operand),
    st.builds("{} {}in ({}, {})".format, operand, st.sampled_from(["", "not "]), operand, operand),
    st.builds("{} {} ({})".format, operand, st.sampled_from(["= any", "> any", "<= all", "!= all"]), operand),
    st.builds("cast({}, {})".format, operand, st.sampled_from(["int", "double", "string", "boolean", "BigDecimal"])),
    st.builds("{}({})".format, st.sampled_from([*AGGREGATING, "coalesce", "prev", "prior"]), operands),
    st.builds("{}(distinct {})".format, st.sampled_from(["count", "sum", "min", "max", "avg"]), operand),
    st.sampled_from([f"{name}.{method}" for name, methods in STATIC.items() for method in methods]).flatmap(
        lambda name: operands.map(lambda given: f"{name}({given})")
    ),
    st.builds("k.{}({})".format, st.sampled_from([*TEXTS]), operands),
    st.builds("{}.{}({})".format, st.sampled_from(["v", "p", "d"]), st.sampled_from([*NUMBERS]), operands),
    st.builds(
        "{}.{}({})".format,
        st.sampled_from(["arr", "items", "{k, 'x'}"]),
        st.sampled_from([*METHODS]),
        st.one_of(operands, st.sampled_from(LAMBDAS)),
    ),
    st.builds("{}[{}]".format, operand, operand),
)
places = st.sampled_from(
    [
        "select {} as x from S#length(2)",
        "select k from S#length(2) where {}",
        "select k from S({})",
        "select count(*) as c from S#length(2) group by {}",
        "select k from S#length_batch(2) order by {}",
        "select k from S#unique({})",
        "select k from S#sort(2, {})",
        "select k from S#ext_timed({}, 3 sec)",
        "select * from pattern [every a=S -> b=S({})]",
        "select a.k as k from S#keepall as a, S#keepall as b where a.arr = b.arr and ({}) is not null",
    ]
)
EVENTS = [
    {"k": "a", "v": 3, "p": 2.5, "b": True, "arr": [1, 2], "items": [{"a": 1, "b": "x"}, {"a": 2}], "sub": {"a": 1}, "d": 2},
    {},
    {"k": "(", "v": 0, "p": 0.0, "b": False, "arr": [], "items": [], "sub": {}, "d": 0},
    {"k": "x", "v": -(2**31), "p": 1e308, "b": True, "arr": [None, 3], "items": [{"b": "y"}], "sub": {"a": 0}, "d": 7},
]  # fmt: skip


def _engine() -> Engine:
    engine = Engine()
    engine.deploy("create schema I(a int, b string)")
    engine.deploy("create schema S(k string, v int, p double, b boolean, arr int[], items I[], sub I, d BigDecimal)")
    return engine


@given(places, expressions)
@example("select {} as x from S#length(2)", "k > all (5, v)")
@example("select {} as x from S#length(2)", "3 % d")
@example("select {} as x from S#length(2)", "stddev(d)")
@example("select {} as x from S#length(2)", "Math.exp(p)")
@example("select {} as x from S#length(2)", "p.intValue()")
@example("select {} as x from S#length(2)", "k regexp k")
@example("select {} as x from S#length(2)", "cast(k, BigDecimal)")
@example("select {} as x from S#length(2)", "arr.takeLast(v)")
@examples(30)
def test_what_is_deployed_answers_every_event(place: str, expression: str) -> None:
    engine = _engine()
    try:
        engine.deploy(place.format(expression), "s")
    except RollupError as refused:
        assert refused.message
        return
    for event in EVENTS:
        with suppress(RollupError):
            engine.send("S", [event])


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("select items.sumOf(x => x.b) as x from S", "needs numbers"),
        ("select items.where(x => x.a) as x from S", "needs a condition"),
        ("select arr.take('a') as x from S", "needs a whole number"),
        ("select arr.where() as x from S", "takes 1 argument"),
        ("select Math.sqrt(k) as x from S", "needs a number"),
        ("select k.contains(v) as x from S", "needs a text"),
        ("select sub < sub as x from S", "has no order"),
        ("select max(items) as x from S#length(2)", "has no order"),
        ("select v & p as x from S", "not a whole number"),
        ("select cast(arr, int) as x from S", "not cast"),
        ("select k from S#length_batch(2) order by sub", "has no order"),
        ("select count(*) as c from S group by items", "not told apart"),
        ("select k from S#unique(items)", "not told apart"),
        ("create context C partition by arr from S", "no key of a partition"),
        ("create table T(items S[] primary key, n int)", "not told apart"),
        ("select * from pattern [every-distinct(a.items) a=S]", "not told apart"),
        ("select k from S#timetolive(k)", "not a time"),
        ("select k from S limit 'a'", "not a whole number"),
        ("select arr[k] as x from S", "not a place"),
        ("select prev(k, v) as x from S#length(2)", "whole number"),
        ("select prev(1, v) as x from S#unique(k)", "one after another"),
        ("select k from S(v > prior(1, v))", "none before it"),
        ("select sum(prev(1, v)) as x from S#length(2)", "what `prev` finds"),
        ("select count() as x from S", "takes what it counts"),
        ("select countever(distinct v) as x from S", "keeps no values"),
    ],
)
def test_a_type_that_does_not_fit_is_named(statement: str, word: str) -> None:
    with pytest.raises(PlanError, match=word) as refused:
        _engine().deploy(statement)
    assert refused.value.line == 1
    assert refused.value.column


NUMBERS_OF = {"int": "2", "long": "2L", "float": "1.5f", "double": "1.5", "BigDecimal": "cast(2, BigDecimal)"}
"""The types of numbers, each wider than those before it, and one of each."""
LOOKED_UP = [
    "{0} = {1}", "{1} > {0}", "{0} != {1}", "{0} is {1}", "{0} in ({1}, {1})", "s = 'x' or {0} <= {1}",
    "s is not null and {0} < {1}", "{0} + {0} >= {1}", "coalesce({0}, {0}) = {1}", "sub.{0} = {1}",
]  # fmt: skip
CONVERTED = ["not ({0} = {1})", "{0} between {1} and {1}", "{0} + vi = {1}", "{0} = any ({1})", "cast({0}, {2}) = {1}"]
FILTERS = [
    "select s from N({})",
    "select s from N where {}",
    "select * from pattern [every a=N -> b=N({})]",
    "select (select count(*) from N({})#length(2)) as n from N",
    "create context C group by {} as x from N",
    "create context C start N as a end N({})",
    "on N({}) set vi = 2",
]
kinds = st.sampled_from([*NUMBERS_OF])


@given(kinds, kinds, st.sampled_from(LOOKED_UP), st.sampled_from(FILTERS))
@examples(30)
def test_a_filter_looks_nothing_up_by_a_wider_number(own: str, other: str, test: str, place: str) -> None:
    order = [*NUMBERS_OF]
    text = place.format(test.format(f"{own}_", NUMBERS_OF[other]))
    assert _takes(text) is (order.index(other) <= order.index(own)), text


@given(kinds, kinds, st.sampled_from(CONVERTED), st.sampled_from(FILTERS))
@examples(20)
def test_what_is_not_looked_up_takes_every_number(own: str, other: str, test: str, place: str) -> None:
    assert _takes(place.format(test.format(f"{own}_", NUMBERS_OF[other], other)))


@pytest.mark.parametrize(
    "place",
    ["select * from pattern [every a=N -> b=N({})]", "create context C start N as a end N({})"],
)
def test_what_an_event_before_had_is_looked_up_too(place: str) -> None:
    assert _takes(place.format("long_ = a.int_ + 1"))
    assert not _takes(place.format("int_ = a.long_ + 1"))


def _takes(text: str) -> bool:
    """Whether a statement is deployed; if it is not, the reason names the types and the cure."""
    engine = Engine()
    columns = ", ".join(f"{kind}_ {kind}" for kind in NUMBERS_OF)
    engine.deploy(f"create schema I({columns})")
    engine.deploy(f"create schema N({columns}, s string, sub I)")
    engine.deploy("create variable int vi = 1")
    try:
        engine.deploy(text)
    except PlanError as refused:
        assert "a filter finds" in refused.message
        assert refused.hint is not None
        assert refused.hint.startswith("cast(")
        return False
    return True


def test_nothing_is_between_null_and_a_value() -> None:
    engine = _engine()
    engine.deploy("select 0 between null and v as inside, 0 not between null and v as outside from S", "s")
    engine.send("S", [{"v": 3}])
    assert [delivery.new for delivery in engine.heard()] == [[{"inside": False, "outside": False}]]
