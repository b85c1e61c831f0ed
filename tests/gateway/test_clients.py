"""Real clients, each with its own idea of the protocol: what a driver does behind one line of code has to pass.

psql and the drivers are the ones BI tools are built on; the point of every test is that the client notices no gateway.
"""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import asyncpg
import psycopg
import psycopg2
import psycopg2.errors
import pytest
import sqlalchemy
import trustme

from rollup.gateway.protocol.tls import server_context
from rollup.java import java
from rollup.stores.postgres.server import pg_install
from tests.gateway.toys import Raw, Running, query

pytestmark = pytest.mark.postgres
Login = dict[str, str | int]


def psql(login: Login, script: str) -> str:
    """The output of a psql script. The binary that pip brought is used, so the test needs no installed client."""
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    env = os.environ | {names[key]: str(value) for key, value in login.items()}
    binary = pg_install() / "bin" / "psql"
    done = subprocess.run([str(binary), "-X"], input=script, env=env, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def test_psql_shows_tables_columns_comments_and_functions(login: Login) -> None:
    seen = psql(login, "\\dt\n\\d days\n\\d+ days\n\\df\n\\dn\n\\l\n\\conninfo\n")
    assert "days" in seen and "double precision" in seen and "ERROR" not in seen
    assert "one row a day" in psql(login, "\\dt+")


def test_psql_speaks_the_newest_version_of_the_protocol(login: Login) -> None:
    newest = login | {"dbname": "served max_protocol_version=latest"}
    seen = psql(login, f'\\c "dbname={newest["dbname"]}"\n\\conninfo\nSELECT n FROM ANSWER;\n')
    assert "3.2" in seen and "42" in seen


def test_psql_prepares_describes_and_copies(login: Login, tmp_path: Path) -> None:
    script = (
        "prepare q(int) as SELECT n + $1 AS sum FROM ANSWER;\nexecute q(1);\nSELECT n FROM ANSWER \\gdesc\n"
        f"SELECT $1 || n::text FROM ANSWER \\bind 'bound' \\g\n\\copy (SELECT n FROM ANSWER) to '{tmp_path}/out'\n"
    )
    seen = psql(login, script)
    assert "43" in seen and "integer" in seen and "bound42" in seen and "COPY 1" in seen
    assert (tmp_path / "out").read_text() == "42\n"


def test_psql_points_at_the_refused_word(login: Login) -> None:
    seen = psql(login, "SELECT n,\n  REFUSED FROM ANSWER;\nSELECT n FROM ANSWER;\n")
    assert "ERROR:  this is refused: ÄÖ€\nLINE 2:   REFUSED FROM ANSWER;\n          ^" in seen
    assert "HINT:  say FROM ANSWER" in seen and "42" in seen


def test_psycopg2_with_named_cursors_copy_and_errors(login: Login) -> None:
    connection = psycopg2.connect(**login)
    with connection, connection.cursor("scroll") as cursor:
        cursor.itersize = 7
        cursor.execute("SELECT n + g FROM ANSWER, generate_series(1, %s) g", (50,))
        assert [row[0] for row in cursor] == list(range(43, 93))
    with connection, connection.cursor() as cursor, pytest.raises(psycopg2.errors.SyntaxError) as caught:
        cursor.execute("SELECT REFUSED FROM ANSWER")
    assert caught.value.diag.message_primary == "this is refused: ÄÖ€"
    assert caught.value.diag.statement_position == "8"
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT n FROM ANSWER; SELECT count(*) FROM days")
        assert cursor.fetchall() == [(20000,)]
    connection.close()


def test_psycopg_binds_on_the_server_prepares_and_reads_binary(login: Login) -> None:
    with psycopg.connect(**login) as connection:
        for turn in range(8):  # prepared from the fifth on
            row = connection.execute("SELECT n + %s::int, %s::text FROM ANSWER", (turn, "ÄÖ"), binary=True).fetchone()
            assert row == (42 + turn, "ÄÖ")
        with connection.cursor("named", binary=True) as cursor:
            cursor.execute("SELECT n FROM ANSWER")
            assert cursor.fetchall() == [(42,)]
        with (
            connection.cursor() as cursor,
            cursor.copy("COPY (SELECT n FROM ANSWER) TO STDOUT (FORMAT binary)") as copy,
        ):
            assert b"".join(copy).startswith(b"PGCOPY")


def next_result(wire: psycopg.pq.abc.PGconn) -> psycopg.pq.abc.PGresult | None:
    """The next result, waited for on the socket: libpq's own wait holds the interpreter that the gateway needs too."""
    while wire.is_busy():
        select.select([wire.socket], [], [], 10)
        wire.consume_input()
    return wire.get_result()


def test_libpq_pipeline_mode_gives_the_error_to_the_statement_that_earned_it(login: Login) -> None:
    """Spoken through libpq's own calls: psycopg's pipeline raises at whichever statement happens to read the error."""
    with psycopg.connect(**login, autocommit=True) as connection:
        wire = connection.pgconn
        wire.enter_pipeline_mode()
        wire.send_query_params(b"SELECT n FROM ANSWER WHERE n = $1", [b"42"])
        wire.pipeline_sync()
        wire.send_query_params(b"SELECT $1, REFUSED FROM ANSWER", [b"1"])
        wire.send_query_params(b"SELECT $1::int", [b"2"])
        wire.pipeline_sync()
        answers = [next_result(wire) for _ in range(8)]
        states = [psycopg.pq.ExecStatus(answer.status).name if answer else None for answer in answers]
        assert states == [
            *("TUPLES_OK", None, "PIPELINE_SYNC"),
            *("FATAL_ERROR", None, "PIPELINE_ABORTED", None, "PIPELINE_SYNC"),
        ]
        good, bad = answers[0], answers[3]
        assert good and good.get_value(0, 0) == b"42"
        assert bad and b"this is refused" in bad.error_message
        wire.exit_pipeline_mode()
        assert connection.execute("SELECT n FROM ANSWER").fetchone() == (42,)


def test_a_pool_takes_sessions_back(login: Login) -> None:
    """asyncpg sends this by itself, and Npgsql where statements are prepared, in place of DISCARD ALL."""
    said = {key: value for key, value in login.items() if key != "dbname"}

    async def ask() -> list[int]:
        async with asyncpg.create_pool(**said, database=login["dbname"], min_size=1, max_size=1) as pool:
            return [await pool.fetchval("SELECT n FROM ANSWER") for _ in range(3)]

    assert asyncio.run(ask()) == [42, 42, 42]
    with psycopg.connect(**login, autocommit=True) as client:
        client.execute(
            b"SET SESSION AUTHORIZATION DEFAULT;RESET ALL;CLOSE ALL;UNLISTEN *;SELECT pg_advisory_unlock_all();"
            b"DISCARD SEQUENCES;DISCARD TEMP"
        )
        client.execute("DISCARD ALL")
        assert client.execute("SELECT n FROM ANSWER").fetchone() == (42,)


def test_asyncpg_prepares_iterates_and_copies(login: Login) -> None:
    async def talk() -> None:
        arguments = {"database" if key == "dbname" else key: value for key, value in login.items()}
        connection = await asyncpg.connect(**arguments)
        statement = await connection.prepare("SELECT n + $1::int AS n FROM ANSWER")
        assert [await statement.fetchval(turn) for turn in range(5)] == list(range(42, 47))
        async with connection.transaction():
            cursor = connection.cursor("SELECT n + g FROM ANSWER, generate_series(1, 20) g", prefetch=3)
            assert [row[0] async for row in cursor] == list(range(43, 63))
        chunks: list[bytes] = []

        async def keep(data: bytes) -> None:
            chunks.append(data)

        await connection.copy_from_query("SELECT n FROM ANSWER", output=keep)
        assert b"".join(chunks) == b"42\n"
        with pytest.raises(asyncpg.PostgresSyntaxError, match="this is refused"):
            await connection.fetch("SELECT REFUSED FROM ANSWER")
        with pytest.raises(asyncpg.QueryCanceledError):
            await connection.execute("set local statement_timeout = 100; select pg_sleep(20)")
        with pytest.raises(TimeoutError):
            await connection.fetch("select pg_sleep(20)", timeout=0.2)
        assert await connection.fetchval("SELECT n FROM ANSWER") == 42
        await connection.close()

    asyncio.run(talk())


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_sqlalchemy_reflects_the_tables(login: Login, driver: str) -> None:
    user, password = str(login["user"]), str(login["password"])
    url = sqlalchemy.URL.create(f"postgresql+{driver}", user, password, "127.0.0.1", int(login["port"]), "served")
    engine = sqlalchemy.create_engine(url)
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_table_names() == ["days"]
    assert [column["name"] for column in inspector.get_columns("days")] == ["ts", "symbol", "total"]
    assert inspector.get_table_comment("days") == {"text": "one row a day"}
    table = sqlalchemy.Table("days", sqlalchemy.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.select(sqlalchemy.func.count()).select_from(table)).scalar() == 20000
        assert connection.execute(sqlalchemy.text("SELECT n + :k FROM ANSWER"), {"k": 1}).scalar() == 43
    engine.dispose()


@pytest.fixture(scope="session")
def jdbc_driver() -> Path:
    """The JDBC driver: ROLLUP_JDBC_JAR, or what Maven brings into its own cache."""
    if given := os.environ.get("ROLLUP_JDBC_JAR"):
        return Path(given)
    jar = Path.home() / ".m2/repository/org/postgresql/postgresql/42.7.8/postgresql-42.7.8.jar"
    if not jar.is_file():
        maven = shutil.which("mvn")
        assert maven, "neither ROLLUP_JDBC_JAR nor mvn, so the JDBC driver cannot be tested"
        get = [maven, "-q", "dependency:get", "-Dartifact=org.postgresql:postgresql:42.7.8", "-Dtransitive=false"]
        subprocess.run(get, check=True, timeout=300)
    return jar


def test_jdbc_reads_metadata_prepares_fetches_by_cursor_and_cancels(login: Login, jdbc_driver: Path) -> None:
    program = Path(__file__).with_name("JdbcClient.java")
    command = [str(java()), "-cp", str(jdbc_driver), str(program), str(login["port"]), "reader", str(login["password"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "table days one row a day",
        "column ts int8",
        "column symbol text",
        "column total float8",
        "prepared 42 43 44 45 46 47 48 49",
        "cursor 20000",
        "refused 42601 ERROR: this is refused: ÄÖ€",
        "batch 42",
        "cancelled 57014",
        "still 42",
    ]


def test_tls_is_ours_when_configured_and_refused_cleanly_when_not(server, gateway, login: Login, tmp_path) -> None:

    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "certificate")
    authority.cert_pem.write_to_path(tmp_path / "authority")
    context = server_context(tmp_path / "certificate", tmp_path / "key")
    with Running(("127.0.0.1", server.port), ssl=context) as secure:
        verified = login | {"port": secure.port, "sslmode": "verify-full", "sslrootcert": str(tmp_path / "authority")}
        for connect in (psycopg2.connect, psycopg.connect):
            connection = connect(**verified)
            cursor = connection.cursor()
            cursor.execute("SELECT n, repeat('x', 3000000) FROM ANSWER")
            assert cursor.fetchone()[1].count("x") == 3_000_000
            assert connection.info.ssl_in_use if connect is psycopg2.connect else connection.pgconn.ssl_in_use
            connection.close()
        with pytest.raises(psycopg.OperationalError, match="channel binding"):
            psycopg.connect(**verified, channel_binding="require")
        with psycopg.connect(**login | {"port": secure.port}, sslmode="disable") as connection:
            assert connection.execute("SELECT n FROM ANSWER").fetchone() == (42,)
    with pytest.raises(psycopg.OperationalError, match="does not support SSL"):
        psycopg.connect(**login, sslmode="require")


def test_a_wrong_password_is_refused_by_the_servers_own_scram(login: Login) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(**login | {"password": "guess"})


@pytest.mark.parametrize("sql", ["SELECT pg_sleep(600)", "SELECT SLOW FROM ANSWER"])
def test_cancel_stops_the_query_or_the_rewriter_working_for_it(login: Login, sql: str) -> None:
    with psycopg.connect(**login, autocommit=True) as connection:
        timer = threading.Timer(0.4, connection.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(sql)
        assert connection.execute("SELECT n FROM ANSWER").fetchone() == (42,)


def test_the_query_of_a_client_that_was_killed_does_not_run_on(server, gateway: Running) -> None:
    running = "select count(*) from pg_stat_activity where query = 'select pg_sleep(61)' and state = 'active'"
    with psycopg.connect(server.dsn, autocommit=True) as admin:

        def wait_for(count: int) -> None:
            deadline = time.monotonic() + 60
            while admin.execute(running).fetchone() != (count,):
                assert time.monotonic() < deadline, f"not {count} at work"
                time.sleep(0.05)

        client = Raw(gateway.port)
        client.send(query("select pg_sleep(61)"))
        wait_for(1)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close sends a reset
        client.close()
        wait_for(0)
