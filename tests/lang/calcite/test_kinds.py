"""Calcite SQL: a query whose types do not fit is refused when it is prepared, in our words; one that is prepared has an
answer to every row.

Operators, functions and aggregates over operands of every type, right and wrong ones, at each place where they stand.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollup.core.errors import RollupError
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.session import Session
from tests.profiles import examples

COLUMNS = {"rowtime": "TIMESTAMP", "k": "VARCHAR", "i": "INTEGER", "d": "DOUBLE", "b": "BOOLEAN", "n": "DECIMAL(10,2)", "dt": "DATE", "tm": "TIME"}  # fmt: skip
OPERANDS = [
    *COLUMNS,
    "'x'",
    "3",
    "0",
    "2.5",
    "TRUE",
    "NULL",
    "INTERVAL '1' HOUR",
    "INTERVAL '1' MONTH",
    "CURRENT_TIMESTAMP",
]
SCALARS = "ABS SQRT LN POWER MOD FLOOR CEIL UPPER TRIM CHAR_LENGTH SUBSTRING COALESCE NULLIF YEAR INITCAP REPLACE TIMESTAMPADD"
FOLDING = "SUM COUNT AVG MIN MAX STDDEV_POP LISTAGG EVERY SOME BIT_AND COVAR_POP ANY_VALUE"
operand = st.sampled_from(OPERANDS)
operands = st.lists(operand, max_size=3).map(", ".join)
operator = st.sampled_from(["+", "-", "*", "/", "||", "=", "<", "AND", "OR", "LIKE", "SIMILAR TO"])
kind = st.sampled_from(["INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN", "TIMESTAMP", "DATE", "TIME", "DECIMAL(4,1)"])
unit = st.sampled_from(["HOUR", "MONTH", "NOPE"])
expressions = st.one_of(
    st.builds("{} {} {}".format, operand, operator, operand),
    st.builds("{}({})".format, st.sampled_from(SCALARS.split()), operands),
    st.builds("CAST({} AS {})".format, operand, kind),
    st.builds("{} BETWEEN {} AND {}".format, operand, operand, operand),
    st.builds("{} IN ({}, {})".format, operand, operand, operand),
    st.builds("CASE WHEN {} THEN {} ELSE {} END".format, operand, operand, operand),
    st.builds("FLOOR({} TO {})".format, operand, unit),
)
aggregates = st.builds(
    "{}({}{})".format, st.sampled_from(FOLDING.split()), st.sampled_from(["", "DISTINCT "]), operands
)
of_values = st.sampled_from(
    [
        "SELECT STREAM {} AS x FROM S",
        "SELECT STREAM k FROM S WHERE {}",
        "SELECT STREAM COUNT(*) AS x FROM S GROUP BY TUMBLE(rowtime, INTERVAL '1' HOUR), {}",
        "SELECT STREAM k FROM S ORDER BY rowtime, {}",
        "SELECT k FROM T ORDER BY {} LIMIT 2",
        "DELETE FROM T WHERE {}",
        "UPDATE T SET k = {}",
    ]
)
of_rows = st.sampled_from(
    [
        "SELECT STREAM {} AS x FROM S GROUP BY TUMBLE(rowtime, INTERVAL '1' HOUR)",
        "SELECT STREAM rowtime, {} OVER (PARTITION BY k ORDER BY rowtime ROWS 2 PRECEDING) AS x FROM S",
        "SELECT k, {} AS x FROM T GROUP BY k",
    ]
)
queries = st.one_of(st.builds(str.format, of_values, expressions), st.builds(str.format, of_rows, aggregates))
VALUES = [("a", 3, 2.5, True, "1.25", "2020-01-01", "10:00:00"), (None,) * 7, ("%", -(2**31), 1e308, False, "-9", "0001-01-01", "00:00:00")]  # fmt: skip
ROWS = [[datetime(2020, 1, 1) + timedelta(minutes=40 * place), *values] for place, values in enumerate(VALUES)]
MODEL = Model.of(
    {"tables": {"S": {"columns": COLUMNS, "monotonic": {"rowtime": "increasing"}, "kind": "stream"}, "T": {"columns": COLUMNS}}}
)  # fmt: skip


def _loaded() -> Session:
    made = Session(MODEL)
    made.load("T", ROWS)
    return made


@pytest.fixture(scope="module")
def session() -> Session:
    return _loaded()


@given(queries)
@example("SELECT STREAM k FROM S LIMIT 2.5")
@example("SELECT STREAM k FROM S ORDER BY rowtime, NULL || NULL")
@example("SELECT STREAM COUNT() AS x FROM S GROUP BY TUMBLE(rowtime, INTERVAL '1' HOUR)")
@example("SELECT STREAM k FROM S WHERE CAST(k AS INTEGER) = i")  # what only a row's value tells
@example("SELECT STREAM CASE WHEN i > 2 THEN 'x' ELSE 3 END AS x FROM S")
@examples(15)
def test_what_is_prepared_answers_every_row(session: Session, query: str) -> None:
    try:
        answer = session.prepare(query)
    except RollupError as refused:
        assert refused.message
        assert refused.line is not None
        return
    with suppress(RollupError):
        if answer.relational is not None:
            session.ask(answer)
        elif answer.standing is not None:
            arrived = {"S": session.arrivals("S", ROWS, range(len(ROWS)), ended=True)}
            answer.standing.step(answer.standing.start(), arrived, session.engine)


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("SELECT STREAM EVERY() AS x FROM S", "lacks an argument"),
        ("SELECT STREAM FLOOR() AS x FROM S", "lacks an argument"),
        ("SELECT SUM(DISTINCT) AS x FROM T", "lacks an argument"),
        ("SELECT TIMESTAMPADD(tm) AS x FROM T", "takes a unit"),
        ("SELECT STREAM k FROM S LIMIT 2.5", "whole number"),
        ("DELETE FROM T WHERE ATAN2(n, TRUE)", "atan2"),
        ("UPDATE T SET i = CAST(INTERVAL '1' HOUR AS INTEGER)", "INTERVAL"),
        ("UPDATE T SET i = i / 0", "zero"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(query: str, word: str) -> None:
    with pytest.raises(RollupError, match=word) as refused:
        _loaded().prepare(query)
    assert refused.value.line == 1


def test_a_change_computes_as_a_query_does() -> None:
    session = Session(MODEL)
    session.load("T", ROWS[:1])
    session.prepare("UPDATE T SET rowtime = FLOOR(rowtime TO YEAR), i = i / 2")
    found = session.ask(session.prepare("SELECT rowtime, i FROM T")).to_pylist()
    assert [tuple(row.values()) for row in found] == [(datetime(2020, 1, 1), 1)]
