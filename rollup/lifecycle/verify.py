"""Whether tables are what they should be: files as they were written, every level against the next finer one, the finest
against raw events.

Where two levels differ, the finer one is believed only when its files are known to be as they were written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import pyarrow as pa

from rollup.core.calendar import Duration, bucket_end, bucket_start
from rollup.core.errors import StoreError
from rollup.core.untyped import pc
from rollup.lifecycle.replay.compare import Comparison, Difference, readable
from rollup.lifecycle.replay.raw import RawSource
from rollup.lifecycle.replay.rebuild import WIDEST, Pinned, Rebuilder, Rebuilt, Span, within
from rollup.lifecycle.replay.recompute import TrueRows, rerun
from rollup.plan.aggregation import TIMESTAMP, Clock

_WINDOW = {Duration.MINUTES: Duration.DAYS, Duration.HOURS: Duration.MONTHS, Duration.DAYS: Duration.YEARS}
"""How much of a level is compared at once, so that memory holds a day of seconds and not all of them."""
_AT_ONCE = 2_000_000
"""Finer rows up to which a level is compared whole."""
_EVERYTHING = (-(2**62), 2**62)


@dataclass(frozen=True)
class Verifier(Pinned):
    """Checks a commit."""

    def levels(self, span: Span | None = None) -> Iterator[Difference]:
        """Where a level is not the merge of the next finer one, for buckets that touch the range (all when None).

        Buckets whose finer rows retention has removed cannot be checked and are passed over, and so are those beside
        damaged files.
        """
        levels = self.aggregation.levels
        spans = None if span is None else self._rebuilder.stored_spans(span, self.aggregation.root)
        for finer, level in pairwise(levels):
            for window in self._windows(finer, level, None if spans is None else spans[level]):
                near = window[0] - WIDEST[level], window[1] + WIDEST[level]
                if self.whole(finer, near) and self.whole(level, near):
                    yield from self._level(finer, level, window)

    def raw(self, source: RawSource, span: Span | None, true_buckets: bool) -> Iterator[Difference]:
        """Where the levels are not what the raw events give, in the range (everything when None).

        With `true_buckets` every event counts in its own bucket; otherwise late ones go where the policy sends them.
        When an event arrived only the job knew, so by time of arrival each level is compared as one bucket for each key.
        """
        if self.aggregation.clock is Clock.ARRIVAL:
            yield from self._totals(source, span)
            return
        if true_buckets:
            yield from self._true(source, span or self._all())
            return
        spans = dict.fromkeys(self.aggregation.levels, _EVERYTHING)
        if span is not None:
            spans = self._rebuilder.stored_spans(span, self.aggregation.root)
        found = rerun(source, self.engine, source.pieces(self.snapshot.loaded().source), spans)
        for level in self.aggregation.levels:
            low, high = spans[level]
            low = max(low, self.page.purged_before(level))
            expected = [within(table, low, high) for table in (found.closed[level], found.state.open[level])]
            yield from self.comparison.differences(level, self.stored(level, (low, high)), expected)

    def passed(self, span: Span) -> Iterator[str]:
        """What of a range is not compared, since there are no rows: a line for each reason."""
        for level in self.aggregation.levels:
            gone = self.page.purged_before(level)
            if span[0] < gone:
                yield f"{level.plural} before {readable(gone)} have been removed by retention, and were not compared"
        if not any(rows.num_rows for level in self.aggregation.levels for rows in self.stored(level, span)):
            yield f"there are no rows from {readable(span[0])} to {readable(span[1])}"

    def wrong(self, differences: list[Difference]) -> dict[Duration, Span]:
        """By level, the range in which a finer level can put it right: buckets that differ, and those of damaged files."""
        found: dict[Duration, Span] = {}
        ends = [(d.level, d.start, bucket_end(d.start, d.level, d.zone)) for d in differences]
        ends += [(one.level, one.low, one.high + 1) for one in self.damaged if one.level is not None]
        for level, start, end in ends:
            known = found.get(level, (start, end))
            found[level] = min(known[0], start), max(known[1], end)
        found.pop(self.aggregation.root, None)
        return found

    def repair(self, differences: list[Difference]) -> Rebuilt:
        """The levels above the lowest wrong one's children, put together anew over all buckets that are wrong.

        Raises StoreError unless the files of those children are known to be as they were written.
        """
        found, levels = self.wrong(differences), self.aggregation.levels
        finer = levels[levels.index(min(found)) - 1]
        span = min(start for start, _ in found.values()), max(end for _, end in found.values())
        filed, whole = self.snapshot.in_files, self._rebuilder.stored_spans(span, finer)
        low, high = (pick(end) for pick, end in zip((min, max), zip(*whole.values(), strict=True), strict=True))
        if filed is not None and (unproven := filed.unproven(finer, low, high)):
            raise StoreError(
                f"{len(unproven)} files of {self.aggregation.table(finer)}, such as {unproven[0]}, have no checksum: which of "
                f"the {finer.plural} and what is above them is wrong is not known",
                hint="`rollup verify CONF --raw` compares with the raw events, `rollup replay` computes the range again",
            )
        return self._rebuilder.repair(finer, span)

    def changes(self, rebuilt: Rebuilt) -> Iterator[Difference]:
        """What a rebuild would change; `stored` is what there is, `expected` what it would become."""
        for level, rewrite in rebuilt.rewrites.items():
            assert rewrite.start is not None and rewrite.end is not None
            span = rewrite.start, rewrite.end
            yield from self.comparison.differences(
                level, self.stored(level, span), [rewrite.rows, within(rebuilt.state.open[level], *span)]
            )

    @cached_property
    def comparison(self) -> Comparison:
        """How rows are compared."""
        return Comparison(self.engine, self.cascade)

    @property
    def _rebuilder(self) -> Rebuilder:
        return Rebuilder(self.engine, self.cascade, self.snapshot, self.page)

    def _true(self, source: RawSource, span: Span) -> Iterator[Difference]:
        yield from self.changes(self._rebuilder.replace(span, self._rows(source, span)))

    def _totals(self, source: RawSource, span: Span | None) -> Iterator[Difference]:
        """Where the rows of a whole level, put together for each key, are not what all raw events give."""
        if span is not None:
            raise StoreError(
                f"{self.aggregation.name} goes by the time of arrival, which raw events do not have: their sums are compared "
                "over all that the job has taken",
                hint="leave out --from and --to",
            )
        first = (self.snapshot.extent(self.aggregation.root) or (0, 0))[0]
        expected = [_in_one_bucket(self._rows(source, _EVERYTHING), first)]
        finer = list[pa.Table]()  # what is open there has not come up yet
        for level in self.aggregation.levels:
            if self.page.purged_before(level) < _EVERYTHING[0]:
                stored = [_in_one_bucket(rows, first) for rows in (*self.stored(level, _EVERYTHING), *finer)]
                yield from self.comparison.differences(level, stored, expected)
            finer.append(self.opened[level])

    def _rows(self, source: RawSource, span: Span) -> pa.Table:
        """The raw rows of a range, with every event in its own bucket."""
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory(prefix="rollup-verify-") as home:
            rows = TrueRows.resume(source, self.engine, span, Path(home))
            rows.take(rows.left(self.snapshot.loaded().source))
            return rows.rows()

    def _all(self) -> Span:
        extents = [extent for level in self.aggregation.levels if (extent := self.snapshot.extent(level)) is not None]
        opened = [pc.min_max(table["AGG_TIMESTAMP"]).as_py() for table in self.opened.values() if table.num_rows]
        lows = [low for low, _ in extents] + [found["min"] for found in opened]
        highs = [high for _, high in extents] + [found["max"] for found in opened]
        if not lows:
            raise StoreError(f"{self.aggregation.name} has no rows yet")
        return min(lows), max(highs) + WIDEST[Duration.MONTHS] * 12

    def _level(self, finer: Duration, level: Duration, window: Span) -> Iterator[Difference]:
        children = self.snapshot.rows(finer, window[0], window[1] + WIDEST[level])
        expected = self.cascade.merge(self.engine, level, [children.cast(self.aggregation.state_schema)])
        yield from self.comparison.differences(level, self.stored(level, window), [within(expected, *window)])

    def _windows(self, finer: Duration, level: Duration, span: Span | None) -> Iterator[Span]:
        extents = [found for each in (finer, level) if (found := self.snapshot.extent(each)) is not None]
        if self.opened[level].num_rows:
            found = pc.min_max(self.opened[level]["AGG_TIMESTAMP"]).as_py()
            extents.append((found["min"], found["max"]))
        if not extents:
            return
        # A child's bucket starts up to one width before the child.
        low = min(extent[0] for extent in extents) - WIDEST[level]
        high = max(extent[1] for extent in extents) + 1
        if span is not None:
            low, high = max(low, span[0]), min(high, span[1])
        low = max(low, self.page.purged_before(finer), self.page.purged_before(level))
        unit = _WINDOW.get(level) if self.snapshot.sizes()[finer].rows > _AT_ONCE else None
        while low < high:
            stop = high if unit is None else min(high, bucket_end(bucket_start(low, unit), unit))
            yield low, stop
            low = stop


def _in_one_bucket(rows: pa.Table, start: int) -> pa.Table:
    """The same rows, all of the bucket that begins at an instant."""
    starts = pa.array([start] * rows.num_rows, rows.schema.field(TIMESTAMP).type)
    return rows.set_column(rows.schema.get_field_index(TIMESTAMP), TIMESTAMP, starts)
