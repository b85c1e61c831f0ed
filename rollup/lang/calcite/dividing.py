"""By which columns a streaming query falls apart: those that its groups and the partitions of its windows share."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from rollup.engine.dividing import Need

_WHOLE = ("joins", "laterals", "distinct", "order", "limit", "offset", "qualify", "with_")
"""Clauses over the rows of all keys, or of more than one stream."""


def need_of(query: exp.Expr, columns: Mapping[str, Collection[str]]) -> Need | str:
    """What a query needs of a key, or why it has none; `columns`: those of each stream, without its times.

    >>> from sqlglot import parse_one
    >>> need_of(parse_one("SELECT k, SUM(v) FROM S GROUP BY FLOOR(t TO HOUR), k"), {"S": ("k", "v")})
    {'S': ('k',)}
    """
    tables = list(query.find_all(exp.Table))
    stream = next((name for name in columns if len(tables) == 1 and name.lower() == tables[0].name.lower()), None)
    if stream is None or not isinstance(query, exp.Select) or query.find(exp.Subquery, exp.Union) is not None:
        return "a query over more than one stream, or over another query"
    if any(query.args.get(clause) for clause in _WHOLE):
        return "rows of all keys are put in order, joined or counted together"
    groups = [] if query.args.get("group") is None else [_grouped(query.args["group"])]
    keys = [*groups, *(_partition(query, window) for window in query.find_all(exp.Window))]
    if not keys:
        return {stream: None}
    shared = tuple(name for name in columns[stream] if all(name.lower() in each for each in keys))
    return {stream: shared} if shared else "its groups have no column of the stream in common"


def _grouped(group: exp.Expr) -> set[str]:
    """The plain columns by which all sets of a GROUP BY group; none where it has several sets."""
    if any(group.args.get(kind) for kind in ("grouping_sets", "cube", "rollup", "totals")):
        return set()
    return _plain(group.expressions)


def _partition(query: exp.Select, window: exp.Window) -> set[str]:
    by = _plain(window.args.get("partition_by") or [])
    named = [each for each in query.args.get("windows") or [] if each.name.lower() == window.alias.lower()]
    return by | {name for each in named for name in _plain(each.args.get("partition_by") or [])}


def _plain(found: Collection[exp.Expr]) -> set[str]:
    return {each.name.lower() for each in found if isinstance(each, exp.Column)}
