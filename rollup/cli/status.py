"""`rollup status`: how the aggregations of a configuration are doing."""

from __future__ import annotations

import json as jsons

from rollup.cli.lifecycle import ConfArgument, JsonOption, NameOption, chosen
from rollup.lifecycle.compare import readable
from rollup.lifecycle.status import Status, newest
from rollup.lifecycle.status import status as status_of


def status(conf: ConfArgument, aggregation: NameOption = None, json: JsonOption = False) -> None:
    """Show clocks, last commit, open and stored rows, late events and lag, from the store alone."""
    for one in chosen(conf, aggregation):
        found = status_of(one.conf, one.aggregation, newest(one.store))
        if json:
            print(jsons.dumps(found.plain()))
        else:
            _show(found)


def _show(found: Status) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for line in _lines(found):
        console.print(line, highlight=False, soft_wrap=True)
    table = Table("level", "clock", "open rows", "stored rows", "bytes", "removed before")
    for level in found.levels:
        counts = (f"{level.open_rows:,}", f"{level.stored_rows:,}", f"{level.bytes:,}")
        table.add_row(level.level, _instant(level.clock), *counts, _instant(level.purged_before))
    console.print(table)


def _lines(found: Status) -> list[str]:
    late = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.late.items())) or "none"
    lag = "unknown" if found.lag is None else f"{found.lag:,.0f} s"
    lines = [
        f"{found.aggregation}: commit {found.commit}"
        + ("" if found.commit_age is None else f", {found.commit_age:,.0f} s ago"),
        f"written by {found.holder or 'nobody now'}"
        + ("" if found.heartbeat_age is None else f", heartbeat {found.heartbeat_age:.0f} s ago"),
        f"lag {lag}; late events {late}; dead letters {found.dead_letters:,}",
    ]
    if found.resume is not None:
        lines.append(f"after a rebuild: events before {readable(found.resume)} are re-sent ones and dropped")
    lines += [f"column {name}: complete from {readable(since)} on" for name, since in found.valid_from.items()]
    return [*lines, *(f"column {name}: dropped, kept in the tables" for name in found.dropped)]


def _instant(value: int | None) -> str:
    return "·" if value is None else readable(value)
