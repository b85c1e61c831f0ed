"""Expressions compiled to Python against the three-valued tables of SQL, written out here by hand."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from rollup.engine.compiling import compiled
from rollup.engine.expressions import All, Any_, Call, Case, Closure, Coalesce, Const, Expr, Field, Local
from rollup.engine.operators import ADD, DIVIDE_CUT, EQUAL, GREATER, MEMBER, NOT, Operator
from rollup.engine.row import Row
from rollup.engine.types import ANY, BOOL, LONG

A, B = Field(0, 0, BOOL), Field(0, 1, BOOL)
AND = {(True, True): True, (True, None): None, (None, True): None, (None, None): None}
OR = {(False, False): False, (False, None): None, (None, False): None, (None, None): None}


def value(expr: Expr, *fields: Any) -> Any:
    return compiled(expr)((Row(0, fields),), (), None)


@pytest.mark.parametrize("pair", list(product((True, False, None), repeat=2)))
def test_and_and_or_follow_the_tables_of_sql(pair: tuple[Any, Any]) -> None:
    assert value(All((A, B)), *pair) is AND.get(pair, False)
    assert value(Any_((A, B)), *pair) is OR.get(pair, True)
    assert value(Call(NOT, (A,), BOOL), *pair) is {True: False, False: True, None: None}[pair[0]]


def test_what_has_decided_is_not_followed_by_another_evaluation() -> None:
    called = list[int]()
    loud = Call(Operator("loud", lambda: called.append(1)), (), BOOL)
    assert value(All((Const(False, BOOL), loud))) is False and value(Any_((Const(True, BOOL), loud))) is True
    assert value(Case(((Const(True, BOOL), Const(7, LONG)),), loud, LONG)) == 7
    assert value(Coalesce((Const(1, LONG), loud), LONG)) == 1 and not called


def test_a_strict_operator_of_a_null_is_null_and_is_not_called() -> None:
    assert value(Call(ADD, (A, B), LONG), 1, None) is None
    assert value(Call(DIVIDE_CUT, (A, B), LONG), -7, 2) == -3
    assert value(Call(DIVIDE_CUT, (A, B), LONG), 1, 0) is None


def test_in_of_a_list_with_a_null_is_unknown_unless_found() -> None:
    inside = Call(MEMBER, (A, Const(1, LONG), Const(None, LONG)), BOOL)
    assert value(inside, 1) is True and value(inside, 2) is None and value(inside, None) is None


def test_a_field_of_an_absent_row_is_null() -> None:
    assert compiled(Field(1, 0, LONG, optional=True))((Row(0, ()), None), (), None) is None


def test_a_closure_sees_its_parameter_and_what_is_around_it() -> None:
    keep = Operator("keep", lambda values, test: [each for each in values if test(each) is True])
    body = Call(GREATER, (Local("x", LONG), B), BOOL)
    assert value(Call(keep, (A, Closure(("x",), body, BOOL)), ANY), [1, 5, 3, 9], 3) == [5, 9]
    assert value(Call(keep, (A, Closure(("x",), body, BOOL)), ANY), [1, None], 0) == [1]


def test_a_text_with_quotes_is_a_value_and_never_source() -> None:
    assert value(Call(EQUAL, (A, Const('"+exec("1")+"', ANY)), BOOL), '"+exec("1")+"') is True
