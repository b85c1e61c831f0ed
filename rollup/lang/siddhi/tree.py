"""What the text of an app says, before names and types are resolved. Every node knows its place in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from rollup.plan.types import Type

Place = tuple[int, int]


@dataclass(frozen=True)
class Constant:
    """A value, and how it is written; `type` None: null."""

    value: Any
    type: Type | None
    place: Place
    written: str = field(default="", compare=False)


@dataclass(frozen=True)
class Name:
    """`attribute`, `stream.attribute`, `e1[0].attribute`, `e1[last - 1].attribute`; `index` counts from the end if
    negative. Without attribute: the event `e1[0]`."""

    attribute: str | None
    stream: str | None
    index: int | None
    place: Place


@dataclass(frozen=True)
class Operation:
    """A sign or word over operands: `+`, `==`, `and`, `not`, `is null`, `like`, `-` of one operand."""

    sign: str
    operands: tuple[Expression, ...]
    place: Place


@dataclass(frozen=True)
class Function:
    """A function call; an aggregate is of the rows `where` that holds."""

    name: str
    arguments: tuple[Expression, ...]
    place: Place
    where: Expression | None = None


@dataclass(frozen=True)
class InTable:
    """`(condition) in Table`."""

    condition: Expression
    table: str
    place: Place


Expression = Constant | Name | Operation | Function | InTable


@dataclass(frozen=True)
class Annotation:
    """`@name('value', key='value', @nested(...))`; a value without key has the key ''."""

    name: str
    values: tuple[tuple[str, str], ...]
    nested: tuple[Annotation, ...]
    place: Place


@dataclass(frozen=True)
class Definition:
    """`define stream|table|window|trigger`: a window has its kind as `window` and which rows it gives as `output`, a
    trigger the time from tick to tick as `every` or a crontab as `at`; without, it ticks once, at the start."""

    kind: Literal["stream", "table", "window", "trigger"]
    name: str
    attributes: tuple[tuple[str, Type], ...]
    annotations: tuple[Annotation, ...]
    place: Place
    window: Function | None = None
    output: str = "all"
    every: int | None = None
    at: str | None = None


@dataclass(frozen=True)
class Handler:
    """`[filter]`, `#window.name(…)`, `#log(…)`, a function that adds attributes, behind a stream."""

    kind: Literal["filter", "window", "log", "function"]
    expression: Expression


@dataclass(frozen=True)
class Stream:
    """A stream with what stands behind it. `inner`: `#M`, of a partition."""

    name: str
    inner: bool
    handlers: tuple[Handler, ...]
    place: Place


@dataclass(frozen=True)
class Side:
    """A side of a join."""

    stream: Stream
    alias: str | None
    unidirectional: bool


@dataclass(frozen=True)
class Join:
    """Two sides and a condition."""

    left: Side
    right: Side
    kind: Literal["inner", "left", "right", "full"]
    on: Expression | None
    place: Place


class Count(NamedTuple):
    """How many events an element is, from the least to the most; `sign`: `+`, `*` or `?`, where that says it."""

    least: int
    most: int | None
    sign: str = ""


@dataclass(frozen=True)
class Basic:
    """One element of a pattern: its events, the name they are bound to, how many; or, `absent`, none of them."""

    stream: Stream
    name: str | None = None
    count: Count | None = None
    absent: bool = False
    span: int | None = None


@dataclass(frozen=True)
class Logical:
    """Two elements joined by `and` or `or`."""

    left: Basic
    right: Basic
    word: Literal["and", "or"]


@dataclass(frozen=True)
class Every:
    """`every` of what follows."""

    step: Step


@dataclass(frozen=True)
class Group:
    """Steps in parentheses; `strict`: of a sequence."""

    steps: tuple[Step, ...]
    strict: bool = False


Step = Basic | Logical | Every | Group


@dataclass(frozen=True)
class Pattern:
    """`A -> B`, or, `strict`, the sequence `A, B`; `span`: within."""

    steps: tuple[Step, ...]
    span: int | None
    strict: bool
    place: Place


@dataclass(frozen=True)
class Item:
    """A column of a select list; `alias` None: its name is the attribute's."""

    expression: Expression
    alias: str | None

    @property
    def name(self) -> str | None:
        """What the column is called; None where nothing says it."""
        return self.alias or (self.expression.attribute if isinstance(self.expression, Name) else None)


@dataclass(frozen=True)
class Ordering:
    """One key of `order by`."""

    expression: Expression
    descending: bool


@dataclass(frozen=True)
class Selection:
    """`select … group by … having … order by … limit … offset`; no items: all attributes."""

    items: tuple[Item, ...] = ()
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    order_by: tuple[Ordering, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None


@dataclass(frozen=True)
class Rate:
    """`output first every 3 events`: one of `events` and `span`."""

    mode: Literal["all", "first", "last", "snapshot"]
    events: int | None
    span: int | None


@dataclass(frozen=True)
class Assignment:
    """`T.w = w + 1`."""

    column: Name
    value: Expression


@dataclass(frozen=True)
class Output:
    """Where rows go: into a stream, window or table, or as a change of a table."""

    action: Literal["insert", "delete", "update", "upsert"]
    target: str
    inner: bool
    kind: Literal["all", "current", "expired"]
    on: Expression | None
    assignments: tuple[Assignment, ...] | None
    place: Place


@dataclass(frozen=True)
class Query:
    """`from … select … insert into …`."""

    input: Stream | Join | Pattern
    selection: Selection
    rate: Rate | None
    output: Output
    annotations: tuple[Annotation, ...]
    place: Place


@dataclass(frozen=True)
class PartitionKey:
    """The key of a stream's events: a value, or the label of every range that holds."""

    stream: str
    value: Expression | None
    ranges: tuple[tuple[Expression, str], ...] = ()


@dataclass(frozen=True)
class Partition:
    """Queries that run once a key."""

    keys: tuple[PartitionKey, ...]
    queries: tuple[Query, ...]
    annotations: tuple[Annotation, ...]
    place: Place


@dataclass(frozen=True)
class App:
    """A whole app, in the order of the text; app annotations stand with the statement that follows them."""

    statements: tuple[Definition | Query | Partition, ...]
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True)
class Request:
    """An on-demand query: `from T as t on … select …`."""

    table: str
    alias: str | None
    on: Expression | None
    selection: Selection
    place: Place


@dataclass(frozen=True)
class ChangeRequest:
    """An on-demand query that changes a table: `select 1 as k insert into T`, `update T set … on …`, `delete T on …`."""

    selection: Selection
    output: Output
