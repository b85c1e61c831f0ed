"""`rollup ui`: pages that show what aggregations hold and how they are doing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollup.conf import Conf, load
from rollup.core.packages import needed_by

if TYPE_CHECKING:
    from rollup.console.listening import Listening

PORT = 8080


def ui(
    conf: Annotated[Path, typer.Argument(help="The configuration, a TOML file; see its section [serve].")],
    host: Annotated[str, typer.Option(help="Listen on this address; others than loopback need users.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Listen on this port.", min=0, max=65535)] = PORT,
) -> None:
    """Show overview, charts, questions and dead letters in a browser, until Ctrl-C or SIGTERM. Nothing is changed."""
    listening(load(conf), host, port).until_signal()


def listening(conf: Conf, host: str, port: int) -> Listening:
    """The console behind a port. Raises ConfigError, also where its packages are missing."""
    with needed_by("the console", "ui"):
        from rollup.console.listening import Listening
    return Listening(conf, host, port)
