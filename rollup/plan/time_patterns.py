"""Patterns of times as people write them, `dd.MM.yyyy HH:mm`, in the letters that DuckDB takes."""

from __future__ import annotations

import re

from rollup.core.errors import PlanError

_LETTERS = {
    "yyyy": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%-m", "dd": "%d", "d": "%-d",
    "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "ss": "%S", "SSS": "%g", "SSSSSS": "%f", "a": "%p",
    "EEEE": "%A", "EEE": "%a", "YYYY": "%G", "ww": "%V", "u": "%u", "DDD": "%j", "Z": "%z",
}  # fmt: skip
"""`YYYY`, `ww` and `u` are year, week and day of the week of ISO 8601; `Z` is an offset."""
_PART = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")


def letters(pattern: str) -> str:
    """The pattern for DuckDB. Raises PlanError at a letter that is not known.

    >>> letters("dd.MM.yyyy HH:mm"), letters("yyyy-MM-dd'T'HH:mm:ss"), letters("YYYY-'W'ww-u")
    ('%d.%m.%Y %H:%M', '%Y-%m-%dT%H:%M:%S', '%G-W%V-%u')
    """
    found, at = list[str](), 0
    while at < len(pattern):
        part = _PART.match(pattern, at)
        if part is None or (part[2] and part[0] not in _LETTERS):
            what = "an open quote" if part is None else repr(part[0])
            hint = f"known are {', '.join(_LETTERS)}; other letters stand in quotes, as 'T'"
            raise PlanError(f"{what} in the pattern of a time {pattern!r}", hint=hint)
        plain = part[0] if part[1] is None else part[1].replace("''", "'") or "'"
        found.append(_LETTERS[part[0]] if part[2] else plain.replace("%", "%%"))
        at = part.end()
    return "".join(found)
