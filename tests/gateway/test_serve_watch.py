"""The watch over the private server goes on, whatever it meets; no server is needed for that."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import psycopg
import psycopg2
import pytest

from rollup.core.errors import StoreError
from rollup.gateway.servers import serve
from rollup.gateway.servers.serve import DeltaEndpoint
from tests.servers.postgres import PostgresServer


class Server:
    """A private server that is gone until a start succeeds."""

    def __init__(self, problems: list[Exception]) -> None:
        self.problems, self.running, self.looks = problems, False, 0

    def restart(self) -> None:
        if self.problems:
            raise self.problems.pop()
        self.running = True

    def give_way(self) -> None:
        pass

    def greediest(self) -> int | None:
        self.looks += 1
        raise ValueError("a line that was cut") if self.looks == 1 else psycopg2.OperationalError("gone")


def test_a_watch_that_met_any_error_is_kept_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_WATCH", "_AGAIN"):
        monkeypatch.setattr(serve, name, 0.001)
    problems: list[Exception] = [
        psycopg2.OperationalError("refused"),
        StoreError("in use"),
        OSError("no memory"),
        KeyError("a role"),
    ]
    private, forgotten = Server(problems), list[str]()
    endpoint: Any = object.__new__(DeltaEndpoint)
    endpoint.private = private

    class Alike:
        slices = SimpleNamespace(forget=lambda: forgotten.append("slices"), overdue=list)

    endpoint.shares = {"ann": Alike()}

    async def watched() -> None:
        guard = asyncio.ensure_future(endpoint._guarding())
        while private.looks < 3:
            await asyncio.sleep(0.001)
            assert not guard.done()
        guard.cancel()

    asyncio.run(watched())
    assert private.running and not problems and forgotten == ["slices"]


@pytest.mark.postgres
def test_a_query_that_computes_for_long_goes_behind_the_others_until_it_rests() -> None:
    with PostgresServer() as server, psycopg.connect(server.dsn, autocommit=True) as busy:
        pid, own = busy.info.backend_pid, os.getpriority(os.PRIO_PROCESS, 0)

        def until(nice: bool) -> None:
            deadline = time.monotonic() + 60
            while (os.getpriority(os.PRIO_PROCESS, pid) > own) != nice:
                assert time.monotonic() < deadline
                server.give_way()
                time.sleep(0.02)

        def compute() -> None:
            with suppress(psycopg.errors.QueryCanceled):
                busy.execute("select count(*) from (select generate_series(1, 1000000000000)) t")

        thread = threading.Thread(target=compute)
        thread.start()
        until(True)
        busy.cancel()
        thread.join(60)
        if os.geteuid() == 0:  # nobody else may take a process to the front again
            until(False)
