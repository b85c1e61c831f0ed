"""An aggregation's tables in a relational database: one transaction a batch, exact across lost connections.

PostgreSQL is what it is made for (`rollup.stores.postgres`); the others go through plain SQL (`rollup.stores.sql_core`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from rollup.aggregation.cascade import Cascade, narrowed
from rollup.aggregation.engine import Engine
from rollup.aggregation.retrieval import Question, bucket_column, open_rows, open_schema, state_rows
from rollup.aggregation.state import State
from rollup.calendar import Duration
from rollup.errors import FencedError, QueryError, StoreError
from rollup.plan.aggregation import TIMESTAMP, Aggregation
from rollup.stores.base import Commit, Loaded
from rollup.stores.faults import point
from rollup.stores.sql_core import CoreDatabase
from rollup.stores.sql_ddl import Tables
from rollup.stores.sql_options import StoreOptions
from rollup.stores.sql_session import AlreadyThere, Database, OutOfRange, Range, Record, Result, Session, patiently

_EVERYTHING = 2**63


class SqlStore:
    """A `Store` over a database. `patience` is how many seconds a database that is gone is waited for."""

    def __init__(self, aggregation: Aggregation, engine: Engine, database: Database, tables: Tables, patience: float = 60) -> None:
        self.aggregation = aggregation
        self.engine = engine
        self.database = database
        self.tables = tables
        self.patience = patience
        self._cascade = Cascade(aggregation)
        self._open: dict[Duration, pa.Table] = {}
        self._newest: dict[Duration, int] = {}
        self._patiently("prepare", database.prepare)

    def load(self) -> Loaded | None:
        """The newest commit; None when there is none."""
        return self._patiently("load", self._load)

    def commit(self, commit: Commit) -> None:
        """Write a commit in one transaction. When the connection is lost it is tried again, unless it turns out to be there.

        Raises FencedError when another job has written its number, and StoreError when the database stays away.
        """
        token = uuid4().hex
        for level, rows in commit.closed.items():
            if rows.num_rows:
                self._patiently("partition", lambda level=level, rows=rows: self.database.before_closed(level, rows))
        try:
            deleted = self._patiently("commit", lambda: self._commit(commit, token))
        except AlreadyThere:
            self._newest = dict.fromkeys(self.aggregation.levels, _EVERYTHING)  # somebody else wrote rows: merge with all that is there
            deleted = self._patiently("commit", lambda: self._commit(commit, token))
            self._newest = {}
        self._open = dict(commit.state.open)
        self._patiently("vacuum", lambda: self.database.after_commit(deleted))

    def snapshot(self) -> SqlSnapshot:
        """The newest commit, to read from."""
        return SqlSnapshot(self)

    def newest(self, level: Duration) -> dict[str, int]:
        """For each zone, the newest AGG_TIMESTAMP in a level's table."""
        def read() -> dict[str, int]:
            with self.database.reading() as session:
                return session.newest(level)

        return self._patiently("read", read)

    def rows_after(self, level: Duration, start: int | None) -> pa.Table:
        """Rows of a level's table with AGG_TIMESTAMP > start (all when None)."""
        within = None if start is None else Range(TIMESTAMP, start + 1)

        def read() -> pa.Table:
            with self.database.reading() as session:
                return session.read(self.aggregation.table(level), self.aggregation.table_schema, within)

        return self._patiently("read", read)

    def forget(self) -> None:
        """Delete commit records and open rows: only the levels' tables survive."""
        def delete() -> None:
            with self.database.writing() as session:
                session.clear(self.tables.commit)
                session.clear(self.tables.open)

        self._patiently("forget", delete)
        self._open, self._newest = {}, {}

    def _patiently(self, what: str, action: Callable[[], Result]) -> Result:
        return patiently(f"{self.aggregation.name}: {what}", self.patience, action)

    def _load(self) -> Loaded | None:
        with self.database.reading() as session:
            record = session.latest()
            if record is None:
                return None
            rows = session.read(self.tables.open, open_schema(self.aggregation))
        state = _state(self.aggregation, record, rows)
        self._open = dict(state.open)
        return Loaded(record.number, state, json.loads(record.source))

    def _commit(self, commit: Commit, token: str) -> int:
        """One try; the number of open rows deleted. Doing nothing is right when an earlier try has landed."""
        point("commit.begin")
        with self.database.writing() as session:
            if not session.claim(_record(commit, token)):
                found = session.latest(commit.number)
                if found is None or found.token != token:
                    raise FencedError(f"commit {commit.number} of {self.aggregation.name} is taken", hint="another job writes this aggregation")
                return 0
            newest = dict(self._newest)
            for level, rows in commit.closed.items():
                if rows.num_rows:
                    newest[level] = self._close(session, level, rows)
                    point("commit.level")
            point("commit.levels")
            deleted = self._replace_open(session, commit.state)
            point("commit.open")
            if commit.ledger is not None and commit.ledger.num_rows:
                session.append(self.tables.late, self._ledger(commit.ledger, commit.number))
            point("commit.ledger")
        point("commit.record")
        self._newest = newest
        return deleted

    def _close(self, session: Session, level: Duration, rows: pa.Table) -> int:
        """Write closed rows; returns the newest bucket the table then has. Rows newer than all others are simply added."""
        table = self.aggregation.table(level)
        newest = self._newest.get(level)
        if newest is None:
            newest = max(session.newest(level).values(), default=-_EVERYTHING)
        low, high = (found.as_py() for found in pc.min_max(rows[TIMESTAMP]).values())
        if low > newest:
            session.append(table, rows)
        else:
            self._merge_into(session, table, rows)
        return max(newest, high)

    def _merge_into(self, session: Session, table: str, rows: pa.Table) -> None:
        """Write rows some of which may be further parts of stored ones."""
        a = self.aggregation
        stored = session.at(table, a.table_schema, pc.unique(rows[TIMESTAMP]).to_pylist())
        same = " AND ".join(f's."{name}" IS NOT DISTINCT FROM r."{name}"' for name in a.identity)
        stored = self.engine.run(f"SELECT s.* FROM stored AS s SEMI JOIN rows AS r ON {same}", stored=stored, rows=rows).cast(a.table_schema)
        if not stored.num_rows:
            session.append(table, rows)
            return
        parts = [part.cast(a.state_schema) for part in (stored, rows)]
        session.replace(table, narrowed(a, self._cascade.merge(self.engine, a.root, parts)))

    def _replace_open(self, session: Session, state: State) -> int:
        """Write the open rows of the levels that have changed since this store last wrote or read them."""
        changed = [level for level in self.aggregation.levels if not _same(self._open.get(level), state.open[level])]
        empty = State.empty(self.aggregation).open
        rows = open_rows(self.engine, self.aggregation, replace(state, open={**empty, **{level: state.open[level] for level in changed}}))
        deleted = sum(session.clear(self.tables.open, level) for level in changed)
        if rows.num_rows:
            session.append(self.tables.open, rows)
        return deleted

    def _ledger(self, ledger: pa.Table, number: int) -> pa.Table:
        columns = [*ledger.columns, pa.array([number] * ledger.num_rows, pa.int64())]
        return pa.table(columns, names=list(self.tables.late_columns))


def _same(before: pa.Table | None, after: pa.Table) -> bool:
    return before is after or (before is not None and before.num_rows == 0 and after.num_rows == 0)


def _record(commit: Commit, token: str) -> Record:
    clocks = {level.name: clock for level, clock in commit.state.clocks.items()}
    return Record(commit.number, token, json.dumps(clocks), commit.state.resume, json.dumps(dict(commit.source)))


def _state(aggregation: Aggregation, record: Record, rows: pa.Table) -> State:
    clocks = json.loads(record.clocks)
    return State({level: clocks.get(level.name) for level in aggregation.levels}, state_rows(aggregation, rows), record.resume)


class SqlSnapshot:
    """Answers, each from one moment of the store: the newest commit when it is asked for."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    @property
    def number(self) -> int:
        """The number of the newest commit, 0 before the first."""
        def read() -> int:
            with self._store.database.reading() as session:
                record = session.latest()
            return 0 if record is None else record.number

        return patiently("read", self._store.patience, read)

    def answer(self, question: Question, **tables: pa.Table) -> pa.Table:
        """The rows that answer a question: computed by the database where it can, otherwise in DuckDB over its rows."""
        return patiently(f"{self._store.aggregation.name}: query", self._store.patience, lambda: self._answer(question, tables))

    def _answer(self, question: Question, tables: Mapping[str, pa.Table]) -> pa.Table:
        try:
            with self._store.database.reading() as session:
                answer = session.answer(question, tables)
                return self._in_duckdb(session, question, tables) if answer is None else answer
        except OutOfRange:  # PostgreSQL refuses the whole question for one double that overflows; DuckDB says infinity
            with self._store.database.reading() as session:
                return self._in_duckdb(session, question, tables)

    def _in_duckdb(self, session: Session, question: Question, tables: Mapping[str, pa.Table]) -> pa.Table:
        store, aggregation = self._store, self._store.aggregation
        low, high = question.start, question.end
        closed = session.read(aggregation.table(question.per), aggregation.table_schema, Range(TIMESTAMP, low, high))
        within = Range(bucket_column(question.per), low, high)
        opened = session.read(store.tables.open, open_schema(aggregation), within)
        try:
            return store.engine.run(question.sql(), {"start": low, "end": high}, closed=closed, open=opened, **tables)
        except duckdb.Error as problem:
            raise QueryError(f"{aggregation.name}: {str(problem).splitlines()[0]}") from None


def store_of(aggregation: Aggregation, engine: Engine, options: str | Mapping[str, str] | None = None, patience: float = 60) -> SqlStore:
    """The store that a URL, the options of `@store(type='rdbms', …)`, or (None) the aggregation's own @store names.

    Raises StoreError naming the option that is wrong or missing, or the driver that is not installed.
    """
    from rollup.stores.postgres import PostgresDatabase

    found = StoreOptions.of(aggregation.store if options is None else options)
    tables = Tables(aggregation, found.dialect)
    try:
        connections = sa.create_engine(found.url, pool_reset_on_return="rollback")
    except (ModuleNotFoundError, sa.exc.ArgumentError) as problem:
        raise StoreError(f"{found.shown}: {problem}", hint=found.driver_hint) from None
    if found.dialect == "postgresql":
        return SqlStore(aggregation, engine, PostgresDatabase(tables, connections, found.partition), tables, patience)
    if found.partition is not None:
        raise StoreError(f"partition={found.partition!r} needs PostgreSQL, not {found.dialect}")
    return SqlStore(aggregation, engine, CoreDatabase(tables, connections), tables, patience)
