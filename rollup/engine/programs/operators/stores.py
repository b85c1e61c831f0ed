"""Named windows, the indexes that find their rows, and what events do to them."""

from __future__ import annotations

from rollup.engine.programs.operators.base import Bucket, Key, List, Map, Operator, Row, port, s


class NamedWindow(Operator):
    """Stands behind the window of the store. Listeners are told at once, statements that follow when the event is through."""

    observed: bool
    inserted: List[Row]
    removed: List[Row]

    @port
    def index_insert(self, row: Row) -> None:
        """Into the indexes."""

    @port
    def index_remove(self, row: Row) -> None:
        """Out of the indexes."""

    @port
    def emit(self, row: Row, sign: int) -> None:
        """Tell listeners of a row."""

    @port
    def changed(self) -> None:
        """The window has something to tell."""

    @port
    def observe_insert(self, row: Row) -> None:
        """Sub-queries and joins find a row from now on."""

    @port
    def observe_remove(self, row: Row) -> None:
        """Sub-queries and joins find a row no longer."""

    @port
    def follow_insert(self, row: Row) -> None:
        """Statements that follow hear of a row that came."""

    @port
    def follow_remove(self, row: Row) -> None:
        """Statements that follow hear of a row that left."""

    @port
    def follow_flush(self) -> None:
        """They have heard of all of the change."""

    def insert(self, row: Row) -> None:
        """A row has come into the window."""
        self.index_insert(row)
        self.note()
        self.inserted.append(row)
        self.emit(row, 1)

    def remove(self, row: Row) -> None:
        """A row has left the window, or was taken out."""
        self.index_remove(row)
        self.note()
        self.removed.append(row)
        self.emit(row, -1)

    def note(self) -> None:
        """The window is about to change."""
        if not self.inserted and not self.removed:
            self.changed()

    def tell(self) -> None:
        """The event is through: statements that follow hear of all that it has changed as one change."""
        s.place += 1
        if self.observed:
            for row in self.inserted:
                self.observe_insert(row)
            for row in self.removed:
                self.observe_remove(row)
        for row in self.inserted:
            self.follow_insert(row)
        for row in self.removed:
            self.follow_remove(row)
        self.inserted.clear()
        self.removed.clear()
        self.follow_flush()


class Index(Operator):
    """The rows of a store by some of their fields."""

    rows: Map[Key, Bucket]

    @port
    def key(self, row: Row) -> Key:
        """The values of the indexed fields."""
        ...

    def insert(self, row: Row) -> None:
        """A row has come into the store."""
        key = self.key(row)
        b = self.rows.get(key)
        if b is None:
            b = Bucket()
            self.rows[key] = b
        b.rows.append(row)

    def remove(self, row: Row) -> None:
        """A row has left the store."""
        key = self.key(row)
        b = self.rows.get(key)
        b.rows.remove(row)
        if len(b.rows) == 0:
            del self.rows[key]


class Merge(Operator):
    """An event finds rows of a store; for each of them, or for none, actions are noted, which then happen as one change."""

    gone_as_new: bool
    found: List[Row]
    inserting: List[Row]
    updated: List[Row]
    removing: List[Row]
    replaced: List[Row]

    @port
    def find(self, row: Row) -> None:
        """Note in `found` the rows that an event finds."""

    @port
    def matched(self, row: Row, found: Row) -> None:
        """Note what is to be done for a row that was found."""

    @port
    def unmatched(self, row: Row) -> None:
        """Note what is to be done where none was found."""

    @port
    def window_insert(self, row: Row) -> None:
        """A row into the store's window."""

    @port
    def window_remove(self, row: Row) -> None:
        """A row out of the store's window."""

    @port
    def store_remove(self, row: Row) -> None:
        """The store hears that a row was taken out."""

    @port
    def emit(self, row: Row, sign: int) -> None:
        """Tell listeners of a row."""

    def act(self, row: Row) -> None:
        """One event."""
        self.find(row)
        for w in self.found:
            self.matched(row, w)
        if not self.found:
            self.unmatched(row)
        self.found.clear()
        self.take_out()
        for w in self.inserting:
            self.window_insert(w)
            self.emit(w, 1)
        for w in self.updated:
            self.window_insert(w)
            self.emit(w, 1)
        for w in self.removing:
            if self.gone_as_new:
                self.emit(w, 1)
            else:
                self.emit(w, -1)
        for w in self.replaced:
            self.emit(w, -1)
        self.inserting.clear()
        self.updated.clear()
        self.removing.clear()
        self.replaced.clear()

    def take_out(self) -> None:
        """The rows that leave the store, and those that others take the place of: one delivery of the store, and one after
        what has been delivered of the event."""
        s.place += 1
        for w in self.removing:
            self.window_remove(w)
            self.store_remove(w)
        for w in self.replaced:
            self.window_remove(w)
            self.store_remove(w)
