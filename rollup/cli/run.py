"""`rollup run`: the job."""

from __future__ import annotations

import logging
import signal
from pathlib import Path
from typing import Annotated

import typer

from rollup.conf import check, load


def run(
    conf: Annotated[Path, typer.Argument(help="The configuration, a TOML file.")],
    once: Annotated[bool, typer.Option("--once", help="Process all that is there, then end.")] = False,
    metrics_json: Annotated[Path | None, typer.Option(help="Write one JSON line a batch to this file.")] = None,
    standby: Annotated[
        bool, typer.Option("--standby", help="Wait while another job runs, and take over when it is gone.")
    ] = False,
    takeover: Annotated[
        float, typer.Option(help="Seconds without a heartbeat after which the other job counts as gone.")
    ] = 10.0,
) -> None:
    """Keep the tables of an app up to date from its streams, until Ctrl-C or SIGTERM."""
    found = load(conf)
    program = found.program()
    check(found, program)

    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from rollup.hosts.causes import cause
    from rollup.hosts.checkpoint import claim
    from rollup.hosts.progress import Reporter
    from rollup.lifecycle.host import Job

    claim(found, program)
    # What stops a batch is said once, in one line, by our caller; py4j would print the same as a stack trace.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    try:
        host = Job(found, reporter=Reporter(metrics_json, found.metrics_port), standby=standby, takeover=takeover)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: host.stop())
        host.run(once)
    except (PySparkException, Py4JError) as problem:
        raise cause(problem) from None
