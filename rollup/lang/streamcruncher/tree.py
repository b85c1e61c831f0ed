"""What a running query says: its partitions, its alert, and the SQL around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlglot import exp

Place = tuple[int, int]


@dataclass(frozen=True)
class Literal_:
    """A number, a text or null."""

    value: Any
    place: Place


@dataclass(frozen=True)
class Column:
    """A column of the rows that a partition filters."""

    name: str
    place: Place


@dataclass(frozen=True)
class Operation:
    """`+`, `<`, `and`, `not`, `is null` over operands."""

    sign: str
    operands: tuple[Condition, ...]
    place: Place


@dataclass(frozen=True)
class Membership:
    """`in` a list, or in what a sub-query of a table answers."""

    operand: Condition
    choices: tuple[Condition, ...]
    query: str | None
    negated: bool
    place: Place


Condition = Literal_ | Column | Operation | Membership


@dataclass(frozen=True)
class Window:
    """`last 3`, `last 5 seconds max 10`, `latest 4`, `random 5`, `highest 2 using c with update group g`."""

    kind: Literal["last", "time", "latest", "random", "highest", "lowest"]
    size: int
    most: int | None
    using: str | None
    group: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class Aggregate:
    """`sum(c) as name`, with its words."""

    function: str
    column: str
    arguments: tuple[Any, ...]
    difference: bool
    entrance: bool
    name: str
    place: Place


@dataclass(frozen=True)
class Partition:
    """`(partition by … store … with … where …)`; `feed`: the status that its chained filter begins with."""

    by: tuple[str, ...]
    window: Window
    pinned: bool
    aggregates: tuple[Aggregate, ...]
    feed: Literal["new", "dead"] | None
    where: Condition | None
    filtered: bool
    place: Place


@dataclass(frozen=True)
class Chain:
    """A stream and its partitions; `table` is the name that the SQL knows them by."""

    stream: str
    parts: tuple[Partition, ...]
    alias: str
    table: str
    place: Place
    correlate: str | None = None


@dataclass(frozen=True)
class Present:
    """`present(a and not b)`, by alias."""

    present: tuple[str, ...]
    absent: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class Alert:
    """The columns as (alias, column, name), and the patterns."""

    columns: tuple[tuple[str, str, str], ...]
    patterns: tuple[Present, ...]
    table: str
    place: Place


@dataclass(frozen=True)
class Query:
    """A running query: `select` is the SQL over the tables of the chains, or of the alert."""

    chains: tuple[Chain, ...]
    alert: Alert | None
    select: exp.Expr
