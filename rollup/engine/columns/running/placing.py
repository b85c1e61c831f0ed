"""Which of a component's statements run over columns, the first reason against each of the others, and what belongs together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from rollup.core.descriptions import descendants
from rollup.engine.columns.cores.batches import Core
from rollup.engine.columns.cores.planning import core_of
from rollup.engine.expressions import Variable
from rollup.engine.rows.component import Component, Deployed
from rollup.engine.rows.patterns.algebra import FilterNode, nodes
from rollup.engine.rows.plans import PatternInput, Select, StoreInput, StreamInput, TableRow, TableTarget, Target
from rollup.engine.types import DataType, RowType

TypeOf = Callable[[str], RowType | None]


@dataclass(frozen=True)
class Placed:
    """Where a statement runs. Statements of one `component` share routes, stores, variables or a context."""

    statement: str
    component: int
    executor: Literal["rows", "columns"]
    reason: str | None = None
    """The first reason against columns."""


class Placing:
    """The cores of a component's statements; worked out once a statement, and again when others begin or end."""

    def __init__(self, component: Component, type_of: TypeOf) -> None:
        self._component, self._type_of = component, type_of
        self._covered: dict[str, tuple[Any, Core | str]] = {}
        self._uses: dict[str, tuple[Any, frozenset[str]]] = {}
        self._seen = -1
        self._fed = set[str]()
        self._readers: dict[str, list[str]] = {}

    def core(self, name: str) -> Core | str:
        """The core that may run a statement, or the first reason against."""
        deployed = self._component.statements[name]
        plan = deployed.plan
        known = self._covered.get(name)
        if known is None or known[0] is not plan:
            known = self._covered[name] = (plan, self._core(deployed))
        return known[1]

    def _core(self, deployed: Deployed) -> Core | str:
        plan = deployed.plan
        if not isinstance(plan, Select):
            return "a store" if plan is None else f"the statement {type(plan).__name__}"
        streams = streams_of(plan)
        if not streams:
            return "an input that is not a stream"
        unsent = [stream for stream in streams if self._type_of(stream) is None]
        if unsent:
            return f"`{unsent[0]}`, whose events nobody sends"
        context = None if deployed.context is None else self._component.contexts[deployed.context]
        if context is not None and len(context.statements) > 1:
            return "a context that other statements share"
        return core_of(plan, self.reads(deployed), None if context is None else context.context)

    def against(self, name: str) -> str | None:
        """The first reason against running a statement over columns; None when it is covered."""
        core = self.core(name)
        if isinstance(core, str):
            return core
        streams = streams_of(self._component.statements[name].plan)
        return next((reason for stream in streams if (reason := self.disturbed(stream)) is not None), None)

    def reads(self, deployed: Deployed) -> dict[str, RowType]:
        """The streams that a statement reads, with their types."""
        found = {stream: self._type_of(stream) for stream in streams_of(deployed.plan)}
        return {stream: kinds for stream, kinds in found.items() if kinds is not None}

    def disturbed(self, stream: str) -> str | None:
        """Why the events of a stream must come one by one: they are changed on their way, or other statements insert some."""
        self._look()
        if self._component.runner.changes.get(stream):
            return f"`{stream}`, whose events a statement changes"
        return f"`{stream}`, into which a statement inserts" if stream in self._fed else None

    def readers(self, stream: str) -> list[str]:
        """The statements that read a stream, by deployment, and that run over columns."""
        self._look()
        return [name for name in self._readers.get(stream, ()) if self.against(name) is None]

    def _look(self) -> None:
        if self._seen == self._component.changed:
            return
        self._seen = self._component.changed
        self._readers, self._fed = {}, set[str]()
        self._covered = {name: each for name, each in self._covered.items() if name in self._component.statements}
        for name, deployed in self._component.statements.items():
            for stream in streams_of(deployed.plan):
                self._readers.setdefault(stream, []).append(name)
            self._fed |= {use.removeprefix("> ") for use in self._used(name, deployed) if use.startswith("> ")}

    def _used(self, name: str, deployed: Deployed) -> frozenset[str]:
        known = self._uses.get(name)
        if known is None or known[0] is not deployed.plan:
            known = self._uses[name] = (deployed.plan, frozenset(_uses(deployed)))
        return known[1]

    def placed(self) -> list[Placed]:
        """Where each statement runs, in order of deployment."""
        self._look()
        groups = _joined({n: self._names(n, d) for n, d in self._component.statements.items()})
        numbers: dict[str, int] = {}
        found: list[Placed] = []
        for name in self._component.statements:
            if name.startswith("store "):
                continue
            number = numbers.setdefault(groups[name], len(numbers) + 1)
            reason = self.against(name)
            found.append(Placed(name, number, "rows" if reason else "columns", reason))
        return found

    def _names(self, name: str, deployed: Deployed) -> set[str]:
        """What a statement has in common with those of its component."""
        used = {use.removeprefix("> ") for use in self._used(name, deployed)}
        return used | (self._fed & set(streams_of(deployed.plan)))


def streams_of(plan: object) -> tuple[str, ...]:
    """The streams that a statement reads, those of its sub-queries last; none when it also reads a store."""
    match plan:
        case Select(inputs=(PatternInput(pattern=pattern),), own_inputs=()):
            return tuple(dict.fromkeys(node.stream for node in nodes(pattern.root) if isinstance(node, FilterNode)))
        case Select(inputs=inputs, own_inputs=own):
            streams = [each.filter.stream for each in (*inputs, *own) if isinstance(each, StreamInput)]
            return tuple(dict.fromkeys(streams)) if len(streams) == len(inputs) + len(own) else ()
        case _:
            return ()


def _uses(deployed: Deployed) -> Iterator[str]:
    """What a statement shares with others: stores, variables, its context; `> S` for a stream that it inserts into."""
    if deployed.context is not None:
        yield f"context {deployed.context}"
    if deployed.store is not None:
        yield deployed.store
    for part in descendants(deployed.plan, (DataType, RowType)):
        match part:
            case StoreInput(store=name) | TableRow(table=name) | TableTarget(table=name):
                yield name
            case Variable(name=name):
                yield f"variable {name}"
            case Target(name=name):
                yield f"> {name}"
            case _:
                for mark, what in (("> ", "target"), ("", "store"), ("variable ", "variable")):
                    if isinstance(name := getattr(part, what, None), str):
                        yield mark + name


def _joined(names: dict[str, set[str]]) -> dict[str, str]:
    """For each statement the first one of its group: those that have a name in common, directly or over others."""
    leader: dict[str, str] = {name: name for name in names}

    def first(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    owners: dict[str, str] = {}
    for statement, used in names.items():
        for each in used:
            leader[first(statement)] = first(owners.setdefault(each, statement))
    return {name: first(name) for name in names}
