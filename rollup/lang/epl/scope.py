"""What names mean where an expression stands: inputs, aggregates, the partition, variables, tables, parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rollup.core.descriptions import descendants
from rollup.engine.expressions import Ask, Expr, Field, RowOf, Slot
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.plans import Input, Lookup
from rollup.engine.types import DataType, RowType
from rollup.lang.epl.catalog import Catalog, ContextInfo, StoreInfo, VariableInfo, problem
from rollup.lang.epl.render import render
from rollup.lang.epl.semantics import AGGREGATING
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree.node import Node
from rollup.lang.epl.tree.statements import Declaration, Query


@dataclass(frozen=True)
class Source:
    """An input as expressions see it: its name, its rows, whether the row may be absent, and how it is windowed."""

    name: str | None
    type: RowType
    optional: bool = False
    windowed: bool = False
    ordered: bool = False
    """Whether its window keeps rows one after another, so that `prev` finds them."""
    stream: str | None = None
    alias: str | None = None
    """The name that the text gives it; `name` may also be that of its type."""
    hidden: bool = False
    """Whether its properties need its name before them where another source has them too."""


_WRITTEN_OUT = 1000


@dataclass
class Registry:
    """What the expressions of one statement ask for when they are evaluated."""

    lookups: list[Lookup] = field(default_factory=list[Lookup])
    own_inputs: list[Input] = field(default_factory=list[Input])
    outer: int = 0
    """How many inputs the statement itself has."""
    priors: dict[int, int] = field(default_factory=dict[int, int])
    written_out: int = 0
    """How many declared expressions have been put in the place of their names."""

    def write_out(self, node: Node) -> None:
        """A declared expression comes in the place of its name. Raises PlanError where that has no end in sight."""
        self.written_out += 1
        if self.written_out > _WRITTEN_OUT:
            raise problem(
                f"declared expressions that call each other become more than {_WRITTEN_OUT} of them in one statement",
                node,
                "call each once, or insert what it gives into a stream and read that",
            )

    def ask(self, lookup: Lookup, type: DataType) -> Ask:
        """The expression that makes a look-up."""
        if lookup in self.lookups:
            return Ask(self.lookups.index(lookup), type)
        self.lookups.append(lookup)
        return Ask(len(self.lookups) - 1, type)


@dataclass(frozen=True)
class Sets:
    """The grouping sets of a statement: its dimensions, those of each set, the slot that says which set a row is of."""

    dimensions: tuple[Expr, ...]
    sets: tuple[tuple[int, ...], ...]
    slot: Slot


@dataclass(frozen=True)
class Scope:
    """The names that are known. `slots` are aggregates by their text; None: aggregates are not allowed, and why."""

    catalog: Catalog
    sources: tuple[Source, ...] = ()
    registry: Registry = field(default_factory=Registry)
    context: ContextInfo | None = None
    slots: Mapping[str, Slot] | None = None
    no_aggregates: str = "here"
    outer: int = 0
    """The first source of the innermost select; those before belong to the selects around it."""
    locals: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    declared: Mapping[str, Declaration] = field(default_factory=dict[str, Declaration])
    parameters: Mapping[str, Any] | Sequence[Any] = ()
    names: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    """Names of one place only: the counters of an output, the built-in values of a window's expression."""
    access: bool = True
    sets: Sets | None = None
    """The grouping sets of the statement."""
    filling: bool = False
    """Whether the aggregates are those of a table, which keeps what they hold also without a window."""

    def fields(self, name: str) -> list[Field]:
        """The fields of that name: those of the innermost select, else of the ones around it."""
        for places in (range(self.outer, len(self.sources)), range(self.outer)):
            found = [self.field(place, name) for place in places if name in self.sources[place].type.fields]
            seen = [field for field in found if not self.sources[field.input].hidden]
            if found:
                return seen or found
        return []

    def field(self, place: int, name: str) -> Field:
        """A field of a source."""
        source = self.sources[place]
        return Field(place, source.type.index[name], source.type.fields[name], source.optional)

    def source(self, name: str) -> int | None:
        """The source of that name, or else of that type: of the innermost select, then of the ones around it."""
        for places in (range(self.outer, len(self.sources)), range(self.outer)):
            for names in ("name", "stream"):
                for place in reversed(places):
                    if getattr(self.sources[place], names) == name:
                        return place
        return None

    def row(self, place: int) -> RowOf:
        """The row of a source."""
        return RowOf(place, self.sources[place].type.data_type)

    def declaration(self, name: str) -> Declaration | None:
        """A declared expression."""
        return self.declared.get(name) or self.catalog.expressions.get(name)


def in_context(info: StoreInfo, name: str, at: Node, scope: Scope, only: bool = False) -> None:
    """Raise PlanError for a store of another context; `only`: also for one without a context in a statement with one."""
    own = scope.context.name if scope.context is not None else None
    if info.context is not None and info.context != own:
        raise problem(f"`{name}` is in context {info.context}", at, f"context {info.context} …")
    if only and info.context != own:
        raise problem(f"`{name}` is in no context", at, "leave the context out, or create it in this one too")


def variable_of(name: str, at: Node, scope: Scope) -> VariableInfo:
    """A variable that is known. Raises PlanError for one of another context."""
    info = scope.catalog.variables[name]
    if info.context is not None and (scope.context is None or scope.context.name != info.context):
        raise problem(f"`{name}` is in context {info.context}", at, f"context {info.context} …")
    return info


def walk(node: Any) -> Iterable[Node]:
    """A tree and everything inside it, but not the sub-queries."""
    return descendants(node, (Query,))


def is_aggregate(node: Any) -> bool:
    """Whether a call is one of an aggregate function; min and max of several values are not."""
    if not isinstance(node, ex.Call) or node.of is not None or node.name.lower() not in AGGREGATING:
        return False
    plain = [each for each in node.arguments if not isinstance(each, ex.Named)]
    return not (node.name.lower() in ("min", "max") and len(plain) > 1)


def aggregates(nodes: Iterable[Any], scope: Scope, inside: tuple[str, ...] = ()) -> list[ex.Call]:
    """The aggregate calls of expressions, each text once; those of declared expressions as they stand when called.

    `inside` are the declared expressions around. Raises PlanError for one that calls itself.
    """
    found: dict[str, ex.Call] = {}
    for node in nodes:
        known = set[int]()
        for each in walk(node):
            if isinstance(each, ex.Call) and (end := end_of_sorted(each, scope)) is not None:
                found.setdefault(render(end), end)
                known.add(id(each.of))
            elif isinstance(each, ex.Call) and is_aggregate(each):
                if id(each) not in known:
                    found.setdefault(render(each), each)
            elif isinstance(each, (ex.Call, ex.Reference)) and (body := called(each, scope)) is not None:
                if each.name in inside:
                    raise problem(f"the expression `{each.name}` calls itself", each)
                for call in aggregates([body], scope, (*inside, each.name)):
                    found.setdefault(render(call), call)
    return list(found.values())


_ENDS = {
    "firstevent": "minby", "minby": "minby", "firstkey": "minby", "lastevent": "maxby", "maxby": "maxby", "lastkey": "maxby"
}  # fmt: skip


def end_of_sorted(node: ex.Call, scope: Scope) -> ex.Call | None:
    """`sorted(x).firstEvent()` as what it is, `minby(x)`, and `lastEvent` as `maxby(x)`, for which no list is made; and the row of
    which `firstKey` or `lastKey` is a property. None for all else.
    """
    name, of = node.name.lower(), node.of
    if name not in _ENDS or node.arguments or scope.filling:
        return None
    if not isinstance(of, ex.Call) or of.of is not None or of.name.lower() != "sorted" or not windowed(scope):
        return None
    if not of.arguments or (name.endswith("key") and property_of(of, scope) is None):
        return None
    return replace(of, name=_ENDS[name])


def property_of(call: ex.Call, scope: Scope) -> str | None:
    """The only property by which a call sorts; None where it goes by something else or by several."""
    plain = (each for each in call.arguments if not isinstance(each, ex.Named))
    match [each.value if isinstance(each, ex.Sorted) else each for each in plain]:
        case [ex.Reference(name=name)] if name not in scope.locals and len(scope.fields(name)) == 1:
            return name
        case _:
            return None


def windowed(scope: Scope) -> bool:
    """Whether rows leave what aggregates are of."""
    return scope.sources[scope.outer].windowed or len(scope.sources) - scope.outer > 1


def called(node: ex.Call | ex.Reference, scope: Scope) -> ex.Expression | None:
    """What a declared expression says where it is called: its body, with the arguments for its parameters.

    None for what is no call of one, or one with another number of arguments, which is refused where it is lowered.
    """
    if isinstance(node, ex.Reference) and (scope.fields(node.name) or scope.source(node.name) is not None):
        return None  # a property of that name stands before it
    declared = scope.declaration(node.name)
    if declared is None or (declared.alias and isinstance(node, ex.Call)):
        return None
    body, arguments = declared.body, node.arguments if isinstance(node, ex.Call) else ()
    if not isinstance(body, ex.Lambda):
        return None if arguments else body
    if len(body.parameters) != len(arguments):
        return None
    return _substituted(body.body, dict(zip(body.parameters, arguments, strict=True)))


def reads_nothing(node: ex.Call | ex.Reference, body: ex.Expression, scope: Scope) -> None:
    """Raise PlanError where a declared expression without parameters reads a property: it sees none."""
    bound = {name for each in walk(body) if isinstance(each, ex.Lambda) for name in each.parameters}
    for name in {each.name for each in walk(body) if isinstance(each, ex.Reference)} - bound:
        if scope.fields(name) or scope.source(name) is not None:
            what = f"`{node.name}` has no parameters and reads `{name}`"
            raise problem(what, node, f"expression {node.name} {{ x => x.{name} … }}, {node.name}(s)")


def _substituted(node: Any, values: Mapping[str, ex.Expression]) -> Any:
    """A tree with expressions in the places of names; not inside sub-queries, whose names are their own."""
    if isinstance(node, ex.Reference):
        return values.get(node.name, node)
    return with_parts(node, lambda part: _substituted(part, values))


def with_parts(node: Any, change: Callable[[Any], Any]) -> Any:
    """A node, or several, with the nodes directly inside changed; sub-queries stay as they are."""
    if isinstance(node, tuple):
        return tuple(_part(each, change) for each in node)  # pyright: ignore[reportUnknownVariableType]
    changed = {each.name: _part(getattr(node, each.name), change) for each in fields(node) if each.name != "at"}
    return replace(node, **changed)


def _part(part: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(part, tuple):
        return with_parts(part, change)
    return change(part) if isinstance(part, Node) and not isinstance(part, Query) else part


@dataclass(frozen=True)
class Collected:
    """An aggregate call, lowered, and the grouping of its own (None: that of the statement)."""

    text: str
    call: AggregateCall
    keys: tuple[Expr, ...] | None
