"""How late events may come and what is done with later ones, for aggregations that declare neither themselves.

An app says `@BufferSize` in buckets, and only whoever runs it knows how late its sources are. So a configuration may
say it in time (`lateness` of a source), and may say what happens to events that are later (`[late] policy`). Both are
read as if the definitions had them as annotations, and travel with the app's text to all that compile it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rollup.core.calendar import bucket_end
from rollup.core.errors import ConfigError, PlanError
from rollup.plan.app import AggregationDef, Annotation
from rollup.plan.retention import period

_POLICIES = ("ignoreeventsolderthanbuffer", "outoforder")


@dataclass(frozen=True)
class Lateness:
    """What a configuration says of late events: by stream how late they may be (ms), and the policy for later ones."""

    streams: tuple[tuple[str, int], ...] = ()
    policy: str | None = None

    @classmethod
    def of(cls, sources: Mapping[str, Mapping[str, Any]], policy: str | None = None) -> Lateness:
        """From the options of sources. Raises ConfigError.

        >>> Lateness.of({"S": {"lateness": "90 seconds"}, "T": {}})
        Lateness(streams=(('S', 90000),), policy=None)
        """
        given = ((name, options["lateness"]) for name, options in sources.items() if "lateness" in options)
        return cls(tuple((name, _length(f"[sources.{name}]: lateness", text)) for name, text in given), policy)

    def declared(self, definition: AggregationDef, feeding: Callable[[str], Collection[str]]) -> AggregationDef:
        """A definition with the buffer and the policy that it lacks; `feeding` gives the sources' streams behind one.

        An event counts in its own bucket when it comes no later than that after the newest event. Aggregations by time
        of arrival have no late events.
        """
        if definition.by is None:
            return definition
        added = list[Annotation]()
        if not declares(definition, "buffersize") and (buffer := self._buffer(definition, feeding)):
            added.append(Annotation("BufferSize", {"": str(buffer)}))
        if self.policy and not declares(definition, *_POLICIES):
            added.append(Annotation("OutOfOrder", {"": self.policy}))
        return replace(definition, annotations=(*added, *definition.annotations)) if added else definition

    def says(self, definition: AggregationDef) -> str:
        """Who says what happens to late events of an aggregation: the app, the configuration, or nobody."""
        if declares(definition, *_POLICIES):
            return "says the app"
        return "says [late] of the configuration" if self.policy else "the default; [late] policy changes it"

    def _buffer(self, definition: AggregationDef, feeding: Callable[[str], Collection[str]]) -> int:
        """Buckets of the finest level that hold the lateness of all sources an aggregation is fed by; 0 for none."""
        behind = feeding(definition.source.stream)
        longest = max((late for stream, late in self.streams if stream in behind), default=0)
        return -(-longest // bucket_end(0, definition.levels[0]))


UNSAID = Lateness()
"""Of an app that runs without a configuration, or of one that says nothing."""


def declares(definition: AggregationDef, *names: str) -> bool:
    """Whether a definition has an annotation of one of some names, in lower case."""
    return any(annotation.name.lower() in names for annotation in definition.annotations)


def ahead_of(text: Any, what: str = "[late]: ahead") -> int | None:
    """How far ahead an event may be, ms, by a configuration; None for any distance. Raises ConfigError.

    >>> ahead_of("2 hours"), ahead_of("any")
    (7200000, None)
    """
    if text == "any":
        return None
    return _length(what, text, ', or "any"')


def late_of(stream: str, options: Mapping[str, Any]) -> int:
    """How late events of a source may come, ms. Raises ConfigError."""
    return _length(f"[sources.{stream}]: lateness", options["lateness"]) if "lateness" in options else 0


def idle_of(stream: str, options: Mapping[str, Any]) -> int | None:
    """After how long a silence of a source time goes on without events, ms; None for never. Raises ConfigError.

    >>> idle_of("S", {}), idle_of("S", {"idle": "2 seconds"}), idle_of("S", {"idle": "off"})
    (30000, 2000, None)
    """
    text = options.get("idle", IDLE)
    return None if text == "off" else _length(f"[sources.{stream}]: idle", text, ', or "off"')


IDLE = "30 seconds"


def _length(what: str, text: Any, also: str = "") -> int:
    try:
        found = period(Annotation("lateness", {}), text) if isinstance(text, str) else None
    except PlanError:
        found = None
    if found is None:
        raise ConfigError(f"{what} {text!r} is no length of time", hint=f'e.g. "10 seconds"{also}')
    return found
