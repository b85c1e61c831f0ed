"""The FROM clause: a stream, joined with tables and with streams that keep in lock step with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from rollup.core.conditions import conjuncts
from rollup.engine.flows.flow import AT, Column, Node
from rollup.engine.flows.flow import column as flow_column
from rollup.engine.flows.joining import Lookup, Step, StreamJoin
from rollup.lang.calcite.catalog import FROM, UNTIL, Relation
from rollup.lang.calcite.model import Table
from rollup.lang.calcite.planning.rel import Rel
from rollup.lang.calcite.planning.versions import as_of, versioned
from rollup.lang.calcite.semantics import MICROSECONDS, Kind, interval, kind_of_type, refused

if TYPE_CHECKING:
    from rollup.lang.calcite.planning.lowering import Lowering

Names = dict[tuple[str, str], Column]


def joins(
    lowering: Lowering, first: exp.Expr, rest: Sequence[exp.Join], where: exp.Expr | None
) -> tuple[Node, Names, exp.Expr | None]:
    """The node of a FROM clause, its columns by alias and name, and the condition that is still to be asked."""
    sources = [first, *(join.this for join in rest)]
    found = [versioned(lowering, source) or lowering.item(source) for source in sources]
    if not any(isinstance(item, Rel) for item in found):
        raise _no_stream(first, sources, found)
    left, pending = found[0], list(zip(rest, sources[1:], found[1:], strict=True))
    if not isinstance(left, Rel):
        return _tables_first(lowering, sources, found, rest, where)
    names = left.under(first.alias_or_name.lower())
    node = left.node
    labels = {first.alias_or_name.lower(): _label(first)}
    for join, source, item in pending:
        condition = join.args.get("on")
        if condition is None and isinstance(item, Rel):
            condition, where = where, None  # FROM a, b WHERE ..: the lock step stands in the condition
        side = (join.side or "").upper()
        labels[source.alias_or_name.lower()] = _label(source)
        if isinstance(item, Rel):
            condition = _with_where(
                lowering, condition, where, {**names, **item.under(source.alias_or_name.lower())}, side
            )
            node, names = _streams(lowering, node, names, item, source, condition, side, join, labels)
        elif isinstance(item, Table):
            node, names = as_of(lowering, node, names, item, source, condition, join)
        else:
            node, names = _lookup(lowering, node, names, item, source, condition, side, join)
    return node, names, where


def _with_where(
    lowering: Lowering, on: exp.Expr | None, where: exp.Expr | None, names: Names, side: str
) -> exp.Expr | None:
    """The condition of an inner join with what WHERE says of its inputs: the lock step may stand there."""
    if on is None or where is None or side:
        return on
    tables = {alias for alias, _ in names}
    mine = [part for part in conjuncts(where) if {c.table.lower() for c in part.find_all(exp.Column)} <= tables]
    return exp.and_(*conjuncts(on), *(part for part in mine if not part.find(exp.Query)))


def _tables_first(
    lowering: Lowering,
    sources: Sequence[exp.Expr],
    found: Sequence[Rel | Relation | Table],
    rest: Sequence[exp.Join],
    where: exp.Expr | None,
) -> tuple[Node, Names, exp.Expr | None]:
    """A table before the stream: the same join with the sides changed."""
    at = next(i for i, item in enumerate(found) if isinstance(item, Rel))
    join = rest[at - 1]
    side = (join.side or "").upper()
    if at != 1 or side == "LEFT":
        raise refused(
            join,
            "an outer join keeps the rows of a stream, not of a table",
            "put the stream first, or use an inner join",
        )
    swapped = join.copy()
    swapped.set("this", sources[0].copy())
    swapped.set("side", "LEFT" if side == "RIGHT" else None)
    return joins(lowering, sources[1], [swapped, *rest[1:]], where)


def _label(source: exp.Expr) -> str:
    return source.name.upper() if isinstance(source, exp.Table) else source.alias_or_name.upper()


def _no_stream(first: exp.Expr, sources: Sequence[exp.Expr], found: Sequence[object]) -> Exception:
    """Why a query that must stream cannot."""
    if len(sources) > 1:
        names = ", ".join(source.alias_or_name.upper() for source in sources)
        message = f"Cannot stream results of a query with no streaming inputs: '{names}'. At least one input should be convertible to a stream"
        return refused(first, message, "leave STREAM out: tables are read once")
    if isinstance(first, exp.Table):
        alias = f" ({first.alias.upper()})" if first.alias and first.alias.lower() != first.name.lower() else ""
        return refused(
            first,
            f"Cannot convert table '{first.name.upper()}'{alias} to a stream",
            "leave STREAM out: a table is read once",
        )
    if first.find(exp.Values):
        return refused(first, "Cannot stream VALUES", "a set of rows that never changes gives no rows as a stream")
    return refused(
        first,
        f"Cannot convert table '{first.alias_or_name.upper()}' to a stream",
        "leave STREAM out: it reads only tables",
    )


# a stream and a table


def _lookup(
    lowering: Lowering,
    node: Node,
    names: Names,
    item: Relation,
    source: exp.Expr,
    on: exp.Expr | None,
    side: str,
    join: exp.Join,
) -> tuple[Node, Names]:
    if side in ("RIGHT", "FULL"):
        raise refused(
            join,
            f"{side} JOIN of a stream with a table is never final: rows of the table wait for ever",
            "LEFT JOIN, or an inner join",
        )
    moment = _moment(lowering, source, names)
    columns = [lowering.fresh(kind) for kind in item.types]
    alias = source.alias_or_name.lower()
    both = {**names, **{(alias, name): c for name, c in zip(item.names, columns, strict=True)}}
    conditions = [lowering.lowered(on, both)] if on is not None else []
    if moment is not None:
        table, held = _versions(lowering, source, item, columns, *moment)
        conditions.append(held)
    else:
        inner = item.tree.subquery("r")
        shown = [
            exp.alias_(exp.column(exp.to_identifier(name, quoted=True)), c.name, quoted=True)
            for name, c in zip(item.names, columns, strict=True)
        ]
        table = exp.select(*shown).from_(inner).subquery("looked_up")
    made = Lookup(
        (node,), (*node.columns, *columns), table, exp.and_(*conditions) if conditions else exp.true(), side == "LEFT"
    )
    return made, both


def _moment(lowering: Lowering, source: exp.Expr, names: Names) -> tuple[exp.Expr, str] | None:
    """The version of a table that a row joins, with its type; None for a table without versions.

    It is the time that FOR SYSTEM_TIME says, or the place of the row in the input where the table moves with the input.
    """
    table, version = lowering.catalog.named(source, lowering.ctes), source.args.get("version")
    if table is None:
        return None
    if version is not None:
        if not table.temporal:
            raise refused(source, f"{table.name} is not declared temporal", "temporal = true in the model")
        return lowering.lowered(version.expression, names), "TIMESTAMP"
    return (flow_column(AT), "BIGINT") if table.moving else None


def _versions(
    lowering: Lowering, source: exp.Expr, item: Relation, columns: Sequence[Column], moment: exp.Expr, kind: str
) -> tuple[exp.Expr, exp.Expr]:
    """A table as of a moment of the stream's row: its versions, and which of them held then."""
    table = lowering.catalog.table(source)  # type: ignore[arg-type]
    since, until = lowering.fresh(kind), lowering.fresh(kind)
    pairs = [*zip(item.names, columns, strict=True), (FROM, since), (UNTIL, until)]
    shown = [exp.alias_(exp.column(exp.to_identifier(name, quoted=True)), c.name, quoted=True) for name, c in pairs]
    stored = exp.select(*shown).from_(exp.to_table(lowering.catalog.stored(table.name))).subquery("looked_up")
    begins = exp.or_(
        exp.Is(this=flow_column(since.name), expression=exp.Null()),
        exp.LTE(this=flow_column(since.name), expression=moment),
    )
    ends = exp.or_(
        exp.Is(this=flow_column(until.name), expression=exp.Null()),
        exp.LT(this=moment.copy(), expression=flow_column(until.name)),
    )
    return stored, exp.and_(begins, ends)


# two streams


def _streams(
    lowering: Lowering,
    node: Node,
    names: Names,
    item: Rel,
    source: exp.Expr,
    on: exp.Expr | None,
    side: str,
    join: exp.Join,
    labels: dict[str, str],
) -> tuple[Node, Names]:
    theirs = item.under(source.alias_or_name.lower())
    if set(c.name for c in item.node.columns) & set(c.name for c in node.columns):
        raise AssertionError("columns of two inputs have names of their own")
    both = {**names, **theirs}
    steps = _lock_steps(lowering.renamed(on, both), node.columns, item.columns) if on is not None else []
    bounded = [s for s in steps if s.low is not None and s.high is not None]
    if not bounded:
        left, right = " and ".join(list(labels.values())[:-1]), list(labels.values())[-1]
        raise refused(
            join,
            f"Cannot join streams without a lock step: the condition must keep the monotonic columns of {left} and {right} a finite distance apart",
            "as s.rowtime BETWEEN o.rowtime AND o.rowtime + INTERVAL '1' HOUR",
        )
    loose = lambda c: replace(c, monotone=replace(c.monotone, ordered=False, strict=False)) if c.monotone else c  # noqa: E731
    columns = tuple(loose(c) for c in (*node.columns, *item.columns))
    outer = (side in ("LEFT", "FULL"), side in ("RIGHT", "FULL"))
    made = StreamJoin(
        (node, item.node),
        columns,
        lowering.lowered(on, both) if on is not None else exp.true(),
        tuple(bounded[:1]),
        outer,
    )
    return made, {key: loose(c) for key, c in both.items()}


@dataclass(frozen=True)
class _Side:
    """A side of a comparison: a column that moves, and how far from it the value may lie."""

    column: Column
    low: int
    high: int


def _lock_steps(condition: exp.Expr, left: Sequence[Column], right: Sequence[Column]) -> list[Step]:
    """For each pair of columns that move: how far apart the condition lets them be."""
    sides = {c.name: c for c in (*left, *right) if c.monotone and c.monotone.rising}
    lefts = {c.name for c in left}
    found: dict[tuple[str, str], Step] = {}
    for part in conjuncts(condition):
        for low, high in _comparisons(part.unnest()):
            a, b = _side(low, sides), _side(high, sides)  # a <= b
            if a is None or b is None or (a.column.name in lefts) == (b.column.name in lefts):
                continue
            if a.column.name in lefts:  # left + a.low <= right + b.high: right - left >= a.low - b.high
                _tighten(found, a.column, b.column, a.low - b.high, None)
            else:  # right + a.low <= left + b.high: right - left <= b.high - a.low
                _tighten(found, b.column, a.column, None, b.high - a.low)
    return list(found.values())


def _tighten(
    found: dict[tuple[str, str], Step], left: Column, right: Column, low: int | None, high: int | None
) -> None:
    known = found.get((left.name, right.name), Step(left, right, None, None))
    lows = [bound for bound in (known.low, low) if bound is not None]
    highs = [bound for bound in (known.high, high) if bound is not None]
    found[left.name, right.name] = Step(left, right, max(lows, default=None), min(highs, default=None))


def _comparisons(part: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """What a condition says as `a <= b`."""
    match part:
        case exp.Between():
            return [(part.args["low"], part.this), (part.this, part.args["high"])]
        case exp.LTE() | exp.LT():
            return [(part.left, part.right)]
        case exp.GTE() | exp.GT():
            return [(part.right, part.left)]
        case exp.EQ():
            return [(part.left, part.right), (part.right, part.left)]
        case _:
            return []


def _side(node: exp.Expr, columns: dict[str, Column]) -> _Side | None:
    node = node.unnest()
    if isinstance(node, exp.Column):
        return _Side(columns[node.name], 0, 0) if node.name in columns else None
    if isinstance(node, (exp.Floor, exp.Ceil)) and node.args.get("to"):
        inner, size = _side(node.this, columns), MICROSECONDS.get(node.args["to"].name.upper())
        if inner is None or size is None:
            return None
        down, up = (size, 0) if isinstance(node, exp.Floor) else (0, size)
        return _Side(inner.column, inner.low - down, inner.high + up)
    if isinstance(node, (exp.Add, exp.Sub)):
        inner = _side(node.left, columns)
        amount = _amount(node.right, inner) if inner else None
        if inner is None and isinstance(node, exp.Add):
            inner = _side(node.right, columns)
            amount = _amount(node.left, inner) if inner else None
        if inner is None or amount is None:
            return None
        amount = -amount if isinstance(node, exp.Sub) else amount
        return _Side(inner.column, inner.low + amount, inner.high + amount)
    return None


def _amount(node: exp.Expr, side: _Side) -> int | None:
    node = node.unnest()
    if isinstance(node, exp.Interval):
        return interval(node)
    whole = isinstance(node, exp.Literal) and not node.is_string and kind_of_type(side.column.type) is Kind.WHOLE
    return int(node.this) if whole else None
