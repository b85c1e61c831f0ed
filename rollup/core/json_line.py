"""Values as lines of JSON, for sinks, tables and the terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any


def plain(value: Any) -> str:
    """A value that JSON has no word for as text; a decimal with all its digits, and without an exponent.

    >>> plain(Decimal("0.00000000")), plain(Decimal("1.50"))
    ('0.00000000', '1.50')
    """
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def json_line(value: Any, other: Callable[[Any], Any] = plain) -> str:
    """A row or value as JSON that every reader takes: NaN and infinity, for which it has no word, are texts.

    `other` says what stands for a value of a type that JSON does not have (a decimal, a time).

    >>> json_line({"name": "Zoë", "ratio": 0.5, "worst": [1.0, float("inf")]})
    '{"name": "Zoë", "ratio": 0.5, "worst": [1.0, "Infinity"]}'
    """
    try:
        return json.dumps(value, default=other, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), default=other, ensure_ascii=False)


class Written(float):
    """A number of JSON of more digits than a double keeps, or beyond all doubles, with the text that it is written as."""

    text: str


def number_of(text: str) -> float:
    """A number of JSON with a point or an exponent; one of many digits, or beyond all doubles, knows how it is written.

    >>> number_of("0.5"), getattr(number_of("12345678901234567.89"), "text", None)
    (0.5, '12345678901234567.89')
    """
    found = Written(text)
    if len(text) <= _EXACT and math.isfinite(found):
        return float(found)
    found.text = text
    return found


_EXACT = 16
"""Characters of a number of which the shortest text of its double has all digits."""


def first_members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON of whose members with one name the first counts, as in the sources of a job.

    >>> json.loads('{"v": 1, "k": "a", "v": 2}', object_pairs_hook=first_members)
    {'v': 1, 'k': 'a'}
    """
    found = dict(pairs)
    return found if len(found) == len(pairs) else {**found, **dict(reversed(pairs))}


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return [_finite(each) for each in value] if isinstance(value, (list, tuple)) else value  # pyright: ignore[reportUnknownVariableType]
