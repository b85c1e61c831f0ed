"""What the comparisons of all languages share: values and rows, equal where every engine must agree."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

Case = dict[str, Any]
"""A recorded case, as its JSON file has it."""


class Mismatch(AssertionError):
    """An answer that differs from the recorded one."""


def number(value: Any) -> Any:
    """The doubles that JSON has no number for."""
    special = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    return special.get(value, value) if isinstance(value, str) else value


def same_rows(
    wanted: Sequence[Sequence[Any]],
    found: Sequence[Sequence[Any]],
    ordered: bool = False,
    floats: Sequence[bool] = (),
) -> bool:
    """Whether rows are the same, as multisets unless `ordered`; `floats` says which columns may be 32-bit floats
    (empty: any)."""
    left, right = ([[_plain(value) for value in row] for row in rows] for rows in (wanted, found))
    if not ordered:
        left, right = sorted(left, key=_key), sorted(right, key=_key)
    return len(left) == len(right) and all(_same_row(*rows, floats) for rows in zip(left, right, strict=True))


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) else number(value)


def _key(row: Iterable[Any]) -> list[tuple[str, Any]]:
    return [
        ("null", "") if v is None else ("number", round(v, 6)) if isinstance(v, (int, float)) else ("text", str(v))
        for v in row
    ]


def _same_row(wanted: list[Any], found: list[Any], floats: Sequence[bool]) -> bool:
    """`floats` says which columns may be floats; empty: any, since the types are not known."""
    if len(wanted) != len(found):
        return False
    may = floats if len(floats) == len(found) else [True] * len(found)
    return all(same(*pair) or (is_float and _float(*pair)) for *pair, is_float in zip(wanted, found, may, strict=True))


def _float(wanted: Any, found: Any) -> bool:
    """Whether a recorded number, printed in the few digits that name a float, names the float that was found."""
    if not isinstance(wanted, float) or not isinstance(found, float) or not abs(wanted) < 3.4e38:
        return False
    return struct.unpack("f", struct.pack("f", wanted))[0] == found


def same(wanted: Any, found: Any) -> bool:
    """Equal; doubles to 12 digits, NaN equals NaN."""
    if not isinstance(wanted, float) and not isinstance(found, float):
        return wanted == found
    if not isinstance(wanted, (int, float)) or not isinstance(found, (int, float)):
        return False
    if math.isnan(wanted) or math.isnan(found):
        return math.isnan(wanted) and math.isnan(found)
    return wanted == found or math.isclose(wanted, found, rel_tol=1e-12, abs_tol=1e-12)
