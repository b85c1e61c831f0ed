"""Many clients at once, and a server that dies under them: nobody hangs, everybody is told, and it works again after.

The questions are tagged as in the fuzz test, since load is when answers get mixed up.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import psycopg
import pytest

from rollup.gateway.protocol import wire
from rollup.stores.postgres.server import USER
from tests.gateway.toys import Raw, Running, query
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres
CLIENTS = 64


async def _client(port: int, number: int, until: float) -> list[float]:
    """Asks tagged questions until then; the seconds each took."""
    took: list[float] = []
    login = f"host=127.0.0.1 port={port} user=trusting dbname=served"
    async with await psycopg.AsyncConnection.connect(login, autocommit=True) as connection:
        while time.monotonic() < until:
            began, tag = time.monotonic(), f"{number}-{len(took)}"
            row = await (await connection.execute("SELECT n, %s::text FROM ANSWER", (tag,))).fetchone()
            assert row == (42, tag)
            took.append(time.monotonic() - began)
            await asyncio.sleep(0.02)
    return took


def _loaded(port: int, seconds: float) -> list[float]:
    async def everybody() -> list[list[float]]:
        until = time.monotonic() + seconds
        return await asyncio.gather(*(_client(port, number, until) for number in range(CLIENTS)))

    return sorted(each for one in asyncio.run(everybody()) for each in one)


def test_64_clients_at_once_each_get_their_own_answers(gateway: Running) -> None:
    assert len(_loaded(gateway.port, 3)) >= CLIENTS


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_64_clients_for_minutes(gateway: Running) -> None:
    took = _loaded(gateway.port, 60 * float(os.environ.get("ROLLUP_LOAD_MINUTES", "10")))
    p50, p99 = (took[int(len(took) * part)] * 1000 for part in (0.5, 0.99))
    print(f"{len(took)} questions, median {p50:.1f} ms, p99 {p99:.1f} ms")
    assert p99 < 2000


def _ask_until_told(port: int, pause: float, answered: threading.Barrier) -> dict[str, bytes]:
    """Asks until an error comes; its fields. Bytes and no driver: drivers may lose an error nobody asked for."""
    with Raw(port, USER, "postgres") as client:
        for number in count():
            client.send(query("SELECT n, pg_sleep(0.01) FROM ANSWER"))
            for kind, body in client.until(b"Z"):
                if kind in (b"E", b""):
                    return wire.fields(body)
            if number == 0:
                answered.wait(30)
            time.sleep(pause)
    raise AssertionError("it asks for ever")


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server this test may kill, that asks for no password."""
    server = PostgresServer().start()
    try:
        hba = server.data / "pg_hba.conf"
        hba.write_text("host all all 127.0.0.1/32 trust\n")
        server.restart()
        yield server
    finally:
        server.remove()


@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_a_server_killed_under_load_is_reported_and_served_again(own_server: PostgresServer, pause: float) -> None:
    with Running(("127.0.0.1", own_server.port)) as gateway, ThreadPoolExecutor(16) as threads:
        answered = threading.Barrier(17)
        asking = [threads.submit(_ask_until_told, gateway.port, pause, answered) for _ in range(16)]
        answered.wait(30)
        own_server.kill9()
        told = [(error.result(60).get("V"), error.result().get("C")) for error in asking]
        assert set(told) <= {(b"FATAL", b"08006"), (b"FATAL", b"57P01")}
        login = own_server.dsn.replace(str(own_server.port), str(gateway.port))
        with pytest.raises(psycopg.OperationalError, match="cannot be reached"):
            psycopg.connect(login)
        own_server.restart()
        with psycopg.connect(login) as connection:
            assert connection.execute("SELECT n FROM ANSWER").fetchone() == (42,)
        deadline = time.monotonic() + 60
        while gateway.gateway.connections and time.monotonic() < deadline:
            time.sleep(0.02)
        assert gateway.gateway.connections == 0
