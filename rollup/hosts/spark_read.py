"""Answers as Spark DataFrames, for joins with big tables: the same rows, of one commit, computed by Spark.

`read` gives one answer. `register_functions` makes every aggregation a table function of the session, so that plain SQL
can ask: `spark.sql("select * from TradeAgg('2018-01-** **:**:**', 'days')")`. Its patterns are read by SQL, because the
text of a statement is Spark's alone; constants are folded, so a level that is not asked for is not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from sqlglot import exp

from rollup.aggregation.answer import Part, between, level_rows
from rollup.aggregation.retrieval import Ask, ask_for, bounds
from rollup.ask import Asker, opened
from rollup.calendar import Duration
from rollup.conf import Conf
from rollup.errors import QueryError
from rollup.plan.aggregation import TIMESTAMP, Aggregation, column
from rollup.plan.app import Selection
from rollup.plan.dialects import to_sql
from rollup.plan.types import Type
from rollup.stores.delta_read import DeltaSnapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Bound = str | int


def read(
    spark: SparkSession,
    conf: Conf | Asker | Path | str,
    aggregation: str,
    within: Bound | Sequence[Bound],
    per: str,
    fill: str | None = None,
) -> DataFrame:
    """The rows of an aggregation per `per` ('days', 'auto', …) as a DataFrame: AGG_TIMESTAMP and the selected columns.

    `within` is one pattern or a start and an end. The rows are those of the newest commit at the time of this call,
    however late they are used: the table's files stay for an hour after they are replaced. Raises QueryError.
    """
    asker = opened(conf)
    found = asker.program.aggregations.get(aggregation)
    if found is None:
        raise QueryError(
            f"aggregation {aggregation!r} is not defined", hint=f"known are {', '.join(asker.program.aggregations)}"
        )
    start, end = bounds([within] if isinstance(within, (str, int)) else list(within))
    ask = ask_for(found, start, end, per, Selection(), fill)
    snapshot = asker.snapshot(aggregation)
    if not isinstance(snapshot, DeltaSnapshot) or found.sketches:
        return spark.createDataFrame(snapshot.answer(ask))  # type: ignore[arg-type]
    return _over_files(spark, ask, snapshot)


def _over_files(spark: SparkSession, ask: Ask, snapshot: DeltaSnapshot) -> DataFrame:
    relations = {
        "open": _frame(spark, snapshot.open),
        **{name: _frame(spark, rows) for name, rows in ask.tables().items()},
    }
    for name, level in ask.relations.items():
        files = sorted({file for start, end in ask.ranges(level) for file in snapshot.files(level, start, end)})
        relations[name] = _parquet(spark, ask.aggregation, files)
    views = {name: f"rollup_{uuid4().hex}" for name in relations}
    for name, view in views.items():
        relations[name].createOrReplaceTempView(view)
    try:
        parts = ", ".join(f"{name} AS (SELECT * FROM {view})" for name, view in views.items())
        return spark.sql(f"WITH {parts} {ask.constant_sql(dialect='spark')}")
    finally:
        for view in views.values():
            spark.catalog.dropTempView(view)


def _parquet(spark: SparkSession, aggregation: Aggregation, files: Sequence[str]) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(aggregation.table_schema)
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(f"file://{file}" for file in files))


def _frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    if not rows.num_rows:
        return spark.createDataFrame([], from_arrow_schema(rows.schema))
    return spark.createDataFrame(rows)  # type: ignore[arg-type]


# Table functions


def register_functions(spark: SparkSession, conf: Conf | Asker | Path | str) -> list[str]:
    """Make (or renew) a temporary table function for each aggregation; their names.

    `TradeAgg(pattern, per)` and `TradeAgg(start, end, per)`; bounds are texts or milliseconds. A function reads the
    commit that was the newest when it was made: call this again to see later ones. Raises QueryError for an
    aggregation that Spark cannot compute.
    """
    asker = opened(conf)
    for name, aggregation in asker.program.aggregations.items():
        snapshot = asker.snapshot(name)
        if not isinstance(snapshot, DeltaSnapshot) or aggregation.sketches:
            raise QueryError(f"{name} cannot be a function of Spark", hint="use rollup.read, which asks its store")
        spark.sql(_function(aggregation, _views(spark, aggregation, snapshot)))
    return list(asker.program.aggregations)


def _views(spark: SparkSession, aggregation: Aggregation, snapshot: DeltaSnapshot) -> Mapping[str, str]:
    """Temporary views of the tables at their pinned versions, and of the open rows."""
    prefix = f"rollup_{aggregation.name}_{snapshot.number}"
    views = {"open": f"{prefix}_open"}
    _frame(spark, snapshot.open).createOrReplaceTempView(views["open"])
    for level in aggregation.levels:
        views[level.table_suffix] = f"{prefix}_{level.plural}"
        _parquet(spark, aggregation, snapshot.files(level)).createOrReplaceTempView(views[level.table_suffix])
    return views


def _function(aggregation: Aggregation, views: Mapping[str, str]) -> str:
    kinds = {TIMESTAMP: Type.LONG, **{output.name: output.type for output in aggregation.outputs}}
    columns = ", ".join(f"`{name}` {kind.sql.sql('spark')}" for name, kind in kinds.items())
    wanted = "lower(trim(if(three is null, two, three)))"
    low, high = exp.Var(this=f"({_START})"), exp.Var(this=f"({_END})")
    branches = [_branch(aggregation, level, views, wanted, low, high, kinds) for level in aggregation.levels]
    words = sorted(word for level in aggregation.levels for word in _words(level))
    nulls = ", ".join(f"cast(null as {kind.sql.sql('spark')})" for kind in kinds.values())
    known = ", ".join(level.plural for level in aggregation.levels)
    refusal = f"concat('{aggregation.name} is not aggregated per ', {wanted}, '; it has {known}')"
    listed = ", ".join(f"'{word}'" for word in words)
    branches.append(f"select {nulls} where {wanted} not in ({listed}) and raise_error({refusal}) is null")
    return (
        f"create or replace temporary function `{aggregation.name}`(one string, two string, three string default null)"
        f" returns table ({columns}) return {' union all '.join(branches)}"
    )


def _branch(
    aggregation: Aggregation,
    level: Duration,
    views: Mapping[str, str],
    wanted: str,
    low: exp.Var,
    high: exp.Var,
    kinds: Mapping[str, Type],
) -> str:
    rows = level_rows(
        aggregation, Part(level, views[level.table_suffix], views["open"], between(low, high)), aggregation.outputs
    )
    typed = [exp.alias_(exp.cast(column(name), kind.sql), name, quoted=True) for name, kind in kinds.items()]
    listed = ", ".join(f"'{word}'" for word in _words(level))
    query = exp.select(*typed).from_(rows.subquery("b")).where(exp.Var(this=f"{wanted} in ({listed})"))
    return to_sql(query, "spark")


def _words(level: Duration) -> list[str]:
    return [level.plural, level.unit, *({Duration.SECONDS: ["sec"], Duration.MINUTES: ["min"]}.get(level, []))]


# A bound in Spark SQL: milliseconds as they are, a text as an instant; one pattern gives both by its stars.

_STAMP = "substring(trim(one), 1, 19)"
_ZONE = "if(length(trim(one)) > 19, trim(substring(trim(one), 20)), '+00:00')"
_FLOOR = f"concat(replace(substring({_STAMP}, 1, 10), '**', '01'), replace(substring({_STAMP}, 11), '**', '00'))"
_STARS = f"((length({_STAMP}) - length(replace({_STAMP}, '**', ''))) div 2)"
_UNITS = (
    "interval 1 second",
    "interval 1 minute",
    "interval 1 hour",
    "interval 1 day",
    "interval 1 month",
    "interval 1 year",
)
_NEXT = " ".join(f"when {stars} then try_cast({_FLOOR} as timestamp_ntz) + {unit}" for stars, unit in enumerate(_UNITS))
_AFTER = f"date_format(case {_STARS} {_NEXT} end, 'yyyy-MM-dd HH:mm:ss')"


def _zoned(text: str, zone: str) -> str:
    return f"unix_millis(try_cast(concat({text}, ' ', {zone}) as timestamp))"


def _instant(text: str) -> str:
    has_zone = f"{text} rlike '([+-][0-9]{{2}}:?[0-9]{{2}}|Z|[A-Za-z]+/[A-Za-z_]+)$'"
    stamp = f"unix_millis(try_cast(if({has_zone}, {text}, concat({text}, ' +00:00')) as timestamp))"
    return f"coalesce(try_cast({text} as bigint), {stamp})"


def _bound(pattern: str, text: str) -> str:
    # `try_cast`, because Spark computes both branches of a constant condition before it chooses one.
    refusal = f"raise_error(concat('not a time: ', if(three is null, one, {text})))"
    return f"coalesce(if(three is null, {pattern}, {_instant(f'trim({text})')}), {refusal})"


_START = _bound(_zoned(_FLOOR, _ZONE), "one")
_END = _bound(_zoned(_AFTER, _ZONE), "two")
