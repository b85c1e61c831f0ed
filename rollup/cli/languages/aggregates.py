"""The aggregations of a job as tables of streaming SQL: `TradeAgg_MINUTES` and its like, closed and open buckets together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from sqlglot import exp

from rollup.aggregation.closings import closing_streams
from rollup.ask import Asker, opened
from rollup.core.calendar import Duration, bucket_end
from rollup.lang.calcite.catalog import FROM
from rollup.lang.calcite.model import Table
from rollup.plan.aggregation import TIMESTAMP, Aggregation
from rollup.plan.types import Type

_ALWAYS = "0L, 253402300799999L"
"""From 1970 to the end of the year 9999."""


def aggregate_tables(conf: Path) -> Iterator[Table]:
    """A table for each level of each aggregation. As of a time, a key has the row of the last bucket that had ended."""
    asker = opened(conf)
    for aggregation in asker.program.aggregations.values():
        streams = closing_streams(aggregation)
        for level in aggregation.levels:
            name = aggregation.table(level)
            kinds = streams[name].attributes.items()
            columns = tuple((each, "TIMESTAMP" if each == TIMESTAMP else _duck(kind)) for each, kind in kinds)
            keys = tuple(key.name for key in aggregation.keys)
            rows = partial(_rows, asker, aggregation, level, tuple(each for each, _ in columns))
            yield Table(name, columns, stream=False, table=True, key=keys, temporal=True, rows=rows, buckets=True)


def _duck(kind: Type) -> str:
    return exp.DataType.build(kind.sql, dialect="duckdb").sql("duckdb")


def _rows(asker: Asker, aggregation: Aggregation, level: Duration, names: tuple[str, ...]) -> pa.Table:
    """Every bucket of a level, with the time at which it ended."""
    shown = ", ".join(names)
    found = asker.query(f"from {aggregation.name} within {_ALWAYS} per '{level.plural}' select {shown}")
    begins = found.column(TIMESTAMP).to_pylist()
    ends = {begin: bucket_end(begin, level, aggregation.zone) for begin in set(begins)}
    columns = {name: found.column(name) for name in names}
    columns[TIMESTAMP] = found.column(TIMESTAMP).cast(pa.timestamp("ms"))
    ended = pa.array([ends[begin] for begin in begins], pa.int64()).cast(pa.timestamp("ms")).cast(pa.timestamp("us"))
    return pa.table({**columns, FROM: ended})
