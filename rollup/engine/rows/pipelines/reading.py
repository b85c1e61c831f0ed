"""Selects of a pipeline that read more than what changes: sub-queries, rows of tables, and joins of events with a store.

What they look at is as it is when the event comes to them: what a named window's followers do not know yet, nobody finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rollup.engine.row import Row, Rows, delta_of
from rollup.engine.rows.inputs import InputState
from rollup.engine.rows.instance import plain
from rollup.engine.rows.pipelines.following import Follow, follow
from rollup.engine.rows.pipelines.steps import Take
from rollup.engine.rows.pipelines.tapes import Tape, Values
from rollup.engine.rows.plans import Arriving, ContextValue, Previous, StoreInput, StreamInput, Subquery, TableRow
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.selects.selecting import PerRow


def looks(instance: SelectInstance) -> bool:
    """Whether all that a select looks up is there without being told of it, but what its sub-queries keep of events."""
    window = instance.inputs[0].window
    for each in instance.plan.lookups:
        match each:
            case Subquery() | TableRow() | ContextValue() | Arriving():
                pass
            case Previous() if window is not None:
                pass
            case _:
                return False
    return all(_asked(state) for state in instance.inputs[len(instance.plan.inputs) :])


def _asked(state: InputState) -> bool:
    """Whether the input of a sub-query is a store, or a window that goes by nothing but the events that come."""
    match state.spec:
        case StoreInput(prior=0):
            return True
        case StreamInput(unnest=(), prior=0):
            return state.window is None or not state.window.timed
        case _:
            return False


def silent(instance: SelectInstance, number: int) -> bool:
    """Whether events of an input of a join change nothing but its window, at which others' rows look."""
    plan, state = instance.plan, instance.inputs[number]
    if (
        plan.join is None
        or plan.join.only in (None, number)
        or instance.pairs is not None
        or instance.seeking is not None
    ):
        return False
    return state.window is not None and not state.window.timed and not state.remembers


def keeping(instance: SelectInstance, number: int) -> Take:
    """An event into the window of a sub-query, or of a `silent` input, of which nothing follows."""
    window, clock, keep_up = instance.inputs[number].window, instance.environment.clock, instance.keep_up
    if window is not None and window.admit is not None and not instance.keeps_up(number):
        return _admitted(window.admit)

    def take(place: int, row: Row) -> bool:
        delta = delta_of(((row,), (), False)) if window is None else window.enter((row,), clock.now)
        keep_up(number, delta)
        return True

    return take


def _admitted(admit: Callable[[Row], None]) -> Take:
    def take(place: int, row: Row) -> bool:
        admit(row)
        return True

    return take


def seeks(instance: SelectInstance) -> int | None:
    """The input whose events a join pairs with the rows of a store, each by itself; None for any other join."""
    plan, kind = instance.plan, instance.kind
    if instance.seeking is None or plan.emitted != "new" or not (isinstance(kind, PerRow) and kind.values_of):
        return None
    event = 1 - instance.seeking.store
    return event if plain(plan.inputs[event]) and not plan.inputs[1 - event].prior else None


def idle(instance: SelectInstance, number: int) -> bool:
    """Whether nothing comes of what a store says that has changed: a join has its rows from elsewhere."""
    return instance.seeking is not None and number == instance.seeking.store and not instance.inputs[number].remembers


def pairing(instance: SelectInstance, tape: Tape) -> Follow:
    """An event with the rows that it finds, for a join that `seeks`."""
    change, pairs = follow(instance, tape), _pairs(instance)

    def changed(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        found = [r for (row,) in came if row is not None for r in pairs(row)]
        return change(place, found, ()) if found else ()

    return changed


def _pairs(instance: SelectInstance) -> Callable[[Row], Sequence[Rows]]:
    seeking = instance.seeking
    assert seeking is not None
    spec = instance.plan.inputs[seeking.store]
    assert isinstance(spec, StoreInput)
    return seeking.finder(instance.store(spec.store) if spec.condition is None else None, instance.held_for)
