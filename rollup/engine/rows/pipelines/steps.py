"""What instances do with an event of a pipeline. What they make goes onto tapes, and on to the next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rollup.engine.compiling import predicate
from rollup.engine.expressions import Expr
from rollup.engine.row import Delta, Row, Rows, together
from rollup.engine.rows.lazy import Gathering
from rollup.engine.rows.pipelines.tapes import Tape
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.selects.alone import Alone
from rollup.engine.rows.selects.pergroup import After, PerGroup
from rollup.engine.rows.selects.projecting import Step, Values, ValuesOf
from rollup.engine.rows.selects.selecting import Kind, PerRow, Total
from rollup.engine.rows.stores.named import Change, NamedWindow, Observe

Take = Callable[[int, Row], bool]
"""An event with its place; False: it is none for the pipeline, and nothing has been done with it."""
Follow = Callable[[int, Sequence[Rows], Sequence[Rows]], Sequence[Values]]
"""Rows that come and rows that leave by the event at a place, each as a row of one input; the values of the rows that are
shown."""
OfOne = Callable[[int, Rows], object]
"""A row that comes or leaves by the event at a place and is all that does."""


class OneByOne:
    """A `Follow` that is told of a row that comes or leaves alone, as nearly all do, without lists of such."""

    __slots__ = ("change", "come", "leave")

    def __init__(self, change: Follow, come: OfOne, leave: OfOne) -> None:
        self.change, self.come, self.leave = change, come, leave

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

    def change(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        if came or left:
            due = outputs.due
            take(came, left)
            if outputs.due != due:
                instance.ask_timers()
        return ()

    def come(place: int, r: Rows) -> None:
        due = outputs.due
        take((r,), ())
        if outputs.due != due:
            instance.ask_timers()

    def leave(place: int, r: Rows) -> None:
        due = outputs.due
        take((), (r,))
        if outputs.due != due:
            instance.ask_timers()

    return of_passing(instance, instance.plan.where, OneByOne(change, come, leave))


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

    alone = OneByOne.of(change)
    return OneByOne(some, come, leave)


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
    (come, leave), emitted, note = made, instance.plan.emitted, tape.note
    comes, leaves, sign = emitted != "old", emitted != "new", _sign(instance)

    def change(place: int, came: Sequence[Rows], left: Sequence[Rows]) -> Sequence[Values]:
        if len(came) + len(left) != 1:
            return several(place, came, left)
        shown, gone = come(came[0]) if came else leave(left[0])
        if comes and shown is not None:
            note((place, 1, shown))
        if leaves and gone is not None:
            note((place, sign, gone))
        return () if shown is None else (shown,)

    def alone(of_one: Callable[[Rows], tuple[Values | None, Values | None]]) -> OfOne:
        def one(place: int, r: Rows) -> None:
            shown, gone = of_one(r)
            if comes and shown is not None:
                note((place, 1, shown))
            if leaves and gone is not None:
                note((place, sign, gone))

        return one

    return OneByOne(change, alone(come), alone(leave))


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

    return OneByOne(change, come, lambda place, r: None)


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


def of_stream(instance: SelectInstance, change: Follow, number: int = 0) -> Take:
    """A select over the stream itself, which is one of its inputs, and its window."""
    window, clock = instance.inputs[number].window, instance.environment.clock

    come = OneByOne.of(change).come

    def through(place: int, row: Row) -> bool:
        come(place, (row,))
        return True

    def kept(place: int, row: Row) -> bool:
        new, old, _ = enter((row,), clock.now)
        if new or old:
            change(place, [*zip(new)], [*zip(old)])
        return True

    if window is None:
        return through
    enter = window.enter
    return kept


def waiting(instance: Gathering) -> Take:
    """A select that nobody sees anything of before an output: its events wait."""
    receive = instance.receive

    def take(place: int, row: Row) -> bool:
        receive((0,), row)
        return True

    return take


class Told:
    """A named window's changes, told to those who follow it; `times`: the instant of each place."""

    def __init__(
        self, store: NamedWindow, tape: Tape, consumers: Sequence[Follow], times: list[int], clocked: bool = False
    ) -> None:
        self.store, self.tape, self.consumers, self._note = store, tape, consumers, tape.note
        self._entered, self._exchanged, self._times = store.entered, store.exchanged, times
        self.order, self.watched = store.order, store.watched
        alone = [OneByOne.of(each) for each in consumers]
        self._comes, self._leaves = [each.come for each in alone], [each.leave for each in alone]
        self.timed = store.window.timed
        """Whether the window lets rows out by the clock."""
        self.clocked = clocked or self.timed
        """Whether the window, or one of those who follow, may ask for an instant."""

    @property
    def due(self) -> int | None:
        """When it does."""
        return self.store.window.due

    def come(self, place: int, row: Row) -> None:
        """A row comes into the window, and all who follow hear of it."""
        note, (came, left, _) = self._note, self._entered((row,))
        if not left and len(came) == 1:  # as into most windows
            (row,) = came
            note((place, 1, row.values))
            for come in self._comes:
                come(place, (row,))
            return
        for each in came:
            note((place, 1, each.values))
        for each in left:
            note((place, -1, each.values))
        if self.consumers and (came or left):
            new, old = [*zip(came)], [*zip(left)]
            for consumer in self.consumers:
                consumer(place, new, old)

    def fire(self, now: int) -> None:
        """The window's timer: each change at a place of its own, and all of them told as one."""
        note, times, store = self._note, self._times, self.store
        window, found = store.window, list[Delta]()
        while (due := window.due) is not None and due <= now:
            delta = store.fired(now)
            if not delta:
                continue
            times.append(now)
            place = len(times) - 1
            for row in delta.new:
                note((place, 1, row.values))
            for row in delta.old:
                note((place, -1, row.values))
            found.append(delta)
        if found and self.consumers:
            self.tell(len(times) - 1, found[0] if len(found) == 1 else together(found))

    def change(self, place: int, new: Sequence[Row], old: Sequence[Row]) -> Change:
        """Rows come into the window and are taken out of it."""
        note, delta = self._note, self._exchanged(new, old)
        came, left, _ = delta
        for row in came:
            note((place, 1, row.values))
        for row in left:
            note((place, -1, row.values))
        return delta

    def tell(self, place: int, delta: Change) -> None:
        """The change to all who follow."""
        came, left, _ = delta
        if len(left) == 1 and not came:  # as out of most windows
            (row,) = left
            for leave in self._leaves:
                leave(place, (row,))
        elif came or left:
            new, old = [*zip(came)], [*zip(left)]
            for consumer in self.consumers:
                consumer(place, new, old)


def inserting(instance: SelectInstance, change: Follow, into: Told, tape: Tape) -> Take:
    """A select of single events whose rows go into a named window; they are nobody else's, so they need no other number."""
    target, make = instance.plan.target, instance.runner.row
    assert target is not None
    come, same = into.come, target.columns == tuple(range(len(instance.plan.type.fields)))

    def take(place: int, row: Row) -> bool:
        for shown in change(place, ((row,),), ()):
            come(place, row if same and shown is row.values else make(shown if same else target.of(shown)))
        return True

    def as_it_is(place: int, row: Row) -> bool:
        note((place, 1, row.values))
        come(place, row)
        return True

    note, plan = tape.note, instance.plan
    whole = plan.projection.whole and plan.projection.having is None and plan.where is None
    return as_it_is if whole and same else take
