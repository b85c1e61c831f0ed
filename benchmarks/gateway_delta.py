"""What a chart costs through `rollup serve` before a Delta store: warm server, rows not loaded yet, and loaded.

    python benchmarks/gateway_delta.py [--keys 100] [--days 366] [--times 30]

Prints JSON lines. `first` asks for another month every time, so its rows are computed and loaded; `again` asks for the
same one; `bound` gives the month as a parameter of a prepared statement; `foreign` is a chart without a table of ours,
so `again` minus `foreign` is what the endpoint adds. Seconds come once an hour a key: about keys x days x 24 rows.
The endpoint runs in a process of its own, as in service.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import psycopg
import psycopg2
import pyarrow as pa

from rollup.conf import Conf, load
from rollup.gateway.servers.serve import endpoint
from rollup.hosts.local import LocalHost
from rollup.stores.delta.store import DeltaStore

APP = """
define stream Trades (symbol string, price double, ts long);
define aggregation TradeAgg from Trades select symbol, sum(price) as total, avg(price) as mean, count() as trades
group by symbol aggregate by ts every sec ... year;
"""
START, HOUR = 1_514_764_800_000, 3_600_000
CHART = (
    "SELECT \"AGG_TIME\", total FROM TradeAgg WITHIN '2018-{month:02d}-** **:**:**' PER 'days' t WHERE symbol = '{key}'"
)
ALL = "SELECT * FROM TradeAgg WITHIN '2018-{month:02d}-** **:**:**' PER 'days'"
BOUND = 'SELECT "AGG_TIME", total FROM TradeAgg WITHIN %s PER %s t WHERE symbol = %s'


def configuration(folder: Path) -> Conf:
    """A configuration in a folder, with the user bench."""
    (folder / "app.siddhi").write_text(APP)
    (folder / "secret").write_text("bench")
    (folder / "rollup.toml").write_text(
        'app = "app.siddhi"\ncheckpoint = "state/checkpoint"\n[store]\nkind = "delta"\npath = "tables"\n'
        '[serve]\nport = 0\n[serve.users]\nbench = { password_file = "secret" }\n'
    )
    return load(folder / "rollup.toml")


def fill(conf: Conf, keys: int, days: int) -> int:
    """Write the store; the number of events."""
    host = LocalHost(conf.program(), lambda aggregation, engine: DeltaStore(aggregation, engine, conf.tables))
    names = [f"S{index}" for index in range(keys)]
    sent = 0
    for first in range(0, days, 61):
        hours = range(first * 24, min(days, first + 61) * 24)
        stamps = pa.array([START + hour * HOUR for hour in hours for _ in names], pa.int64())
        symbols = pa.array(names * len(hours))
        prices = pa.array([float(index % 97) for index in range(len(symbols))])
        arrivals = pa.array(range(sent, sent + len(symbols)), pa.int64())
        columns = {"symbol": symbols, "price": prices, "ts": stamps, "__arrival": arrivals, "__received": arrivals}
        host.process("Trades", pa.table(columns))
        sent += len(symbols)
    return sent


def _serve(path: Path, pipe: Connection) -> None:
    async def serve() -> None:
        found = endpoint(load(path))
        await found.start()
        pipe.send(found.port)
        await asyncio.to_thread(pipe.recv)
        await found.close()

    asyncio.run(serve())


def _timed(name: str, ask: Callable[[int], object], times: int) -> None:
    took: list[float] = []
    for turn in range(times):
        began = time.perf_counter()
        ask(turn)
        took.append((time.perf_counter() - began) * 1000)
    ordered = sorted(took)
    line = {"benchmark": "gateway_delta", "case": name, "times": times, "first_ms": round(took[0], 2)}
    line |= {"median_ms": round(statistics.median(took), 2), "p99_ms": round(ordered[int(times * 0.99) - 1], 2)}
    print(json.dumps(line), flush=True)


def measure(port: int, keys: int, times: int) -> None:
    """Ask through psycopg2 (texts) and psycopg (prepared statements with parameters)."""
    login = {"host": "127.0.0.1", "port": port, "user": "bench", "password": "bench", "dbname": "rollup"}
    texts = psycopg2.connect(**login)
    texts.autocommit = True
    cursor = texts.cursor()
    prepared = psycopg.connect(**login, autocommit=True, prepare_threshold=0)

    def text(sql: str) -> object:
        cursor.execute(sql)
        return cursor.fetchall()

    def bound(turn: int, key: str) -> object:
        return prepared.execute(BOUND, (f"2018-{turn % 12 + 1:02d}-** **:**:**", "days", key)).fetchall()

    text("select 1")
    _timed(
        "first, one key a month of days",
        lambda turn: text(CHART.format(month=turn % 12 + 1, key=f"S{turn % keys}")),
        times,
    )
    _timed("first, all keys a month of days", lambda turn: text(ALL.format(month=turn + 1)), 12)
    _timed("first, bound", lambda turn: bound(turn, f"S{(turn + 7) % keys}"), times)
    _timed("again, one key", lambda turn: text(CHART.format(month=1, key="S0")), times * 10)
    _timed("again, all keys", lambda turn: text(ALL.format(month=1)), times)
    _timed("again, bound", lambda turn: bound(0, "S7"), times * 10)
    _timed(
        "foreign, 31 rows",
        lambda turn: text("select to_timestamp(g), g / 3.0::float8 from generate_series(1, 31) g"),
        times * 10,
    )
    texts.close()
    prepared.close()


def main() -> None:
    """Fill a store, serve it, measure."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--keys", type=int, default=100)
    arguments.add_argument("--days", type=int, default=366)
    arguments.add_argument("--times", type=int, default=30)
    given = arguments.parse_args()
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        conf = configuration(folder)
        print(json.dumps({"benchmark": "gateway_delta", "events": fill(conf, given.keys, given.days)}), flush=True)
        ours, theirs = spawn.Pipe()
        server = spawn.Process(target=_serve, args=(conf.path, theirs), daemon=False)
        server.start()
        try:
            measure(ours.recv(), given.keys, given.times)
        finally:
            ours.send("end")
            server.join(30)


if __name__ == "__main__":
    main()
