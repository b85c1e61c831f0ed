"""What the query around a source lets it leave out: unread columns, and rows that a condition drops anyway.

Both are hints: the conditions stay in the query, and a column set is never too small. "Nothing known" is always safe.
"""

from __future__ import annotations

from sqlglot import exp

from rollup.core.conditions import conjuncts
from rollup.lang.sql.source import Within

_PURE = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Parameter, exp.Placeholder, exp.Cast,
    exp.DataType, exp.DataTypeParam, exp.Binary, exp.Unary, exp.Between, exp.In, exp.Tuple, exp.Coalesce,
    exp.Lower, exp.Upper, exp.Abs, exp.Interval, exp.Var,
)  # fmt: skip
_STRICT = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike, exp.Between, exp.In)


def columns_used(query: exp.Expr, within: Within) -> set[str] | None:
    """Names of the columns that the query may read from this source; None when all are, or when it is unclear.

    A superset: unqualified names of other sources are among them, so intersect it with the source's own columns.
    `query` is any tree around the source; the nearest SELECT counts.
    """
    select = within.find_ancestor(exp.Select)
    alias = within.args.get("alias")
    if select is None or (alias and alias.columns) or not _contains(query, within):
        return None
    name = within.source_name.casefold()
    if any(join.method for join in select.find_all(exp.Join)) or _starred(select, name):
        return None
    used = {str(key.name) for join in select.find_all(exp.Join) for key in join.args.get("using") or ()}
    for column in select.find_all(exp.Column):
        if column.name.casefold() == name and not column.table:
            return None  # the whole row as one value
        if not column.table or column.table.casefold() == name:
            used.add(column.name)
    return used


def _contains(query: exp.Expr, within: Within) -> bool:
    node: exp.Expr | None = within
    while node is not None and node is not query:
        node = node.parent
    return node is query


def _starred(select: exp.Select, name: str) -> bool:
    for star in select.find_all(exp.Star, exp.Columns):
        if isinstance(star.parent, exp.Column) and star.parent.table.casefold() != name:
            continue
        if not isinstance(star.parent, exp.Count):
            return True
    return not select.expressions


def conditions_on(query: exp.Expr, within: Within) -> list[exp.Expr]:
    """Conjuncts that may filter this source before the query does; copies, their columns without qualifier.

    They come from WHERE, from ON of inner joins, and from ON of the LEFT JOIN that brings this source. Where an outer
    join may fill the source with nulls, only comparisons that no null satisfies are given. They stay in the query, so
    leaving any out is safe. An unqualified name counts only when the source is the SELECT's only one.
    """
    select = within.parent_select
    own = within.parent
    joins: list[exp.Join] = select.args.get("joins") or [] if select else []
    if select is None or not _contains(query, within) or not _plain_place(select, own, joins, within):
        return []
    seen, nullable, given = isinstance(own, exp.From), False, list[exp.Expr]()
    for join in joins:
        if join is own:
            seen = True
            given += _usable(join.args.get("on"), within, join.side != "LEFT" and nullable, join.side in ("", "LEFT"))
            nullable = join.side in ("LEFT", "FULL")
        else:
            given += _usable(join.args.get("on"), within, nullable, seen and not join.side)
            nullable = nullable or (seen and join.side in ("RIGHT", "FULL"))
    alone = not joins and not select.args.get("laterals")
    where = select.args.get("where")
    return given + _usable(where.this if where else None, within, nullable, True, alone)


def _plain_place(select: exp.Select, own: exp.Expr | None, joins: list[exp.Join], within: Within) -> bool:
    """Whether the source stands directly in FROM or a JOIN of the SELECT, under a name no other source has."""
    alias = within.args.get("alias")
    direct = (isinstance(own, exp.From) and own.parent is select) or any(join is own for join in joins)
    from_ = select.args.get("from_")
    sources = [from_.this if from_ else None, *(join.this for join in joins), *(select.args.get("laterals") or [])]
    labels = [s.source_name if isinstance(s, Within) else s.alias_or_name for s in sources if s is not None]
    same = [label for label in labels if label.casefold() == within.source_name.casefold()]
    simple = not (alias and alias.columns) and not within.args.get("joins") and not any(j.method for j in joins)
    return direct and simple and len(same) == 1


def _usable(
    condition: exp.Expr | None, within: Within, strict: bool, allowed: bool, alone: bool = False
) -> list[exp.Expr]:
    if condition is None or not allowed:
        return []
    parts = [part for part in conjuncts(condition) if _only_of(part, within, alone)]
    return [_unqualified(part) for part in parts if _rejects_null(part) or not strict]


def _only_of(part: exp.Expr, within: Within, alone: bool) -> bool:
    columns = list(part.find_all(exp.Column))
    name = within.source_name.casefold()
    ours = all((c.table.casefold() == name if c.table else alone) and c.name.casefold() != name for c in columns)
    positional = any(not node.this for node in part.find_all(exp.Placeholder))
    return bool(columns) and ours and not positional and all(isinstance(node, _PURE) for node in part.walk())


def _rejects_null(part: exp.Expr) -> bool:
    """Whether a null in its column makes the condition null: a comparison of bare columns with constants."""
    simple = (exp.Column, exp.Identifier, exp.Literal, exp.Parameter, exp.Placeholder, exp.Paren, *_STRICT)
    bare = part.unnest()
    return isinstance(bare, _STRICT) and all(isinstance(node, simple) for node in bare.walk()) and not _nested(bare)


def _nested(condition: exp.Expr) -> bool:
    return sum(isinstance(node, _STRICT) for node in condition.walk()) > 1


def _unqualified(part: exp.Expr) -> exp.Expr:
    copy = part.copy()
    for column in copy.find_all(exp.Column):
        for key in ("table", "db", "catalog"):
            column.set(key, None)
    return copy
