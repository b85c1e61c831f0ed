"""Rows as lines of JSON, for sinks and for the terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def json_line(row: Mapping[str, Any]) -> str:
    """A row as JSON that every reader takes: what it has no word for (NaN, infinity, a decimal, a time) is a text.

    >>> json_line({"name": "Zoë", "ratio": 0.5, "worst": [1.0, float("inf")]})
    '{"name": "Zoë", "ratio": 0.5, "worst": [1.0, "Infinity"]}'
    """
    try:
        return json.dumps(row, default=str, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(row), default=str, ensure_ascii=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return [_finite(each) for each in value] if isinstance(value, (list, tuple)) else value  # pyright: ignore[reportUnknownVariableType]
