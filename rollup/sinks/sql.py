"""Rows of a stream in a table of a database, exactly once: rows and the number of their commit go together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from rollup.core.errors import StoreError
from rollup.engine.flows.keyed import equal_keys, last_of
from rollup.sinks.base import AGAIN
from rollup.stores.sql.options import StoreOptions
from rollup.stores.sql.session import ConnectionLost, lost, patiently

MARKS = "rollup_sinks"
"""The table that says which commit each sink has: `sink`, `commit_number`."""
_TYPES: Mapping[pa.DataType, type[sa.types.TypeEngine[Any]]] = {
    pa.bool_(): sa.Boolean,
    pa.int32(): sa.Integer,
    pa.int64(): sa.BigInteger,
    pa.float32(): sa.Float,
    pa.float64(): sa.Double,
}


PATIENCE = 60.0
"""Seconds that a database which restarts is waited for, as where aggregations are stored."""


class SqlSink:
    """A table, made when it is not there. Options: `url`, `table`, `username`, `password`, the `name` of the stream, and of
    a table its `key`: of each key the last row stays."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = StoreOptions.of(
            {key: options[key] for key in ("url", "username", "password") if key in options}
        )
        self._name, self._table = options["name"], options["table"]
        self._key = tuple(options.get("key", ()))

    @cached_property
    def _engine(self) -> sa.Engine:
        try:
            return sa.create_engine(self._options.url)
        except ImportError as problem:
            raise StoreError(
                f"no driver for {self._options.shown}: {problem}", hint=self._options.driver_hint
            ) from None

    def write(self, rows: pa.Table, query: str, batch: int) -> None:
        """Insert the rows of a commit unless the table has them; a database that is away for a while is waited for.

        Raises StoreError when it refuses.
        """
        what = f"the rows of {self._name} for {self._table} of {self._options.shown}"
        patiently(what, PATIENCE, lambda: self._once(rows, query, batch))

    def _once(self, rows: pa.Table, query: str, batch: int) -> None:
        known = sa.MetaData()
        columns = [sa.Column(field.name, _TYPES.get(field.type, sa.Text)) for field in rows.schema]
        table = sa.Table(self._table, known, *columns)
        marks = sa.Table(
            MARKS,
            known,
            sa.Column("sink", sa.String(255), primary_key=True),
            sa.Column("commit_number", sa.BigInteger, nullable=False),
        )
        sink = f"{query}-{self._name}"
        try:
            with self._engine.begin() as connection:
                known.create_all(connection)
                mine = marks.c.sink == sink
                last = connection.execute(sa.select(marks.c.commit_number).where(mine)).scalar()
                if last is not None and last >= batch:
                    return
                self._put(connection, table, rows)
                if last is None:
                    connection.execute(marks.insert(), {"sink": sink, "commit_number": batch})
                else:
                    connection.execute(marks.update().where(mine).values(commit_number=batch))
        except SQLAlchemyError as problem:
            origin = getattr(problem, "orig", None)
            said = str(origin or problem).splitlines()[0]
            away = self._engine.dialect.name == "postgresql" and lost(getattr(origin, "pgcode", None) or "", said)
            if away or getattr(problem, "connection_invalidated", False):
                raise ConnectionLost(said) from None
            raise StoreError(
                f"cannot insert the rows of {self._name} into {self._table} of {self._options.shown}: {said}",
                hint=AGAIN,
            ) from None

    def _put(self, connection: sa.Connection, table: sa.Table, rows: pa.Table) -> None:
        """The rows; with a key in place of those that are there. A null is a key as any other."""
        if self._key:
            rows = equal_keys(last_of(rows, self._key), self._key)
            names = {name: f"key_{place}" for place, name in enumerate(self._key)}
            same = [table.c[name].is_not_distinct_from(sa.bindparam(own)) for name, own in names.items()]
            gone = [{own: row[name] for name, own in names.items()} for row in rows.select(self._key).to_pylist()]
            connection.execute(table.delete().where(*same), gone)
        connection.execute(table.insert(), rows.to_pylist())

    def forget(self, query: str, batch: int) -> None:
        """Commits are numbered once and for all: there is nothing to take back."""
