"""`rollup status`: how the aggregations of a configuration are doing."""

from __future__ import annotations

import json as jsons
from typing import TYPE_CHECKING

from rollup.cli.lifecycle.shared import ConfArgument, JsonOption, NameOption, chosen, examined, raise_all
from rollup.core.errors import RollupError

if TYPE_CHECKING:
    from rollup.lifecycle.status import Status

_FILES = 10
"""Dead files that are named."""


def status(conf: ConfArgument, aggregation: NameOption = None, json: JsonOption = False) -> None:
    """Show clocks, last commit, open and stored rows, late events and lag, from the store alone; of statements their commit and
    sinks. Exit code 2: something is damaged, and a job could not start."""
    for one in chosen(conf, aggregation):
        from rollup.lifecycle.status import status as status_of

        found = status_of(one.conf, one.aggregation, one.newest())
        if json:
            print(jsons.dumps(found.plain()))
        else:
            _show(found)
    if aggregation is None:
        states = list(examined(conf))
        for line in [] if json else states:
            if isinstance(line, str):
                print(line)
        raise_all([problem for problem in states if isinstance(problem, RollupError)])


def _show(found: Status) -> None:
    from rich.table import Table

    from rollup.cli.console import console

    out = console()
    for line in _lines(found):
        out.print(line, soft_wrap=True)
    table = Table("level", "clock", "open rows", "stored rows", "bytes", "removed before")
    for level in found.levels:
        counts = (f"{level.open_rows:,}", f"{level.stored_rows:,}", f"{level.bytes:,}")
        table.add_row(level.level, _instant(level.clock), *counts, _instant(level.purged_before))
    out.print(table)


def _lines(found: Status) -> list[str]:
    from rollup.hosts.reporting.late_events import CURE, age
    from rollup.lifecycle.replay.compare import readable

    late = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.late.items())) or "none"
    events = found.events + found.late.get("dropped", 0)
    lag = "unknown" if found.lag is None else age(found.lag)
    lines = [
        f"{found.aggregation}: commit {found.commit}"
        + ("" if found.commit_age is None else f", {age(found.commit_age)} ago"),
        f"written by {found.holder or 'nobody now'}"
        + ("" if found.heartbeat_age is None else f", heartbeat {age(found.heartbeat_age)} ago"),
        f"lag {lag}; late events {late} of {events:,} (policy {found.policy}); dead letters {found.dead_letters:,}",
    ]
    if part := found.misplaced:
        lines.append(f"warning: {part} of the events are not in their own buckets; {CURE}")
    lines += [f"dead file {file}: {reason}" for file, reason in list(found.dead_files.items())[:_FILES]]
    if len(found.dead_files) > _FILES:
        lines.append(f"and {len(found.dead_files) - _FILES} more dead files, see the table DEAD_LETTERS")
    if found.resume is not None:
        lines.append(f"after a rebuild: events before {readable(found.resume)} are re-sent ones and dropped")
    lines += [f"column {name}: complete from {readable(since)} on" for name, since in found.valid_from.items()]
    return [*lines, *(f"column {name}: dropped, kept in the tables" for name in found.dropped)]


def _instant(value: int | None) -> str:
    from rollup.lifecycle.replay.compare import readable

    return "·" if value is None else readable(value)
