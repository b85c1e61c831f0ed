"""`rollup ui`: pages that show what aggregations hold and how they are doing."""

from __future__ import annotations

import socket
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from rollup.conf import load
from rollup.core.errors import ConfigError


def ui(
    conf: Annotated[Path, typer.Argument(help="The configuration, a TOML file; see its section [serve].")],
    host: Annotated[str, typer.Option(help="Listen on this address; others than loopback need users.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Listen on this port.", min=0, max=65535)] = 8080,
) -> None:
    """Show overview, charts, questions and dead letters in a browser, until Ctrl-C or SIGTERM. Nothing is changed."""
    found = load(conf)
    try:
        import uvicorn

        from rollup.console.app import Console
        from rollup.console.guard import Guard
    except ImportError as problem:
        raise ConfigError(f"the console needs the package {problem.name}", hint="pip install 'rollup[ui]'") from None
    from rollup.gateway.servers.options import LOOPBACK, ServeOptions

    options = None if host in LOOPBACK else ServeOptions.of(found)
    tls = None if options is None else options.tls
    console = Console(found, Guard(host, {} if options is None else options.users, tls is not None))
    console.check()
    certificate, key = tls or (None, None)
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        raise ConfigError(
            f"the console cannot listen on {host}, port {port}: {(problem.strerror or '').split(' (')[0]}"
        ) from None
    at, opened = listening.getsockname()[:2]
    print(f"the console is on http{'s' if tls else ''}://{f'[{at}]' if ':' in at else at}:{opened}", flush=True)
    if options is not None and tls is None:
        print("without tls_cert and tls_key the pages and passwords can be read on their way", flush=True)
    settings = uvicorn.Config(
        console.application(), log_level="warning", timeout_graceful_shutdown=3, limit_concurrency=200,
        server_header=False, ssl_certfile=certificate, ssl_keyfile=key,
    )  # fmt: skip

    class Server(uvicorn.Server):
        """Lets those who wait for news go when it ends."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            console.ended = True
            super().handle_exit(sig, frame)

    Server(settings).run(sockets=[listening])
