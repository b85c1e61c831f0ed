"""Expressions: values, operators, calls, sub-queries, and what may stand as an argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rollup.lang.epl.tree.node import Node

if TYPE_CHECKING:
    from rollup.lang.epl.tree.statements import Query

LiteralKind = Literal["int", "long", "float", "double", "string", "boolean", "null"]
Unit = Literal["year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"]


@dataclass(frozen=True)
class Expression(Node):
    """Base of what has a value."""


@dataclass(frozen=True)
class Constant(Expression):
    """A value written down."""

    value: int | float | str | bool | None
    kind: LiteralKind


@dataclass(frozen=True)
class Parameter(Expression):
    """`?`, `?:name` or `?:name:type`: a value that comes with the request."""

    name: str | None = None
    type: str | None = None


@dataclass(frozen=True)
class Reference(Expression):
    """A name: a property, stream, tag, variable, table or declared expression, as the scope says."""

    name: str


@dataclass(frozen=True)
class Member(Expression):
    """`of.name`: a property of a stream or of a value, or a column of a table's row."""

    of: Expression
    name: str


@dataclass(frozen=True)
class Index(Expression):
    """`of[keys]`: an element of an array, or the row of a table."""

    of: Expression
    keys: tuple[Expression, ...]


@dataclass(frozen=True)
class Call(Expression):
    """`name(arguments)`; with `of`, a method: `of.name(arguments)`."""

    name: str
    arguments: tuple[Expression, ...] = ()
    of: Expression | None = None
    distinct: bool = False


@dataclass(frozen=True)
class Sign(Expression):
    """`-x`."""

    operand: Expression


@dataclass(frozen=True)
class Arithmetic(Expression):
    """`left op right`: + - * / %, the bits & | ^, and || for texts."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Comparison(Expression):
    """`left op right`: = != < <= > >= is `is not`; the last two take null as a value."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Logical(Expression):
    """`a and b`, `a or b`."""

    operator: Literal["and", "or"]
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Not(Expression):
    """`not x`."""

    operand: Expression


@dataclass(frozen=True)
class In(Expression):
    """`value in (items)`."""

    value: Expression
    items: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True)
class InQuery(Expression):
    """`value in (select …)`."""

    value: Expression
    query: Query
    negated: bool = False


@dataclass(frozen=True)
class Between(Expression):
    """`value between low and high`; `in [low:high)` says of each end whether it belongs."""

    value: Expression
    low: Expression
    high: Expression
    negated: bool = False
    low_closed: bool = True
    high_closed: bool = True


@dataclass(frozen=True)
class Like(Expression):
    """`value like pattern escape …`; `regexp` takes a regular expression."""

    value: Expression
    pattern: Expression
    escape: Expression | None = None
    regexp: bool = False
    negated: bool = False


@dataclass(frozen=True)
class Quantified(Expression):
    """`left > any (a, b)`, `left = all (select …)`."""

    operator: str
    left: Expression
    every: bool
    items: tuple[Expression, ...] | Query


@dataclass(frozen=True)
class Case(Expression):
    """`case [operand] when … then … else … end`."""

    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True)
class ExistsValue(Expression):
    """`exists(a.b)`: whether there is such a property."""

    value: Expression


@dataclass(frozen=True)
class Exists(Expression):
    """`exists (select …)`."""

    query: Query


@dataclass(frozen=True)
class Subquery(Expression):
    """`(select …)` as a value."""

    query: Query


@dataclass(frozen=True)
class New(Expression):
    """`new {a = 1, b}`: a row."""

    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Array(Expression):
    """`{a, b}`."""

    items: tuple[Expression, ...]


# What stands only among arguments.


@dataclass(frozen=True)
class Star(Expression):
    """`*`: the whole event."""


@dataclass(frozen=True)
class StreamStar(Expression):
    """`a.*`: the whole event of one stream."""

    stream: str


@dataclass(frozen=True)
class Sorted(Expression):
    """`x desc` among the criteria of a sort."""

    value: Expression
    descending: bool


@dataclass(frozen=True)
class Named(Expression):
    """`group_by: a` or `filter: x > 1`; several values in parentheses are a Group."""

    name: str
    value: Expression


@dataclass(frozen=True)
class Group(Expression):
    """`()` or `(a, b)` behind a named argument."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Lambda(Expression):
    """`x => x.price > 1`."""

    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True)
class Period(Expression):
    """`1 minute 30 sec`: pairs of quantity and unit."""

    parts: tuple[tuple[Expression, Unit], ...]


# The fields of a crontab; a plain number or name is an expression.


@dataclass(frozen=True)
class CronAny(Expression):
    """`*`."""


@dataclass(frozen=True)
class CronStep(Expression):
    """`*/15`."""

    step: Expression


@dataclass(frozen=True)
class CronRange(Expression):
    """`8:17`, both ends included."""

    low: Expression
    high: Expression


@dataclass(frozen=True)
class CronList(Expression):
    """`[10, 40]`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class CronLast(Expression):
    """`last`, the last day of the month or week; `5 last`, the last Friday of the month."""

    day: Expression | None = None


@dataclass(frozen=True)
class CronWeekday(Expression):
    """`10 weekday`, the weekday nearest to the 10th; without a day `lastweekday`, the month's last."""

    day: Expression | None = None


@dataclass(frozen=True)
class Crontab(Expression):
    """`(minute, hour, day of month, month, day of week [, second])`."""

    fields: tuple[Expression, ...]
