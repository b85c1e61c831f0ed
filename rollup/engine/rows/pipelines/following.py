"""What a select does with rows that come and rows that leave, in a pipeline. What it makes goes onto its tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rollup.engine.compiling import predicate
from rollup.engine.expressions import Expr
from rollup.engine.row import Rows
from rollup.engine.rows.pipelines.tapes import Tape
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.selects.alone import Alone
from rollup.engine.rows.selects.alone import OfOne as OfOneRow
from rollup.engine.rows.selects.pergroup import After, PerGroup
from rollup.engine.rows.selects.projecting import Step, Values, ValuesOf
from rollup.engine.rows.selects.rates import OfRow
from rollup.engine.rows.selects.selecting import Kind, PerRow, Total
from rollup.engine.rows.stores.named import Observe

Follow = Callable[[int, Sequence[Rows], Sequence[Rows]], Sequence[Values]]
"""Rows that come and rows that leave by the event at a place, each as a row of one input; the values of the rows that are
shown."""
OfOne = Callable[[int, Rows], object]
"""A row that comes or leaves by the event at a place and is all that does."""
OfTwo = Callable[[int, Rows, Rows], object]
"""A row that comes by the event at a place, and one that leaves, and these are all."""


class OneByOne:
    """A `Follow` that is told of a row that comes or leaves alone, or of one that comes as another leaves, as nearly all do,
    without lists of such.
    """

    __slots__ = ("change", "come", "exchange", "leave")

    def __init__(self, change: Follow, come: OfOne, leave: OfOne, exchange: OfTwo | None = None) -> None:
        self.change, self.come, self.leave = change, come, leave
        self.exchange: OfTwo = exchange or (lambda place, r, old: change(place, (r,), (old,)))

    def __call__(self, place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        return self.change(place, came, left)

    @classmethod
    def of(cls, change: Follow) -> OneByOne:
        """Of any."""
        if isinstance(change, cls):
            return change
        return cls(change, lambda place, r: change(place, (r,), ()), lambda place, r: change(place, (), (r,)))


def follow(instance: SelectInstance, tape: Tape) -> Follow:
    """A select whose only input changes, and whose rows leave at once."""
    return of_passing(instance, instance.plan.where, _shown(instance, tape))


def gather(instance: SelectInstance) -> Follow:
    """A select whose only input changes, and whose rows wait until the clock brings an output."""
    outputs, take = instance.outputs, instance.outputs.take

    def told(came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        due = outputs.due
        take(came, left)
        if outputs.due != due:
            instance.ask_timers()
        return ()

    def change(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        return told(came, left) if came or left else ()

    one_by_one = OneByOne(change, lambda place, r: told((r,), ()), lambda place, r: told((), (r,)))
    if (alone := outputs.alone()) is not None:
        one_by_one = _gathering(instance, one_by_one, *alone)
    return of_passing(instance, instance.plan.where, one_by_one)


def _gathering(
    instance: SelectInstance, several: OneByOne, comes: OfRow, leaves: OfRow, moves: Callable[[Rows, Rows], None]
) -> OneByOne:
    """The same where a row that comes or leaves alone touches a group, once the clock of the outputs runs."""
    outputs = instance.outputs

    def come(place: int, r: Rows) -> None:
        if outputs.due is None:
            several.come(place, r)
        else:
            comes(r)

    def leave(place: int, r: Rows) -> None:
        if outputs.due is None:
            several.leave(place, r)
        else:
            leaves(r)

    def exchange(place: int, r: Rows, old: Rows) -> None:
        if outputs.due is None:
            several.exchange(place, r, old)
        else:
            moves(r, old)

    return OneByOne(several.change, come, leave, exchange)


def observing(observe: Observe) -> Follow:
    """What looks at the changes of a store and says nothing."""

    def change(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        new, old = ([row for (row,) in rows if row is not None] for rows in (came, left))
        observe(new, old)
        return ()

    return OneByOne(change, lambda place, r: observe(r, ()), lambda place, r: observe((), r))


def of_passing(instance: SelectInstance, condition: Expr | None, change: Follow) -> Follow:
    """The same with those rows alone that fulfil a condition, where there is one."""
    if condition is None:
        return change
    test, e, leaves = predicate(condition), instance.environment, not instance.plan.comes_alone

    def some(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        e.arriving = True
        came = [r for r in came if test(r, (), e)]
        if left:
            e.arriving = False
            left = [r for r in left if test(r, (), e)] if leaves else ()
        return change(place, came, left) if came or left else ()

    def come(place: int, r: Rows) -> None:
        e.arriving = True
        if test(r, (), e):
            alone.come(place, r)

    def leave(place: int, r: Rows) -> None:
        e.arriving = False
        if leaves and test(r, (), e):
            alone.leave(place, r)

    def exchange(place: int, r: Rows, old: Rows) -> None:
        e.arriving = True
        comes = test(r, (), e)
        e.arriving = False
        if not (leaves and test(old, (), e)):
            if comes:
                alone.come(place, r)
        elif comes:
            alone.exchange(place, r, old)
        else:
            alone.leave(place, old)

    alone = OneByOne.of(change)
    change = alone.change
    return OneByOne(some, come, leave, exchange)


def _shown(instance: SelectInstance, tape: Tape) -> Follow:
    """The rows that a change brings, of those that fulfil the condition."""
    kind, emitted = instance.kind, instance.plan.emitted
    if isinstance(kind, PerRow) and kind.values_of is not None:
        each = _each if emitted == "new" else _each_and_left
        return each(instance, kind.values_of, tape)
    several, made = _of_several(instance, kind, tape), kind.alone()
    return several if made is None else _mostly_alone(instance, made, several, tape)


def _mostly_alone(instance: SelectInstance, made: Alone, several: Follow, tape: Tape) -> Follow:
    """A select of aggregates where nearly always one row comes or leaves."""
    emitted, note = instance.plan.emitted, tape.note
    comes, leaves, sign = emitted != "old", emitted != "new", _sign(instance)

    def alone(of_one: OfOneRow) -> Callable[[int, Rows], Values | None]:
        def one(place: int, r: Rows) -> Values | None:
            shown, gone = of_one(r)
            if comes and shown is not None:
                note((place, 1, shown))
            if leaves and gone is not None:
                note((place, sign, gone))
            return shown

        return one

    def change(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        if len(came) + len(left) != 1:
            return several(place, came, left)
        shown = come(place, came[0]) if came else leave(place, left[0])
        return () if shown is None else (shown,)

    def exchange(place: int, r: Rows, old: Rows) -> None:
        assert of_two is not None
        shown, other = of_two(r, old)
        if shown is not None:
            note((place, 1, shown))
        if other is not None:
            note((place, 1, other))

    of_two, come, leave = made.exchange, alone(made.come), alone(made.leave)
    return OneByOne(change, come, leave, exchange if of_two is not None and emitted == "new" else None)


def _of_several(instance: SelectInstance, kind: Kind, tape: Tape) -> Follow:
    """A select of aggregates, whatever comes and leaves together."""
    emitted, note = instance.plan.emitted, tape.note
    if isinstance(kind, Total) and kind.step is not None and emitted == "new":
        return _total(kind.step, tape)
    if isinstance(kind, PerGroup) and emitted == "new" and (after := kind.values_after()) is not None:
        return _groups(after, tape)
    at_once, comes, leaves, sign = values_at_once(kind), emitted != "old", emitted != "new", _sign(instance)

    def change(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        shown, gone = at_once(came, left)
        if comes:
            for values in shown:
                note((place, 1, values))
        if leaves:
            for values in gone:
                note((place, sign, values))
        return shown

    return change


def _sign(instance: SelectInstance) -> int:
    """What rows that leave are told with."""
    return -1 if instance.plan.emitted == "both" else 1


def values_at_once(
    kind: Kind,
) -> Callable[[Sequence[Rows], Sequence[Rows]], tuple[Sequence[Values], Sequence[Values]]]:
    """The values of the rows that a change makes come and leave."""
    if isinstance(kind, PerRow | PerGroup) and kind.values_at_once is not None:
        return kind.values_at_once

    def values(came: Sequence[Rows], left: Sequence[Rows]) -> tuple[Sequence[Values], Sequence[Values]]:
        shown, gone = kind.at_once(came, left)
        return [row.values for row in shown], [row.values for row in gone]

    return values


def _each(instance: SelectInstance, values_of: ValuesOf, tape: Tape) -> Follow:
    """A select without aggregates: a row for each that comes, nothing for those that leave."""
    e, note = instance.environment, tape.note

    def change(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        e.arriving = True
        shown = [values for r in came if (values := values_of(None, r)) is not None]
        for values in shown:  # once all are made: what cannot make one delivers none
            note((place, 1, values))
        return shown

    def come(place: int, r: Rows) -> None:
        e.arriving = True
        values = values_of(None, r)
        if values is not None:
            note((place, 1, values))

    return OneByOne(change, come, lambda place, r: None, lambda place, r, old: come(place, r))


def _each_and_left(instance: SelectInstance, values_of: ValuesOf, tape: Tape) -> Follow:
    """The same with a row for each that leaves, or with those alone."""
    e, note, comes, sign = instance.environment, tape.note, instance.plan.emitted == "both", _sign(instance)

    def change(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        e.arriving = False
        gone = [values for r in left if (values := values_of(None, r)) is not None]
        e.arriving = True
        shown = [values for r in came if (values := values_of(None, r)) is not None]
        for values in shown if comes else ():
            note((place, 1, values))
        for values in gone:
            note((place, sign, values))
        return shown

    def come(place: int, r: Rows) -> None:
        e.arriving = True
        values = values_of(None, r)
        if values is not None and comes:
            note((place, 1, values))

    def leave(place: int, r: Rows) -> None:
        e.arriving = False
        values = values_of(None, r)
        e.arriving = True
        if values is not None:
            note((place, sign, values))

    return OneByOne(change, come, leave)


def _groups(after: After, tape: Tape) -> Follow:
    """A select of one row a group, as those that a change touches are after it."""
    note = tape.note

    def change(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        shown = after(came, left)
        for values in shown:
            note((place, 1, values))
        return shown

    return change


def _total(step: Step, tape: Tape) -> Follow:
    """A select of one row in all, as it is after each change."""
    note = tape.note

    def change(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        values = step(came, left)
        if values is None:
            return ()
        note((place, 1, values))
        return (values,)

    return change
