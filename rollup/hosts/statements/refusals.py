"""The dead letters of events that statements refuse: the record is looked up again, since a batch brings of it only what
statements read, and not where it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rollup.core.json_line import json_line
from rollup.plan.app import StreamDef
from rollup.program import Program
from rollup.statements.component import Event, Refused
from rollup.stores.dead_letters import SCHEMA

SOUGHT = pa.schema([("__arrival", pa.int64()), ("reason", pa.string())])
"""Events of a stream that are looked up: their arrivals in the batch, and by what they are known again."""
LookUp = Callable[[Mapping[str, pa.Table]], Sequence[Mapping[str, Any]]]
"""Gives for the events of some streams their places and records, as dead letters with the same reasons."""


def letters_of(
    refused: Sequence[Refused], program: Program, stream: str | None = None, look_up: LookUp | None = None
) -> pa.Table:
    """The letters of what was refused of a batch of a stream, or of what time has brought.

    What an event has caused stands where that event does; nobody knows where a row stands that closed.
    """
    found = dict[int, Mapping[str, Any]]()
    if stream is not None and look_up is not None:
        found = {int(each["reason"]): each for each in look_up(_sought(refused, program, stream))}
    streams = {**program.streams, **(program.statements.streams if program.statements is not None else {})}
    rows = list[Mapping[str, Any]]()
    for number, (event, reason, by) in enumerate(refused):
        known = found.get(number, {"stream": None, "position": ""})
        raw = known["raw"] if known["stream"] == event.stream and len(event.key) == _READ else None
        more = {"reason": reason, "position": known["position"], "raw": raw or _raw(event, streams), "by": by}
        rows.append({"stream": event.stream, "at": event.at, **more})
    return pa.Table.from_pylist(rows, schema=_LETTERS)


_READ = 2
"""The parts of the key of an event that was read; those that were caused have more."""
_LETTERS = pa.schema([field for field in SCHEMA if field.name not in ("query", "batch")])


def _sought(refused: Sequence[Refused], program: Program, stream: str) -> dict[str, pa.Table]:
    reached = {stream, *(each.target for each in program.fed_by(stream))}
    scale, rows = program.scale(stream), dict[str, list[dict[str, Any]]]()
    for number, (event, _, _) in enumerate(refused):
        own = event.stream in reached and len(event.key) == _READ
        name, arrival = (event.stream, event.key[0]) if own else (stream, event.key[0] // scale * scale)
        rows.setdefault(name, []).append({"__arrival": arrival, "reason": str(number)})
    return {name: pa.Table.from_pylist(each, schema=SOUGHT) for name, each in rows.items()}


def _raw(event: Event, streams: Mapping[str, StreamDef]) -> str:
    return json_line(dict(zip(streams[event.stream].attributes, event.values, strict=True)))
