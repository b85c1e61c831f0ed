"""Rows of a stream in a table of a database, exactly once: with the rows goes how many of the line there are.

A row that the table's own types or constraints refuse is set aside, and the others go in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, TypeVar

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from rollup.core.errors import StoreError, refused_by_system
from rollup.engine.flows.keyed import equal_keys, last_of
from rollup.sinks.base import AGAIN, Held, Unfit
from rollup.stores.postgres.text import encode_rows
from rollup.stores.sql.options import StoreOptions
from rollup.stores.sql.session import ConnectionLost, lost, patiently

MARKS = "rollup_sink_rows"
"""The table that says which rows each sink has: `sink`, its `row_count` and the `digest` of the rows."""
_TYPES: Mapping[pa.DataType, type[sa.types.TypeEngine[Any]]] = {
    pa.bool_(): sa.Boolean,
    pa.int32(): sa.Integer,
    pa.int64(): sa.BigInteger,
    pa.float32(): sa.Float,
    pa.float64(): sa.Double,
}
_OF_A_ROW = (DataError, IntegrityError)
"""What a database says of a row: a value that is none of the column's, a constraint. Everything else may pass."""
T = TypeVar("T")
PATIENCE = 60.0
"""Seconds that a database which restarts is waited for, as where aggregations are stored."""


def _marks(known: sa.MetaData) -> sa.Table:
    return sa.Table(
        MARKS,
        known,
        sa.Column("sink", sa.String(255), primary_key=True),
        sa.Column("row_count", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.BigInteger),
    )


_MARKS = _marks(sa.MetaData())


@lru_cache(maxsize=64)
def _tables(name: str, schema: pa.Schema) -> tuple[sa.Table, sa.Table]:
    """The table of a sink and that of the marks, the same ones each time: of each new one SQLAlchemy would compile
    every statement anew, and keep some hundred of them."""
    known = sa.MetaData()
    columns = (sa.Column(field.name, _TYPES.get(field.type, sa.Text)) for field in schema)
    return sa.Table(name, known, *columns), _marks(known)


class SqlSink:
    """A table, made when it is not there. Options: `url`, `table`, `username`, `password`, the `name` of the stream, and of
    a table its `key`: of each key the last row stays."""

    tells = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = StoreOptions.of(
            {key: options[key] for key in ("url", "username", "password") if key in options}
        )
        self._name, self._table = options["name"], options["table"]
        self._key = tuple(options.get("key", ()))
        self.aside: Callable[[str, int, Sequence[Unfit]], None] | None = None

    @cached_property
    def _engine(self) -> sa.Engine:
        try:
            return sa.create_engine(self._options.url)
        except ImportError as problem:
            raise StoreError(
                f"no driver for {self._options.shown}: {problem}", hint=self._options.driver_hint
            ) from None

    @property
    def place(self) -> str:
        """The table and its database."""
        return f"the table {self._table} of {self._options.shown}"

    @property
    def filled(self) -> bool:
        """Whether the table has a row. With a key a row that comes again takes the place of the first. Raises StoreError as `held`."""
        return not self._key and patiently(self._what, PATIENCE, lambda: self._refusable(self._filled))

    def held(self, line: str) -> Held | None:
        """What its mark says; nothing where the table is gone. Raises StoreError when the database refuses."""
        found: Held | None = patiently(self._what, PATIENCE, lambda: self._refusable(partial(self._held, line)))
        return found

    def write(self, rows: pa.Table, line: str, held: Held) -> None:
        """Insert the rows; a database that is away for a while is waited for. Raises StoreError when it refuses."""
        patiently(self._what, PATIENCE, lambda: self._refusable(partial(self._once, rows, line, held)))

    @property
    def _what(self) -> str:
        return f"the rows of {self._name} for {self._table} of {self._options.shown}"

    def _filled(self) -> bool:
        if not sa.inspect(self._engine).has_table(self._table):
            return False
        with self._engine.begin() as connection:
            rows = sa.select(sa.literal(1)).select_from(sa.table(self._table)).limit(1)
            return connection.execute(rows).first() is not None

    def _held(self, line: str) -> Held | None:
        there = sa.inspect(self._engine)
        if not there.has_table(MARKS) or not there.has_table(self._table):
            return None
        with self._engine.begin() as connection:
            mine = sa.select(_MARKS.c.row_count, _MARKS.c.digest).where(_MARKS.c.sink == f"{line}-{self._name}")
            found = connection.execute(mine).one_or_none()
        return None if found is None else Held(*found)

    def _once(self, rows: pa.Table, line: str, held: Held) -> None:
        """All rows in one statement; where the table refuses some of them, those that it takes."""
        try:
            self._written(rows, line, held, self._put)
        except _OF_A_ROW:
            if self.aside is None:
                raise
            self._written(rows, line, held, self._put_fitting)

    def _written(self, rows: pa.Table, line: str, held: Held, put: Callable[..., Sequence[Unfit]]) -> None:
        table, marks = _tables(self._table, rows.schema)
        mine = marks.c.sink == f"{line}-{self._name}"
        postgres = self._engine.dialect.name == "postgresql"
        with self._engine.begin() as connection:
            table.metadata.create_all(connection)
            last = connection.execute(sa.select(marks.c.row_count).where(mine)).scalar()
            if last is not None and last >= held.rows:
                return  # a connection was lost right behind the commit
            now = {"row_count": held.rows, "digest": held.digest}
            if last is None:
                connection.execute(marks.insert(), {"sink": f"{line}-{self._name}", **now})
            else:
                connection.execute(marks.update().where(mine).values(**now))
            if postgres:  # constraints that wait for the end of the transaction would not say which row it was
                connection.execute(sa.text("SET CONSTRAINTS ALL IMMEDIATE"))
            unfit = put(connection, table, encode_rows(rows) if postgres else rows, held.rows - rows.num_rows)
            if unfit and self.aside is not None:
                self.aside(line, held.rows, unfit)

    def _put_fitting(self, connection: sa.Connection, table: sa.Table, rows: pa.Table, first: int) -> Sequence[Unfit]:
        """The rows that the table takes; the others, which are looked for by halves."""
        try:
            with connection.begin_nested():
                return self._put(connection, table, rows, first)
        except _OF_A_ROW as problem:
            if rows.num_rows == 1:
                return [Unfit(first + 1, rows.to_pylist()[0], str(problem.orig).splitlines()[0])]
        half = rows.num_rows // 2
        below = self._put_fitting(connection, table, rows.slice(0, half), first)
        return [*below, *self._put_fitting(connection, table, rows.slice(half), first + half)]

    def _refusable(self, action: Callable[[], T]) -> T:
        """What an action gives. Raises ConnectionLost while the database is away, StoreError when it refuses."""
        try:
            return action()
        except SQLAlchemyError as problem:
            origin = getattr(problem, "orig", None)
            said = str(origin or problem).splitlines()[0]
            away = self._engine.dialect.name == "postgresql" and lost(getattr(origin, "pgcode", None) or "", said)
            if away or getattr(problem, "connection_invalidated", False):
                raise ConnectionLost(said) from None
            what = f"cannot insert the rows of {self._name} into {self._table} of {self._options.shown}"
            raise refused_by_system(what, problem, AGAIN) or StoreError(f"{what}: {said}", hint=AGAIN) from None

    def _put(self, connection: sa.Connection, table: sa.Table, rows: pa.Table, first: int) -> Sequence[Unfit]:
        """The rows; with a key in place of those that are there. A null is a key as any other."""
        if self._key:
            rows = equal_keys(last_of(rows, self._key), self._key)
            names = {name: f"key_{place}" for place, name in enumerate(self._key)}
            same = [table.c[name].is_not_distinct_from(sa.bindparam(own)) for name, own in names.items()]
            gone = [{own: row[name] for name, own in names.items()} for row in rows.select(self._key).to_pylist()]
            connection.execute(table.delete().where(*same), gone)
        connection.execute(table.insert(), rows.to_pylist())
        return ()

    def forget(self, line: str, rows: int) -> bool:
        """What is there stays there."""
        return False
