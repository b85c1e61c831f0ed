"""PostgreSQL under the SQL store: COPY in, upserts where a row may be there, answers inside the server."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, fields
from typing import Any

import psycopg2
import psycopg2.errors
import psycopg2.extensions
import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from rollup.core.calendar import Duration
from rollup.core.errors import QueryError, StoreError, refused_by_system
from rollup.plan.aggregation import EVENTS, TIMESTAMP, ZONE, Aggregation
from rollup.retrieval.answer import LEVEL
from rollup.retrieval.questions import Question
from rollup.stores.postgres.copy import READ_SIZE, CopyRows
from rollup.stores.postgres.partitions import Partitions
from rollup.stores.postgres.prepare import Preparation
from rollup.stores.postgres.text import decode_rows, encode, encode_rows, encoded
from rollup.stores.sql.ddl import Tables, stored_relations
from rollup.stores.sql.rows import described, to_arrow
from rollup.stores.sql.session import LOCKED, AlreadyThere, ConnectionLost, Locked, OutOfRange, Range, Record, lost
from rollup.stores.sql.types import column_type, quoted, type_name

_KEPT = 1000
"""Commit records that stay, as a short history; the newest alone would do."""
_VACUUM_EVERY, _VACUUM_COMMITS = 20_000, 4
"""Dead open rows, and at least so many commits of them: a commit slows by what it has to pass over."""
_WRITE = "begin; set local lock_timeout = '10s'; set local idle_in_transaction_session_timeout = '60s'"
"""A lock is waited for a while and then again after a pause; a job that is paused inside a commit loses it."""
_READ = "begin isolation level repeatable read, read only; set local idle_in_transaction_session_timeout = 0"
_OTHERS = (
    "select pg_terminate_backend(pid) from pg_locks where locktype = 'relation' and relation = to_regclass(%s)"
    " and database = (select oid from pg_database where datname = current_database())"
    " and mode = 'RowExclusiveLock' and pid <> pg_backend_pid()"
)
"""Whoever writes commit records now holds this lock to the end of its transaction."""
APPLICATION = "rollup"
"""How the server calls our sessions, unless the URL says otherwise."""
_USED = (
    " from pg_locks join pg_stat_activity using (pid) where locktype = 'relation' and granted"
    " and relation = any(select to_regclass(each) from unnest(%s) as each)"
    " and pg_locks.database = (select oid from pg_database where datname = current_database())"
    " and pid <> pg_backend_pid()"
)
_RESTING = f"select pg_terminate_backend(pid){_USED} and application_name = %s and state = 'idle in transaction'"
"""A snapshot that somebody still has keeps its transaction, in which what it has read cannot be changed."""
_HOLDERS = (
    "select distinct on (pid) pid, coalesce(nullif(application_name, ''), usename), lower(state),"
    f" left(regexp_replace(query, '[[:space:]]+', ' ', 'g'), 80){_USED} order by pid limit 3"
)
"""Sessions in whose transaction a table of ours is used; who may not see another's, sees that it is there."""


def name(text: str) -> str:
    """A quoted name."""
    return quoted(text, "postgresql")


def beside_values(text: str) -> str:
    """A name in a statement with values, where the driver reads `%` as the place of one."""
    return name(text).replace("%", "%%")


def pg_type(arrow: pa.DataType) -> str:
    """The type of a column of a relation that is handed over."""
    return type_name(column_type(arrow, ""), "postgresql").replace(' COLLATE "C"', "")


class PostgresDatabase:
    """The tables of one aggregation in a PostgreSQL (15 or later) that SQLAlchemy's engine connects to."""

    apart = True

    def __init__(self, tables: Tables, engine: sa.Engine, partition: str | None = None) -> None:
        self.tables = tables
        self.engine = engine
        self.partitions = Partitions(tables, partition)
        self._dead = 0

    def prepare(self) -> None:
        """Make the tables, functions and views that are missing."""
        with self.writing() as session:
            Preparation(self.tables, session.cursor).run(self.partitions.on)

    def end_others(self) -> None:
        """End the transaction of a job that was paused, or cut off, in the middle of a commit."""
        with self._connection() as connection, connection.cursor() as cursor:
            try:
                cursor.execute(_OTHERS, (name(self.tables.commit),))
            except psycopg2.errors.InsufficientPrivilege:
                return  # another role's: its lock is waited for, and its commit then fences ours

    def end_resting(self) -> None:
        """End the transactions of snapshots that nobody reads from at this moment: they begin another when they are read."""
        refused = psycopg2.errors.InsufficientPrivilege
        with self._connection() as connection, connection.cursor() as cursor, suppress(refused):
            cursor.execute(_RESTING, (self._places, APPLICATION))

    @contextmanager
    def writing(self) -> Generator[PostgresSession]:
        """A transaction. Readers never wait for it, nor it for them."""
        with self._connection() as connection, connection.cursor() as cursor:
            session = PostgresSession(self, cursor, _WRITE)
            yield session
            session.run("COMMIT")

    @contextmanager
    def reading(self) -> Generator[PostgresSession]:
        """A transaction that sees one moment."""
        with self._connection() as connection, connection.cursor() as cursor:
            yield PostgresSession(self, cursor, _READ)

    def after_commit(self, deleted: int) -> None:
        """Vacuum the open rows when many dead ones have gathered: readers scan the whole table."""
        self._dead += deleted
        if self._dead < max(_VACUUM_EVERY, _VACUUM_COMMITS * deleted):
            return
        self._dead = 0
        with self._connection() as connection, connection.cursor() as cursor:
            cursor.execute(f"vacuum (truncate false, skip_locked) {name(self.tables.open)}")

    @contextmanager
    def _connection(self) -> Generator[Any]:
        """A connection of the pool; what goes wrong with it comes out as one of our errors.

        It is in autocommit mode: our transactions begin in the same message as their first statement.
        """
        pooled: Any = None
        try:
            pooled = self.engine.raw_connection()
            connection = pooled.driver_connection
            connection.autocommit = True
            yield connection
            _rolled_back(connection)
        except (psycopg2.Error, DBAPIError, PoolTimeout) as problem:
            raised = translate(self.tables.aggregation, problem, pooled)
            if isinstance(raised, Locked):
                raised = Locked(f"{raised}; {self._holders(pooled)}")
            if isinstance(raised, ConnectionLost) and pooled is not None:
                pooled.invalidate()
            raise raised from None
        finally:
            if pooled is not None and pooled.is_valid:
                _give_back(pooled)

    @property
    def _places(self) -> list[str]:
        return [self.tables.quote(each) for each in self.tables.all()]

    def _holders(self, pooled: Any) -> str:
        """Who uses the tables, in words."""
        try:
            _rolled_back(pooled.driver_connection)
            with pooled.driver_connection.cursor() as cursor:
                cursor.execute(_HOLDERS, (self._places,))
                found = [f"process {pid} of the server ({who}, {state}: {query})" for pid, who, state, query in cursor]
        except psycopg2.Error:
            found = []
        return f"the tables are used by {' and '.join(found) or 'another session, which is gone now'}"


def _rolled_back(connection: Any) -> None:
    """End a transaction that is not committed; nothing goes to the server when there is none."""
    if connection.info.transaction_status != psycopg2.extensions.TRANSACTION_STATUS_IDLE:
        with connection.cursor() as cursor:
            cursor.execute("rollback")


def _give_back(pooled: Any) -> None:
    try:
        _rolled_back(pooled.driver_connection)
    except psycopg2.Error:
        pooled.invalidate()
    else:
        pooled.close()


def translate(aggregation: Aggregation, problem: Exception, pooled: Any) -> Exception:
    """Our error for one of the driver's."""
    origin = getattr(problem, "orig", None) or problem
    code: str = getattr(origin, "pgcode", None) or ""
    text = str(origin).strip().splitlines()[0] if str(origin).strip() else type(origin).__name__
    gone = pooled is not None and (
        not pooled.is_valid or pooled.driver_connection is None or pooled.driver_connection.closed
    )
    if gone or lost(code, text):
        return (Locked if code == LOCKED else ConnectionLost)(text)
    if isinstance(origin, psycopg2.errors.UniqueViolation):
        return AlreadyThere(text)
    if isinstance(origin, (psycopg2.errors.UndefinedTable, psycopg2.errors.UndefinedColumn)):
        return StoreError(
            f"{aggregation.name}: {text}",
            hint="the tables were changed; start the job again, which checks and makes them",
        )
    if code == "23514":
        hint = "the table was made with partitions: `partition` in its [store] makes the next ones"
        return StoreError(f"{aggregation.name}: {text}", hint=hint)
    if code == "22003":
        return OutOfRange(text)
    if code.startswith("22"):
        return QueryError(f"{aggregation.name}: {text}")
    what = f"{aggregation.name} in PostgreSQL"
    return refused_by_system(what, problem, f"the server says {text!r}") or StoreError(f"{what}: {text}")


class PostgresSession:
    """One transaction on a psycopg2 cursor.

    Statements whose result nobody needs, its `begin` first, wait for the next one and go out in one message with it.
    """

    def __init__(self, database: PostgresDatabase, cursor: Any, begin: str) -> None:
        self.tables = database.tables
        self.partitions = database.partitions
        self._cursor = cursor
        self._ahead = begin

    @property
    def cursor(self) -> Any:
        """The cursor, inside the transaction."""
        if self._ahead:
            self.run("select")
        return self._cursor

    def run(self, sql: str, values: Sequence[Any] | None = None) -> Any:
        """Send a statement; the cursor with its result."""
        if values is not None:
            self._ahead = self._ahead.replace("%", "%%")
        self._cursor.execute(self._message(sql), values)
        return self._cursor

    def _message(self, sql: str) -> str:
        message, self._ahead = f"{self._ahead}; {sql}" if self._ahead else sql, ""
        return message

    def make(self) -> None:
        Preparation(self.tables, self.cursor).run(self.partitions.on, anew=True)

    def claim(self, record: Record) -> bool:
        """Of two jobs with one number, the second waits here for the first and then gets False."""
        table = beside_values(self.tables.commit)
        self.run(
            f"insert into {table} (number, token, clocks, source, resume) select %s::bigint, %s, %s, %s, %s::bigint"
            f" where (select coalesce(max(number), 0) from {table}) = %s on conflict do nothing",
            (*astuple(record), record.number - 1),
        )
        taken = self._cursor.rowcount == 1
        if taken and record.number % _KEPT == 0:
            self.run(f"delete from {table} where number <= %s", (record.number - _KEPT,))
        return taken

    def latest(self, number: int | None = None) -> Record | None:
        where = "" if number is None else "where number = %s"
        columns = ", ".join(field.name for field in fields(Record))
        self.run(
            f"select {columns} from {beside_values(self.tables.commit)} {where} order by number desc limit 1",
            (number,) if where else (),
        )
        found = self._cursor.fetchone()
        return None if found is None else Record(*found)

    def after(self, number: int) -> list[Record]:
        columns = ", ".join(field.name for field in fields(Record))
        table = beside_values(self.tables.commit)
        self.run(f"select {columns} from {table} where number > %s order by number", (number,))
        return [Record(*found) for found in self._cursor.fetchall()]

    def append(self, table: str, rows: pa.Table) -> None:
        rows = self._rest(table, rows)
        if rows.num_rows:
            self._copy(table, rows)

    def _rest(self, table: str, rows: pa.Table) -> pa.Table:
        """The rows that do not go into partitions made for them here."""
        return self.partitions.fill(self.cursor, table, rows, self._copy) if self.partitions.on else rows

    def _copy(self, table: str, rows: pa.Table) -> None:
        columns = ", ".join(map(name, rows.schema.names))
        copy = f"copy {name(table)} ({columns}) from stdin (format binary)"
        self._cursor.copy_expert(self._message(copy), CopyRows(encode_rows(rows)), READ_SIZE)

    def like(self, table: str, schema: pa.Schema, rows: pa.Table) -> pa.Table:
        """Compared by the server: a correction of three keys must not fetch the million that their bucket has."""
        identity = self.tables.aggregation.identity
        given = encode_rows(rows.select(identity))
        lists = ", ".join(f"%s::{pg_type(field.type)}[]" for field in given.schema)
        named = [(beside_values(f.name), ' collate "C"' if pa.types.is_string(f.type) else "") for f in given.schema]
        columns, same = ", ".join(map(beside_values, schema.names)), f"row({', '.join(map(''.join, named))})"
        # Rows as values are equal where both have nulls, and can be hashed; `is not distinct from` cannot. They compare
        # text by the collation that both sides name.
        self.run(
            f"select {columns} from (select *, {same} as rollup_row from {beside_values(table)} where {name(TIMESTAMP)} = any(%s))"
            f" as there where rollup_row in (select {same} from unnest({lists}) as given ({', '.join(map(beside_values, identity))}))",
            (rows[TIMESTAMP].unique().to_pylist(), *(column.to_pylist() for column in given.columns)),
        )
        return decode_rows(to_arrow(self._cursor.fetchall(), schema))

    def replace(self, table: str, rows: pa.Table) -> None:
        """Through a temporary table, whose rows then win over those with the same key."""
        rows = self._rest(table, rows)
        identity = self.tables.aggregation.identity
        values = [column for column in rows.schema.names if column not in identity]
        self.run(f"create temp table rollup_new (like {name(table)}) on commit drop")
        self.append("rollup_new", rows)
        self.run(
            f"insert into {name(table)} select * from rollup_new"
            f" on conflict ({', '.join(map(name, identity))}) do update set "
            + ", ".join(f"{name(value)} = excluded.{name(value)}" for value in values)
        )
        self.run("drop table rollup_new")

    def columns(self, table: str) -> set[str]:
        self.run("select attname from pg_attribute where attrelid = to_regclass(%s) and attnum > 0", (name(table),))
        return {self.tables.own_names.get(column, column) for (column,) in self._cursor.fetchall()}

    def evolve(self, added: Sequence[str]) -> None:
        """The functions and views, which depend on the columns, are made anew."""
        Preparation(self.tables, self.cursor).add(added)

    def cut(self, table: str, within: Range) -> None:
        self.run(f"delete from {name(table)}{_where(within)}")

    def remove(self, table: str, end: int) -> None:
        """Partitions that end before are dropped, where that holds nobody up; other rows are deleted."""
        self.partitions.drop(self.cursor, table, end)
        self.cut(table, Range(TIMESTAMP, None, end))

    def events(self, table: str, within: Range) -> int:
        self.run(f"select coalesce(sum({name(EVENTS)}), 0)::bigint from {name(table)}{_where(within)}")
        return int(self._cursor.fetchone()[0])

    def extent(self, table: str) -> tuple[int, int] | None:
        self.run(f"select min({name(TIMESTAMP)}), max({name(TIMESTAMP)}) from {name(table)}")
        low, high = self._cursor.fetchone()
        return None if low is None else (low, high)

    def size(self, table: str) -> tuple[int, int]:
        parts = "(select sum(pg_total_relation_size(relid)) from pg_partition_tree(%s::regclass))"
        size = f"coalesce({parts}, pg_total_relation_size(%s::regclass))::bigint"
        self.run(f"select count(*), {size} from {beside_values(table)}", (name(table), name(table)))
        return self._cursor.fetchone()

    def committed(self) -> float:
        self.run(f"select written from {name(self.tables.commit)} order by number desc limit 1")
        found = self._cursor.fetchone()
        return 0.0 if found is None else float(found[0])

    def clear(self, table: str, levels: Sequence[Duration] | None = None) -> None:
        where = "" if levels is None else f" where {name(LEVEL)} in ({', '.join(str(int(level)) for level in levels)})"
        self._ahead = self._message(f"delete from {name(table)}{where}")

    def read(self, table: str, schema: pa.Schema, within: Range | None = None) -> pa.Table:
        self.run(f"select {', '.join(map(name, schema.names))} from {name(table)}{_where(within)}")
        return decode_rows(to_arrow(self._cursor.fetchall(), schema))

    def newest(self, level: Duration) -> dict[str, int]:
        """The end of the index where all rows have one zone; otherwise a scan."""
        aggregation = self.tables.aggregation
        table = name(aggregation.table(level))
        if aggregation.own_zones:
            self.run(f"select {name(ZONE)}, max({name(TIMESTAMP)}) from {table} group by 1")
        else:
            self.run(f"select {name(ZONE)}, {name(TIMESTAMP)} from {table} order by {name(TIMESTAMP)} desc limit 1")
        return dict(self._cursor.fetchall())

    def answer(self, question: Question, tables: Mapping[str, pa.Table]) -> pa.Table | None:
        """The answer, computed by the server in one statement; None when it needs a sketch."""
        if question.tables() or not question.computable(
            "postgres"
        ):  # the points of `fill` may be millions: they stay here
            return None
        parts = stored_relations(self.tables, question.relations, name, question.late)
        parts += [self._relation(alias, rows) for alias, rows in tables.items()]
        try:
            answer = self._asked(f"with {', '.join(parts)} {encode(question.filled('postgres'))}")
        except psycopg2.errors.UndefinedFunction:  # tables of an earlier version, whose job has not started since
            self.run("rollback to savepoint asked")
            return None
        names = question.own_names()
        return answer.rename_columns([names.get(each, each) for each in answer.schema.names])

    def _asked(self, sql: str) -> pa.Table:
        """The rows of a query. What it computes may fail, and the transaction must go on seeing its moment."""
        try:
            self.run(f"savepoint asked; {sql}")
        except psycopg2.DataError as problem:
            self.run("rollback to savepoint asked")
            raise translate(self.tables.aggregation, problem, None) from None
        return decode_rows(described(self._cursor.description, self._cursor.fetchall()))

    def _relation(self, alias: str, rows: pa.Table) -> str:
        columns = ", ".join(map(name, rows.schema.names))
        types = [pg_type(field.type) for field in rows.schema]
        if not rows.num_rows:
            return f"{name(alias)} ({columns}) as (select {', '.join(f'null::{kind}' for kind in types)} where false)"
        lines = (
            ", ".join(f"cast({self._literal(v)} as {kind})" for v, kind in zip(row.values(), types, strict=True))
            for row in rows.to_pylist()
        )
        return f"{name(alias)} ({columns}) as (values {', '.join(f'({line})' for line in lines)})"

    def _literal(self, value: Any) -> str:
        return self._cursor.mogrify("%s", (encoded(value),)).decode()


def _where(within: Range | None) -> str:
    bounds = [] if within is None else [(">=", within.low), ("<", within.high)]
    tests = [f"{name(within.column)} {sign} {int(bound)}" for sign, bound in bounds if within and bound is not None]
    return f" where {' and '.join(tests)}" if tests else ""
