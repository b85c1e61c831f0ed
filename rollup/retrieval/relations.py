"""The relations `open` and `late` of an answer: rows with the start of their bucket at every level.

They are computed once a commit, so that a question only compares numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa
from sqlglot import exp

from rollup.aggregation.state import State
from rollup.core import buckets
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.dialects import to_sql
from rollup.core.untyped import pc
from rollup.plan.aggregation import TIMESTAMP, Aggregation, column
from rollup.retrieval.answer import LEVEL, bucket_column


def open_rows(engine: ColumnEngine, aggregation: Aggregation, state: State) -> pa.Table:
    """All open rows in one table: AGG_LEVEL, the state columns, and from each row's level on its bucket starts.

    It is both what a restart loads and what a reader adds to the stored rows.
    """
    rows = {f"open_{int(level)}": table for level, table in state.open.items() if table.num_rows}
    if not rows:
        return pa.Table.from_batches([], open_schema(aggregation))
    made, schema = engine.run(_open_sql(aggregation, tuple(rows)), **rows), open_schema(aggregation)
    return made if made.schema.equals(schema) else made.cast(schema)  # a cast to what it is costs a library


def open_extents(engine: ColumnEngine, aggregation: Aggregation, rows: pa.Table) -> Mapping[Duration, tuple[int, int]]:
    """For each level to whose buckets some of the open rows belong, the first and the last of these buckets."""
    found = engine.run(_extents_sql(aggregation), rows=rows).to_pylist()[0]
    pairs = ((level, found[f"low_{level:d}"], found[f"high_{level:d}"]) for level in aggregation.levels)
    return {level: (low, high) for level, low, high in pairs if low is not None}


@lru_cache(maxsize=256)
def _extents_sql(aggregation: Aggregation) -> str:
    ends = [
        exp.alias_(function(this=column(bucket_column(level))), f"{name}_{level:d}")
        for level in aggregation.levels
        for name, function in (("low", exp.Min), ("high", exp.Max))
    ]
    return to_sql(exp.select(*ends).from_("rows"))


@lru_cache(maxsize=256)
def _open_sql(aggregation: Aggregation, relations: tuple[str, ...]) -> str:
    numbered = [
        exp.select("*", exp.alias_(exp.cast(exp.Literal.number(name[5:]), "int"), LEVEL, quoted=True)).from_(name)
        for name in relations
    ]
    rows = numbered[0] if len(numbered) == 1 else exp.union(*numbered, distinct=False)
    own = {
        level: exp.LTE(this=column(LEVEL), expression=exp.Literal.number(int(level))) for level in aggregation.levels
    }
    starts = {level: buckets.start(column(TIMESTAMP), level, aggregation.row_zone) for level in aggregation.levels}
    cut = [
        exp.Case(ifs=[exp.If(this=own[level], true=starts[level])]).as_(bucket_column(level), quoted=True)
        for level in starts
    ]
    return to_sql(exp.select("*", *cut).from_(rows.subquery("rows")))


def open_schema(aggregation: Aggregation) -> pa.Schema:
    """Arrow schema of `open_rows`."""
    cut = [(bucket_column(level), pa.int64()) for level in aggregation.levels]
    return pa.schema([*aggregation.state_schema, pa.field(LEVEL, pa.int32()), *(pa.field(*pair) for pair in cut)])


def state_rows(aggregation: Aggregation, rows: pa.Table) -> Mapping[Duration, pa.Table]:
    """The open rows of each level out of the table that `open_rows` made."""
    return {
        level: rows.filter(pc.equal(rows[LEVEL], int(level))).select(aggregation.state_schema.names)
        for level in aggregation.levels
    }


def late_rows(engine: ColumnEngine, aggregation: Aggregation, ledger: pa.Table) -> pa.Table:
    """The ledger of late events, which has a column `commit`, with each row's bucket starts."""
    return engine.run(_late_sql(aggregation), ledger=ledger)


@lru_cache(maxsize=256)
def _late_sql(aggregation: Aggregation) -> str:
    starts = {level: buckets.start(column(TIMESTAMP), level, aggregation.row_zone) for level in aggregation.levels}
    return to_sql(
        exp.select("*", *(start.as_(bucket_column(level), quoted=True) for level, start in starts.items())).from_(
            "ledger"
        )
    )
