"""What the text of an app says, before names and types are resolved.

Expressions are sqlglot trees whose function calls keep the name the user wrote; every node that can be wrong carries
its position (`position(node)`), so that a later refusal still points into the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from rollup.core.calendar import GMT, Duration
from rollup.core.errors import PlanError
from rollup.plan.types import Type

Position = tuple[int | None, int | None]
SIGN = "__sign"
"""The attribute of a stream of changes that says of a row whether it comes (1) or is taken back (-1)."""


def position(node: exp.Expr) -> Position:
    """Line and column, from 1, of a node in the text it was read from."""
    for part in node.walk():
        if "line" in part.meta:
            return part.meta["line"], part.meta["column"]
    return None, None


@dataclass(frozen=True)
class Annotation:
    """`@name('value', key='value', @nested(...))`; a value without key has the key '', and `listed` has all of those."""

    name: str
    values: Mapping[str, str]
    nested: tuple[Annotation, ...] = ()
    line: int | None = None
    column: int | None = None
    listed: tuple[str, ...] = ()

    def refuse(self, message: str, hint: str | None = None) -> PlanError:
        """The error that points at this annotation."""
        return PlanError(message, line=self.line, column=self.column, hint=hint)


@dataclass(frozen=True)
class StreamDef:
    """`define stream S (symbol string, price double)`.

    `keys`: its rows are closed buckets of a level, and those tell the rows of a bucket apart; None: they are no buckets.
    `table`: to SQL its rows are the changes of a table, of which the last row of each such key is there, or every row
    where there is no key; None: it is a stream. `zone`: texts of a `timestamp` without an offset are of its local time.
    """

    name: str
    attributes: Mapping[str, Type]
    annotations: tuple[Annotation, ...] = ()
    keys: tuple[str, ...] | None = None
    table: tuple[str, ...] | None = None
    zone: str = GMT
    line: int | None = field(default=None, compare=False)
    column: int | None = field(default=None, compare=False)

    @property
    def own(self) -> dict[str, Type]:
        """The attributes that users know of: all but `SIGN`."""
        return {name: kind for name, kind in self.attributes.items() if name != SIGN}

    @property
    def kept(self) -> str:
        """Which of its rows a table keeps."""
        return f"the last row of each {', '.join(self.table)}" if self.table else "every row"


@dataclass(frozen=True)
class Item:
    """One column of a select list: its output name and its expression."""

    name: str
    expression: exp.Expr


def check_columns(items: Sequence[Item]) -> None:
    """Raise PlanError for two columns of one name, with the place of the later one."""
    names = [item.name for item in items]
    twice = next((item for place, item in enumerate(items) if item.name in names[:place]), None)
    if twice is not None:
        raise PlanError(f"two columns are called {twice.name!r}", hint="rename one with `as`").at(
            *position(twice.expression)
        )


@dataclass(frozen=True)
class Selection:
    """`select … group by … having … order by … limit … offset …`; `items` None is `select *` or no select."""

    items: tuple[Item, ...] | None = None
    group_by: tuple[exp.Expr, ...] = ()
    having: exp.Expr | None = None
    order_by: tuple[exp.Ordered, ...] = ()
    limit: exp.Expr | None = None
    offset: exp.Expr | None = None


@dataclass(frozen=True)
class Source:
    """`S[price > 0]`."""

    stream: str
    filter: exp.Expr | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class AggregationDef:
    """`define aggregation A from S select … group by … aggregate by ts every sec ... year`."""

    name: str
    source: Source
    selection: Selection
    by: exp.Expr | None
    levels: tuple[Duration, ...]
    annotations: tuple[Annotation, ...] = ()
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class StreamQuery:
    """`from S[…] select … insert into T`: stateless."""

    source: Source
    selection: Selection
    target: str


@dataclass(frozen=True)
class Retrieval:
    """What is asked of an aggregation: `on …`, the bounds of `within`, `per`, and how gaps are filled."""

    aggregation: str
    on: exp.Expr | None
    within: tuple[exp.Expr, ...]
    per: exp.Expr | None
    selection: Selection
    fill: str | None = None
    explain: bool = False
    as_of: str | None = None


@dataclass(frozen=True)
class JoinQuery:
    """`from S as b join A as a on … within … per … select … insert into T`: requests in, answers out."""

    source: Source
    stream_alias: str
    aggregation_alias: str
    stream_first: bool
    kind: str
    retrieval: Retrieval
    target: str


@dataclass(frozen=True)
class App:
    """A whole app: its name and what it defines, in the order of the text."""

    name: str
    streams: Mapping[str, StreamDef] = field(default_factory=dict[str, StreamDef])
    aggregations: tuple[AggregationDef, ...] = ()
    queries: tuple[StreamQuery, ...] = ()
    joins: tuple[JoinQuery, ...] = ()
    text: str = ""
