"""`rollup recover`: when commit records are lost or damaged."""

from __future__ import annotations

from typing import Annotated

import typer

from rollup.cli.lifecycle import ConfArgument, NameOption, chosen
from rollup.lifecycle.recover import recover as recover_one


def recover(
    conf: ConfArgument,
    aggregation: NameOption = None,
    to_commit: Annotated[
        int | None, typer.Option(help="Go back to this commit; what came after is taken again.")
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Use the tables alone, even when there are usable records.")
    ] = False,
) -> None:
    """Make a store startable again, and say what was rebuilt, what is lost, and from when on re-sent events count."""
    for one in chosen(conf, aggregation):
        done = recover_one(one.conf, one.aggregation, to_commit, rebuild)
        for line in done.lines:
            print(f"{done.aggregation}: {line}")
