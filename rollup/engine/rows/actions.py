"""What an event does to a store or a variable: select, delete, update, merge, set; and to streams: split; as plans."""

from __future__ import annotations

from dataclasses import dataclass

from rollup.engine.expressions import Expr
from rollup.engine.folding import Fold
from rollup.engine.rows.plans import Input, Lookup, Select, Unnest
from rollup.engine.types import RowType


@dataclass(frozen=True)
class Set:
    """A column gets a value. Expressions see the trigger (0), the row as it is now (1), and as it was before (2)."""

    place: int
    value: Expr


@dataclass(frozen=True)
class Reset:
    """An aggregated column begins again."""

    column: str
    fold: Fold


@dataclass(frozen=True)
class InsertAction:
    """A row for the store, or, with `target`, for another stream or store; `columns` over the trigger (0) and the row (1)."""

    columns: tuple[Expr, ...]
    target: str | None = None
    where: Expr | None = None


@dataclass(frozen=True)
class UpdateAction:
    """The row gets other values, left to right."""

    sets: tuple[Set | Reset, ...]
    where: Expr | None = None


@dataclass(frozen=True)
class DeleteAction:
    """The row is taken out."""

    where: Expr | None = None


Action = InsertAction | UpdateAction | DeleteAction


@dataclass(frozen=True)
class MergeCase:
    """The actions for a row that is (not) there."""

    matched: bool
    condition: Expr | None
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class Merge:
    """For each row of the store that fulfils `where`, the first case that holds; `always`: as if none did."""

    trigger: Input
    store: str
    type: RowType
    where: Expr | None
    cases: tuple[MergeCase, ...]
    always: bool = False
    gone_as_new: bool = False
    """Whether rows that are taken out are delivered as if they came."""
    lookups: tuple[Lookup, ...] = ()
    own_inputs: tuple[Input, ...] = ()


@dataclass(frozen=True)
class SetVariables:
    """Variables get values, one after the other; the row has the values of all of them."""

    trigger: Input
    type: RowType
    settings: tuple[tuple[str, Expr], ...]
    lookups: tuple[Lookup, ...] = ()
    own_inputs: tuple[Input, ...] = ()


@dataclass(frozen=True)
class StreamUpdate:
    """The events of a stream get other values before anybody sees them, left to right; of several the highest
    `priority` has the last word."""

    stream: str
    type: RowType
    sets: tuple[Set, ...]
    where: Expr | None = None
    lookups: tuple[Lookup, ...] = ()
    own_inputs: tuple[Input, ...] = ()
    priority: int = 0


@dataclass(frozen=True)
class SplitBranch:
    """Rows for a stream: `columns` over the event, or over the event and each row inside it."""

    target: str
    columns: tuple[Expr, ...]
    where: Expr | None
    unnest: Unnest | None = None


@dataclass(frozen=True)
class Split:
    """An event goes to the first branch that takes it, or to every one; `same`: it is itself one of the branch's stream."""

    trigger: Input
    type: RowType
    branches: tuple[SplitBranch, ...]
    every: bool
    lookups: tuple[Lookup, ...] = ()
    own_inputs: tuple[Input, ...] = ()
    same: bool = False


@dataclass(frozen=True)
class OnSelect:
    """A select over the trigger (0) and the store (1), made anew for every event; `delete`: its rows leave the store."""

    trigger: Input
    store: str
    select: Select
    delete: bool = False

    @property
    def type(self) -> RowType:
        """The type of its rows."""
        return self.select.type
