"""`@purge`: how long each level's rows are kept, as Siddhi 5 spells it.

@purge(enable='true', interval='10 sec', @retentionPeriod(sec='120 sec', min='24 hours', days='1 year', years='all'))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollup.core.calendar import Duration
from rollup.core.errors import PlanError, QueryError
from rollup.core.lengths import milliseconds
from rollup.plan.app import Annotation

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


def period(annotation: Annotation, text: str) -> int | None:
    """A length of time in ms, a month as 30 days and a year as 365; None for 'all'. Raises PlanError.

    >>> period(Annotation("purge", {}), "1 hour 30 min"), period(Annotation("purge", {}), "all")
    (5400000, None)
    >>> period(Annotation("purge", {}), "500 ms")
    500
    """
    try:
        total = milliseconds(text)
    except QueryError as problem:
        raise annotation.refuse(problem.message, _SPELLING) from None
    if total == 0:
        raise annotation.refuse(f"{text!r} keeps nothing", _SPELLING)
    return total


__all__ = ["PlanError", "Retention", "period", "retention"]
