"""One DuckDB connection a thread over one database: queries that were made before run again without being planned.

Files never change once they are written, so a query over a list of files is prepared once and stays right.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary, ref

import pyarrow as pa

from rollup.core.columns import ColumnEngine, Database
from rollup.core.identifiers import quoted
from rollup.stores.delta.missing import fetched

_numbers = itertools.count()  # of all sessions, since those of one thread share their connection
_KEPT = 128
_KEPT_TABLES = 8


class Sessions:
    """The connections of a process to the database of an engine, and the tables they share there."""

    def __init__(self, engine: ColumnEngine) -> None:
        self._engine = engine
        self._own = threading.local()
        self._lock = threading.Lock()
        self._shared = WeakKeyDictionary[Database, dict[str, list[str]]]()

    def session(self) -> Session:
        """The connection of this thread."""
        found: Session | None = getattr(self._own, "session", None)
        if found is None or found.database() is not self._engine.database:
            found = self._own.session = Session(self._engine)
        return found

    def share(self, family: str, number: int, rows: pa.Table) -> str:
        """A table with these rows that all sessions see, by name; of each family the newest few stay.

        Only the first call for a number copies rows.
        """
        name = f"{family} {number}"
        with self._lock:
            known = self._shared.setdefault(self._engine.database, {}).setdefault(family, [])
            if name not in known:
                with self._engine.tables({"shared rows": rows}):
                    self._engine.connection.execute(
                        f'CREATE OR REPLACE TABLE {quoted(name)} AS SELECT * FROM "shared rows"'
                    )
                known.append(name)
                for old in known[:-_KEPT_TABLES]:
                    self._engine.connection.execute(f"DROP TABLE IF EXISTS {quoted(old)}")
                del known[:-_KEPT_TABLES]
        return name


class Session:
    """One thread's connection and the queries it has prepared."""

    def __init__(self, engine: ColumnEngine) -> None:
        self.engine = engine
        self.database = ref(engine.database)
        self._prepared: OrderedDict[str, str] = OrderedDict()

    def run(self, sql: str, values: Mapping[str, object], tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """The answer of a query that this session may have seen before; `tables` are seen under their names."""
        if tables:
            return self._once(sql, values, tables)
        name = self._prepared.get(sql)
        if name is None:
            name = self._prepare(sql)
        self._prepared.move_to_end(sql)
        given = ", ".join(f'"{key}" := {literal(value)}' for key, value in values.items())
        return self.engine.connection.sql(f"EXECUTE {name}({given})" if given else f"EXECUTE {name}").to_arrow_table()

    def _prepare(self, sql: str) -> str:
        self.engine.prepare(sql)
        name = f"q{next(_numbers)}"
        self.engine.connection.execute(f"PREPARE {name} AS {sql}")
        self._prepared[sql] = name
        if len(self._prepared) > _KEPT:
            _, oldest = self._prepared.popitem(last=False)
            self.engine.connection.execute(f"DEALLOCATE {oldest}")
        return name

    def _once(self, sql: str, values: Mapping[str, object], tables: Mapping[str, pa.Table]) -> pa.Table:
        parameters: Any = dict(values) or None
        return self.engine.run(sql, parameters, **tables)


def literal(value: object) -> str:
    """A text or a whole number as SQL.

    >>> literal("it's"), literal(-5)
    ("'it''s'", '-5')
    """
    if isinstance(value, int):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def parquet(files: Sequence[str]) -> str:
    """A table in SQL made of files, those of an object store by their copies here."""
    return f"read_parquet([{', '.join(literal(file) for file in fetched(files))}], hive_partitioning = false)"
