"""A select lowered to nodes of flows: names to generated columns, windows, groups, frames and joins to their nodes.

Everything that cannot be given in time is refused here, with what would make it valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count

from sqlglot import exp

from rollup.engine.flows.flow import Column, Monotone, Node, Relational, empty
from rollup.engine.flows.flow import column as flow_column
from rollup.engine.flows.grouping import Group
from rollup.engine.flows.ordering import Distinct, Sort, Union
from rollup.engine.flows.relate import Relate
from rollup.engine.flows.source import Bound, Source
from rollup.lang.calcite import windows
from rollup.lang.calcite.catalog import Catalog, Relation
from rollup.lang.calcite.dialect import Calcite
from rollup.lang.calcite.grouping import HINT, Grouping, aggregated, grouping, unaliased
from rollup.lang.calcite.model import Table
from rollup.lang.calcite.planning.joins import joins
from rollup.lang.calcite.planning.panes import merged
from rollup.lang.calcite.planning.rel import Rel
from rollup.lang.calcite.reader import FORM
from rollup.lang.calcite.semantics import Kind, kind_of_type, moves, refused
from rollup.lang.calcite.translation import counting, duck

Scope = Mapping[tuple[str, str], Column]
"""The columns of a FROM clause by alias and name."""


class Lowering:
    """One query. `engine` tells the types of expressions, `now` is what CURRENT_TIMESTAMP gives."""

    def __init__(self, catalog: Catalog, engine: Relational, now: datetime | None = None) -> None:
        self.catalog, self.engine, self.now = catalog, engine, now
        self._numbers = count()
        self.ctes: dict[str, exp.Query] = {}
        self.labels: dict[str, str] = {}
        """The names that a user knows columns by."""

    def fresh(self, kind: str, monotone: Monotone | None = None) -> Column:
        """A new column."""
        return Column(f"c{next(self._numbers)}", kind, monotone)

    # queries

    def query(self, query: exp.Expr) -> Rel:
        """A query that reads at least one stream."""
        with_ = query.args.get("with_")
        for cte in with_.expressions if with_ else []:
            self.ctes[cte.alias.lower()] = cte.this
        if isinstance(query, exp.Subquery):
            return self.query(query.this)
        if isinstance(query, exp.Union):
            return self._union(query)
        if isinstance(query, exp.Select):
            return self._select(query)
        name = query.key.upper()
        raise refused(query, f"{name} cannot be part of a streaming query", "UNION ALL, UNION, SELECT")

    def _union(self, query: exp.Union) -> Rel:
        sides = [self.query(side) for side in (query.left, query.right)]
        if len(sides[0].names) != len(sides[1].names):
            widths = f"UNION of {len(sides[0].names)} and {len(sides[1].names)} columns"
            raise refused(query, widths, "both selects give as many columns")
        columns = tuple(
            self.fresh(a.type, _together(a.monotone, b.monotone))
            for a, b in zip(*(s.columns for s in sides), strict=True)
        )
        same = tuple(self._as(side, columns) for side in sides)
        rel = Rel(Union(same, columns), sides[0].names)
        if query.args.get("distinct"):
            rel = self._distinct(
                rel,
                query,
                "Streaming UNION (distinct) requires at least one monotonic expression in its columns; use UNION ALL",
            )
        scope = rel.under("")
        return self._ordered(
            query, rel, {}, [(name, flow_column(c.name)) for name, c in zip(rel.names, rel.columns, strict=True)], scope
        )

    def _as(self, rel: Rel, columns: Sequence[Column]) -> Node:
        """A side of a union with the types of the union."""
        out = tuple(
            self.fresh(c.type, mine.monotone if c.monotone else None)
            for c, mine in zip(columns, rel.columns, strict=True)
        )
        return Relate((rel.node,), out, tuple(flow_column(c.name) for c in rel.columns))

    def _select(self, select: exp.Select) -> Rel:
        self._check_clauses(select)
        node, scope, rest = self._from(select)
        self.scope: Scope = scope
        self.labels |= {column.name: name for (_, name), column in scope.items()}
        if rest is not None:
            node = self._filter(node, self.lowered(rest, scope))
        items = [(item.alias_or_name, self.renamed(item.unalias(), scope)) for item in select.expressions]
        ordered = [(o, self._ordered_expr(o.this, select, items, scope)) for o in self._orders(select)]
        having = select.args.get("having")
        parts = [item for _, item in items] + [expr for _, expr in ordered]
        if having is not None:
            parts.append(self.renamed(unaliased(having.this, select), scope))
        group = grouping(select, parts, lambda e: self.renamed(e, scope), self._moves(node))
        if group is not None:
            node, parts = self._group(node, group, parts)
        if group is None and (having is not None or any(aggregated(part) for part in parts)):
            raise refused(select, windows.NO_GROUP, HINT)
        if having is not None:
            node = self._filter(node, self.ducked(parts.pop(), node))
        if any(windows.framed(part) for part in parts):
            node, parts = windows.frames(self, node, parts, select)
        named = [(name, part) for (name, _), part in zip(items, parts, strict=False)]
        rel = self._project(node, named, parts[len(items) :])
        if select.args.get("distinct"):
            rel = self._distinct(
                rel, select, "Streaming DISTINCT requires at least one monotonic expression in its columns"
            )
        return self._finished(select, rel, ordered, named)

    def _check_clauses(self, select: exp.Select) -> None:
        known = {
            "expressions",
            "from_",
            "joins",
            "where",
            "group",
            "having",
            "order",
            "limit",
            "offset",
            "distinct",
            "windows",
            "hint",
            "with_",
            "kind",
            "operation_modifiers",
        }
        for name, value in select.args.items():
            if value and name not in known:
                raise refused(select, f"{name.upper().strip('_')} cannot be part of a streaming query", FORM)

    # FROM

    def _from(self, select: exp.Select) -> tuple[Node, dict[tuple[str, str], Column], exp.Expr | None]:
        """The node of the FROM clause, its columns, and what of WHERE is still to be asked."""
        where = select.args.get("where")
        source = select.args.get("from_")
        if source is None:
            raise refused(select, "Cannot stream a query without FROM", "SELECT STREAM .. FROM a stream")
        return joins(self, source.this, select.args.get("joins") or [], where.this if where else None)

    def item(self, item: exp.Expr) -> Rel | Relation:
        """A thing of the FROM clause: a stream, or a relation."""
        if isinstance(item, exp.Subquery):
            return (
                self.query(item.this)
                if self.streams(item.this)
                else self.catalog.relation(item.this, self.ctes, self.now)
            )
        if isinstance(item, exp.Table):
            inner = self.ctes.get(item.name.lower()) or self.catalog.view(item.name)
            if inner is not None:
                inner = inner.copy()
                return self.query(inner) if self.streams(inner) else self.catalog.relation(inner, self.ctes, self.now)
            table = self.catalog.table(item)
            return self.source(table) if table.stream else self.catalog.relation(item, self.ctes, self.now)
        return self.catalog.relation(item, self.ctes, self.now)

    def streams(self, query: exp.Expr) -> bool:
        """Whether a query reads a stream."""
        return self.catalog.streams(query, self.ctes)

    def source(self, table: Table) -> Rel:
        """A stream of the model."""
        columns: list[Column] = []
        for name, kind in table.columns:
            monotone = table.monotonic.get(name)
            if monotone is not None and table.slack != 0:
                monotone = replace(monotone, ordered=False)
            columns.append(self.fresh(kind, monotone))
        names, rows = [name for name, _ in table.columns], table.slack_rows
        bounds = tuple(
            Bound(
                c.name, c.monotone, 0 if rows else table.slack or 0, table.slack if rows else None, table.slack is None
            )
            for c in columns
            if c.monotone
        )
        labels = tuple(name for name, c in zip(names, columns, strict=True) if c.monotone)
        return Rel(Source(table.name.lower(), tuple(columns), bounds, labels), tuple(name.lower() for name in names))

    # expressions

    def renamed(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        """An expression over generated columns. Sub-queries read tables as they are when a row arrives."""
        root = exp.Paren(this=node.copy())
        for inner in list(root.find_all(exp.Subquery, exp.In, exp.Exists)):
            query = inner.args.get("query") if isinstance(inner, exp.In) else inner.this
            if isinstance(query, exp.Query):
                if self.streams(query):
                    raise refused(
                        query, "a sub-query in an expression reads tables, not streams", "join the stream instead"
                    )
                query.replace(counting(self.catalog.relational(query, self.ctes, self.now), self.engine))
        for found in list(root.find_all(exp.Column)):
            key = (found.table.lower(), found.name.lower())
            if key not in scope and not found.table and sum(name == key[1] for _, name in scope) == 1:
                key = next(known for known in scope if known[1] == key[1])
            if key in scope:
                made = flow_column(scope[key].name)
                made.meta.update(found.this.meta)  # the user's place of it
                found.replace(made)
        return root.this.pop()

    def lowered(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        """An expression as DuckDB computes it, over the columns of a FROM clause."""
        return duck(self.renamed(node, scope), self.kinds(scope.values()), self.now)

    def ducked(self, node: exp.Expr, over: Node) -> exp.Expr:
        """An expression over a node's columns as DuckDB computes it."""
        return duck(node.copy(), self.kinds(over.columns), self.now)

    def said(self, node: exp.Expr) -> str:
        """An expression over generated columns in the user's words."""
        root = exp.Paren(this=node.copy())
        for found in root.find_all(exp.Column):
            found.replace(exp.column(self.labels.get(found.name, found.name)))
        return root.this.sql(Calcite)

    def kinds(self, columns):  # type: ignore[no-untyped-def]
        types = {c.name: c.type for c in columns}
        return lambda found: kind_of_type(types.get(found.name, "")) if found.name in types else Kind.OTHER

    def _moves(self, node: Node):  # type: ignore[no-untyped-def]
        lines = {c.name: c.monotone for c in node.columns}
        return lambda found: lines.get(found.name)

    def moving(self, expr: exp.Expr, node: Node) -> Monotone | None:
        """How an expression over a node's columns moves."""
        found = moves(expr, self._moves(node))
        used = [
            c.monotone for c in node.columns if c.monotone and c.name in {x.name for x in expr.find_all(exp.Column)}
        ]
        return replace(found, ordered=all(m.ordered for m in used)) if found else None

    # steps

    def _filter(self, node: Node, condition: exp.Expr) -> Node:
        return Relate((node,), node.columns, tuple(flow_column(c.name) for c in node.columns), condition)

    def extended(self, node: Node, exprs: Sequence[exp.Expr]) -> tuple[Node, list[Column]]:
        """A node with more columns, those that expressions compute; a column of it stands for itself."""
        known = {c.name: c for c in node.columns}
        new = [expr for expr in exprs if not (isinstance(expr, exp.Column) and expr.name in known)]
        if not new:
            return node, [known[expr.name] for expr in exprs]
        items = [self.ducked(expr, node) for expr in new]
        kinds = self._types(items, node)
        more = [self.fresh(kind, self.moving(expr, node)) for kind, expr in zip(kinds, new, strict=True)]
        own = tuple(flow_column(c.name) for c in node.columns)
        made = {id(expr): column for expr, column in zip(new, more, strict=True)}
        found = [made.get(id(expr)) or known[expr.name] for expr in exprs]
        return Relate((node,), (*node.columns, *more), (*own, *items)), found

    def _types(self, items: Sequence[exp.Expr], node: Node) -> list[str]:
        if not items:
            return []
        try:
            return self.engine.types(
                exp.select(*(i.copy() for i in items)).from_("input"), input=empty(node.columns, self.engine)
            )
        except Exception as problem:
            raise windows.of_duckdb(problem, items[0]) from None

    def _project(self, node: Node, named: Sequence[tuple[str, exp.Expr]], more: Sequence[exp.Expr]) -> Rel:
        exprs = [*(expr for _, expr in named), *more]
        for expr in exprs:
            windows.check_known(expr, node)
        items = [self.ducked(expr, node) for expr in exprs]
        kinds = self._types(items, node)
        columns = tuple(self.fresh(kind, self.moving(expr, node)) for kind, expr in zip(kinds, exprs, strict=True))
        return Rel(Relate((node,), columns, tuple(items)), tuple(name for name, _ in named))

    def _group(self, node: Node, group: Grouping, parts: Sequence[exp.Expr]) -> tuple[Node, list[exp.Expr]]:
        keys = [self.ducked(key, node) for key in group.keys]
        window = [self.fresh("BIGINT", Monotone())] if group.hops else []
        hops = replace(group.hops, time=self.ducked(group.hops.time, node)) if group.hops else None
        kinds = self._types(keys, node)
        out = [self.fresh(k, self.moving(key, node)) for k, key in zip(kinds, group.keys, strict=True)]
        made = merged(self, node, group, keys, hops, kinds) if hops else None
        if made is not None:
            window, out = list(made.columns[:1]), list(made.columns[1 : 1 + len(keys)])
            return made, [
                windows.after_group(part, group, window, out, made.columns[1 + len(keys) :], [], self.said)
                for part in parts
            ]
        inner = [windows.in_window(a, group) for a in group.aggregates]
        aggregates = [self.ducked(a, node) for a in inner]
        values = [self.fresh(k) for k in self.aggregate_types(aggregates, node, bool(window))]
        bits = [self.fresh("INTEGER") for _ in group.groupings]
        made = Group(
            (node,), (*window, *out, *values, *bits), tuple(keys), tuple(aggregates), group.sets, hops, group.groupings
        )
        return made, [windows.after_group(part, group, window, out, values, bits, self.said) for part in parts]

    def aggregate_types(self, aggregates: Sequence[exp.Expr], node: Node, windowed: bool) -> list[str]:
        """DuckDB's types of aggregates over a node, whose rows are in windows or not."""
        from rollup.engine.flows.grouping import WINDOW

        if not aggregates:
            return []
        columns = (*node.columns, Column(WINDOW, "BIGINT")) if windowed else node.columns
        query = exp.select(*(a.copy() for a in aggregates)).from_("input")
        try:
            return self.engine.types(query, input=empty(columns, self.engine))
        except Exception as problem:
            raise windows.of_duckdb(problem, aggregates[0]) from None

    def _distinct(self, rel: Rel, query: exp.Expr, message: str) -> Rel:
        line = next((c for c in rel.columns if c.monotone), None)
        if line is None:
            raise refused(query, message, "as FLOOR(rowtime TO HOUR)")
        return Rel(Distinct((rel.node,), rel.columns, line), rel.names)

    # ORDER BY and LIMIT

    def _orders(self, query: exp.Expr) -> list[exp.Ordered]:
        order = query.args.get("order")
        return list(order.expressions) if order else []

    def _ordered_expr(
        self, node: exp.Expr, select: exp.Expr, items: Sequence[tuple[str, exp.Expr]], scope: Scope
    ) -> exp.Expr:
        """A key of ORDER BY: an ordinal or the name of a column of the output stands for it."""
        if isinstance(node, exp.Literal) and node.is_int and 1 <= int(node.this) <= len(items):
            return items[int(node.this) - 1][1].copy()
        if isinstance(node, exp.Column) and not node.table:
            for name, item in items:
                if name.lower() == node.name.lower():
                    return item.copy()
        return self.renamed(node, scope)

    def _finished(
        self,
        select: exp.Expr,
        rel: Rel,
        ordered: Sequence[tuple[exp.Ordered, exp.Expr]],
        named: Sequence[tuple[str, exp.Expr]],
        keys: Sequence[Column] | None = None,
    ) -> Rel:
        """Order and limit; where `keys` are not given they stand after the named columns of the node."""
        limit, offset = select.args.get("limit"), select.args.get("offset")
        if ordered:
            if limit is not None or offset is not None:
                raise refused(
                    select, "Streaming ORDER BY cannot have OFFSET or LIMIT", "LIMIT alone ends the query after n rows"
                )
            rel = self._sorted(rel, [o for o, _ in ordered], keys or rel.node.columns[len(rel.names) :], select)
        if offset is not None:
            raise refused(select, "Streaming queries cannot have OFFSET", "LIMIT alone ends the query after n rows")
        if limit is not None or len(rel.node.columns) > len(rel.names):
            rows = windows.limit_of(limit) if limit is not None else None
            node = Relate((rel.node,), rel.columns, tuple(flow_column(c.name) for c in rel.columns), None, rows)
            rel = Rel(node, rel.names)
        return rel

    def _ordered(
        self, query: exp.Expr, rel: Rel, scope: Scope, items: Sequence[tuple[str, exp.Expr]], names: Scope
    ) -> Rel:
        """Order and limit of a set operation: keys are columns of its output."""
        found = [(o, self._ordered_expr(o.this, query, items, names)) for o in self._orders(query)]
        if found:
            node, keys = self.extended(rel.node, [expr for _, expr in found])
            return self._finished(query, Rel(node, rel.names), found, items, keys)
        return self._finished(query, rel, found, items)

    def _sorted(self, rel: Rel, ordered: Sequence[exp.Ordered], keys: Sequence[Column], select: exp.Expr) -> Rel:
        line = keys[0]
        falling = bool(ordered[0].args.get("desc"))
        if line.monotone is None or line.monotone.rising == falling:
            hint = "rowtime, FLOOR(rowtime TO HOUR) and their like, ascending; a decreasing column descending"
            raise refused(ordered[0], "Streaming ORDER BY must start with monotonic expression", hint)
        trees = tuple(
            exp.Ordered(
                this=flow_column(key.name), desc=bool(o.args.get("desc")), nulls_first=o.args.get("nulls_first")
            )
            for o, key in zip(ordered, keys, strict=True)
        )
        columns = tuple(
            replace(c, monotone=replace(c.monotone, ordered=c is line) if c.monotone else None)
            for c in rel.node.columns
        )
        return Rel(Sort((rel.node,), columns, trees, line, len(trees) == 1), rel.names)


def _together(one: Monotone | None, other: Monotone | None) -> Monotone | None:
    if one is None or other is None or one.rising != other.rising:
        return None
    return Monotone(one.rising, strict=False, ordered=False)
