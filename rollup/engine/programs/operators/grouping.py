"""What rows a change of the input makes: a row a row, one in all, or one a group."""

from __future__ import annotations

from rollup.engine.programs.operators.base import Group, Key, List, Map, Operator, Row, port


class Select(Operator):
    """Makes the rows of a statement. `leaving`: rows that leave are made, too; `alone`: aggregates are of one change each."""

    leaving: bool
    alone: bool

    def insert(self, row: Row) -> None:
        """A row has come into the window."""

    def remove(self, row: Row) -> None:
        """A row has left the window."""

    def flush(self) -> None:
        """The change is over."""

    def present(self, row: Row) -> None:
        """A row is there, of those that are asked for."""

    def presented(self) -> None:
        """These were all."""


class Passing(Operator):
    """Stands before another operator, and tells it of changes."""

    @port
    def emit_insert(self, row: Row) -> None:
        """A row comes."""

    @port
    def emit_remove(self, row: Row) -> None:
        """A row leaves."""

    @port
    def emit_flush(self) -> None:
        """The change is over."""

    def insert(self, row: Row) -> None:
        """A row has come."""
        self.emit_insert(row)

    def remove(self, row: Row) -> None:
        """A row has left."""
        self.emit_remove(row)

    def flush(self) -> None:
        """The change is over."""
        self.emit_flush()


class Where(Passing):
    """A condition between the window and what is made of its rows."""

    @port
    def test(self, row: Row) -> bool:
        """Whether the condition is true."""
        ...

    @port
    def emit_present(self, row: Row) -> None:
        """A row is there, of those that are asked for."""

    @port
    def emit_presented(self) -> None:
        """These were all."""

    def present(self, row: Row) -> None:
        if self.test(row):
            self.emit_present(row)

    def presented(self) -> None:
        self.emit_presented()

    def insert(self, row: Row) -> None:
        if self.test(row):
            self.emit_insert(row)

    def remove(self, row: Row) -> None:
        if self.test(row):
            self.emit_remove(row)


class PlainRows(Select):
    """A row for a row, without aggregates."""

    @port
    def emit(self, row: Row, sign: int) -> None:
        """Make the row of a row."""

    @port
    def emit_shown(self, row: Row, sign: int) -> None:
        """Make the row of a row that is there."""

    def present(self, row: Row) -> None:
        """A row is there, of those that are asked for."""
        self.emit_shown(row, 1)

    def insert(self, row: Row) -> None:
        self.emit(row, 1)

    def remove(self, row: Row) -> None:
        if self.leaving:
            self.emit(row, -1)


class Grouped(Select):
    """Groups by key, with the aggregates of each."""

    groups: Map[Key, Group]

    @port
    def key(self, row: Row) -> Key:
        """The key of a row's group."""
        ...

    @port
    def key_of(self, group: Group) -> Key:
        """The key of a group."""
        ...

    @port
    def new_group(self, row: Row) -> Group:
        """A group with the key of a row, and no rows."""
        ...

    @port
    def accumulate(self, group: Group, row: Row) -> None:
        """A row enters the aggregates of a group."""

    @port
    def retract(self, group: Group, row: Row) -> None:
        """A row leaves the aggregates of a group."""

    def entered(self, row: Row) -> Group:
        """The group that a row comes into."""
        key = self.key(row)
        g = self.groups.get(key)
        if g is None:
            g = self.new_group(row)
            self.groups[key] = g
        g.rows += 1
        return g

    def left(self, row: Row) -> Group:
        """The group that a row leaves."""
        g = self.groups.get(self.key(row))
        g.rows -= 1
        return g

    def known(self, row: Row) -> Group:
        """The group of a row that is there; of one that has not been counted yet, an empty one."""
        g = self.groups.get(self.key(row))
        if g is None:
            g = self.new_group(row)
            self.groups[self.key(row)] = g
        return g

    def release(self, group: Group) -> None:
        """A group without rows is gone."""
        if self.alone:
            group.rows = 0
        if group.rows == 0 and self.key_of(group) in self.groups:
            del self.groups[self.key_of(group)]


class ShownByGroup(Grouped):
    """Groups, of which those of the rows that are there are shown; `ever`: all of them, whatever rows are."""

    ever: bool
    touched: List[Group]
    change: int

    @port
    def emit_shown(self, group: Group, sign: int) -> None:
        """Make the row of a group that is there."""

    def present(self, row: Row) -> None:
        """A row is there, of those that are asked for."""
        g = self.known(row)
        if g.mark != self.change + 1:
            g.mark = self.change + 1
            self.touched.append(g)

    def presented(self) -> None:
        """These were all."""
        self.change += 1
        if self.ever:
            for g in self.groups.values():
                self.emit_shown(g, 1)
        else:
            for g in self.touched:
                self.emit_shown(g, 1)
        self.touched.clear()


class OfGroups(ShownByGroup):
    """Rows of groups that a change touches."""

    def touch(self, group: Group) -> None:
        """A group is about to change."""

    def insert(self, row: Row) -> None:
        """A row has come."""
        g = self.entered(row)
        self.touch(g)
        self.accumulate(g, row)

    def remove(self, row: Row) -> None:
        """A row has left."""
        g = self.left(row)
        self.touch(g)
        self.retract(g, row)


class RowPerGroup(OfGroups):
    """A row for each group that a change touches: the values after the change, and those before it."""

    @port
    def emit(self, group: Group, sign: int) -> None:
        """Make the row of a group."""

    def touch(self, group: Group) -> None:
        """A group is about to change."""
        if group.mark != self.change + 1:
            group.mark = self.change + 1
            self.touched.append(group)
            if self.leaving:
                self.emit(group, -1)

    def flush(self) -> None:
        self.change += 1
        for g in self.touched:
            self.emit(g, 1)
            self.release(g)
        self.touched.clear()


class PerRow(Grouped):
    """Something for each row, with the values of its group after the whole change."""

    inserted: List[Row]
    inserted_groups: List[Group]
    removed: List[Row]
    removed_groups: List[Group]

    @port
    def emit(self, row: Row, group: Group, sign: int) -> None:
        """Make the row of a row in its group."""

    def insert(self, row: Row) -> None:
        g = self.entered(row)
        self.accumulate(g, row)
        self.inserted.append(row)
        self.inserted_groups.append(g)

    def remove(self, row: Row) -> None:
        g = self.left(row)
        self.retract(g, row)
        self.removed.append(row)
        self.removed_groups.append(g)

    def flush(self) -> None:
        for i, row in enumerate(self.inserted):
            self.emit(row, self.inserted_groups[i], 1)
        for i, row in enumerate(self.removed):
            if self.leaving:
                self.emit(row, self.removed_groups[i], -1)
            self.release(self.removed_groups[i])
        if self.alone:
            for g in self.inserted_groups:
                self.release(g)
        self.inserted.clear()
        self.inserted_groups.clear()
        self.removed.clear()
        self.removed_groups.clear()


class RowPerRow(PerRow):
    """A row for a row."""

    @port
    def emit_shown(self, row: Row, group: Group, sign: int) -> None:
        """Make the row of a row that is there."""

    def present(self, row: Row) -> None:
        """A row is there, of those that are asked for."""
        self.emit_shown(row, self.known(row), 1)


class GroupPerRow(PerRow, ShownByGroup):
    """The row of its group for each row."""


class Kept(Operator):
    """The aggregates of all rows."""

    group: Group

    @port
    def emit_shown(self, group: Group, sign: int) -> None:
        """Make the row of what is there."""

    @port
    def new_group(self) -> Group:
        """The group of all rows, without rows."""
        ...

    @port
    def accumulate(self, group: Group, row: Row) -> None:
        """A row enters the aggregates of a group."""

    @port
    def retract(self, group: Group, row: Row) -> None:
        """A row leaves the aggregates of a group."""

    def current(self) -> Group:
        """The group."""
        if self.group is None:
            self.group = self.new_group()
        return self.group

    def insert(self, row: Row) -> None:
        """A row has come."""
        self.accumulate(self.current(), row)

    def remove(self, row: Row) -> None:
        """A row has left."""
        self.retract(self.current(), row)

    def flush(self) -> None:
        """The change is over."""

    def present(self, row: Row) -> None:
        """A row is there, of those that are asked for."""

    def presented(self) -> None:
        """These were all."""
        self.emit_shown(self.current(), 1)


class Total(Kept):
    """One row in all: the values after a change, and those before it. `leaving` and `alone` as of a select."""

    leaving: bool
    alone: bool
    changing: bool

    @port
    def emit(self, group: Group, sign: int) -> None:
        """Make the row of a group."""

    def touch(self) -> Group:
        """The group, which is about to change."""
        g = self.current()
        if not self.changing:
            self.changing = True
            if self.alone:
                self.group = self.new_group()
                g = self.group
            if self.leaving:
                self.emit(g, -1)
        return g

    def insert(self, row: Row) -> None:
        self.accumulate(self.touch(), row)

    def remove(self, row: Row) -> None:
        self.retract(self.touch(), row)

    def flush(self) -> None:
        if self.changing:
            self.changing = False
            self.emit(self.group, 1)

    def idle(self) -> None:
        """The row at an output behind which nothing has changed."""
        self.emit(self.current(), 1)
        if self.leaving:
            self.emit(self.current(), -1)
