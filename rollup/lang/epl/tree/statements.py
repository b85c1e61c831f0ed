"""Statements: select, on …, create …, update, fire-and-forget requests, and the module that holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rollup.lang.epl.tree.contexts import CreateContext
from rollup.lang.epl.tree.expressions import Call, Crontab, Expression, Lambda, Period
from rollup.lang.epl.tree.node import Node
from rollup.lang.epl.tree.streams import (
    Annotation,
    Contained,
    Item,
    Join,
    Stream,
    Trigger,
    View,
)

Selector = Literal["istream", "rstream", "irstream"]


@dataclass(frozen=True)
class InsertInto(Node):
    """`insert [rstream] into target (columns)`; `table`: `into table target`, which writes aggregates."""

    target: str
    columns: tuple[str, ...] = ()
    selector: Selector | None = None
    table: bool = False


@dataclass(frozen=True)
class Grouping(Node):
    """One entry of group by: a lone value, several combined (none: the total), or a rollup, cube or list of sets."""

    kind: Literal["value", "combined", "rollup", "cube", "sets"]
    values: tuple[Expression, ...] = ()
    parts: tuple[Grouping, ...] = ()


@dataclass(frozen=True)
class Ordering(Node):
    """One criterion of order by."""

    value: Expression
    descending: bool = False


@dataclass(frozen=True)
class Limit(Node):
    """`limit rows offset skip`; each a number, a variable or a parameter."""

    rows: Expression
    offset: Expression | None = None


@dataclass(frozen=True)
class Span(Node):
    """A length of time, or a number of events."""

    period: Period | None = None
    events: Expression | None = None


@dataclass(frozen=True)
class Assignment(Node):
    """`target = value`; without a value, the call of a method: `column.reset()`."""

    target: Expression
    value: Expression | None = None


@dataclass(frozen=True)
class OutputEnd(Node):
    """`when terminated [and condition] [then set …]`."""

    condition: Expression | None = None
    then: tuple[Assignment, ...] = ()


@dataclass(frozen=True)
class Output(Node):
    """`output [after …] [all|first|last|snapshot] every … | at … | when … [and when terminated …]`."""

    after: Span | None = None
    mode: Literal["default", "all", "first", "last", "snapshot"] = "default"
    every: Span | None = None
    at_times: Crontab | None = None
    when: Expression | None = None
    then: tuple[Assignment, ...] = ()
    terminated: OutputEnd | None = None


@dataclass(frozen=True)
class Query(Node):
    """A select; `streams` is empty only for a row that is inserted without a from clause."""

    items: tuple[Item, ...]
    streams: tuple[Stream, ...] = ()
    joins: tuple[Join, ...] = ()
    insert: InsertInto | None = None
    selector: Selector | None = None
    distinct: bool = False
    where: Expression | None = None
    group_by: tuple[Grouping, ...] = ()
    having: Expression | None = None
    output: Output | None = None
    order_by: tuple[Ordering, ...] = ()
    limit: Limit | None = None


@dataclass(frozen=True)
class Store(Node):
    """A named window or table in an on-statement or a request."""

    name: str
    alias: str | None = None


@dataclass(frozen=True)
class OnSelect(Node):
    """`on … [insert into …] select [and delete] … from store …`."""

    trigger: Trigger
    query: Query
    store: Store
    delete: bool = False


@dataclass(frozen=True)
class Branch(Node):
    """One `insert into … select … where …` of a split stream; `contained` where it reads events inside the event."""

    insert: InsertInto
    items: tuple[Item, ...]
    where: Expression | None = None
    contained: tuple[Contained, ...] = ()
    alias: str | None = None


@dataclass(frozen=True)
class Split(Node):
    """`on … insert into … insert into … output first|all`."""

    trigger: Trigger
    branches: tuple[Branch, ...]
    every_branch: bool = False


@dataclass(frozen=True)
class OnDelete(Node):
    """`on … delete from store where …`."""

    trigger: Trigger
    store: Store
    where: Expression | None = None


@dataclass(frozen=True)
class OnUpdate(Node):
    """`on … update store set … where …`."""

    trigger: Trigger
    store: Store
    assignments: tuple[Assignment, ...]
    where: Expression | None = None


@dataclass(frozen=True)
class MergeInsert(Node):
    """`insert [into target] (columns) select … where …`; no target: the merged store."""

    items: tuple[Item, ...]
    target: str | None = None
    columns: tuple[str, ...] = ()
    where: Expression | None = None


@dataclass(frozen=True)
class MergeUpdate(Node):
    """`update set … where …`."""

    assignments: tuple[Assignment, ...]
    where: Expression | None = None


@dataclass(frozen=True)
class MergeDelete(Node):
    """`delete where …`."""

    where: Expression | None = None


MergeAction = MergeInsert | MergeUpdate | MergeDelete


@dataclass(frozen=True)
class MergeCase(Node):
    """`when [not] matched [and condition] then action then action …`."""

    matched: bool
    condition: Expression | None
    actions: tuple[MergeAction, ...]


@dataclass(frozen=True)
class OnMerge(Node):
    """`on … merge store where … when …`; `always`: the short form, one case that inserts whatever the store holds."""

    trigger: Trigger
    store: Store
    cases: tuple[MergeCase, ...]
    where: Expression | None = None
    always: bool = False


@dataclass(frozen=True)
class OnSet(Node):
    """`on … set variable = …`."""

    trigger: Trigger
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True)
class UpdateStream(Node):
    """`update istream Type as alias set … where …`."""

    type: str
    alias: str | None
    assignments: tuple[Assignment, ...]
    where: Expression | None = None


@dataclass(frozen=True)
class TypeName(Node):
    """A type as written: `string`, `Line[]`."""

    name: str
    dimensions: int = 0


@dataclass(frozen=True)
class Column(Node):
    """A column of a schema or a window."""

    name: str
    type: TypeName


@dataclass(frozen=True)
class TableColumn(Node):
    """A column of a table: plain with a type, or an aggregation that `into table` fills."""

    name: str
    type: TypeName | None = None
    aggregation: Call | None = None
    key: bool = False
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True)
class CreateSchema(Node):
    """`create schema name (columns) inherits …`, or `create variant schema name as types` (`*`: any)."""

    name: str
    columns: tuple[Column, ...] = ()
    kind: str | None = None
    types: tuple[str, ...] = ()
    options: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class CreateWindow(Node):
    """`create window name#view as …`: like a type, from a select over it, or with columns of its own."""

    name: str
    views: tuple[View, ...] = ()
    retain: Literal["union", "intersection"] | None = None
    type: str | None = None
    items: tuple[Item, ...] = ()
    columns: tuple[Column, ...] = ()
    insert: bool = False
    where: Expression | None = None


@dataclass(frozen=True)
class CreateTable(Node):
    """`create table name (columns)`."""

    name: str
    columns: tuple[TableColumn, ...]


@dataclass(frozen=True)
class IndexColumn(Node):
    """A column of an index; `kind` is hash or btree."""

    value: Expression
    kind: str = "hash"


@dataclass(frozen=True)
class CreateIndex(Node):
    """`create [unique] index name on store (columns)`."""

    name: str
    store: str
    columns: tuple[IndexColumn, ...]
    unique: bool = False


@dataclass(frozen=True)
class CreateVariable(Node):
    """`create [constant] variable type name = value`."""

    type: TypeName
    name: str
    value: Expression | None = None
    constant: bool = False


@dataclass(frozen=True)
class Declaration(Node):
    """`expression name { x => … }` or, without parameters, `expression name alias for { … }`."""

    name: str
    body: Lambda | Expression
    alias: bool = False


@dataclass(frozen=True)
class CreateExpression(Node):
    """A declaration that other statements may use."""

    declaration: Declaration


# Fire-and-forget.


@dataclass(frozen=True)
class AskInsert(Node):
    """`insert into store (columns) values (…), (…)`."""

    insert: InsertInto
    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class AskUpdate(Node):
    """`update store set … where …`."""

    store: Store
    assignments: tuple[Assignment, ...]
    where: Expression | None = None


@dataclass(frozen=True)
class AskDelete(Node):
    """`delete from store where …`."""

    store: Store
    where: Expression | None = None


Body = (
    Query
    | OnSelect
    | OnDelete
    | OnUpdate
    | OnMerge
    | OnSet
    | Split
    | UpdateStream
    | CreateSchema
    | CreateWindow
    | CreateTable
    | CreateIndex
    | CreateVariable
    | CreateContext
    | CreateExpression
)
Request = Query | AskInsert | AskUpdate | AskDelete


@dataclass(frozen=True)
class Statement(Node):
    """A statement with what stands before it; `text` is its own part of the module."""

    body: Body
    annotations: tuple[Annotation, ...] = ()
    context: str | None = None
    declarations: tuple[Declaration, ...] = ()
    text: str = field(default="", compare=False, repr=False)

    @property
    def name(self) -> str | None:
        """What `@name` says."""
        found = [annotation.value for annotation in self.annotations if annotation.word == "name"]
        return str(found[-1]) if found else None


@dataclass(frozen=True)
class Ask(Node):
    """A fire-and-forget request with what stands before it."""

    request: Request
    context: str | None = None
    declarations: tuple[Declaration, ...] = ()


@dataclass(frozen=True)
class Module(Node):
    """A text of statements; `uses` names modules that must be deployed before."""

    statements: tuple[Statement, ...]
    name: str | None = None
    uses: tuple[str, ...] = ()
