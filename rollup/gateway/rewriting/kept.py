"""Tables beside aggregations before a PostgreSQL store: tables beside the store's own, filled when asked for.

A query reads what the last commit of the statements left, and dimensions as they are. All tables that were ever queried
are filled together, in one transaction. So one statement reads one commit, also while another endpoint before the same
store fills them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import psycopg2
import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from rollup.core.errors import QueryError, RollupError, StoreError
from rollup.core.untyped import pc
from rollup.gateway.rewriting.catalog import name, text
from rollup.lang.sql.within import has_word, mentions
from rollup.plan.app import StreamDef
from rollup.retrieval.tables import TableReader, Tables
from rollup.stores.postgres.copy import READ_SIZE, CopyRows
from rollup.stores.sql.options import StoreOptions
from rollup.stores.sql.types import check_name

log = logging.getLogger(__name__)

BOOK = "rollup_kept"
"""Which tables are ours, and the commit that each is filled from: `line`, the line of commits, `number`, and `made`, which
of those that had the number."""
_COLUMNS = (
    "select a.attname, format_type(a.atttypid, a.atttypmod) from pg_attribute a"
    " where a.attrelid = to_regclass(%s) and a.attnum > 0 and not a.attisdropped order by a.attnum"
)


class _Filled(NamedTuple):
    """The commit that a table is filled from; no number for one that nobody has asked for."""

    line: str | None = None
    number: int | None = None
    made: str | None = None


class KeptTables:
    """The tables. `taken` are names that others give to tables of the database, as sinks do."""

    def __init__(self, tables: Tables, store: StoreOptions, row_limit: int, taken: Collection[str] = ()) -> None:
        self.tables, self._store, self._row_limit, self._taken = tables, store, row_limit, frozenset(taken)
        self._shown: dict[str, StreamDef] = {}
        self._lines = dict[TableReader, str | None]()
        self._lock = threading.Lock()

    def needs(self, sql: str) -> bool:
        """Whether a text may read one of them, also by a statement that was prepared before."""
        return bool(self._shown) and (bool(self.mentioned(sql)) or mentions(sql, ["execute"]))

    def prepare(self) -> None:
        """Make the tables, empty at first; those of statements that have gone go. Raises StoreError or ConfigError.

        A name that the database has already is somebody else's, and is left alone.
        """
        with self._writing() as cursor:
            if not self.tables and not _there(cursor):
                return
            cursor.execute(f"create table if not exists {BOOK} (name text primary key, line text, number bigint)")
            cursor.execute(f"alter table {BOOK} add column if not exists made text")
            book = self._book(cursor, lock=True)
            self._drop_gone(cursor, book)
            for each in self.tables.values():
                self._make(cursor, each, book)

    def refresh(self, sql: str, prepared: Collection[str] = ()) -> None:
        """Fill those that a text reads, itself or by what was `prepared` before, and with them all that have been asked
        for, from the last commit.

        Raises NoCommitError, StoreError, or QueryError for one that holds more rows than may be read.
        """
        wanted = self.mentioned(sql) | {key for key in prepared if key in self._shown}
        if not wanted or self._fresh(wanted):
            return
        with self._lock, self._writing() as cursor:
            book = self._shown_in(cursor, lock=True)
            asked = wanted | {key for key, filled in book.items() if filled.number is not None}
            newest = self._newest(asked)
            self._refuse_others(book, newest)
            for key in sorted(key for key in asked if book.get(key) != newest[key]):
                self._fill(cursor, key, newest[key], key in wanted)
            self._lines |= {self.tables.reader(key): filled.line for key, filled in newest.items()}

    def mentioned(self, sql: str) -> set[str]:
        """Those that a text may read: a name with capitals or signs stands in quotes, or is spelled in U&"…"."""
        if mentions(sql, ['u&"']):
            return set(self._shown)
        return {key for key in self._shown if name(key) in sql or (key == key.lower() and has_word(sql, key))}

    def _fresh(self, wanted: Collection[str]) -> bool:
        """Whether all of them hold the last commit; nobody waits for that."""
        with self._writing() as cursor:
            book = self._shown_in(cursor, lock=False)
        newest = self._newest(
            wanted
        )  # after the book: a later one that another endpoint has read is there, or was removed
        found = all(book.get(key) == newest[key] for key in wanted)
        if found:
            self._lines |= {self.tables.reader(key): filled.line for key, filled in newest.items()}
        return found

    def _newest(self, keys: Collection[str]) -> dict[str, _Filled]:
        """What tables that are filled now are filled from; those of one reader from one moment."""
        moments = dict[TableReader, _Filled]()
        for reader in {self.tables.reader(key) for key in keys}:
            number = reader.newest()
            moments[reader] = _Filled(reader.line(number), number, reader.made(number))
        return {key: moments[self.tables.reader(key)] for key in keys}

    def _drop_gone(self, cursor: Any, book: Mapping[str, _Filled]) -> None:
        """Tables that our own readers have filled and do not have any more; whose others are is not known."""
        gone = {key: filled for key, filled in book.items() if key not in self.tables}
        lines = set[str]()
        for reader in self.tables.readers if gone else ():  # to ask for the newest moment may read a whole table
            try:
                lines.add(reader.line(reader.newest()))
            except RollupError:
                continue
        for key in sorted(key for key, filled in gone.items() if filled.line in lines):
            cursor.execute(f"drop table if exists {name(key)}")
            cursor.execute(f"delete from {BOOK} where name = %s", (key,))

    def _make(self, cursor: Any, kept: StreamDef, book: Mapping[str, _Filled]) -> None:
        for each in (kept.name, *kept.attributes):
            check_name(each, f"of {kept.name}:", "postgresql")
        place, columns = name(kept.name), {column: kind.postgres for column, kind in kept.attributes.items()}
        cursor.execute(_COLUMNS, (place,))
        there = dict(cursor.fetchall())
        if kept.name in self._taken or (there and kept.name not in book):
            log.warning(
                "the database has a table %s of its own: that of the app or configuration is not shown", kept.name
            )
            return
        if there != columns:
            cursor.execute(f"drop table if exists {place}")
            cursor.execute(f"create table {place} ({', '.join(f'{name(c)} {kind}' for c, kind in columns.items())})")
            cursor.execute(f"comment on table {place} is {text(f'{kept.name}: {self.tables.reader(kept.name).note}')}")
            cursor.execute(
                f"insert into {BOOK} values (%s) on conflict (name) do update set line = null, number = null, made = null",
                (kept.name,),
            )
        self._shown[kept.name] = kept

    def _refuse_others(self, book: Mapping[str, _Filled], newest: Mapping[str, _Filled]) -> None:
        """Two apps in one schema would fill one table by turns."""
        for key, filled in book.items():
            known = self._lines.get(self.tables.reader(key))
            if known is not None and key in newest and filled.line not in (None, known, newest[key].line):
                raise StoreError(
                    f"statements of another app fill the table {key} of this database too",
                    hint="give each app a schema of its own, or other names",
                )

    def _fill(self, cursor: Any, key: str, filled: _Filled, wanted: bool) -> None:
        """The rows of a commit in the place of the older ones, which those who read now go on to see."""
        place = name(key)
        cursor.execute(f"delete from {place}")
        assert filled.number is not None
        try:
            rows = readable_rows(self.tables.reader(key), key, filled.number, self._row_limit)
            cursor.copy_expert(f"copy {place} from stdin (format binary)", CopyRows(rows), READ_SIZE)
        except RollupError:
            if wanted:
                raise
            filled = _Filled()  # whoever asks for it next is told
        cursor.execute(f"update {BOOK} set line = %s, number = %s, made = %s where name = %s", (*filled, key))

    def _shown_in(self, cursor: Any, lock: bool) -> dict[str, _Filled]:
        """What our tables are filled from; behind a lock nobody else fills them until the transaction ends."""
        return {key: filled for key, filled in self._book(cursor, lock).items() if key in self._shown}

    def _book(self, cursor: Any, lock: bool) -> dict[str, _Filled]:
        if lock:
            cursor.execute(f"lock table {BOOK} in share row exclusive mode")
        cursor.execute(f"select name, line, number, made from {BOOK}")
        return {key: _Filled(*filled) for key, *filled in cursor.fetchall()}

    @cached_property
    def _engine(self) -> sa.Engine:
        return sa.create_engine(self._store.url, pool_size=1, pool_pre_ping=True)

    @contextmanager
    def _writing(self) -> Generator[Any]:
        """A transaction of the store's own user."""
        try:
            with self._engine.begin() as connection:
                yield connection.connection.cursor()
        except (SQLAlchemyError, psycopg2.Error) as problem:
            said = str(problem.args[0] if problem.args else problem).strip().splitlines()[0]
            raise StoreError(
                f"the named windows and tables cannot be written into {self._store.shown}: {said}",
                hint="the user of the store's url fills their tables",
            ) from None

    def close(self) -> None:
        """Close the connection."""
        if "_engine" in self.__dict__:
            self._engine.dispose()


def _there(cursor: Any) -> bool:
    """Whether tables have ever been made here."""
    cursor.execute("select to_regclass(%s) is not null", (BOOK,))
    return bool(cursor.fetchone()[0])


def readable_rows(reader: TableReader, shown: str, number: int, row_limit: int) -> pa.Table:
    """The rows of a table at a moment, as PostgreSQL can hold them. Raises QueryError when there are too many."""
    rows = reader.rows(shown, number)
    if rows.num_rows > row_limit:
        raise QueryError(
            f"{shown} holds {rows.num_rows} rows, and {row_limit} may be read", hint="raise `row_limit` in [serve]"
        )
    return pa.table([without_zeros(column) for column in rows.columns], names=rows.column_names)


def without_zeros(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as PostgreSQL can hold it, which is without the character zero."""
    if not pa.types.is_string(values.type) or not pc.any(pc.match_substring(values, "\0")).as_py():
        return values
    return pc.replace_substring(values, "\0", "\ufffd")
