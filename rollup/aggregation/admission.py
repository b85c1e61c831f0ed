"""Which events count, and in which bucket: the event-at-a-time buffer, reproduced exactly from partial rows.

The clock of the root level is the greatest bucket start seen so far, over all keys. A bucket with start s leaves the
buffer when the clock reaches the start of the bucket B + 1 units after it. The first arrivals of the buckets of a batch
are all the places where the clock can step, so for every bucket there is one arrival from which it is late. A group
that lies wholly before or after that arrival is decided as a whole; the others are `suspects`, whose events the host
folds again, split by step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollup.aggregation.partials import FIRST, LAST, STEP
from rollup.aggregation.state import State
from rollup.core.calendar import bucket_end, bucket_start
from rollup.core.columns import ColumnEngine
from rollup.core.untyped import pc
from rollup.plan.aggregation import EVENTS, KIND, TIMESTAMP, ZONE, Aggregation, Clock, Policy

Longs = npt.NDArray[np.int64]
Refold = Callable[[pa.Table, pa.Table], list[pa.Table]]
"""The host's second look: (steps, suspects) to partial rows with `__step`, see `Partials.fold_by_step`."""

_BEFORE, _AFTER = -(2**63), 2**63 - 1
MOVED_TO = "AGG_MOVED_TO"
LEDGER_KINDS = ("moved", "dropped", "corrected", "resent")
KINDS = ("", *LEDGER_KINDS)
"""What happens to a group; '' is on time."""
_RESENT = KINDS.index("resent")
_LATE = {
    Policy.MERGE: KINDS.index("moved"),
    Policy.DROP: KINDS.index("dropped"),
    Policy.CORRECT: KINDS.index("corrected"),
}


@dataclass(frozen=True)
class Steps:
    """Where the clock steps in a batch: from arrival `arrivals[i]` on it is `clocks[i]`; both rise."""

    arrivals: Longs
    clocks: Longs

    @property
    def table(self) -> pa.Table:
        """As `Partials.fold_by_step` takes it; step -1 is before the first event that counts."""
        arrivals = (
            np.concatenate(([_BEFORE], self.arrivals))
            if not len(self.arrivals) or self.arrivals[0] != _BEFORE
            else self.arrivals
        )
        first = -1 if len(arrivals) > len(self.arrivals) else 0
        return pa.table({"__from": arrivals, STEP: np.arange(first, first + len(arrivals), dtype=np.int64)})

    def at(self, arrivals: Longs) -> Longs:
        """The step that each arrival falls into."""
        return np.searchsorted(self.arrivals, arrivals, side="right").astype(np.int64) - 1


@dataclass(frozen=True)
class Admitted:
    """What admission gives: the rows that enter the cascade, the clock after the batch, and the counted rest.

    `now` is the wall clock's bucket for aggregations by arrival time, whose buckets close without events.
    Each table of `rows` has every (bucket, zone, keys) once; `moved`, what late groups and suspects give, may not.
    `ledger` has one row a late group: root bucket it belongs to, zone, keys, AGG_KIND (LEDGER_KINDS) and AGG_EVENTS.
    """

    rows: list[pa.Table]
    clock: int | None
    ledger: pa.Table
    moved: pa.Table | None = None
    counts: dict[str, int] = field(default_factory=dict[str, int])
    now: int | None = None
    moves: pa.Table | None = None
    """Of events merged into another root bucket: AGG_TIMESTAMP of their own, MOVED_TO, AGG_EVENTS."""
    behind: int | None = None
    """By how many milliseconds, at most, a late event's bucket began before the clock when the event came."""


def admit(
    engine: ColumnEngine,
    aggregation: Aggregation,
    state: State,
    partials: list[pa.Table],
    refold: Refold,
    keyed: bool = True,
) -> Admitted:
    """Decide a batch's partial rows against the state's clock.

    `partials` are tables of `Partials.schema()`, one a task, whose arrivals are numbered over the whole batch. Suspects
    are groups, or all groups of a bucket where not `keyed`.
    """
    partials = _filled(partials)
    if not partials:
        return Admitted([], state.clocks[aggregation.root], _ledger_schema(aggregation).empty_table())
    return apply(judge(engine, aggregation, state, partials), partials, refold, engine if keyed else None)


def judge(engine: ColumnEngine, aggregation: Aggregation, state: State, partials: list[pa.Table]) -> Judge:
    """What decides about a batch. It needs the bucket, zone, first and last arrival of its partial rows, and nothing else."""
    buckets = Spans.of_buckets(engine, aggregation, partials)
    return Judge(aggregation, buckets, _steps(buckets, state.clocks[aggregation.root], state.resume))


def apply(judge: Judge, partials: list[pa.Table], refold: Refold, keyed: ColumnEngine | None = None) -> Admitted:
    """Decide partial rows, all of the batch that was judged or the part of it that some keys have.

    `keyed` is the engine that tells suspects by their keys; without it they are whole buckets, so that whoever knows no
    keys has the same ones.
    """
    partials = _filled(partials)
    if judge.on_time(judge.buckets).all():
        rows = [_rows(judge.aggregation, table) for table in partials]
        return Admitted(rows, judge.after, _ledger_schema(judge.aggregation).empty_table(), now=judge.now)
    return _decide(judge, partials, refold, keyed)


def tick(aggregation: Aggregation, state: State, now: int) -> Admitted:
    """No events, but the wall clock: what it has passed closes at every level."""
    bucket, clock = bucket_start(now, aggregation.root, aggregation.zone), state.clocks[aggregation.root]
    later = bucket if clock is None else max(bucket, clock)
    return Admitted([], later, _ledger_schema(aggregation).empty_table(), now=later)


@dataclass(frozen=True)
class Spans:
    """Root buckets with their zones and the arrivals of the first and the last event of each."""

    start: Longs
    zone: pa.ChunkedArray
    first: Longs
    last: Longs
    closes: Longs
    """For each the clock at which it leaves the buffer."""

    @classmethod
    def of_buckets(cls, engine: ColumnEngine, aggregation: Aggregation, partials: list[pa.Table]) -> Spans:
        """The distinct buckets of a batch, in the order of their first events."""
        zoned = aggregation.own_zones
        narrow = pa.concat_tables([_narrow(table) if zoned else _runs(table) for table in partials])
        found = engine.run(
            f"SELECT {TIMESTAMP}, {ZONE}, MIN({FIRST}) AS {FIRST}, MAX({LAST}) AS {LAST} FROM partials "
            f"GROUP BY ALL ORDER BY {FIRST}, {TIMESTAMP}",
            partials=narrow,
        )
        return cls.of(aggregation, found)

    @classmethod
    def of(cls, aggregation: Aggregation, rows: pa.Table) -> Spans:
        """Those of partial rows, one each."""
        start = _longs(rows[TIMESTAMP])
        closes = closing(aggregation, start, rows[ZONE])
        return cls(start, rows[ZONE], _longs(rows[FIRST]), _longs(rows[LAST]), closes)


def _narrow(table: pa.Table) -> pa.Table:
    return table.select([TIMESTAMP, ZONE, FIRST, LAST])


def _runs(table: pa.Table) -> pa.Table:
    """Partial rows of one zone, those of a bucket that stand together as one row: as they come sorted, few are left."""
    narrow, starts = _narrow(table), _longs(table[TIMESTAMP])
    if not len(starts):
        return narrow
    begins = np.flatnonzero(np.concatenate(([True], starts[1:] != starts[:-1])))
    found = {
        TIMESTAMP: starts[begins],
        ZONE: table[ZONE].take(pa.array(begins)),
        FIRST: np.minimum.reduceat(_longs(table[FIRST]), begins),
        LAST: np.maximum.reduceat(_longs(table[LAST]), begins),
    }
    return pa.table(found, schema=narrow.schema)


def closing(aggregation: Aggregation, start: Longs, zone: pa.ChunkedArray) -> Longs:
    """For each root bucket, the clock at which it leaves the buffer: the start of the bucket B + 1 units later."""
    width = aggregation.root.width_ms
    if width is not None:
        return start + width * (aggregation.buffer + 1)
    names, codes = _coded(zone)
    (starts, places), each = np.unique(np.stack([start, codes]), axis=1, return_inverse=True)
    ends = [
        bucket_end(int(at), aggregation.root, names[place], aggregation.buffer + 1)
        for at, place in zip(starts, places, strict=True)
    ]
    return np.array(ends, np.int64)[each.reshape(-1)]


def slot(aggregation: Aggregation, clock: int, zone: str) -> int:
    """Where a too late event goes under the merge policy: to the start of the oldest bucket still in the buffer.

    By time of arrival it is the newest one. What arrives is never late: that clock goes on with the machine's, and a file
    or a message that is a moment older than the last look at it has arrived now.
    """
    root, back = aggregation.root, 0 if aggregation.clock is Clock.ARRIVAL else aggregation.buffer
    if root.width_ms is not None:
        return bucket_start(clock - back * root.width_ms, root, zone)
    return bucket_end(bucket_start(clock, root, zone), root, zone, -back)


def _steps(buckets: Spans, clock: int | None, resume: int | None) -> Steps:
    """The steps of the clock, in order of arrival; only buckets from `resume` on can make it step."""
    counts = np.ones(len(buckets.start), bool) if resume is None else buckets.start >= resume
    arrivals, starts = buckets.first[counts], buckets.start[counts]
    if clock is not None:
        arrivals, starts = np.concatenate(([_BEFORE], arrivals)), np.concatenate(([clock], starts))
    if not len(starts):
        return Steps(arrivals, starts)
    highest = np.maximum.accumulate(starts)
    rises = np.concatenate(([True], highest[1:] > highest[:-1]))
    return Steps(arrivals[rises], highest[rises])


@dataclass(frozen=True)
class Judge:
    """Decides groups by their bucket and zone and the step of the clock in which they arrived."""

    aggregation: Aggregation
    buckets: Spans
    steps: Steps

    @property
    def after(self) -> int | None:
        """The clock after the batch."""
        return int(self.steps.clocks[-1]) if len(self.steps.clocks) else None

    @property
    def now(self) -> int | None:
        """The wall clock's bucket, which events by arrival time tell as well as a tick does."""
        return self.after if self.aggregation.clock is Clock.ARRIVAL else None

    def on_time(self, spans: Spans) -> npt.NDArray[np.bool_]:
        """Which of them hold no event that is late or re-sent."""
        late_from = np.append(self.steps.arrivals, _AFTER)[
            np.searchsorted(self.steps.clocks, spans.closes, side="left")
        ]
        begin = self.steps.arrivals[0] if len(self.steps.arrivals) else _AFTER
        return (spans.last < late_from) & (spans.first >= begin)

    def verdicts(self, start: Longs, zone: pa.ChunkedArray, closes: Longs, steps: Longs) -> tuple[Longs, Longs]:
        """(kind of each, as a place in KINDS; bucket it goes to) for groups that arrived in these steps of the clock."""
        clocks = self.steps.clocks[np.maximum(steps, 0)] if len(self.steps.clocks) else np.zeros_like(steps)
        late = (steps >= 0) & (closes <= clocks)
        what = 0 if self.aggregation.clock is Clock.ARRIVAL else _LATE[self.aggregation.policy]
        kinds = np.where(steps < 0, _RESENT, np.where(late, what, 0))
        if what not in (0, _LATE[Policy.MERGE]):
            return kinds, start
        names, codes = _coded(zone)
        places, place = np.unique(steps[late] * len(names) + codes[late], return_inverse=True)
        slots = [self._slot(int(self.steps.clocks[p // len(names)]), names[p % len(names)]) for p in places]
        buckets = start.copy()
        buckets[late] = np.array(slots, np.int64)[place]
        return kinds, buckets

    def _slot(self, clock: int, zone: str) -> int:
        """As `slot`, each worked out once a batch: with late events there is one a step, and three looks at them."""
        found = self._slots.get((clock, zone))
        if found is None:
            found = self._slots[clock, zone] = slot(self.aggregation, clock, zone)
        return found

    @cached_property
    def _slots(self) -> dict[tuple[int, str], int]:
        return {}

    def mixed(self, spans: Spans) -> npt.NDArray[np.bool_]:
        """Which of them have events of more than one verdict: those of the first and the last event differ."""
        first, last = (
            self.verdicts(spans.start, spans.zone, spans.closes, self.steps.at(arrivals))
            for arrivals in (spans.first, spans.last)
        )
        return (first[0] != last[0]) | (first[1] != last[1])


def _decide(judge: Judge, partials: list[pa.Table], refold: Refold, keyed: ColumnEngine | None) -> Admitted:
    goods = [judge.on_time(Spans.of(judge.aggregation, table)) for table in partials]
    suspects = _buckets(judge) if keyed is None else _groups(judge, partials, goods)
    late = list(refold(judge.steps.table, suspects)) if suspects.num_rows else []
    rows: list[pa.Table] = []
    for table, good in zip(partials, goods, strict=True):
        known = ~_among(table, suspects, keyed)
        rows.append(_rows(judge.aggregation, table.filter(pa.array(known & good))))
        other = table.filter(pa.array(known & ~good))
        late.append(other.append_column(STEP, pa.array(judge.steps.at(_longs(other[FIRST])))))
    rows, wide = _filled(rows), [_wide(judge.aggregation, table) for table in _filled(late)]
    if not wide:
        return Admitted(rows, judge.after, _ledger_schema(judge.aggregation).empty_table(), now=judge.now)
    moved, ledger, moves, behind = _sentence(judge, pa.concat_tables(wide))
    counts: dict[str, int] = {}
    for kind, events in zip(ledger[KIND].to_pylist(), ledger[EVENTS].to_pylist(), strict=True):
        counts[kind] = counts.get(kind, 0) + events
    return Admitted(rows, judge.after, ledger, moved, counts, judge.now, moves, behind)


def _groups(judge: Judge, partials: list[pa.Table], goods: list[npt.NDArray[np.bool_]]) -> pa.Table:
    """The groups that cannot be decided as a whole in one of the tables; `goods` are the rows that need not be."""
    names, found = [TIMESTAMP, ZONE, *(key.name for key in judge.aggregation.keys)], list[pa.Table]()
    for table, good in zip(partials, goods, strict=True):
        odd = table.filter(pa.array(~good))
        found.append(odd.filter(pa.array(judge.mixed(Spans.of(judge.aggregation, odd)))).select(names))
    return pa.concat_tables(found)


def _buckets(judge: Judge) -> pa.Table:
    """The buckets that cannot be decided as a whole, over all keys and tables."""
    found = pa.table({TIMESTAMP: judge.buckets.start, ZONE: judge.buckets.zone})
    return found.filter(pa.array(judge.mixed(judge.buckets)))


def _among(table: pa.Table, suspects: pa.Table, keyed: ColumnEngine | None) -> npt.NDArray[np.bool_]:
    """Which rows are of groups, or without `keyed` of buckets, that are suspects."""
    found = np.zeros(table.num_rows, bool)
    if not suspects.num_rows:
        return found
    if keyed is None:
        return _in_buckets(table, suspects)
    names = [f"c{number}" for number in range(suspects.num_columns)]
    same = " AND ".join(f"rows.{name} IS NOT DISTINCT FROM suspects.{name}" for name in names)
    near = pa.array(np.flatnonzero(pc.is_in(table[TIMESTAMP], value_set=suspects[TIMESTAMP].combine_chunks())))
    rows = table.select(suspects.column_names).take(near).rename_columns(names)
    places = keyed.run(
        f"SELECT place FROM rows SEMI JOIN suspects ON {same}",
        rows=rows.append_column("place", near),
        suspects=suspects.rename_columns(names),
    )
    found[_longs(places["place"])] = True
    return found


def _filled(tables: list[pa.Table]) -> list[pa.Table]:
    return [table for table in tables if table.num_rows]


def _wide(aggregation: Aggregation, table: pa.Table) -> pa.Table:
    """Partial rows with exact sums wide, so that those of a second look and of the first can stand together."""
    rest = [table.schema.field(name) for name in table.schema.names if name not in aggregation.state_schema.names]
    return table.cast(pa.schema([*aggregation.state_schema, *rest]))


def _in_buckets(table: pa.Table, keys: pa.Table) -> npt.NDArray[np.bool_]:
    """Which rows of `table` have a bucket that is among `keys`."""
    zones = table[ZONE]
    known = pc.unique(zones).to_pylist()
    if len(known) == 1:
        keys = keys.filter(pc.equal(keys[ZONE], known[0]))
    possible = pc.is_in(table[TIMESTAMP], value_set=keys[TIMESTAMP].combine_chunks())
    mask = np.array(possible.to_numpy(zero_copy_only=False), dtype=bool)
    for zone in known if len(known) > 1 else ():
        here = keys.filter(pc.equal(keys[ZONE], zone))[TIMESTAMP].combine_chunks()
        elsewhere = pc.invert(pc.is_in(table[TIMESTAMP], value_set=here))
        mask &= ~np.array(pc.and_(pc.equal(zones, zone), elsewhere).to_numpy(zero_copy_only=False), dtype=bool)
    return mask


def _sentence(judge: Judge, late: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table, int | None]:
    """The rows of late groups in the buckets they go to, their ledger, which were moved where, and how late they were."""
    aggregation = judge.aggregation
    starts, zones = _longs(late[TIMESTAMP]), late[ZONE]
    steps = _longs(late[STEP])
    verdicts, buckets = judge.verdicts(starts, zones, closing(aggregation, starts, zones), steps)
    seen = (verdicts > 0) & (steps >= 0)
    by = judge.steps.clocks[steps[seen]] - starts[seen]
    kinds = pa.array(KINDS).take(pa.array(verdicts))
    placed = late.set_column(0, TIMESTAMP, pa.array(buckets))
    kept = placed.filter(pc.invert(pc.is_in(kinds, value_set=pa.array(["dropped", "resent"]))))
    counted = late.select([TIMESTAMP, ZONE, *(key.name for key in aggregation.keys)])
    ledger = counted.append_column(KIND, kinds).append_column(EVENTS, late[EVENTS])
    moves = late.select([TIMESTAMP, EVENTS]).append_column(MOVED_TO, pa.array(buckets)).filter(pc.equal(kinds, "moved"))
    return (
        _rows(aggregation, kept),
        ledger.filter(pc.not_equal(kinds, "")).cast(_ledger_schema(aggregation)),
        moves,
        int(by.max(initial=0)) or None,
    )


def _rows(aggregation: Aggregation, table: pa.Table) -> pa.Table:
    return table.select(aggregation.state_schema.names)


def _ledger_schema(aggregation: Aggregation) -> pa.Schema:
    keys = [(key.name, key.type.arrow) for key in aggregation.keys]
    return pa.schema([(TIMESTAMP, pa.int64()), (ZONE, pa.string()), *keys, (KIND, pa.string()), (EVENTS, pa.int64())])


def _longs(column: pa.ChunkedArray) -> Longs:
    return column.to_numpy().astype(np.int64, copy=False)


def _coded(zones: pa.ChunkedArray) -> tuple[list[str], Longs]:
    """The distinct names of zones, and the place of each among them."""
    coded = zones.combine_chunks().dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
