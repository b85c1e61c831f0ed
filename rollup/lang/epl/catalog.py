"""What is declared: event types, named windows, tables, contexts, variables, expressions; and who needs what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from copy import copy
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from rollup.core.errors import PlanError
from rollup.engine.expressions import with_values
from rollup.engine.rows.runner import Environment
from rollup.engine.types import ANY, DataType, Kind, RowType
from rollup.lang.epl.lookups import Name, Noted
from rollup.lang.epl.semantics import TYPES
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.node import Node


@dataclass(frozen=True)
class StoreInfo:
    """A named window or table: the type of its rows, its context, its keys (of a table) and aggregated columns."""

    kind: Literal["window", "table"]
    type: RowType
    context: str | None = None
    keys: tuple[str, ...] = ()
    aggregated: dict[str, object] = field(default_factory=dict[str, object], hash=False)
    declared: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)
    """The calls of the aggregated columns, as the table's text has them."""
    batch: bool = False


@dataclass(frozen=True)
class ContextInfo:
    """A context: the types of its properties, and for each keyed stream which field is which key."""

    name: str
    properties: dict[str, DataType] = field(hash=False)
    keys: dict[str, dict[str, str]] = field(hash=False)
    """By stream and field, the property that has the same value."""


@dataclass(frozen=True)
class VariableInfo:
    """A variable: its type, whether it may be set, the context whose partitions have each their own, and the value `first`
    with which it begins; `literal`: it is that one for good, whenever it is asked."""

    type: DataType
    constant: bool
    context: str | None = None
    first: Any = None
    literal: bool = False


class Catalog:
    """Everything that has a name, by kind. A name of a stream, window or table stands for one thing only."""

    def __init__(self) -> None:
        self.types: MutableMapping[str, RowType] = {}
        self.implied: set[str] = set()
        """Types that an insert has made."""
        self.fresh: list[str] = []
        """Those that the statement has made which is being deployed."""
        self.ancestors: dict[str, frozenset[str]] = {}
        """Of a schema those that it inherits, directly or not."""
        self.stores: MutableMapping[str, StoreInfo] = {}
        self.contexts: MutableMapping[str, ContextInfo] = {}
        self.variables: MutableMapping[str, VariableInfo] = {}
        self.expressions: MutableMapping[str, sm.Declaration] = {}
        self.indexes: MutableMapping[str, str] = {}
        """The store of each index."""
        self.times: dict[str, tuple[str | None, str | None]] = {}
        self.second = 1000
        """Clock units in a second."""
        self.environment = Environment()
        """Where variables have their values; the runner has the same."""

    def noting(self, found: set[Name]) -> Catalog:
        """The same catalog; what is asked of this one by name is put into `found`."""
        seen = copy(self)
        seen.types, seen.stores = Noted("stream", self.types, found), Noted("stream", self.stores, found)
        seen.contexts = Noted("context", self.contexts, found)
        seen.variables = Noted("variable", self.variables, found)
        seen.expressions = Noted("expression", self.expressions, found)
        seen.indexes = Noted("index", self.indexes, found)
        return seen

    def with_literals(self, plan: Any) -> Any:
        """A plan in which constants are the literals that they are as good as."""
        return with_values(plan, {name: info.first for name, info in self.variables.items() if info.literal})

    def beginning(self) -> Environment:
        """The values of variables that a statement begins with: those of a context begin anew in every partition."""
        own = {name: info.first for name, info in self.variables.items() if info.context is not None}
        return self.environment.child({}, {**self.environment.variables, **own}) if own else self.environment

    def row_type(self, name: str, at: Node) -> RowType:
        """The rows of a stream, window or table. Raises PlanError for a name that nothing has."""
        if name in self.stores:
            return self.stores[name].type
        if name in self.types:
            return self.types[name]
        raise unknown("event type, named window or table", name, [*self.types, *self.stores], at)

    def store(self, name: str, at: Node) -> StoreInfo:
        """A named window or table."""
        if name not in self.stores:
            raise unknown("named window or table", name, self.stores, at)
        return self.stores[name]

    def context(self, name: str, at: Node) -> ContextInfo:
        """A context."""
        if name not in self.contexts:
            raise unknown("context", name, self.contexts, at)
        return self.contexts[name]

    def data_type(self, written: sm.TypeName) -> DataType:
        """The type that a text names, an event type included."""
        simple = written.name.rsplit(".", 1)[-1].lower()
        if written.name in self.types:
            found = self.types[written.name].data_type
        elif simple in TYPES:
            found = TYPES[simple]
        else:
            names = [*dict.fromkeys(TYPES), *self.types]
            raise unknown("type", written.name, names, written)
        for _ in range(written.dimensions):
            found = DataType(Kind.LIST, element=found)
        return found

    def inherit(self, name: str, parents: Iterable[str]) -> None:
        """A schema inherits others, and what those inherit."""
        self.ancestors[name] = frozenset(parents).union(*(self.ancestors.get(each, ()) for each in parents))

    def imply(self, name: str, kinds: RowType) -> None:
        """A stream that an insert makes is a type from now on."""
        if name not in self.stores and name not in self.types:
            self.types[name] = kinds
            self.implied.add(name)
            self.fresh.append(name)

    def free(self, name: str, at: Node) -> None:
        """Raise PlanError when a stream, window or table has the name already."""
        if name in self.stores or (name in self.types and name not in self.implied):
            raise problem(f"`{name}` is declared already", at, "undeploy it first, or choose another name")


def unknown(what: str, name: str, known: Iterable[str], at: Node) -> PlanError:
    """The error for a name that nothing has, with what is there."""
    names = sorted(known)
    close = get_close_matches(name, names, 1)
    hint = f"did you mean `{close[0]}`?" if close else f"known: {', '.join(names[:12]) or 'none'}"
    return problem(f"no {what} is called `{name}`", at, hint)


def problem(message: str, at: Node, hint: str | None = None) -> PlanError:
    """An error at a place of the text."""
    line, column = at.at
    return PlanError(message, line=line or None, column=column or None, hint=hint)


def loose(kind: DataType) -> bool:
    """Whether a type says nothing about the value."""
    return kind.kind in (Kind.ANY, Kind.NULL) or kind is ANY


_SIMPLE = {Kind.BOOL, Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL, Kind.STRING}


def keyable(kind: DataType, at: Node, written: str) -> None:
    """Raise PlanError when rows cannot be told apart by values of a type."""
    inner = kind
    while inner.kind is Kind.LIST and inner.element is not None:
        inner = inner.element
    if kind.kind is Kind.LIST and inner.kind not in _SIMPLE:
        raise problem(f"`{written}` is {kind}, by which rows are not told apart", at, "one of its values, its size")


def ordered(kind: DataType, at: Node, written: str) -> None:
    """Raise PlanError when values of a type are neither greater nor less than others."""
    if kind.kind in (Kind.LIST, Kind.ROW):
        raise problem(f"`{written}` is {kind}, which has no order", at, "one of its values")
