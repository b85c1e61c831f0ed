"""What a UQL query says, as a frozen tree: names still unresolved, every node with the place it stands at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["time", "rows"]


@dataclass(frozen=True)
class Node:
    """Anything that was read; line and column count from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Name(Node):
    """A name of a field, a table, an aggregate or an appended column; `x.start` belongs to a session."""

    text: str


@dataclass(frozen=True)
class Number(Node):
    """A whole or a fractional number."""

    value: int | float


@dataclass(frozen=True)
class Text(Node):
    """A text in double quotes; beside a time or a span it is read as a span: `t mod "10 seconds"`."""

    value: str


@dataclass(frozen=True)
class Time(Node):
    """An instant in single quotes, still as it was written."""

    value: str


@dataclass(frozen=True)
class Span(Node):
    """A length of time in microseconds."""

    microseconds: int


@dataclass(frozen=True)
class Unary(Node):
    """`not x` or `-x`."""

    operator: Literal["not", "-"]
    operand: Expr


@dataclass(frozen=True)
class Binary(Node):
    """Two operands: and, or, a comparison (== != < <= > >=) or arithmetic (+ - * / %)."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Call(Node):
    """A function of an expression: `seconds(end - begin)`."""

    function: str
    arguments: tuple[Expr, ...]


Expr = Name | Number | Text | Time | Span | Unary | Binary | Call


@dataclass(frozen=True)
class Width(Node):
    """How wide a window is or how far it moves: microseconds, or rows."""

    amount: int
    unit: Unit


@dataclass(frozen=True)
class Slice(Node):
    """Windows of one width, one beside the other."""

    width: Width


@dataclass(frozen=True)
class Slide(Node):
    """Windows of one width that start every `advance`; an advance of 0 keeps the start."""

    width: Width
    advance: Width


@dataclass(frozen=True)
class Session(Node):
    """A window from the row that meets `begin` to the one that meets `end`, or for `life`, whichever ends first."""

    begin: Expr
    end: Expr | None
    inclusive: bool
    life: Width | None


@dataclass(frozen=True)
class Star(Node):
    """The star of `count(*)`."""


@dataclass(frozen=True)
class Aggregation(Node):
    """`function(argument, ..) as alias`."""

    function: str
    arguments: tuple[Expr | Star, ...]
    alias: Name


@dataclass(frozen=True)
class Item(Node):
    """One column of the append clause; without `as` it has the name it was written with."""

    value: Expr
    name: str


@dataclass(frozen=True)
class Query(Node):
    """A whole query. The three conditions see, in this order: fields; aggregates and groups; appended columns and groups."""

    source: Name
    group_by: tuple[Name, ...]
    rows_where: Expr | None
    window: Slice | Slide | Session
    based_on: Name | None
    aggregates: tuple[Aggregation, ...]
    windows_where: Expr | None
    items: tuple[Item, ...]
    output_where: Expr | None
    target: Name
