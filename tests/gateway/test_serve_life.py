"""What happens to the endpoint while it serves: commits, a small budget, killed servers, old transactions.

Rows that a query is given must be those of one whole commit, whatever else goes on; so every batch here gives both
symbols the same trades, and an answer in which their totals differ, or shrink, has mixed two commits.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from rollup.gateway.rewriting import loaded
from rollup.gateway.servers.options import ServeOptions
from tests.gateway.trades import JANUARY, Serving, at, configuration, events, folder, host

pytestmark = pytest.mark.postgres
TOTALS = f"SELECT symbol, sum(total) FROM TradeAgg WITHIN {JANUARY} PER 'days' t GROUP BY 1 ORDER BY 1"
BOUND = "SELECT sum(total) FROM TradeAgg WITHIN %s PER 'days' t WHERE symbol = 'A'"


def batch(day: int) -> list[tuple[Any, ...]]:
    """One trade of price 1 for each symbol, on one day of January."""
    return [(symbol, 1.0, 1, at(f"2018-01-{day:02d}T12:00:00")) for symbol in "AB"]


@pytest.mark.slow
def test_answers_are_always_those_of_one_whole_and_newest_commit() -> None:
    with folder() as made:
        conf = configuration(made)
        job = host(conf)
        job.send("Trades", batch(1))
        done = threading.Event()
        wrong: list[Any] = []
        asked = [0]

        def ask(port_login: Any, sql: str, parameters: Any) -> None:
            last = 0.0
            with psycopg.connect(**port_login, autocommit=True) as connection:
                while not done.is_set():
                    before = commits[0]
                    found = connection.execute(sql, parameters, prepare=parameters is not None).fetchall()
                    totals = [row[1] for row in found]
                    asked[0] += 1
                    if len(found) != 2 or totals[0] != totals[1] or totals[0] < max(last, before):
                        wrong.append((before, found))
                    last = totals[0]

        commits = [1]
        bound = TOTALS.replace(JANUARY, "%s")
        twice = (
            f"SELECT a.symbol, sum(a.total) FROM TradeAgg WITHIN {JANUARY} PER 'days' a"
            f" JOIN TradeAgg WITHIN {JANUARY} PER 'months' m USING (symbol)"
            " GROUP BY a.symbol, m.total HAVING sum(a.total) = m.total"
        )
        month = "2018-01-** **:**:**"
        ways = [(TOTALS, None), (bound, (month,)), (twice, None), (twice.replace(JANUARY, "%s"), (month, month))]
        with Serving(conf) as serving:
            threads = [threading.Thread(target=ask, args=(serving.login(), *way)) for way in ways]
            for thread in threads:
                thread.start()
            for number in range(40):
                job.send("Trades", batch(1 + number % 28))
                commits[0] += 1
            done.set()
            for thread in threads:
                thread.join()
            slices = serving.delta.all_shares[0].slices
            assert slices.evicted > 0 and slices.tables < 20, "tables of older commits stay"
        assert not wrong and asked[0] > 20


def test_a_prepared_statement_sees_the_next_commit_and_so_does_an_old_transaction() -> None:
    with folder() as made:
        conf = configuration(made)
        job = host(conf)
        job.send("Trades", batch(1))
        with Serving(conf) as serving, psycopg.connect(**serving.login(), autocommit=True) as client:
            sql = "SELECT sum(total) FROM TradeAgg WITHIN '2018-**-** **:**:**' PER 'days' t -- %s"
            assert client.execute(BOUND, ("2018-01-** **:**:**",), prepare=True).fetchone() == (1.0,)
            with psycopg.connect(**serving.login()) as other:
                other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                assert other.execute("SELECT 1").fetchone() == (1,)  # its snapshot is taken here
                job.send("Trades", batch(2))
                assert client.execute(BOUND, ("2018-01-** **:**:**",), prepare=True).fetchone() == (2.0,)
                assert other.execute(BOUND, ("2018-01-** **:**:**",)).fetchone() == (2.0,)
                assert other.execute(sql.partition(" --")[0]).fetchone() == (4.0,)
            client.execute(f"PREPARE kept AS {TOTALS}")
            assert client.execute("EXECUTE kept").fetchall() == [("A", 2.0), ("B", 2.0)]
            job.send("Trades", batch(3))
            assert client.execute("EXECUTE kept").fetchall() == [("A", 3.0), ("B", 3.0)]


def test_an_open_transaction_holds_no_more_than_its_share_and_others_go_on() -> None:
    def january(day: int) -> str:
        return f"SELECT count(*) FROM TradeAgg WITHIN '2018-01-{day:02d} **:**:**' PER 'hours' t"

    with folder() as made:
        conf = configuration(made)
        host(conf).send("Trades", events("2018-01"))
        with Serving(conf) as serving, psycopg.connect(**serving.login()) as one:
            slices = serving.delta.all_shares[0].slices
            slices.budget.tables = 9
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="holds 5 loaded ranges") as caught:
                for day in range(1, 20):
                    assert one.execute(january(day)).fetchone() == (6,)
                    assert one.execute(january(1), prepare=True).fetchone() == (6,), "what it has is no more"
            assert "end the transaction" in str(caught.value)
            with psycopg.connect(**serving.login(), autocommit=True) as other:
                for day in range(1, 28):
                    assert other.execute(january(day)).fetchone() == (6,)
            with psycopg.connect(**serving.login()) as third, pytest.raises(psycopg.Error, match="holds 3 loaded"):
                for day in range(11, 28):
                    third.execute(january(day))
            assert slices.tables <= 9 + 1
            one.rollback()
            for day in range(20, 24):
                assert one.execute(january(day)).fetchone() == (6,)


def test_a_transaction_that_reads_loaded_rows_by_name_is_ended_where_they_have_to_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is held for it, so it would keep more than its share, and the others' rows would go at once."""
    monkeypatch.setattr(loaded, "_PATIENCE", 0.1)

    def january(day: int) -> str:
        return f"SELECT count(*) FROM TradeAgg WITHIN '2018-01-{day:02d} **:**:**' PER 'hours' t"

    with folder() as made:
        conf = configuration(made)
        host(conf).send("Trades", events("2018-01"))
        with (
            Serving(conf) as serving,
            psycopg.connect(**serving.login(), autocommit=True) as client,
            psycopg.connect(**serving.login()) as honest,
        ):
            slices = serving.delta.all_shares[0].slices
            assert honest.execute(january(1)).fetchone() == (6,)
            holders: list[psycopg.Connection] = []
            for day in range(2, 6):
                assert client.execute(january(day)).fetchone() == (6,)
                names = client.execute("SELECT relname FROM pg_class WHERE relname ~ '^slice_'").fetchall()
                holders.append(psycopg.connect(**serving.login()))
                for (name,) in names:
                    holders[-1].execute(f"SELECT count(*) FROM pg_rollup.{name}".encode())
            slices.budget.tables = 4
            for day in range(6, 20):
                assert client.execute(january(day)).fetchone() == (6,)
            deadline = time.monotonic() + 60
            while slices.over_budget():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert honest.execute(january(1)).fetchone() == (6,), "who holds its share goes on"
            for holder in holders:
                with pytest.raises(psycopg.Error, match="its transaction reads slice_"):
                    holder.execute("SELECT 1")
                holder.close()


@pytest.mark.slow
def test_a_small_budget_evicts_what_was_asked_longest_ago_and_never_what_is_read() -> None:
    with folder() as made:
        conf = configuration(made)
        host(conf).send("Trades", events("2018-01"))
        with Serving(conf) as serving:
            slices = serving.delta.all_shares[0].slices
            slices.budget.tables = 4
            with (
                psycopg.connect(**serving.login()) as reader,
                psycopg.connect(**serving.login(), autocommit=True) as client,
            ):
                cursor = reader.cursor("held")
                cursor.execute(
                    f"SELECT total FROM TradeAgg WITHIN {JANUARY} PER 'hours' t WHERE symbol = 'A' ORDER BY 1"
                )
                first = cursor.fetchmany(3)
                for _ in range(2):
                    for day in range(1, 13):
                        found = client.execute(
                            f"SELECT sum(total) FROM TradeAgg WITHIN '2018-01-{day:02d} **:**:**' PER 'hours' t"
                        )
                        assert found.fetchone() == (day * 9.0,)
                deadline = time.monotonic() + 10
                while slices.over_budget() and time.monotonic() < deadline:
                    time.sleep(0.05)
                assert slices.evicted >= 12 and slices.tables <= 5
                assert first + cursor.fetchall() == [(float(day),) for day in range(1, 29) for _ in range(3)]
            with psycopg.connect(serving.delta.private.dsn) as admin:
                left = admin.execute("SELECT count(*) FROM pg_class WHERE relname ~ '^slice_'").fetchone()
            assert left and left[0] <= 6


@pytest.mark.parametrize("victim", ["the server", "one of its processes"])
@pytest.mark.slow
def test_a_killed_server_comes_back_and_answers_are_never_empty(victim: str) -> None:
    with folder() as made:
        conf = configuration(made)
        host(conf).send("Trades", events("2018-01"))
        with Serving(conf) as serving:
            with psycopg.connect(**serving.login(), autocommit=True) as client:
                assert client.execute(TOTALS).fetchall() == [("A", 1218.0), ("B", 2436.0)]
                backend = client.info.backend_pid
                pid = serving.delta.private.server.pid
                assert pid
                os.kill(pid if victim == "the server" else backend, signal.SIGKILL)
                with pytest.raises(psycopg.OperationalError):
                    for _ in range(100):
                        client.execute("SELECT 1")
                        time.sleep(0.02)
            answered = 0
            deadline = time.monotonic() + 30
            while answered < 10 and time.monotonic() < deadline:
                try:
                    with psycopg.connect(**serving.login(), autocommit=True, connect_timeout=5) as client:
                        for sql, parameters in (
                            (TOTALS, None),
                            (TOTALS.replace(JANUARY, "%s"), ("2018-01-** **:**:**",)),
                        ):
                            assert client.execute(sql, parameters).fetchall() == [("A", 1218.0), ("B", 2436.0)]
                    answered += 1
                except psycopg.Error:
                    time.sleep(0.1)
            assert answered == 10


def test_too_many_rows_are_refused_with_a_way_out_and_a_preview_is_not() -> None:
    with folder() as made:
        conf = configuration(made)
        host(conf).send("Trades", events("2018-01"))
        with (
            Serving(conf, replace(ServeOptions.of(conf), row_limit=100)) as serving,
            psycopg.connect(**serving.login(), autocommit=True) as client,
        ):
            for sql in ('SELECT * FROM "TradeAgg_per_seconds"', f"SELECT * FROM TradeAgg WITHIN {JANUARY} PER 'hours'"):
                with pytest.raises(psycopg.errors.InvalidParameterValue, match="more than 100 rows per") as caught:
                    client.execute(sql)
                assert "shorter range" in str(caught.value.diag.message_hint)
            assert len(client.execute('SELECT * FROM "TradeAgg_per_seconds" LIMIT 50').fetchall()) == 50
            assert len(client.execute("SELECT * FROM \"TradeAgg_per_seconds\" WHERE symbol = 'A'").fetchall()) == 84


def test_a_statement_that_takes_too_long_to_load_is_cancelled_and_the_session_lives() -> None:
    with folder() as made:
        conf = configuration(made)
        host(conf).send("Trades", events("2018-01"))
        with (
            Serving(conf, replace(ServeOptions.of(conf), statement_timeout=1)) as serving,
            psycopg.connect(**serving.login(), autocommit=True) as client,
        ):
            with pytest.raises(psycopg.errors.QueryCanceled):
                client.execute("SELECT pg_sleep(20)")
            assert client.execute(TOTALS).fetchall() == [("A", 1218.0), ("B", 2436.0)]


def test_before_the_first_commit_the_endpoint_says_so() -> None:
    with folder() as made:
        conf = configuration(made)
        with Serving(conf) as serving, psycopg.connect(**serving.login(), autocommit=True) as client:
            for sql, parameters in ((TOTALS, None), (TOTALS.replace(JANUARY, "%s"), ("2018-01-** **:**:**",))):
                with pytest.raises(psycopg.Error, match="has no commit yet"):
                    client.execute(sql, parameters)
            host(conf).send("Trades", batch(1))
            assert client.execute(TOTALS).fetchall() == [("A", 1.0), ("B", 1.0)]
