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


def closing_streams(aggregation: Aggregation) -> dict[str, StreamDef]:
    """The streams of an aggregation by name, two a level: bucket start, keys that are not selected, what is selected."""
    names = [aggregation.table(level) + end for level in aggregation.levels for end in ("", REMOVED)]
    attributes = _attributes(aggregation)
    return {name: StreamDef(name, attributes) for name in names}


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
