"""Any database SQLAlchemy knows under the SQL store: plain inserts and selects; questions are answered in DuckDB.

Tested with SQLite. MySQL and Oracle get right DDL; that they run is untested.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from rollup.core.calendar import Duration
from rollup.core.errors import StoreError, refused_by_system
from rollup.plan.aggregation import EVENTS, TIMESTAMP, ZONE
from rollup.retrieval.answer import LEVEL
from rollup.retrieval.questions import Question
from rollup.stores.base import before_added
from rollup.stores.sql.ddl import Tables, table_ddl
from rollup.stores.sql.rows import to_arrow
from rollup.stores.sql.session import AlreadyThere, ConnectionLost, Range, Record, gone, lacks, misfit
from rollup.stores.sql.types import column_type

_MANY = 500


class CoreDatabase:
    """The tables of one aggregation."""

    apart = False  # SQLite works in our own process

    def __init__(self, tables: Tables, engine: sa.Engine) -> None:
        self.tables = tables
        self.engine = engine
        self.meta = {name: _table(tables, name) for name in tables.all()}
        if tables.dialect == "sqlite":
            event.listen(engine, "connect", _sqlite_connect)
            event.listen(engine, "begin", _sqlite_begin)

    def prepare(self) -> None:
        """Make the tables that are missing."""
        with self.writing() as session:
            missing = [table for table in self.meta if not session.columns(table)]
            if missing and self.tables.commit not in missing and session.latest() is not None:
                raise gone(missing[0])
            session.make()

    def check(self, table: str, columns: Sequence[str], found: Mapping[str, str]) -> None:
        """Raise StoreError unless a table has columns, in SQLite (which keeps a type as it was written) of our types."""
        for column in columns:
            if column not in found:
                raise lacks(table, column)
            wanted = self.tables.type_of(column, self.tables.all()[table][column])
            if self.tables.dialect == "sqlite" and found[column] != wanted:
                raise misfit(table, column, found[column], wanted)

    def end_others(self) -> None:
        """Nothing to do: a database is asked to end others' transactions only where it is known how."""

    def end_resting(self) -> None:
        """Nothing to do: who reads holds nobody up for long."""

    @contextmanager
    def writing(self) -> Generator[CoreSession]:
        with self._errors(), self.engine.execution_options(rollup_writes=True).begin() as connection:
            yield CoreSession(self, connection)

    @contextmanager
    def reading(self) -> Generator[CoreSession]:
        with self._errors(), self.engine.begin() as connection:
            yield CoreSession(self, connection)

    def after_commit(self, deleted: int) -> None:
        """Nothing to do."""

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except IntegrityError as problem:
            raise AlreadyThere(str(problem.orig)) from None
        except PoolTimeout as problem:  # every connection of the pool is in use
            raise ConnectionLost(str(problem)) from None
        except DBAPIError as problem:
            if problem.connection_invalidated or "database is locked" in str(problem.orig):
                raise ConnectionLost(str(problem.orig)) from None
            what = f"{self.tables.aggregation.name} in {self.tables.dialect}"
            raise refused_by_system(what, problem) or StoreError(f"{what}: {problem.orig}") from None


def _sqlite_connect(connection: Any, record: object) -> None:
    """Transactions begin where we say; Python's own habit begins them at the first write and reads outside of them."""
    connection.isolation_level = None
    connection.execute("pragma journal_mode = wal")  # readers do not wait for the writer


def _sqlite_begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("rollup_writes", False)
    connection.exec_driver_sql("begin immediate" if writes else "begin")


def _table(tables: Tables, name: str) -> sa.TableClause:
    identity = tables.aggregation.identity
    columns = [sa.column(c, column_type(arrow, c, c in identity)) for c, arrow in tables.all()[name].items()]
    return sa.table(sa.quoted_name(name, quote=True), *columns)


class CoreSession:
    """One transaction on a SQLAlchemy connection."""

    def __init__(self, database: CoreDatabase, connection: sa.Connection) -> None:
        self.database = database
        self.tables = database.tables
        self.meta = database.meta
        self.connection = connection

    def make(self) -> None:
        there = {table: found for table in self.meta if (found := self.kinds(table))}
        for table, found in there.items():
            self.database.check(table, list(self.tables.all()[table]), found)
        missing = len(there) < len(self.meta)
        for statement in table_ddl(self.tables.aggregation, self.tables.dialect) if missing else ():
            if not any(f" {self.tables.quote(table)} " in statement for table in there):
                self.connection.exec_driver_sql(statement)

    def claim(self, record: Record) -> bool:
        latest = self.latest()
        if (0 if latest is None else latest.number) != record.number - 1:
            return False
        values = {field.name: value for field, value in zip(fields(Record), astuple(record), strict=True)}
        self.connection.execute(self.meta[self.tables.commit].insert(), [{**values, "written": time.time()}])
        return True

    def latest(self, number: int | None = None) -> Record | None:
        table = self.meta[self.tables.commit]
        query = sa.select(*(table.c[field.name] for field in fields(Record))).order_by(table.c.number.desc()).limit(1)
        found = self.connection.execute(query if number is None else query.where(table.c.number == number)).first()
        return None if found is None else Record(*found)

    def after(self, number: int) -> list[Record]:
        table = self.meta[self.tables.commit]
        query = sa.select(*(table.c[field.name] for field in fields(Record))).where(table.c.number > number)
        return [Record(*found) for found in self.connection.execute(query.order_by(table.c.number))]

    def append(self, table: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self.connection.execute(self.meta[table].insert(), rows.to_pylist())

    def like(self, table: str, schema: pa.Schema, rows: pa.Table) -> pa.Table:
        """By their times, so all keys of a bucket with one of them."""
        times: list[int] = rows[TIMESTAMP].unique().to_pylist()
        found = [
            self._fetch(table, schema, self.meta[table].c[TIMESTAMP].in_(times[i : i + _MANY]))
            for i in range(0, len(times), _MANY)
        ]
        return pa.concat_tables(found) if found else schema.empty_table()

    def replace(self, table: str, rows: pa.Table) -> None:
        """Delete what has the same identity, nulls counting as equal, and insert."""
        columns = self.meta[table].c
        same = [
            columns[name].is_not_distinct_from(sa.bindparam(f"old{i}", type_=columns[name].type))
            for i, name in enumerate(self._identity)
        ]
        keys = [
            {f"old{i}": row[name] for i, name in enumerate(self._identity)}
            for row in rows.select(self._identity).to_pylist()
        ]
        self.connection.execute(self.meta[table].delete().where(*same), keys)
        self.append(table, rows)

    @property
    def _identity(self) -> list[str]:
        return list(self.tables.aggregation.identity)

    def columns(self, table: str) -> set[str]:
        return set(self.kinds(table))

    def kinds(self, table: str) -> dict[str, str]:
        """The columns of a table with their types as the database says them; none when there is no such table."""
        if self.tables.dialect == "sqlite":
            found = self.connection.exec_driver_sql(f"pragma table_info({self.tables.quote(table)})")
            return {column: kind for _, column, kind, *_ in found}
        inspector = sa.inspect(self.connection)
        columns = inspector.get_columns(table) if inspector.has_table(table) else []
        return {column["name"]: str(column["type"]) for column in columns}

    def evolve(self, added: Sequence[str]) -> None:
        levels = map(self.tables.aggregation.table, self.tables.aggregation.levels)
        found = {table: kinds for table in (*levels, self.tables.open) if (kinds := self.kinds(table))}
        for table, there in found.items():
            self.database.check(table, [column for column in added if column in there], there)
        for table, there in found.items():
            for column in added:
                self._add(table, column, column in there)

    def _add(self, table: str, column: str, there: bool) -> None:
        place, name, before = self.tables.quote(table), self.tables.quote(column), before_added(column)
        if not there:
            kind = self.tables.type_of(column, self.tables.all()[table][column])
            self.connection.exec_driver_sql(f"alter table {place} add {name} {kind}")
        if before is not None:
            self.connection.exec_driver_sql(f"update {place} set {name} = {before} where {name} is null")

    def cut(self, table: str, within: Range) -> None:
        self.connection.execute(self.meta[table].delete().where(*self._tests(table, within)))

    def remove(self, table: str, end: int) -> None:
        self.cut(table, Range(TIMESTAMP, None, end))

    def events(self, table: str, within: Range) -> int:
        query = sa.select(sa.func.sum(self.meta[table].c[EVENTS])).where(*self._tests(table, within))
        return int(self.connection.execute(query).scalar_one() or 0)

    def extent(self, table: str) -> tuple[int, int] | None:
        column = self.meta[table].c[TIMESTAMP]
        low, high = self.connection.execute(sa.select(sa.func.min(column), sa.func.max(column))).one()
        return None if low is None else (low, high)

    def size(self, table: str) -> tuple[int, int]:
        """Bytes are not known here."""
        return self.connection.execute(sa.select(sa.func.count()).select_from(self.meta[table])).scalar_one(), 0

    def committed(self) -> float:
        found = self.connection.execute(sa.select(sa.func.max(self.meta[self.tables.commit].c.written))).scalar_one()
        return 0.0 if found is None else float(found)

    def clear(self, table: str, levels: Sequence[Duration] | None = None) -> None:
        statement = self.meta[table].delete()
        if levels is not None:
            statement = statement.where(self.meta[table].c[LEVEL].in_([int(level) for level in levels]))
        self.connection.execute(statement)

    def read(self, table: str, schema: pa.Schema, within: Range | None = None) -> pa.Table:
        return self._fetch(table, schema, *([] if within is None else self._tests(table, within)))

    def _tests(self, table: str, within: Range) -> list[sa.ColumnElement[bool]]:
        column = self.meta[table].c[within.column]
        low = [] if within.low is None else [column >= within.low]
        return low if within.high is None else [*low, column < within.high]

    def _fetch(self, table: str, schema: pa.Schema, *where: sa.ColumnElement[bool]) -> pa.Table:
        columns = [self.meta[table].c[name] for name in schema.names]
        return to_arrow([tuple(row) for row in self.connection.execute(sa.select(*columns).where(*where))], schema)

    def newest(self, level: Duration) -> dict[str, int]:
        columns = self.meta[self.tables.aggregation.table(level)].c
        query = sa.select(columns[ZONE], sa.func.max(columns[TIMESTAMP])).group_by(columns[ZONE])
        return {zone: newest for zone, newest in self.connection.execute(query)}

    def answer(self, question: Question, tables: Mapping[str, pa.Table]) -> pa.Table | None:
        """Never: DuckDB answers over the rows."""
        return None
