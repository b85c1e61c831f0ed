"""Grants before a PostgreSQL store: privileges and policies of rows that the server itself enforces.

The role of the store's URL owns the tables, so it gives and takes the rights. A user with a grant loses the right to read
every table of the schema, and gets it for those that are granted. Conditions are restrictive policies of the user's role
on the tables of levels, of open rows and of late events; a policy for all others lets all rows pass. Views ask with the
rights of whoever reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg2
import sqlalchemy as sa
from psycopg2 import sql
from sqlalchemy.exc import SQLAlchemyError

from rollup.core.dialects import computable, to_sql
from rollup.core.errors import ConfigError, StoreError
from rollup.grants import Grant
from rollup.program import Program
from rollup.stores.sql.ddl import Tables, view_name
from rollup.stores.sql.options import StoreOptions

_POLICY, _OTHERS = "rollup grant", "rollup all rows"
_RELATIONS = """select c.oid::regclass::text, c.relname, c.relkind from pg_class c
where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')"""
_POLICIES = """select p.polname, c.oid::regclass::text from pg_policy p join pg_class c on c.oid = p.polrelid
where c.relnamespace = current_schema()::regnamespace and p.polname ~ '^rollup (grant|all rows)'"""
_READABLE = (
    "select rolsuper or has_any_column_privilege(rolname, %s::regclass, 'select') from pg_roles where rolname = %s"
)
_UNSEEN = "select rolsuper or rolbypassrls from pg_roles where rolname = %s"


def enforce(store: StoreOptions, program: Program, grants: Mapping[str, Grant | None]) -> None:
    """Give each user what is granted and take all else away. Raises ConfigError or StoreError where that cannot be."""
    engine = sa.create_engine(store.url)
    try:
        with engine.begin() as connection:
            _Enforcing(connection.connection.cursor(), program).run(grants)
    except (SQLAlchemyError, psycopg2.Error) as problem:
        said = str(problem.args[0] if problem.args else problem).strip().splitlines()[0]
        raise StoreError(
            f"the grants of [serve.users] cannot be made in {store.shown}: {said}",
            hint="the user of the store's url must own the tables, and each user must be a role of the server",
        ) from None
    finally:
        engine.dispose()


class _Enforcing:
    """One transaction in which all grants are made anew."""

    def __init__(self, cursor: Any, program: Program) -> None:
        self._cursor, self._program = cursor, program

    def run(self, grants: Mapping[str, Grant | None]) -> None:
        self._forget()
        limited = {user: grant for user, grant in grants.items() if grant is not None}
        if not limited:
            return
        self._cursor.execute(_RELATIONS)
        relations = {str(name): (str(place), str(kind)) for place, name, kind in self._cursor.fetchall()}
        for user, grant in limited.items():
            self._grant(user, grant, relations)

    def _forget(self) -> None:
        """Policies of earlier starts, of which this configuration may know nothing."""
        self._cursor.execute(_POLICIES)
        for name, place in self._cursor.fetchall():
            self._say("drop policy {} on {}", name, sql.SQL(place))

    def _grant(self, user: str, grant: Grant, relations: Mapping[str, tuple[str, str]]) -> None:
        self._cursor.execute(_UNSEEN, (user,))
        found = self._cursor.fetchone()
        if found is None:
            raise ConfigError(
                f"[serve.users] {user} is no role of the store's server", hint="ddl/gateway_roles.sql makes one"
            )
        if found[0]:
            raise ConfigError(
                f"[serve.users] {user} is a superuser, or passes by policies of rows: nothing can limit it"
            )
        self._cursor.execute("select current_schema()")
        schema = self._cursor.fetchone()[0]
        self._say("revoke all on all tables in schema {} from {}", schema, user)
        self._say("alter default privileges in schema {} revoke select on tables from {}", schema, user)
        limited = grant.program(self._program)
        granted = set(grant.reads) - set(limited.aggregations)
        for aggregation in limited.aggregations.values():
            tables = Tables(aggregation, "postgresql")
            stored = [name for name in tables.all() if name != tables.commit]
            views = [view_name(aggregation, level) for level in aggregation.levels]
            granted |= {*stored, *views}
            if aggregation.visible is not None:
                self._limit(user, aggregation.visible, [relations[name][0] for name in stored if name in relations])
                for name in (name for name in views if name in relations):
                    self._cursor.execute(f"alter view {relations[name][0]} set (security_invoker = true)")
        for name in sorted(granted & set(relations)):
            self._say("grant select on {} to {}", sql.SQL(relations[name][0]), user)
        self._check(user, granted, relations)

    def _limit(self, user: str, visible: Any, places: list[str]) -> None:
        if not computable(visible, "postgres"):
            raise ConfigError(
                f"[serve.users] {user}: PostgreSQL cannot compute this condition", hint="comparisons of group keys"
            )
        passes = to_sql(visible, "postgres")
        for place in places:
            self._cursor.execute(f"alter table {place} enable row level security")
            self._cursor.execute(_POLICIES + " and p.polname = %s and c.oid = %s::regclass", (_OTHERS, place))
            if self._cursor.fetchone() is None:
                self._say("create policy {} on {} using (true)", _OTHERS, sql.SQL(place))
            text = "create policy {} on {} as restrictive for select to {} using ({})"
            self._say(text, f"{_POLICY} {user}", sql.SQL(place), user, sql.SQL(passes))

    def _check(self, user: str, granted: set[str], relations: Mapping[str, tuple[str, str]]) -> None:
        """Rights that come by other ways, such as PUBLIC, cannot be taken from one user alone."""
        for name, (place, _) in relations.items():
            if name in granted:
                continue
            self._cursor.execute(_READABLE, (place, user))
            if self._cursor.fetchone()[0]:
                raise ConfigError(
                    f"[serve.users] {user} could read {name}, which is not granted: by a right of PUBLIC or of another role",
                    hint="revoke it, as ddl/gateway_roles.sql does for a schema of ours",
                )

    def _say(self, text: str, *parts: str | sql.SQL) -> None:
        """Execute a statement with names, which are quoted, and parts that are SQL already, in the place of each `{}`."""
        self._cursor.execute(
            sql.SQL(text).format(*(sql.Identifier(part) if isinstance(part, str) else part for part in parts))
        )
