"""`rollup serve` before a PostgreSQL store: a proxy, whose sources become calls of the store's own functions there.

The same questions as before Delta, with the same expected numbers, on the other way to answer them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import psycopg2
import pytest

from rollup.gateway.servers.serve import PostgresEndpoint
from rollup.hosts.local import LocalHost
from rollup.stores.databases import store_of
from tests.gateway.trades import JANUARY, Serving, at, before_postgres, events, folder, let_ann_read, places_of_errors
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Serving, LocalHost]]:
    # A server of its own: the roles' script takes rights from PUBLIC in every database.
    with folder() as made, PostgresServer() as server:
        dsn = server.new_database()
        conf = before_postgres(made, dsn)
        job = LocalHost(conf.program(), lambda aggregation, engine: store_of(aggregation, engine, dsn))
        job.send("Trades", events("2018-01"))
        job.send("Trades", events("2018-02", days=10))
        let_ann_read(dsn)
        with Serving(conf) as serving:
            assert isinstance(serving.endpoint, PostgresEndpoint)
            yield serving, job


@pytest.fixture
def login(served: tuple[Serving, LocalHost]) -> dict[str, Any]:
    return dict(served[0].login(dbname=served[0].endpoint.database))


@pytest.mark.parametrize(
    "source",
    [
        f"TradeAgg WITHIN {JANUARY} PER 'days'",
        f"TradeAgg({JANUARY}, 'days')",
        '"TradeAgg within 2018-01-** **:**:** per days"',
    ],
)
def test_every_spelling_answers_inside_the_server(login: dict[str, Any], source: str) -> None:
    connection = psycopg2.connect(**login)
    cursor = connection.cursor()
    cursor.execute(f'SELECT symbol, sum(total), min("AGG_TIME")::text FROM {source} AS t GROUP BY 1 ORDER BY 1')
    assert [row[:2] for row in cursor.fetchall()] == [("A", 1218.0), ("B", 2436.0)]
    connection.close()


def test_rows_look_back_and_are_merged_over_keys(login: dict[str, Any]) -> None:
    text = """SELECT symbol, total FROM TradeAgg WITHIN '2018-01-03 00:00:00', '2018-01-05 00:00:00'
        PER 'days' OVER '2 days' BY () t ORDER BY "AGG_TIMESTAMP" """
    with psycopg.connect(**login, autocommit=True) as client:
        days = [3 * 2.0 + 6 * 2.0 + 3 * 3.0 + 6 * 3.0, 3 * 3.0 + 6 * 3.0 + 3 * 4.0 + 6 * 4.0]
        assert client.execute(text).fetchall() == [(None, total) for total in days]


def test_parameters_joins_and_views(login: dict[str, Any]) -> None:
    with psycopg.connect(**login, autocommit=True) as client:
        for _ in range(4):
            for month, expected in (("01", 3654.0), ("02", 495.0)):
                found = client.execute(
                    "SELECT sum(total) FROM TradeAgg WITHIN %s PER %s t",
                    (f"2018-{month}-** **:**:**", "days"),
                    prepare=True,
                )
                assert found.fetchone() == (expected,)
        mixed = client.execute(
            f"SELECT sum(total) FROM TradeAgg WITHIN '2018-01-03 00:00:00', {at('2018-01-05T00:00:00')} PER 'days' t"
        )
        assert mixed.fetchone() == (63.0,)
        where = f'WHERE "AGG_TIMESTAMP" < {at("2018-01-02T00:00:00")}'
        view = f'SELECT symbol, sum(total) FROM "TradeAgg_per_days" {where} GROUP BY 1 ORDER BY 1'
        assert client.execute(view).fetchall() == [("A", 3.0), ("B", 6.0)]
        assert client.execute(
            "SELECT count(*) FROM tradeagg_per_days WHERE \"AGG_TIME\" >= '2018-02-01Z'"
        ).fetchone() == (20,)
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="unknown duration") as caught:
            client.execute(f"SELECT * FROM TradeAgg WITHIN {JANUARY} PER 'fortnights'")
        assert caught.value.diag.statement_position == "15"


MOMENTS = [("2018-01-03 00:00:00", "2018-01-05 00:00:00"), ("2018-01-03 05:30:00+05:30", "2018-01-05 00:00:00Z")]
NUMBERS = [tuple(str(at(moment)) for moment in ("2018-01-03T00:00:00", "2018-01-05T00:00:00"))]


@pytest.mark.parametrize("source", ["TradeAgg WITHIN $1, $2 PER 'days'", "TradeAgg($1, $2, 'days')"])
@pytest.mark.parametrize("values", MOMENTS + NUMBERS)
@pytest.mark.parametrize("kind", [None, "int8", "timestamptz", "timestamp", "date", "text", "varchar"])
def test_bounds_are_parameters_of_any_type_without_a_cast(
    login: dict[str, Any], source: str, values: tuple[str, str], kind: str | None
) -> None:
    """What a driver sends that asks for the types of parameters (`None`: it is told a domain, and sends texts), and one
    that says what it has."""
    if (kind == "int8") != (values in NUMBERS) and kind not in (None, "text", "varchar"):
        return
    if kind in ("timestamp", "date") and "+" in values[0]:
        return
    with psycopg.connect(**login, autocommit=True) as client:
        oids = [client.adapters.types[kind].oid] * 2 if kind else None
        sent = [value[:10] if kind == "date" else value for value in values]
        found = client.pgconn.exec_params(
            f"SELECT sum(total) FROM {source} t".encode(), [value.encode() for value in sent], oids
        )
        assert (found.error_message, found.get_value(0, 0)) == (b"", b"63")


def test_a_driver_that_asks_is_told_no_text_for_a_bound(login: dict[str, Any]) -> None:
    with psycopg.connect(**login, autocommit=True) as client:
        client.pgconn.prepare(b"s", b"SELECT sum(total) FROM TradeAgg WITHIN $1, $2 PER 'days' t")
        told = client.execute("select parameter_types::text[] from pg_prepared_statements").fetchone()
        assert told is not None and {each.rpartition(".")[2] for each in told[0]} == {"rollup_bound"}


def test_a_short_number_is_no_time_here_either(login: dict[str, Any]) -> None:
    with psycopg.connect(**login) as client, pytest.raises(psycopg.Error, match="2018"):
        client.execute("SELECT * FROM TradeAgg WITHIN %s, %s PER 'days' t", ("2018", "2019"), prepare=True)


@pytest.mark.parametrize("name", ["TradeAgg", '"TradeAgg"', "tradeagg", "public.tradeagg"])
def test_an_aggregation_without_a_range_is_told_what_is_missing(login: dict[str, Any], name: str) -> None:
    with psycopg.connect(**login, autocommit=True) as client:
        for prepare in (False, True):
            with pytest.raises(psycopg.errors.UndefinedTable, match="neither a range nor a duration") as caught:
                client.execute(f"SELECT * FROM {name}", prepare=prepare)
            hint, place = caught.value.diag.message_hint, caught.value.diag.statement_position
            assert (hint, place) == ("TradeAgg WITHIN '2018-01-** **:**:**' PER 'years'", "15")
        with pytest.raises(psycopg.errors.UndefinedTable, match='relation "trade" does not exist'):
            client.execute("SELECT * FROM trade")
        named = "WITH tradeagg AS (SELECT 1 AS x) SELECT x FROM tradeagg"
        assert client.execute(named).fetchone() == (1,)


def test_no_two_names_that_a_tool_shows_differ_only_in_case(login: dict[str, Any]) -> None:
    with psycopg.connect(**login) as client:
        shown = (
            "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')"
        )
        names = [name for (name,) in client.execute(shown).fetchall()]
    assert {"TradeAgg_DAYS", "TradeAgg_per_days"} <= set(names)
    assert len({name.casefold() for name in names}) == len(names)


def test_gaps_are_filled_and_levels_stitched_inside_the_server(login: dict[str, Any]) -> None:
    week = f"{at('2018-01-27T00:00:00')}, {at('2018-02-03T00:00:00')}"
    with psycopg.connect(**login, autocommit=True) as client:
        for word, gap in (("zero", 0.0), ("previous", 28.0), ("linear", 14.5), ("null", None)):
            text = (
                f"SELECT total / 3 FROM TradeAgg WITHIN {week} PER 'days' FILL ({word}) t WHERE symbol = 'A'"
                f" AND \"AGG_TIME\" = '2018-01-30Z'"
            )
            assert client.execute(text).fetchall() == [(gap,)], word
        whole = client.execute(
            "SELECT symbol, sum(total) FROM TradeAgg WITHIN '2018-**-** **:**:**' PER 'auto' GROUP BY 1"
        )
        assert sorted(whole.fetchall()) == [("A", 1383.0), ("B", 2766.0)]
        cut = f"{at('2018-01-31T00:00:00')}, {at('2018-02-02T10:00:00')}"
        rows = client.execute(f"SELECT sum(total), count(*) FROM TradeAgg({cut}, 'auto') WHERE symbol = 'A'")
        assert rows.fetchone() == (1 * 3 + 2 * 1, 2)
        with pytest.raises(psycopg.errors.DatabaseError, match="FILL needs a constant range"):
            client.execute("SELECT * FROM TradeAgg WITHIN %s PER 'days' FILL (zero)", ("2018-**-** **:**:**",))
        with pytest.raises(psycopg.errors.DatabaseError, match="more than 100,000 of 'minutes in Asia/Kolkata'"):
            client.execute("SELECT * FROM TradeAgg WITHIN '2018' PER 'minutes in Asia/Kolkata' t")
        with pytest.raises(psycopg.errors.DatabaseError, match="over more than 100,000 seconds"):
            client.execute(
                "SELECT * FROM TradeAgg('2018-01-01 00:00:00', '2018-01-03 00:00:00', 'seconds', fill => 'zero')"
            )


def test_only_named_users_and_the_stores_database(login: dict[str, Any]) -> None:
    for changed, message in (({"user": "rollup"}, "not permitted"), ({"dbname": "postgres"}, "is not served here")):
        with pytest.raises(psycopg.OperationalError, match=message):
            psycopg.connect(**login | changed)
    with psycopg.connect(**login, autocommit=True) as client, pytest.raises(psycopg.errors.InsufficientPrivilege):
        client.execute("set default_transaction_read_only = off")
        client.execute('delete from "TradeAgg_DAYS"')


@pytest.mark.parametrize("prepared", [False, True])
def test_an_error_of_the_server_has_its_place_in_the_text_that_was_sent(login: dict[str, Any], prepared: bool) -> None:
    places_of_errors(login, prepared)
