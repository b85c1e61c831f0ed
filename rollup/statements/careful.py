"""A step that refuses the events with which a component cannot compute, each alone: the others are what they would be without.

However a batch is cut, what comes of it is the same, so such an event is found by halves; where nothing is wrong, this costs
nothing. A component raises in the step that takes an event what it would raise later because of it (an instant that ends, a
window that closes): see `rollup.statements.component.Component`.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from rollup.core.errors import QueryError, RollupError
from rollup.engine.state import State
from rollup.statements.component import ELSEWHERE, Component, Event, Refused, Taken

_OF_VALUES = (QueryError, ArithmeticError, pa.ArrowInvalid, duckdb.DataError)
"""What is raised where a value cannot be computed with."""


def careful_step(
    component: Component, state: State | None, events: Sequence[Event], stops: bool = False
) -> tuple[State | None, Taken]:
    """A step; `stops`: what cannot be computed with is an error. Raises what is wrong where it is not an event by itself."""
    try:
        return component.step(state, events)
    except _OF_VALUES as problem:
        if stops:
            raise
        if len(events) == 1:
            (event,) = events
            time = event._replace(stream=ELSEWHERE, values=())
            if state is not None and _fails(component, state, time) and not _fails(component, None, event):
                raise  # it is what is there without the event: each one from now on would be refused
            return state, Taken(refused=[Refused(event, _said(problem))] if event.stream != ELSEWHERE else [])
    half, taken = len(events) // 2, list[Taken]()
    for part in (events[:half], events[half:]):
        state, found = careful_step(component, state, part)
        taken.append(found)
    first, second = taken
    return state, Taken(
        [*first.events, *second.events], [*first.refused, *second.refused], first.beyond + second.beyond
    )


def _fails(component: Component, state: State | None, event: Event) -> bool:
    """Whether a step over an event fails."""
    try:
        component.step(state, [event])
    except _OF_VALUES:
        return True
    return False


def _said(problem: Exception) -> str:
    """What is wrong with a value, in one line."""
    known = isinstance(problem, RollupError)
    return str(problem) if known else f"{type(problem).__name__}: {problem}".splitlines()[0]
