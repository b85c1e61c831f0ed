"""Statements of the recorded cases of EPL, each with the declarations it needs as an app of its own.

An app's clock is the events' own, so what a statement gives there is not what was recorded under an injected clock: it is
compared with what the same app gives undivided, which the conformance tests hold against the recordings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rollup.core.errors import RollupError
from rollup.program import Program, compile_app
from rollup.statements.component import Event
from tests.conformance.compare import Case

_KINDS = {"string": "string", "int": "int", "long": "long", "double": "double", "boolean": "bool"}
_TIME = "time_of_event"
_BEGIN, _LATER = 1_000, 1_000_000


@dataclass(frozen=True)
class Stated:
    """One statement of a case: the text of its app, and the case's events."""

    text: str
    app: str
    events: list[Event]

    def compiled(self) -> Program | None:
        """The app; None where it reads what an app declares otherwise, as a named window of another statement."""
        try:
            return compile_app(self.app)
        except RollupError:
            return None


def stated(case: Case) -> Iterator[Stated]:
    """The selects of a case that were accepted and have keys: those of a keyed context, or with groups."""
    streams = {}
    for schema in case["schemas"]:
        found = re.fullmatch(r"create schema (\w+)\s*\((.*)\)", schema)
        columns = [column.split() for column in found[2].split(",")] if found else []
        if not found or any(len(column) != 2 or column[1] not in _KINDS for column in columns):
            return
        streams[found[1]] = {name: _KINDS[kind] for name, kind in columns}
    head = "".join(
        f"@time('{_TIME}') define stream {stream} ({', '.join(f'{n} {k}' for n, k in columns.items())}, {_TIME} long);\n"
        for stream, columns in streams.items()
    )
    events = list(_events(case, streams))
    refused = {each["name"] for each in case["expected"]["deployed"] if "compile_error" in each}
    texts = [each["text"] for each in case["epl"] if each["name"] not in refused]
    contexts = {found[1]: text for text in texts if (found := re.match(r"create context (\w+)", text))}
    for text in texts:
        named = re.match(r"context (\w+) ", text)
        own = contexts.get(named[1], "") if named else ""
        if re.match(r"(context \w+ )?select", text) and ("partition by" in own or " group by " in text):
            declared = f"{own}; " if own else ""
            yield Stated(text, f"{head}@lang('epl') {{ {declared}@name('Out') {text}; }}", events)


def _events(case: Case, streams: dict[str, dict[str, str]]) -> Iterator[Event]:
    """What is sent, at the instant of the clock then; and the last event once more, much later."""
    at, number, last = _BEGIN, 0, None
    for step in case["steps"]:
        at = max(at, _BEGIN + step.get("advance_to_ms", step.get("advance_span_to_ms", 0)) - case["start_ms"])
        if "send" in step and step["send"] in streams:
            values = [step.get("data", {}).get(name) for name in streams[step["send"]]]
            last = (step["send"], values)
            yield Event((number, 0), at, step["send"], (*values, at))
            number += 1
    if last is not None:
        yield Event((number, 0), at + _LATER, last[0], (*last[1], at + _LATER))
