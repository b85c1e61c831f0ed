"""A step that refuses the events with which a component cannot compute, each alone: the others are what they would be without.

However a batch is cut, what comes of it is the same, so such an event is found by halves; where nothing is wrong, this costs
nothing. A component raises in the step that takes an event what it would raise later because of it (an instant that ends, a
window that closes): see `rollup.statements.component.Component`.

What several events make together is no fault of the last one: a sum of a window that is beyond the type that a query casts
it to is null, counted and said, where the component can do that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb
import pyarrow as pa
import structlog

from rollup.core.errors import QueryError, RollupError
from rollup.engine.state import State
from rollup.statements.component import ELSEWHERE, Component, Event, Forgiving, Refused, Taken, together

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
            if state is not None and not _fails(component, None, event):
                if (forgiven := _forgiven(component, state, event)) is not None:
                    return forgiven
                if _fails(component, state, event._replace(stream=ELSEWHERE, values=())):
                    raise  # it is what is there without the event: each one from now on would be refused
            return state, Taken(refused=[Refused(event, _said(problem))] if event.stream != ELSEWHERE else [])
    known = _known(component, state, events)
    places = {each.event.key for each in known}
    rest = [event for event in events if event.key not in places]
    half, taken = len(rest) // 2, [Taken(refused=known)]
    for part in (rest,) if known else (rest[:half], rest[half:]):
        state, found = careful_step(component, state, part)
        taken.append(found)
    return state, together(taken)


def _known(component: Component, state: State | None, events: Sequence[Event]) -> list[Refused]:
    """The events that a component knows to have no answer, and that have none alone either."""
    try:
        found = component.forgiven(state, events)[1].refused if isinstance(component, Forgiving) else ()
    except _OF_VALUES:
        return []
    return [each for each in found if _fails(component, None, each.event)]


def _forgiven(component: Component, state: State, event: Event) -> tuple[State | None, Taken] | None:
    """A step over an event in which null is what cannot be computed; None where the component cannot do that."""
    if not isinstance(component, Forgiving):
        return None
    try:
        after, taken, wrong = component.forgiven(state, [event])
    except _OF_VALUES:
        return None
    for reason in wrong:
        structlog.get_logger("rollup").warning("a value that several events make is null", reason=reason)
    return after, replace(taken, refused=(), beyond=taken.beyond + len(wrong))


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
