"""Reading the SQL store: all answers of a snapshot from one moment, computed by the database where it can."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Protocol

import duckdb
import pyarrow as pa

from rollup.aggregation.state import State
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import NoCommitError, QueryError, RollupError, StoreError
from rollup.plan.aggregation import COMMIT, TIMESTAMP, Aggregation
from rollup.retrieval.questions import Question, bucket_column, open_schema, state_rows
from rollup.retrieval.since import Interval, Mark
from rollup.stores.base import Loaded, Size, Snapshot, before_added, ledger_schema
from rollup.stores.sql.ddl import Tables
from rollup.stores.sql.session import Database, OutOfRange, Range, Record, Result, Session, gone, lacks, patiently

CHANGED = "changed"
"""Beside the clocks of a commit record: by level, where the commit has changed stored rows."""


class Reads(Protocol):
    """What a snapshot needs of its store."""

    aggregation: Aggregation
    engine: ColumnEngine
    database: Database
    tables: Tables
    patience: float
    whole: set[str]
    """Tables that are known to have every declared column."""


def read_newest(session: Session, aggregation: Aggregation, tables: Tables) -> Loaded | None:
    """The newest commit. Columns that the open rows do not have yet, because the declaration is newer, are null.

    Raises StoreError when its record is damaged.
    """
    record = session.latest() if session.columns(tables.commit) else None
    if record is None:
        return None
    schema = open_schema(aggregation)
    there = session.columns(tables.open)
    rows = session.read(tables.open, pa.schema([field for field in schema if field.name in there]))
    columns = [rows[f.name] if f.name in there else pa.nulls(rows.num_rows, f.type) for f in schema]
    try:
        state = _state(aggregation, record, pa.table(columns, schema=schema))
        return Loaded(record.number, state, json.loads(record.source))
    except (ValueError, AttributeError) as problem:
        raise StoreError(
            f"commit {record.number} in {tables.commit} is damaged: {problem}",
            hint="`rollup recover CONF --rebuild` makes a new one from the tables",
        ) from None


def _state(aggregation: Aggregation, record: Record, rows: pa.Table) -> State:
    clocks = json.loads(record.clocks)
    known = {level: clocks.get(level.name) for level in aggregation.levels}
    return State(known, state_rows(aggregation, rows), record.resume)


class SqlSnapshot:
    """One commit: the newest when the snapshot is first read, and the same in every later read.

    It is held by a transaction that sees one moment, from the first read until `close`, or until nobody has the
    snapshot any more. When the connection is lost meanwhile, reading goes on if there was no commit since.
    """

    def __init__(self, store: Reads) -> None:
        self._store = store
        self._lock = threading.RLock()
        self._held: tuple[ExitStack, Session] | None = None
        self._number: int | None = None
        self._read_from = False
        self._loaded: Loaded | None = None
        self._whole = store.whole

    def close(self) -> None:
        """Let go of the transaction."""
        with self._lock:
            held, self._held = self._held, None
            if held is not None:
                _let_go(held[0])

    @property
    def in_files(self) -> None:
        return None

    @property
    def number(self) -> int:
        """The number of the commit, 0 before the first."""
        with self._lock:
            if self._number is None:
                self._number = self._read(self._latest)
            return self._number

    def loaded(self) -> Loaded:
        """The state and the source marks of the commit. Raises StoreError before the first."""
        store = self._store
        with self._lock:
            if self._loaded is None:
                self._loaded = self._read(lambda session: read_newest(session, store.aggregation, store.tables))
        if self._loaded is None:
            raise NoCommitError(f"{store.aggregation.name} has no commit yet", hint="start the job with `rollup run`")
        self._number = self._loaded.number
        return self._loaded

    def rows(self, level: Duration, start: int | None = None, end: int | None = None) -> pa.Table:
        """Stored rows with start <= AGG_TIMESTAMP < end."""
        aggregation = self._store.aggregation
        within = Range(TIMESTAMP, start, end)
        return self._read(lambda session: self._rows(session, aggregation.table(level), within))

    def ledger(self) -> pa.Table:
        """Every late event counted."""
        return self._read(lambda session: self._ledger(session, ledger_schema(self._store.aggregation)))

    def sizes(self) -> Mapping[Duration, Size]:
        """Rows and bytes of each level's table, its indexes included; bytes are 0 where the database does not say."""
        aggregation = self._store.aggregation
        return self._read(lambda session: {a: Size(*session.size(aggregation.table(a))) for a in aggregation.levels})

    def extent(self, level: Duration) -> tuple[int, int] | None:
        """The least and greatest AGG_TIMESTAMP of a level's stored rows."""
        return self._read(lambda session: session.extent(self._store.aggregation.table(level)))

    def committed(self) -> float:
        """When the newest commit was made, seconds since the epoch."""
        return self._read(lambda session: session.committed())

    def mark(self, commit: int | None = None) -> Mark | None:
        """The mark of this commit, or of an earlier one whose record is kept."""
        wanted = self.number if commit is None else commit
        record = self._read(lambda session: session.latest(wanted)) if wanted else None
        if record is None:
            return None
        clocks = json.loads(record.clocks)
        return Mark({level: clocks.get(level.name) for level in self._store.aggregation.levels}, record.token)

    def changed(self, level: Duration, earlier: Snapshot | int) -> list[Interval] | None:
        """By the records of the commits since; None where one is not kept, or is of a version that did not say it."""
        since = earlier if isinstance(earlier, int) else earlier.number
        records = self._read(lambda session: session.after(since))
        said = [json.loads(record.clocks).get(CHANGED) for record in records if record.number <= self.number]
        if len(said) != self.number - since or None in said:
            return None
        return [(low, high) for each in said for low, high in each.get(level.name, ())]

    def answer(self, question: Question, **tables: pa.Table) -> pa.Table:
        """The rows that answer a question: computed by the database where it can, otherwise in DuckDB over its rows."""
        return self._read(lambda session: self._answer(session, question, tables))

    def _answer(self, session: Session, question: Question, tables: Mapping[str, pa.Table]) -> pa.Table:
        if self._older(session):
            return self._in_duckdb(session, question, tables)
        try:
            answer = session.answer(question, tables)
        except OutOfRange:  # PostgreSQL refuses the whole question for one double that overflows; DuckDB says infinity
            answer = None
        return self._in_duckdb(session, question, tables) if answer is None else answer

    def _in_duckdb(self, session: Session, question: Question, tables: Mapping[str, pa.Table]) -> pa.Table:
        store = self._store
        relations = question.relations
        found = {name: self._stored(session, question, level) for name, level in relations.items()}
        one = Range(bucket_column(question.per), question.start, question.end) if len(relations) == 1 else None
        found["open"] = self._rows(session, store.tables.open, one, open_schema(store.aggregation))
        if question.late:
            cut = [pa.field(bucket_column(level), pa.int64()) for level in store.aggregation.levels]
            schema = ledger_schema(store.aggregation).append(pa.field(COMMIT, pa.int64()))
            found["late"] = self._ledger(session, pa.schema([*schema, *cut]))
        sql, values = question.prepared()
        try:
            return store.engine.run(sql, values, **found, **question.tables(), **tables)
        except duckdb.Error as problem:
            raise QueryError(f"{store.aggregation.name}: {str(problem).splitlines()[0]}") from None

    def _stored(self, session: Session, question: Question, level: Duration) -> pa.Table:
        """The rows of a level in the ranges of a question."""
        aggregation = self._store.aggregation
        table = aggregation.table(level)
        return pa.concat_tables(
            [self._rows(session, table, Range(TIMESTAMP, *both)) for both in question.ranges(level)]
        )

    def _rows(self, session: Session, table: str, within: Range | None, opened: pa.Schema | None = None) -> pa.Table:
        """Rows of a level, or open ones with their schema; values that the table does not have are as before their time."""
        schema: pa.Schema = self._store.aggregation.table_schema if opened is None else opened
        missing = self._missing(session, table, schema)
        rows = session.read(table, pa.schema([field for field in schema if field.name not in missing]), within)
        for i, field in enumerate(schema):
            if field.name in missing:
                rows = rows.add_column(i, field, pa.array([before_added(field.name)] * rows.num_rows, field.type))
        return rows

    def _missing(self, session: Session, table: str, schema: pa.Schema) -> set[str]:
        """The declared values that a table does not have yet; asked until it has all, as columns never go.

        Raises StoreError when it lacks more than values: then its rows mean something else.
        """
        if table in self._whole:
            return set()
        there = session.columns(table)
        if not there:
            raise gone(table)
        missing = {name for name in schema.names if name not in there}
        for name in sorted(missing - {value.name for value in self._store.aggregation.values}):
            raise lacks(table, name)
        if not missing:
            self._whole.add(table)
        return missing

    def _older(self, session: Session) -> bool:
        """Whether a table lacks a declared value, so that the database cannot answer by itself."""
        aggregation, tables = self._store.aggregation, self._store.tables
        found = [
            self._missing(session, aggregation.table(level), aggregation.table_schema) for level in aggregation.levels
        ]
        return any(found) or bool(self._missing(session, tables.open, open_schema(aggregation)))

    def _ledger(self, session: Session, schema: pa.Schema) -> pa.Table:
        """The ledger, columns as in `schema`."""
        return session.read(self._store.tables.late, schema)

    def _read(self, read: Callable[[Session], Result]) -> Result:
        with self._lock:
            return patiently(f"{self._store.aggregation.name}: read", self._store.patience, lambda: self._once(read))

    def _once(self, read: Callable[[Session], Result]) -> Result:
        stack, session = self._held or self._hold()
        try:
            found = read(session)
        except RollupError:  # said by ourselves: the transaction goes on
            raise
        except BaseException as problem:
            self._held = None
            stack.__exit__(type(problem), problem, problem.__traceback__)  # raises it in our words
            raise
        self._read_from = True
        return found

    def _hold(self) -> tuple[ExitStack, Session]:
        """Begin the transaction; after a lost one only where it sees the same commit."""
        stack = ExitStack()
        session = stack.enter_context(self._store.database.reading())
        self._held = stack, session
        weakref.finalize(self, _let_go, stack).atexit = False
        if self._read_from:
            self._once(self._check_same)
        return self._held

    def _check_same(self, session: Session) -> None:
        number = self._latest(session)
        if number != self._number:
            raise StoreError(
                f"{self._store.aggregation.name}: the connection was lost while commit {self._number or ''} was read, "
                f"and the newest is {number} now",
                hint="ask again",
            )

    def _latest(self, session: Session) -> int:
        record = session.latest() if session.columns(self._store.tables.commit) else None
        return 0 if record is None else record.number


def _let_go(stack: ExitStack) -> None:
    """End a transaction that has only read; nothing is lost when that fails."""
    with suppress(Exception):
        stack.close()
