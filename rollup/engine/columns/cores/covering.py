"""What can be computed over columns with the very values of the row executor: expressions, and statements in general."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rollup.engine import decimals
from rollup.engine import operators as op
from rollup.engine.columns.evaluate import takes
from rollup.engine.compiling import compiled
from rollup.engine.expressions import (
    All,
    Any_,
    Call,
    Case,
    Coalesce,
    Const,
    Expr,
    Field,
    Slot,
    Variable,
    children,
    constant,
)
from rollup.engine.operators import Operator
from rollup.engine.rows.plans import Filter, Select
from rollup.engine.types import DataType, Kind, RowType

_COLUMNS = (Kind.BOOL, Kind.INT, Kind.LONG, Kind.DOUBLE, Kind.STRING, Kind.TIMESTAMP, Kind.DURATION)
_CARRIED = (*_COLUMNS, Kind.FLOAT)
"""What a column holds as the row executor does; of floats nothing is computed that would have to be rounded to one."""
_WHOLE = (Kind.INT, Kind.LONG, Kind.TIMESTAMP, Kind.DURATION)
KEYS = (Kind.STRING, Kind.INT, Kind.LONG, Kind.BOOL)
_LONGEST = 2**62
"""The longest span, in ms, that loops add to instants: these are far below as much, so that the sum fits into 64 bits."""
_COMPARED = {each.name for each in (op.EQUAL, op.UNEQUAL, op.LESS, op.LESS_EQUAL, op.GREATER, op.GREATER_EQUAL)}
_SAMENESS = {op.EQUAL.name, op.UNEQUAL.name}
_ASKED = {each.name for each in (op.IS_NULL, op.NOT_NULL, op.TO_DOUBLE)}
_ARITHMETIC = {each.name for each in (op.ADD, op.SUBTRACT, op.MULTIPLY, op.NEGATE)}
_WRAPPING = {each.name for each in op.WRAPPING.values()}
_OTHERWISE = {each.name for each in (op.DIVIDE_CUT, op.DIVIDE_NULL, decimals.DIVIDE)}
"""Divisions that Arrow makes at the ends of 64 bits otherwise than Python."""
_INT = -op.INT_MIN
_MIXED = {op.REMAINDER.name}
"""What gives a double whatever else than a double it gets."""


def against(expr: Expr | None) -> str | None:
    """The first reason why an expression cannot be computed over columns; None when it can."""
    if expr is None:
        return None
    match expr:
        case Field() | Slot() | Const() | Variable():
            known = expr.type.kind in _CARRIED and not _null(expr)
            return None if known else f"a value of type {expr.type}"
        case All() | Any_():
            return first(map(against, children(expr)))
        case Case() | Coalesce() if _floats(children(expr)):
            return "a choice among floats"
        case Case() | Coalesce() if expr.type.kind in (Kind.LIST, Kind.ROW):
            return f"a choice among values of type {expr.type}"
        case Coalesce():
            return first(map(against, children(expr)))
        case Case():
            return first(against(child) for child in children(expr) if not _null(child))
        case Call(op=Operator(field=int()), args=(Slot(),)):  # of a row that is found
            return against(Slot(0, expr.type))
        case Call() if constant(expr):
            return _constants(expr)
        case Call():
            known = [arg for arg in expr.args if takes(expr.op) or not _null(arg)]
            return _operator(expr) or first(map(against, known))
        case _:
            return f"{type(expr).__name__.lower()} in an expression"


def unshown(expr: Expr) -> str | None:
    """The first reason why a column of the result cannot be one: beside values it may be a row, or a list that loops walk through,
    of values and rows.
    """
    match expr:
        case Call(op=op.ROW, args=args):
            return first(unshown(each) or wide(each) for each in args) if args else "rows without columns"
        case Slot(type=DataType(row=RowType())):
            return _row(expr.type)
        case Slot(type=DataType(element=DataType(row=row) as element)):
            return _row(element) if row is not None else against(Slot(0, element))
        case _:
            return against(expr)


def makes_lists(expr: Expr) -> bool:
    """Whether an expression makes lists whose elements are its own."""
    return expr.type.kind is Kind.LIST


def _row(kind: DataType | None) -> str | None:
    """The first reason against rows of a type where they are shown; of values there is none."""
    row = None if kind is None else kind.row
    if row is None:
        return None
    return first(against(Slot(0, each)) for each in row.fields.values()) if row.fields else "rows without columns"


def too_long(span: int) -> str | None:
    """Against a span of so many ms, where loops add it to instants."""
    return "a span of more than 62 bits" if span > _LONGEST else None


def wide(expr: Expr | None) -> str | None:
    """Against an expression where a whole number must fit into what its type says: arithmetic may go beyond."""
    found = expr is not None and expr.type.kind is Kind.INT and _reach(expr) > _INT
    return "arithmetic of whole numbers, which may leave their type" if found else None


def _reach(expr: Expr) -> int:
    """How far from zero an expression of 32-bit numbers may be: those of the row executor do not wrap."""
    match expr:
        case Const():
            return abs(expr.value) if isinstance(expr.value, int) else _INT
        case Slot():
            return op.EXACT  # a sum is wider than its arguments
        case Call() if expr.op.name in (op.MULTIPLY.name, op.WRAPPING["*"].name):
            return math.prod(map(_reach, expr.args))
        case Call() if expr.op.name in _ARITHMETIC | _WRAPPING:
            return sum(map(_reach, expr.args))
        case Case() | Coalesce():
            return max(_reach(child) for child in children(expr) if child.type.kind is Kind.INT)
        case _:
            return _INT


def _null(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value is None


def _constants(call: Call) -> str | None:
    """Against an expression of constants: its value must be one of its type."""
    value: Any = compiled(call)((), (), None)
    ends = {Kind.INT: (op.INT_MIN, op.INT_MAX), Kind.LONG: (op.LONG_MIN, op.LONG_MAX)}.get(call.type.kind)
    fits = call.type.kind in _COLUMNS and value is not None and (ends is None or ends[0] <= value <= ends[1])
    return None if fits else "an expression of constants"


def first(reasons: Iterable[str | None]) -> str | None:
    """The first reason among some."""
    return next((reason for reason in reasons if reason is not None), None)


def _operator(call: Call) -> str | None:
    name, kinds = call.op.name, [arg.type for arg in call.args]
    if name in _COMPARED:
        return None if _comparable(call.args, name in _SAMENESS) else f"{name} between {' and '.join(map(str, kinds))}"
    if name in _ARITHMETIC:
        whole = {kind.kind for kind in kinds} == {Kind.INT} and _reach(call) <= op.LONG_MAX
        return None if whole or _doubles(kinds) else f"{name} of whole numbers"  # the row executor's do not wrap
    if name in _WRAPPING:
        return None
    if _floats(call.args) and takes(call.op) and name not in _ASKED:
        return f"{name} of floats"
    return None if takes(call.op) or _total(call) else f"the operator {name}"


def _floats(found: Iterable[Expr]) -> bool:
    return any(each.type.kind is Kind.FLOAT for each in found)


def _total(call: Call) -> bool:
    """Whether an operator may be called for each row: what it gives is of its type, and nothing else changes it."""
    kinds, name = {arg.type.kind for arg in call.args}, call.op.name
    double = kinds <= {Kind.DOUBLE, Kind.STRING} or (name in _MIXED and Kind.DOUBLE in kinds)
    found = call.type.kind in _COLUMNS and (call.type.kind is not Kind.DOUBLE or double)
    return found and call.op.pure and name not in _OTHERWISE


def _comparable(sides: Sequence[Expr], sameness: bool) -> bool:
    one, other = (side.type.kind for side in sides)
    if one is Kind.BOOL or other is Kind.BOOL:
        return one is other and sameness
    if one is Kind.STRING or other is Kind.STRING:
        return one is other
    if one in _WHOLE and other in _WHOLE:
        return True
    numbers = (Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE)
    # Arrow compares whole numbers with doubles as doubles, Python exactly.
    return one in numbers and other in numbers and (any(map(_small, sides)) or not any(map(_inexact, sides)))


def _small(side: Expr) -> bool:
    """Whether a literal is so near zero that each whole number beyond it is that as a double, too."""
    return isinstance(side, Const) and isinstance(side.value, float) and abs(side.value) < op.EXACT


def _inexact(side: Expr) -> bool:
    """Whether a whole number may be one that no double is."""
    return side.type.kind is Kind.LONG or (side.type.kind is Kind.INT and _reach(side) > op.EXACT)


def _doubles(kinds: list[DataType]) -> bool:
    numbers = {kind.kind for kind in kinds}
    return Kind.DOUBLE in numbers and numbers <= {Kind.DOUBLE, Kind.FLOAT, Kind.INT, Kind.LONG}


def equated(one: Expr, other: Expr) -> bool:
    """Whether a hash can tell that two expressions, each over its own event, are equal."""
    if any(against(each) or wide(each) for each in (one, other)):
        return False
    kinds, whole_numbers = (one.type.kind, other.type.kind), (Kind.INT, Kind.LONG)
    known = kinds[0] in (*KEYS, Kind.DOUBLE)
    return known and (kinds[0] is kinds[1] or all(kind in whole_numbers for kind in kinds))


def filtered(filter: Filter, where: Expr | None = None) -> str | None:
    """The first reason against a filter."""
    equals = (_constant(value) for _, value in filter.equals)
    return first((*equals, against(filter.test), against(where)))


def _constant(value: Expr) -> str | None:
    if not isinstance(value, Const):
        return "a filter with a value that is not a literal"
    known = value.value is not None and value.type.kind in (Kind.STRING, Kind.INT, Kind.LONG)
    return None if known else f"equality with a {value.type}"


def general(plan: Select) -> str | None:
    """The first reason against where the rows of a statement go."""
    return "into table" if plan.into is not None else None
