"""What instances do with an event of a pipeline, which goes on to what they insert into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rollup.engine.index import Test
from rollup.engine.row import Row, Rows, together
from rollup.engine.rows.lazy import Awaiting, Gathering, Leaving
from rollup.engine.rows.pipelines.following import Follow, OneByOne
from rollup.engine.rows.pipelines.tapes import Tape
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.stores.named import Change, NamedWindow

Take = Callable[[int, Row], bool]
"""An event with its place; False: it is none for the pipeline, and nothing has been done with it."""


def of_stream(instance: SelectInstance, change: Follow, number: int = 0) -> Take:
    """A select over the stream itself, which is one of its inputs, and its window."""
    window, clock, alone = instance.inputs[number].window, instance.environment.clock, OneByOne.of(change)
    come, change, exchange = alone.come, alone.change, alone.exchange

    def through(place: int, row: Row) -> bool:
        come(place, (row,))
        return True

    def kept(place: int, row: Row) -> bool:
        new, old, _ = enter((row,), clock.now)
        if len(new) == 1 and len(old) == 1:
            exchange(place, (new[0],), (old[0],))
        elif new or old:
            change(place, [*zip(new)], [*zip(old)])
        return True

    def coming(place: int, row: Row) -> bool:
        new = enter((row,), clock.now)[0]
        if len(new) == 1:
            come(place, (new[0],))
        elif new:
            change(place, [*zip(new)], ())
        return True

    if window is None:
        return through
    enter, admit = instance.entering if isinstance(instance, Leaving) else window.enter, window.admit
    if not instance.plan.comes_alone or instance.plan.join is not None:
        return kept
    return coming if admit is None else _admitted(admit, come)


def _admitted(admit: Callable[[Row], None], come: Callable[[int, Rows], object]) -> Take:
    """An event that comes into a window of which nobody hears what leaves."""

    def take(place: int, row: Row) -> bool:
        admit(row)
        come(place, (row,))
        return True

    return take


def of_inputs(inputs: Mapping[int, Test | None], hear: Callable[[int, Row, Sequence[int]], None]) -> Take:
    """An event of some inputs, each with what an event of it passes. It may be told more than once, each time for one input; the
    first time it is heard for all.
    """
    numbers, last = tuple(inputs), Row(0, ())

    def take(place: int, row: Row) -> bool:
        hear(place, row, numbers)
        return True

    def some(place: int, row: Row) -> bool:
        nonlocal last
        if row is not last:
            last = row
            hear(place, row, [number for number, test in inputs.items() if test is None or test(row)])
        return True

    return some if len(inputs) > 1 and any(inputs.values()) else take


def waiting(instance: Gathering) -> Take:
    """A select that nobody sees anything of before an output: its events wait; those that may bring one go one by one."""
    receive, gather = instance.receive, instance.gather

    def take(place: int, row: Row) -> bool:
        receive((0,), row)
        return True

    def known(place: int, row: Row) -> bool:
        gather(row)
        return True

    return known if isinstance(instance, Awaiting) else take


class Told:
    """A named window's changes, told to those who follow it; `times`: the instant of each place."""

    def __init__(
        self, store: NamedWindow, tape: Tape, consumers: Sequence[Follow], times: list[int], clocked: bool = False
    ) -> None:
        self.store, self.tape, self.consumers, self._note = store, tape, consumers, tape.note
        self._entered, self._exchanged, self._times = store.entered, store.exchanged, times
        self._window, self._fired = store.window, store.fired
        self.order, self.watched = store.order, store.watched
        alone = [OneByOne.of(each) for each in consumers]
        self._comes, self._leaves = [each.come for each in alone], [each.leave for each in alone]
        self._changes, self._exchanges = [each.change for each in alone], [each.exchange for each in alone]
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
        note, delta = self._note, self._entered((row,))
        came, left, _ = delta
        if not came and not left:  # it waits for its batch
            return
        for each in came:
            note((place, 1, each.values))
        for each in left:
            note((place, -1, each.values))
        if not left and len(came) == 1:  # as into most windows
            (row,) = came
            for come in self._comes:
                come(place, (row,))
        elif len(came) == 1 and len(left) == 1:  # as into those of so many rows
            (row,), (old,) = came, left
            for exchange in self._exchanges:
                exchange(place, (row,), (old,))
        else:
            self.tell(place, delta)

    def fire(self, now: int) -> None:
        """The window's timer, which is due: each change at a place of its own, and all of them told as one."""
        times, window, fired = self._times, self._window, self._fired
        came, left, _ = delta = fired(now)
        due = window.due
        if len(left) == 1 and not came and (due is None or due > now):  # as nearly always
            place, (row,) = len(times), left
            times.append(now)
            self._note((place, -1, row.values))
            for leave in self._leaves:
                leave(place, (row,))
            return
        found = [delta]
        while (due := window.due) is not None and due <= now:
            found.append(fired(now))
        found = [delta for delta in found if delta]
        for delta in found:
            times.append(now)
            self._noted(len(times) - 1, delta)
        if found and self.consumers:
            self.tell(len(times) - 1, found[0] if len(found) == 1 else together(found))

    def change(self, place: int, new: Sequence[Row], old: Sequence[Row]) -> Change:
        """Rows come into the window and are taken out of it."""
        delta = self._exchanged(new, old)
        self._noted(place, delta)
        return delta

    def _noted(self, place: int, delta: Change) -> None:
        """The window's own deliveries."""
        note, (came, left, _) = self._note, delta
        for row in came:
            note((place, 1, row.values))
        for row in left:
            note((place, -1, row.values))

    def tell(self, place: int, delta: Change) -> None:
        """The change to all who follow."""
        came, left, _ = delta
        if len(left) == 1 and not came:  # as out of most windows
            (row,) = left
            for leave in self._leaves:
                leave(place, (row,))
        elif came or left:
            new, old = [*zip(came)], [*zip(left)]
            for change in self._changes:
                change(place, new, old)


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
