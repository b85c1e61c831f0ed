"""How late events of a source may come: the buffer of the aggregations over it that declare none of their own.

An app says `@BufferSize` in buckets, and only whoever runs it knows how late its sources are. So a configuration may
say it in time, and it becomes the annotation: everything that reads the app (tasks, shards, a change of declaration)
sees one text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rollup.calendar import bucket_end
from rollup.errors import ConfigError, PlanError
from rollup.plan.aggregation import Aggregation, Clock
from rollup.plan.app import AggregationDef, Annotation
from rollup.plan.retention import period
from rollup.program import Program, compile_app


def buffered(text: str, zone: str, sources: Mapping[str, Mapping[str, Any]]) -> str:
    """An app's text with a buffer where the `lateness` of a source asks for one. Raises ConfigError.

    An event counts in its own bucket when it comes no later than that after the newest event. Aggregations by time of
    arrival have no late events.

    >>> app = '''define stream S (ts long);
    ... define aggregation A from S select count() as n aggregate by ts every sec ... year;'''
    >>> buffered(app, "+00:00", {"S": {"lateness": "90 seconds"}}).splitlines()[1][:36]
    "@BufferSize('90') define aggregation"
    """
    given = tuple(
        (name, _length(name, options["lateness"])) for name, options in sources.items() if "lateness" in options
    )
    return _buffered(text, zone, given) if given else text


@lru_cache(maxsize=8)
def _buffered(text: str, zone: str, given: tuple[tuple[str, int], ...]) -> str:
    program = compile_app(text, zone)
    lines = text.splitlines(keepends=True)
    places = [(found.line or 1, found.column or 1, found) for found in program.app.aggregations]
    for number, column, definition in sorted(places, key=lambda place: place[:2], reverse=True):
        buffer = _buffer(program, program.aggregations[definition.name], definition, given)
        if buffer:
            line = lines[number - 1]
            lines[number - 1] = f"{line[: column - 1]}@BufferSize('{buffer}') {line[column - 1 :]}"
    return "".join(lines)


def _buffer(
    program: Program, aggregation: Aggregation, definition: AggregationDef, given: tuple[tuple[str, int], ...]
) -> int:
    """Buckets of the finest level that hold the lateness of all sources an aggregation is fed by; 0 for none."""
    own = any(annotation.name.lower() == "buffersize" for annotation in definition.annotations)
    if own or aggregation.clock is Clock.ARRIVAL:
        return 0
    feeding = [
        late
        for stream, late in given
        if aggregation.stream in (stream, *(derivation.target for derivation in program.fed_by(stream)))
    ]
    return -(-max(feeding, default=0) // bucket_end(0, aggregation.root))


def _length(stream: str, text: Any) -> int:
    try:
        found = period(Annotation("lateness", {}), text) if isinstance(text, str) else None
    except PlanError:
        found = None
    if found is None:
        raise ConfigError(f"[sources.{stream}]: lateness {text!r} is no length of time", hint='e.g. "10 seconds"')
    return found
