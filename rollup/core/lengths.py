"""Lengths of time as texts: `'1 hour 30 min'`, a month as 30 days and a year as 365."""

from __future__ import annotations

import re
from typing import Any

from rollup.core.calendar import Duration
from rollup.core.errors import QueryError

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
_PART = re.compile(r"\s*(\d{1,9})\s*([A-Za-z]+)")


def milliseconds(text: str) -> int | None:
    """A length of time in ms; None for 'all'. Raises QueryError.

    >>> milliseconds("1 hour 30 min"), milliseconds("500 ms"), milliseconds("all")
    (5400000, 500, None)
    """
    if text.strip().lower() == "all":
        return None
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip():
        raise QueryError(f"{text!r} is no length of time")
    return sum(int(count) * _unit(word, text) for count, word in parts)


def length(value: Any) -> str | None:
    """A check of options: a length of time.

    >>> length("7 days"), length("7 sheep"), length(7)
    (None, 'a length of time, as "7 days"', 'a length of time, as "7 days"')
    """
    try:
        fits = isinstance(value, str) and milliseconds(value) is not None
    except QueryError:
        fits = False
    return None if fits else 'a length of time, as "7 days"'


def _unit(word: str, text: str) -> int:
    if word.lower() in _OTHERS:
        return _OTHERS[word.lower()]
    try:
        return _UNITS[Duration.parse(word)]
    except QueryError:
        raise QueryError(f"{word!r} in {text!r} is no unit of time") from None
