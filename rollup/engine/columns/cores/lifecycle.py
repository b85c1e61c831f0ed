"""Partitions that begin and end: which events are in which, found by one loop over a batch.

State: the partitions that live, in the order in which they began: number, when it began, when the clock ends it, and what is
kept of the event with which it began.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Batch
from rollup.engine.columns.cores.keys import KeyCodes, whole
from rollup.engine.columns.cores.projecting import accepted
from rollup.engine.columns.evaluate import arrow, flags, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import CHAINS, loop
from rollup.engine.operators import LONG_MAX
from rollup.engine.rows.plans import Filter
from rollup.engine.types import DataType

_COURSE = """
def core(now, span, never, again, alone, distinct, by_key, routed, keys, held, times, starts, ends, takes, codes,
         key, begun, due, came, over, until, by, event, part):
    room = len(key)
    first, last, after, before = np.full(keys, -1), np.full(keys, -1), np.full(room, -1), np.full(room, -1)
    oldest, newest, later, sooner = np.full(1, -1), np.full(1, -1), np.full(room, -1), np.full(room, -1)
    n, pairs, done = 0, 0, 0
    while n < held:
        link(n, key[n], first, last, after, before)
        link(n, 0, oldest, newest, later, sooner)
        n += 1
    for i in range(len(times) + 1):
        t = times[i] if i < len(times) else now
        while span > 0 and oldest[0] >= 0 and due[oldest[0]] <= t:
            p = oldest[0]
            unlink(p, key[p], first, last, after, before)
            unlink(p, 0, oldest, newest, later, sooner)
            over[done], until[done], by[done] = p, due[p], -1
            done += 1
            if again:
                key[n], begun[n], due[n], came[n] = 0, due[p], due[p] + span, -1
                link(n, 0, first, last, after, before)
                link(n, 0, oldest, newest, later, sooner)
                n += 1
        if i == len(times):
            break
        k, fresh = codes[i], -1
        if ends[i]:
            p = first[k] if by_key else oldest[0]
            while p >= 0:
                following = after[p] if by_key else later[p]
                unlink(p, key[p], first, last, after, before)
                unlink(p, 0, oldest, newest, later, sooner)
                over[done], until[done], by[done] = p, t, i
                done += 1
                p = following
        free = (not alone or oldest[0] < 0) and (not distinct or first[k] < 0)
        if free and (starts[i] or again):
            fresh = n
            key[n], begun[n], due[n], came[n] = k, t, t + span if span > 0 else never, i
            link(n, k, first, last, after, before)
            link(n, 0, oldest, newest, later, sooner)
            n += 1
        if takes[i]:
            if fresh >= 0:
                if pairs < len(event):
                    event[pairs], part[pairs] = i, fresh
                pairs += 1
            p = first[k] if routed else oldest[0]
            while p >= 0:
                if p != fresh:
                    if pairs < len(event):
                        event[pairs], part[pairs] = i, p
                    pairs += 1
                p = after[p] if routed else later[p]
    return n, pairs, done
"""


_BEFORE = TIMER - 1
"""In place of the event with which a partition began before the batch."""


@dataclass(frozen=True)
class _Room:
    """What the loop writes of partitions; those that live stand first."""

    key: Ints
    begun: Ints
    due: Ints
    came: Ints
    over: Ints
    until: Ints
    by: Ints

    @classmethod
    def of(cls, partitions: pa.Table, key: Ints, most: int) -> _Room:
        """Of partitions with the numbers of their keys, of which so many `most` may begin."""
        room = partitions.num_rows + most
        begun, due, over, until, by = (np.empty(room, np.int64) for _ in range(5))
        for array, name in ((begun, "begun"), (due, "due")):
            array[: len(key)] = partitions.column(name).to_numpy()
        came = np.full(room, _BEFORE)
        return cls(np.concatenate([key, np.zeros(most, np.int64)]), begun, due, came, over, until, by)

    @property
    def arrays(self) -> tuple[Ints, ...]:
        """All of them, as the loop gets them."""
        return self.key, self.begun, self.due, self.came, self.over, self.until, self.by


@dataclass(frozen=True)
class LifecycleBatch:
    """The lifecycle of the partitions in a batch.

    * `known`: the partitions of before and those that begin, in that order.
    * `came`: the event with which each began, or TIMER, or less for a partition of before.
    * `event`, `part`: which event is in which partition, in the order in which partitions get it.
    * `over`: the partitions that end, in that order, `until` when and `by` which event (or TIMER).
    """

    known: pa.Table
    came: Ints
    event: Ints
    part: Ints
    over: Ints
    until: Ints
    by: Ints

    @property
    def numbers(self) -> Ints:
        """The number of each partition."""
        return self.known.column("number").to_numpy()

    @cached_property
    def left(self) -> pa.Table:
        """The partitions that live on."""
        if not len(self.over):
            return self.known
        lives = np.ones(self.known.num_rows, bool)
        lives[self.over] = False
        return self.known.filter(pa.array(lives))


@dataclass(frozen=True)
class Lifecycle:
    """A context of one level whose partitions begin and end.

    * `start`: the events that begin a partition. None: there is always one, and the next begins when it ends.
    * `end`: the events that end partitions, those of their `key` where `by_key`, else all.
    * `span`: after how long the clock ends a partition, 0 where it does not.
    * `overlap`: several partitions may exist at once; `distinct`: by these fields (of the key) only one.
    * `tag`: the name of the event with which a partition begins, whose fields are then kept.
    """

    context: str
    level: str
    start: Filter | None
    end: Filter | None
    span: int
    overlap: bool
    key: tuple[int, ...]
    distinct: tuple[int, ...]
    by_key: bool
    tag: str | None
    kinds: tuple[DataType, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of partitions."""
        own = [pa.field(name, pa.int64()) for name in ("number", "begun", "due")]
        return pa.schema([*own, *(pa.field(f"field{place}", arrow(kind)) for place, kind in enumerate(self.fields))])

    @property
    def fields(self) -> tuple[DataType, ...]:
        """The fields that are kept of the event with which a partition begins."""
        return () if self.tag is None else self.kinds

    def at_first(self, now: int) -> pa.Table:
        """The partitions that live from the beginning."""
        if self.start is not None:
            return self.schema.empty_table()
        due = now + self.span if self.span else LONG_MAX
        return pa.table([[0], [now], [due], *([None] for _ in self.fields)], schema=self.schema)

    def course(
        self, partitions: pa.Table, number: int, batch: Batch, takes: np.ndarray, routed: bool
    ) -> LifecycleBatch:
        """Of a batch, whose events those partitions take that live then (`routed`: those of their key) where the statement
        `takes` them. `number`: that of the next partition.
        """
        room, run = self._prepared(partitions, batch, takes, routed)
        pairs = 2 * int(takes.sum()) + 1
        while True:
            event, part = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
            n, some, done = run(event, part)
            if some <= pairs:
                break
            pairs = some
        known = self._known(partitions, number, batch.columns, room.begun[:n], room.due[:n], room.came[:n])
        ended = (each[:done] for each in (room.over, room.until, room.by))
        return LifecycleBatch(known, room.came[:n], event[:some], part[:some], *ended)

    def by_events(self, batch: Batch) -> int:
        """How many partitions begin with an event, where several live at once."""
        return int(self._meets(self.start, batch.columns, batch.rows).sum())

    def pairs(self, partitions: pa.Table, batch: Batch, takes: np.ndarray, routed: bool) -> int:
        """How often the events of a batch are in partitions, taken together."""
        nothing = np.empty(0, np.int64)
        return self._prepared(partitions, batch, takes, routed)[1](nothing, nothing)[1]

    def _prepared(
        self, partitions: pa.Table, batch: Batch, takes: np.ndarray, routed: bool
    ) -> tuple[_Room, Callable[[Ints, Ints], tuple[int, int, int]]]:
        """The loop over a batch, given all but where it puts the events and their partitions."""
        columns, rows, held = batch.columns, batch.rows, partitions.num_rows
        starts, ends = self._meets(self.start, columns, rows), self._meets(self.end, columns, rows)
        key, codes, valid, keys = self._keyed(partitions, columns, rows)
        ends, takes = ends & valid if self.by_key else ends, takes & valid if routed else takes
        room = _Room.of(partitions, key, self._most(partitions, starts, ends, batch.now))
        how = self.start is None, not self.overlap, bool(self.distinct), self.by_key, routed, keys, held
        events = np.ascontiguousarray(batch.times), starts, ends, takes, codes
        return room, partial(loop(_COURSE, CHAINS), batch.now, self.span, LONG_MAX, *how, *events, *room.arrays)

    @staticmethod
    def _meets(filter: Filter | None, columns: tuple[pa.Array, ...], rows: int) -> np.ndarray:
        return np.zeros(rows, bool) if filter is None else flags(accepted(filter, None, columns, rows), rows)

    def _most(self, partitions: pa.Table, starts: np.ndarray, ends: np.ndarray, now: int) -> int:
        """How many partitions may begin."""
        return int(starts.sum()) if self.start is not None else int(ends.sum()) + self.by_clock(partitions, now)

    def by_clock(self, partitions: pa.Table, now: int) -> int:
        """How many partitions the clock begins until then, at most: each when it ends the one before."""
        if self.start is not None or not self.span:
            return 0
        return max((now - partitions.column("due")[0].as_py()) // self.span + 1, 0)

    def _keyed(
        self, partitions: pa.Table, columns: tuple[pa.Array, ...], rows: int
    ) -> tuple[Ints, Ints, np.ndarray, int]:
        """Numbers of the keys of partitions and of events, which events have no null in theirs, and how many keys there are."""
        if not self.key:
            return np.zeros(partitions.num_rows, np.int64), np.zeros(rows, np.int64), np.ones(rows, bool), 1
        held = [whole(partitions.column(f"field{place}")) for place in self.key]
        given = [columns[place] for place in self.key]
        valid = np.ones(rows, bool)
        for column in given:
            if column.null_count:
                valid &= plain(column).is_valid().to_numpy(zero_copy_only=False)
        if len(self.key) > 1:
            fields = [pa.field(f"key{place}", column.type) for place, column in enumerate(held)]
            one, other = (pa.StructArray.from_arrays([*map(plain, each)], fields=fields) for each in (held, given))
        else:
            (one,), (other,) = held, given
        table = KeyCodes()
        key, known = table.codes(one[:0], one)
        codes, known = table.codes(known, other)
        return key, codes, valid, len(known) + 1

    def _known(
        self, partitions: pa.Table, number: int, columns: tuple[pa.Array, ...], begun: Ints, due: Ints, came: Ints
    ) -> pa.Table:
        """The partitions with those that begin."""
        held = partitions.num_rows
        if len(begun) == held:
            return partitions
        fresh = came[held:]
        places = pa.array(fresh, mask=fresh < 0)
        kept = [plain(column.take(places)) for column in columns[: len(self.fields)]]
        numbers = number + np.arange(len(fresh))
        added = pa.table([numbers, begun[held:], due[held:], *kept], schema=self.schema)
        return pa.concat_tables([partitions, added]).combine_chunks()
