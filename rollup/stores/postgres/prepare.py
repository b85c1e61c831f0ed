"""Making an aggregation's tables, functions and views in PostgreSQL, and refusing tables that are not ours."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import pyarrow as pa

from rollup.core.errors import StoreError
from rollup.stores.base import before_added
from rollup.stores.sql.ddl import Columns, Tables, answer_ddl, table_ddl, template, view_name
from rollup.stores.sql.session import gone, lacks, misfit
from rollup.stores.sql.types import quoted

OLDEST = 150000


class Preparation:
    """The steps, inside one transaction of a psycopg2 cursor."""

    def __init__(self, tables: Tables, cursor: Any) -> None:
        self.tables = tables
        self.cursor = cursor

    def run(self, partitioned: bool, anew: bool = False) -> None:
        """Do only what is missing, so that a job without the right to create runs on tables that are there.

        A table that is gone although there are commits is refused, unless it is to be made `anew`.
        """
        schema = self._schema()
        found = self._found(schema)
        wanted = self.tables.all()
        for table, columns in wanted.items():
            if table in found:
                self._check(table, columns, found[table])
        missing = [table for table in wanted if table not in found]
        if missing and not anew and self.tables.commit in found and self._committed():
            raise gone(missing[0])
        answers, mark = self._wanted_answers(schema)
        if set(wanted) <= set(found) and self._mark(schema) == mark:
            return
        self.cursor.execute("select pg_advisory_xact_lock(hashtext('rollup ddl'))")  # two jobs may start at once
        for statement in table_ddl(self.tables.aggregation, "postgresql", partitioned):
            self.cursor.execute(statement)
        if anew or self._mark(schema) != mark:  # what depends on a table goes with it
            self._answers(schema, answers, mark)

    def add(self, added: Sequence[str]) -> None:
        """Add columns to the levels and the open rows, and make functions and views, which depend on them, anew."""
        schema, tables = self._schema(), self.tables
        found = self._found(schema)
        levels = map(tables.aggregation.table, tables.aggregation.levels)
        changed = {table: tables.all()[table] for table in (*levels, tables.open) if table in found}
        for table, columns in changed.items():
            self._check(table, {c: columns[c] for c in added if c in found[table]}, found[table])
        self._drop_answers(schema)
        for table, columns in changed.items():
            for column in added:
                self._add(table, column, tables.type_of(column, columns[column]), column in found[table])
        if set(tables.all()) <= set(found):
            self._answers(schema, *self._wanted_answers(schema))

    def _add(self, table: str, column: str, kind: str, there: bool) -> None:
        """A constant default is given to all rows at once, without writing them."""
        place, name, before = quoted(table, "postgresql"), quoted(column, "postgresql"), before_added(column)
        if not there:
            default = "" if before is None else f" default {before}"
            self.cursor.execute(f"alter table {place} add column {name} {kind}{default}")
            if before is not None:
                self.cursor.execute(f"alter table {place} alter column {name} drop default")
        elif before is not None:
            self.cursor.execute(f"update {place} set {name} = {before} where {name} is null")

    def _wanted_answers(self, schema: str) -> tuple[list[str], str]:
        """The statements of functions and views, and the mark that says that they have been run."""
        answers = answer_ddl(self.tables.aggregation, schema)
        return answers, f"rollup {sha256(repr(answers).encode()).hexdigest()[:16]}"

    def _committed(self) -> bool:
        self.cursor.execute(f"select exists (select from {quoted(self.tables.commit, 'postgresql')})")
        return bool(self.cursor.fetchone()[0])

    def _schema(self) -> str:
        self.cursor.execute(
            "select current_schema(), current_setting('server_version_num')::int, current_setting('server_version')"
        )
        schema, number, version = self.cursor.fetchone()
        if number < OLDEST:
            raise StoreError(
                f"PostgreSQL {version} is too old", hint="15 or later: keys may be null and still be unique"
            )
        if schema is None:
            raise StoreError(
                "the connection has no schema to make tables in",
                hint="grant one, or set search_path in the URL's options",
            )
        return str(schema)

    def _found(self, schema: str) -> dict[str, dict[str, str]]:
        """The tables of ours that exist, each with the types of its columns."""
        self.cursor.execute(
            "select c.relname, a.attname, format_type(a.atttypid, a.atttypmod)"
            " from pg_attribute a join pg_class c on c.oid = a.attrelid"
            " where c.relnamespace = quote_ident(%s)::regnamespace and c.relname = any(%s) and c.relkind in ('r', 'p')"
            " and a.attnum > 0 and not a.attisdropped",
            (schema, list(self.tables.all())),
        )
        found: dict[str, dict[str, str]] = {}
        for table, column, kind in self.cursor.fetchall():
            found.setdefault(table, {})[self.tables.own_names.get(column, column)] = kind
        return found

    def _check(self, table: str, columns: Columns, found: dict[str, str]) -> None:
        for column, arrow in columns.items():
            wanted = _plain(self.tables, column, arrow)
            if column not in found:
                raise lacks(table, column)
            if found[column] != wanted:
                raise misfit(table, column, found[column], wanted)

    def _mark(self, schema: str) -> str | None:
        name = f"{quoted(schema, 'postgresql')}.{quoted(self.tables.commit, 'postgresql')}"
        self.cursor.execute("select obj_description(to_regclass(%s), 'pg_class')", (name,))
        return self.cursor.fetchone()[0]

    def _answers(self, schema: str, statements: list[str], mark: str) -> None:
        self._drop_answers(schema)
        for statement in statements:
            self.cursor.execute(statement)
        commit = f"{quoted(schema, 'postgresql')}.{quoted(self.tables.commit, 'postgresql')}"
        self.cursor.execute(f"comment on table {commit.replace('%', '%%')} is %s", (mark,))

    def _drop_answers(self, schema: str) -> None:
        place = quoted(schema, "postgresql")
        aggregation = self.tables.aggregation
        for level in aggregation.levels:
            self.cursor.execute(f"drop view if exists {place}.{quoted(view_name(aggregation, level), 'postgresql')}")
        function = f"{place}.{quoted(aggregation.name, 'postgresql')}"
        for parameters in ("text, text", "text, text, text", "bigint, bigint, text"):  # the first two call the last
            self.cursor.execute(f"drop function if exists {function} ({parameters})")


def _plain(tables: Tables, column: str, arrow: pa.DataType) -> str:
    """A column's type as PostgreSQL prints it."""
    return tables.type_of(column, arrow).lower().replace(' collate "c"', "").replace(", ", ",")


def reader_sql(schema: str, role: str, password: str, owner: str) -> str:
    """The statements that make a role which may only read; run them as the owner of the schema or a superuser."""
    names = {key: quoted(value, "postgresql") for key, value in (("schema", schema), ("role", role), ("owner", owner))}
    return template("postgres/reader.sql", password="'" + password.replace("'", "''") + "'", **names)
