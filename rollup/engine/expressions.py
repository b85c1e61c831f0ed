"""Typed expressions: the one form that every language's conditions and columns are compiled to.

A reader binds names and picks operators by its language's tables, so a tree says everything: there is no language left
in it. It is evaluated over the rows of the inputs (`r`, one row an input), the values that nodes put before (`s`:
aggregates, sub-query answers) and the environment (`e`: the time, variables, look-ups). `compiling.py` makes Python of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rollup.core.descriptions import exchanged
from rollup.engine.operators import Operator
from rollup.engine.types import BOOL, LONG, DataType, RowType


@dataclass(frozen=True)
class Const:
    """A value that the text of the query says."""

    value: Any
    type: DataType


@dataclass(frozen=True)
class Field:
    """A field of the row of an input. `optional`: the row may be absent (outer joins, tags of patterns), then null."""

    input: int
    index: int
    type: DataType
    optional: bool = False


@dataclass(frozen=True)
class RowOf:
    """The row of an input as a value."""

    input: int
    type: DataType


@dataclass(frozen=True)
class Slot:
    """What a node computed before the expression is evaluated: an aggregate's value, prev, a sub-query's answer."""

    index: int
    type: DataType


@dataclass(frozen=True)
class Variable:
    """A variable of the engine, by name, as it is when the expression is evaluated."""

    name: str
    type: DataType


@dataclass(frozen=True)
class Now:
    """The engine's time."""

    type: DataType = LONG


@dataclass(frozen=True)
class Ask:
    """A look-up that is made when the expression is evaluated: `e.ask[index](r, s, e)`; sub-queries and tables."""

    index: int
    type: DataType


@dataclass(frozen=True)
class Call:
    """An operator or function applied to its arguments."""

    op: Operator
    args: tuple[Expr, ...]
    type: DataType


@dataclass(frozen=True)
class All:
    """`and` of SQL: false if one is false, else unknown if one is unknown. Later ones are not evaluated after a false."""

    args: tuple[Expr, ...]
    type: DataType = BOOL


@dataclass(frozen=True)
class Any_:
    """`or` of SQL: true if one is true, else unknown if one is unknown. Later ones are not evaluated after a true."""

    args: tuple[Expr, ...]
    type: DataType = BOOL


@dataclass(frozen=True)
class Case:
    """The value of the first branch whose condition is true; otherwise `otherwise`."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr
    type: DataType


@dataclass(frozen=True)
class Coalesce:
    """The first value that is not null; later ones are not evaluated."""

    args: tuple[Expr, ...]
    type: DataType


@dataclass(frozen=True)
class Local:
    """A parameter of the enclosing `Closure`."""

    name: str
    type: DataType


@dataclass(frozen=True)
class Closure:
    """A function of its parameters, for operators that take one (`where(x => …)`). Names are generated, never a user's."""

    parameters: tuple[str, ...]
    body: Expr
    type: DataType


_LEAVES = (DataType, RowType, Operator)
Expr = Const | Field | RowOf | Slot | Variable | Now | Ask | Call | All | Any_ | Case | Coalesce | Local | Closure


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside one."""
    match expr:
        case Call() | All() | Any_() | Coalesce():
            return expr.args
        case Case():
            return (*(part for branch in expr.branches for part in branch), expr.otherwise)
        case Closure():
            return (expr.body,)
        case _:
            return ()


def inside(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """An expression with each of its direct parts changed."""
    match expr:
        case Call() | All() | Any_() | Coalesce():
            return replace(expr, args=tuple(change(arg) for arg in expr.args))
        case Case():
            branches = tuple((change(condition), change(value)) for condition, value in expr.branches)
            return replace(expr, branches=branches, otherwise=change(expr.otherwise))
        case Closure():
            return replace(expr, body=change(expr.body))
        case _:
            return expr


def walk(expr: Expr) -> Iterator[Expr]:
    """An expression and everything inside it, outermost first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def constant(call: Call) -> bool:
    """Whether a call is of constants alone, so that it is worked out once."""
    return all(isinstance(arg, Const) for arg in call.args)


def lasting(exprs: Iterable[Expr]) -> bool:
    """Whether the values of expressions hang on rows alone: not on the time, on variables, nor on look-ups."""
    return not any(isinstance(each, Ask | Now | Variable) for expr in exprs for each in walk(expr))


def with_values(tree: Any, values: Mapping[str, Any]) -> Any:
    """A plan, or whatever else holds expressions, in which some variables are the constants that they are worth."""

    def worth(each: Any) -> Any:
        known = isinstance(each, Variable) and each.name in values
        return Const(values[each.name], each.type) if known else each

    return exchanged(tree, worth, _LEAVES) if values else tree


def with_time(tree: Any, time: Expr) -> Any:
    """The same in which an expression stands for the engine's time."""
    return exchanged(tree, lambda each: time if isinstance(each, Now) else each, _LEAVES)


def unchanging(expr: Expr) -> bool:
    """Whether an expression of the same rows has the same value whenever it is asked for, and as often as it is."""
    return lasting([expr]) and all(each.op.pure for each in walk(expr) if isinstance(each, Call))


def inputs_read(exprs: Iterable[Expr | None]) -> set[int]:
    """The inputs whose rows expressions read."""
    inside = (each for expr in exprs if expr is not None for each in walk(expr))
    return {each.input for each in inside if isinstance(each, Field | RowOf)}
