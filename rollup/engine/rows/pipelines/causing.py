"""What an event of a pipeline, or a row that leaves a named window by the clock, puts on its way to streams and named windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from rollup.engine.row import Row, Rows
from rollup.engine.rows.acting import SplitInstance
from rollup.engine.rows.pipelines.acting import Telling
from rollup.engine.rows.pipelines.following import Follow, OneByOne
from rollup.engine.rows.pipelines.steps import Take, Told
from rollup.engine.rows.pipelines.tapes import Tape, Values
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.selects.selecting import PerRow

Waiting = deque[tuple[Take, Row]]
"""Rows on their way, and what is done with each."""


Put = Callable[[Row], None]
"""A row is on its way."""
Branch = tuple[Callable[..., Any], Callable[..., Sequence[Any]], Put | None]
"""Whether an event goes there, as which values, and where that is; None: where nobody hears of it."""


def _dropping(inserts: Waiting, waiting: Waiting, telling: Telling) -> Callable[[], None]:
    """What still waits when something was refused is dropped."""

    def drop() -> None:
        telling.refused()
        inserts.clear()
        waiting.clear()

    return drop


def draining(inserts: Waiting, waiting: Waiting, telling: Telling, times: list[int]) -> Callable[[int], None]:
    """What is on its way, until nothing more is; each row has a place, for its deliveries are its own."""
    changed, tell, drop = telling.waiting, telling.now, _dropping(inserts, waiting, telling)

    def drain(place: int) -> None:
        try:
            if changed and not inserts:
                tell()
            while queue := inserts or waiting:
                work, each = queue.popleft()
                times.append(times[place])
                work(len(times) - 1, each)
                if changed:
                    tell()
        except BaseException:
            drop()
            raise

    return drain


def with_what_it_causes(take: Take, inserts: Waiting, waiting: Waiting, telling: Telling, times: list[int]) -> Take:
    """An event, then what it has put on its way."""
    unheard, drain = telling.unheard, draining(inserts, waiting, telling, times)
    drop = _dropping(inserts, waiting, telling)

    def whole(place: int, row: Row) -> bool:
        try:
            if not take(place, row):
                return False
        except BaseException:
            drop()
            raise
        drain(place)
        if unheard:
            unheard.clear()
        return True

    return whole


def putting(waiting: Waiting, take: Take) -> Put:
    """How a row is put on its way."""
    append = waiting.append
    return lambda row: append((take, row))


def routed(instance: SelectInstance, change: Follow, put: Put, tape: Tape | None = None) -> OneByOne:
    """A select whose rows go on; those that are events themselves go as these where its `tape` is given."""
    plan, make = instance.plan, instance.runner.row
    target, shown = plan.target, plan.projection
    assert target is not None
    same = target.columns == tuple(range(len(plan.type.fields)))
    of: Callable[[Values], Sequence[Any]] = tuple if same else target.of

    def changed(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        found = change(place, came, left)
        for values in found:
            put(make(of(values)))
        return found

    def as_it_is(place: int, r: Rows) -> None:
        (row,) = r
        if row is not None and tape is not None:
            tape.note((place, 1, row.values))
            put(row)

    found = OneByOne.of(changed)
    if (
        tape is not None
        and same
        and shown.whole
        and shown.having is None
        and plan.where is None
        and isinstance(instance.kind, PerRow)
    ):
        return OneByOne(changed, as_it_is, found.leave)
    return found


def splitting(
    instance: SplitInstance,
    branches: Sequence[Branch],
    tape: Tape,
) -> Take:
    """The branches in their order; what none takes goes to the listeners."""
    e, make, every, note = instance.environment, instance.runner.row, instance.plan.every, tape.note

    def take(place: int, row: Row) -> bool:
        r, taken = (row,), False
        for where, columns, put in branches:
            if where(r, (), e):
                made, taken = make(columns(r, (), e)), True
                if put is not None:
                    put(made)
                if not every:
                    return True
        if not taken:
            note((place, 1, row.values))
        return True

    return take


def entering(into: Told, telling: Telling) -> Take:
    """A row into a named window, and all who follow it, unless others are told before them."""
    waiting, come = telling.waiting, into.come

    def take(place: int, row: Row) -> bool:
        if waiting:
            telling.later(into, into.change(place, (row,), ()))
        else:
            come(place, row)
        return True

    return take
