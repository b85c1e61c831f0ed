"""The rows that a batch closes in an aggregation as events: ordinary closings, and corrections as remove and insert.

A closing comes behind the events of its batch, at the end of its bucket. A row of a coarser level comes behind the rows
of the finer level that closed it, so one batch tells what many would.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from rollup.aggregation.cascade import narrowed
from rollup.aggregation.closings import PASSED, REMOVED, closings
from rollup.core.calendar import Duration, bucket_end, bucket_start
from rollup.core.columns import ColumnEngine
from rollup.hosts.pipeline import Pipeline, Prepared
from rollup.plan.aggregation import TIMESTAMP, Aggregation
from rollup.statements.component import Event

BEHIND = 2**63 - 1
"""The place of closings: no event of a batch has one behind it."""


def closed_events(engine: ColumnEngine, pipeline: Pipeline, prepared: Prepared, wanted: Collection[str]) -> list[Event]:
    """What a prepared batch closes, as events of the streams that are wanted; the store does not have it yet."""
    aggregation, order, found = pipeline.aggregation, dict[int, int](), list[Event]()
    for place, level in enumerate(aggregation.levels):
        rows = prepared.closed.rows.get(level)
        name = aggregation.table(level)
        if name + PASSED in wanted:
            found += _passed(aggregation, place, pipeline.state.clocks[level], prepared.state.clocks[level])
        if rows is None or not rows.num_rows:
            order = {}
            continue
        starts = sorted(set(rows[TIMESTAMP].to_pylist()))
        order = {start: _turn(aggregation, level, start, order) if place else start for start in starts}
        if name not in wanted and name + REMOVED not in wanted:
            continue
        fresh, late = pipeline.cascade.split(engine, level, rows, pipeline.state.clocks[level])
        old, new = _corrected(engine, pipeline, level, late)
        for kind, (stream, given) in enumerate(((name + REMOVED, old), (name, new), (name, fresh))):
            if stream in wanted and given.num_rows:
                found += _events(engine, aggregation, level, given, stream, (place, kind), order)
    return sorted(found, key=lambda event: event.key)


def _passed(aggregation: Aggregation, place: int, before: int | None, clock: int | None) -> list[Event]:
    """How far a level is, where that has changed: the end of the first bucket that has not closed.

    It comes behind what the batch closes there, at a time that events have reached. Where rows have zones of their
    own, and so ends of their own, it is right behind what must have ended.
    """
    if clock is None or clock == before:
        return []
    level, zone = aggregation.levels[place], aggregation.zone
    reached = bucket_start(clock, level, zone)
    for _ in range(aggregation.buffer if level is aggregation.root else 0):
        reached = bucket_start(reached - 1, level, zone)
    until = clock + 1 if aggregation.own_zones else bucket_end(reached, level, zone)
    return [Event((BEHIND, BEHIND, place, BEHIND, 0, 0), reached, aggregation.table(level) + PASSED, (until,))]


def _turn(aggregation: Aggregation, level: Duration, start: int, finer: Mapping[int, int]) -> int:
    """When a bucket closes among those of a batch: with the first of the finer level that begins at its end or later."""
    starts = sorted(finer)
    found = bisect_left(starts, bucket_end(start, level, aggregation.zone))
    return finer[starts[found]] if found < len(starts) else BEHIND


def _events(
    engine: ColumnEngine,
    aggregation: Aggregation,
    level: Duration,
    rows: pa.Table,
    stream: str,
    rank: tuple[int, int],
    order: Mapping[int, int],
) -> list[Event]:
    given = closings(engine, aggregation, rows)
    starts = given[TIMESTAMP].to_pylist()
    values = zip(*(column.to_pylist() for column in given.columns), strict=True)
    return [
        Event(
            (BEHIND, order.get(start, BEHIND), rank[0], start, rank[1], i),
            bucket_end(start, level, aggregation.zone),
            stream,
            row,
        )
        for i, (start, row) in enumerate(zip(starts, values, strict=True))
    ]


def _corrected(engine: ColumnEngine, pipeline: Pipeline, level: Duration, late: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that parts of closed buckets change: as they were, and as they are now."""
    if not late.num_rows:
        return late, late
    aggregation, snapshot = pipeline.aggregation, pipeline.store.snapshot()
    stored = [snapshot.rows(level, start, start + 1) for start in sorted(set(late[TIMESTAMP].to_pylist()))]
    before = _merged(engine, pipeline, level, [_of_same(aggregation, pa.concat_tables(stored), late)])
    return before, _merged(engine, pipeline, level, [before, late])


def _of_same(aggregation: Aggregation, rows: pa.Table, late: pa.Table) -> pa.Table:
    """The rows that have the bucket, zone and keys of one of the others."""
    names = list(aggregation.identity)
    known = {tuple(row.values()) for row in late.select(names).to_pylist()}
    return rows.filter(pa.array([tuple(row.values()) in known for row in rows.select(names).to_pylist()], pa.bool_()))


def _merged(engine: ColumnEngine, pipeline: Pipeline, level: Duration, parts: Sequence[pa.Table]) -> pa.Table:
    parts = [part for part in parts if part.num_rows]
    merged = pipeline.cascade.merge(engine, level, parts) if parts else pipeline.aggregation.state_schema.empty_table()
    return narrowed(pipeline.aggregation, merged).sort_by(TIMESTAMP)
