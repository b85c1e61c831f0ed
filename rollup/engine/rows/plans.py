"""The descriptions of what runs in a partition: inputs, look-ups, statements. Languages compile to these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rollup.engine.expressions import Expr
from rollup.engine.folding import AggregateCall
from rollup.engine.index import Test
from rollup.engine.rows.patterns.algebra import Pattern
from rollup.engine.rows.selects.grouping import Level
from rollup.engine.rows.selects.joining import JoinSpec
from rollup.engine.rows.selects.pergroup import Grouping
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.selects.rate import Rate
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.types import RowType

Narrowing = tuple[Mapping[int, Any], Test | None]
"""What a partition adds to a filter over a stream: equalities by place, and a further test."""
ALL: Narrowing = ({}, None)


@dataclass(frozen=True)
class Filter:
    """The events of a stream that concern somebody: equalities with values known at the start, and a test."""

    stream: str
    equals: tuple[tuple[int, Expr], ...] = ()
    test: Expr | None = None


@dataclass(frozen=True)
class Unnest:
    """Rows inside a row: `rows` gives the list, `columns` (over the outer row and the inner one) the new row's values."""

    rows: Expr
    columns: tuple[Expr, ...] | None = None
    where: Expr | None = None


@dataclass(frozen=True)
class StreamInput:
    """The events of a stream, what is inside them where that is asked for, and the window that keeps them."""

    filter: Filter
    window: WindowSpec | None = None
    unnest: tuple[Unnest, ...] = ()
    prior: int = 0
    """How many earlier arrivals are remembered for each row."""


@dataclass(frozen=True)
class StoreInput:
    """The rows of a named window, whose changes are followed, or of a table, which is only looked at."""

    store: str
    condition: Expr | None = None
    follow: bool = True
    prior: int = 0


@dataclass(frozen=True)
class PatternInput:
    """The matches of a pattern; a row's values are the tags."""

    pattern: Pattern
    window: WindowSpec | None = None
    prior: int = 0


Input = StreamInput | StoreInput | PatternInput


@dataclass(frozen=True)
class Subquery:
    """A select over an input of its own, asked once for a row: a value, whether there is a row, or a list of values."""

    input: int
    mode: Literal["value", "exists", "list", "rows"]
    """`list`: all values; `rows`: the same, and null where no row was found at all."""
    columns: tuple[Expr, ...]
    where: Expr | None = None
    keys: tuple[Expr, ...] = ()
    calls: tuple[AggregateCall, ...] = ()
    having: Expr | None = None
    whole: bool = False
    """Whether the value is the row of the input itself, which may be missing; else it is a row of the columns."""

    @property
    def exprs(self) -> Sequence[Expr | None]:
        """All that it evaluates."""
        called = (each for call in self.calls for each in (*call.args, call.where))
        return (*self.columns, self.where, *self.keys, *called, self.having)


@dataclass(frozen=True)
class Previous:
    """`offset` rows before in the window of an input; or the oldest, the number of rows, all of them (newest first)."""

    input: int
    what: Literal["row", "tail", "count", "window"]
    value: Expr | None = None
    offset: Expr | None = None


@dataclass(frozen=True)
class Earlier:
    """The row that arrived `offset` rows before this one."""

    input: int
    offset: int
    value: Expr


@dataclass(frozen=True)
class TableRow:
    """The row of a table by its key; of a key that is not there, a row of nulls, `width` columns wide."""

    table: str
    keys: tuple[Expr, ...]
    width: int


@dataclass(frozen=True)
class ContextValue:
    """A property of the partition."""

    name: str


@dataclass(frozen=True)
class Arriving:
    """Whether the row in hand is one of the insert stream."""


Lookup = Subquery | Previous | Earlier | TableRow | ContextValue | Arriving


@dataclass(frozen=True)
class Target:
    """Where rows are inserted: `columns` says for each field of the target which column it takes (None: null)."""

    name: str
    columns: tuple[int | None, ...]
    arriving: bool = True
    leaving: bool = False
    """Which rows: those that come, those that leave."""

    @property
    def takes(self) -> Emitted:
        """Which rows."""
        return ("both" if self.arriving else "old") if self.leaving else "new"

    def of(self, values: Sequence[Any]) -> list[Any]:
        """The values of a row, as they go there."""
        return [None if place is None else values[place] for place in self.columns]


@dataclass(frozen=True)
class TableTarget:
    """A table that keeps the aggregates: the columns that the calls fill, and the keys."""

    table: str
    keys: tuple[Expr, ...]
    columns: tuple[str, ...]
    calls: tuple[AggregateCall, ...]


@dataclass(frozen=True)
class Finish:
    """What is done to the rows of one output."""

    distinct: bool = False
    descending: tuple[bool, ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None


Emitted = Literal["new", "both", "old"]
"""What listeners get: what comes; what comes and leaves; what leaves, as if it came."""


@dataclass(frozen=True)
class Select:
    """A select: inputs, join, condition, kind, columns, rate, and where the rows go.

    Without `levels` and `grouping` there are no aggregates. With `total` there is one row in all, with `grouping` one a group;
    with both a group stays when it has no rows. Else there is one row a row, grouped when the first level has keys.
    """

    inputs: tuple[Input, ...]
    type: RowType
    projection: Projection
    join: JoinSpec | None = None
    where: Expr | None = None
    levels: tuple[Level, ...] = ()
    grouping: Grouping | None = None
    total: bool = False
    grouped: bool = False
    rate: Rate = field(default_factory=Rate)
    finish: Finish = field(default_factory=Finish)
    emitted: Emitted = "new"
    target: Target | None = None
    into: TableTarget | None = None
    lookups: tuple[Lookup, ...] = ()
    own_inputs: tuple[Input, ...] = ()
    """The inputs of sub-queries; their numbers follow those of `inputs`."""
    unbounded: bool = False
    """Whether an input has no window, so that groups never empty."""

    @property
    def made(self) -> Emitted:
        """Which rows listeners or the target get, so that they are made."""
        if self.target is None or self.target.takes == self.emitted:
            return self.emitted
        return "both"

    @property
    def tells_what_leaves(self) -> bool:
        """Whether listeners or the target get rows that leave."""
        return self.emitted != "new" or (self.target is not None and self.target.leaving)

    @property
    def makes_what_leaves(self) -> bool:
        """Whether rows that leave are made: somebody gets them, or they may be the first after an output."""
        return self.tells_what_leaves or self.rate.mode == "first"

    @property
    def leaves(self) -> bool:
        """Whether rows of an input leave: all but those of a stream without a window."""
        return not all(isinstance(each, StreamInput) and each.window is None for each in self.inputs)

    @property
    def comes_alone(self) -> bool:
        """Whether rows that leave make no difference: nobody gets them, and neither an aggregate nor an output counts them."""
        counts = self.levels or self.grouping is not None or self.grouped or self.into is not None
        return not (self.makes_what_leaves or self.rate.limited or self.rate.mode != "default" or counts)


def no_narrowing(stream: str) -> Narrowing:
    """A partition that takes every event."""
    return {}, None


Narrow = Callable[[str], Narrowing]
