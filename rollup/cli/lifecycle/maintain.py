"""`rollup maintain`: retention and compaction without a running job, for schedulers."""

from __future__ import annotations

from typing import Annotated

import typer

from rollup.cli.lifecycle.shared import ConfArgument, NameOption, chosen


def maintain(
    conf: ConfArgument,
    aggregation: NameOption = None,
    seconds: Annotated[float, typer.Option(help="Time for putting small files together.")] = 60.0,
) -> None:
    """Remove rows whose time is over, put small files together. A running job does both, so this is then refused."""
    for one in chosen(conf, aggregation):
        from rollup.hosts.pipeline import Pipeline
        from rollup.lifecycle.lease.places import held, lease_of
        from rollup.lifecycle.maintenance.between_batches import Chores

        with held([lease_of(one.conf, one.aggregation, "maintain")], "it does this by itself between its batches"):
            pipeline = Pipeline(one.aggregation, one.store, one.engine)
            pipeline.start()
            for line in Chores(one.conf, one.program, pipeline).purge() or ["nothing to remove"]:
                print(f"{one.aggregation.name}: {line}")
            for name, files in one.store.maintain(seconds).items():
                print(f"{one.aggregation.name}_{name}: {files} files put together")
                pipeline.rewrite({})
