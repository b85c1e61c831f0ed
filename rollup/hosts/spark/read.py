"""Answers as Spark DataFrames, for joins with big tables: the same rows, of one commit, computed by Spark.

`read` gives one answer. `register_functions` makes every aggregation a table function of the session, so that plain SQL
can ask: `spark.sql("select * from TradeAgg('2018-01-** **:**:**', 'days')")`. Its patterns are read by SQL, because the
text of a statement is Spark's alone; constants are folded, so a level that is not asked for is not read.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa
from sqlglot import exp

from rollup.ask import Asker, opened
from rollup.conf import Conf
from rollup.core.calendar import Duration
from rollup.core.dialects import to_sql
from rollup.core.errors import QueryError
from rollup.plan.aggregation import TIMESTAMP, Aggregation, column
from rollup.plan.app import Selection
from rollup.plan.types import Type
from rollup.retrieval.answer import Part, between, level_rows
from rollup.retrieval.questions import Ask, ask_for, bounds, zone_for
from rollup.stores.base import FiledSnapshot

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
    start, end = bounds([within] if isinstance(within, (str, int)) else list(within), zone_for(found, per))
    ask = ask_for(found, start, end, per, Selection(), fill)
    snapshot = asker.snapshot(aggregation)
    if snapshot.in_files is None or found.sketches:
        return spark.createDataFrame(snapshot.answer(ask))  # type: ignore[arg-type]
    return _over_files(spark, ask, snapshot.in_files)


def _over_files(spark: SparkSession, ask: Ask, snapshot: FiledSnapshot) -> DataFrame:
    relations = {
        "open": _frame(spark, snapshot.open),
        **{name: _frame(spark, rows) for name, rows in ask.tables().items()},
    }
    for name, level in ask.relations.items():
        files = sorted({file for start, end in ask.ranges(level) for file in snapshot.files(level, start, end)})
        relations[name] = _parquet(spark, ask.aggregation, files)
    parts = ", ".join(f"{name} AS (SELECT * FROM {{{name}}})" for name in relations)
    asked = ask.constant_sql(dialect="spark").replace("{", "{{").replace("}", "}}")
    return spark.sql(f"WITH {parts} ({asked})", None, **relations)


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
    commit that was the newest when it was made: call this again to see later ones. An aggregation that Spark cannot
    compute (sketches, another store than Delta) is left out with a warning. Raises QueryError when all are.
    """
    asker = opened(conf)
    made, left = list[str](), list[str]()
    for name, aggregation in asker.program.aggregations.items():
        snapshot = asker.snapshot(name).in_files
        if snapshot is None or aggregation.sketches:
            left.append(name)
            continue
        views = _views(spark, aggregation, snapshot)
        spark.sql(_function(aggregation, views))
        _drop_older(spark, name, list(views.values()))
        made.append(name)
    said = f"{', '.join(left)} cannot be a function of Spark"
    if left and not made:
        raise QueryError(said, hint="use rollup.read, which asks its store")
    if left:
        warnings.warn(f"{said}; rollup.read asks its store", stacklevel=2)
    return made


def _views(spark: SparkSession, aggregation: Aggregation, snapshot: FiledSnapshot) -> Mapping[str, str]:
    """Temporary views of the tables at their pinned versions, and of the open rows."""
    prefix = f"rollup_{aggregation.name}_{snapshot.number}"
    views = {"open": f"{prefix}_open"}
    _frame(spark, snapshot.open).createOrReplaceTempView(views["open"])
    for level in aggregation.levels:
        views[level.table_suffix] = f"{prefix}_{level.plural}"
        _parquet(spark, aggregation, snapshot.files(level)).createOrReplaceTempView(views[level.table_suffix])
    return views


_VIEWS: WeakKeyDictionary[SparkSession, dict[str, list[list[str]]]] = WeakKeyDictionary()
"""The views of each session that functions were made over, by aggregation, oldest commit first."""


def _drop_older(spark: SparkSession, name: str, views: list[str]) -> None:
    """Let go of the views, with the open rows in them, that no function reads any more.

    Those of the function before stay until the next time: a question that has just begun may still look them up.
    """
    known = _VIEWS.setdefault(spark, {}).setdefault(name, [])
    known[:] = [each for each in known if each != views] + [views]
    while len(known) > 2:
        for view in known.pop(0):
            spark.catalog.dropTempView(view)


def _function(aggregation: Aggregation, views: Mapping[str, str]) -> str:
    kinds = {TIMESTAMP: Type.LONG, **{output.name: output.type for output in aggregation.outputs}}
    columns = ", ".join(f"`{name}` {kind.sql.sql('spark')}" for name, kind in kinds.items())
    wanted = f"lower(trim(if({_THREE} is null, {_TWO}, {_THREE})))"
    low, high = _ends(aggregation.zone)
    branches = [_branch(aggregation, level, views, wanted, low, high, kinds) for level in aggregation.levels]
    words = sorted(word for level in aggregation.levels for word in _words(level))
    nulls = ", ".join(f"cast(null as {kind.sql.sql('spark')})" for kind in kinds.values())
    known = ", ".join(level.plural for level in aggregation.levels)
    refusal = f"concat('{aggregation.name} is not aggregated per ', {wanted}, '; it has {known}')"
    listed = ", ".join(f"'{word}'" for word in words)
    branches.append(f"select {nulls} where {wanted} not in ({listed}) and raise_error({refusal}) is null")
    return (
        f"create or replace temporary function `{aggregation.name}`({_ONE} string, {_TWO} string, {_THREE} string default null)"
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
        aggregation, [Part(level, views[level.table_suffix], views["open"], between(low, high))], aggregation.outputs
    )
    typed = [exp.alias_(exp.cast(column(name), kind.sql), name, quoted=True) for name, kind in kinds.items()]
    listed = ", ".join(f"'{word}'" for word in _words(level))
    query = exp.select(*typed).from_(rows.subquery("b")).where(exp.Var(this=f"{wanted} in ({listed})"))
    return to_sql(query, "spark")


def _words(level: Duration) -> list[str]:
    return [level.plural, level.unit, *({Duration.SECONDS: ["sec"], Duration.MINUTES: ["min"]}.get(level, []))]


# A bound in Spark SQL: milliseconds as they are, a text as an instant; one pattern gives both by its stars.

_ONE, _TWO, _THREE = "agg_one", "agg_two", "agg_three"
"""Parameters of the functions; no column may have such a name, and a column would hide one of its own."""
_STAMP = f"substring(trim({_ONE}), 1, 19)"
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


def _instant(text: str, zone: str) -> str:
    has_zone = f"{text} rlike '([+-][0-9]{{2}}:?[0-9]{{2}}|Z|[A-Za-z]+/[A-Za-z_]+)$'"
    stamp = f"unix_millis(try_cast(if({has_zone}, {text}, concat({text}, ' ', {zone})) as timestamp))"
    return f"coalesce(try_cast({text} as bigint), {stamp})"


def _bound(pattern: str, text: str, zone: str) -> str:
    # `try_cast`, because Spark computes both branches of a constant condition before it chooses one.
    refusal = f"raise_error(concat('not a time: ', if({_THREE} is null, {_ONE}, {text})))"
    return f"coalesce(if({_THREE} is null, {pattern}, {_instant(f'trim({text})', zone)}), {refusal})"


def _ends(zone: str) -> tuple[exp.Var, exp.Var]:
    """Start and end of the range; texts without a zone are in `zone`."""
    default = to_sql(exp.Literal.string(zone), "spark")
    own = f"if(length(trim({_ONE})) > 19, trim(substring(trim({_ONE}), 20)), {default})"
    start, end = _bound(_zoned(_FLOOR, own), _ONE, default), _bound(_zoned(_AFTER, own), _TWO, default)
    return exp.Var(this=f"({start})"), exp.Var(this=f"({end})")
