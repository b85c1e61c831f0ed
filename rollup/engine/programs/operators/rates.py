"""Output rates: when an output is due, and what of the changes since the last one it shows."""

from __future__ import annotations

from rollup.engine.programs.operators.base import (
    FOREVER,
    Group,
    Interval,
    Key,
    List,
    Made,
    Map,
    Note,
    Operator,
    Queue,
    Row,
    port,
    s,
)
from rollup.engine.programs.operators.grouping import Kept, OfGroups, Passing


class Rate(Passing):
    """Passes changes on, and says when an output is due: every `span` from the first one on, or every `events` rows.

    `clocked`, `counted`: by which of both.
    """

    clocked: bool
    counted: bool
    span: int
    events: int
    running: bool
    next: int
    inserted: int
    removed: int

    @port
    def show(self) -> None:
        """An output, of an interval with changes."""

    @port
    def idle(self) -> None:
        """An output, of an interval without."""

    def insert(self, row: Row) -> None:
        """A row has come."""
        self.inserted += 1
        self.emit_insert(row)

    def remove(self, row: Row) -> None:
        """A row has left."""
        self.removed += 1
        self.emit_remove(row)

    def flush(self) -> None:
        """The change is over."""
        self.emit_flush()
        self.count()

    def count(self) -> None:
        """The change counts, and may bring an output."""
        if self.clocked and not self.running and self.inserted + self.removed > 0:
            self.running = True
            self.next = s.now + self.span
        if self.counted and (self.inserted >= self.events or self.removed >= self.events):
            self.output()

    def output(self) -> None:
        """An output is due."""
        if self.inserted + self.removed > 0:
            self.show()
        else:
            self.idle()
        self.inserted = 0
        self.removed = 0

    def due(self) -> int:
        """When the clock brings an output."""
        return self.next if self.running else FOREVER

    def on_timer(self) -> None:
        """That instant has come."""
        self.next += ((s.now - self.next) // self.span + 1) * self.span
        self.output()


class First(Rate):
    """Lets of each interval the first change pass that makes a row. An output begins the next interval.

    `arriving`, `leaving`: whether somebody gets rows that come, and those that leave.
    """

    arriving: bool
    leaving: bool
    passed: bool
    closed: bool

    def takes(self, sign: int) -> bool:
        """Whether a row that a change makes is shown."""
        if self.closed or not (self.arriving if sign > 0 else self.leaving):
            return False
        self.passed = True
        return True

    def flush(self) -> None:
        self.emit_flush()
        self.closed = self.closed or self.passed
        self.passed = False
        if self.closed:
            self.count()
        else:
            self.inserted = 0
            self.removed = 0

    def output(self) -> None:
        self.closed = False
        self.inserted = 0
        self.removed = 0


class Pending(Passing):
    """Changes as they are, which an output evaluates."""

    rows: List[Row]
    signs: List[int]
    ends: List[int]

    def insert(self, row: Row) -> None:
        """A row has come."""
        self.rows.append(row)
        self.signs.append(1)

    def remove(self, row: Row) -> None:
        """A row has left."""
        self.rows.append(row)
        self.signs.append(-1)

    def flush(self) -> None:
        """The change is over."""
        self.ends.append(len(self.rows))

    def settle(self) -> None:
        """Evaluate the changes."""
        at = 0
        for end in self.ends:
            while at < end:
                if self.signs[at] > 0:
                    self.emit_insert(self.rows[at])
                else:
                    self.emit_remove(self.rows[at])
                at += 1
            self.emit_flush()
        self.rows.clear()
        self.signs.clear()
        self.ends.clear()


class Collector(Operator):
    """What an output shows of the rows that were made."""

    @port
    def deliver(self, made: Made, sign: int) -> None:
        """A row leaves with the output."""

    def take(self, key: Key, made: Made, sign: int) -> None:
        """A row of a unit was made."""

    def show(self) -> None:
        """An output is due."""


class All(Collector):
    """Every row."""

    made: List[Made]
    signs: List[int]

    def take(self, key: Key, made: Made, sign: int) -> None:
        self.made.append(made)
        self.signs.append(sign)

    def show(self) -> None:
        for i, each in enumerate(self.made):
            self.deliver(each, self.signs[i])
        self.made.clear()
        self.signs.clear()


class Last(Collector):
    """The last row that came and the last that left, of each unit."""

    came: Map[Key, Made]
    gone: Map[Key, Made]

    def take(self, key: Key, made: Made, sign: int) -> None:
        if sign > 0:
            self.came[key] = made
        else:
            self.gone[key] = made

    def show(self) -> None:
        for each in self.came.values():
            self.deliver(each, 1)
        for each in self.gone.values():
            self.deliver(each, -1)
        self.came.clear()
        self.gone.clear()


class FirstOfUnits(Passing, Collector):
    """The first row of each interval of a unit; of several in one change the last, in the place of the first.

    An interval begins with a row, and lasts for `span` if `clocked`, else until `events` more rows of the unit have come or left.
    """

    clocked: bool
    span: int
    events: int
    units: Map[Key, Interval]
    begun: Queue[Interval]
    first: Map[Key, Made]

    def take(self, key: Key, made: Made, sign: int) -> None:
        unit = self.units.get(key)
        begins = unit is None
        if unit is None:
            unit = Interval(key, s.now)
            self.units[key] = unit
            if self.clocked:
                self.begun.append(unit)
        elif sign > 0:
            unit.inserted += 1
        else:
            unit.removed += 1
        if not self.clocked:
            begins = begins or unit.inserted >= self.events or unit.removed >= self.events
        if begins:
            unit.inserted = 0
            unit.removed = 0
            self.first[key] = made

    def flush(self) -> None:
        """The change is over."""
        if self.clocked:
            while self.begun and s.now - self.begun.first().since >= self.span:
                del self.units[self.begun.popleft().key]
        self.emit_flush()
        for each in self.first.values():
            self.deliver(each, 1)
        self.first.clear()


class LastTotal(Kept):
    """The total now and, if `leaving`, as it was at the output before."""

    leaving: bool
    begun: bool
    before: Made

    @port
    def make(self, group: Group, sign: int) -> Made:
        """The row of a group; None where it does not fulfil the condition."""
        ...

    @port
    def deliver(self, made: Made, sign: int) -> None:
        """A row leaves with the output."""

    def show(self) -> None:
        """An output is due."""
        if self.leaving and not self.begun:
            self.begun = True
            self.before = self.make(self.new_group(), -1)
        made = self.make(self.current(), 1)
        if made is not None:
            self.deliver(made, 1)
        if self.leaving:
            if self.before is not None:
                self.deliver(self.before, -1)
            self.before = self.make(self.current(), -1)


class LastOfGroups(OfGroups):
    """A row for each group that has changed, or for `every` group there ever was: as it is and, if `leaving`, as it was.

    A group that has changed was as before the first change of the interval; among `every` group, as before the first row that
    left it fulfilling the condition.
    """

    leaving: bool
    every: bool
    notes: Map[Key, Note]

    @port
    def make(self, group: Group, sign: int) -> Made:
        """The row of a group; None where it does not fulfil the condition."""
        ...

    @port
    def deliver(self, made: Made, sign: int) -> None:
        """A row leaves with the output."""

    def touch(self, group: Group) -> None:
        """A group is about to change."""
        note = self.notes.get(self.key_of(group))
        if note is None:
            note = Note()
            self.notes[self.key_of(group)] = note
        note.group = group
        if self.leaving and (not note.touched or (self.every and note.before is None)):
            note.before = self.make(group, -1)
        note.touched = True
        if group.mark != self.change + 1:
            group.mark = self.change + 1
            self.touched.append(group)

    def flush(self) -> None:
        """The change is over."""
        self.change += 1
        for g in self.touched:
            self.release(g)
        self.touched.clear()

    def show(self) -> None:
        """An output is due."""
        for note in self.notes.values():
            made = self.make(note.group, 1)
            if made is not None:
                self.deliver(made, 1)
            if self.leaving:
                before = note.before if note.touched else self.make(note.group, -1)
                if before is not None:
                    self.deliver(before, -1)
            if self.every:
                note.touched = False
                note.before = None
        if not self.every:
            self.notes.clear()
