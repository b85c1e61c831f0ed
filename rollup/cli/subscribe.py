"""`rollup subscribe`: what each commit changes, a line of JSON for each row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollup.cli.query import columns_of, written
from rollup.conf import load
from rollup.core.json_line import json_line

if TYPE_CHECKING:
    from rollup.subscribe import Change


def subscribe(
    conf: Annotated[Path, typer.Argument(help="The configuration, a TOML file.")],
    name: Annotated[str, typer.Argument(help="The aggregation.")],
    per: Annotated[
        str, typer.Option(help="A level, as minutes, or what else a question takes: '15 minutes', 'weeks by country'.")
    ],
    since: Annotated[
        str | None, typer.Option(help="Leave out buckets before a time or a range: '2018-01', 'last 2 hours'.")
    ] = None,
    on: Annotated[str | None, typer.Option(help="A condition over a row: \"symbol = 'A'\".")] = None,
    from_commit: Annotated[
        int | None, typer.Option(help="What is different since this commit, instead of all.")
    ] = None,
    to_commit: Annotated[int | None, typer.Option(help="End with this commit, or one behind it.")] = None,
    epoch: Annotated[bool, typer.Option("--epoch", help="Times as milliseconds since 1970.")] = False,
) -> None:
    """Print what each commit changes in the rows per a level or a period, as lines of JSON, until it is interrupted."""
    found = load(conf)
    from rollup.ask import opened

    asker = opened(found)
    for change in asker.subscribe(name, per, since, on, from_commit):
        show(change, None if epoch else asker.zone)
        if to_commit is not None and change.commit >= to_commit:
            break


def show(change: Change, zone: str | None) -> None:
    """Print a change; a line has no columns that are not about its kind."""
    from rollup.subscribe import CHANGE, REMOVED, ROW, UNTIL

    table = change.table
    names = table.schema.names
    for row in zip(*columns_of(table, zone), strict=True):
        values = dict(zip(names, row, strict=True))
        if values[CHANGE] == ROW:
            del values[UNTIL]
        elif values[CHANGE] == REMOVED:
            values = {name: values[name] for name in (*names[:2], *change.removed.schema.names)}
        else:
            values = {name: value for name, value in values.items() if value is not None}
        print(json_line(values, written))
    sys.stdout.flush()
