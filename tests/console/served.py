"""A console for tests: a store made in this process, and the application before it, with or without a server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.testclient import TestClient

from rollup.conf import Conf
from rollup.console.app import Console
from rollup.console.guard import Guard
from tests.gateway.trades import APP, configuration, events, host

MARKUP = "<img src=x onerror=alert(1)>\"'`</script>\u202e" + "long " * 2000
"""A value that a page which trusts it would run, or be broken by."""


def stored(folder: Path, app: str = APP, rows: Sequence[tuple[Any, ...]] | None = None) -> Conf:
    """A configuration whose trades are stored."""
    conf = configuration(folder, app)
    job = host(conf)
    job.send("Trades", list(events("2018-01") if rows is None else rows))
    return conf


def client(conf: Conf, host: str = "127.0.0.1", users: dict[str, str] | None = None) -> TestClient:
    """A client of the application, which needs no server."""
    made = Console(conf, Guard(host, users or {}, encrypted=False)).application()
    return TestClient(made, base_url=f"http://{host}", follow_redirects=False, raise_server_exceptions=True)


@contextmanager
def serving(conf: Conf) -> Iterator[str]:
    """The address of a server of the application in a thread."""
    made = Console(conf, Guard("127.0.0.1", {}, encrypted=False)).application()
    server = uvicorn.Server(uvicorn.Config(made, port=0, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()
