"""SiddhiQL: an expression whose types do not fit is refused when the app is made; one that is made answers every event.

Operators, functions and aggregates over operands of every type, right and wrong ones, at each place where expressions stand.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollup.core.errors import RollupError
from rollup.lang.siddhi.statements.app import SiddhiApp
from rollup.lang.siddhi.statements.semantics import AGGREGATES, FUNCTIONS, INSTANCES
from tests.profiles import examples

ATTRIBUTES = "k string, i int, l long, f float, d double, b bool, o object"
DEFINED = f"define stream S ({ATTRIBUTES}); define table T ({ATTRIBUTES});\n"
NAMES = ["k", "i", "l", "f", "d", "b", "o"]
OPERANDS = [*NAMES, "'x'", "'('", "3", "0", "2.5", "2.5f", "10L", "true", "null", "createSet(k)", "eventTimestamp()"]
operand = st.sampled_from(OPERANDS)
operands = st.lists(operand, max_size=3).map(", ".join)
called = [
    *FUNCTIONS,
    *AGGREGATES,
    *INSTANCES,
    "coalesce",
    "default",
    "ifThenElse",
    "eventTimestamp",
    "currentTimeMillis",
]
kind = st.sampled_from(["int", "long", "float", "double", "string", "bool"])
operator = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "and", "or"])
expressions = st.one_of(
    operand,
    st.builds("{} {} {}".format, operand, operator, operand),
    st.builds("{}{}{}".format, st.sampled_from(["", "not ", "-"]), operand, st.sampled_from(["", " is null"])),
    st.builds("{}({}, '{}')".format, st.sampled_from(["cast", "convert"]), operand, kind),
    st.builds("{}({})".format, st.sampled_from(called), operands),
    st.builds("{}({}({}))".format, st.sampled_from(called), st.sampled_from(called), operand),
)
places = st.sampled_from(
    [
        "from S#window.length(2) select {} as x insert into Out;",
        "from S[{}] select k insert into Out;",
        "from S#window.length(2) select k, sum(i) as c group by k having {} insert into Out;",
        "from S#window.length(2) select count() as c group by {} insert into Out;",
        "from S#window.lengthBatch(3) select {} as x order by x insert into Out;",
        "from S#window.sort(2, {}) select k insert all events into Out;",
        "from S#window.frequent(1, {}) select k insert all events into Out;",
        "from S#window.lossyFrequent(0.5, 0.1, {}) select k insert all events into Out;",
        "from S#window.externalTime({}, 1 sec) select k insert all events into Out;",
        'from S#window.expression("{}") select k insert all events into Out;',
        "from every a=S -> b=S[{}] select a.k as k insert into Out;",
        "from S#window.length(3) as q join T as b on {} == b.k select q.k as k2 insert into Out;",
        "from S[({} == T.k) in T] select k insert into Out;",
        "partition with ({} of S) begin from S select k, count() as c insert into Out; end;",
        "from S select k, i, l, f, d, b, o update or insert into T set T.i = {} on T.i == i;",
        "from S select k, i, l, f, d, b, o update or insert into T set T.k = {} on T.k == k;",
        "from S select k, {} as i, l, f, d, b, o insert into T;",
    ]
)
EVENTS = [
    ("a", 3, 4, 1.5, 2.5, True, {"a": 1}),
    (None,) * 7,
    ("(", 0, 0, 0.0, 0.0, False, [1, {}]),
    ("x", -(2**31), 2**63 - 1, 1e30, 1e308, True, "x"),
]


@given(places, expressions)
@example("from S#window.length(2) select {} as x insert into Out;", "str:upper(i)")
@example("from S#window.length(2) select {} as x insert into Out;", "unionSet(o)")
@example("from S#window.length(2) select {} as x insert into Out;", "sizeOfSet(o)")
@example("from S#window.length(2) select {} as x insert into Out;", "cast(o, 'long')")
@example("from S#window.sort(2, {}) select k insert all events into Out;", "eventTimestamp()")
@example("from every a=S -> b=S[{}] select a.k as k insert into Out;", "eventTimestamp() > 1L")
@examples(30)
def test_what_is_made_answers_every_event(place: str, expression: str) -> None:
    try:
        app = SiddhiApp(DEFINED + place.format(expression))
    except RollupError as refused:
        assert refused.message
        assert refused.line is not None
        return
    for at, event in enumerate(EVENTS * 2):
        with suppress(RollupError):
            app.send("S", [event], at * 400)
    app.query("from T select k, i, o;")


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("from S select str:length(i) as x insert into Out;", "takes a string"),
        ("from S select math:sqrt(k) as x insert into Out;", "takes a number"),
        ("from S select o + i as x insert into Out;", "needs numbers"),
        ("from S[o == o] select k insert into Out;", "cannot be compared"),
        ("from S[o] select k insert into Out;", "must be a bool"),
        ("from S select min(o) as x insert into Out;", "has no order"),
        ("from S select distinctCount(o) as x insert into Out;", "not told apart"),
        ("from S select o order by o insert into Out;", "has no order"),
        ("from S#window.sort(2, o) select k insert into Out;", "has no order"),
        ("@PrimaryKey('o') define table U (o object);", "not told apart"),
        ("from S select k update T set T.i = k on T.k == k;", "cannot be set"),
        ("from S select o as k, i, l, f, d, b, o as p insert into T;", "is defined as"),
        ("from S select eventTimestamp(k) as x insert into Out;", "takes an event"),
        ("from S as a join T as b on eventTimestamp() > 3L select a.k as k insert into Out;", "no one event"),
    ],
)
def test_a_type_that_does_not_fit_is_named(query: str, word: str) -> None:
    with pytest.raises(RollupError, match=word) as refused:
        SiddhiApp(DEFINED + query)
    assert refused.value.line == 2
    assert refused.value.column


def test_numbers_that_a_table_is_given_become_those_of_its_column() -> None:
    text = DEFINED + "from S select k, i, l, f, d, b, o update or insert into T set T.i = l, T.f = d on T.k == k;"
    app = SiddhiApp(text)
    for number in (1, 2**40):
        app.send("S", [("a", 0, number, 0.0, 0.1, True, None)])
    assert app.query("from T select i;").column("i").to_pylist() == [None]
