"""Selects that do in a pipeline what they do without one, whatever that is: what they deliver goes from there onto a tape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rollup.engine.index import Test
from rollup.engine.row import Delta, Row, Rows
from rollup.engine.rows.acting import OnSelectInstance
from rollup.engine.rows.pipelines.following import Follow
from rollup.engine.rows.pipelines.steps import Take
from rollup.engine.rows.pipelines.tapes import Tape, Values
from rollup.engine.rows.plans import StreamInput
from rollup.engine.rows.select import SelectInstance
from rollup.engine.timers import Phase


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
        self._instance, self._runner, self._note, self._times = instance, instance.runner, tape.note, times
        self.order, self.watched = instance.order, instance.watched

    @property
    def due(self) -> int | None:
        """When its windows let rows out."""
        return self._instance.due_window

    @property
    def timed(self) -> bool:
        """Whether it has windows that let rows out by the clock."""
        return self._instance.has_timed_windows

    def fire(self, now: int) -> None:
        """They do, at a place of its own."""
        self._times.append(now)
        self._told(len(self._times) - 1, partial(self._instance.fire, Phase.WINDOW, now))

    def taking(self, inputs: Mapping[int, Test | None]) -> Take:
        """An event of some of the inputs, each with what an event of it passes. It may be told more than once, each time for one
        input; the first time it is taken for all.
        """
        receive, numbers, last = self._instance.receive, tuple(inputs), Row(0, ())
        runner, noted = self._runner, self._noted

        def take(place: int, row: Row) -> bool:
            begin = len(runner.deliveries)
            try:
                receive(numbers, row)
            finally:
                if len(runner.deliveries) > begin:
                    noted(place, begin)
            return True

        def some(place: int, row: Row) -> bool:
            nonlocal last
            if row is not last:
                last = row
                passed = [number for number, test in inputs.items() if test is None or test(row)]
                self._told(place, partial(receive, passed, row))
            return True

        return some if len(inputs) > 1 and any(test is not None for test in inputs.values()) else take

    def following(self, numbers: Sequence[int]) -> Follow:
        """A change of a named window that some of the inputs are."""
        followed = self._instance.followed

        def change(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
            new, old = [row for (row,) in came if row is not None], [row for (row,) in left if row is not None]
            self._told(place, partial(followed, numbers, Delta(new, old)))
            return ()

        return change

    def _told(self, place: int, work: Callable[[], Any]) -> None:
        begin = len(self._runner.deliveries)
        try:
            work()
        finally:
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
