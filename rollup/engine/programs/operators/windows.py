"""Windows. A row goes in by `insert`; the ports say what the window does of it: rows that come before those that leave."""

from __future__ import annotations

from rollup.engine.programs.operators.base import (
    FOREVER,
    Bucket,
    Heap,
    Key,
    Map,
    Operator,
    Queue,
    Row,
    Rows,
    Stamped,
    port,
    s,
)


class Window(Operator):
    """The rows that are kept. One with a method `remove` lets statements take a row out, and does not say so itself."""

    @port
    def emit_insert(self, row: Row) -> None:
        """A row has come into the window."""

    @port
    def emit_remove(self, row: Row) -> None:
        """A row has left the window."""

    @port
    def emit_present(self, row: Row) -> None:
        """A row is there, of those that are asked for."""

    def present(self) -> None:
        """Somebody asks for the rows that are there."""

    def settle(self) -> None:
        """The change is over, and whoever hears of it has been told."""

    def insert(self, row: Row) -> None:
        """A row comes."""

    def due(self) -> int:
        """When the clock changes the window."""
        return FOREVER

    def on_timer(self) -> None:
        """That instant has come."""


class Unwindowed(Window):
    """No window: rows come, and are not kept."""

    def insert(self, row: Row) -> None:
        self.emit_insert(row)


class KeepAll(Window):
    """Every row, for ever."""

    rows: Rows[Row]

    def present(self) -> None:
        for row in self.rows:
            self.emit_present(row)

    def insert(self, row: Row) -> None:
        self.rows.append(row)
        self.emit_insert(row)

    def remove(self, row: Row) -> None:
        self.rows.remove(row)


class Length(KeepAll):
    """The last `size` rows; the oldest leaves with the arrival that is one too many."""

    size: int

    def insert(self, row: Row) -> None:
        self.rows.append(row)
        self.emit_insert(row)
        if len(self.rows) > self.size:
            self.emit_remove(self.rows.popleft())


class FirstLength(KeepAll):
    """The first `size` rows; later ones are not seen until one of these is taken out."""

    size: int

    def insert(self, row: Row) -> None:
        if len(self.rows) < self.size:
            self.rows.append(row)
            self.emit_insert(row)


class TimeAccumulating(KeepAll):
    """Rows until none has arrived for `span`; then all leave together."""

    span: int
    last: int

    def insert(self, row: Row) -> None:
        self.rows.append(row)
        self.last = s.now
        self.emit_insert(row)

    def due(self) -> int:
        return self.last + self.span if self.rows else FOREVER

    def on_timer(self) -> None:
        while self.rows:
            self.emit_remove(self.rows.popleft())


class Stamps(Window):
    """Rows, each with the instant at which it came or another time, in the order of arrival."""

    rows: Queue[Stamped]

    def present(self) -> None:
        for each in self.rows:
            self.emit_present(each.row)


class Time(Stamps):
    """The rows of the last `span`: a row leaves at its arrival + span."""

    span: int

    def insert(self, row: Row) -> None:
        self.rows.append(Stamped(s.now, row))
        self.emit_insert(row)

    def due(self) -> int:
        return self.rows.first().time + self.span if self.rows else FOREVER

    def on_timer(self) -> None:
        limit = s.now - self.span
        while self.rows and self.rows.first().time <= limit:
            self.emit_remove(self.rows.popleft().row)


class ExternalTime(Stamps):
    """The rows of the last `span` by a time that they carry, of which none is below `least`: a row leaves, in the order of
    arrival, with one that is newer by `span`."""

    span: int
    least: int

    @port
    def time(self, row: Row) -> int:
        """The time of a row."""
        ...

    def insert(self, row: Row) -> None:
        at = self.time(row)
        self.rows.append(Stamped(at, row))
        self.emit_insert(row)
        if at >= self.least:
            while self.rows and self.rows.first().time <= at - self.span:
                self.emit_remove(self.rows.popleft().row)


class Expressed(Stamps):
    """Rows from the newest back as long as a condition over them holds: the oldest leave until it does."""

    @port
    def accumulate(self, row: Row) -> None:
        """A row enters what the condition is about."""

    @port
    def retract(self, row: Row) -> None:
        """A row leaves what the condition is about."""

    @port
    def holds(self, oldest: Row, newest: Row, since: int, rows: int, expired: int) -> bool:
        """Whether the condition is true of so many rows, of which the oldest came at `since`, when so many have expired."""
        ...

    def insert(self, row: Row) -> None:
        self.rows.append(Stamped(s.now, row))
        self.emit_insert(row)
        self.accumulate(row)
        expired = 0
        while self.rows and not self.holds(self.rows.first().row, row, self.rows.first().time, len(self.rows), expired):
            old = self.rows.popleft().row
            self.retract(old)
            self.emit_remove(old)
            expired += 1


class Batch(Window):
    """Rows that come together; with a batch the one before leaves. Until the change is over its rows are those that are there."""

    rows: Queue[Row]
    before: Queue[Row]
    released: bool

    def present(self) -> None:
        if self.released:
            for row in self.before:
                self.emit_present(row)
        else:
            for row in self.rows:
                self.emit_present(row)

    def settle(self) -> None:
        self.released = False

    def release(self) -> None:
        """The batch at hand comes."""
        self.released = True
        for each in self.rows:
            self.emit_insert(each)
        while self.before:
            self.emit_remove(self.before.popleft())
        while self.rows:
            self.before.append(self.rows.popleft())


class ExternalTimeBatch(Batch):
    """Rows in batches of `span` by a time that they carry: one that comes after `last` closes the batch, and is the first of the
    next, which alone is there then. The edges are as those of `TimeBatch`."""

    span: int
    origin: int
    aligned: bool
    begun: bool
    waits: bool
    last: int

    @port
    def time(self, row: Row) -> int:
        """The time of a row."""
        ...

    def present(self) -> None:
        for row in self.rows:
            self.emit_present(row)

    def insert(self, row: Row) -> None:
        at = self.time(row)
        if self.waits and at > self.last:
            self.waits = False
            self.release()
        if self.aligned:
            self.begun = True
        if not self.begun:
            self.begun = True
            self.origin = at % self.span
        if not self.waits:
            self.waits = True
            self.last = self.span - 1 - (at % self.span - self.origin) % self.span
            self.last = at + self.last if at <= 9223372036854775807 - self.last else 9223372036854775807
        self.rows.append(row)


class LengthBatch(Batch):
    """Rows in batches of `size`; with a batch the one before leaves."""

    size: int

    def insert(self, row: Row) -> None:
        self.rows.append(row)
        if len(self.rows) == self.size:
            self.release()


class TimeBatch(Batch):
    """Rows in batches of `span`. Their edges are whole spans from the first row on, or from `origin` if `aligned`."""

    span: int
    origin: int
    aligned: bool
    begun: bool
    waits: bool
    edge: int

    def insert(self, row: Row) -> None:
        self.rows.append(row)
        if self.aligned:
            self.begun = True
        if not self.begun:
            self.begun = True
            self.origin = s.now
        self.wait()

    def wait(self) -> None:
        """The next edge is the end of the batch at hand."""
        if not self.waits:
            self.waits = True
            self.edge = self.origin + ((s.now - self.origin) // self.span + 1) * self.span

    def due(self) -> int:
        return self.edge if self.waits else FOREVER

    def on_timer(self) -> None:
        self.waits = False
        if self.rows:
            self.wait()
        self.release()


class Unique(Window):
    """The newest row of each key, which makes the one before leave."""

    rows: Map[Key, Row]

    @port
    def key(self, row: Row) -> Key:
        """The key of a row."""

    def present(self) -> None:
        for row in self.rows.values():
            self.emit_present(row)

    def insert(self, row: Row) -> None:
        key = self.key(row)
        old = self.rows.get(key)
        self.rows[key] = row
        self.emit_insert(row)
        if old is not None:
            self.emit_remove(old)

    def remove(self, row: Row) -> None:
        del self.rows[self.key(row)]


class FirstUnique(Unique):
    """The first row of each key; later ones are not seen until it is taken out."""

    def insert(self, row: Row) -> None:
        key = self.key(row)
        if self.rows.get(key) is None:
            self.rows[key] = row
            self.emit_insert(row)


class ByKey(Window):
    """The rows of each key, in a bucket of their own."""

    rows: Map[Key, Bucket]

    @port
    def key(self, row: Row) -> Key:
        """The key of a row."""

    def present(self) -> None:
        for b in self.rows.values():
            for row in b.rows:
                self.emit_present(row)

    def bucket(self, row: Row) -> Bucket:
        """The bucket of a row's key, in which it is the last one."""
        key = self.key(row)
        b = self.rows.get(key)
        if b is None:
            b = Bucket()
            self.rows[key] = b
        b.rows.append(row)
        return b


class LengthByKey(ByKey):
    """The last `size` rows of each key."""

    size: int

    def insert(self, row: Row) -> None:
        b = self.bucket(row)
        self.emit_insert(row)
        if len(b.rows) > self.size:
            self.emit_remove(b.rows.popleft())


class LengthBatchByKey(ByKey):
    """The rows of each key in batches of `size`; with a batch the one of its key before leaves."""

    size: int
    before: Map[Key, Bucket]

    def insert(self, row: Row) -> None:
        b = self.bucket(row)
        if len(b.rows) == self.size:
            key = self.key(row)
            last = self.before.get(key)
            if last is None:
                last = Bucket()
                self.before[key] = last
            for each in b.rows:
                self.emit_insert(each)
            while last.rows:
                self.emit_remove(last.rows.popleft())
            while b.rows:
                last.rows.append(b.rows.popleft())


class Sort(Window):
    """The `size` rows that stand first by a number; of equal ones the oldest leaves."""

    size: int
    rows: Heap[tuple[int, int, Row]]
    ranked: Heap[tuple[int, int, Row]]
    count: int

    @port
    def rank(self, row: Row) -> int:
        """A whole number that is the greater, the further in front the row stands."""
        ...

    def present(self) -> None:
        while len(self.rows) > 0:
            last = self.rows.pop()
            self.ranked.push((-last[0], -last[1], last[2]))
        while len(self.ranked) > 0:
            first = self.ranked.pop()
            self.emit_present(first[2])
            self.rows.push((-first[0], -first[1], first[2]))

    def insert(self, row: Row) -> None:
        self.count += 1
        self.emit_insert(row)
        rank = self.rank(row)
        if len(self.rows) == self.size and rank < self.rows[0][0]:
            self.emit_remove(row)
        else:
            self.rows.push((rank, self.count, row))
            if len(self.rows) > self.size:
                self.emit_remove(self.rows.pop()[2])
