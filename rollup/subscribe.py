"""Subscriptions: what each commit of an aggregation has changed, pushed to whoever listens.

    for change in rollup.open("rollup.toml").subscribe("TradeAgg", per="minutes"):
        print(change.commit, change.rows.to_pylist())

A subscription is the difference of two commits, again and again: that of the newest one and the one before it that the
subscriber has seen. Between these there may have been others, so a slow reader gets each bucket once, as it is now, and
nothing waits for him. The rows of buckets that were open in the commit before are kept here and compared. Of closed
buckets a store knows which may have changed (`rollup.retrieval.since`). Where a grant hides rows, a change depends on
the others alone: digests of what was seen say whether one of them has changed.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import NoCommitError, QueryError, StoreError
from rollup.core.identifiers import quoted
from rollup.followed import Followed, followed
from rollup.plan.aggregation import TIMESTAMP, ZONE, Aggregation, Key, column
from rollup.plan.app import Item, Selection
from rollup.retrieval.answer import FINAL
from rollup.retrieval.as_of import AsOf
from rollup.retrieval.merging import keys_shown
from rollup.retrieval.questions import Ask, ask_for, is_auto
from rollup.retrieval.since import FIRST, LAST, Hours, Interval, Mark, around_hours, joined
from rollup.stores.base import Snapshot, Store

COMMIT, CHANGE, UNTIL = "AGG_COMMIT", "AGG_CHANGE", "AGG_UNTIL"
CLEARED, REMOVED, ROW, COMPLETE = "cleared", "removed", "row", "commit"
_SOME_TIME = 1_700_000_000_000
EVERY = 0.5
"""Seconds between two looks for a new commit."""


@dataclass(frozen=True)
class Change:
    """What is different in a commit from what the subscriber has seen before. Its parts apply in this order.

    `cleared`: all rows with a bucket start in these ranges (milliseconds; None is no bound) are void. `removed`: bucket
    starts and keys of rows that are void. `rows`: rows that are new or have other values. `commit` is where a later
    subscription goes on.
    """

    commit: int
    cleared: Sequence[tuple[int | None, int | None]]
    removed: pa.Table
    rows: pa.Table

    @property
    def table(self) -> pa.Table:
        """All of it as one table: AGG_COMMIT, AGG_CHANGE, AGG_UNTIL and the columns of a row.

        AGG_CHANGE is `cleared` (AGG_TIMESTAMP and AGG_UNTIL are the range), `removed` or `row`. The last row has
        `commit`: everything until this commit has been said.
        """
        schema = self.rows.schema
        cleared = pa.table({TIMESTAMP: pa.array([low for low, _ in self.cleared], pa.int64())})
        until = pa.array([high for _, high in self.cleared], pa.int64())
        parts = [
            self._part(CLEARED, cleared, schema, until),
            self._part(REMOVED, self.removed, schema),
            self._part(ROW, self.rows, schema),
            self._part(COMPLETE, pa.table({TIMESTAMP: pa.nulls(1, pa.int64())}), schema),
        ]
        return pa.concat_tables(parts)

    def _part(self, kind: str, rows: pa.Table, schema: pa.Schema, until: pa.Array | None = None) -> pa.Table:
        count = rows.num_rows
        head = {
            COMMIT: pa.array([self.commit] * count, pa.int64()),
            CHANGE: pa.array([kind] * count, pa.string()),
            UNTIL: pa.nulls(count, pa.int64()) if until is None else until,
        }
        there = set(rows.schema.names)
        body = {f.name: rows[f.name] if f.name in there else pa.nulls(count, f.type) for f in schema}
        return pa.table({**head, **body})


@dataclass(frozen=True)
class _Place:
    """The commit that the subscriber has seen, and what the next one is compared with.

    `level` is what the buckets were made of, and `low` the start before which every one was closed. `base`: the rows
    from there on, None where they are not known. `files`: the buckets as they were, where a store keeps earlier
    commits. `hours`: digests of the closed rows, of a reader from whom a grant hides rows, where it does not.
    """

    commit: int
    token: object
    level: Duration
    low: int
    base: pa.Table | None
    files: Followed | None
    hours: Hours | None = None


class Subscription:
    """The changes of one aggregation per a level or a period; iterate over it, also with `async for`. `close` ends it.

    Without a commit the first change has all rows there are. With one it has what is different since.
    """

    def __init__(
        self, store: Store, engine: ColumnEngine, ask: Ask, commit: int | None = None, every: float = EVERY
    ) -> None:
        self.ask = ask
        self._aggregation: Aggregation = ask.aggregation
        self._store, self._engine, self._every = store, engine, every
        self._begin = commit
        self._place: _Place | None = None
        self._closed = threading.Event()

    def __iter__(self) -> Iterator[Change]:
        while not self._closed.is_set():
            change = self.step()
            if change is not None:
                yield change
            else:
                self._closed.wait(self._every)

    async def __aiter__(self) -> AsyncIterator[Change]:
        import asyncio

        while not self._closed.is_set():
            change = await asyncio.to_thread(self.step)
            if change is not None:
                yield change
            else:
                await asyncio.sleep(self._every)

    def close(self) -> None:
        """Let the iteration end."""
        self._closed.set()

    @property
    def columns(self) -> list[str]:
        """The columns of `Change.table`."""
        return [COMMIT, CHANGE, UNTIL, *(item.name for item in self.ask.selection.items or ())]

    def step(self) -> Change | None:
        """What has changed since the last call; None while there is no new commit."""
        try:
            snapshot = self._store.snapshot()
            mark = snapshot.mark() if snapshot.number else None
        except NoCommitError:
            return None
        try:
            if mark is None or self._is_seen(snapshot, mark):
                return None
            now = followed(self.ask, snapshot)
            change, self._place = self._difference(now, mark, self._earlier(now))
            return change
        finally:
            if snapshot.in_files is None:
                snapshot.close()

    def _is_seen(self, snapshot: Snapshot, mark: Mark) -> bool:
        place = self._place
        return place is not None and place.commit == snapshot.number and place.token == mark.token

    def _earlier(self, now: Followed) -> _Place | None:
        """What the subscriber has seen; None where that is not known, or of a time before the tables were made anew."""
        place, begin, snapshot = self._place, self._begin, now.snapshot
        if place is None and begin is not None:
            place, self._begin = self._at(now, begin), None
        if place is None or place.commit > snapshot.number or (self._limited and not self._is_told(place)):
            return None
        if place.files is None and (mark := snapshot.mark(place.commit)) is not None and mark.token != place.token:
            return None
        return place

    @property
    def _limited(self) -> bool:
        """Whether a grant hides rows: then no change may depend on these, so no range is void because of one."""
        return self._aggregation.visible is not None

    def _is_told(self, place: _Place) -> bool:
        """Whether it is known exactly what a reader has seen at a place."""
        if place.files is None:
            return place.hours is not None
        try:
            self._store.as_of(AsOf(commit=place.commit))
            return True
        except StoreError:
            return False

    def _at(self, now: Followed, commit: int) -> _Place | None:
        """The place of a commit that another subscription has seen. Raises QueryError for one that is still to come."""
        snapshot = now.snapshot
        if commit > snapshot.number:
            raise QueryError(
                f"{self._aggregation.name} has no commit {commit} yet: its newest is {snapshot.number}",
                hint="leave the commit out: then all rows come first",
            )
        mark = snapshot.mark(commit)
        if mark is None:
            return None
        if snapshot.in_files is None:
            return _Place(commit, mark.token, now.level, now.first_open(mark.clocks), None, None)
        try:
            files = followed(self.ask, self._store.as_of(AsOf(commit=commit)))
            low = files.first_open(mark.clocks)
            return _Place(commit, mark.token, files.level, low, self._rows(files, low, LAST), files)
        except StoreError:  # removed meanwhile
            return None

    def _difference(self, now: Followed, mark: Mark, place: _Place | None) -> tuple[Change, _Place]:
        snapshot, low = now.snapshot, now.first_open(mark.clocks)
        changed = None if place is None else self._changed(now, place, low)
        if place is None or changed is None:
            rows = self._rows(now, FIRST, LAST)
            found = _Found([(self.ask.start, LAST)], [], [rows])
            base, closed = rows, Hours(self._engine)
        else:
            base, closed = self._rows(now, place.low, LAST), place.hours
            found = _Found([], [], [])
            self._compare(found, (place.low, LAST), place.base, base)
            for interval in changed:
                if closed is None:
                    self._compare(found, interval, self._before(place, interval), self._rows(now, *interval))
                else:
                    closed = self._compare_hours(found, closed, now, interval, place.low)
            if low < place.low:
                base = self._rows(now, low, LAST)
                closed = None if closed is None else Hours(self._engine).and_of(self._rows(now, FIRST, low))
        files = now if snapshot.in_files is not None else None
        hours = None
        if closed is not None and files is None and self._limited:
            hours = closed.and_of(self._within(base, FIRST, low))
        cleared = [(_bound(start), _bound(end)) for start, end in joined(found.cleared)]
        change = Change(
            snapshot.number, cleared, self._ordered(found.removed, self._names), self._ordered(found.rows, None)
        )
        return change, _Place(snapshot.number, mark.token, now.level, low, self._within(base, low, LAST), files, hours)

    def _changed(self, now: Followed, place: _Place, low: int) -> list[Interval] | None:
        """Where rows of buckets may have changed that were closed at a place; None where nobody knows."""
        if now.level is not place.level:
            return None
        found = now.snapshot.changed(now.level, place.commit if place.files is None else place.files.snapshot)
        return None if found is None else joined([*now.touched(found), (low, place.low)], self.ask.start, place.low)

    def _before(self, place: _Place, interval: Interval) -> pa.Table | None:
        """The rows that were there at a place; None where they are gone."""
        try:
            return None if place.files is None else self._rows(place.files, *interval)
        except StoreError:
            return None

    def _compare(self, found: _Found, interval: Interval, before: pa.Table | None, now: pa.Table) -> None:
        if before is None:
            found.cleared.append((max(interval[0], self.ask.start), interval[1]))
            found.rows.append(now)
            return
        names = ", ".join(map(quoted, self._names))
        tables = {"now": now, "before": before}
        found.rows.append(self._engine.run("SELECT * FROM now EXCEPT ALL SELECT * FROM before", **tables))
        gone = self._engine.run(f"SELECT {names} FROM before EXCEPT ALL SELECT {names} FROM now", **tables)
        found.removed.append(gone)

    def _compare_hours(self, found: _Found, hours: Hours, where: Followed, interval: Interval, low: int) -> Hours:
        """As `_compare`, by what is known of the hours before `low` that the interval touches."""
        begin, end = around_hours(interval)
        now = self._rows(where, begin, min(end, low))
        others = hours.others((begin, end), now)
        for start, stop in others:
            rows = self._within(now, start, stop)
            self._compare(found, (start, min(stop, low)), None, rows)
            hours = hours.without([(start, stop)]).and_of(rows)
        return hours

    def _within(self, rows: pa.Table, low: int, high: int) -> pa.Table:
        """Those of rows that begin in a range."""
        sql = f'SELECT * FROM rows WHERE "{TIMESTAMP}" >= $low AND "{TIMESTAMP}" < $high'
        return self._engine.run(sql, {"low": low, "high": high}, rows=rows)

    def _rows(self, where: Followed, low: int, high: int) -> pa.Table:
        """The rows of a range of buckets, none of them before those that are subscribed to."""
        found = where.rows(max(low, self.ask.start), high)
        return self._nothing if found is None else found

    def _ordered(self, tables: Sequence[pa.Table], names: Sequence[str] | None) -> pa.Table:
        known = [table for table in tables if table.num_rows] or [*tables[:1], self._nothing][:1]
        table = known[0] if len(known) == 1 else pa.concat_tables([each.cast(known[0].schema) for each in known])
        table = table if names is None else table.select(list(names))
        order = ", ".join(f"{quoted(name)} NULLS FIRST" for name in self._names)
        return self._engine.run(f"SELECT * FROM found ORDER BY {order}", found=table)

    @property
    def _names(self) -> list[str]:
        """The columns of a row that tell it from any other of the level."""
        return identity(self._aggregation, self.ask.keys)

    @property
    def _nothing(self) -> pa.Table:
        items = [item.name for item in self.ask.selection.items or ()]
        kinds = {output.name: output.type.arrow for output in self._aggregation.outputs}
        own = {TIMESTAMP: pa.int64(), FINAL: pa.bool_(), ZONE: pa.string()}
        return pa.schema([(name, {**own, **kinds}[name]) for name in items]).empty_table()


@dataclass(frozen=True)
class _Found:
    cleared: list[Interval]
    removed: list[pa.Table]
    rows: list[pa.Table]


def _bound(at: int) -> int | None:
    return None if at in (FIRST, LAST) else at


def identity(aggregation: Aggregation, keys: Sequence[Key]) -> list[str]:
    """The columns that tell rows apart that have these keys. Raises QueryError where one is not among the outputs."""
    shown = {key.name: name for name, key in keys_shown(aggregation).items()}
    lacking = [key.name for key in keys if key.name not in shown]
    if lacking:
        raise QueryError(
            f"{aggregation.name} does not select its group key {lacking[0]}, so nobody could tell which row has changed",
            hint=f"put {lacking[0]} into its select",
        )
    zone = [ZONE] if aggregation.own_zones else []
    return [TIMESTAMP, *zone, *(shown[key.name] for key in keys)]


def asked(aggregation: Aggregation, per: str, start: int | None = None, on: exp.Expr | None = None) -> Ask:
    """The question whose answers a subscription compares: `per` is what a question takes but 'auto'.

    Raises QueryError or PlanError.

    >>> import rollup
    >>> text = "define stream S (k string, v int, ts long); define aggregation A from S select k, sum(v) as s group by k aggregate by ts every sec ... day;"
    >>> [item.name for item in asked(rollup.parse(text).aggregations["A"], "minutes").selection.items]
    ['AGG_TIMESTAMP', 'k', 's', 'AGG_FINAL']
    >>> [item.name for item in asked(rollup.parse(text).aggregations["A"], "weeks by ()").selection.items]
    ['AGG_TIMESTAMP', 's']
    """
    if is_auto(per):
        levels = ", ".join(level.plural for level in aggregation.levels)
        hint = f"one of {levels}, or a period as '15 minutes'"
        raise QueryError("per 'auto' depends on the ends of a range, and a subscription has no end", hint=hint)
    found = ask_for(aggregation, 0, 0, per, Selection(None), on=on)
    if found.period is not None:  # whether one of them can be put together
        last = found.period.preceding(_SOME_TIME, aggregation.zone)
        found.part(last, last + 1)
    keys = found.keys
    lost = {key.name for key in aggregation.keys} - {key.name for key in keys}
    outputs = [
        out.name for out in aggregation.outputs if not lost & {each.name for each in out.final.find_all(exp.Column)}
    ]
    final = [] if found.period else [FINAL]
    names = dict.fromkeys([TIMESTAMP, *identity(aggregation, keys), *outputs, *final])
    ask = replace(found, selection=Selection(tuple(Item(name, column(name)) for name in names)))
    ask = replace(ask, start=FIRST if start is None else start, end=LAST)
    ask.prepared()
    return ask
