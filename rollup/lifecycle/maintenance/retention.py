"""Rows removed when their time is over, and only when the next coarser level provably has them.

Age is measured on the aggregation's own clock, so a job that catches up with the past does not remove what it has just
written. Rows go by whole buckets of the next coarser level, when that bucket is closed, stored, and has exactly as many
events as the rows to go. The book says first that the rows may be gone; then one commit removes them at all levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from rollup.aggregation.cascade import Cascade
from rollup.core.calendar import Duration, bucket_start
from rollup.core.columns import ColumnEngine
from rollup.core.identifiers import quoted, same
from rollup.core.untyped import pc
from rollup.hosts.pipeline import Pipeline
from rollup.lifecycle.book import Book
from rollup.lifecycle.replay.rebuild import WIDEST, closed_until, within
from rollup.plan.aggregation import EVENTS, ZONE, Aggregation
from rollup.plan.retention import Retention
from rollup.stores.base import Rewrite, Snapshot

_AT_ONCE = 1_000_000
"""Rows, about, that are looked at together, so that memory does not grow with what there is to remove."""


@dataclass(frozen=True)
class Purge:
    """What can go: for each level the AGG_TIMESTAMP before which rows are removed, and what had to stay and why."""

    cuts: Mapping[Duration, int]
    kept: tuple[str, ...] = ()


def due(engine: ColumnEngine, cascade: Cascade, snapshot: Snapshot, plan: Retention) -> Purge:
    """What a retention plan allows to remove from a snapshot now."""
    aggregation, state = cascade.aggregation, snapshot.loaded().state
    now = closed_until(state, aggregation)
    cuts, kept = dict[Duration, int](), list[str]()
    levels = aggregation.levels
    for level, coarser in zip(levels, [*levels[1:], None], strict=True):
        period, extent = plan.keep[level], snapshot.extent(level)
        if now is None or period is None or extent is None:
            continue
        limit = now - period
        if coarser is not None:
            clock = state.clocks[coarser]
            limit = _boundary(snapshot, aggregation, min(limit, now if clock is None else clock), coarser)
        if extent[0] >= limit:
            continue
        missing = None if coarser is None else _unheld(engine, cascade, snapshot, level, coarser, limit)
        if missing is not None:
            kept.append(f"{aggregation.table(level)}: {missing}")
        else:
            cuts[level] = limit
    return Purge(cuts, tuple(kept))


def purge(pipeline: Pipeline, engine: ColumnEngine, plan: Retention, book: Book) -> Purge:
    """Remove what is due in one commit; the store must be the caller's to write."""
    found = due(engine, pipeline.cascade, pipeline.store.snapshot(), plan)
    if not found.cuts:
        return found
    page = book.page()
    purged = {**page.purged, **{level.name: max(cut, page.purged_before(level)) for level, cut in found.cuts.items()}}
    book.write(replace(page, purged=purged))
    empty = pipeline.aggregation.table_schema.empty_table()
    pipeline.rewrite({level: Rewrite(None, cut, empty) for level, cut in found.cuts.items()})
    return found


def _boundary(snapshot: Snapshot, aggregation: Aggregation, limit: int, coarser: Duration) -> int:
    """The latest start of a coarser bucket before which every coarser bucket, in every zone, has ended."""
    if not aggregation.own_zones:
        return bucket_start(limit, coarser, aggregation.zone)
    zones = {zone for level in aggregation.levels[-1:] for zone in pc.unique(snapshot.rows(level)[ZONE]).to_pylist()}
    zones |= {zone for table in snapshot.loaded().state.open.values() for zone in pc.unique(table[ZONE]).to_pylist()}
    return min((bucket_start(limit, coarser, zone) for zone in zones), default=limit)


def _unheld(
    engine: ColumnEngine, cascade: Cascade, snapshot: Snapshot, level: Duration, coarser: Duration, limit: int
) -> str | None:
    """What the coarser table lacks of the rows before `limit`; None when it has every event of them."""
    names, extent = list(cascade.aggregation.identity), snapshot.extent(level)
    if extent is None:
        return None
    short, low = 0, extent[0] - WIDEST[coarser]  # a bucket starts up to its width before the first row of it
    step = max(WIDEST[coarser], (limit - low) * _AT_ONCE // max(1, snapshot.sizes()[level].rows))
    while low < limit:
        high = min(limit, low + step)
        rows = snapshot.rows(level, low, min(limit, high + WIDEST[coarser])).cast(cascade.aggregation.state_schema)
        going = within(cascade.merge(engine, coarser, [rows]), low, high).select([*names, EVENTS])
        held = snapshot.rows(coarser, low, high).select([*names, EVENTS])
        short += _short(engine, names, going, held)
        low = high
    table = cascade.aggregation.table(coarser)
    return f"{short} buckets are not all in {table}; run `rollup verify CONF --repair`" if short else None


def _short(engine: ColumnEngine, names: list[str], going: pa.Table, held: pa.Table) -> int:
    """Of how many buckets the coarser rows have fewer events."""
    keys = ", ".join(map(quoted, names))
    sql = (
        f'SELECT COUNT(*) FROM going AS g LEFT JOIN (SELECT {keys}, SUM("{EVENTS}") AS n FROM held GROUP BY ALL) AS h '
        f"ON {same(names, 'g', 'h')} "
        f'WHERE COALESCE(h.n, 0) < g."{EVENTS}"'
    )
    return int(engine.run(sql, going=going, held=held).column(0)[0].as_py())
