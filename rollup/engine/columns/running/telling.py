"""What a batch brought, in one order: deliveries of rows beside rows of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rollup.core.errors import RollupError
from rollup.engine.columns.cores.batches import Output
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.running.inserting import Path
from rollup.engine.rows.plans import Emitted
from rollup.engine.rows.runner import Delivery
from rollup.engine.timers import Phase

Place = tuple[int, ...]
"""Before the event 2n or at it 2n + 1; the instant; before an event the phase of the timer; the statement's place among all.
What an event has caused by inserts comes behind it: its path, then the statement's place."""

_ORDERS = 32
"""So many bits hold a statement's place among all."""


@dataclass(frozen=True)
class Heap:
    """What some statements brought for a batch; `output.statement` is the place of a row's statement in `names`.

    `orders`: the statements' places among all. `path`: that of the events it is about.
    `phase`: when, at one instant, what the clock brings comes. `context`: the place of the context among all.
    """

    names: tuple[str, ...]
    output: Output
    orders: tuple[int, ...]
    path: Path
    phase: Phase = Phase.WINDOW
    context: int = 0

    def shared(self, made: Emitted, what: Emitted) -> Heap:
        """Those that are `what` of the rows that were `made`."""
        return replace(self, output=self.output.shared(made, what))

    def deliveries(self, times: Ints) -> Iterator[tuple[Place, Any]]:
        """Each delivery as statement, instant, what comes and what leaves, with its place."""
        of = self.output.statement
        if of is None:
            for (at, event, part, early), new, old in self.output.placed():
                of_context = (self.context, part) if early else ()
                yield self._place(times, at, event, self.orders[0], of_context), (self.names[0], at, new, old)
        else:
            for (at, event, new, old), place in zip(self.output.deliveries(True), of.tolist(), strict=True):
                yield self._place(times, at, event, self.orders[place]), (self.names[place], at, new, old)

    def _place(self, times: Ints, at: int, event: int, order: int, of_context: Place = ()) -> Place:
        """Where a delivery stands; of a partition that begins or ends, the place of the context and of it among others."""
        if event < 0:
            return *timer_place(times, at, Phase.CONTEXT if of_context else self.phase), *of_context, order
        if of_context:
            return 2 * event + 1, at, *of_context, order
        if not self.path:
            return (2 * event + 1, at, self.context, order) if event in self._begins else (2 * event + 1, at, order)
        return *(int(each[event]) for each in self.path), order

    @cached_property
    def _begins(self) -> frozenset[int]:
        """The events with which partitions begin: those who are in one are told of it by the context, before all others."""
        return frozenset(() if self.output.begins is None else self.output.begins.tolist())

    @property
    def row_orders(self) -> Ints:
        """Where each row of the one statement is among those that an event makes."""
        order, output = self.orders[0], self.output
        found = np.full(output.rows, order << _ORDERS)
        early = output.early if output.begins is None else np.isin(output.event, output.begins)
        if early is not None:
            found[early] = (self.context << _ORDERS) + order
        return found

    @cached_property
    def concerned(self) -> tuple[str, ...]:
        """The statements that have rows."""
        of = self.output.statement
        return self.names if of is None else tuple(self.names[place] for place in np.unique(of).tolist())

    def parts(self) -> Iterator[tuple[str, Output]]:
        """The rows of each statement that has some."""
        of, output = self.output.statement, self.output
        if of is None:
            yield self.names[0], output
            return
        order = np.argsort(of, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(of[order])) + 1):
            yield self.names[int(of[places[0]])], replace(output.at_places(places), statement=None)


@dataclass(frozen=True)
class Told:
    """What a batch brought: the deliveries of rows, each with its place in the batch, and the heaps of columns.

    `problem`: what was refused in the middle, at the event `stopped`.
    """

    rows: list[tuple[Place, Delivery]]
    heaps: list[Heap]
    times: Ints
    problem: RollupError | None = None
    stopped: int = -1

    def merged(self, heaps: Sequence[Heap]) -> list[Any]:
        """The deliveries of rows and of those heaps in order: by instant and event; at one of them, by deployment."""
        return [each for _, each in self.placed(heaps)]

    def placed(self, heaps: Sequence[Heap]) -> list[tuple[Place, Any]]:
        """The same, each with its place."""
        found: list[tuple[Place, Any]] = list(self.rows)
        for heap in heaps:
            found += heap.deliveries(self.times)
        if heaps:
            found.sort(key=lambda each: each[0])
        return found


def timer_place(times: Ints, at: int, phase: Phase) -> Place:
    """Where what the clock brings stands: before the first event of its instant, windows before outputs."""
    return 2 * int(np.searchsorted(times, at)), at, phase
