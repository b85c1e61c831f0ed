"""What an aggregation closes as a stream: `TradeAgg_MINUTES` with AGG_TIMESTAMP, keys and values, as rows close."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
from sqlglot import exp

from rollup.core.columns import ColumnEngine
from rollup.core.dialects import to_sql
from rollup.plan.aggregation import TIMESTAMP, Aggregation, column
from rollup.plan.app import StreamDef
from rollup.plan.types import Type

REMOVED = "_REMOVED"
"""Ends the name of the stream of rows as they were before a correction, which stand before the rows as they are now."""
PASSED, UNTIL = "_PASSED", "until"
"""Ends the name of the stream that says how far a level is: every bucket that ends before `until`, in ms, has closed."""


def closing_streams(aggregation: Aggregation) -> dict[str, StreamDef]:
    """The streams of an aggregation by name, three a level: bucket start, keys that are not selected, what is selected,
    for rows that close and for those that a correction takes back; and how far the level is."""
    attributes, keys = _attributes(aggregation), tuple(key.name for key in aggregation.keys)
    found = dict[str, StreamDef]()
    for level in aggregation.levels:
        name = aggregation.table(level)
        found[name] = StreamDef(name, attributes, keys=keys)
        found[name + REMOVED] = StreamDef(name + REMOVED, attributes)
        found[name + PASSED] = StreamDef(name + PASSED, {UNTIL: Type.LONG})
    return found


def _attributes(aggregation: Aggregation) -> dict[str, Type]:
    outputs = {output.name: output.type for output in aggregation.outputs}
    keys = {key.name: key.type for key in aggregation.keys if key.name not in outputs}
    return {TIMESTAMP: Type.LONG, **keys, **outputs}


def closings(engine: ColumnEngine, aggregation: Aggregation, rows: pa.Table) -> pa.Table:
    """Closed rows of one level as events of its stream, in the order of their buckets, then of their keys."""
    return engine.run(_sql(aggregation), rows=rows)


@lru_cache(maxsize=256)
def _sql(aggregation: Aggregation) -> str:
    names = _attributes(aggregation)
    finals = {output.name: output.final for output in aggregation.outputs}
    items = [
        exp.alias_(exp.cast(finals[name].copy() if name in finals else column(name), kind.sql), name, quoted=True)
        for name, kind in names.items()
    ]
    order = [column(name) for name in aggregation.identity]
    return to_sql(exp.select(*items).from_("rows").order_by(*order))
