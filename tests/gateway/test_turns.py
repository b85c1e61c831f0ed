"""One user's work waits for that user's own: statements beyond a share wait here, and nobody else's wait for them."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest

from rollup.conf import load
from rollup.gateway.protocol.limits import Limits
from rollup.gateway.protocol.turns import Turns
from rollup.gateway.rewriting.readers import PROCESSES
from rollup.gateway.servers.options import ServeOptions
from tests.gateway.conftest import PASSWORD as READER
from tests.gateway.toys import EXECUTE, SYNC, TERMINATE, Raw, Running, bind, kinds, parse, query
from tests.gateway.trades import JANUARY, Serving, configuration, events, folder, host
from tests.servers.postgres import PostgresServer

ENDLESS = "select pg_sleep(600)"


def _until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# the queue


def _order(places: int, each: int, first: str, waiting: str, back: str) -> str:
    """Who has a place at the end: those who had one first, with one given back at a time to those who wait."""

    async def work() -> str:
        turns, got = Turns(places, each), list[str]()

        async def wait(user: str) -> None:
            await turns.take(user)
            got.append(user)

        for user in first:
            await wait(user)
        tasks = [asyncio.ensure_future(wait(user)) for user in waiting]
        await asyncio.sleep(0)
        for user in back:
            turns.give_back(user)
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        return "".join(got)

    return asyncio.run(work())


def test_a_place_goes_to_whose_user_has_fewest_and_then_to_who_waits_longest() -> None:
    assert _order(4, 2, "aa", "aab", "") == "aab"
    assert _order(4, 2, "aabb", "abc", "a") == "aabbc"
    assert _order(4, 2, "aabb", "bacd", "ba") == "aabbcd"
    assert _order(2, 2, "ab", "ba", "ab") == "abab"
    assert _order(4, 2, "aabb", "dca", "ab") == "aabbdc"


@pytest.mark.parametrize("given", [False, True])
def test_who_stops_waiting_takes_no_place_even_where_it_was_just_given(given: bool) -> None:
    async def work() -> None:
        turns = Turns(1, 1)
        await turns.take("a")
        leaves, stays = asyncio.ensure_future(turns.take("b")), asyncio.ensure_future(turns.take("c"))
        await asyncio.sleep(0)
        if given:
            turns.give_back("a")
        leaves.cancel()
        if not given:
            turns.give_back("a")
        await asyncio.wait({leaves})
        await stays
        assert leaves.cancelled() and not turns.may("a")
        turns.give_back("c")
        assert turns.may("a")

    asyncio.run(work())


# statements


@pytest.fixture
def running(server: PostgresServer) -> Iterator[Running]:
    """A gateway at which each user may have two statements at once."""
    with Running(("127.0.0.1", server.port), limits=Limits(user_statements=2)) as found:
        yield found


@contextmanager
def _busy(running: Running, count: int) -> Iterator[list[psycopg.Connection]]:
    """Clients of `trusting`, each with an endless statement or waiting for its turn."""
    login = f"host=127.0.0.1 port={running.port} user=trusting dbname=served"
    clients = [psycopg.connect(login, autocommit=True) for _ in range(count)]
    for client in clients:
        client.pgconn.send_query(ENDLESS.encode())
    try:
        yield clients
    finally:
        for client in clients:
            client.pgconn.finish()


def _at_work(server: PostgresServer) -> int:
    with psycopg.connect(server.dsn) as admin:
        found = admin.execute("select count(*) from pg_stat_activity where usename = 'trusting' and state = 'active'")
        return int((found.fetchone() or (0,))[0])


def _done(client: psycopg.Connection) -> bool:
    """Whether the whole answer is there; a driver that waited for it would keep the gateway's thread waiting as well."""
    client.pgconn.consume_input()
    return not client.pgconn.is_busy()


def _ended(client: psycopg.Connection) -> str:
    """The SQLSTATE with which the client's statement ends."""
    _until(lambda: _done(client))
    found = client.pgconn.get_result()
    assert found is not None
    _until(lambda: _done(client))
    assert client.pgconn.get_result() is None
    return (found.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()


@pytest.mark.postgres
def test_a_statement_beyond_a_users_share_waits_and_that_of_another_user_does_not(
    running: Running, server: PostgresServer
) -> None:
    login = {"host": "127.0.0.1", "port": running.port, "user": "reader", "password": READER, "dbname": "served"}
    with _busy(running, 5) as clients:
        _until(lambda: _at_work(server) == 2)
        with psycopg.connect(**login, autocommit=True) as other:
            for number in range(50):
                assert other.execute("SELECT n + %s FROM ANSWER", (number,)).fetchone() == (42 + number,)
            assert _at_work(server) == 2
        clients[4].cancel_safe()  # while it waits
        assert _ended(clients[4]) == "57014"
        clients[0].cancel_safe()
        assert _ended(clients[0]) == "57014"
        _until(lambda: _at_work(server) == 2)
        assert clients[2].pgconn.is_busy()


@pytest.mark.postgres
def test_nothing_that_works_passes_the_queue(running: Running, server: PostgresServer) -> None:
    """Not an Execute of a portal that was made before, nor what was prepared, nor a transaction that is open."""
    with Raw(running.port) as raw, Raw(running.port) as prepared:
        raw.send(query("begin"), parse(ENDLESS), bind(), SYNC)
        assert kinds(raw.until(b"Z") + raw.until(b"Z")) == "CZ12Z"
        prepared.send(parse(ENDLESS, "s"), SYNC)
        assert kinds(prepared.until(b"Z")) == "1Z"
        with _busy(running, 2) as clients:
            _until(lambda: _at_work(server) == 2)
            raw.send(EXECUTE, SYNC)
            prepared.send(bind("s"), EXECUTE, SYNC)
            time.sleep(0.3)
            assert _at_work(server) == 2
            for client in clients:
                client.cancel_safe()
            _until(lambda: _at_work(server) == 2 and all(_done(client) for client in clients))


@pytest.mark.postgres
@pytest.mark.parametrize("goodbye", [b"", TERMINATE], ids=["cut off", "said"])
def test_who_goes_while_it_waits_leaves_its_seat_and_no_statement(
    running: Running, server: PostgresServer, goodbye: bytes
) -> None:
    with _busy(running, 2) as clients:
        _until(lambda: _at_work(server) == 2)
        with Raw(running.port) as raw:
            raw.send(query(ENDLESS))
            _until(lambda: running.gateway.connections == 3)
            raw.send(goodbye)
        _until(lambda: running.gateway.connections == 2)
        clients[0].cancel_safe()
        assert _ended(clients[0]) == "57014"
        clients[0].execute("select 1")
        assert _at_work(server) == 1


# the endpoint


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    with folder() as made:
        path = configuration(made, serve="port = 0\nuser_statements = 16").path
        path.write_text(path.read_text() + 'bob = { password_file = "secret" }\n')
        conf = load(path)
        host(conf).send("Trades", events("2018-01"))
        with Serving(conf, ServeOptions.of(conf)) as running:
            yield running


def _asked(serving: Serving, user: str, number: int, padding: int = 0) -> Any:
    """The answer to a question whose text is new and so long."""
    with psycopg.connect(**serving.login(user=user), autocommit=True) as client:
        text = (
            f"SELECT count(*) FROM TradeAgg WITHIN {JANUARY} PER 'days' t WHERE total > -{number} /* {'x' * padding} */"
        )
        return client.execute(text.encode()).fetchone()


@pytest.mark.postgres
@pytest.mark.parametrize("padding", [0, 10_000], ids=["short", "long"])
def test_a_users_texts_leave_processes_that_read_for_others(serving: Serving, padding: int) -> None:
    """The texts of one user are never read to their end: their processes stand still."""
    children = serving.delta.readers.children
    with ThreadPoolExecutor(8) as threads:
        for child in children:
            os.kill(child.pid, signal.SIGSTOP)
        try:
            asked = [threads.submit(_asked, serving, "ann", n, padding) for n in range(PROCESSES + 2)]
            _until(lambda: any(not child.idle for child in children))
            time.sleep(0.3)  # whoever may have a process has one
            for child in children:
                if child.idle:
                    os.kill(child.pid, signal.SIGCONT)
            assert _asked(serving, "bob", 100, padding) == (56,)
            assert not any(each.done() for each in asked)
        finally:
            for child in children:
                os.kill(child.pid, signal.SIGCONT)
        assert [each.result(60) for each in asked] == [(56,)] * len(asked)


@pytest.mark.postgres
def test_a_subscription_takes_no_turn_of_its_user(serving: Serving) -> None:
    with folder() as made:
        conf = configuration(made, serve="port = 0\nuser_statements = 1")
        host(conf).send("Trades", events("2018-01"))
        with Serving(conf, ServeOptions.of(conf)) as running, psycopg.connect(**running.login()) as client:
            began, result = threading.Event(), Future[Any]()

            def subscribe() -> None:
                text = "COPY (SUBSCRIBE TradeAgg PER 'days') TO STDOUT"
                with suppress(psycopg.Error), client.cursor() as cursor, cursor.copy(text) as rows:
                    for _ in rows:
                        began.set()
                result.set_result(None)

            threading.Thread(target=subscribe, daemon=True).start()
            assert began.wait(60)
            assert _asked(running, "ann", 1) == (56,)
            client.cancel_safe()
            result.result(60)
