"""An aggregation's tables in a relational database: one transaction a batch, exact across lost connections.

PostgreSQL is what it is for (`rollup.stores.postgres.database`); others go through plain SQL (`rollup.stores.sql.plain`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from uuid import uuid4

import numpy as np
import pyarrow as pa

from rollup.aggregation.cascade import Cascade, narrowed
from rollup.aggregation.state import State
from rollup.core.calendar import Duration, bucket_start
from rollup.core.columns import ColumnEngine
from rollup.core.errors import FencedError, StoreError
from rollup.core.identifiers import same
from rollup.plan.aggregation import COMMIT, TIMESTAMP, Aggregation
from rollup.retrieval.as_of import AsOf
from rollup.retrieval.questions import late_rows, open_rows, open_schema
from rollup.retrieval.since import FIRST, LAST, Interval, around, joined
from rollup.stores.base import Commit, Loaded, Rewrite, Snapshot, newest_alone
from rollup.stores.faults import point
from rollup.stores.salvage import Salvage
from rollup.stores.sql.ddl import Tables
from rollup.stores.sql.ledger import thin
from rollup.stores.sql.salvage import look
from rollup.stores.sql.session import AlreadyThere, Database, Locked, Range, Record, Result, Session, patiently
from rollup.stores.sql.snapshot import CHANGED, SqlSnapshot, read_newest

_EVERYTHING = 2**63


class SqlStore:
    """A `Store` over a database. `patience` is how many seconds a database that is gone is waited for."""

    def __init__(
        self, aggregation: Aggregation, engine: ColumnEngine, database: Database, tables: Tables, patience: float = 60
    ) -> None:
        self.aggregation = aggregation
        self.engine = engine
        self.database = database
        self.tables = tables
        self.patience = patience
        self._cascade = Cascade(aggregation)
        self._open: dict[Duration, pa.Table] = {}
        self._newest: dict[Duration, int] = {}
        self._prepared = False
        self._gone: frozenset[str] = frozenset()
        self.whole: set[str] = set()

    filed = None

    @property
    def salvaged(self) -> SqlStore:
        """The store itself."""
        return self

    @property
    def apart(self) -> SqlStore | None:
        """The store itself where its database is a process of its own."""
        return self if self.database.apart else None

    def load(self) -> Loaded | None:
        """The newest commit, None when there is none; tables, functions and views are made when they are missing."""
        self._prepare()
        self._patiently("load", self.database.end_others)
        loaded = self._patiently("load", self._newest_commit)
        self._open = {} if loaded is None else dict(loaded.state.open)
        return loaded

    def _newest_commit(self) -> Loaded | None:
        with self.database.reading() as session:
            return read_newest(session, self.aggregation, self.tables)

    def salvage(self) -> Salvage:
        """What there is although `load` raises. Tables that are gone count as empty, and the next commit makes them."""

        def read() -> Salvage:
            with self.database.reading() as session:
                return look(session, self.aggregation, self.tables)

        self._patiently("read", self.database.end_others)
        found = self._patiently("read", read)
        self._prepared, self._gone, self._open = True, found.gone, {}
        return found

    def _prepare(self) -> None:
        if not self._prepared:
            self._patiently("prepare", self.database.prepare)
            self._prepared = True

    def commit(self, commit: Commit) -> None:
        """Write a commit in one transaction; when the connection is lost it is tried again, unless it had landed.

        Raises FencedError when another job has written its number, and StoreError when the database stays away.
        """
        self.begin(commit)()

    def begin(self, commit: Commit) -> Callable[[], None]:
        """Put closed rows in the order of their tables' indexes: in any other the database takes twice as long."""
        order = [(key, "ascending") for key in self.aggregation.identity]
        closed = {level: rows.sort_by(order) for level, rows in commit.closed.items()}
        return partial(self._make, replace(commit, closed=closed))

    def _make(self, commit: Commit) -> None:
        self._prepare()
        token = uuid4().hex
        try:
            deleted = self._patiently("commit", lambda: self._commit(commit, token))
        except AlreadyThere:  # somebody else wrote rows: merge with all that is there
            self._newest = dict.fromkeys(self.aggregation.levels, _EVERYTHING)
            deleted = self._patiently("commit", lambda: self._commit(commit, token))
            self._newest = {}
        self._open = dict(commit.state.open)
        self._patiently("vacuum", lambda: self.database.after_commit(deleted))

    def evolve(self, added: pa.Schema, retired: Collection[str]) -> None:
        """Add columns, `before_added` in all rows there are; `retired` ones stay in the tables and are null in new rows.

        It is a commit of its own, so that a job of the old declaration that wakes up later is fenced.
        """

        def change() -> None:
            try:
                with self.database.writing() as session:
                    last = session.latest() if session.columns(self.tables.commit) else None
                    session.evolve(added.names)
                    if last is not None:
                        session.claim(replace(last, number=last.number + 1, token=uuid4().hex))
            except Locked:
                self.database.end_resting()
                raise

        self._patiently("evolve", self.database.end_others)
        self._patiently("evolve", change)
        self._prepared, self._open = False, {}

    def maintain(self, budget: float) -> dict[str, int]:
        """Nothing to do: a database looks after its files itself."""
        return {}

    def release(self, pin: Callable[[], object]) -> int:
        """Nothing to do: a database looks after its files itself."""
        return 0

    def snapshot(self) -> SqlSnapshot:
        """The commit that is the newest when it is first read, to read from."""
        return SqlSnapshot(self)

    def as_of(self, moment: AsOf) -> Snapshot:
        raise newest_alone(self.aggregation)

    def newest(self, level: Duration) -> dict[str, int]:
        """For each zone, the newest AGG_TIMESTAMP in a level's table."""
        self._prepare()
        if self.aggregation.table(level) in self._gone:
            return {}

        def read() -> dict[str, int]:
            with self.database.reading() as session:
                return session.newest(level)

        return self._patiently("read", read)

    def rows_after(self, level: Duration, start: int | None) -> pa.Table:
        """Rows of a level's table with AGG_TIMESTAMP > start (all when None)."""
        within = None if start is None else Range(TIMESTAMP, start + 1)
        self._prepare()
        if self.aggregation.table(level) in self._gone:
            return self.aggregation.table_schema.empty_table()

        def read() -> pa.Table:
            with self.database.reading() as session:
                return session.read(self.aggregation.table(level), self.aggregation.table_schema, within)

        return self._patiently("read", read)

    def forget(self) -> None:
        """Delete commit records and open rows: only the levels' tables survive. A table that is gone may come anew."""
        self._clear("forget", [self.tables.commit, self.tables.open])

    def drop(self) -> None:
        """Delete all rows of this aggregation; its empty tables stay."""
        self._clear("drop", list(self.tables.all()))

    def _clear(self, what: str, tables: Sequence[str]) -> None:
        def delete() -> None:
            with self.database.writing() as session:
                for table in tables:
                    if session.columns(table):
                        session.clear(table)

        self._patiently(what, self.database.end_others)
        self._patiently(what, delete)
        self._open, self._newest, self._prepared, self._gone = {}, {}, False, frozenset()

    def _patiently(self, what: str, action: Callable[[], Result]) -> Result:
        return patiently(f"{self.aggregation.name}: {what}", self.patience, action)

    def _commit(self, commit: Commit, token: str) -> int:
        """One try; the number of open rows deleted. Doing nothing is right when an earlier try has landed."""
        point("commit.begin")
        with self.database.writing() as session:
            if self._gone:
                session.make()
            if not session.claim(_record(commit, token)):
                self._landed(session, commit.number, token)
                return 0
            newest = dict(self._newest)
            self._retain(session, commit.rewrites)
            for level, rewrite in commit.rewrites.items():
                self._rewrite(session, level, rewrite)
                newest.pop(level, None)
                point("commit.rewrite")
            for level, rows in commit.closed.items():
                if rows.num_rows:
                    newest[level] = self._close(session, level, rows, newest.get(level))
                    point("commit.level")
            point("commit.levels")
            deleted = self._replace_open(session, commit.state)
            point("commit.open")
            if commit.ledger is not None and commit.ledger.num_rows:
                session.append(self.tables.late, self._ledger(commit.ledger, commit.number))
            point("commit.ledger")
        point("commit.record")
        self._newest, self._gone = newest, frozenset()
        return deleted

    def _landed(self, session: Session, number: int, token: str) -> None:
        """Raise unless the commit of a number is ours: another job made it, or the database has lost those before."""
        found, newest = session.latest(number), session.latest()
        if found is not None and found.token == token:
            return
        last = 0 if newest is None else newest.number
        if last >= number:
            raise FencedError(
                f"commit {number} of {self.aggregation.name} is taken", hint="another job writes this aggregation"
            )
        raise StoreError(
            f"the newest commit of {self.aggregation.name} is {last} where this job has made {number - 1}: the database "
            "has gone back, as it does when a standby takes over that was behind",
            hint="start the job again: it goes on from there and reads the events since then again",
        )

    def _retain(self, session: Session, rewrites: Mapping[Duration, Rewrite]) -> None:
        """Before rows are removed by retention: their parents have all their events, and the ledger follows them.

        Raises StoreError when somebody has removed parents since they were looked at.
        """
        a = self.aggregation
        cuts = {
            level: rewrite.end for level, rewrite in rewrites.items() if rewrite.removes and rewrite.end is not None
        }
        for level, coarser in pairwise(a.levels):
            extent = session.extent(a.table(level)) if level in cuts else None
            if extent is None:
                continue
            start = min(bucket_start(extent[0], coarser, zone) for zone in session.newest(level))
            going, held = (
                session.events(a.table(each), Range(TIMESTAMP, start, cuts[level])) for each in (level, coarser)
            )
            if held < going:
                raise StoreError(
                    f"{a.table(coarser)} has {held} events where {a.table(level)} has {going}: nothing was removed",
                    hint="`rollup verify CONF --repair` makes them anew",
                )
        if cuts:
            thin(session, self.engine, self.tables, cuts)

    def _rewrite(self, session: Session, level: Duration, rewrite: Rewrite) -> None:
        """Put rows in the place of a range; parts of one row are merged, as a table here has each row once."""
        a = self.aggregation
        if rewrite.removes and rewrite.end is not None:
            session.remove(a.table(level), rewrite.end)
            return
        session.cut(a.table(level), Range(TIMESTAMP, rewrite.start, rewrite.end))
        whole = self._cascade.merge(self.engine, a.root, [rewrite.rows.cast(a.state_schema)])
        session.append(a.table(level), narrowed(a, whole))

    def _close(self, session: Session, level: Duration, rows: pa.Table, newest: int | None) -> int:
        """Write closed rows; returns the newest bucket of the table. Rows newer than all others are just added."""
        table = self.aggregation.table(level)
        if newest is None:
            newest = max(session.newest(level).values(), default=-_EVERYTHING)
        times = rows[TIMESTAMP].to_numpy()
        low, high = int(times.min()), int(times.max())
        if low > newest:
            session.append(table, rows)
        else:
            self._merge_into(session, table, rows)
        return max(newest, high)

    def _merge_into(self, session: Session, table: str, rows: pa.Table) -> None:
        """Write rows some of which may be further parts of stored ones."""
        a = self.aggregation
        stored = session.like(table, a.table_schema, rows)
        stored = self.engine.run(
            f"SELECT s.* FROM stored AS s SEMI JOIN rows AS r ON {same(a.identity, 's', 'r')}", stored=stored, rows=rows
        ).cast(a.table_schema)
        if not stored.num_rows:
            session.append(table, rows)
            return
        parts = [part.cast(a.state_schema) for part in (stored, rows)]
        session.replace(table, narrowed(a, self._cascade.merge(self.engine, a.root, parts)))

    def _replace_open(self, session: Session, state: State) -> int:
        """Write the open rows of the levels that have changed since this store last wrote or read them."""
        changed = [level for level in self.aggregation.levels if not _same(self._open.get(level), state.open[level])]
        rows = cut_rows(self.engine, self.aggregation, state, changed)
        if changed:
            session.clear(self.tables.open, changed)
        if rows.num_rows:
            session.append(self.tables.open, rows)
        return sum(self._open[level].num_rows for level in changed if level in self._open)

    def _ledger(self, ledger: pa.Table, number: int) -> pa.Table:
        counted = ledger.append_column(COMMIT, pa.array([number] * ledger.num_rows, pa.int64()))
        cut = late_rows(self.engine, self.aggregation, counted)
        return pa.table(cut.columns, names=list(self.tables.late_columns))


def _same(before: pa.Table | None, after: pa.Table) -> bool:
    return before is after or (before is not None and before.num_rows == 0 and after.num_rows == 0)


def cut_rows(engine: ColumnEngine, aggregation: Aggregation, state: State, levels: Sequence[Duration]) -> pa.Table:
    """The open rows of some levels as their table has them (`open_schema`), with their bucket start at each level.

    Open rows have few bucket starts, so where they share one zone plain Python is quicker than any query.
    """
    if aggregation.own_zones:
        empty = State.empty(aggregation).open
        some = {level: state.open[level] for level in levels}
        return open_rows(engine, aggregation, replace(state, open={**empty, **some}))
    schema = open_schema(aggregation)
    cut = (_cut(aggregation, level, state.open[level], schema) for level in levels)
    return pa.concat_tables([schema.empty_table(), *cut])


def _cut(aggregation: Aggregation, level: Duration, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    times, place = np.unique(rows[TIMESTAMP].to_numpy(), return_inverse=True)
    columns = [*rows.columns, pa.repeat(pa.scalar(int(level), pa.int32()), rows.num_rows)]
    for coarser in aggregation.levels:
        if coarser < level:
            columns.append(pa.nulls(rows.num_rows, pa.int64()))
            continue
        starts = [bucket_start(int(time), coarser, aggregation.zone) for time in times]
        columns.append(pa.array(np.array(starts, np.int64)[place]))
    return pa.table(columns, schema=schema)


def _record(commit: Commit, token: str) -> Record:
    clocks: dict[str, object] = {level.name: clock for level, clock in commit.state.clocks.items()}
    clocks[CHANGED] = {level.name: found for level in commit.state.clocks if (found := _changed(commit, level))}
    return Record(commit.number, token, json.dumps(clocks), json.dumps(dict(commit.source)), commit.state.resume)


def _changed(commit: Commit, level: Duration) -> list[Interval]:
    """Where a commit changes the stored rows of a level."""
    closed, rewrite = commit.closed.get(level), commit.rewrites.get(level)
    found = [] if closed is None else around(np.unique(closed[TIMESTAMP].to_numpy()))
    if rewrite is not None:
        start, end = rewrite.start, rewrite.end
        found.append((FIRST if start is None else start, LAST if end is None else end))
    return joined(found)
