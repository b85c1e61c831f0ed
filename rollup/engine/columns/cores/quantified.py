"""A comparison with all or any of some values as one with the least or greatest of them.

Null compares with nothing, NaN is never less or greater than anything; of no values `all` holds and `any` does not.
"""

from __future__ import annotations

from rollup.engine import operators as op
from rollup.engine.aggregates.known import COUNT, MAX, MIN
from rollup.engine.expressions import All, Call, Case, Const, Expr, Field
from rollup.engine.folding import AggregateCall
from rollup.engine.operators import Operator
from rollup.engine.quantifiers import Quantifier
from rollup.engine.types import BOOL, LONG, NULL, Kind

_SIGNS = {"<": op.LESS, "<=": op.LESS_EQUAL, ">": op.GREATER, ">=": op.GREATER_EQUAL}
_NOTHING, _ONE, _UNKNOWN = Const(0, LONG), Const(1, LONG), Const(None, NULL)


def compared(quantifier: Quantifier, value: Expr, of: Expr, at: int) -> tuple[tuple[AggregateCall, ...], Expr]:
    """The aggregates of the values `of` that a comparison needs, and it with their answers, which are fields from `at` on: how
    many rows there are, how many values, how many numbers among these, and the one that decides.
    """
    less = quantifier.sign in ("<", "<=")
    number = _number(of)
    decides = AggregateCall(MIN if less is quantifier.every else MAX, (number,))
    counts = (AggregateCall(COUNT), AggregateCall(COUNT, (of,)), AggregateCall(COUNT, (number,)))
    rows, known, numbers = (Field(0, at + place, LONG) for place in range(3))
    one = _asked(_SIGNS[quantifier.sign], value, Field(0, at + 3, decides.type))
    there = _asked(op.NOT_NULL, value)
    branches: list[tuple[Expr, Expr]] = [(_asked(op.EQUAL, rows, _NOTHING), Const(quantifier.every, BOOL))]
    if quantifier.every:
        branches.append((All((there, _asked(op.LESS, numbers, known))), Const(False, BOOL)))
        branches.append((_asked(op.NOT, one), Const(False, BOOL)))
        branches.append((_asked(op.LESS, known, rows), _UNKNOWN))
    else:
        alone = All((there, _asked(op.EQUAL, numbers, _NOTHING), _asked(op.GREATER_EQUAL, known, _ONE)))
        branches.append((alone, Const(False, BOOL)))
    return (*counts, decides), Case(tuple(branches), one, BOOL)


def _asked(operator: Operator, *args: Expr) -> Call:
    return Call(operator, args, BOOL)


def _number(of: Expr) -> Expr:
    """The value where it is a number, null for NaN."""
    if of.type.kind is not Kind.DOUBLE:
        return of
    return Case(((Call(op.EQUAL, (of, of), BOOL), of),), _UNKNOWN, of.type)
