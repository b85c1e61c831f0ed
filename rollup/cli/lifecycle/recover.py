"""`rollup recover`: when commit records are lost or damaged."""

from __future__ import annotations

from typing import Annotated

import typer

from rollup.cli.lifecycle.shared import ConfArgument, NameOption, chosen, examined, raise_all
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
    """Make a store startable again, and say what was rebuilt, what is lost, and from when on re-sent events count.

    Without options it also looks at the statements, their sinks and the checkpoint. Exit code 2: a job could not start.
    """
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
    if aggregation is None and to_commit is None and not rebuild:
        for said in examined(conf):
            if isinstance(said, RollupError):
                problems.append(said)
            else:
                print(said)
    raise_all(problems)
