"""Computes the rows a source asks for and copies them into a table of the private server.

Every thread has its own engine, its own view of the stores and its own connection, so loads run beside each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import psycopg2
import psycopg2.errors
import pyarrow as pa
from sqlglot import exp

from rollup.ask import Asker
from rollup.conf import Conf
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import QueryError, StoreError, said_by_system
from rollup.dimensions import dimensions
from rollup.gateway.rewriting.catalog import INNER, name, table_ddl
from rollup.gateway.rewriting.kept import readable_rows, without_zeros
from rollup.gateway.rewriting.mentions import by_name, columns
from rollup.grants import Grant
from rollup.plan.aggregation import EVENTS, TIMESTAMP, Aggregation, Output, column
from rollup.plan.app import Item, Selection
from rollup.program import Program
from rollup.retrieval.answer import END, START, Groups, Part, between, bucket_rows, level_rows, reads_ledger, row_order
from rollup.retrieval.as_of import AsOf
from rollup.retrieval.questions import Ask, ask_for, attributes
from rollup.retrieval.tables import Tables
from rollup.retrieval.trees import Asked, Sides
from rollup.statements.committed.kept import Kept
from rollup.stores.base import Snapshot
from rollup.stores.delta.read import DeltaReader, DeltaSnapshot
from rollup.stores.postgres.copy import READ_SIZE, CopyRows

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
class SliceQuestion(Asked):
    """A key as a question to a store; see `rollup.retrieval.questions.Question`."""

    aggregation: Aggregation
    key: Key
    rows: int
    per: Duration
    start: int
    end: int

    @classmethod
    def of(cls, aggregation: Aggregation, key: Key, rows: int) -> Self:
        """The question of a key that asks for one level, for at most so many rows."""
        return cls(aggregation, key, rows, Duration.parse(key.per), key.start, key.end)

    @property
    def made(self) -> dict[object, object]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What all questions share that differ only in their range."""
        return _texts(self.aggregation, self.key.per, self.key.loaded, self.key.where, self.rows)

    @property
    def values(self) -> Mapping[str, int | str]:
        return {"start": self.start, "end": self.end}

    @property
    def late(self) -> bool:
        return reads_ledger(self.key.loaded)

    def tree(self, sides: Sides) -> exp.Select:
        """The query over `closed` and `open`; one row more than allowed shows that there are too many."""
        kinds, named = columns(self.aggregation), by_name(self.aggregation)
        outputs = {output.name: output for output in self.aggregation.outputs}
        keys = {key.name: Output(key.name, key.type, column(key.name)) for key in self.aggregation.keys}
        loaded, where = self.key.loaded, self.key.where
        wanted = [c for c in kinds if c != TIMESTAMP and (c in loaded or c in dict(where))]
        extras = [EVENTS, *(c for c in loaded if c in named and c != EVENTS)]
        part = Part(self.per, "closed", "open", between(START, END))
        inner = level_rows(self.aggregation, [part], [outputs.get(c) or keys[c] for c in wanted], extras, keys=True)
        typed = [exp.alias_(exp.cast(column(c), (kinds | named)[c].sql), c, quoted=True) for c in loaded]
        query = exp.select(*typed).from_(inner.subquery("b"))
        for key, values in where:
            query = query.where(exp.In(this=column(key), expressions=[exp.convert(value) for value in values]))
        return query.order_by(*row_order(Groups(self.aggregation.keys), extras, "b")).limit(self.rows)


@lru_cache(maxsize=4096)
def _texts(
    aggregation: Aggregation, per: str, loaded: tuple[str, ...], where: Where, rows: int
) -> dict[object, object]:
    return {}


@dataclass(frozen=True)
class FilledQuestion(SliceQuestion):
    """How many rows `fill` makes at least of a key: one from the first to the last bucket of each group key."""

    @property
    def form(self) -> object:
        return "filled"  # what is made is shared with questions for the rows themselves

    def tree(self, sides: Sides) -> exp.Select:
        """The query over `closed` and `open`; months and years count with their longest."""
        width = self.per.width_ms or _LONGEST_BUCKET[self.per]
        ends = [exp.Max(this=column(TIMESTAMP)), exp.Min(this=column(TIMESTAMP))]
        span = exp.IntDiv(this=exp.paren(exp.Sub(this=ends[0], expression=ends[1])), expression=exp.convert(width))
        keys = [column(key.name) for key in self.aggregation.keys]
        wanted = [Output(key.name, key.type, column(key.name)) for key in self.aggregation.keys]
        spans = exp.select(exp.alias_(exp.Add(this=span, expression=exp.convert(1)), "n"))
        spans = spans.from_(bucket_rows(self.aggregation, self.per, wanted).subquery("b")).group_by(*keys)
        return exp.select(exp.Sum(this=exp.column("n"))).from_(spans.subquery("s"))


_NO_ROOM = "ask again once the machine of the endpoint, and the disk of its `data`, have room"
_DAY = 86_400_000
_LONGEST_BUCKET = {Duration.DAYS: 25 * _DAY // 24, Duration.MONTHS: 31 * _DAY + _DAY // 24, Duration.YEARS: 366 * _DAY}


@dataclass(frozen=True, slots=True)
class Load:
    """A loaded table: rows, and the bytes it takes."""

    rows: int
    bytes: int


class Loader:
    """Threads that load, `threads` at most: a load that takes long must not keep others waiting, so there are more of
    them than cores. `dsn` gives the address of the server, which changes when it is started anew."""

    WARM = 3
    """Threads that are there, and have opened the stores, before the first question."""

    def __init__(
        self,
        conf: Conf,
        program: Program,
        dsn: Callable[[], str],
        row_limit: int,
        threads: int = 8,
        grant: Grant | None = None,
    ) -> None:
        self._conf = conf
        self._grant = grant
        self._program = program if grant is None else grant.program(program)
        self._dsn = dsn
        self._row_limit = row_limit
        self._own = threading.local()
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="rollup-load")
        self.threads = threads
        tables = Tables([Kept(conf.tables, program), *dimensions(conf, program)])
        self.tables = tables if grant is None else tables.only(grant.reads)

    def load(self, key: Key, table: str) -> Load:
        """Compute a key's rows and copy them into a new table. Raises QueryError when there are too many."""
        if key.aggregation in self.tables:
            kinds = self.tables[key.aggregation].attributes
            rows = readable_rows(self.tables.reader(key.aggregation), key.aggregation, key.number, self._row_limit)
        else:
            aggregation = self._program.aggregations[key.aggregation]
            kinds, rows = columns(aggregation) | by_name(aggregation), self._rows(aggregation, key)
        return self._copied(table_ddl({name: kinds[name] for name in key.loaded}, table), table, rows)

    def newest(self, aggregation: str) -> int:
        """The number of the newest commit, from the store. Raises StoreError when there is none."""
        return self._stores().snapshot(aggregation).number

    def as_of(self, aggregation: str, moment: AsOf) -> int:
        """The number of an earlier commit. Raises StoreError where it is not kept."""
        return self._stores().as_of(aggregation, moment)

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
        levelled = key.per in {level.plural for level in aggregation.levels}
        if key.fill is None and levelled:
            rows = snapshot.answer(SliceQuestion.of(aggregation, key, limit))
        else:
            own = self._stores().aggregation(key.aggregation)
            if key.fill is not None and levelled:
                self._check_filled(snapshot, own, key)
            rows = _widened(snapshot.answer(_ask(own, key, limit)), aggregation)
        if rows.num_rows > self._row_limit:
            raise self._too_many(key)
        kinds = columns(aggregation) | by_name(aggregation)
        return pa.table([without_zeros(rows[c].cast(kinds[c].arrow)) for c in key.loaded], names=list(key.loaded))

    def _too_many(self, key: Key) -> QueryError:
        return QueryError(
            f"{key.aggregation} has more than {self._row_limit} rows per {key.per} in this range",
            hint="ask for a shorter range or a coarser level, or bound AGG_TIMESTAMP or a group key in WHERE",
        )

    def _check_filled(self, snapshot: Snapshot, aggregation: Aggregation, key: Key) -> None:
        """Refuse more rows than are allowed before they are made: each key has one from its first to its last bucket."""
        counted = snapshot.answer(FilledQuestion.of(aggregation, key, 1))[0][0].as_py()
        if (counted or 0) > self._row_limit:
            raise self._too_many(key)

    def _copied(self, ddl: str, table: str, rows: pa.Table) -> Load:
        """Frozen in the transaction that makes the table, the rows are seen by older snapshots as well."""
        place = name(table, INNER)

        def work(cursor: Any) -> Load:
            cursor.execute(f"begin; {ddl}")
            cursor.copy_expert(f"copy {place} from stdin (format binary, freeze)", CopyRows(rows), READ_SIZE)
            # Nobody analyzes a table that is there for a moment; without its size the planner takes it for ten pages.
            cursor.execute(
                "select pg_total_relation_size(oid), pg_restore_relation_stats('schemaname', %s, 'relname', relname::text,"
                " 'relpages', (pg_relation_size(oid) / current_setting('block_size')::bigint)::integer,"
                " 'reltuples', %s::real) from pg_class where oid = %s::regclass",
                (INNER, rows.num_rows, place),
            )
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
            said = str(problem).strip().split("\n")[0]
            hint = "ask again" if said_by_system(problem) is None else _NO_ROOM
            raise StoreError(f"the server behind the endpoint failed: {said}", hint=hint) from problem

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
            found = self._own.stores = Stores(self._conf, self._grant)
        return found


class Stores:
    """The stores of a configuration as one thread reads them, with what a grant lets it read."""

    def __init__(self, conf: Conf, grant: Grant | None = None) -> None:
        self._asker = Asker(conf, grant=grant)
        self._engine = ColumnEngine()
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

    def as_of(self, aggregation: str, moment: AsOf) -> int:
        """The number of an earlier commit. Raises StoreError where it is not kept."""
        reader = self._readers.get(aggregation)
        return (self._asker.snapshot(aggregation, moment) if reader is None else reader.as_of(moment)).number

    def aggregation(self, name: str) -> Aggregation:
        """The declaration, as these stores have it."""
        return self._asker.program.aggregations[name]

    def touch(self, aggregation: str, level: Duration) -> None:
        """Open a level's table, if the store has anything to open."""
        reader = self._readers.get(aggregation)
        if reader is not None and reader.records.numbers():
            reader.snapshot().files(level)


def _ask(aggregation: Aggregation, key: Key, rows: int) -> Ask:
    """A key whose rows come from several levels or from none, which a language's own question can say."""
    items = [Item(each, column(each)) for each in attributes(aggregation) if each in key.loaded]
    ordered = exp.Ordered(this=column(TIMESTAMP))
    selection = Selection(tuple(items), order_by=(ordered,), limit=exp.convert(rows))
    return ask_for(aggregation, key.start, key.end, key.per, selection, key.fill)


def _widened(rows: pa.Table, aggregation: Aggregation) -> pa.Table:
    """With a null for each key that is not selected, which such a question does not give."""
    for missing, kind in columns(aggregation).items():
        if missing not in rows.schema.names:
            rows = rows.append_column(missing, pa.nulls(rows.num_rows, kind.arrow))
    return rows


def delta_folders(conf: Conf, program: Program) -> Mapping[str, Any]:
    """For each aggregation in Delta the folder of its commit records, where the newest number is a look away."""
    from rollup.checkpoint.records import RecordFolder, home

    if conf.store["kind"] != "delta":
        return {}
    found = [a for a in program.aggregations.values() if a.store.get("type") != "rdbms"]
    return {a.name: RecordFolder(home(conf.tables, a.name)) for a in found}
