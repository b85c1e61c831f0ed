"""How an aggregation is doing, read from its store alone: no running job is asked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from rollup.aggregation.state import State
from rollup.conf import Conf
from rollup.core.calendar import Duration
from rollup.core.errors import NoCommitError
from rollup.core.untyped import pc
from rollup.hosts.reporting.late_events import SHARE, misplaced, share
from rollup.lifecycle.book import Book, Page
from rollup.lifecycle.lease.places import lease_of
from rollup.lifecycle.replay.rebuild import closed_until
from rollup.plan.aggregation import EVENTS, KIND, Aggregation
from rollup.sources.content.records import NO_RECORD, NO_VALUE
from rollup.stores.base import Snapshot, Store
from rollup.stores.dead_letters import DeadLetters


@dataclass(frozen=True)
class LevelStatus:
    """One level: its clock (ms, None before any row), open rows, stored rows (parts) and bytes, retention's cut."""

    level: str
    clock: int | None
    open_rows: int
    stored_rows: int
    bytes: int
    purged_before: int | None


@dataclass(frozen=True)
class Status:
    """One aggregation; ages and lag in seconds. `lag` is the wall clock minus the end of the newest finest bucket."""

    aggregation: str
    commit: int
    commit_age: float | None
    lag: float | None
    resume: int | None
    holder: str | None
    heartbeat_age: float | None
    late: Mapping[str, int]
    events: int
    policy: str
    dead_letters: int
    dead_files: Mapping[str, str]
    source: Mapping[str, Any]
    levels: tuple[LevelStatus, ...]
    valid_from: Mapping[str, int]
    dropped: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """As data for JSON."""
        return asdict(self)

    @property
    def misplaced(self) -> str | None:
        """The share of the events that are not in their own buckets, where it is worth a warning."""
        wrong, events = misplaced(self.late), self.events + self.late.get("dropped", 0)  # dropped events are in no row
        return share(wrong, events) if wrong > SHARE * events else None


def status(conf: Conf, aggregation: Aggregation, snapshot: Snapshot | None) -> Status:
    """The status of an aggregation; `snapshot` None means that nothing was committed yet."""
    lease, page = lease_of(conf, aggregation, "status"), Book.of(conf, aggregation.name).page()
    holder = lease.holder()
    loaded = None if snapshot is None else snapshot.loaded()
    end = None if loaded is None else closed_until(loaded.state, aggregation)
    letters = DeadLetters(conf.tables).read()
    return Status(
        aggregation.name,
        commit=0 if loaded is None else loaded.number,
        commit_age=None if snapshot is None else time.time() - snapshot.committed(),
        lag=None if end is None else time.time() - end / 1000,
        resume=None if loaded is None else loaded.state.resume,
        holder=None if holder is None else f"{holder}{' (gone)' if holder.dead else ''}",
        heartbeat_age=lease.age(),
        late={} if snapshot is None else _late(snapshot),
        events=0 if snapshot is None else _events(aggregation, snapshot),
        policy=str(aggregation.policy),
        dead_letters=letters.num_rows,
        dead_files=_files(letters),
        source={} if loaded is None else loaded.source,
        levels=() if snapshot is None else tuple(_levels(aggregation, snapshot, page)),
        valid_from=page.valid,
        dropped=tuple(page.ended),
    )


def _files(letters: pa.Table) -> dict[str, str]:
    """Files that could not be read at all, each with the reason: letters that have a place and no text.

    A message may have no text either, and is no file.
    """
    rows = letters.select(["position", "raw", "reason"]).to_pylist()
    whole = [row for row in rows if not row["raw"] and row["reason"] not in (NO_RECORD, NO_VALUE)]
    return {row["position"]: row["reason"] for row in whole if row["position"]}


def newest(store: Store) -> Snapshot | None:
    """The newest commit of a store, None when there is none. Raises LostCommitsError where there were some."""
    try:
        snapshot = store.snapshot()
    except NoCommitError:
        return None
    return snapshot if snapshot.number else None


def newest_state(store: Store) -> State | None:
    """The state of the newest commit, None before the first.

    The snapshot ends here, as tables that are being read cannot be changed. Raises StoreError when it is damaged, or lost.
    """
    snapshot = newest(store)
    return None if snapshot is None else snapshot.loaded().state


def _late(snapshot: Snapshot) -> dict[str, int]:
    found = snapshot.ledger().group_by(KIND).aggregate([(EVENTS, "sum")]).to_pydict()
    return dict(zip(found[KIND], found[f"{EVENTS}_sum"], strict=True))


def _events(aggregation: Aggregation, snapshot: Snapshot) -> int:
    """Events that the rows have: each is in one row of the coarsest level's table, or in one that is still open."""
    tables = [snapshot.rows(aggregation.levels[-1]), *snapshot.loaded().state.open.values()]
    return sum(int(pc.sum(table[EVENTS]).as_py() or 0) for table in tables)


def _levels(aggregation: Aggregation, snapshot: Snapshot, page: Page) -> list[LevelStatus]:
    state, sizes = snapshot.loaded().state, snapshot.sizes()

    def one(level: Duration) -> LevelStatus:
        size, cut = sizes[level], page.purged.get(level.name)
        return LevelStatus(level.plural, state.clocks[level], state.open[level].num_rows, size.rows, size.bytes, cut)

    return [one(level) for level in aggregation.levels]


def moved_across(snapshot: Snapshot, end: int) -> int:
    """Late events up to the end of a range that the job put into another bucket: what a replay may not undo."""
    ledger = snapshot.ledger()
    late = ledger.filter(pc.equal(ledger[KIND], "moved"))
    near = late.filter(pc.less(late["AGG_TIMESTAMP"], end))
    return int(pc.sum(near[EVENTS]).as_py() or 0)
