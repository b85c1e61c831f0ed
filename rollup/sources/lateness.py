"""How late events may come and what is done with later ones, for aggregations that declare neither themselves.

An app says `@BufferSize` in buckets, and only whoever runs it knows how late its sources are. So a configuration may
say it in time (`lateness` of a source), and may say what happens to events that are later (`[late] policy`). Both become
annotations: everything that reads the app (tasks, shards, a change of declaration) sees one text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rollup.core.calendar import bucket_end
from rollup.core.errors import ConfigError, PlanError
from rollup.lang.sections import sections
from rollup.lang.siddhi.apps import parse_app
from rollup.plan.aggregation import Aggregation, Clock
from rollup.plan.app import AggregationDef, Annotation
from rollup.plan.retention import period
from rollup.program import Program, compile_app

if TYPE_CHECKING:
    from rollup.conf import Conf

_POLICIES = ("ignoreeventsolderthanbuffer", "outoforder")


def buffered(text: str, zone: str, sources: Mapping[str, Mapping[str, Any]], policy: str | None = None) -> str:
    """An app's text with a buffer where the `lateness` of a source asks for one, and a policy. Raises ConfigError.

    An event counts in its own bucket when it comes no later than that after the newest event. `policy` is that of
    aggregations which declare none. Aggregations by time of arrival have no late events.

    >>> app = '''define stream S (ts long);
    ... define aggregation A from S select count() as n aggregate by ts every sec ... year;'''
    >>> buffered(app, "+00:00", {"S": {"lateness": "90 seconds"}}).splitlines()[1][:36]
    "@BufferSize('90') define aggregation"
    >>> buffered(app, "+00:00", {}, "correct").splitlines()[1][:42]
    "@OutOfOrder('correct') define aggregation "
    """
    given = tuple(
        (name, _length(name, options["lateness"])) for name, options in sources.items() if "lateness" in options
    )
    return _buffered(text, zone, given, policy) if given or policy else text


@lru_cache(maxsize=8)
def _buffered(text: str, zone: str, given: tuple[tuple[str, int], ...], policy: str | None) -> str:
    program = compile_app(text, zone)
    lines = text.splitlines(keepends=True)
    places = [(found.line or 1, found.column or 1, found) for found in program.app.aggregations]
    for number, column, definition in sorted(places, key=lambda place: place[:2], reverse=True):
        aggregation = program.aggregations[definition.name]
        if aggregation.clock is Clock.ARRIVAL:
            continue
        buffer = _buffer(program, aggregation, definition, given)
        added = f"@BufferSize('{buffer}') " if buffer else ""
        if policy and not _declares(definition, *_POLICIES):
            added += f"@OutOfOrder('{policy}') "
        line = lines[number - 1]
        lines[number - 1] = f"{line[: column - 1]}{added}{line[column - 1 :]}"
    return "".join(lines)


def policy_from(conf: Conf, name: str) -> str:
    """Who says what happens to late events of an aggregation: the app, the configuration, or nobody."""
    definitions = parse_app(sections(conf.app.read_text()).rollups).aggregations
    if _declares(next(each for each in definitions if each.name == name), *_POLICIES):
        return "says the app"
    return "says [late] of the configuration" if conf.late else "the default; [late] policy changes it"


def _declares(definition: AggregationDef, *names: str) -> bool:
    return any(annotation.name.lower() in names for annotation in definition.annotations)


def _buffer(
    program: Program, aggregation: Aggregation, definition: AggregationDef, given: tuple[tuple[str, int], ...]
) -> int:
    """Buckets of the finest level that hold the lateness of all sources an aggregation is fed by; 0 for none."""
    if _declares(definition, "buffersize"):
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
