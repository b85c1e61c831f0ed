"""Late events that a job has merged across an end of the range of a replay, which may then not be replayed alone.

A replay puts every event of its range into its own bucket. An event that the job took from before the range into it
would be lost with the rows it is in; one that the job took from the range to behind it would count in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from rollup.aggregation.admission import MOVED_TO
from rollup.core.calendar import bucket_end
from rollup.core.errors import StoreError
from rollup.core.untyped import pc
from rollup.lifecycle.replay.compare import Comparison, readable
from rollup.lifecycle.replay.rebuild import Pinned, Span
from rollup.plan.aggregation import EVENTS, KIND, TIMESTAMP, Policy


@dataclass(frozen=True)
class Crossings:
    """How many events went `into` a range and `out` of it, and the range that has all of them.

    `since` is the first bucket that an event came from (ms), `until` the last one that it went to.
    """

    into: int = 0
    since: int | None = None
    out: int = 0
    until: int | None = None

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Crossings:
        """From what `plain` gave. Raises KeyError."""
        return cls(**{each.name: kept[each.name] for each in fields(cls)})

    def with_moves(self, moves: pa.Table, span: Span) -> Crossings:
        """With further moves (`Admitted.moves`) of a job that has a range [start, end)."""
        own, to, count = moves[TIMESTAMP], moves[MOVED_TO], moves[EVENTS]
        enters, leaves = (
            int(pc.sum(count.filter(pc.and_(_inside(one, span), beyond))).as_py() or 0)
            for one, beyond in ((to, pc.less(own, span[0])), (own, pc.greater_equal(to, span[1])))
        )
        since, until = self._needed(own, to, span)
        return Crossings(self.into + enters, since, self.out + leaves, until)

    def _needed(self, own: pa.ChunkedArray, to: pa.ChunkedArray, span: Span) -> tuple[int | None, int | None]:
        """`since` and `until` with further moves: what is needed is a range itself, across whose ends others went."""
        since, until, before = self.since, self.until, None
        while (since, until) != before:
            before = since, until
            start, end = span[0] if since is None else since, span[1] if until is None else until + 1
            first = pc.min(own.filter(pc.and_(_inside(to, (start, end)), pc.less(own, start)))).as_py()
            last = pc.max(to.filter(pc.and_(_inside(own, (start, end)), pc.greater_equal(to, end)))).as_py()
            since, until = since if first is None else first, until if last is None else last
        return since, until


def refuse(pinned: Pinned, span: Span, true: pa.Table, found: Crossings | None) -> None:
    """Raise StoreError when events crossed an end of a range, unless its rows hold already just what is `true`.

    `found` None: what crossed is not known. Then the number of events tells, and the ledger says what may have left.
    """
    root = pinned.aggregation.root
    if pinned.aggregation.policy is not Policy.MERGE:
        return
    if not pinned.whole(root, span):
        if found is None:
            raise StoreError(
                "a file of this range is damaged, and so it is not known which late events the job has merged across its ends",
                hint="replay the whole history, or bring the file back",
            )
        stored = list[pa.Table]()
    else:
        stored = pinned.stored(root, span)
    if stored and next(Comparison(pinned.engine, pinned.cascade).differences(root, stored, [true]), None) is None:
        return
    found = _counted(pinned, span, stored, true) if found is None else found
    if found.into:
        first = "" if found.since is None else f", the first of {readable(found.since)}"
        raise StoreError(
            f"the job has merged {found.into} late events from before this range into it{first}: "
            "they would be lost with the rows that this replaces",
            hint=_hint(pinned, found) or "choose a range that starts earlier",
        )
    if found.out:
        raise StoreError(
            f"the job has merged {found.out} late events of this range into later buckets: "
            "they would count there and here",
            hint=_hint(pinned, found) or "choose a range that ends later, as far as the tables go if need be",
        )


def refuse_part(pinned: Pinned, span: Span, outside: int) -> None:
    """Raise StoreError unless a range has all rows of an aggregation by time of arrival, and none of its raw events is
    `outside`.

    The job's clock gave its rows their time, and files or messages have another.
    """
    root = pinned.aggregation.root
    there = [*(pinned.snapshot.extent(root) or ()), *pinned.opened[root][TIMESTAMP].to_pylist()]
    if outside or (there and not span[0] <= min(there) <= max(there) < span[1]):
        more = "all its raw events"
        if there:
            more = f"its rows, from {readable(min(there))} to {readable(max(there))}, and {more}"
        raise StoreError(
            f"{pinned.aggregation.name} goes by the time of arrival, and events arrived at other times than their files or "
            "messages have: a part of it cannot be computed again",
            hint=f"choose a range that has {more}; each then counts at the time of its file or message",
        )


def _hint(pinned: Pinned, found: Crossings) -> str:
    """The range that has all of them, as far as it is known."""
    ends = list[str]()
    if found.since is not None:
        ends.append(f"from {readable(found.since)} on")
    if found.until is not None:
        end = bucket_end(found.until, pinned.aggregation.root, pinned.aggregation.zone)
        ends.append(f"up to {readable(end)}")
    return f"choose one {' and '.join(ends)}" if ends else ""


def _counted(pinned: Pinned, span: Span, stored: list[pa.Table], true: pa.Table) -> Crossings:
    """What must have crossed, by number alone. Nothing can have left a range that ends behind all rows."""
    more = events_of(stored) - events_of([true])
    if more >= 0:
        return Crossings(into=more)
    ledger = pinned.snapshot.ledger()
    moved = events_of([ledger.filter(pc.and_(pc.equal(ledger[KIND], "moved"), _inside(ledger[TIMESTAMP], span)))])
    extent, opened = pinned.snapshot.extent(pinned.aggregation.root), pinned.opened[pinned.aggregation.root]
    newest = max([*(extent or ()), *opened[TIMESTAMP].to_pylist()], default=span[1])
    return Crossings(out=min(-more, moved) if newest >= span[1] else 0)


def events_of(tables: Iterable[pa.Table]) -> int:
    """How many events rows have in all."""
    return sum(int(pc.sum(rows[EVENTS]).as_py() or 0) for rows in tables)


def _inside(times: pa.ChunkedArray, span: Span) -> Any:
    return pc.and_(pc.greater_equal(times, span[0]), pc.less(times, span[1]))
