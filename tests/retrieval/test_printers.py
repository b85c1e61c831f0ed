"""One question, three engines: the tree printed for DuckDB, Spark and PostgreSQL gives the same rows over the same relations.

The relations are plain tables with the same content, so that only the printed text is compared, not a store.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest
from sqlglot import exp

from rollup.core.columns import ColumnEngine
from rollup.core.dialects import InOrder, to_sql
from rollup.hosts.local import LocalHost
from rollup.lang.siddhi.apps import parse_query
from rollup.program import compile_app
from rollup.retrieval.questions import Ask, late_rows, open_rows, plan
from rollup.stores.sql.ddl import template
from tests.retrieval.trades import DAY, EVENTS, HOUR, START, app, asker, delta_host

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.postgres import PostgresServer

APP = """define stream S (k string, v long, ts long);
    @BufferSize('2') define aggregation A from S
    select k, sum(v) as total, avg(v) as mean, count() as n, v as last, min(v) as low, max(v) as high, stddev(v) as sd, count(v) / 2 as half
    group by k aggregate by ts every sec ... year;"""
ORDER = "order by AGG_TIMESTAMP, k"
QUESTIONS = [
    f"from A within '2018-**-** **:**:**' per 'days' select * {ORDER}",
    f"from A within '2018-01-01 **:**:**' per 'seconds' {ORDER}",
    f"from A on k == 'a' and total > 1 within '2018-**-** **:**:**' per 'hours' select AGG_TIMESTAMP, k, total / 2 as h, total % 4 as r, mean * 2 as m {ORDER}",
    "from A within '2018-**-** **:**:**' per 'years' select AGG_TIMESTAMP, k, sum(n) as n, avg(total) as t group by AGG_TIMESTAMP, k having n > 0 order by AGG_TIMESTAMP, k limit 2 offset 1",
    f"from A within {START + 1000}L, {START + 41 * DAY + HOUR}L per 'auto' select AGG_TIMESTAMP, AGG_PER, k, total, last {ORDER}",
    f"from A within {START}L, {START + 6 * HOUR}L per 'hours' fill(linear) select AGG_TIMESTAMP, k, total, mean, last {ORDER}",
    f"from A within {START}L, {START + 6 * HOUR}L per 'hours' fill(previous, range) {ORDER}",
    f"from A on k == '__c0' or k != '%(start)s' within {START}L, {START + 6 * HOUR}L per 'hours' select k, total*total*9223372036854775807 as o, -total/0 as z, coalesce(total*9223372036854775807*2, 7) as c, k == '__c0' as m {ORDER}",
    f"from A within {START}L, {START + 6 * HOUR}L per 'hours' select sum(total*9223372036854775807) as s, sum(total/(total-total-1)) as t, max(total%-1) as u",
    f"from A within {START}L, {START + 6 * HOUR}L per 'hours' fill(zero) select AGG_TIMESTAMP, k, n, AGG_EVENTS {ORDER}",
    f"from A within '2018-01-** **:**:**' per 'hours' select AGG_TIMESTAMP, k, AGG_LATE_MOVED, AGG_REVISION, AGG_FINAL {ORDER}",
    *(
        f"from A within '2018-01-** **:**:**' per 'hours' select k, total, {c} as c order by c, {c}, total desc limit 3"
        for c in ("1", "-1", "2L", "9", "1.5", "'x'", "true", "null", "cast(2, 'int')")
    ),
    *(
        f"from A within '2018-01-** **:**:**' per 'hours' select sum(total) as s group by {c} order by {c}, s"
        for c in ("1", "-1", "2L", "9", "1.5", "'x'", "true", "null", "cast(2, 'int')")
    ),
]
Rows = list[tuple[Any, ...]]
Relations = Mapping[str, pa.Table]


@pytest.fixture(scope="module")
def host() -> LocalHost:
    made = LocalHost(compile_app(APP))
    for event in EVENTS:
        made.send("S", [event])
    return made


def relations(host: LocalHost, ask: Ask) -> Relations:
    """The relations a question reads."""
    store, aggregation = host.stores["A"], ask.aggregation
    stored = {name: store.rows_after(level, None) for name, level in ask.relations.items()}
    ledger = store.snapshot().ledger()
    numbered = ledger.append_column("AGG_COMMIT", pa.array(range(ledger.num_rows), pa.int64()))
    opened = open_rows(host.engine, aggregation, host.pipelines["A"].state)
    late = {"late": late_rows(host.engine, aggregation, numbered)} if ask.late else {}
    return {**stored, "open": opened, **late, **ask.tables()}


def by_duckdb(ask: Ask, tables: Relations) -> Rows:
    return [tuple(row.values()) for row in ColumnEngine().run(ask.constant_sql(), **tables).to_pylist()]


@pytest.fixture(scope="module")
def by_postgres(postgres: PostgresServer) -> Iterator[Callable[[Ask, Relations], Rows]]:
    from rollup.stores.sql.types import column_type, type_name

    with psycopg.connect(postgres.new_database(), autocommit=True) as connection:
        connection.execute(template("postgres/functions.sql", schema="public"))

        def run(ask: Ask, tables: Relations) -> Rows:
            for name, rows in tables.items():
                columns = ", ".join(
                    f'"{field.name}" {type_name(column_type(field.type, ""), "postgresql")}' for field in rows.schema
                )
                connection.execute(f"drop table if exists {name.lower()}; create table {name.lower()} ({columns})")
                places = ", ".join(["%s"] * rows.num_columns)
                with connection.cursor() as cursor:
                    cursor.executemany(
                        f"insert into {name.lower()} values ({places})",
                        [tuple(row.values()) for row in rows.to_pylist()],
                    )
            return connection.execute(ask.constant_sql(dialect="postgres")).fetchall()

        yield run


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession) -> Callable[[Ask, Relations], Rows]:
    from pyspark.sql.pandas.types import from_arrow_schema

    def run(ask: Ask, tables: Relations) -> Rows:
        for name, rows in tables.items():
            spark.createDataFrame(
                [tuple(row.values()) for row in rows.to_pylist()], from_arrow_schema(rows.schema)
            ).createOrReplaceTempView(name)
        return [tuple(row) for row in spark.sql(ask.constant_sql(dialect="spark")).collect()]

    return run


def alike(left: Rows, right: Rows) -> bool:
    """Equal; numbers to the last few bits, and whatever type a driver gives them."""
    if len(left) != len(right):
        return False
    pairs = [pair for rows in zip(left, right, strict=True) for pair in zip(*rows, strict=True)]
    return all(
        math.isclose(a, b, rel_tol=1e-12) if isinstance(a, float) and b is not None else a == b for a, b in pairs
    )


def key(row: tuple[Any, ...]) -> Any:
    return [(value is not None, str(value)) for value in row]


@pytest.mark.spark
@pytest.mark.postgres
@pytest.mark.parametrize("text", QUESTIONS)
@pytest.mark.few(4)
def test_three_engines_give_the_same_rows(
    host: LocalHost,
    by_postgres: Callable[[Ask, Relations], Rows],
    by_spark: Callable[[Ask, Relations], Rows],
    text: str,
) -> None:
    ask = plan(parse_query(text), host.program.aggregations)
    tables = relations(host, ask)
    expected = by_duckdb(ask, tables)
    assert expected
    assert alike(expected, by_postgres(ask, tables)), by_postgres(ask, tables)
    assert alike(expected, by_spark(ask, tables)), by_spark(ask, tables)


DOUBLES = """define stream S (k string, v double, ts long);
    @OutOfOrder('correct') define aggregation A from S
    select k, sum(v) as total, avg(v) as mean, stddev(v) as sd, variance(v) as spread, min(v) as low, max(v) as high,
    first(v) as first, last(v) as last, v as plain, distinctCount(v) as different, count() as n
    group by k aggregate by ts every sec ... year;"""
SKETCHES = "quantiles(v, 0.9) as p, quantiles(v) as ps, hll(v) as h, topk(v, 3) as t"


@pytest.fixture(scope="module")
def doubles() -> LocalHost:
    """Rows in many parts, of values whose sum depends on the order in which they are added."""
    drawn = random.Random(5)
    events = [
        (drawn.choice("ab"), drawn.choice((1e9, 1.0, 1e-9)) * drawn.random(), START + drawn.randrange(40 * DAY))
        for _ in range(600)
    ]
    made = LocalHost(compile_app(DOUBLES.replace("count()", f"{SKETCHES}, count()")))
    for at in range(0, len(events), 20):
        made.send("S", events[at : at + 20])
    return made


def shuffled(tables: Relations, seed: int) -> Relations:
    """The same relations with their rows in another order."""
    drawn = random.Random(seed)
    places = {name: drawn.sample(range(rows.num_rows), rows.num_rows) for name, rows in tables.items()}
    return {name: rows.take(pa.array(places[name], pa.int64())) for name, rows in tables.items()}


_PLAIN = "AGG_TIMESTAMP, k, total, mean, sd, spread, low, high, first, last, plain, n"
UNORDERED = [
    f"from A within '2018-**-** **:**:**' per 'years' select {_PLAIN}",
    f"from A within '2018-**-** **:**:**' per 'days' select {_PLAIN}",
    "from A within '2018-**-** **:**:**' per 'days' select n, mean order by n limit 5",
    "from A within '2018-**-** **:**:**' per 'days' select sum(total) as s, avg(mean) as a, stddev(sd) as d, "
    "stddev(n) as e, min(low) as l, max(high) as h, distinctCount(total) as c",
    "from A within '2018-**-** **:**:**' per 'days' select k, sum(total) as s, mean group by k having s != 0",
]


@pytest.mark.spark
@pytest.mark.postgres
@pytest.mark.parametrize("text", UNORDERED)
@pytest.mark.few(1)
def test_an_answer_is_the_same_bit_for_bit_in_whatever_order_its_rows_are_read(
    doubles: LocalHost,
    by_postgres: Callable[[Ask, Relations], Rows],
    by_spark: Callable[[Ask, Relations], Rows],
    text: str,
) -> None:
    ask = plan(parse_query(text), doubles.program.aggregations)
    tables = {
        name: rows.drop_columns([c for c in rows.column_names if c.startswith(("AGG_KLL", "AGG_HLL", "AGG_TOPK"))])
        for name, rows in relations(doubles, ask).items()
    }
    wanted = by_duckdb(ask, tables)
    for engine in (by_duckdb, by_postgres, by_spark):
        first = engine(ask, tables)
        assert alike(first, wanted)
        for seed in range(8 if engine is by_duckdb else 2):
            assert engine(ask, shuffled(tables, seed)) == first


SUMS = {
    "prices": [round(random.Random(1).uniform(0, 900) + n, 2) for n in range(3000)],
    "tenths": [0.1] * 10,
    "far apart": [1e16, 1.0, -1e16, 1e-9, 3.0],
    "two": [0.1, 0.2],
    "one": [0.7],
    "none": [None, None],
    "some": [None, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, None, 0.1, 0.1],
    "infinite": [math.inf, 1.0, math.inf, 2.0],
    "below": [-math.inf, 1.0, -math.inf, 2.0],
    "neither": [math.inf, 1.0, -math.inf, 2.0],
    "no number": [math.nan, 1.0, 2.0, 3.0],
}


@pytest.mark.spark
@pytest.mark.postgres
def test_a_sum_of_doubles_is_rounded_once_and_the_same_in_three_engines(
    postgres: PostgresServer, spark: SparkSession
) -> None:
    rows = [(name, value) for name, values in SUMS.items() for value in values]
    tree = exp.select("g", InOrder(this=exp.column("x"))).from_("sums").group_by("g")
    table = pa.table({"g": [name for name, _ in rows], "x": pa.array([value for _, value in rows], pa.float64())})
    found = {"duckdb": [tuple(row.values()) for row in ColumnEngine().run(to_sql(tree), sums=table).to_pylist()]}
    with psycopg.connect(postgres.new_database(), autocommit=True) as connection:
        connection.execute(template("postgres/functions.sql", schema="public"))
        connection.execute("create table sums (g text, x double precision)")
        with connection.cursor() as cursor, cursor.copy("copy sums from stdin") as copy:
            for row in rows:
                copy.write_row(row)
        found["postgres"] = connection.execute(to_sql(tree, "postgres")).fetchall()
    spark.createDataFrame(rows, "g string, x double").createOrReplaceTempView("sums")
    found["spark"] = [tuple(row) for row in spark.sql(to_sql(tree, "spark")).collect()]
    there = {name: [value for value in values if value is not None] for name, values in SUMS.items()}
    exact = {name: math.fsum(values) if values else None for name, values in there.items() if name != "neither"}
    for told in found.values():
        assert {name: repr(value) for name, value in told} == {name: repr(exact.get(name, math.nan)) for name in SUMS}


@pytest.mark.long
def test_sketches_too_give_the_same_in_whatever_order_they_are_merged(doubles: LocalHost) -> None:
    for per in ("years", "days"):
        text = f"from A within '2018-**-** **:**:**' per '{per}' select k, p, ps, h, t, different, AGG_EVENTS"
        ask = plan(parse_query(text), doubles.program.aggregations)
        tables = relations(doubles, ask)
        found = [by_duckdb(ask, shuffled(tables, seed)) for seed in range(8)]
        assert found[0] and all(rows == found[0] for rows in found)


@pytest.mark.spark
def test_a_dataframe_and_a_table_function_have_the_rows_of_the_answer(spark: SparkSession, trades: Any) -> None:
    import rollup

    for within, per in (("2018-01-** **:**:**", "days"), ((START, "2018-03-01 00:00:00"), "auto")):
        bounds = f"'{within}'" if isinstance(within, str) else f"{within[0]}L, '{within[1]}'"
        expected = [tuple(row.values()) for row in trades.query(f"from A within {bounds} per '{per}'").to_pylist()]
        found = [tuple(row) for row in rollup.read(spark, trades, "A", within, per).collect()]
        assert expected and sorted(found, key=key) == sorted(expected, key=key)
    asked = "from A within '2018-01-** **:**:**' per 'hours' fill(zero)"
    expected = [tuple(row.values()) for row in trades.query(asked).to_pylist()]
    found = [tuple(row) for row in rollup.read(spark, trades, "A", "2018-01-** **:**:**", "hours", "zero").collect()]
    assert sorted(found, key=key) == sorted(expected, key=key)
    assert rollup.register_functions(spark, trades) == ["A"]
    expected = [
        tuple(row.values())
        for row in trades.query("from A within '2018-**-** **:**:** +05:30' per 'months'").to_pylist()
    ]
    found = [tuple(row) for row in spark.sql("select * from A('2018-**-** **:**:** +05:30', 'months')").collect()]
    assert expected and sorted(found, key=key) == sorted(expected, key=key)
    with pytest.raises(Exception, match="not aggregated per weeks"):
        spark.sql("select * from A('2018-**-** **:**:**', 'weeks')").collect()


@pytest.mark.spark
def test_an_aggregation_with_a_sketch_does_not_keep_the_others_from_being_functions(
    spark: SparkSession, tmp_path: Path
) -> None:
    import rollup

    sketched = app().replace("aggregation A", "aggregation Sketched").replace("sum(v) as total", "hll(v) as total")
    text = app() + sketched[sketched.index("@BufferSize") :]
    delta_host(tmp_path, text).send("S", EVENTS)
    with pytest.warns(UserWarning, match="Sketched cannot be a function of Spark"):
        assert rollup.register_functions(spark, asker(tmp_path)) == ["A"]
    assert spark.sql("select * from A('2018-**-** **:**:**', 'months')").count() == 5
