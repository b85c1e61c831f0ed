"""Crontabs as SiddhiQL has them: seconds first, days of the week from Sunday, 1, to Saturday, 7."""

from __future__ import annotations

from typing import NamedTuple

from rollup.core.crontabs import Crontab, Days
from rollup.core.errors import PlanError
from rollup.lang.siddhi import tree

SECOND = 1000
"""Of the clock, in ms."""


class Part(NamedTuple):
    """A part of a crontab: what it is called, its least and its greatest number, and names for them, from the least on."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


PARTS = (
    Part("second", 0, 59),
    Part("minute", 0, 59),
    Part("hour", 0, 23),
    Part("day of the month", 1, 31),
    Part("month", 1, 12, tuple(["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"])),
    Part("day of the week", 1, 7, tuple(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])),
)


def crontab(text: str, place: tree.Place) -> Crontab:
    """The instants that a text like `0 30 9 ? * MON-FRI` means, in UTC. Raises PlanError that names the part.

    >>> crontab("*/5 * * * * ?", (1, 1)).after(61_000)
    65000
    """
    try:
        return _crontab(text.upper().split())
    except ValueError as problem:
        hint = "seconds minutes hours day month weekday, as in '*/5 * * * * ?'"
        raise PlanError(f"{text!r} is no crontab: {problem}", hint=hint).at(*place) from None


def _crontab(given: list[str]) -> Crontab:
    if len(given) != len(PARTS) and given[len(PARTS) :] not in (["*"], ["?"]):
        raise ValueError(f"it has {len(given)} parts, not {len(PARTS)}")
    seconds, minutes, hours, days, months, week = (_numbers(*each) for each in zip(given, PARTS, strict=False))
    weekdays: Days = None if given[5] in ("*", "?") else frozenset(day - 1 for day in week)
    monthdays: Days = ("last", None) if given[3] == "L" else None if given[3] in ("*", "?") else days
    return Crontab(minutes, hours, monthdays, months, weekdays, seconds, SECOND, full=True)


def _numbers(given: str, part: Part) -> frozenset[int]:
    """The numbers of one part: `*`, `5`, `1,2`, `1-5`, `*/15`, `10/15`, and names."""
    if given in ("*", "?", "L") and (given != "L" or part.name == "day of the month"):
        return frozenset(range(part.low, part.high + 1))
    return frozenset(number for each in given.split(",") for number in _run(each, part))


def _run(given: str, part: Part) -> range:
    bounds, _, step = given.partition("/")
    low, _, high = bounds.partition("-")
    first = part.low if low == "*" else _number(low, part)
    last = _number(high, part) if high else part.high if step or low == "*" else first
    if last < first or (step and (not step.isdigit() or int(step) < 1)):
        raise ValueError(f"{given!r} is no run of a {part.name}")
    return range(first, last + 1, int(step) if step else 1)


def _number(given: str, part: Part) -> int:
    value = int(given) if given.isdigit() else None
    if given in part.names:
        value = part.low + part.names.index(given)
    if value is None or not part.low <= value <= part.high:
        raise ValueError(f"{given!r} is no {part.name}")
    return value
