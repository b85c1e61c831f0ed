"""`rollup run`: the job."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from rollup.conf import load


def run(
    conf: Annotated[Path, typer.Argument(help="The configuration, a TOML file.")],
    once: Annotated[bool, typer.Option("--once", help="Process all that is there, then end.")] = False,
    metrics_json: Annotated[Path | None, typer.Option(help="Write one JSON line a batch to this file.")] = None,
) -> None:
    """Keep the tables of an app up to date from its streams, until Ctrl-C or SIGTERM."""
    from rollup.hosts.progress import Reporter
    from rollup.hosts.spark_driver import SparkHost

    found = load(conf)
    host = SparkHost(found, reporter=Reporter(metrics_json, found.metrics_port))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: host.stop())
    host.run(once)
