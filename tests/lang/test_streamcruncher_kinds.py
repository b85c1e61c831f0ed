"""StreamCruncher: a query whose types do not fit is refused when it is registered; values that a select cannot compute
with are told in our words."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollup.core.errors import PlanError, QueryError, RollupError
from rollup.lang.streamcruncher.kernel import Cruncher
from tests.profiles import examples

COLUMNS = {"id": "long", "at": "ts", "k": "str", "i": "int", "d": "double", "b": "bool"}
VALUES = [("a", 3, 2.5, True), (None,) * 4, ("(", 0, 0.0, False), ("x", 2**31 - 1, 1e308, None)]
operand = st.sampled_from([*COLUMNS, "'x'", "3", "0", "2.5", "null"])
expressions = st.one_of(
    st.builds("{} {} {} > {}".format, operand, st.sampled_from("+-*/"), operand, operand),
    st.builds("{} {} {}".format, operand, st.sampled_from(["=", "<>", "<", "and", "or"]), operand),
    st.builds("{} in ({}, {})".format, operand, operand, operand),
    st.builds("cast({} as {}) is null".format, operand, st.sampled_from(["integer", "double", "timestamp"])),
)
places = st.sampled_from(
    [
        "select id from test (partition store last 3 where {}) as s where s.$row_status is new;",
        "select id from test (partition store last 3) as s where s.$row_status is new and {};",
        "select case when {} then 1 else 0 end as x from test (partition store last 3) as s where s.$row_status is dead;",
    ]
)


def _sent(query: str) -> None:
    cruncher = Cruncher()
    cruncher.define("test", COLUMNS, "at")
    cruncher.register(query, lambda batch: None)
    for at, values in enumerate(VALUES * 2):
        cruncher.submit("test", [(at, at, *values)], at)
    cruncher.finish()


@given(places, expressions)
@example("select id from test (partition store last 3) as s where s.$row_status is new and {};", "i + 1 > 0")
@example("select id from test (partition store last 3) as s where s.$row_status is new and {};", "d / 0 > 1")
@examples(12)
def test_what_is_registered_answers_or_says_why_not(place: str, expression: str) -> None:
    with suppress(RollupError):
        _sent(place.format(expression))


def test_a_text_that_is_no_number_is_refused_when_the_query_is_registered() -> None:
    with pytest.raises(PlanError, match="'x'"):
        _sent("select id from test (partition store last 3) as s where s.$row_status is new and d <> 'x';")


def test_a_value_that_is_no_number_is_named() -> None:
    with pytest.raises(QueryError, match="cannot compute: Could not convert string 'a'"):
        _sent("select id from test (partition store last 3) as s where s.$row_status is new and d <> k;")
