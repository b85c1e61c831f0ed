"""`rollup recover`: when commit records are lost or damaged."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rollup.cli.lifecycle.shared import ConfArgument, NameOption, chosen
from rollup.core.errors import RollupError


def recover(
    conf: ConfArgument,
    aggregation: NameOption = None,
    to_commit: Annotated[
        int | None, typer.Option(help="Go back to this commit; what came after is taken again.")
    ] = None,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Make what is damaged anew from the tables; with --aggregation also what is whole."
        ),
    ] = False,
) -> None:
    """Make a store startable again, and say what was rebuilt, what is lost, and from when on re-sent events count."""
    problems: list[RollupError] = []
    for one in chosen(conf, aggregation):
        from rollup.lifecycle.recover import recover as recover_one

        try:
            done = recover_one(one.conf, one.aggregation, to_commit, rebuild, aggregation is not None)
        except RollupError as problem:  # the others are looked at all the same
            problems.append(problem)
            continue
        for line in done.lines:
            print(f"{done.aggregation}: {line}")
    for problem in problems[:-1]:
        print(f"rollup: {problem}", file=sys.stderr)
    if problems:
        raise problems[-1]
