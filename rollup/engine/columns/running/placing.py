"""Which of a component's statements run over columns, the first reason against each of the others, and what belongs together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.planning import core_of
from rollup.engine.columns.running.chains import Chains, Link, joined
from rollup.engine.columns.running.inserting import inserting
from rollup.engine.columns.running.uses import marked, mentioned, streams_of, uses_of
from rollup.engine.columns.running.varying import Steadiness, against_varying, variables_in
from rollup.engine.rows.actions import StreamUpdate
from rollup.engine.rows.component import Component, Deployed
from rollup.engine.rows.plans import (
    Select,
    Target,
)
from rollup.engine.types import RowType

TypeOf = Callable[[str], RowType | None]


@dataclass(frozen=True)
class Placed:
    """Where a statement runs. Statements of one `component` share routes, stores, variables or a context.

    `program`: on rows, but for large batches, which go through the program of all statements.
    """

    statement: str
    component: int
    executor: Literal["rows", "columns", "program"]
    reason: str | None = None
    """The first reason against columns."""


class Placing:
    """The cores of a component's statements; worked out once a statement, and again when others begin or end. `against`: why
    one stays on rows that has run there so far.
    """

    def __init__(self, component: Component, type_of: TypeOf, against: Callable[[str], str | None]) -> None:
        self._component, self._type_of, self._late = component, type_of, against
        self._covered: dict[str, tuple[Any, Core | str]] = {}
        self._uses: dict[str, tuple[Any, frozenset[str]]] = {}
        self._seen = -1
        self._chains, self._steadiness = Chains({}), Steadiness(component, {})
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
        if isinstance(plan, StreamUpdate):
            return "a change of events"
        if not isinstance(plan, Select):
            return "a store" if plan is None else f"the statement {type(plan).__name__}"
        streams = streams_of(plan)
        if not streams:
            return "an input that is not a stream"
        unsent = [stream for stream in streams if self._type_of(stream) is None]
        if unsent:
            return f"`{unsent[0]}`, whose events nobody sends"
        reason = against_varying(plan, self._component.runner.environment.variables)
        if reason is not None:
            return reason
        context = None if deployed.context is None else self._component.contexts[deployed.context]
        if context is not None and variables_in(context.context):
            return "a variable in a context"
        reads = self.reads(deployed)
        core = core_of(replace(plan, emitted=plan.made), reads, None if context is None else context.context)
        if plan.target is None or isinstance(core, str):
            return core
        into = None if plan.target.name in self._component.stores else self._type_of(plan.target.name)
        return inserting(plan, core, into) or core

    def against(self, name: str) -> str | None:
        """The first reason against running a statement over columns; None when it is covered."""
        self._look()
        reason = self._on_rows(name)
        if reason is not None:
            return reason
        plan = self._component.statements[name].plan
        into = plan.stream if isinstance(plan, StreamUpdate) else None if (to := self.target(name)) is None else to.name
        concerned = (*streams_of(plan), *(() if into is None else (into,)))
        return next((reason for stream in concerned if (reason := self.disturbed(stream)) is not None), None)

    def target(self, name: str) -> Target | None:
        """Where a statement inserts."""
        plan = self._component.statements[name].plan
        return plan.target if isinstance(plan, Select) else None

    def after(self, stream: str) -> tuple[str, ...]:
        """A stream and those that its events reach over columns, each behind all that feed it."""
        self._look()
        return self._chains.after(stream)

    def reads(self, deployed: Deployed) -> dict[str, RowType]:
        """The streams that a statement reads, with their types."""
        found = {stream: self._type_of(stream) for stream in streams_of(deployed.plan)}
        return {stream: kinds for stream, kinds in found.items() if kinds is not None}

    def disturbed(self, stream: str) -> str | None:
        """Why the events of a stream must come one by one: statements insert or change some."""
        self._look()
        return self._chains.against(stream)

    def readers(self, stream: str) -> list[str]:
        """The statements that read a stream, by deployment, and that run over columns."""
        self._look()
        return [name for name in self._readers.get(stream, ()) if self.against(name) is None]

    def _look(self) -> None:
        if self._seen == self._component.changed:
            return
        self._seen = self._component.changed
        self._readers = {}
        uses = {name: self._used(name, each) for name, each in self._component.statements.items()}
        self._steadiness = Steadiness(self._component, uses)
        self._covered = {name: each for name, each in self._covered.items() if name in self._component.statements}
        for name, deployed in self._component.statements.items():
            for stream in streams_of(deployed.plan):
                self._readers.setdefault(stream, []).append(name)
        self._chains = Chains({})  # none while cores are looked for
        self._chains = Chains(self._links(uses))

    def _links(self, uses: Mapping[str, frozenset[str]]) -> dict[str, Link]:
        """The statements that insert, and those that hear what is inserted; a context hears what begins and ends it."""
        fed = marked(chain.from_iterable(uses.values()), "> ")
        plain = (
            used for name, used in uses.items() if not isinstance(self._component.statements[name].plan, StreamUpdate)
        )
        inserted = marked(chain.from_iterable(plain), "> ")
        ways = {name: Link(marked(used, "< "), marked(used, "> "), None) for name, used in uses.items()}
        links = {
            name: replace(way, reason=self._against_link(name, way, inserted, ways))
            for name, way in ways.items()
            if way.feeds or way.hears & fed
        }
        for name, context in self._component.contexts.items():
            hears = marked(mentioned(context.context), "< ") & fed
            if hears and context.statements:
                links[f"context {name}"] = Link(hears, frozenset(), "a context that hears it")
        return links

    def _against_link(self, name: str, way: Link, inserted: frozenset[str], ways: Mapping[str, Link]) -> str | None:
        """The first reason against one of those that hang together; `ways`: those of all statements."""
        return self._on_rows(name) or self._beyond(name, way.hears & inserted) or self._out_of_turn(name, way, ways)

    def _on_rows(self, name: str) -> str | None:
        core = self.core(name)
        return core if isinstance(core, str) else self._steadiness.against(name) or self._late(name)

    def _beyond(self, name: str, inserted: frozenset[str]) -> str | None:
        """One event may insert what a statement refuses, and must then be refused by itself."""
        return _against_refusing(self.core(name)) if inserted else None

    def _out_of_turn(self, name: str, way: Link, ways: Mapping[str, Link]) -> str | None:
        """What the clock brings one who hears of the clock too must have in the order of their timers."""
        core = self.core(name)
        if isinstance(core, str) or not way.feeds or not core.clock_brings:
            return None
        chains = Chains(ways)
        reached = {stream for fed in way.feeds for stream in chains.after(fed)}
        hearing = [self.core(other) for other, each in ways.items() if other != name and each.hears & reached]
        if any(isinstance(each, str) or each.clock_concerns for each in hearing):
            return "insert into, of rows that the clock brings, for one who hears of the clock too"
        return None

    def _used(self, name: str, deployed: Deployed) -> frozenset[str]:
        known = self._uses.get(name)
        if known is None or known[0] is not deployed.plan:
            known = self._uses[name] = (deployed.plan, frozenset(uses_of(deployed)))
        return known[1]

    def placed(self) -> list[Placed]:
        """Where each statement runs, in order of deployment."""
        self._look()
        groups = joined({n: self._names(n, d) for n, d in self._component.statements.items()})
        numbers: dict[str, int] = {}
        found: list[Placed] = []
        for name in self._component.statements:
            if self._component.is_store(name):
                continue
            number = numbers.setdefault(groups[name], len(numbers) + 1)
            reason = self.against(name)
            found.append(Placed(name, number, "rows" if reason else "columns", reason))
        return found

    def _names(self, name: str, deployed: Deployed) -> set[str]:
        """What a statement has in common with those of its component."""
        used = self._used(name, deployed)
        own = {use.removeprefix("> ") for use in used if not use.startswith("< ")}
        return own | (marked(used, "< ") & self._chains.fed)


def _against_refusing(core: Core | str) -> str | None:
    """Why a statement cannot hear what others insert in the midst of a batch, whose events come as they are."""
    if isinstance(core, str):
        return None
    if core.matches:
        return "a pattern over what is inserted"
    return None if core.needed is None else "a window by a time over what is inserted"
