"""`rollup run`: the job."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from rollup.conf import load
from rollup.hosts.spark.watching.deadline import PATIENCE, ended_in_time


def run(
    conf: Annotated[Path, typer.Argument(help="The configuration, a TOML file.")],
    once: Annotated[bool, typer.Option("--once", help="Process all that is there, then end.")] = False,
    metrics_json: Annotated[Path | None, typer.Option(help="Write one JSON line a batch to this file.")] = None,
    standby: Annotated[
        bool, typer.Option("--standby", help="Wait while another job runs, and take over when it is gone.")
    ] = False,
    json_logs: Annotated[
        bool,
        typer.Option("--json-logs", help="Write logs and warnings as JSON, one object a line, on standard output."),
    ] = False,
    patience: Annotated[
        float, typer.Option(min=0.1, help="Seconds after Ctrl-C or SIGTERM in which the batch in progress may end.")
    ] = PATIENCE,
    takeover: Annotated[
        float, typer.Option(min=1, help="Seconds without a heartbeat after which the other job counts as gone.")
    ] = 10.0,
) -> None:
    """Keep the tables of an app up to date from its streams, until Ctrl-C or SIGTERM.

    Exit code 1: no record of the run could be used, or fewer than [dead_letters] fail_above asks for.
    """
    found = load(conf)
    program = found.program()
    from rollup.lifecycle.readiness import reach, ready

    ready(found, program)
    reach(found, program)

    from rollup.hosts.listeners.listening import Listeners
    from rollup.hosts.reporting.dead_records import DeadRecords, TooManyDead
    from rollup.hosts.reporting.progress import Reporter, as_json
    from rollup.hosts.spark.ownership import claim
    from rollup.hosts.spark.session import coming

    claim(found, program)
    kinds = {name: options["kind"] for name, options in found.sources.items()}
    dead = DeadRecords(found.sources, found.fail_above)
    if json_logs:
        as_json()
    listeners = Listeners(found, program, "run")
    reporter = Reporter(
        metrics_json,
        found.metrics_port,
        kinds=kinds,
        host=found.metrics_host,
        dead=dead,
        json_logs=json_logs,
        listeners=listeners,
    )
    reporter.warn(f"warning: {found.app}, {said}" for said in program.notices)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, for as long as there is nothing to stop
    with ended_in_time(patience), coming(found, once) as spark:  # while Java starts, Python loads the rest
        import pandas  # noqa: F401  # pyspark loads it for every frame of a batch
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from rollup.hosts.spark.watching.failures import cause
        from rollup.hosts.spark.watching.processes import quiet
        from rollup.lifecycle.job import Job

        quiet()
        try:
            host = Job(found, spark, reporter, standby=standby, takeover=takeover)

            def stop(*_: object) -> None:
                host.stop()
                if not spark.made:  # there is no batch to wait for
                    raise KeyboardInterrupt

            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, stop)
            with listeners:
                host.run(once)
        except TooManyDead as problem:
            print(f"rollup: {problem}", file=sys.stderr)
            raise typer.Exit(1) from None
        except (PySparkException, Py4JError) as problem:
            raise cause(problem) from None
    if reporter.nothing_taken:
        print("rollup: no record of this run could be used", file=sys.stderr)
        raise typer.Exit(1)
