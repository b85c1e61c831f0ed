"""PostgreSQL under the SQL store: COPY in, upserts where a row may be there, answers inside the server."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from typing import Any

import psycopg2
import psycopg2.errors
import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from rollup.aggregation.answer import LEVEL
from rollup.aggregation.retrieval import Ask, Question
from rollup.calendar import Duration
from rollup.errors import QueryError, StoreError
from rollup.plan.aggregation import EVENTS, TIMESTAMP, ZONE, Aggregation, Clock
from rollup.stores.sql_ddl import COMMIT, KIND, Tables, fill, uses_sketch
from rollup.stores.sql_partitions import Partitions
from rollup.stores.sql_prepare import Preparation
from rollup.stores.sql_rows import copy_text, described, to_arrow
from rollup.stores.sql_session import AlreadyThere, ConnectionLost, OutOfRange, Range, Record
from rollup.stores.sql_types import column_type, quoted, type_name

_KEPT = 1000
"""Commit records that stay, as a short history; the newest alone would do."""
_VACUUM_EVERY = 100_000
_LOST = {"57P01", "57P02", "57P03", "40001", "40P01", "25006", "55P03"}
"""Server going down or coming up, a conflict or a lock to try again, a server that is a standby now; and class 08."""
_AWAY = re.compile(
    "refused|could not connect|server closed|starting up|shutting down|not yet accepting|recovery mode|timeout expired"
    "|terminat|reset by peer|SSL SYSCALL|EOF"
)


def name(text: str) -> str:
    """A quoted name."""
    return quoted(text, "postgresql")


def pg_type(arrow: pa.DataType) -> str:
    """The type of a column of a relation that is handed over."""
    return type_name(column_type(arrow, ""), "postgresql").replace(' COLLATE "C"', "")


class PostgresDatabase:
    """The tables of one aggregation in a PostgreSQL (15 or later) that SQLAlchemy's engine connects to."""

    def __init__(self, tables: Tables, engine: sa.Engine, partition: str | None = None) -> None:
        self.tables = tables
        self.engine = engine
        self.partitions = Partitions(tables, partition)
        self._dead = 0

    def prepare(self) -> None:
        """Make the tables, functions and views that are missing."""
        with self._connection() as connection, connection.cursor() as cursor:
            Preparation(self.tables, cursor).run(self.partitions.width is not None)
            connection.commit()

    def evolve(self, added: Sequence[str]) -> None:
        """Add columns; one that is there from an older declaration is made anew. The functions follow in `prepare`."""
        with self._connection() as connection, connection.cursor() as cursor:
            Preparation(self.tables, cursor).add(added)
            connection.commit()

    @contextmanager
    def writing(self) -> Generator[PostgresSession]:
        """A transaction. Readers never wait for it, nor it for them."""
        with self._connection() as connection, connection.cursor() as cursor:
            yield PostgresSession(self.tables, cursor)
            connection.commit()

    @contextmanager
    def reading(self) -> Generator[PostgresSession]:
        """A transaction that sees one moment."""
        with self._connection() as connection, connection.cursor() as cursor:
            cursor.execute("set transaction isolation level repeatable read, read only")
            yield PostgresSession(self.tables, cursor)
            connection.rollback()

    def before_closed(self, level: Duration, rows: pa.Table) -> None:
        """Make the partitions that rows need."""
        for statement in self.partitions.missing(level, rows):
            with self._connection() as connection, connection.cursor() as cursor:
                cursor.execute(statement)
                connection.commit()

    def after_commit(self, deleted: int) -> None:
        """Vacuum the open rows when many dead ones have gathered: readers scan the whole table."""
        self._dead += deleted
        if self._dead < _VACUUM_EVERY:
            return
        self._dead = 0
        with self._connection() as connection:
            connection.autocommit = True
            try:
                with connection.cursor() as cursor:
                    cursor.execute(f"vacuum (truncate false, skip_locked) {name(self.tables.open)}")
            finally:
                connection.autocommit = False

    @contextmanager
    def _connection(self) -> Generator[Any]:
        """A connection of the pool; what goes wrong with it comes out as one of our errors."""
        pooled: Any = None
        try:
            pooled = self.engine.raw_connection()
            yield pooled.driver_connection
        except (psycopg2.Error, DBAPIError) as problem:
            raised = translate(self.tables.aggregation, problem, pooled)
            if isinstance(raised, ConnectionLost) and pooled is not None:
                pooled.invalidate()
            raise raised from None
        finally:
            if pooled is not None and pooled.is_valid:
                pooled.close()


def translate(aggregation: Aggregation, problem: Exception, pooled: Any) -> Exception:
    """Our error for one of the driver's."""
    origin = getattr(problem, "orig", None) or problem
    code: str = getattr(origin, "pgcode", None) or ""
    text = str(origin).strip().splitlines()[0] if str(origin).strip() else type(origin).__name__
    gone = pooled is not None and (
        not pooled.is_valid or pooled.driver_connection is None or pooled.driver_connection.closed
    )
    if gone or code in _LOST or code.startswith("08") or (not code and _AWAY.search(str(origin))):
        return ConnectionLost(text)
    if isinstance(origin, psycopg2.errors.UniqueViolation):
        return AlreadyThere(text)
    if isinstance(origin, (psycopg2.errors.UndefinedTable, psycopg2.errors.UndefinedColumn)):
        return StoreError(
            f"{aggregation.name}: {text}",
            hint="the tables were changed; start the job again, which checks and makes them",
        )
    if code == "22003":
        return OutOfRange(text)
    if code.startswith("22"):
        return QueryError(f"{aggregation.name}: {text}")
    return StoreError(f"{aggregation.name} in PostgreSQL: {text}")


class PostgresSession:
    """One transaction on a psycopg2 cursor."""

    def __init__(self, tables: Tables, cursor: Any) -> None:
        self.tables = tables
        self.cursor = cursor

    def claim(self, record: Record) -> bool:
        """Of two jobs with one number, the second waits here for the first and then gets False."""
        table = name(self.tables.commit)
        self.cursor.execute(
            f"insert into {table} (number, token, clocks, source, resume) select %s::bigint, %s, %s, %s, %s::bigint"
            f" where not exists (select from {table} where number >= %s) on conflict do nothing",
            (*astuple(record), record.number),
        )
        taken = self.cursor.rowcount == 1
        if taken and record.number % _KEPT == 0:
            self.cursor.execute(f"delete from {table} where number <= %s", (record.number - _KEPT,))
        return taken

    def latest(self, number: int | None = None) -> Record | None:
        where = "" if number is None else "where number = %s"
        columns = ", ".join(field.name for field in fields(Record))
        self.cursor.execute(
            f"select {columns} from {name(self.tables.commit)} {where} order by number desc limit 1",
            (number,) if where else None,
        )
        found = self.cursor.fetchone()
        return None if found is None else Record(*found)

    def append(self, table: str, rows: pa.Table) -> None:
        columns = ", ".join(map(name, rows.schema.names))
        self.cursor.copy_expert(f"copy {name(table)} ({columns}) from stdin (format csv)", copy_text(rows))

    def at(self, table: str, schema: pa.Schema, times: Sequence[int]) -> pa.Table:
        columns = ", ".join(map(name, schema.names))
        self.cursor.execute(f"select {columns} from {name(table)} where {name(TIMESTAMP)} = any(%s)", (list(times),))
        return to_arrow(self.cursor.fetchall(), schema)

    def replace(self, table: str, rows: pa.Table) -> None:
        """Through a temporary table, whose rows then win over those with the same key."""
        identity = self.tables.aggregation.identity
        values = [column for column in rows.schema.names if column not in identity]
        self.cursor.execute(f"create temp table rollup_new (like {name(table)}) on commit drop")
        self.append("rollup_new", rows)
        self.cursor.execute(
            f"insert into {name(table)} select * from rollup_new"
            f" on conflict ({', '.join(map(name, identity))}) do update set "
            + ", ".join(f"{name(value)} = excluded.{name(value)}" for value in values)
        )
        self.cursor.execute("drop table rollup_new")

    def columns(self, table: str) -> set[str]:
        self.cursor.execute(f"select * from {name(table)} limit 0")
        return {column.name for column in self.cursor.description}

    def cut(self, table: str, low: int | None, high: int | None) -> None:
        self.cursor.execute(f"delete from {name(table)}{_where(Range(TIMESTAMP, low, high))}")

    def extent(self, table: str) -> tuple[int, int] | None:
        self.cursor.execute(f"select min({name(TIMESTAMP)}), max({name(TIMESTAMP)}) from {name(table)}")
        low, high = self.cursor.fetchone()
        return None if low is None else (low, high)

    def size(self, table: str) -> tuple[int, int]:
        parts = "(select sum(pg_total_relation_size(relid)) from pg_partition_tree(%s::regclass))"
        size = f"coalesce({parts}, pg_total_relation_size(%s::regclass))::bigint"
        self.cursor.execute(f"select count(*), {size} from {name(table)}", (name(table), name(table)))
        return self.cursor.fetchone()

    def committed(self) -> float:
        self.cursor.execute(f"select written from {name(self.tables.commit)} order by number desc limit 1")
        found = self.cursor.fetchone()
        return 0.0 if found is None else float(found[0])

    def clear(self, table: str, levels: Sequence[Duration] | None = None) -> int:
        where = "" if levels is None else f" where {name(LEVEL)} in ({', '.join(str(int(level)) for level in levels)})"
        self.cursor.execute(f"delete from {name(table)}{where}")
        return int(self.cursor.rowcount)

    def read(self, table: str, schema: pa.Schema, within: Range | None = None) -> pa.Table:
        self.cursor.execute(f"select {', '.join(map(name, schema.names))} from {name(table)}{_where(within)}")
        return to_arrow(self.cursor.fetchall(), schema)

    def newest(self, level: Duration) -> dict[str, int]:
        """The end of the index where all rows have one zone; otherwise a scan."""
        aggregation = self.tables.aggregation
        table = name(aggregation.table(level))
        if aggregation.clock is Clock.STRING:
            self.cursor.execute(f"select {name(ZONE)}, max({name(TIMESTAMP)}) from {table} group by 1")
        else:
            self.cursor.execute(
                f"select {name(ZONE)}, {name(TIMESTAMP)} from {table} order by {name(TIMESTAMP)} desc limit 1"
            )
        return dict(self.cursor.fetchall())

    def answer(self, question: Question, tables: Mapping[str, pa.Table]) -> pa.Table | None:
        """The answer, computed by the server in one statement; None when it needs a sketch."""
        own: Mapping[str, pa.Table] = question.tables() if isinstance(question, Ask) else {}
        sql = question.sql("postgres")
        if own or uses_sketch(sql):  # the points of `fill` may be millions: they stay here
            return None
        stored: Mapping[str, Duration] = getattr(question, "relations", {"closed": question.per})
        relations = {alias: self.tables.aggregation.table(level) for alias, level in stored.items()}
        relations["open"] = self.tables.open
        parts = [_view(alias, f"select * from {name(table)}") for alias, table in relations.items()]
        if getattr(question, "late", False):
            parts.append(_view("late", self._late()))
        parts += [self._relation(alias, rows) for alias, rows in tables.items()]
        bounds = {"start": question.start, "end": question.end}
        self.cursor.execute(f"with {', '.join(parts)} {fill(sql, bounds)}")
        return described(self.cursor.description, self.cursor.fetchall())

    def _late(self) -> str:
        """The ledger as questions name its columns."""
        called = {KIND: "kind", EVENTS: "events", COMMIT: "commit"}
        columns = (f"{name(column)} as {name(called.get(column, column))}" for column in self.tables.late_columns)
        return f"select {', '.join(columns)} from {name(self.tables.late)}"

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
        return self.cursor.mogrify("%s", (value,)).decode()


def _view(alias: str, query: str) -> str:
    """A relation of a question; relations are not quoted in its text."""
    return f"{alias} as not materialized ({query})"


def _where(within: Range | None) -> str:
    bounds = [] if within is None else [(">=", within.low), ("<", within.high)]
    tests = [f"{name(within.column)} {sign} {int(bound)}" for sign, bound in bounds if within and bound is not None]
    return f" where {' and '.join(tests)}" if tests else ""
