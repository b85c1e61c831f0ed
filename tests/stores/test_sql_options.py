"""What needs no server: the options of @store, the DDL of each database as text, and names that are too long."""

from __future__ import annotations

import pytest

from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError
from rollup.program import compile_app
from rollup.stores.databases import store_of
from rollup.stores.sql.ddl import Tables, table_ddl
from rollup.stores.sql.options import StoreOptions
from tests.stores.samples import aggregation

PAGE = """define stream TradeStream (symbol string, price double, quantity long, timestamp long);
@BufferSize('3') @IgnoreEventsOlderThanBuffer('true')
@store(type='rdbms', jdbc.url="jdbc:{url}", username="root", password="root", jdbc.driver.name="com.mysql.jdbc.Driver")
define aggregation {name} from TradeStream select symbol, avg(price) as avgPrice, sum(quantity) as total
group by symbol aggregate by timestamp every sec ... year;"""


@pytest.mark.parametrize(
    ("jdbc", "url"),
    [
        ("jdbc:mysql://localhost:3306/TestDB", "mysql+pymysql://root:***@localhost:3306/TestDB"),
        ("jdbc:mysql://db/TestDB?useSSL=false", "mysql+pymysql://root:***@db/TestDB"),
        ("jdbc:postgresql://db:5433/trades", "postgresql+psycopg2://root:***@db:5433/trades"),
        ("jdbc:postgresql://db/trades?sslmode=require", "postgresql+psycopg2://root:***@db/trades?sslmode=require"),
        (
            "jdbc:postgresql://db/trades?currentSchema=mine",
            "postgresql+psycopg2://root:***@db/trades?options=-csearch_path%3Dmine",
        ),
        ("jdbc:oracle:thin:@//db:1521/ORCL", "oracle+oracledb://root:***@db:1521/ORCL"),
        ("jdbc:mariadb://db/x", "mysql+pymysql://root:***@db/x"),
    ],
)
def test_the_urls_of_java_are_read(jdbc: str, url: str) -> None:
    options = {"type": "rdbms", "jdbc.url": jdbc, "username": "root", "password": "root"}
    assert StoreOptions.of(options | {"jdbc.driver.name": "com.mysql.jdbc.Driver"}).shown == url


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"type": "rdbms"}, "the option jdbc.url is missing"),
        ({"jdbc.url": "jdbc:postgres"}, "jdbc.url='jdbc:postgres' is no database URL"),
        ({"jdbc.url": "jdbc:h2://x/y"}, "jdbc.url names the database 'h2'.*known are postgresql"),
        ({"jdbc.url": "jdbc:postgresql://db/x", "user": "me"}, "unknown option 'user'.*username"),
        ({"url": "redis://x"}, "url names the database 'redis'"),
        ({"url": "postgresql://u:secret@h:port/x"}, "is no database URL"),
    ],
)
def test_a_wrong_option_is_named_and_the_password_is_not(options: dict[str, str], says: str) -> None:
    with pytest.raises(StoreError, match=says) as caught:
        StoreOptions.of(options)
    assert "secret" not in str(caught.value)


def test_the_store_of_the_page_says_which_driver_is_missing() -> None:
    page = compile_app(PAGE.format(url="mysql://localhost:3306/TestDB", name="TradeAggregation")).aggregations[
        "TradeAggregation"
    ]
    with pytest.raises(StoreError, match=r"root:\*\*\*@localhost.*pip install pymysql"):
        store_of(page, ColumnEngine())


def test_partitions_need_postgresql_and_a_known_width() -> None:
    with pytest.raises(StoreError, match="partition='month' needs PostgreSQL, not sqlite"):
        store_of(aggregation(), ColumnEngine(), {"url": "sqlite://", "partition": "month"})
    with pytest.raises(StoreError, match=r"partition='week' is not known.*hour, day, month, year"):
        store_of(aggregation(), ColumnEngine(), {"url": "postgresql://localhost/x", "partition": "week"})


@pytest.mark.parametrize(
    ("dialect", "has"),
    [
        (
            "postgresql",
            ['"AGG_SUM_i" BIGINT', '"AGG_SET_s" TEXT', "[]", "nulls not distinct", '"AGG_SUM_i" NUMERIC(38, 0)'],
        ),
        (
            "mysql",
            [
                "`k` VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
                "`AGG_SUM_d` DOUBLE PRECISION",
                "`AGG_TIMESTAMP` BIGINT",
            ],
        ),
        (
            "oracle",
            ['"k" VARCHAR2(255 CHAR)', '"AGG_SUM_d" BINARY_DOUBLE', '"AGG_TIMESTAMP" NUMBER(19)', '"AGG_SET_s" CLOB'],
        ),
        ("sqlite", ['"AGG_SUM_i" VARCHAR(40)', '"AGG_SUM_d" DOUBLE PRECISION']),
    ],
)
def test_every_database_gets_its_own_types(dialect: str, has: list[str]) -> None:
    statements = table_ddl(aggregation(), dialect)
    text = ";\n".join(statements)
    assert [part for part in has if part not in text] == []
    assert len(statements) == 6 * 2 + 3
    assert "{" not in text


def test_fine_levels_are_partitioned_and_coarse_ones_are_not() -> None:
    text = table_ddl(aggregation(), "postgresql", partitioned=True)
    assert [" partition by range" in statement for statement in text[:12:2]] == [True, True, False, False, False, False]


@pytest.mark.parametrize(("dialect", "longest"), [("oracle", 22), ("postgresql", 55), ("mysql", 56), ("sqlite", 200)])
def test_a_name_that_the_database_would_cut_off_is_refused(dialect: str, longest: int) -> None:
    def named(length: int) -> Tables:
        name = "T" * length
        return Tables(compile_app(PAGE.format(url="x", name=name)).aggregations[name], dialect)

    assert len(table_ddl(named(longest).aggregation, dialect)) == 15
    if dialect != "sqlite":
        with pytest.raises(
            StoreError, match=rf"the table 'T+_SECONDS' has {longest + 9} .*{dialect} allows.*shorter name"
        ):
            named(longest + 1)


def test_a_name_too_long_for_its_partitions_is_refused_where_there_are_any() -> None:
    name = "T" * 46
    long = compile_app(PAGE.format(url="x", name=name)).aggregations[name]
    options = {"url": "postgresql://localhost/x"}
    assert store_of(long, ColumnEngine(), options)
    with pytest.raises(StoreError, match=r"the partition 'T+_SECONDS_19700101' has 64 .*choose"):
        store_of(
            compile_app(PAGE.format(url="x", name=name + "T")).aggregations[name + "T"],
            ColumnEngine(),
            {**options, "partition": "day"},
        )


def test_a_column_that_would_be_cut_off_is_refused_where_no_digest_shortens_it() -> None:
    long = compile_app(
        f"define stream S ({'v' * 57} int, ts long); define aggregation Agg from S"
        f" select sum({'v' * 57}) as s aggregate by ts every sec ... min;"
    ).aggregations["Agg"]
    Tables(long, "postgresql")
    with pytest.raises(StoreError, match=r"the column of Agg 'AGG_SUM_v+' has 65 characters, mysql allows 64"):
        Tables(long, "mysql")
