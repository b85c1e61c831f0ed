"""Parameters of a range in every form a driver may send: with a type or without, as text or binary.

A driver that leaves types open asks the server for them and sends what it is told; so what is told must suit numbers,
times and texts alike. The bytes are made here by hand, because no Python driver behaves like Go's pgx; the real pgx is
asked too, in `make crash`, where a Go command is on the path or named by ROLLUP_GO: see test_pgx.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import psycopg
import psycopg.sql
import pytest

from tests.gateway.trades import PASSWORD, Serving, configuration, events, folder, host

pytestmark = pytest.mark.postgres
FROM, TO = datetime(2018, 1, 1, tzinfo=UTC), datetime(2018, 2, 1, tzinfo=UTC)
TOTAL = 406 * 3 * 3.0
CLAUSE = b"SELECT sum(total) FROM TradeAgg WITHIN $1, $2 PER 'days' t"
CALL = b"SELECT sum(total) FROM TradeAgg($1, $2, 'days') t"
INT8, TIMESTAMPTZ = 20, 1184
GO = os.environ.get("ROLLUP_GO") or shutil.which("go")


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    with folder() as made:
        conf = configuration(made)
        host(conf).send("Trades", events("2018-01"))
        with Serving(conf) as running:
            yield running


@pytest.fixture
def client(serving: Serving) -> Iterator[psycopg.Connection]:
    with psycopg.connect(**serving.login(), autocommit=True) as connection:
        yield connection


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def binary(oid: int, moment: datetime) -> bytes:
    if oid == INT8:
        return struct.pack(">q", milliseconds(moment))
    return struct.pack(">q", int((moment - datetime(2000, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000)


@pytest.mark.parametrize("sql", [CLAUSE, CALL])
@pytest.mark.parametrize("oid", [INT8, TIMESTAMPTZ])
def test_binary_parameters_of_a_given_type(client: psycopg.Connection, sql: bytes, oid: int) -> None:
    values = [binary(oid, FROM), binary(oid, TO)]
    found = client.pgconn.exec_params(sql, values, [oid, oid], [1, 1])
    assert (found.error_message, found.get_value(0, 0)) == (b"", b"3654")


@pytest.mark.parametrize("sql", [CLAUSE, CALL])
@pytest.mark.parametrize(
    "values",
    [
        (str(milliseconds(FROM)), str(milliseconds(TO))),
        ("2018-01-01 00:00:00Z", "2018-02-01 01:00:00+01:00"),
        ("2018-01-01 00:00:00", "2018-02-01 00:00:00"),
        ("0", str(milliseconds(TO))),
    ],
)
def test_parameters_whose_type_the_server_was_asked_for(
    client: psycopg.Connection, sql: bytes, values: tuple[str, str]
) -> None:
    """As pgx does: Parse without types, and then values as text, since it does not know the type it is told."""
    text = sql.decode().replace("$1", "%s").replace("$2", "%s")
    assert client.execute(text.encode(), values, prepare=True).fetchone() == (TOTAL,)
    told = client.execute("select parameter_types::text[] from pg_prepared_statements").fetchone()
    assert told == (["pg_rollup.bound", "pg_rollup.bound"],)


def test_a_short_number_as_text_is_no_time(client: psycopg.Connection) -> None:
    with pytest.raises(psycopg.Error, match="2018"):
        client.execute("SELECT * FROM TradeAgg WITHIN %s, %s PER 'days' t", ("2018", "2019"))


def test_a_tool_that_looks_only_in_public_finds_the_views(client: psycopg.Connection) -> None:
    listed = client.execute("select table_name from information_schema.tables where table_schema = 'public'").fetchall()
    levels = ("seconds", "minutes", "hours", "days", "months", "years")
    assert {name for (name,) in listed} == {"TradeAgg", *(f"TradeAgg_per_{level}" for level in levels)}
    assert client.execute('select sum(total) from public."TradeAgg_per_days"').fetchone() == (TOTAL,)
    sql = psycopg.sql.SQL("select sum(total) from public.{}").format(psycopg.sql.Identifier("TradeAgg_per_days"))
    assert client.execute(sql, prepare=True).fetchone() == (TOTAL,)


def test_an_aggregation_without_a_range_is_told_what_is_missing(client: psycopg.Connection) -> None:
    for name in ("TradeAgg", "TradeAgg_DAYS"):
        with pytest.raises(psycopg.errors.UndefinedTable, match=r"TradeAgg.* is an? ") as caught:
            client.execute(f"SELECT * FROM {name}".encode())
        assert "TradeAgg WITHIN '2018-01-** **:**:**' PER '" in str(caught.value.diag.message_hint)


def test_a_client_cannot_take_more_memory_than_a_process_has(serving: Serving) -> None:
    """Much is taken without any setting; the process has a bound all the same."""
    hungry = "select count(*) from (select distinct repeat(g::text, 1000) from generate_series(1, 3000000) g) x"
    with psycopg.connect(**serving.login(), autocommit=True) as client:
        with pytest.raises(psycopg.Error) as caught:
            client.execute(hungry)
        assert caught.value.sqlstate in ("53200", "53400")  # of memory, or of temporary files
        assert client.execute("select 1").fetchone() == (1,)


@pytest.mark.slow
@pytest.mark.skipif(
    GO is None, reason="no Go command on the path, and none named by ROLLUP_GO, to build the client with"
)
def test_pgx(serving: Serving, tmp_path: Path) -> None:
    """Building it fetches pgx through Go's module proxy, once, in the versions and with the checksums of go.sum."""
    program = tmp_path / "ask"
    here = Path(__file__).parent / "pgx"
    built = subprocess.run(
        [str(GO), "build", "-o", str(program), "."], cwd=here, capture_output=True, text=True, timeout=550, check=False
    )
    assert built.returncode == 0, built.stderr
    login = serving.login()
    url = f"postgres://ann:{quote(PASSWORD)}@127.0.0.1:{login['port']}/rollup?sslmode=disable"
    ran = subprocess.run([str(program), url], capture_output=True, text=True, timeout=60, check=False)
    assert {line.partition(": ")[2] for line in ran.stdout.splitlines()} == {"3654"}, ran.stdout + ran.stderr
    assert len(ran.stdout.splitlines()) == 10
