"""`rollup dead`: the records of a job that could not be used, and why."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from rollup.cli.lifecycle.shared import ConfArgument, JsonOption
from rollup.conf import load
from rollup.core.errors import ConfigError


def dead(
    conf: ConfArgument,
    stream: Annotated[str | None, typer.Option("--stream", help="Only those of this stream.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Only those whose reason contains this.")] = None,
    json: JsonOption = False,
    retake: Annotated[
        bool, typer.Option("--retake", help="After a fix, take in again those that can be used now, each once.")
    ] = False,
) -> None:
    """List the dead letters of a job by stream and reason, or all of them as JSON lines. Exit code 1: there are some."""
    found = load(conf)
    from rollup.stores.dead_letters import DeadLetters

    letters = DeadLetters(found.tables).read().to_pylist()
    if stream is not None and stream not in (known := {*(row["stream"] for row in letters), *found.program().streams}):
        raise ConfigError(f"there is no stream {stream!r}", hint=f"streams: {', '.join(sorted(known))}")
    if retake:
        from rollup.lifecycle.retake import Retake

        for line in Retake(found, found.program()).run(stream, reason):
            print(line)
        return
    rows = [row for row in letters if stream in (None, row["stream"]) and (reason is None or reason in row["reason"])]
    if json:
        for row in rows:
            print(jsonlib.dumps(row, ensure_ascii=False))
    else:
        _table(rows)
    if rows:
        raise typer.Exit(1)


def _table(rows: list[dict[str, object]]) -> None:
    from rich.table import Table

    from rollup.cli.console import console
    from rollup.hosts.reporting.dead_records import reasons, shown

    if not rows:
        print("no dead letters")
        return
    table = Table("records", "stream", "reason", "the first at", "its text")
    for name, why, count, first in reasons(rows):
        why = f"{why} (dead for {first['by']} alone)" if first["by"] else why
        table.add_row(f"{count:,}", name, why, str(first["position"]), shown(first["raw"]))
    console().print(table)
