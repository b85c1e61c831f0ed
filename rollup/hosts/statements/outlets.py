"""The sinks of streams that statements give: those of the configuration, and `@sink` on the stream's definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollup.conf import Conf, sink_options
from rollup.core.errors import ConfigError
from rollup.plan.app import Annotation
from rollup.program import Program
from rollup.sinks.base import Sink
from rollup.sinks.kinds import sink

_KINDS = {"file": "files", "log": "console", "sql": "postgres"}
"""Other words for kinds of sinks."""


def sinks_of(conf: Conf, program: Program) -> dict[str, Mapping[str, Any]]:
    """The options of the sink of each stream of statements that has one. Raises ConfigError for what is wrong there."""
    assert program.statements is not None
    found = dict[str, Mapping[str, Any]]()
    for name, stream in program.statements.streams.items():
        declared = _declared(conf, name, program.sinks[name]) if name in program.sinks else None
        if name in conf.sinks and declared is not None:
            raise ConfigError(f"{conf.path}: [sinks.{name}] and @sink of {name} are two sinks", hint="leave one out")
        given = conf.sinks.get(name, declared)
        if given is not None:
            found[name] = {"name": name, **({"key": stream.table} if stream.table else {}), **given}
    return found


def outlets_of(conf: Conf, program: Program) -> dict[str, Sink]:
    """The sinks themselves."""
    return {name: sink(name, options) for name, options in sinks_of(conf, program).items()}


def _declared(conf: Conf, stream: str, annotation: Annotation) -> Mapping[str, Any]:
    values = dict(annotation.values)
    kind = values.pop("type", "")
    options = {name: int(value) if value.isdigit() else value for name, value in values.items()}
    try:
        return sink_options(f"@sink of {stream}:", conf.path.parent, {"kind": _KINDS.get(kind, kind), **options})
    except ConfigError as problem:
        raise problem.at(annotation.line, annotation.column) from None
