"""Selects that events of a pipeline change in several ways, such as joins of a stream's window with a named window: each by
itself, so that such a one says something where it hears the event, and again where it follows the window.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from rollup.engine.index import Test
from rollup.engine.row import Delta, Row, Rows, delta_of
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.pipelines.following import Follow, follow
from rollup.engine.rows.pipelines.steps import Take, of_inputs
from rollup.engine.rows.pipelines.tapes import Tape, TapeOf, Values
from rollup.engine.rows.pipelines.wholly import Whole, tellable
from rollup.engine.rows.plans import Finish, StoreInput, StreamInput
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.selects.rate import Rate
from rollup.engine.rows.selects.selecting import PerRow


def combines(instance: SelectInstance) -> int | None:
    """The input that is the window of a stream, of a join that keeps its rows and a named window's by what they have in common
    and shows each change at once; None for any other join."""
    if not _pairs_at_once(instance):
        return None
    match instance.plan.inputs:
        case (StreamInput(unnest=(), prior=0), StoreInput(condition=None)):
            number = 0
        case (StoreInput(condition=None), StreamInput(unnest=(), prior=0)):
            number = 1
        case _:
            return None
    window = instance.inputs[number].window
    return None if window is None or window.timed else number


def _pairs_at_once(instance: SelectInstance) -> bool:
    """Whether it is a join that keeps its rows by what they have in common and shows each change at once."""
    plan, kind = instance.plan, instance.kind
    if instance.pairs is None or plan.lookups or plan.own_inputs or plan.target is not None:
        return False
    return plan.rate == Rate() and plan.finish == Finish() and isinstance(kind, PerRow) and kind.values_of is not None


def pairs_events(instance: SelectInstance) -> bool:
    """Whether it is such a join of the windows of streams, none of which lets rows out by the clock or says that it has none."""
    if not _pairs_at_once(instance):
        return False
    return all(
        isinstance(state.spec, StreamInput)
        and not state.spec.unnest
        and not state.spec.prior
        and (state.window is None or not (state.window.timed or state.window.forces))
        for state in instance.inputs
    )


def pairing_events(instance: SelectInstance, inputs: Mapping[int, Test | None], tape: Tape) -> Take:
    """An event of some inputs of a join that `pairs_events`, each with what an event of it passes."""
    assert instance.pairs is not None
    change, combinations, leaves = follow(instance, tape), instance.pairs.change, instance.plan.tells_what_leaves
    clock, enters = instance.environment.clock, {number: _entering(instance, number) for number in inputs}

    def hear(place: int, row: Row, numbers: Sequence[int]) -> None:
        rows, now = (row,), clock.now
        new, old = combinations({number: enters[number](rows, now) for number in numbers}, leaves)
        if new or old:
            change(place, new, old)

    return of_inputs({number: inputs[number] for number in sorted(inputs, reverse=True)}, hear)


def _entering(instance: SelectInstance, number: int) -> Callable[[Sequence[Row], int], Delta]:
    window = instance.inputs[number].window
    return (lambda rows, now: delta_of((rows, (), False))) if window is None else window.enter


def combining(instance: SelectInstance, number: int, tape: Tape) -> Follow:
    """A change of one input of a join that `combines`."""
    change, pairs, leaves = follow(instance, tape), instance.pairs, instance.plan.tells_what_leaves
    assert pairs is not None
    combinations = pairs.change

    def changed(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        new, old = combinations({number: delta_of((_sole(came), _sole(left), False))}, leaves)
        return change(place, new, old) if new or old else ()

    return changed


def _sole(found: Sequence[Rows]) -> list[Row]:
    return [row for (row,) in found if row is not None]


class Apart:
    """The joins of a pipeline that `combines`, and the selects that do all by themselves. As one who follows a window each needs
    a place of its own, since its only tape stands where it hears events, and so do those who follow after it. `times`: the
    instant of each place."""

    def __init__(self, times: list[int], tape_of: TapeOf = Tape) -> None:
        self._times, self._tape_of = times, tape_of
        self._tapes: dict[Instance, Tape] = {}
        self._whole: dict[Instance, Whole] = {}
        self.routed: Callable[[SelectInstance, Follow], Follow | None] = lambda instance, change: None
        """A select that follows a window and inserts what it shows; None where it cannot be told so."""
        self.followed: set[Instance] = set()
        """Those that have followed a window before it was known whether they hear events."""

    def heard(self, instance: Instance, tape: Tape) -> None:
        """One who hears events has a tape."""
        self._tapes[instance] = tape

    @property
    def whole(self) -> Collection[Whole]:
        """Those that do all by themselves."""
        return self._whole.values()

    def by_itself(self, instance: SelectInstance) -> Whole | None:
        """One who has a tape, as one that does all by itself; None where it does more than to deliver."""
        if instance not in self._whole and tellable(instance):
            self._whole[instance] = Whole(instance, self._tapes[instance], self._times)
        return self._whole.get(instance)

    def following(self, instance: SelectInstance, numbers: Sequence[int], tapes: list[Tape]) -> Follow | None:
        """What one does that follows a window, with a tape where it has none yet; None where it does more than to deliver."""
        number = combines(instance)
        if number is None and not tellable(instance):
            return None
        tape = self._tapes.get(instance)
        if tape is None:
            tape = self._tapes[instance] = self._tape_of(instance.name)
            tapes.append(tape)
            self.followed.add(instance)
        if number is not None:
            return combining(instance, 1 - number, tape)
        whole = self.by_itself(instance)
        return None if whole is None else whole.following(numbers)

    def at_its_own(self, change: Follow) -> Follow:
        """The same at a place of its own."""
        times = self._times

        def changed(_: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
            times.append(times[-1])
            return change(len(times) - 1, came, left)

        return changed
