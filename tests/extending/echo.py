"""A toy language: `S 2 T` lets every second event of S go on to T."""

from __future__ import annotations

from collections.abc import Sequence

from rollup.core.errors import SyntaxProblem
from rollup.engine.state import State
from rollup.lang.sections import Section
from rollup.plan.app import StreamDef
from rollup.statements.component import Described, Event, Names, Streams, Taken


class Echo:
    """The language's entry."""

    def names(self, section: Section) -> Names:
        source, _, target = _words(section)
        return Names(frozenset({source}), frozenset({target}))

    def compile(self, section: Section, streams: Streams, names: Names) -> Echoing:
        source, every, target = _words(section)
        return Echoing(streams[source], int(every), target)


class Echoing:
    """A component that counts."""

    def __init__(self, source: StreamDef, every: int, target: str) -> None:
        self._source, self._every, self._target = source.name, every, target
        self.writes = {target: StreamDef(target, source.attributes)}
        self.described = Described("rows", "it counts", "a number")

    def step(self, state: State | None, events: Sequence[Event]) -> tuple[State, Taken]:
        count, given = (0 if state is None else state.scalars["count"]), list[Event]()
        for event in events:
            if event.stream == self._source:
                count += 1
                if count % self._every == 0:
                    given.append(Event((*event.key, 0), event.at, self._target, event.values))
        return State({}, {"count": count}), Taken(given)


def _words(section: Section) -> list[str]:
    words = section.text.replace("#", " # ").split()
    words = words[: words.index("#")] if "#" in words else words
    if len(words) != 3:
        raise SyntaxProblem("three words are wanted", line=section.line, column=section.column, hint="S 2 T")
    return words
