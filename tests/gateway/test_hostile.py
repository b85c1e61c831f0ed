"""No client may delay another one: what a hostile one sends is read, loaded and refused beside the others' questions.

Times are compared with those of the same questions on a quiet endpoint in the same run, since machines differ.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from rollup.gateway.rewriting import loader
from rollup.gateway.servers.options import ServeOptions
from tests.gateway.trades import JANUARY, Serving, configuration, events, folder, host

pytestmark = pytest.mark.postgres
ALLOWED = 0.1
"""Seconds that one client may delay another."""

QUESTIONS = 24
LONG = f"SELECT total FROM TradeAgg WITHIN {JANUARY} PER 'days' WHERE 1 IN ({', '.join(['1'] * 400_000)})"
"""1.2 MB: seconds of reading."""

ROLES = "select 1 " + "/* */ alter " * 340_000
"""4 MB in which every word could begin a statement that is forbidden."""


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    with folder() as made:
        conf = configuration(made, serve="port = 0\nuser_statements = 16")  # all clients here are one user
        host(conf).send("Trades", events("2018-01"))
        with Serving(conf) as running:
            yield running


def asked(serving: Serving, first: int) -> list[float]:
    """The seconds that each of some questions takes a client; every text is new."""
    took: list[float] = []
    with psycopg.connect(**serving.login(), autocommit=True) as client:
        for number in range(first, first + QUESTIONS):
            began = time.monotonic()
            sql = f"SELECT count(*) FROM TradeAgg WITHIN {JANUARY} PER 'days' t WHERE total > -{number}"
            assert client.execute(sql).fetchone() == (56,)
            took.append(time.monotonic() - began)
            time.sleep(0.01)
    return took


@contextmanager
def hostile(serving: Serving, *texts: str) -> Iterator[list[int]]:
    """A client a text, which sends it again and again; gives how many are on their way right now, at each moment."""
    stop, busy = threading.Event(), [0]

    def send(text: str) -> None:
        with psycopg.connect(**serving.login(), autocommit=True) as client:
            while not stop.is_set():
                busy[0] += 1
                with suppress(psycopg.Error):
                    client.execute(text.encode())
                busy[0] -= 1

    threads = [threading.Thread(target=send, args=(text,), daemon=True) for text in texts]
    for thread in threads:
        thread.start()
    try:
        yield busy
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def upper(times: list[float]) -> float:
    """The third quartile: three of four questions are not slower."""
    return sorted(times)[len(times) * 3 // 4]


@pytest.mark.slow
@pytest.mark.parametrize(
    "texts", [(LONG,), (LONG, LONG + " "), (ROLES, LONG)], ids=["one long", "two long", "long and forbidden"]
)
def test_a_client_that_sends_long_texts_delays_nobody(serving: Serving, texts: tuple[str, ...]) -> None:
    asked(serving, 0)
    quiet = asked(serving, 1000)
    with hostile(serving, *texts) as busy:
        deadline = time.monotonic() + 30
        while not busy[0]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        disturbed = asked(serving, 2000)
    assert upper(disturbed) < upper(quiet) + ALLOWED


def test_messages_by_the_ten_thousand_delay_nobody(serving: Serving) -> None:
    """One chunk of the stream may hold 50,000 messages; others have their turn in between."""
    quiet = asked(serving, 3000)
    with psycopg.connect(**serving.login(), autocommit=True) as flood:
        stop = threading.Event()

        def send() -> None:
            while not stop.is_set():
                flood.pgconn.exec_(b";" * 50_000)

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        disturbed = asked(serving, 4000)
        stop.set()
        thread.join(30)
    assert upper(disturbed) < upper(quiet) + ALLOWED


# fill and auto


@contextmanager
def limited(rows: int) -> Iterator[Any]:
    with folder() as made:
        conf = configuration(made, serve=f"port = 0\nrow_limit = {rows}")
        host(conf).send("Trades", events("2018-01"))
        with (
            Serving(conf, ServeOptions.of(conf)) as running,
            psycopg.connect(**running.login(), autocommit=True) as client,
        ):
            yield client


@pytest.mark.slow
def test_fill_that_would_make_too_many_rows_is_refused_before_it_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(loader, "_ask", lambda *arguments: made.append(arguments))
    with limited(1000) as client, pytest.raises(psycopg.Error, match="more than 1000 rows per seconds"):
        client.execute(f"SELECT * FROM TradeAgg WITHIN {JANUARY} PER 'seconds' FILL (zero) t").fetchall()
    assert made == []


@pytest.mark.parametrize("per", ["'auto'", "'hours' FILL (zero)"])
@pytest.mark.few(1)
def test_no_more_rows_are_computed_than_may_be_answered(monkeypatch: pytest.MonkeyPatch, per: str) -> None:
    computed: list[int] = []
    widened = loader._widened  # pyright: ignore[reportPrivateUsage]

    def watched(rows: pa.Table, aggregation: Any) -> pa.Table:
        computed.append(rows.num_rows)
        return widened(rows, aggregation)

    monkeypatch.setattr(loader, "_widened", watched)
    within = "'2018-01-01 03:00:00', '2018-01-20 10:00:00'"
    with limited(30) as client:
        with pytest.raises(psycopg.Error, match="more than 30 rows"):
            client.execute(f"SELECT * FROM TradeAgg WITHIN {within} PER {per} t").fetchall()
        few = client.execute(f"SELECT * FROM TradeAgg WITHIN '2018-01-01 **:**:**' PER {per} t LIMIT 5").fetchall()
    assert len(few) <= 5
    assert max(computed, default=0) <= 31


def test_loads_that_take_long_keep_no_other_load_waiting(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four loads that never end, until they are let go; a fifth client's question needs a load and is answered."""
    release, begun = threading.Event(), threading.Semaphore(0)
    real = serving.delta.all_shares[0].loader.load

    def slow(key: Any, table: str) -> Any:
        if key.per == "hours":
            begun.release()
            assert release.wait(60)
        return real(key, table)

    monkeypatch.setattr(serving.delta.all_shares[0].loader, "load", slow)

    answers = list[Any]()

    def ask(day: int) -> None:
        with psycopg.connect(**serving.login(), autocommit=True) as client:
            asked_for = f"SELECT count(*) FROM TradeAgg WITHIN '2018-01-0{day} **:**:**' PER 'hours' t"
            answers.append(client.execute(asked_for).fetchone())

    threads = [threading.Thread(target=ask, args=(day,)) for day in range(1, 5)]
    for thread in threads:
        thread.start()
    try:
        assert all(begun.acquire(timeout=30) for _ in threads)
        with psycopg.connect(**serving.login(), autocommit=True) as client:
            asked_for = "SELECT count(*) FROM TradeAgg WITHIN '2018-01-09 **:**:**' PER 'days' t"
            assert client.execute(asked_for).fetchone() == (2,)
        assert not answers
    finally:
        release.set()
        for thread in threads:
            thread.join(60)
    assert len(answers) == 4
