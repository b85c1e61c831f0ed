"""A stream joined with an aggregation whose buckets come as a stream: each row with those that had ended by its time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from rollup.core.conditions import conjuncts
from rollup.engine.flows.asof import AsOf
from rollup.engine.flows.flow import Column, Monotone, Node
from rollup.engine.flows.flow import column as flow_column
from rollup.engine.flows.relate import Relate
from rollup.engine.flows.source import Source
from rollup.lang.calcite.model import Table
from rollup.lang.calcite.semantics import refused

if TYPE_CHECKING:
    from rollup.lang.calcite.planning.lowering import Lowering

Names = dict[tuple[str, str], Column]


def versioned(lowering: Lowering, source: exp.Expr) -> Table | None:
    """The stream of buckets that a thing of the FROM clause asks for as of a time; None when it does something else."""
    table = lowering.catalog.named(source, lowering.ctes) if source.args.get("version") is not None else None
    if table is None or not table.stream:
        return None
    if table.passed is None:
        raise refused(
            source,
            f"{table.name} is a stream, of which there are no versions",
            "FOR SYSTEM_TIME AS OF reads temporal tables and aggregations",
        )
    return table


def as_of(
    lowering: Lowering, node: Node, names: Names, table: Table, source: exp.Expr, on: exp.Expr | None, join: exp.Join
) -> tuple[Node, Names]:
    """The stream with the buckets of a table as of the time that `source` says."""
    side = (join.side or "").upper()
    if side in ("RIGHT", "FULL"):
        raise refused(
            join,
            f"{side} JOIN of a stream with an aggregation is never final: its buckets wait for ever",
            "LEFT JOIN, or an inner join",
        )
    found = lowering.source(replace(table, monotonic={}))
    theirs = found.under(source.alias_or_name.lower())
    both = {**names, **theirs}
    moment = _moment(lowering, source, names)
    by_name = dict(zip(found.names, found.columns, strict=True))
    keys = tuple(by_name[key.lower()] for key in table.key)
    parts = [lowering.lowered(part, both) for part in conjuncts(on)]
    mine = {column.name for column in node.columns} | {key.name for key in keys}
    alike = [part for part in parts if {column.name for column in part.find_all(exp.Column)} <= mine]
    line = _line(lowering, table)
    columns = tuple(_loose(c, moment) for c in (*node.columns, *found.columns))
    since = by_name[table.time]
    made = AsOf(
        (node, found.node, line),
        columns,
        moment,
        since,
        line.columns[0],
        keys,
        exp.and_(*alike) if alike else exp.true(),
        exp.and_(*parts) if parts else exp.true(),
        side == "LEFT",
    )
    return made, {key: _loose(c, moment) for key, c in both.items()}


def _moment(lowering: Lowering, source: exp.Expr, names: Mapping[tuple[str, str], Column]) -> Column:
    """The column of the stream that says as of when; it must move, or no row could ever be sure of its versions."""
    said = source.args["version"].expression
    found = lowering.renamed(said, names)
    column = next((c for c in names.values() if isinstance(found, exp.Column) and c.name == found.name), None)
    if column is None or column.monotone is None or not column.monotone.rising or column.type != "TIMESTAMP":
        moving = [name for (_, name), c in names.items() if c.monotone and c.monotone.rising and c.type == "TIMESTAMP"]
        raise refused(
            said if isinstance(said, exp.Column) else source,
            "FOR SYSTEM_TIME AS OF needs the time of the stream's rows, a column that is monotonic",
            f"as {moving[0]}" if moving else None,
        )
    return column


def _line(lowering: Lowering, table: Table) -> Node:
    """How far the buckets are: what its own stream says in milliseconds, as a time."""
    assert table.passed is not None
    passed = lowering.catalog.model.find(table.passed)
    assert passed is not None
    said = lowering.source(passed)
    assert isinstance(said.node, Source)
    (until,) = (c for c in said.columns if c.monotone)
    scale = exp.Mul(this=flow_column(until.name), expression=exp.Literal.number(1000))
    time = exp.Anonymous(this="make_timestamp", expressions=[scale])
    return Relate((said.node,), (lowering.fresh("TIMESTAMP", Monotone()),), (time,))


def _loose(column: Column, moment: Column) -> Column:
    """Several rows may come of one, and where the moment is out of order they leave in another order than they came."""
    if column.monotone is None:
        return column
    assert moment.monotone is not None
    ordered = column.monotone.ordered and moment.monotone.ordered
    return replace(column, monotone=replace(column.monotone, strict=False, ordered=ordered))
