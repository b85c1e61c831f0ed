"""What the gateway costs: the same question asked of PostgreSQL directly and through the gateway, taking turns.

    python benchmarks/gateway.py [--questions 2000] [--answers 100] [--uvloop]

Prints JSON lines. `overhead_ms` is gateway minus direct at the median; `ratio` is gateway to direct. The gateway runs
in a process of its own, as it does in service, and its rewriter only replaces a token: this is the proxy alone.
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
from typing import Any

import psycopg
import psycopg2

from rollup.gateway.protocol.proxy import Gateway
from rollup.stores.postgres.server import PgServer

SMALL = "select n from ANSWER where n = 42"
FOREIGN = "select 42"
LARGE = "select ts, symbol, total, n from bench_days"


async def _rewrite(sql: str) -> str:
    return sql.replace("from ANSWER", "from (values (42)) as answer(n)")


def _serve(backend: tuple[str, int], pipe: Connection, uvloop: bool) -> None:
    async def serve() -> None:
        gateway = Gateway(backend, _rewrite, needs=lambda sql: "ANSWER" in sql)
        pipe.send(await gateway.start())
        await gateway.serve_forever()

    if uvloop:
        import uvloop as fast

        fast.run(serve())
    else:
        asyncio.run(serve())


def _percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def _timed(ask: Callable[[], object]) -> float:
    began = time.perf_counter()
    ask()
    return (time.perf_counter() - began) * 1000


def _compare(name: str, direct: Callable[[], object], through: Callable[[], object], times: int) -> None:
    """Both in turns, so that what else the machine does falls on both."""
    for _ in range(max(5, times // 20)):
        direct(), through()
    pairs = [(_timed(direct), _timed(through)) for _ in range(times)]
    line: dict[str, Any] = {"benchmark": "gateway", "case": name, "times": times}
    for label, values in (("direct", [a for a, _ in pairs]), ("gateway", [b for _, b in pairs])):
        line[f"{label}_median_ms"] = round(statistics.median(values), 3)
        line[f"{label}_p99_ms"] = round(_percentile(values, 0.99), 3)
    line["overhead_ms"] = round(line["gateway_median_ms"] - line["direct_median_ms"], 3)
    line["overhead_p99_ms"] = round(line["gateway_p99_ms"] - line["direct_p99_ms"], 3)
    line["ratio"] = round(line["gateway_median_ms"] / line["direct_median_ms"], 3)
    print(json.dumps(line), flush=True)


def _asker(connection: Any, sql: str) -> Callable[[], object]:
    cursor = connection.cursor()

    def ask() -> object:
        cursor.execute(sql)
        return cursor.fetchall()

    return ask


def _run(server: PgServer, port: int, questions: int, answers: int) -> None:
    dsns = (server.dsn, server.dsn.replace(f":{server.port}/", f":{port}/"))
    for driver in (psycopg2, psycopg):
        connections = [driver.connect(dsn) for dsn in dsns]
        for connection in connections:
            connection.autocommit = True
        plain = SMALL.replace("ANSWER", "(values (42)) as answer(n)")
        name = driver.__name__
        direct, through = connections
        _compare(f"{name}, rewritten query, 1 row", _asker(direct, plain), _asker(through, SMALL), questions)
        _compare(f"{name}, foreign query, 1 row", _asker(direct, FOREIGN), _asker(through, FOREIGN), questions)
        _compare(f"{name}, 10,000 rows", _asker(direct, LARGE), _asker(through, LARGE), answers)
        for connection in connections:
            connection.close()


def main() -> None:
    """Starts a PostgreSQL and a gateway, measures, ends both."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--questions", type=int, default=2000)
    arguments.add_argument("--answers", type=int, default=100)
    arguments.add_argument("--uvloop", action="store_true")
    given = arguments.parse_args()
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with PgServer(Path(folder) / "pg") as server:
            with psycopg.connect(server.dsn, autocommit=True) as admin:
                admin.execute(
                    "create table bench_days as select g::bigint * 86400000 as ts, 'S' || g % 100 as symbol,"
                    " g / 3.0::float8 as total, g as n from generate_series(1, 10000) g"
                )
            ours, theirs = spawn.Pipe()
            gateway = spawn.Process(target=_serve, args=(("127.0.0.1", server.port), theirs, given.uvloop), daemon=True)
            gateway.start()
            try:
                _run(server, ours.recv(), given.questions, given.answers)
            finally:
                gateway.terminate()
                gateway.join()


if __name__ == "__main__":
    main()
