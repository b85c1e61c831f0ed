"""Reading the SQL store: every answer from one moment, computed by the database where it can."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from rollup.aggregation.engine import Engine
from rollup.aggregation.retrieval import Ask, Question, bucket_column, open_schema, state_rows
from rollup.aggregation.state import State
from rollup.calendar import Duration
from rollup.errors import QueryError, StoreError
from rollup.plan.aggregation import EVENTS, TIMESTAMP, Aggregation
from rollup.stores.base import Loaded, Size, ledger_schema
from rollup.stores.sql_ddl import COMMIT, KIND, Tables
from rollup.stores.sql_session import Database, OutOfRange, Range, Record, Result, Session, patiently


class Reads(Protocol):
    """What a snapshot needs of its store."""

    aggregation: Aggregation
    engine: Engine
    database: Database
    tables: Tables
    patience: float


def read_newest(aggregation: Aggregation, tables: Tables, database: Database) -> Loaded | None:
    """The newest commit. Columns that the open rows do not have yet, because the declaration is newer, are null."""
    with database.reading() as session:
        record = session.latest()
        if record is None:
            return None
        schema = open_schema(aggregation)
        there = session.columns(tables.open)
        rows = session.read(tables.open, pa.schema([field for field in schema if field.name in there]))
    columns = [rows[f.name] if f.name in there else pa.nulls(rows.num_rows, f.type) for f in schema]
    state = _state(aggregation, record, pa.table(columns, schema=schema))
    return Loaded(record.number, state, json.loads(record.source))


def _state(aggregation: Aggregation, record: Record, rows: pa.Table) -> State:
    clocks = json.loads(record.clocks)
    known = {level: clocks.get(level.name) for level in aggregation.levels}
    return State(known, state_rows(aggregation, rows), record.resume)


class SqlSnapshot:
    """Each answer comes from one moment: the newest commit when it is asked for."""

    def __init__(self, store: Reads) -> None:
        self._store = store

    @property
    def number(self) -> int:
        """The number of the newest commit, 0 before the first."""
        record = self._read(lambda session: session.latest())
        return 0 if record is None else record.number

    def loaded(self) -> Loaded:
        """The state and the source marks of the newest commit. Raises StoreError before the first."""
        store = self._store
        loaded = self._patiently(lambda: read_newest(store.aggregation, store.tables, store.database))
        if loaded is None:
            raise StoreError(f"{store.aggregation.name} has no commit yet", hint="start the job with `rollup run`")
        return loaded

    def rows(self, level: Duration, start: int | None = None, end: int | None = None) -> pa.Table:
        """Stored rows with start <= AGG_TIMESTAMP < end."""
        aggregation = self._store.aggregation
        within = Range(TIMESTAMP, start, end)
        return self._read(lambda session: session.read(aggregation.table(level), aggregation.table_schema, within))

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

    def answer(self, question: Question, **tables: pa.Table) -> pa.Table:
        """The rows that answer a question: computed by the database where it can, otherwise in DuckDB over its rows."""
        return self._patiently(lambda: self._answer(question, tables))

    def _answer(self, question: Question, tables: Mapping[str, pa.Table]) -> pa.Table:
        try:
            with self._store.database.reading() as session:
                answer = session.answer(question, tables)
                return self._in_duckdb(session, question, tables) if answer is None else answer
        except OutOfRange:  # PostgreSQL refuses the whole question for one double that overflows; DuckDB says infinity
            with self._store.database.reading() as session:
                return self._in_duckdb(session, question, tables)

    def _in_duckdb(self, session: Session, question: Question, tables: Mapping[str, pa.Table]) -> pa.Table:
        store = self._store
        relations: Mapping[str, Duration] = getattr(question, "relations", {"closed": question.per})
        found = {name: self._stored(session, question, level) for name, level in relations.items()}
        one = Range(bucket_column(question.per), question.start, question.end) if len(relations) == 1 else None
        found["open"] = session.read(store.tables.open, open_schema(store.aggregation), one)
        if getattr(question, "late", False):
            cut = [pa.field(bucket_column(level), pa.int64()) for level in store.aggregation.levels]
            schema = ledger_schema(store.aggregation).append(pa.field("commit", pa.int64()))
            found["late"] = self._ledger(session, pa.schema([*schema, *cut]))
        own: Mapping[str, pa.Table] = question.tables() if isinstance(question, Ask) else {}
        bounds = {"start": question.start, "end": question.end}
        try:
            return store.engine.run(question.sql(), bounds, **found, **own, **tables)
        except duckdb.Error as problem:
            raise QueryError(f"{store.aggregation.name}: {str(problem).splitlines()[0]}") from None

    def _stored(self, session: Session, question: Question, level: Duration) -> pa.Table:
        """The rows of a level in the ranges of a question."""
        aggregation = self._store.aggregation
        ranges: Any = question.ranges(level) if isinstance(question, Ask) else [(question.start, question.end)]
        table, schema = aggregation.table(level), aggregation.table_schema
        return pa.concat_tables([session.read(table, schema, Range(TIMESTAMP, *both)) for both in ranges])

    def _ledger(self, session: Session, schema: pa.Schema) -> pa.Table:
        """The ledger with the column names of `schema`."""
        called = {"kind": KIND, "events": EVENTS, "commit": COMMIT}
        stored = pa.schema([field.with_name(called.get(field.name, field.name)) for field in schema])
        return session.read(self._store.tables.late, stored).rename_columns(schema.names)

    def _read(self, read: Callable[[Session], Result]) -> Result:
        def once() -> Result:
            with self._store.database.reading() as session:
                return read(session)

        return self._patiently(once)

    def _patiently(self, action: Callable[[], Result]) -> Result:
        return patiently(f"{self._store.aggregation.name}: read", self._store.patience, action)
