"""What the annotations of an aggregation say: zone, buffer, late events, store, retention."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from rollup.core.calendar import Duration
from rollup.core.errors import PlanError
from rollup.plan.annotations import DOCUMENTATION, HINTS, ZONE, declared_zone, one_value
from rollup.plan.app import AggregationDef, Annotation


class Policy(StrEnum):
    """What happens to an event whose bucket has left the buffer."""

    MERGE = "merge"
    DROP = "drop"
    CORRECT = "correct"


class Clock(StrEnum):
    """Where the time of an event comes from."""

    LONG = "long"
    STRING = "string"
    ARRIVAL = "arrival"


@dataclass(frozen=True)
class Options:
    """The annotations of an aggregation."""

    buffer: int = 0
    policy: Policy = Policy.MERGE
    store: Mapping[str, str] = field(default_factory=dict[str, str])
    purge: Annotation | None = None
    zone: str | None = None

    @classmethod
    def read(cls, definition: AggregationDef) -> Options:
        """The options of a definition. Raises PlanError that points at the annotation that is wrong."""
        options, seen = cls(), set[str]()
        for annotation in definition.annotations:
            name, value = annotation.name.lower(), annotation.values.get("", "")
            if name in seen and name in _ONCE:
                raise annotation.refuse(f"@{annotation.name} stands here twice", "leave one of them out")
            seen.add(name)
            if name in _SINGLE:
                one_value(annotation)
            if name == "buffersize":
                options = replace(options, buffer=_buffer(annotation, value))
            elif name == "ignoreeventsolderthanbuffer":
                options = replace(options, policy=_ignore(annotation, value, options.policy))
            elif name == "outoforder":
                options = replace(options, policy=_out_of_order(annotation, value, options.policy))
            elif name == "store":
                if annotation.nested:
                    inner = annotation.nested[0]
                    raise inner.refuse(f"@{inner.name} does not stand in @store", "type, jdbc.url, username, password")
                options = replace(options, store=annotation.values)
            elif name == "purge":
                options = replace(options, purge=annotation)
            elif name == ZONE:
                options = replace(options, zone=declared_zone(annotation))
            elif name == "primarykey":
                raise annotation.refuse(
                    "the tables of an aggregation have their primary key already", "leave @PrimaryKey out"
                )
            elif name in _NOT_OURS:
                raise annotation.refuse(f"@{annotation.name} of an aggregation is not acted on", _NOT_OURS[name])
            elif name not in (*DOCUMENTATION, *HINTS):
                raise annotation.refuse(f"unknown annotation @{annotation.name}", _ALL)
        return options

    def check(self, definition: AggregationDef, clock: Clock) -> None:
        """A buffer needs event time and a root of sec, min, hour or day."""
        if self.buffer == 0:
            return
        problem = None
        if clock is Clock.ARRIVAL:
            problem = "a buffer needs event time: write `aggregate by <attribute> every …`"
        elif definition.levels[0] > Duration.DAYS:
            problem = "a buffer needs seconds, minutes, hours or days as the finest duration"
        if problem:
            raise PlanError(f"@BufferSize('{self.buffer}'): {problem}", line=definition.line, column=definition.column)


_SINGLE = ("buffersize", "ignoreeventsolderthanbuffer", "outoforder", ZONE)
_ONCE = (*_SINGLE, "store", "purge")
_ALL = "known: @zone, @BufferSize, @IgnoreEventsOlderThanBuffer, @OutOfOrder, @store, @purge, @info, @description"
_NOT_OURS: Mapping[str, str] = {
    "partitionbyid": "leave it out: one job writes an aggregation, on as many cores as [cascade] gives it",
    "indexby": "leave it out: tables are sorted by time and keys",
}


def _buffer(annotation: Annotation, value: str) -> int:
    if not re.fullmatch(r"\d{1,9}", value):
        raise annotation.refuse(f"@BufferSize takes a whole number from 0, not {value!r}", "e.g. @BufferSize('3')")
    return int(value)


def _ignore(annotation: Annotation, value: str, before: Policy) -> Policy:
    if value.lower() not in ("true", "false"):
        raise annotation.refuse(
            f"@IgnoreEventsOlderThanBuffer takes true or false, not {value!r}", "in quotes: 'true' or 'false'"
        )
    if value.lower() == "true" and before is Policy.CORRECT:
        raise annotation.refuse("events cannot be ignored and corrected at once", "@OutOfOrder('correct') stands alone")
    return Policy.DROP if value.lower() == "true" else before


def _out_of_order(annotation: Annotation, value: str, before: Policy) -> Policy:
    if value.lower() not in tuple(Policy):
        raise annotation.refuse(f"@OutOfOrder takes {', '.join(Policy)}, not {value!r}", "e.g. @OutOfOrder('correct')")
    if before is Policy.DROP and value.lower() != Policy.DROP:
        raise annotation.refuse("events cannot be ignored and corrected at once", "@OutOfOrder stands alone")
    return Policy(value.lower())
