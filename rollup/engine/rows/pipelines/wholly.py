"""Selects that do in a pipeline what they do without one, whatever that is: what they deliver goes from there onto a tape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rollup.engine.index import Test
from rollup.engine.row import Delta, Rows
from rollup.engine.rows.acting import OnSelectInstance
from rollup.engine.rows.pipelines.following import Follow
from rollup.engine.rows.pipelines.steps import Take, of_inputs
from rollup.engine.rows.pipelines.tapes import Tape, Values
from rollup.engine.rows.plans import StreamInput
from rollup.engine.rows.select import SelectInstance


def tellable(instance: SelectInstance) -> bool:
    """Whether all that a select does is to deliver rows: none go elsewhere, and it never says that there are none."""
    plan = instance.plan
    if isinstance(instance, OnSelectInstance) or plan.target is not None or plan.into is not None:
        return False
    if plan.rate.when is not None or (plan.rate.limited and plan.finish.limit is not None):
        return False
    return not any(
        (isinstance(state.spec, StreamInput) and state.spec.unnest)
        or (state.window is not None and state.window.forces)
        for state in instance.inputs
    )


class Whole:
    """Such a select; `times`: the instant of each place. What it delivers for one change is one delivery."""

    def __init__(self, instance: SelectInstance, tape: Tape, times: list[int]) -> None:
        self.instance, self._runner, self._note, self._times = instance, instance.runner, tape.note, times
        self.order, self.watched = instance.order, instance.watched

    @property
    def due(self) -> int | None:
        """When its windows let rows out."""
        return self.instance.due_window

    @property
    def timed(self) -> bool:
        """Whether it has windows that let rows out by the clock."""
        return self.instance.has_timed_windows

    def fire(self, now: int) -> None:
        """They do, at a place of its own."""
        self._times.append(now)
        self._told(len(self._times) - 1, self.instance.fire, self.instance.window_phase, now)

    def taking(self, inputs: Mapping[int, Test | None]) -> Take:
        """An event of some of the inputs, each with what an event of it passes."""
        told, receive = self._told, self.instance.receive
        return of_inputs(inputs, lambda place, row, numbers: told(place, receive, numbers, row))

    def following(self, numbers: Sequence[int]) -> Follow:
        """A change of a named window that some of the inputs are."""
        followed = self.instance.followed

        def change(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
            new, old = [row for (row,) in came if row is not None], [row for (row,) in left if row is not None]
            self._told(place, followed, numbers, Delta(new, old))
            return ()

        return change

    def _told(self, place: int, work: Callable[..., Any], *given: Any) -> None:
        begin = len(self._runner.deliveries)
        try:
            work(*given)
        finally:
            if len(self._runner.deliveries) > begin:
                self._noted(place, begin)

    def _noted(self, place: int, begin: int) -> None:
        """What has been delivered from a place among the deliveries on goes onto the tape."""
        deliveries = self._runner.deliveries
        for _, _, delta in deliveries[begin:]:
            for row in delta.new:
                self._note((place, 1, row.values))
            for row in delta.old:
                self._note((place, -1, row.values))
        del deliveries[begin:]
