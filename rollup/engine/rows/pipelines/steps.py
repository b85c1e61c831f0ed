"""What instances do with an event of a pipeline. What they make goes onto tapes, and on to the next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rollup.engine.compiling import predicate
from rollup.engine.row import Delta, Row, Rows
from rollup.engine.rows.pipelines.tapes import Tape
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.stores.named import NamedWindow

Take = Callable[[int, Row], bool]
"""An event with its place; False: it is none for the pipeline, and nothing has been done with it."""
Follow = Callable[[int, Sequence[Row], Sequence[Row]], Sequence[Row]]
"""A change by the event at a place; the rows that are shown."""


def follow(instance: SelectInstance, tape: Tape) -> Follow:
    """A select whose only input changes, and whose rows leave at once."""
    where = predicate(instance.plan.where) if instance.plan.where is not None else None
    e, at_once, emitted, note = instance.environment, instance.kind.at_once, instance.plan.emitted, tape.note

    def passing(rows: Sequence[Rows], arriving: bool) -> Sequence[Rows]:
        e.arriving = arriving
        return rows if where is None else [r for r in rows if where(r, (), e)]

    def change(place: int, new: Sequence[Row], old: Sequence[Row]) -> Sequence[Row]:
        came: Sequence[Rows] = [(row,) for row in new]
        left: Sequence[Rows] = [(row,) for row in old]
        if where is not None:
            came, left = passing(came, True), passing(left, False)
        if not came and not left:
            return ()
        shown, gone = at_once(came, left)
        if emitted != "old":
            for row in shown:
                note((place, 1, row.values))
        if emitted != "new":
            sign = -1 if emitted == "both" else 1
            for row in gone:
                note((place, sign, row.values))
        return shown

    return change


def of_stream(instance: SelectInstance, change: Follow) -> Take:
    """A select over the stream itself, and its window."""
    window, clock = instance.inputs[0].window, instance.environment.clock

    def through(place: int, row: Row) -> bool:
        change(place, (row,), ())
        return True

    def kept(place: int, row: Row) -> bool:
        new, old, _ = enter((row,), clock.now)
        change(place, new, old)
        return True

    if window is None:
        return through
    enter = window.enter
    return kept


class Told:
    """A named window's changes, told to those who follow it."""

    def __init__(self, store: NamedWindow, tape: Tape, consumers: Sequence[Follow]) -> None:
        self.store, self._note, self._consumers = store, tape.note, consumers

    def change(self, place: int, new: Sequence[Row], old: Sequence[Row]) -> Delta:
        """Rows come into the window and are taken out of it."""
        note, delta = self._note, self.store.exchanged(new, old)
        for row in delta.new:
            note((place, 1, row.values))
        for row in delta.old:
            note((place, -1, row.values))
        return delta

    def tell(self, place: int, delta: Delta) -> None:
        """The change to all who follow."""
        new, old, _ = delta
        if new or old:
            for consumer in self._consumers:
                consumer(place, new, old)


def inserting(instance: SelectInstance, change: Follow, into: Told) -> Take:
    """A select of single events whose rows go into a named window."""
    target, make = instance.plan.target, instance.runner.row
    assert target is not None
    columns, tell, enter = target.columns, into.tell, into.change
    same = columns == tuple(range(len(columns)))

    def take(place: int, row: Row) -> bool:
        for shown in change(place, (row,), ()):
            values = shown.values if same and len(shown.values) == len(columns) else target.of(shown.values)
            tell(place, enter(place, (make(values),), ()))
        return True

    return take
