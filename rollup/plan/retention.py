"""`@purge`: how long each level's rows are kept, as Siddhi 5 spells it.

@purge(enable='true', interval='10 sec', @retentionPeriod(sec='120 sec', min='24 hours', days='1 year', years='all'))
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollup.core.calendar import Duration
from rollup.core.errors import PlanError, QueryError
from rollup.plan.app import Annotation

_DAY = 86_400_000
_UNITS = {
    Duration.SECONDS: 1_000,
    Duration.MINUTES: 60_000,
    Duration.HOURS: 3_600_000,
    Duration.DAYS: _DAY,
    Duration.MONTHS: 30 * _DAY,
    Duration.YEARS: 365 * _DAY,
}
_OTHERS = {
    **dict.fromkeys(("ms", "millis", "millisec", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("week", "weeks"), 7 * _DAY),
}
_INTERVAL = 15 * 60_000
_SPELLING = "e.g. '120 sec', '24 hours', '1 year', '1 hour 30 min', or 'all'"


@dataclass(frozen=True)
class Retention:
    """How long rows stay (ms, by the aggregation's own clock; None: for ever), and how often that is looked at (ms)."""

    interval: int
    keep: Mapping[Duration, int | None]


def retention(annotation: Annotation | None, levels: Sequence[Duration]) -> Retention | None:
    """What an aggregation's `@purge` says; None without one or with enable='false'.

    A level that is not named is kept for ever. Raises PlanError with the position of what is wrong.
    """
    if annotation is None:
        return None
    for name in annotation.values:
        if name not in ("enable", "interval"):
            raise annotation.refuse(f"@purge has no {name!r}", "enable, interval, @retentionPeriod(…)")
    for inner in annotation.nested:
        if inner.name.lower() != "retentionperiod":
            raise inner.refuse(f"@{inner.name} does not stand in @purge", "@retentionPeriod(sec='120 sec', …)")
    acted_on = enabled(annotation)
    keep: dict[Duration, int | None] = dict.fromkeys(levels)
    for inner in annotation.nested:
        keep.update(_periods(inner, levels))
    interval = _INTERVAL if "interval" not in annotation.values else period(annotation, annotation.values["interval"])
    if interval is None:
        raise annotation.refuse("interval cannot be 'all'", "e.g. interval='10 sec'")
    return Retention(interval, keep) if acted_on else None


def enabled(annotation: Annotation) -> bool:
    """Whether a `@purge` is acted on. Raises PlanError for an `enable` that says neither."""
    said = annotation.values.get("enable", "true")
    if said.lower() not in ("true", "false"):
        raise annotation.refuse(f"enable is 'true' or 'false', not {said!r}", "@purge(enable='true', …)")
    return said.lower() == "true"


def _periods(annotation: Annotation, levels: Sequence[Duration]) -> dict[Duration, int | None]:
    found: dict[Duration, int | None] = {}
    for word, value in annotation.values.items():
        try:
            level = Duration.parse(word)
        except QueryError as problem:
            raise annotation.refuse(problem.message, problem.hint) from None
        if level not in levels:
            allowed = ", ".join(level.unit for level in levels)
            raise annotation.refuse(
                f"@retentionPeriod names {word!r}, which is not aggregated", f"levels are {allowed}"
            )
        found[level] = period(annotation, value)
    return found


def period(annotation: Annotation, text: str, least: int = 1) -> int | None:
    """A length of time in ms, a month as 30 days and a year as 365; None for 'all'. Raises PlanError.

    >>> period(Annotation("purge", {}), "1 hour 30 min"), period(Annotation("purge", {}), "all")
    (5400000, None)
    >>> period(Annotation("purge", {}), "500 ms")
    500
    """
    if text.strip().lower() == "all":
        return None
    parts = re.findall(r"\s*(\d{1,9})\s*([A-Za-z]+)", text)
    if not parts or re.sub(r"\s*(\d{1,9})\s*([A-Za-z]+)", "", text).strip():
        raise annotation.refuse(f"{text!r} is no length of time", _SPELLING)
    total = sum(int(count) * _unit(annotation, word, text) for count, word in parts)
    if total < least:
        raise annotation.refuse(f"{text!r} keeps nothing", _SPELLING)
    return total


def _unit(annotation: Annotation, word: str, text: str) -> int:
    if word.lower() in _OTHERS:
        return _OTHERS[word.lower()]
    try:
        return _UNITS[Duration.parse(word)]
    except QueryError:
        raise annotation.refuse(f"{word!r} in {text!r} is no unit of time", _SPELLING) from None


def length(value: Any) -> str | None:
    """A check of options: a length of time.

    >>> length("7 days"), length("7 sheep"), length(7)
    (None, 'a length of time, as "7 days"', 'a length of time, as "7 days"')
    """
    try:
        fits = isinstance(value, str) and length_of(value) is not None
    except PlanError:
        fits = False
    return None if fits else 'a length of time, as "7 days"'


def length_of(text: str | None) -> int | None:
    """The length of time that an option says, ms; None where it is not given."""
    return None if text is None else period(Annotation("store", {}), text, 0)


__all__ = ["PlanError", "Retention", "period", "retention"]
