"""Computes the rows a source asks for and copies them into a table of the private server.

Every thread has its own engine, its own view of the stores and its own connection, so loads run beside each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import psycopg2
import psycopg2.errors
import pyarrow as pa
from sqlglot import exp

from rollup.aggregation.answer import bucket_rows
from rollup.aggregation.engine import Engine
from rollup.aggregation.retrieval import Ask, ask_for, attributes
from rollup.ask import Asker
from rollup.calendar import Duration
from rollup.conf import Conf
from rollup.errors import QueryError, StoreError
from rollup.gateway.catalog import INNER, name, table_ddl
from rollup.gateway.sources import columns
from rollup.plan.aggregation import TIMESTAMP, Aggregation, Output, column
from rollup.plan.app import Item, Selection
from rollup.plan.dialects import to_sql
from rollup.program import Program
from rollup.stores.base import Snapshot
from rollup.stores.delta_read import DeltaReader, DeltaSnapshot
from rollup.stores.sql_copy import READ_SIZE, CopyRows
from rollup.untyped import pc

Where = tuple[tuple[str, tuple[str | int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Key:
    """What a table of loaded rows holds: the rows of one commit in start <= AGG_TIMESTAMP < end.

    `per` is a level's word or 'auto', `loaded` are the columns, `where` the values that keys may have, `limit` how many
    rows are enough, `fill` what stands in gaps.
    """

    aggregation: str
    number: int
    start: int
    end: int
    per: str
    loaded: tuple[str, ...]
    where: Where = ()
    limit: int | None = None
    fill: str | None = None


@dataclass(frozen=True)
class SliceQuestion:
    """A key as a question to a store; see `rollup.aggregation.retrieval.Question`."""

    aggregation: Aggregation
    key: Key
    rows: int

    @property
    def per(self) -> Duration:
        """The level asked for."""
        return Duration.parse(self.key.per)

    @property
    def start(self) -> int:
        """The first instant."""
        return self.key.start

    @property
    def end(self) -> int:
        """The instant after the last."""
        return self.key.end

    def sql(self, dialect: str = "duckdb") -> str:
        """The query over `closed` and `open`; one row more than allowed shows that there are too many."""
        return _slice_sql(self.aggregation, self.per, self.key.loaded, self.key.where, self.rows, dialect)


@lru_cache(maxsize=4096)
def _slice_sql(
    aggregation: Aggregation, level: Duration, loaded: tuple[str, ...], where: Where, rows: int, dialect: str
) -> str:
    kinds = columns(aggregation)
    outputs = {output.name: output for output in aggregation.outputs}
    keys = {key.name: Output(key.name, key.type, column(key.name)) for key in aggregation.keys}
    wanted = [c for c in kinds if c != TIMESTAMP and (c in loaded or c in dict(where))]
    inner = bucket_rows(aggregation, level, [outputs.get(c) or keys[c] for c in wanted])
    typed = [exp.alias_(exp.cast(column(c), kinds[c].sql), c, quoted=True) for c in loaded]
    query = exp.select(*typed).from_(inner.subquery("b"))
    for key, values in where:
        query = query.where(exp.In(this=column(key), expressions=[exp.convert(value) for value in values]))
    return to_sql(query.order_by(column(TIMESTAMP)).limit(rows), dialect)


@dataclass(frozen=True, slots=True)
class Load:
    """A loaded table: rows, and the bytes it takes."""

    rows: int
    bytes: int


class Loader:
    """Threads that load. `dsn` gives the address of the server, which changes when it is started anew."""

    def __init__(self, conf: Conf, program: Program, dsn: Callable[[], str], row_limit: int, threads: int = 2) -> None:
        self._conf = conf
        self._program = program
        self._dsn = dsn
        self._row_limit = row_limit
        self._own = threading.local()
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="rollup-load")
        self.threads = threads

    def load(self, key: Key, table: str) -> Load:
        """Compute a key's rows and copy them into a new table. Raises QueryError when there are too many."""
        aggregation = self._program.aggregations[key.aggregation]
        rows = self._rows(aggregation, key)
        return self._copied(table_ddl(aggregation, list(key.loaded), table), table, rows)

    def newest(self, aggregation: str) -> int:
        """The number of the newest commit, from the store. Raises StoreError when there is none."""
        return self._stores().snapshot(aggregation).number

    def warm(self) -> None:
        """Open what a first question would have to open, and ask one small one of each aggregation."""
        stores = self._stores()
        self._run("select 1")
        for aggregation in self._program.aggregations.values():
            for level in aggregation.levels:
                stores.touch(aggregation.name, level)
            snapshot = stores.snapshot(aggregation.name)
            coarsest, loaded = aggregation.levels[-1].plural, tuple(columns(aggregation))
            self._rows(
                aggregation, Key(aggregation.name, snapshot.number, -(2**63), 2**63 - 1, coarsest, loaded, (), 1)
            )

    def drop(self, table: str) -> bool:
        """Drop a table unless somebody reads it right now."""
        place = name(table, INNER)
        try:
            self._run(f"begin; lock table {place} in access exclusive mode nowait; drop table {place}; commit")
        except psycopg2.errors.LockNotAvailable:
            self._run("rollback")
            return False
        except psycopg2.errors.UndefinedTable:
            self._run("rollback")
        return True

    def close(self) -> None:
        """End the threads."""
        self.pool.shutdown(wait=True, cancel_futures=True)

    def _rows(self, aggregation: Aggregation, key: Key) -> pa.Table:
        limit = self._row_limit + 1 if key.limit is None else min(key.limit, self._row_limit + 1)
        snapshot = self._stores().snapshot(key.aggregation, key.number)
        if key.fill is None and key.per != "auto":
            rows = snapshot.answer(SliceQuestion(aggregation, key, limit))
        else:
            own = self._stores().aggregation(key.aggregation)
            rows = _widened(snapshot.answer(_ask(own, key)), aggregation).sort_by(TIMESTAMP)
        if rows.num_rows > self._row_limit:
            raise QueryError(
                f"{aggregation.name} has more than {self._row_limit} rows per {key.per} in this range",
                hint="ask for a shorter range or a coarser level, or bound AGG_TIMESTAMP or a group key in WHERE",
            )
        kinds = columns(aggregation)
        return pa.table([_clean(rows[c].cast(kinds[c].arrow)) for c in key.loaded], names=list(key.loaded))

    def _copied(self, ddl: str, table: str, rows: pa.Table) -> Load:
        """Frozen in the transaction that makes the table, the rows are seen by older snapshots as well."""
        place = name(table, INNER)

        def work(cursor: Any) -> Load:
            cursor.execute(f"begin; {ddl}")
            cursor.copy_expert(f"copy {place} from stdin (format binary, freeze)", CopyRows(rows), READ_SIZE)
            cursor.execute("select pg_total_relation_size(%s::regclass)", (place,))
            size = int(cursor.fetchone()[0])
            cursor.execute("commit")
            return Load(rows.num_rows, size)

        return self._with_cursor(work)

    def _run(self, sql: str) -> None:
        self._with_cursor(lambda cursor: cursor.execute(sql))

    def _with_cursor(self, work: Callable[[Any], Any]) -> Any:
        connection = getattr(self._own, "connection", None)
        if connection is None or connection.closed:
            connection = self._connected()
        try:
            with connection.cursor() as cursor:
                return work(cursor)
        except (psycopg2.errors.LockNotAvailable, psycopg2.errors.UndefinedTable):
            raise
        except psycopg2.Error as problem:
            connection.close()
            raise StoreError(f"the server behind the endpoint failed: {problem}".strip(), hint="ask again") from problem

    def _connected(self) -> Any:
        try:
            connection = psycopg2.connect(self._dsn(), connect_timeout=5)
        except psycopg2.Error as problem:
            raise StoreError("the server behind the endpoint cannot be reached", hint="ask again") from problem
        connection.autocommit = True
        self._own.connection = connection
        return connection

    def _stores(self) -> Stores:
        found = getattr(self._own, "stores", None)
        if found is None:
            found = self._own.stores = Stores(self._conf)
        return found


class Stores:
    """The stores of a configuration as one thread reads them."""

    def __init__(self, conf: Conf) -> None:
        self._asker = Asker(conf)
        self._engine = Engine()
        self._readers: dict[str, DeltaReader] = {}
        delta = conf.store["kind"] == "delta"
        for found in self._asker.program.aggregations.values():
            if delta and found.store.get("type") != "rdbms":
                self._readers[found.name] = DeltaReader(found, self._engine, conf.tables)

    def snapshot(self, aggregation: str, number: int | None = None) -> Snapshot:
        """A commit, the newest when no number is given. Raises StoreError when it is not there."""
        reader = self._readers.get(aggregation)
        if reader is None:
            return self._asker.snapshot(aggregation)
        found = reader.snapshot()
        if number is None or found.number == number:
            return found
        try:
            return DeltaSnapshot(reader, reader.records.read(number))
        except FileNotFoundError:
            raise StoreError(f"commit {number} of {aggregation} is gone", hint="ask again") from None

    def aggregation(self, name: str) -> Aggregation:
        """The declaration, as these stores have it."""
        return self._asker.program.aggregations[name]

    def touch(self, aggregation: str, level: Duration) -> None:
        """Open a level's table, if the store has anything to open."""
        reader = self._readers.get(aggregation)
        if reader is not None and reader.records.numbers():
            reader.snapshot().files(level)


def _ask(aggregation: Aggregation, key: Key) -> Ask:
    """A key whose rows come from several levels or from none, which a language's own question can say."""
    items = [Item(each, column(each)) for each in attributes(aggregation) if each in key.loaded]
    return ask_for(aggregation, key.start, key.end, key.per, Selection(tuple(items)), key.fill)


def _widened(rows: pa.Table, aggregation: Aggregation) -> pa.Table:
    """With a null for each key that is not selected, which such a question does not give."""
    for missing, kind in columns(aggregation).items():
        if missing not in rows.schema.names:
            rows = rows.append_column(missing, pa.nulls(rows.num_rows, kind.arrow))
    return rows


def _clean(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as PostgreSQL can hold it, which is without the character zero."""
    if not pa.types.is_string(values.type) or not pc.any(pc.match_substring(values, "\0")).as_py():
        return values
    return pc.replace_substring(values, "\0", "\ufffd")


def delta_folders(conf: Conf, program: Program) -> Mapping[str, Any]:
    """For each aggregation in Delta the folder of its commit records, where the newest number is a look away."""
    from rollup.stores.delta_record import RecordFolder

    if conf.store["kind"] != "delta":
        return {}
    found = [a for a in program.aggregations.values() if a.store.get("type") != "rdbms"]
    return {a.name: RecordFolder(conf.tables / "_rollup" / a.name) for a in found}
