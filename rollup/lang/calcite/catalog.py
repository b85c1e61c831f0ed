"""The names that a query may use: streams, tables and views; and what is relational, as DuckDB's SQL over stored tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from rollup.core.conditions import conjuncts
from rollup.core.dialects import dialect
from rollup.core.errors import PlanError
from rollup.engine.flows.flow import Relational
from rollup.lang.calcite.conditions import check_types
from rollup.lang.calcite.dialect import Calcite
from rollup.lang.calcite.grouping import without_group_id
from rollup.lang.calcite.model import Model, Table
from rollup.lang.calcite.semantics import Kind, kind_of_type, refused
from rollup.lang.calcite.tabled import relational_windows
from rollup.lang.calcite.translation import counting, duck

FROM, UNTIL = "__from", "__until"
"""Since when and until when a version of a temporal table's row held."""


@dataclass(frozen=True)
class Relation:
    """A relation that a stream may be joined with: DuckDB's SQL, and the names and types of its columns."""

    tree: exp.Query
    names: tuple[str, ...]
    types: tuple[str, ...]
    alias: str = ""


class Catalog:
    """A model, its views, and the stored tables. Stored names are generated, never a user's."""

    def __init__(self, model: Model, engine: Relational) -> None:
        self.model, self.engine = model, engine
        self._stored: dict[str, str] = {}
        self._elsewhere: dict[str, Table] = {}
        self._views: dict[str, tuple[exp.Query, tuple[str, ...]]] = {}
        self._fed: dict[str, tuple[exp.Query, tuple[str, ...]]] = {}
        self.whole: set[str] = set()
        """Tables that move and that a query asks as a whole, beyond looking up what a row joins."""
        for table in model.tables:
            if table.table:
                self.store(table)

    # stored tables

    def store(self, table: Table) -> None:
        """An empty stored table for a table of the model."""
        name = f"t{len(self._stored)}"
        self._stored[table.name.lower()] = name
        if table.rows is not None:
            self._elsewhere[name] = table
            return
        columns = [*table.columns, *([(FROM, "TIMESTAMP"), (UNTIL, "TIMESTAMP")] if table.temporal else [])]
        kinds = [
            exp.ColumnDef(this=exp.to_identifier(c.lower(), quoted=True), kind=exp.DataType.build(k, dialect="duckdb"))
            for c, k in columns
        ]
        schema = exp.Schema(this=exp.to_table(name), expressions=kinds)
        self.engine.database.define(exp.Create(this=schema, kind="TABLE").sql("duckdb"))

    def stored(self, name: str) -> str:
        """The stored table of a name; what is stored elsewhere is looked up when it is first asked for."""
        stored = self._stored[name.lower()]
        table = self._elsewhere.pop(stored, None)
        if table is not None:
            self._look_up(stored, table)
        return stored

    def _look_up(self, stored: str, table: Table) -> None:
        """A view of rows that are elsewhere, with the types of their columns, and of buckets with the time each held."""
        assert table.rows is not None
        self.engine.database.show(f"{stored}_rows", table.rows())
        items = [exp.alias_(exp.cast(_own(c), k, dialect="duckdb"), c.lower(), quoted=True) for c, k in table.columns]
        if table.buckets or table.moving:
            order = exp.Order(expressions=[exp.Ordered(this=_own(FROM))])
            next_ = exp.Anonymous(this="lead", expressions=[_own(FROM)])
            until = exp.Window(this=next_, partition_by=[_own(key) for key in table.key], order=order)
            items += [_own(FROM), exp.alias_(until if table.key else exp.Null(), UNTIL, quoted=True)]
        rows = exp.select(*items).from_(f"{stored}_rows")
        self.engine.database.define(
            exp.Create(this=exp.to_table(stored), kind="TEMP VIEW", expression=rows).sql(dialect("duckdb"))
        )

    def replaced(self, name: str, rows: pa.Table) -> None:
        """Other rows for a table whose rows are elsewhere."""
        self.engine.database.show(f"{self.stored(name)}_rows", rows)

    def insert(self, table: Table, rows: pa.Table) -> None:
        """More rows for a stored table: its columns in order. Those of a temporal table end the versions before them."""
        since = exp.Null() if table.since is None else _own(table.since)
        versions = [exp.cast(since, "TIMESTAMP"), exp.Null()] if table.temporal else []
        query = exp.select("*", *versions).from_("__rows")
        self.engine.connection.register("__rows", rows)
        self.engine.connection.execute(f"INSERT INTO {self.stored(table.name)} {query.sql('duckdb')}")
        self.engine.connection.unregister("__rows")
        if table.temporal and table.key:
            self._end_versions(table)

    def _end_versions(self, table: Table) -> None:
        """A version ends where the next one of its key begins. Raises PlanError for two that nothing tells apart."""
        stored = self.stored(table.name)
        same = exp.and_(*(exp.NullSafeEQ(this=_of("n", key), expression=_of("o", key)) for key in table.key))
        later = exp.GT(this=_of("n", FROM), expression=_of("o", FROM))
        next_ = exp.select(exp.Min(this=_of("n", FROM))).from_(f"{stored} AS n").where(exp.and_(same, later)).subquery()
        ends = exp.func("LEAST", _own(UNTIL), next_)
        self.engine.connection.execute(f"UPDATE {stored} AS o SET {_own(UNTIL)} = {ends.sql('duckdb')}")
        keys = [_own(key) for key in table.key]
        several = exp.select(*keys).from_(stored).where(_held(None)).group_by(*keys).having("COUNT(*) > 1").limit(1)
        found = self.engine.ask(several).to_pylist()
        if found:
            shown = ", ".join(f"{name} {value!r}" for name, value in found[0].items())
            raise PlanError(
                f"{table.name} has two rows of {shown} that hold at once",
                hint='a column says since when each holds: monotonic = { since = "increasing" } in the model',
            )

    # names

    def define(self, name: str, query: exp.Query, columns: Sequence[str]) -> None:
        """A view."""
        if self.model.find(name) is not None or name.lower() in self._views:
            raise refused(query, f"{name} is already the name of a table or view", "take another name")
        self._views[name.lower()] = (query, tuple(columns))

    def feed(self, name: str, query: exp.Query, columns: Sequence[str]) -> None:
        """A table that a standing INSERT fills: who reads it as a stream reads what the INSERT gives."""
        self._fed[name.lower()] = (query, tuple(columns))

    @property
    def fed(self) -> set[str]:
        """The tables that are read as what their INSERT gives, in lower case."""
        return set(self._fed)

    def defined(self, name: str) -> bool:
        """Whether a view has that name."""
        return name.lower() in self._views

    def view(self, name: str) -> exp.Query | None:
        """Views are put in their place before anything is bound."""
        return None

    def table(self, node: exp.Table) -> Table:
        """A table of the model. Raises PlanError with the known ones."""
        found = self.model.find(node.name)
        if found is None:
            known = [t.name for t in self.model.tables] + list(self._views)
            raise refused(node, f"unknown table {node.name}", f"known: {', '.join(known) or 'none'}")
        return found

    def named(self, item: exp.Expr, ctes: Mapping[str, exp.Query]) -> Table | None:
        """The table that a thing of the FROM clause names; None for a query, be it one of WITH. Raises as `table` does."""
        return self.table(item) if isinstance(item, exp.Table) and item.name.lower() not in ctes else None

    def bound(self, query: exp.Query, streams: bool = False) -> exp.Query:
        """A query with views in place, every column with its table, every star written out, and types.

        `streams`: it is a stream's, and what an INSERT fills is read as one.
        """
        query = self._expanded(query.copy(), {**self._fed, **self._views} if streams else self._views)
        for table in query.find_all(exp.Table):
            if not _is_cte(table):
                self.table(table)
        for select in query.find_all(exp.Select):
            for place, item in enumerate(list(select.expressions)):
                unnamed = isinstance(item, exp.Subquery) and not item.alias
                if isinstance(item, exp.Cast) or unnamed:  # it has no name of its own, though its column may have
                    item.replace(exp.Alias(this=item.copy(), alias=exp.to_identifier(f"_col_{place}")))
        schema: dict[str, object] = {t.name.lower(): {c.lower(): k for c, k in t.columns} for t in self.model.tables}
        try:
            found = qualify(query, schema=schema, dialect=Calcite, quote_identifiers=False, expand_alias_refs=False)
            found: exp.Query = annotate_types(found, schema=schema, dialect=Calcite)  # type: ignore[assignment]
        except OptimizeError as problem:
            raise self._unresolved(query, str(problem).split(" Line:")[0]) from None
        except SqlglotError as problem:
            raise PlanError(str(problem)) from None
        check_types(found, self.model)
        return found

    def _unresolved(self, query: exp.Query, message: str) -> PlanError:
        """A refusal of a name, with its place and the names there are."""
        words, columns = set(re.findall(r"\w+", message.lower())), list(query.find_all(exp.Column))
        meant = [c for c in columns if c.name.lower() in words] or [c for c in columns if c.table.lower() in words]
        names = (name for name in query.find_all(exp.Identifier) if name.name.lower() in words)
        column = next(iter(meant), None) or next(names, None)
        tables = [self.model.find(table.name) for table in query.find_all(exp.Table)]
        known = dict.fromkeys(name for table in tables if table is not None for name, _ in table.columns)
        return refused(column, message.removesuffix("."), f"known: {', '.join(known)}" if known else None)

    def _expanded(self, query: exp.Query, views: Mapping[str, tuple[exp.Query, tuple[str, ...]]]) -> exp.Query:
        for table in list(query.find_all(exp.Table)):
            found = views.get(table.name.lower())
            if found is None or _is_cte(table):
                continue
            inner, columns = self._expanded(found[0].copy(), views), found[1]
            if columns:
                inner = self.bound(inner) if inner.is_star else inner
                _rename(inner, columns)
            table.replace(exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(table.alias_or_name))))
        return query

    def streams(self, query: exp.Expr, ctes: Mapping[str, exp.Query]) -> bool:
        """Whether a query reads a stream."""
        for table in query.find_all(exp.Table):
            inner = ctes.get(table.name.lower())
            if inner is not None and inner is not query:
                if self.streams(inner, {k: v for k, v in ctes.items() if v is not inner}):
                    return True
                continue
            found = self.model.find(table.name)
            if found is not None and found.stream:
                return True
        return False

    # what is relational

    def relation(self, item: exp.Expr, ctes: Mapping[str, exp.Query], now: datetime | None) -> Relation:
        """A relation of a FROM clause."""
        table = self.named(item, ctes)
        if table is not None and table.moving:
            return self._moving(table)
        if isinstance(item, exp.Table):
            names = [name.lower() for name, _ in table.columns] if table is not None else None
            query: exp.Query = exp.select(*(exp.column(n, quoted=True) for n in names)) if names else exp.select("*")
            tree = self.relational(query.from_(_plain(item)), ctes, now)
        elif isinstance(item, exp.Query):
            tree = self.relational(item, ctes, now)
        else:
            tree = self.relational(exp.select("*").from_(item.copy()), ctes, now)
        tree = counting(tree, self.engine)
        answer = self.engine.connection.sql(tree.sql(dialect("duckdb")))
        return Relation(tree, tuple(name.lower() for name in answer.columns), tuple(str(kind) for kind in answer.types))

    def _moving(self, table: Table) -> Relation:
        names, types = zip(*table.columns, strict=True)
        tree = exp.select(*(_own(name.lower()) for name in names)).from_(self.stored(table.name))
        return Relation(tree, tuple(name.lower() for name in names), types)

    def relational(self, query: exp.Query, ctes: Mapping[str, exp.Query], now: datetime | None) -> exp.Query:
        """A bound query over tables, as DuckDB answers it. Raises PlanError for a stream that has no table."""
        tree: exp.Query = query.copy()
        self._check_history(tree, now)
        for select in tree.find_all(exp.Select):
            select.set("hint", None)
        relational_windows(tree)
        without_group_id(tree)
        tree = duck(tree, _kind_of, now)  # type: ignore[assignment]
        names = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        for table in list(tree.find_all(exp.Table)):
            if table.name.lower() in names:
                continue
            if table.name.lower() in ctes:
                inner = self.relational(ctes[table.name.lower()], ctes, now)
                table.replace(
                    exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(table.alias_or_name)))
                )
                continue
            self._replace(table)
        return tree

    def _replace(self, node: exp.Table) -> None:
        table = self.table(node)
        if not table.table:
            raise refused(
                node, f"Cannot convert stream '{table.name.upper()}' to a table", "SELECT STREAM reads it as a stream"
            )
        stored = exp.to_table(self.stored(table.name))
        if table.moving:
            self.whole.add(table.name)
        version = node.args.get("version")
        if version is not None and not table.temporal:
            raise refused(
                node, f"{table.name} is not a temporal table: it is only known as it is", "temporal = true in the model"
            )
        if not table.temporal or (table.buckets and version is None):
            node.replace(exp.alias_(stored, node.alias_or_name, table=True))
            return
        found = exp.select("*").from_(stored).where(_held(version.expression if version is not None else None))
        node.replace(exp.Subquery(this=found, alias=exp.TableAlias(this=exp.to_identifier(node.alias_or_name))))

    def _check_history(self, tree: exp.Query, now: datetime | None) -> None:
        for node in tree.find_all(exp.Table):
            table = self.model.find(node.name)
            select = node.find_ancestor(exp.Select)
            if table is None or table.history is None or select is None:
                continue
            since = (now or datetime.now()) - timedelta(microseconds=table.history)
            lowest = self._lowest(select, node.alias_or_name, list(table.monotonic), now)
            if lowest is None:
                raise refused(
                    node,
                    f"{table.name} keeps its history since {since} only, and the query has no lower bound on {', '.join(table.monotonic)}",
                    f"WHERE {', '.join(table.monotonic)} >= a time since then",
                )
            if lowest < since:
                raise refused(
                    node,
                    f"the query reaches back to {lowest}, {table.name} keeps its history since {since} only",
                    "a later lower bound, or a longer history in the model",
                )

    def _lowest(self, select: exp.Select, alias: str, lines: Sequence[str], now: datetime | None) -> datetime | None:
        """The greatest lower bound that WHERE sets on a column that moves."""
        where = select.args.get("where")
        found: list[datetime] = []
        for part in conjuncts(where.this if where else None):
            for column, bound in _bounds(part):
                if column.name.lower() in {line.lower() for line in lines} and column.table.lower() in (
                    "",
                    alias.lower(),
                ):
                    value = (
                        self.engine.ask(exp.select(exp.alias_(duck(bound.copy(), _kind_of, now), "v")))
                        .column("v")[0]
                        .as_py()
                    )
                    found.append(value.replace(tzinfo=None) if isinstance(value, datetime) else value)
        return max(found, default=None)


def _own(name: str) -> exp.Column:
    return exp.column(name, quoted=True)


def _of(table: str, name: str) -> exp.Column:
    return exp.column(name.lower(), table=table, quoted=True)


def _held(moment: exp.Expr | None) -> exp.Expr:
    """Which versions of a temporal table's rows held at a time; without one, which hold now."""
    since, until = exp.column(FROM, quoted=True), exp.column(UNTIL, quoted=True)
    open_ = exp.Is(this=until, expression=exp.Null())
    if moment is None:
        return open_
    begun = exp.or_(exp.Is(this=since, expression=exp.Null()), exp.LTE(this=since.copy(), expression=moment.copy()))
    return exp.and_(begun, exp.or_(open_, exp.GT(this=until.copy(), expression=moment.copy())))


def _bounds(part: exp.Expr) -> Iterable[tuple[exp.Column, exp.Expr]]:
    part = part.unnest()
    if isinstance(part, exp.Between) and isinstance(part.this, exp.Column):
        yield part.this, part.args["low"]
    if (
        isinstance(part, (exp.GT, exp.GTE, exp.EQ))
        and isinstance(part.left, exp.Column)
        and not part.right.find(exp.Column)
    ):
        yield part.left, part.right
    if isinstance(part, (exp.LT, exp.LTE)) and isinstance(part.right, exp.Column) and not part.left.find(exp.Column):
        yield part.right, part.left


def _kind_of(column: exp.Column) -> Kind:
    return kind_of_type(column.type.sql("duckdb")) if column.type is not None else Kind.OTHER


def _plain(table: exp.Table) -> exp.Table:
    copy = table.copy()
    copy.set("version", None)
    return copy


def _is_cte(table: exp.Table) -> bool:
    node: Any = table
    while node is not None:
        with_ = node.args.get("with_") if isinstance(node, exp.Expr) else None
        if with_ and any(cte.alias.lower() == table.name.lower() for cte in with_.expressions):
            return True
        node = node.parent
    return False


def _rename(query: exp.Query, columns: Sequence[str]) -> None:
    """The columns of a view under the names of its list."""
    selects = query.selects
    if len(selects) != len(columns):
        raise refused(
            query, f"the view has {len(columns)} names for {len(selects)} columns", "as many names as columns"
        )
    for item, name in zip(list(selects), columns, strict=True):
        item.replace(exp.alias_(item.unalias().copy(), name))
