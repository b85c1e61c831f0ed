"""The console behind a port: alone until a signal ends it, or in the loop of another server."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Generator
from types import FrameType

import uvicorn

from rollup.conf import Conf
from rollup.console.app import Console
from rollup.console.guard import Guard
from rollup.core.errors import ConfigError
from rollup.gateway.servers.options import LOOPBACK, ServeOptions


class Listening(uvicorn.Server):
    """A server of the console, which listens from the start and has said where. Raises ConfigError."""

    def __init__(self, conf: Conf, host: str, port: int) -> None:
        options = None if host in LOOPBACK else ServeOptions.of(conf)
        tls = None if options is None else options.tls
        self._console = Console(conf, Guard(host, {} if options is None else options.users, tls is not None))
        self._console.check()
        certificate, key = tls or (None, None)
        try:
            self._socket = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        except OSError as problem:
            raise ConfigError(
                f"the console cannot listen on {host}, port {port}: {(problem.strerror or '').split(' (')[0]}"
            ) from None
        at, opened = self._socket.getsockname()[:2]
        print(f"the console is on http{'s' if tls else ''}://{f'[{at}]' if ':' in at else at}:{opened}", flush=True)
        if options is not None and tls is None:
            print("without tls_cert and tls_key the pages and passwords can be read on their way", flush=True)
        self._alone = True
        super().__init__(uvicorn.Config(
            self._console.application(), log_level="warning", timeout_graceful_shutdown=3, limit_concurrency=200,
            server_header=False, ssl_certfile=certificate, ssl_keyfile=key,
        ))  # fmt: skip

    def until_signal(self) -> None:
        """Serve until Ctrl-C or SIGTERM."""
        self.run(sockets=[self._socket])

    async def until_cancelled(self) -> None:
        """Serve until this is cancelled; signals are left to the other server."""
        self._alone = False
        serving = asyncio.ensure_future(self.serve(sockets=[self._socket]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self.handle_exit(signal.SIGTERM, None)
            await serving
            raise

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        with super().capture_signals() if self._alone else contextlib.nullcontext():
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._console.ended = True  # lets those who wait for news go
        super().handle_exit(sig, frame)
