"""SUBSCRIBE at the endpoint, before Delta and before PostgreSQL, as the drivers of PostgreSQL read it.

What a client puts together must be the sums of the events that were sent, worked out here in plain Python.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import psycopg
import pytest

from rollup.gateway.rewriting import subscribing
from rollup.hosts.local import LocalHost
from rollup.stores.databases import store_of
from tests.gateway.trades import APP, Serving, at, before_postgres, configuration, folder, host, let_ann_read
from tests.servers.postgres import PostgresServer

DAYS = "COPY (SUBSCRIBE TradeAgg PER 'days') TO STDOUT"
Event = tuple[str, float, int, int]
Sums = dict[tuple[int, str], tuple[float, int]]


@pytest.fixture(autouse=True)
def _looking_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits half a second for each look."""
    monkeypatch.setattr(subscribing, "EVERY", 0.02)


@pytest.fixture(scope="module", params=["delta", pytest.param("postgresql", marks=pytest.mark.postgres)])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Serving, Callable[[list[Event]], Any], list[Event]]]:
    app = APP.replace("define aggregation", "@OutOfOrder('correct') define aggregation")
    sent = list[Event]()
    with folder() as made:
        if request.param == "delta":
            conf = configuration(made, app)
            with Serving(conf) as serving:
                yield serving, _sender(host(conf), sent), sent
            return
        with PostgresServer() as server:
            dsn = server.new_database()
            conf = before_postgres(made, dsn, app)
            job = LocalHost(conf.program(), lambda aggregation, engine: store_of(aggregation, engine, dsn))
            send = _sender(job, sent)
            send([trade(1, 0)])
            let_ann_read(dsn)
            with Serving(conf) as serving:
                yield serving, send, sent


def _sender(job: LocalHost, sent: list[Event]) -> Callable[[list[Event]], Any]:
    def send(events: list[Event]) -> None:
        sent.extend(events)
        job.send("Trades", events)

    return send


def trade(day: int, price: float, symbol: str = "A") -> Event:
    return symbol, price, 1, at(f"2018-01-{day:02d}T12:00:00")


def login(served: Any) -> dict[str, Any]:
    serving = served[0]
    return dict(serving.login(dbname=serving.endpoint.database))


def sums(events: list[Event]) -> Sums:
    found: Sums = {}
    for symbol, price, _, ts in events:
        key = ts // 86_400_000 * 86_400_000, symbol
        total, count = found.get(key, (0.0, 0))
        found[key] = total + price, count + 1
    return found


def _plain(value: str) -> str:
    """A value of a COPY without its escapes, as the manual of PostgreSQL has them."""
    signs = {"t": "\t", "n": "\n", "r": "\r"}
    return re.sub(r"\\(.)", lambda found: signs.get(found[1], found[1]), value)


class Told:
    """What a client has put together of the lines of a COPY, of which it gets pieces."""

    def __init__(self) -> None:
        self.rows: Sums = {}
        self.commit = 0
        self.columns: list[str] = []
        self._rest = ""
        self.enough: Callable[[], None] = lambda: None
        self.events: list[Event] = []

    def write(self, data: bytes | str) -> int:
        text = data if isinstance(data, str) else bytes(data).decode()
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self.line([None if value == "\\N" else _plain(value) for value in line.split("\t")])
        return len(data)

    def line(self, values: list[str | None]) -> None:
        commit, kind, until, start, symbol, total, _, _, _, trades, _ = values
        if kind == "cleared":
            low, high = int(start or -(2**60)), int(until or 2**60)
            self.rows = {key: row for key, row in self.rows.items() if not low <= key[0] < high}
        elif kind == "removed":
            del self.rows[int(str(start)), str(symbol)]
        elif kind == "row":
            self.rows[int(str(start)), str(symbol)] = float(str(total)), int(str(trades))
        else:
            self.commit = int(str(commit))
            if self.rows == sums(self.events):
                self.enough()


BATCHES = [
    [trade(2, 1.5), trade(3, 2.25, "B\t\\é")],
    [trade(2, 4.0), trade(20, 1.0)],
    [trade(1, 8.0, "late"), trade(21, 1.0)],
]


CLIENT = """
import json, psycopg2, sys, threading
client = psycopg2.connect(**json.loads(sys.argv[1]))
threading.Thread(target=lambda: (sys.stdin.readline(), client.cancel()), daemon=True).start()
with client.cursor() as cursor:
    try:
        cursor.copy_expert(sys.argv[2], sys.stdout)
    except psycopg2.errors.QueryCanceled as problem:
        print(str(problem).strip())
    client.rollback()
    cursor.execute("select 'the session goes on'")
    print(cursor.fetchone()[0])
"""
"""A process of its own: `cancel` of psycopg2 waits for the server without letting other threads of Python work."""


def test_psycopg2_writes_into_a_file_until_it_is_cancelled(served: Any) -> None:
    _, send, sent = served
    send([trade(2, 1.0)])
    told = Told()
    told.events = sent
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", CLIENT, json.dumps(login(served)), DAYS],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    watch = threading.Timer(60, process.kill)
    watch.start()
    assert process.stdin is not None and process.stdout is not None
    left, done = [*BATCHES], False

    def enough() -> None:
        nonlocal done
        if left:
            send(left.pop(0))
        else:
            done = True

    told.enough = enough
    while not done and (line := process.stdout.readline()):
        told.write(line)
    assert told.rows == sums(sent)
    process.stdin.write("\n")
    process.stdin.close()
    rest = [line for line in process.stdout.read().splitlines() if "\t" not in line]
    assert rest == ["canceling statement due to user request", "the session goes on"]
    process.wait()
    watch.cancel()


def test_psycopg_reads_rows_and_goes_on_from_a_commit(served: Any) -> None:
    _, send, sent = served
    send([trade(5, 1.0)])
    told = Told()
    told.events = sent
    for batch in BATCHES:
        since = f" FROM COMMIT {told.commit}" if told.commit else ""
        with psycopg.connect(**login(served), autocommit=True) as client, client.cursor() as cursor:
            done = False

            def enough() -> None:
                nonlocal done
                done = True

            told.enough = enough
            with (
                pytest.raises(psycopg.errors.QueryCanceled),
                cursor.copy(DAYS.replace(")", since + ")").encode()) as copy,
            ):
                for data in copy:
                    told.write(bytes(data))
                    if done:
                        client.cancel_safe()
            assert told.rows == sums(sent)
        send(batch)


def test_asyncpg_reads_while_others_commit(served: Any) -> None:
    _, send, sent = served
    send([trade(6, 1.0)])
    told = Told()
    told.events = sent

    async def listen() -> None:
        said = login(served)
        client = await asyncpg.connect(**{k: v for k, v in said.items() if k != "dbname"}, database=said["dbname"])
        finished = asyncio.Event()
        told.enough = finished.set

        async def output(data: bytes) -> None:
            told.write(data)

        reading = asyncio.ensure_future(client.copy_from_query("SUBSCRIBE TradeAgg PER 'days'", output=output))
        for batch in BATCHES:
            await asyncio.wait_for(finished.wait(), 60)
            finished.clear()
            await asyncio.to_thread(send, batch)
        await asyncio.wait_for(finished.wait(), 60)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert await client.fetchval("select 1") == 1
        await client.close()

    asyncio.run(listen())
    assert told.rows == sums(sent)


def test_a_period_in_another_zone_over_all_keys(served: Any) -> None:
    """The sums of two days each, in plain Python; the days of Kolkata begin 5.5 hours before those of UTC."""
    _, send, sent = served
    send([trade(8, 1.25), trade(9, 2.5, "B"), ("A", 4.0, 1, at("2018-01-09T20:00:00"))])
    expected = dict[int, tuple[float, int]]()
    for _, price, _, ts in sent:
        day = (ts + 5.5 * 3_600_000) // 86_400_000
        start = int((day - day % 2) * 86_400_000 - 5.5 * 3_600_000)
        total, count = expected.get(start, (0.0, 0))
        expected[start] = total + price, count + 1
    found = ""
    with (
        psycopg.connect(**login(served), autocommit=True) as client,
        client.cursor() as cursor,
        pytest.raises(psycopg.errors.QueryCanceled),
        cursor.copy(
            b"COPY (SUBSCRIBE TradeAgg PER '2 days by () in Asia/Kolkata') TO STDOUT (FORMAT csv, HEADER)"
        ) as copy,
    ):
        for data in copy:
            found += bytes(data).decode()
            if ",commit," in found:
                client.cancel_safe()
    header, *rows = csv.reader(io.StringIO(found))
    assert "symbol" not in header and "AGG_FINAL" not in header
    total, trades = header.index("total"), header.index("trades")
    assert {int(row[3]): (float(row[total]), int(row[trades])) for row in rows if row[1] == "row"} == expected


def test_csv_with_a_header_and_a_condition(served: Any) -> None:
    _, send, sent = served
    send([trade(7, 1.0, 'with "," and\nline'), trade(7, 2.0, "other")])
    text = (
        "/* a chart */ copy (subscribe to tradeagg per 'days' since '2018-01-07 **:**:**' where symbol <> 'it''s')"
        " to stdout with (format csv, header);"
    )
    found = ""
    with (
        psycopg.connect(**login(served), autocommit=True) as client,
        client.cursor() as cursor,
        pytest.raises(psycopg.errors.QueryCanceled),
        cursor.copy(text.encode()) as copy,
    ):
        for data in copy:
            found += bytes(data).decode()
            if ",commit," in found:
                client.cancel_safe()
    header, *rows = csv.reader(io.StringIO(found))
    assert header[:5] == ["AGG_COMMIT", "AGG_CHANGE", "AGG_UNTIL", "AGG_TIMESTAMP", "symbol"]
    kinds = [row[1] for row in rows]
    assert kinds[0] == "cleared" and kinds[-1] == "commit"
    start = at("2018-01-07T00:00:00")
    assert {(int(row[3]), row[4]): float(row[5]) for row in rows if row[1] == "row"} == {
        key: total for key, (total, _) in sums(sent).items() if key[0] >= start
    }


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("SUBSCRIBE Nothing PER 'days'", 11, "\"Nothing\"|'Nothing' is not defined"),
        ("SUBSCRIBE TradeAgg PER 'auto'", None, "a subscription has no end"),
        ("SUBSCRIBE TradeAgg", 18, "needs a level or a period"),
        ("SUBSCRIBE TradeAgg PER days", 24, "PER takes a level or a period in quotes"),
        ("SUBSCRIBE TradeAgg PER 'days' LIMIT 3", 31, "cannot stand here"),
        ("SUBSCRIBE TradeAgg PER 'days' FROM COMMIT x", 43, "FROM COMMIT takes a number"),
        ("SUBSCRIBE TradeAgg PER 'days' FROM COMMIT 999999", None, "no commit 999999 yet"),
        ("SUBSCRIBE TradeAgg PER 'days' WHERE nobody = 1", None, "nobody"),
        ("COPY (SUBSCRIBE TradeAgg PER 'days') TO '/etc/passwd'", 1, "does not end with TO STDOUT"),
        ("COPY (SUBSCRIBE TradeAgg PER 'days') TO STDOUT (FORMAT binary)", None, "no option 'FORMAT binary'"),
    ],
)
def test_what_cannot_be_is_refused_and_the_session_goes_on(
    served: Any, text: str, place: int | None, message: str
) -> None:
    served[1]([trade(9, 1.0)])
    with psycopg.connect(**login(served), autocommit=True) as client:
        with pytest.raises(psycopg.Error, match=message) as caught:
            client.execute(text.encode())
        if place is not None:
            assert caught.value.diag.statement_position == str(place)
        assert client.execute("select 1").fetchone() == (1,)
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="no prepared form"):
            client.execute(b"SUBSCRIBE TradeAgg PER 'days'", prepare=True)
        client.execute("begin")
        with pytest.raises(psycopg.Error, match="division by zero"):
            client.execute("select 1 / 0")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            client.execute(b"SUBSCRIBE TradeAgg PER 'days'")


def test_a_client_that_goes_or_does_not_read_holds_nobody(served: Any) -> None:
    serving, send, _ = served
    send([trade(10, 1.0)])
    gone, idle = psycopg.connect(**login(served), autocommit=True), psycopg.connect(**login(served), autocommit=True)
    for client in (gone, idle):
        client.pgconn.send_query(DAYS.encode())
    with psycopg.connect(**login(served), autocommit=True) as other:
        send([trade(11, 1.0)])
        assert other.execute("select 1").fetchone() == (1,)
    gone.close()
    deadline = 200
    while serving.endpoint._gateway.connections > 1 and deadline:
        deadline -= 1
        threading.Event().wait(0.05)
    assert serving.endpoint._gateway.connections == 1, "the one that is gone is forgotten"
    idle.close()
