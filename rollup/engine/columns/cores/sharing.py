"""Several expressions over the same columns: a part that is in them more than once is computed once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from rollup.engine.columns.evaluate import Columns, evaluate
from rollup.engine.expressions import (
    All,
    Any_,
    Call,
    Case,
    Coalesce,
    Const,
    Expr,
    Field,
    children,
    constant,
    inside,
    walk,
)
from rollup.engine.types import Kind

_KINDS = (Kind.DOUBLE, Kind.BOOL)
"""Of whole numbers it matters where they stand: what is around them says what becomes of one that is too great."""


@dataclass(frozen=True)
class Steps:
    """Expressions, each of which may read the `parts` before it as further columns, and the `results`."""

    parts: tuple[Expr, ...]
    results: tuple[Expr, ...]

    def values(self, columns: Columns, rows: int) -> tuple[pa.Array, ...]:
        """The values of the results."""
        known = list(columns) if self.parts else columns
        for part in self.parts:
            known = [*known, evaluate(part, known, rows)]
        return tuple(evaluate(each, known, rows) for each in self.results)


def evaluated(exprs: tuple[Expr, ...], columns: Columns, rows: int) -> tuple[pa.Array, ...]:
    """The values of several expressions.

    >>> from rollup.engine import operators as op
    >>> from rollup.engine.types import DOUBLE
    >>> x = Field(0, 0, DOUBLE)
    >>> square = Call(op.MULTIPLY, (x, x), DOUBLE)
    >>> [each.to_pylist() for each in evaluated((square, Call(op.ADD, (square, x), DOUBLE)), [pa.array([3.0])], 1)]
    [[9.0], [12.0]]
    """
    return _steps(_These(exprs), len(columns)).values(columns, rows)


class _These:
    """Expressions as a key: to compare them each time would take longer than to compute many of them."""

    def __init__(self, exprs: tuple[Expr, ...]) -> None:
        self.exprs = exprs

    def __hash__(self) -> int:
        return id(self.exprs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _These) and self.exprs is other.exprs


@lru_cache(maxsize=1024)
def _steps(these: _These, width: int) -> Steps:
    """The steps that compute some expressions over so many columns."""
    parts, places = list[Expr](), dict[Expr, Expr]()
    try:
        uses = _uses(these.exprs)
    except TypeError:  # a constant that is a list has no hash
        return Steps((), these.exprs)

    def read(expr: Expr) -> Expr:
        if not isinstance(expr, Call | Case | Coalesce | All | Any_):
            return expr
        if uses[expr] < 2 or not _may_share(expr):
            return inside(expr, read)
        if expr not in places:
            parts.append(inside(expr, read))
            places[expr] = Field(0, width + len(parts) - 1, expr.type)
        return places[expr]

    results = tuple(map(read, these.exprs))
    return Steps(tuple(parts), results)


def _uses(exprs: Iterable[Expr]) -> Counter[Expr]:
    """In how many places each part is, of those in the same part one."""
    uses = Counter[Expr]()

    def count(expr: Expr) -> None:
        uses[expr] += 1
        if uses[expr] == 1:
            for child in children(expr):
                count(child)

    for expr in exprs:
        count(expr)
    return uses


def _may_share(expr: Expr) -> bool:
    """Whether what is computed of a part apart is what it is in its place; -0.0 is not 0.0, though they are equal."""
    if expr.type.kind not in _KINDS or (isinstance(expr, Call) and constant(expr)):
        return False
    return not any(_apart(each) for each in walk(expr))


def _apart(expr: Expr) -> bool:
    """Whether a part is another one wherever it stands."""
    if isinstance(expr, Const):
        return expr.value == 0 and math.copysign(1, expr.value) < 0
    return isinstance(expr, Call) and not expr.op.pure
