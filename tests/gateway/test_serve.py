"""`rollup serve` before a Delta store, asked by the drivers BI tools are built on.

The store is a real one, written by a job in this process; every expected number is either plain (prices are the day of
the month) or what the job's own host answers. Nothing is mocked: the point is what a client sees.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import psycopg2
import psycopg2.errors
import pytest
import sqlalchemy

from rollup.hosts.local import LocalHost
from rollup.java import java
from tests.gateway.test_clients import jdbc_driver, psql  # noqa: F401 (a fixture)
from tests.gateway.trades import (
    FEBRUARY,
    JANUARY,
    PASSWORD,
    Serving,
    at,
    configuration,
    events,
    folder,
    host,
    places_of_errors,
)

pytestmark = pytest.mark.postgres
SPELLINGS = {
    "clause": f"TradeAgg WITHIN {JANUARY} PER 'days'",
    "call": f"TradeAgg({JANUARY}, 'days')",
    "quoted name": '"TradeAgg within 2018-01-** **:**:** per days"',
}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Serving, LocalHost]]:
    with folder() as made:
        conf = configuration(made)
        job = host(conf)
        job.send("Trades", events("2018-01"))
        job.send("Trades", events("2018-02", days=10))
        with Serving(conf) as serving:
            yield serving, job


@pytest.fixture
def serving(served: tuple[Serving, LocalHost]) -> Serving:
    return served[0]


@pytest.fixture
def client(serving: Serving) -> Iterator[psycopg.Connection]:
    with psycopg.connect(**serving.login(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def old_client(serving: Serving) -> Iterator[Any]:
    connection = psycopg2.connect(**serving.login())
    yield connection
    connection.close()


def rows(connection: Any, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.execute(sql, parameters)
    return cursor.fetchall()


# what is answered


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT sum(total) FROM {source} AS t", 3 * 406 * 3.0),
        ("WITH w AS (SELECT * FROM {source} AS t WHERE symbol = 'A') SELECT sum(total) FROM w", 406 * 3.0),
        ("SELECT (SELECT max(high) FROM {source} AS t)", 56.0),
        ('SELECT count(*) FROM {source} a JOIN {source} b USING ("AGG_TIMESTAMP") WHERE a.symbol < b.symbol', 28),
        ("SELECT sum(t.total) FROM (VALUES ('A')) v(s) LEFT JOIN {source} t ON t.symbol = v.s", 406 * 3.0),
        ("SELECT count(*) FROM (SELECT 1 FROM {source} t UNION ALL SELECT 2 FROM {source} t) u", 112),
        ("SELECT total FROM {source} t WHERE symbol IN ('A') ORDER BY \"AGG_TIMESTAMP\" DESC LIMIT 1", 84.0),
    ],
)
@pytest.mark.parametrize("how", ["simple", "extended"])
def test_every_spelling_stands_wherever_a_table_may(
    served: Any, client: Any, old_client: Any, spelling: str, query: str, expected: float, how: str
) -> None:
    sql = query.format(source=SPELLINGS[spelling])
    if how == "extended":
        assert client.execute(sql + " -- %s", prepare=True).fetchall() == [(expected,)]
    else:
        assert rows(old_client, sql) == [(expected,)]


@pytest.mark.parametrize("level", ["seconds", "minutes", "hours", "days", "months", "years"])
@pytest.mark.parametrize(
    "within", ["'2018-01-** **:**:**'", "'2018-02-10 **:**:**'", "'2018-02-05 00:00:00', '2019-01-01 00:00:00'"]
)
def test_the_endpoint_and_the_job_give_the_same_rows_open_buckets_included(
    served: Any, old_client: Any, level: str, within: str
) -> None:
    select = 'symbol, total, "avgPrice", low, high, trades'
    seen = rows(
        old_client, f"SELECT \"AGG_TIMESTAMP\", {select} FROM TradeAgg WITHIN {within} PER '{level}' ORDER BY 1, 2"
    )
    plain = select.replace('"', "")
    job = served[1].query(
        f"from TradeAgg within {within} per '{level}' select AGG_TIMESTAMP, {plain} order by AGG_TIMESTAMP, symbol"
    )
    assert [list(row) for row in seen] == [list(row.values()) for row in job.to_pylist()]
    assert seen or level in ("months", "years")  # which begin before the range


def test_bounds_may_be_columns_of_another_table(old_client: Any) -> None:
    ranges = "(VALUES ('2018-01-05 **:**:**', 'days'), ('2018-02-** **:**:**', 'months')) AS r(w, p)"
    found = rows(
        old_client, f"SELECT r.p, sum(t.total) FROM {ranges}, LATERAL TradeAgg(r.w, r.p) t GROUP BY 1 ORDER BY 1"
    )
    assert found == [("days", 45.0), ("months", 495.0)]


def test_a_refusal_points_at_the_source(old_client: Any) -> None:
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match="unknown duration 'fortnights'") as caught:
        rows(old_client, f"SELECT 1,\n 2 FROM TradeAgg WITHIN {JANUARY} PER 'fortnights'")
    assert caught.value.diag.statement_position == "19"
    old_client.rollback()
    assert rows(old_client, "SELECT 1") == [(1,)]


def test_a_refusal_while_executing_has_its_own_code_and_hint(client: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="is no time pattern") as caught:
        client.execute("SELECT * FROM TradeAgg WITHIN %s PER 'days'", ("2018-1",))
    assert "stars only from the right" in str(caught.value.diag.message_hint)


@pytest.mark.parametrize(
    "spec", ['{"columns": 5}', '{"where": [["symbol", [1]]]}', '{"limit": "x"}', "[]", '{"where": {"a": 1}}']
)
def test_a_spec_that_a_client_made_up_is_refused(client: psycopg.Connection, spec: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="a spec"):
        client.execute("SELECT * FROM pg_rollup.\"ask TradeAgg\"(%s::text, '0', '1', 'days')", (spec,))
    assert client.execute("SELECT 1").fetchone() == (1,)


# prepared statements, cursors, COPY


def test_a_prepared_statement_follows_its_parameters(client: psycopg.Connection) -> None:
    sql = "SELECT sum(total), min(symbol) FROM TradeAgg WITHIN %s PER %s t WHERE t.symbol = %s"
    for _ in range(4):
        for month, factor in (("01", 406), ("02", 55)):
            for per in ("days", "months"):
                for index, symbol in enumerate("AB", start=1):
                    found = client.execute(sql, (f"2018-{month}-** **:**:**", per, symbol), prepare=True).fetchone()
                    assert found == (factor * 3.0 * index, symbol)


def test_numbers_texts_and_times_are_bounds_alike(client: psycopg.Connection) -> None:
    low, high = at("2018-01-03T00:00:00"), at("2018-01-05T00:00:00")
    for bounds in [(low, high), ("2018-01-03 00:00:00", "2018-01-05 00:00:00"), (low, "2018-01-05 00:00:00")]:
        found = client.execute("SELECT sum(total) FROM TradeAgg WITHIN %s, %s PER 'days' t WHERE symbol = 'A'", bounds)
        assert found.fetchone() == (21.0,)
    found = client.execute(
        "SELECT sum(total) FROM TradeAgg WITHIN %s::timestamptz, %s::timestamptz PER 'days' t",
        ("2018-01-03Z", "2018-01-05Z"),
    )
    assert found.fetchone() == (63.0,)


def test_two_sessions_with_the_same_statement_never_mix(serving: Serving) -> None:
    wrong: list[Any] = []

    def ask(month: str, expected: float) -> None:
        with psycopg.connect(**serving.login(), autocommit=True) as connection:
            for _ in range(40):
                found = connection.execute(
                    "SELECT sum(total) FROM TradeAgg WITHIN %s PER 'days' t",
                    (f"2018-{month}-** **:**:**",),
                    prepare=True,
                )
                value = found.fetchone()
                if value != (expected,):
                    wrong.append((month, value))

    threads = [threading.Thread(target=ask, args=given) for given in [("01", 3654.0), ("02", 495.0)] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_sql_level_prepare_and_execute(old_client: Any) -> None:
    rows(old_client, "PREPARE ask(text) AS SELECT sum(total) FROM TradeAgg WITHIN $1 PER 'days' t; SELECT 1")
    assert rows(old_client, "EXECUTE ask('2018-01-** **:**:**')") == [(3654.0,)]
    assert rows(old_client, "EXECUTE ask('2018-02-** **:**:**')") == [(495.0,)]


def test_a_cursor_reads_on_while_others_ask(old_client: Any, client: psycopg.Connection) -> None:
    cursor = old_client.cursor("scroll")
    cursor.itersize = 5
    cursor.execute(
        "SELECT total FROM TradeAgg WITHIN %s PER 'hours' t WHERE symbol = 'A' ORDER BY \"AGG_TIMESTAMP\"",
        ("2018-01-** **:**:**",),
    )
    seen = []
    for row in cursor:
        seen.append(row[0])
        client.execute(f"SELECT * FROM TradeAgg WITHIN {FEBRUARY} PER 'hours'")
    assert seen == [float(day) for day in range(1, 29) for _ in range(3)]


def test_copy_writes_an_answer_out(client: psycopg.Connection) -> None:
    with (
        client.cursor() as cursor,
        cursor.copy(
            f"COPY (SELECT symbol, total FROM TradeAgg WITHIN {JANUARY} PER 'months' ORDER BY 1) TO STDOUT (FORMAT csv)"
        ) as copy,
    ):
        assert b"".join(copy) == b"A,1218\nB,2436\n"


def test_explain_loads_nothing(client: psycopg.Connection, serving: Serving) -> None:
    before = serving.delta.all_shares[0].slices.loads
    client.execute("EXPLAIN SELECT * FROM TradeAgg WITHIN '1999-**-** **:**:**' PER 'days'", prepare=True)
    assert serving.delta.all_shares[0].slices.loads == before


@pytest.mark.parametrize("level", ["months", "days", "hours"])
def test_the_planner_knows_how_many_rows_there_are_within_a_factor_of_two(
    client: psycopg.Connection, level: str
) -> None:
    source = f"TradeAgg WITHIN {JANUARY} PER '{level}'"
    (number,) = rows(client, f"SELECT count(*) FROM {source}")[0]
    ((plan,),) = rows(client, f"EXPLAIN (FORMAT JSON) SELECT * FROM {source}")
    assert number and number / 2 <= plan[0]["Plan"]["Plan Rows"] <= 2 * number


def test_asyncpg_prepares_and_iterates(serving: Serving) -> None:
    async def talk() -> None:
        login = dict(serving.login())
        connection = await asyncpg.connect(
            **{"database" if key == "dbname" else key: value for key, value in login.items()}
        )
        statement = await connection.prepare("SELECT sum(total) FROM TradeAgg WITHIN $1 PER $2 t")
        for _ in range(3):
            assert await statement.fetchval("2018-01-** **:**:**", "days") == 3654.0
            assert await statement.fetchval("2018-02-** **:**:**", "months") == 495.0
        assert (
            await connection.fetchval(
                "SELECT sum(total) FROM TradeAgg WITHIN $1::bigint, $2::bigint PER 'days' t",
                at("2018-01-01T00:00:00"),
                at("2018-01-02T00:00:00"),
            )
            == 9.0
        )
        async with connection.transaction():
            cursor = connection.cursor(
                f"SELECT total FROM TradeAgg WITHIN {JANUARY} PER 'hours' t WHERE symbol = 'B'", prefetch=7
            )
            assert len([row async for row in cursor]) == 84
        await connection.close()

    asyncio.run(talk())


# level views and the catalog


def test_a_level_view_is_a_table_of_its_own(old_client: Any) -> None:
    low, high = at("2018-01-10T00:00:00"), at("2018-01-12T00:00:00")
    tenth = "TO_TIMESTAMP('2018-01-10 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')"
    for where in [
        f'"AGG_TIMESTAMP" >= {low} AND "AGG_TIMESTAMP" < {high}',
        f'"TradeAgg_per_days"."AGG_TIMESTAMP" BETWEEN {low} AND {high - 1}',
        "\"AGG_TIME\" >= '2018-01-10Z' AND \"AGG_TIME\" < TIMESTAMPTZ '2018-01-12Z'",
        f'"AGG_TIME" >= {tenth} AND \'2018-01-12Z\' > "AGG_TIME"',
    ]:
        found = rows(
            old_client,
            "SET TimeZone = 'UTC';"
            f' SELECT symbol, sum(total) FROM "TradeAgg_per_days" WHERE {where} GROUP BY 1 ORDER BY 1',
        )
        assert found == [("A", 63.0), ("B", 126.0)]
    assert rows(old_client, 'SELECT count(*) FROM public."TradeAgg_per_days" d') == [(76,)]
    assert rows(old_client, 'SELECT count(*) FROM (SELECT * FROM "TradeAgg_per_months") x, "TradeAgg_per_years"') == [
        (8,)
    ]


def test_the_range_of_a_view_is_all_that_is_loaded(serving: Serving, client: psycopg.Connection) -> None:
    with psycopg.connect(serving.delta.private.dsn, autocommit=True) as admin:
        client.execute(
            'SELECT * FROM "TradeAgg_per_hours" WHERE "AGG_TIMESTAMP" >= %s AND "AGG_TIMESTAMP" < %s',
            (at("2018-01-10T00:00:00"), at("2018-01-10T12:00:00")),
        )
        newest = admin.execute(
            "SELECT relname FROM pg_class WHERE relname ~ '^slice_' ORDER BY oid DESC LIMIT 1"
        ).fetchone()
        assert newest and admin.execute(f"SELECT count(*) FROM pg_rollup.{newest[0]}").fetchone() == (
            2,
        )  # 09:00, not 12:00
        client.execute("SELECT * FROM TradeAgg WITHIN '2018-01-** **:**:**' PER 'hours' t WHERE t.symbol = 'B'")
        newest = admin.execute(
            "SELECT relname FROM pg_class WHERE relname ~ '^slice_' ORDER BY oid DESC LIMIT 1"
        ).fetchone()
        assert newest and admin.execute(f"SELECT count(*) FROM pg_rollup.{newest[0]}").fetchone() == (84,)


LISTS = {
    "JDBC driver": """select c.relname from pg_catalog.pg_namespace n, pg_catalog.pg_class c where c.relnamespace = n.oid
        and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and c.relkind in ('r', 'p', 'v', 'f', 'm')""",
    "Metabase": """select c.relname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on c.relnamespace = n.oid
        where n.nspname !~ '^information_schema|catalog_history|^pg_' and c.relkind in ('r', 'p', 'v', 'f', 'm')
        and (has_table_privilege(c.oid, 'select') or has_any_column_privilege(c.oid, 'select'))""",
    "psql": """select c.relname from pg_catalog.pg_class c left join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'm', 's', 'f', '') and n.nspname <> 'pg_catalog' and n.nspname !~ '^pg_toast'
        and n.nspname <> 'information_schema' and pg_catalog.pg_table_is_visible(c.oid)""",
}


@pytest.mark.parametrize("tool", LISTS)
def test_each_view_is_in_the_lists_of_tools_once(serving: Serving, tool: str) -> None:
    levels = [f"TradeAgg_per_{level}" for level in ("days", "hours", "minutes", "months", "seconds", "years")]
    with psycopg.connect(**serving.login(), autocommit=True) as client:
        client.execute(f"SELECT * FROM TradeAgg WITHIN {JANUARY} PER 'days'".encode())  # loads rows into a table
        assert sorted(name for (name,) in client.execute(LISTS[tool].encode())) == ["TradeAgg", *levels]
        spaces = client.execute("select nspname from pg_namespace where nspname !~ '^pg_'").fetchall()
        assert sorted(spaces) == [("information_schema",), ("public",)]


def test_sqlalchemy_reflects_views_columns_types_and_comments(serving: Serving) -> None:
    login = serving.login()
    for driver in ("psycopg2", "psycopg"):
        url = sqlalchemy.URL.create(
            f"postgresql+{driver}", login["user"], login["password"], login["host"], login["port"], login["dbname"]
        )
        engine = sqlalchemy.create_engine(url)
        inspector = sqlalchemy.inspect(engine)
        assert inspector.default_schema_name == "public"
        levels = {f"TradeAgg_per_{level}" for level in ("seconds", "minutes", "hours", "days", "months", "years")}
        assert set(inspector.get_view_names()) == {"TradeAgg", *levels}
        seen = {column["name"]: str(column["type"]) for column in inspector.get_columns("TradeAgg_per_days")}
        assert list(seen) == ["AGG_TIMESTAMP", "symbol", "total", "avgPrice", "low", "high", "trades", "AGG_TIME"]
        assert (seen["AGG_TIMESTAMP"], seen["symbol"], seen["total"]) == ("BIGINT", "TEXT", "DOUBLE PRECISION")
        assert "per days" in inspector.get_table_comment("TradeAgg_per_days")["text"]
        assert inspector.get_columns("TradeAgg_per_days")[1]["comment"] == "group key"
        table = sqlalchemy.Table("TradeAgg_per_days", sqlalchemy.MetaData(), autoload_with=engine)
        with engine.connect() as connection:
            query = sqlalchemy.select(table.c.symbol, sqlalchemy.func.sum(table.c.total)).where(
                at("2018-01-02T00:00:00") > table.c.AGG_TIMESTAMP
            )
            assert connection.execute(query.group_by(table.c.symbol).order_by(table.c.symbol)).all() == [
                ("A", 3.0),
                ("B", 6.0),
            ]
            found = connection.execute(
                sqlalchemy.text("SELECT sum(total) FROM TradeAgg WITHIN :w PER 'days' t"), {"w": "2018-01-** **:**:**"}
            )
            assert found.scalar() == 3654.0
        engine.dispose()


def test_psql_lists_and_describes(serving: Serving) -> None:
    login = {key: value for key, value in serving.login().items()}
    seen = psql(login, '\\d\n\\dv+\n\\d "TradeAgg_per_days"\n\\d+ "TradeAgg"\n\\df\n\\dn\n')
    assert "ERROR" not in seen and "TradeAgg_per_months" in seen and "AGG_TIME" in seen and "per days" in seen
    assert "group key" in seen and "within" in seen


def test_jdbc_reads_metadata_prepares_and_fetches_by_cursor(serving: Serving, jdbc_driver: Path) -> None:  # noqa: F811
    program = Path(__file__).with_name("JdbcServe.java")
    command = [str(java()), "-cp", str(jdbc_driver), str(program), str(serving.endpoint.port), PASSWORD]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    names = [
        "TradeAgg",
        *(f"TradeAgg_per_{level}" for level in ("days", "hours", "minutes", "months", "seconds", "years")),
    ]
    kinds = [
        "AGG_TIMESTAMP int8",
        "symbol text",
        "total float8",
        "avgPrice float8",
        "low float8",
        "high float8",
        "trades int8",
        "AGG_TIME timestamptz",
    ]
    assert done.stdout.splitlines() == [
        *(f"VIEW {name}" for name in names),
        *(f"column {kind}" for kind in kinds),
        "prepared 1218 165 1218 165 1218 165 1218 165",
        "view A 63",
        "view B 126",
        "cursor 168",
    ]


@pytest.mark.parametrize("how", ["simple", "extended"])
def test_gaps_are_filled_and_auto_stitches_levels(client: psycopg.Connection, how: str) -> None:
    with client.cursor() if how == "extended" else psycopg.ClientCursor(client) as cursor:
        gaps = (
            "SELECT symbol, total FROM TradeAgg WITHIN '2018-02-09 00:00:00', %s PER 'days' FILL (zero, range) t"
            " WHERE symbol = 'A'"
        )
        assert cursor.execute(gaps, ("2018-02-12 00:00:00",)).fetchall() == [("A", 27.0), ("A", 30.0), ("A", 0.0)]
        auto = "SELECT sum(total) FROM TradeAgg WITHIN '2018-01-05 12:00:00', %s PER 'auto' t WHERE symbol = 'A'"
        plain = sum(3.0 * day for day in range(6, 29)) + 2 * 5.0 + 3.0 + 2 * 2.0
        assert cursor.execute(auto, ("2018-02-02 13:00:00",)).fetchall() == [(plain,)]


@pytest.mark.parametrize("how", ["simple", "extended"])
def test_rows_look_back_and_are_merged_over_keys(client: psycopg.Connection, how: str) -> None:
    with client.cursor() if how == "extended" else psycopg.ClientCursor(client) as cursor:
        text = """SELECT symbol, total FROM TradeAgg WITHIN '2018-01-03 00:00:00', %s PER 'days' OVER '2 days' BY () t
            ORDER BY "AGG_TIMESTAMP" """
        days = [3 * 2.0 + 6 * 2.0 + 3 * 3.0 + 6 * 3.0, 3 * 3.0 + 6 * 3.0 + 3 * 4.0 + 6 * 4.0]
        assert cursor.execute(text, ("2018-01-05 00:00:00",)).fetchall() == [(None, total) for total in days]


@pytest.mark.parametrize("prepared", [False, True])
def test_an_error_of_the_server_has_its_place_in_the_text_that_was_sent(serving: Serving, prepared: bool) -> None:
    places_of_errors(serving.login(), prepared)
