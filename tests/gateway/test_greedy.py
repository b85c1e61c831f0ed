"""What queries may take: each that would take everything is ended within its time and memory, and nobody waits for it.

The bounds are the private server's and the system's, so no text is too clever for them. Seconds of others' questions are
compared with those on the same endpoint when it is quiet, since machines differ.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from rollup.gateway.servers.options import ServeOptions
from tests.gateway.test_hostile import ALLOWED, asked, hostile, upper
from tests.gateway.trades import JANUARY, Serving, configuration, events, folder, host

pytestmark = pytest.mark.postgres
SECONDS, MEGABYTES = 4, 512
_SEEN = 256
"""Megabytes that processes may have in excess before they are looked at again."""

GREEDY = {
    "an endless series kept on disk": "select count(*) from generate_series(1, 1000000000000)",
    "an endless series": "select count(*) from (select generate_series(1, 1000000000000)) t",
    "an endless recursion": "with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t",
    "a recursion that doubles": "with recursive t(s) as (select 'x' union all select s || s from t) select count(*) from t",
    "a long text": "select length(repeat('x', 1000000000) || repeat('y', 70000000))",
    "a long array": "select array_length(array_agg(g), 1) from generate_series(1, 400000000) g",
    "long JSON": "select length(jsonb_agg(repeat('x', 1000))::text) from generate_series(1, 3000000) g",
    "a sort of all pairs": "select a from generate_series(1, 100000) a, generate_series(1, 100000) b order by md5(a::text || b)",
    "groups of all pairs": "select count(*) from (select distinct a, b from generate_series(1, 9000) a, generate_series(1, 9000) b) t",
    "many numbers": "select factorial(100000)",
    "a regular expression": "select repeat('a', 40000) ~ '^(a|aa)*(b|(a?){200})*$'",
    "large numbers": "select length((repeat('9', 131000)::numeric * repeat('9', 131000)::numeric)::text)",
    "a wide format": "select length(format('%1000000000s', 'x'))",
    "all depths of JSON": "select jsonb_path_query((repeat('[', 200) || repeat(']', 200))::jsonb, '$.**.**.**.**.**')",
    "all locks again and again": "select count(*) from generate_series(1, 10000000) g, lateral pg_lock_status()",
    "many workers": "set max_parallel_workers_per_gather = 64; set parallel_setup_cost = 0; set parallel_tuple_cost = 0;"
    " set min_parallel_table_scan_size = 0; set debug_parallel_query = on; select count(*) from"
    f" TradeAgg within {JANUARY} per 'hours' a, generate_series(1, 100000000) b where md5(a.symbol || b) = 'x'",
    "minutes of another zone": "select count(*) from TradeAgg within '2018' per 'minutes in Asia/Kolkata' t",
    "a question for each row": "select count(*) from generate_series(1, 100000) g,"
    " lateral TradeAgg('2018-01-01 00:00:00', '2018-02-01 00:00:0' || (g % 10), 'days') t",
    "a thousand joins": "select count(*) from " + ", ".join(f"generate_series(1, 9) t{n}" for n in range(1000)),
    "many unions": " union ".join(["select 1"] * 20_000),
    "deep parentheses": "select " + "(" * 1_000_000 + "1" + ")" * 1_000_000,
    "many cursors": "begin; " + " ".join(
        f"declare c{n} cursor with hold for select repeat('x', 100000) from generate_series(1, 1000);" for n in range(999)
    ) + "commit",
    "many channels": "".join(f"listen a{n};" for n in range(20_000)),
    "many statements": "".join(f"prepare p{n} as select $1::int, '{'x' * 9000}';" for n in range(400)),
}  # fmt: skip


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    with folder() as made:
        conf = configuration(
            made, serve=f"port = 0\nstatement_timeout = {SECONDS}\nquery_mb = {MEGABYTES}\nuser_statements = 16"
        )
        host(conf).send("Trades", events("2018-01"))
        with Serving(conf, ServeOptions.of(conf)) as running:
            yield running


class Watched:
    """The most that the server's processes had at once, in megabytes."""

    def __init__(self, serving: Serving) -> None:
        self.most, self._server, self._stop = 0.0, serving.delta.private.server, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self.most = max(self.most, sum(self._server.memory().values()) / (1 << 20))

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("what", GREEDY)
def test_a_greedy_query_is_bounded_and_delays_nobody(serving: Serving, what: str) -> None:
    asked(serving, 0)
    quiet = asked(serving, 1000)
    before, began = serving.delta.private.server.pid, time.monotonic()
    with Watched(serving) as watched, psycopg.connect(**serving.login(), autocommit=True) as one:
        try:
            one.execute(GREEDY[what].encode())
            ended = "done"
        except psycopg.Error as problem:
            ended = str(problem.sqlstate)
    took = time.monotonic() - began
    assert ended in (
        "done",
        "53200",
        "53400",
        "54001",
        "54011",
        "57014",
        "22003",
        "54000",
        "54023",
        "2201B",
        "42601",
    ), ended
    assert took < SECONDS + 12, (ended, took)
    assert watched.most < MEGABYTES + _SEEN, (ended, watched.most)
    assert serving.delta.private.server.pid == before, "the server goes on"
    with hostile(serving, GREEDY[what]) as busy:
        while not busy[0]:
            time.sleep(0.01)
        disturbed = asked(serving, 2000)
    print(
        f"{what}: {ended} after {took:.1f} s, {watched.most:.0f} MB, others {upper(quiet):.3f} -> {upper(disturbed):.3f} s"
    )
    assert upper(disturbed) < upper(quiet) + ALLOWED


@pytest.mark.slow
def test_queries_that_take_too_much_together_lose_the_one_that_takes_most(serving: Serving) -> None:
    def take(rows: int) -> str:
        with psycopg.connect(**serving.login(), autocommit=True) as one:
            try:
                one.execute(
                    "select length(s), pg_sleep(3) from"
                    f" (select string_agg(repeat('x', 1000), '') as s from generate_series(1, {rows})) t".encode()
                )
            except psycopg.Error as problem:
                return str(problem.diag.message_primary or problem)
            return "done"

    with Watched(serving) as watched, ThreadPoolExecutor(8) as threads:
        ended = list(threads.map(take, [60_000] * 6))
        last = list(threads.map(take, [1000] * 6))
    assert any("all queries together take too much" in each for each in ended), ended
    assert watched.most < MEGABYTES + _SEEN and last == ["done"] * 6
    with psycopg.connect(**serving.login()) as other:
        assert other.execute(f"SELECT count(*) FROM TradeAgg WITHIN {JANUARY} PER 'days' t").fetchone() == (56,)
