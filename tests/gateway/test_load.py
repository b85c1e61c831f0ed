"""Many clients at once, and a server that dies under them: nobody hangs, everybody is told, and it works again after.

The questions are tagged as in the fuzz test, since load is when answers get mixed up.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time

import psycopg
import pytest

from tests.gateway.toys import Running
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
    took = _loaded(gateway.port, 3)
    assert len(took) > CLIENTS * 5
    assert took[int(len(took) * 0.99)] < 2.0


@pytest.mark.slow
def test_64_clients_for_minutes(gateway: Running) -> None:
    took = _loaded(gateway.port, 60 * float(os.environ.get("ROLLUP_LOAD_MINUTES", "10")))
    p50, p99 = (took[int(len(took) * part)] * 1000 for part in (0.5, 0.99))
    print(f"{len(took)} questions, median {p50:.1f} ms, p99 {p99:.1f} ms")
    assert p99 < 2000


@pytest.mark.parametrize("idle", [True, False])
def test_a_server_killed_under_load_is_reported_and_served_again(idle: bool) -> None:
    server = PostgresServer().start()
    try:
        with Running(("127.0.0.1", server.port)) as gateway:
            told: list[tuple[str | None, str]] = []
            login = server.dsn.replace(str(server.port), str(gateway.port))

            def ask() -> None:
                try:
                    with psycopg.connect(login, autocommit=True) as connection:
                        ready.wait(30)
                        while True:
                            connection.execute("SELECT n, pg_sleep(0.01) FROM ANSWER")
                            if idle:
                                time.sleep(0.3)
                except psycopg.OperationalError as problem:
                    told.append((problem.sqlstate, str(problem)))

            ready = threading.Barrier(17)
            threads = [threading.Thread(target=ask, daemon=True) for _ in range(16)]
            for thread in threads:
                thread.start()
            ready.wait(30)
            time.sleep(0.3)
            server.kill9()
            for thread in threads:
                thread.join(10)
            assert len(told) == 16, "somebody hangs"
            unclean = [each for each in told if each[0] not in ("08006", "57P01", "57P02") and "behind" not in each[1]]
            assert not unclean
            with pytest.raises(psycopg.OperationalError, match="cannot be reached"):
                psycopg.connect(login)
            server.restart()
            with psycopg.connect(login) as connection:
                assert connection.execute("SELECT n FROM ANSWER").fetchone() == (42,)
            deadline = time.monotonic() + 5
            while gateway.gateway.connections and time.monotonic() < deadline:
                time.sleep(0.02)
            assert gateway.gateway.connections == 0
    finally:
        server.remove()
