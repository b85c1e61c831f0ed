"""`rollup serve`: answer BI tools."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollup.cli.ui import PORT, listening
from rollup.conf import load
from rollup.core.errors import ConfigError

if TYPE_CHECKING:
    from rollup.gateway.servers.serve import Endpoint


def serve(
    conf: Annotated[Path, typer.Argument(help="The configuration, a TOML file; see its section [serve].")],
    port: Annotated[int | None, typer.Option(help="Listen on this port instead of the configuration's.")] = None,
    thrift: Annotated[
        bool, typer.Option("--thrift", help="Start Spark's Thrift server instead, for its BI drivers.")
    ] = False,
    with_ui: Annotated[bool, typer.Option("--ui", help="Serve the console too, on the same host.")] = False,
    ui_port: Annotated[int, typer.Option(help="The console's port.", min=0, max=65535)] = PORT,
) -> None:
    """Answer BI tools over the PostgreSQL protocol, until Ctrl-C or SIGTERM."""
    from dataclasses import replace

    found = load(conf)
    if port is not None:
        found = replace(found, serve={**found.serve, "port": port})
    if thrift and with_ui:
        raise ConfigError("--thrift serves no console", hint="start `rollup ui` beside it")
    if thrift:
        from rollup.gateway.servers.thrift import serve_thrift

        serve_thrift(found)
        return
    import asyncio

    from rollup.gateway.servers.options import ServeOptions
    from rollup.gateway.servers.serve import serve as listen

    async def run() -> None:
        works = [listen(found, _tell)]
        if with_ui:
            works.append(listening(found, ServeOptions.of(found, passwords=False).host, ui_port).until_cancelled())
        running = asyncio.current_task()
        assert running is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, running.cancel)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                async with asyncio.TaskGroup() as together:
                    for work in works:
                        together.create_task(work)
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    asyncio.run(run())


def _tell(endpoint: Endpoint) -> None:
    options = endpoint.options
    print(
        f"listening on {options.host}:{endpoint.port}, database {endpoint.database}, users {', '.join(options.users)}",
        flush=True,
    )
    if options.open_to_others:
        print("without tls_cert and tls_key the answers can be read on their way", flush=True)
