"""`rollup maintain`: retention and compaction without a running job, for schedulers."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from rollup.cli.lifecycle.shared import ConfArgument, NameOption, chosen


def maintain(
    conf: ConfArgument,
    aggregation: NameOption = None,
    seconds: Annotated[float, typer.Option(help="Time for putting small files together.")] = 60.0,
) -> None:
    """Remove rows whose time is over, put small files together, remove files and logs that are kept no longer.

    A running job does it by itself, so this is then refused.
    """
    for one in chosen(conf, aggregation):
        from rollup.hosts.pipeline import Pipeline
        from rollup.hosts.spark.log_sums import release
        from rollup.lifecycle.lease.places import held, lease_of
        from rollup.lifecycle.maintenance.between_batches import Chores

        with held([lease_of(one.conf, one.aggregation, "maintain")], "it does this by itself between its batches"):
            pipeline = Pipeline(one.aggregation, one.store, one.engine)
            pipeline.start()
            for line in Chores(one.conf, one.program, pipeline).purge() or ["nothing to remove"]:
                print(f"{one.aggregation.name}: {line}")
            together = one.store.maintain(seconds)
            for name, files in together.items():
                print(f"{one.aggregation.name}_{name}: {files} files put together")
            if together:
                pipeline.rewrite({})
            if released := one.store.release(partial(pipeline.rewrite, {})):
                print(f"{one.aggregation.name}: {released} files that no kept commit needs removed")
            for stream in one.program.inputs:
                release(one.conf.checkpoint / stream)
