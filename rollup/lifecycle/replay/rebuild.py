"""A range of the finest level replaced, and every coarser level rebuilt from the level below: tables and open rows.

What it rests on: at every level, the stored rows together with the level's open rows are the stored rows of the next
finer level, cut into its buckets. So when stored rows of a level change in a range, the buckets above that touch the
range are merged anew from all their parts, in the range or not. A bucket that the level's watermark has not passed
goes to the open rows, any other to the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from rollup.aggregation.cascade import Cascade, later, narrowed
from rollup.aggregation.state import State
from rollup.core.calendar import Duration, bucket_end, bucket_start
from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError
from rollup.core.untyped import pc
from rollup.lifecycle.book import Page
from rollup.lifecycle.replay.compare import readable
from rollup.plan.aggregation import EVENTS, TIMESTAMP, ZONE, Aggregation
from rollup.stores.base import Damaged, Rewrite, Snapshot

Span = tuple[int, int]
_DAY = 86_400_000
WIDEST: Mapping[Duration, int] = {
    Duration.SECONDS: 1_000,
    Duration.MINUTES: 60_000,
    Duration.HOURS: 3_600_000,
    Duration.DAYS: _DAY + 7_200_000,
    Duration.MONTHS: 32 * _DAY,
    Duration.YEARS: 367 * _DAY,
}
"""No bucket of a level is longer, ms."""


@dataclass(frozen=True)
class Rebuilt:
    """New rows for a range of every level, and the state that goes with them."""

    rewrites: Mapping[Duration, Rewrite]
    state: State
    left: str = ""
    """What is left out of it, and what to do about that."""


@dataclass(frozen=True)
class Pinned:
    """One commit of an aggregation, what its book says, and what computing with its rows takes."""

    engine: ColumnEngine
    cascade: Cascade
    snapshot: Snapshot
    page: Page

    @property
    def aggregation(self) -> Aggregation:
        """What it is a commit of."""
        return self.cascade.aggregation

    def stored(self, level: Duration, span: Span) -> list[pa.Table]:
        """The rows of a level in a range, those of its table and those that are open."""
        return [self.snapshot.rows(level, *span), within(self.opened[level], *span)]

    @cached_property
    def damaged(self) -> list[Damaged]:
        """The data files that are not what was written."""
        filed = self.snapshot.in_files
        return [] if filed is None else filed.damaged()

    def whole(self, level: Duration, span: Span) -> bool:
        """Whether no damaged file of a level has rows of a range."""
        return not any(one.level is level and one.touches(span) for one in self.damaged)

    @cached_property
    def opened(self) -> Mapping[Duration, pa.Table]:
        """The open rows of each level."""
        return self.snapshot.loaded().state.open


@dataclass(frozen=True)
class Rebuilder(Pinned):
    """Rebuilds levels of an aggregation."""

    def replace(self, span: Span, rows: pa.Table) -> Rebuilt:
        """Rows of the finest level (state columns) in the place of all in [start, end), and what follows above.

        Raises StoreError when retention has removed rows that this needs.
        """
        state = self.snapshot.loaded().state
        root, horizon = self.aggregation.root, closed_until(state, self.aggregation)
        fresh = self.cascade.merge(self.engine, root, [within(rows.select(self.aggregation.state_schema.names), *span)])
        clock = later(state.clocks[root], [fresh]) if state.resume is None else state.clocks[root]
        if clock != state.clocks[root]:
            # Of an aggregation that begins behind its stream a replay moves the clock: what was open closes before the range.
            begin = _first(state.open[root], span[0])
            fresh = self._join(
                fresh, self._join(self.snapshot.rows(root, begin, span[0]), within(state.open[root], begin, span[0]))
            )
            fresh, span = self.cascade.merge(self.engine, root, [fresh]), (begin, span[1])
            state = replace(state, clocks={**state.clocks, root: clock})
        spans = self.spans(span, rows)
        self._check_purged(spans)
        left = ""
        if state.clocks[root] is None:
            # After a rebuild without commit record there is no clock yet: what the table has is closed.
            until = 2**63 - 1 if horizon is None else horizon
            left = _left(within(fresh, until, 2**63 - 1))
            still, closed = fresh.slice(0, 0), within(fresh, -(2**63), until)
        else:
            still, closed = self.cascade.split(self.engine, root, fresh, state.clocks[root])
        opened = {**state.open, root: self._join(outside(state.open[root], *span), still)}
        rewrites = {root: Rewrite(*span, narrowed(self.aggregation, closed))}
        return replace(self._upwards(state, opened, rewrites, spans, root), left=left)

    def repair(self, level: Duration, span: Span) -> Rebuilt:
        """Every level above `level` put together anew where it touches the range; the level itself is believed."""
        state = self.snapshot.loaded().state
        spans = self.stored_spans(span, level)
        self._check_purged(spans)
        return self._upwards(state, dict(state.open), {}, spans, level)

    def stored_spans(self, span: Span, lowest: Duration) -> dict[Duration, Span]:
        """The same as `spans`, over the zones of the stored rows of a range."""
        return self.spans(span, self.snapshot.rows(lowest, *span) if self.aggregation.own_zones else None, lowest)

    def spans(self, span: Span, rows: pa.Table | None, lowest: Duration | None = None) -> dict[Duration, Span]:
        """At each level from `lowest` up, the range of bucket starts that touch the range below it, over all zones."""
        zones = self._zones(rows)
        levels = [level for level in self.aggregation.levels if lowest is None or level >= lowest]
        found = {levels[0]: span}
        for level in levels[1:]:
            span = _widened(span, level, zones)
            found[level] = span
        return found

    def _upwards(
        self,
        state: State,
        opened: dict[Duration, pa.Table],
        rewrites: dict[Duration, Rewrite],
        spans: Mapping[Duration, Span],
        lowest: Duration,
    ) -> Rebuilt:
        finer, clocks, span = lowest, dict(state.clocks), spans[lowest]
        for level in self.aggregation.levels:
            if level <= lowest:
                continue
            span = (min(spans[level][0], _widened(span, level, self._zones(None))[0]), spans[level][1])
            clocks[level] = later(clocks[level], [rewrites[finer].rows] if finer in rewrites else [])
            if clocks[level] != state.clocks[level]:
                span = (_first(state.open[level], span[0]), span[1])
            parts = self._children(finer, level, span, rewrites.get(finer))
            whole = within(self.cascade.merge(self.engine, level, parts), *span)
            still, closed = self.cascade.split(self.engine, level, whole, clocks[level])
            opened[level] = self._join(outside(state.open[level], *span), still)
            rewrites[level] = Rewrite(*span, narrowed(self.aggregation, closed))
            finer = level
        return Rebuilt(rewrites, replace(state, open=opened, clocks=clocks))

    def _children(self, finer: Duration, level: Duration, span: Span, rewrite: Rewrite | None) -> list[pa.Table]:
        """All stored rows of `finer`, after its rewrite, of the buckets of `level` that start in the range."""
        start, end = span[0], _widened((span[0], span[1]), level, self._zones(None))[1]
        if rewrite is None:
            parts = [self.snapshot.rows(finer, start, end)]
        else:
            parts = [
                self.snapshot.rows(finer, start, rewrite.start),
                rewrite.rows,
                self.snapshot.rows(finer, rewrite.end, end),
            ]
        return [part.cast(self.aggregation.state_schema) for part in parts]

    def _join(self, left: pa.Table, right: pa.Table) -> pa.Table:
        return pa.concat_tables([part.cast(self.aggregation.state_schema) for part in (left, right)])

    def _zones(self, rows: pa.Table | None) -> list[str]:
        if not self.aggregation.own_zones:
            return [self.aggregation.zone]
        state, coarsest = self.snapshot.loaded().state, self.snapshot.rows(self.aggregation.levels[-1])
        tables = [coarsest, *state.open.values(), *([] if rows is None else [rows])]
        return sorted({zone for table in tables for zone in pc.unique(table[ZONE]).to_pylist()}) or [
            self.aggregation.zone
        ]

    def _check_purged(self, spans: Mapping[Duration, Span]) -> None:
        levels = list(spans)
        for finer, level in zip([levels[0], *levels], levels, strict=False):
            for which in (level, finer) if spans[level][0] < spans[finer][0] else (level,):
                gone = self.page.purged_before(which)
                if spans[level][0] < gone:
                    raise StoreError(
                        f"{self.aggregation.table(which)}: rows before {readable(gone)} "
                        "have been removed by retention, "
                        f"and the {level.plural} of this range need them from {readable(spans[level][0])} on",
                        hint=f"choose a range that starts at or after {readable(self._earliest())}",
                    )

    def _earliest(self) -> int:
        gone = max(self.page.purged_before(level) for level in self.aggregation.levels)
        coarsest = self.aggregation.levels[-1]
        start = bucket_start(gone, coarsest, self.aggregation.zone)
        return start if start >= gone else bucket_end(start, coarsest, self.aggregation.zone)


def closed_until(state: State, aggregation: Aggregation) -> int | None:
    """Up to when events have been taken: the end of the clock's bucket, or what a rebuild says; None before any."""
    clock = state.clocks[aggregation.root]
    return state.resume if clock is None else bucket_end(clock, aggregation.root, aggregation.zone)


def _left(rows: pa.Table) -> str:
    """What is said of rows whose buckets were open when the commit record was lost: they may be sent again."""
    if not rows.num_rows:
        return ""
    return (
        f"events left out: {pc.sum(rows[EVENTS]).as_py():,}, from {readable(pc.min(rows[TIMESTAMP]).as_py())} on: "
        "their buckets were open when the commit record was lost, and the source may send them again; "
        "replay the range once more when the job has taken newer events"
    )


def _first(rows: pa.Table, otherwise: int) -> int:
    """The start of the first bucket of rows, or another time that is before it."""
    return min(otherwise, pc.min(rows[TIMESTAMP]).as_py()) if rows.num_rows else otherwise


def within(rows: pa.Table, start: int, end: int) -> pa.Table:
    """Rows with start <= AGG_TIMESTAMP < end."""
    return rows.filter(pc.and_(pc.greater_equal(rows[TIMESTAMP], start), pc.less(rows[TIMESTAMP], end)))


def outside(rows: pa.Table, start: int, end: int) -> pa.Table:
    """The other rows."""
    return rows.filter(pc.or_(pc.less(rows[TIMESTAMP], start), pc.greater_equal(rows[TIMESTAMP], end)))


def _widened(span: Span, level: Duration, zones: list[str]) -> Span:
    starts = [bucket_start(span[0], level, zone) for zone in zones]
    ends = [bucket_end(bucket_start(span[1] - 1, level, zone), level, zone) for zone in zones]
    return min(starts), max(ends)
