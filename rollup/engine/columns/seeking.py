"""Questions to lists of rows that are in an order: which of their elements lie under some keys is found by halving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa

from rollup.engine.columns.elements import Elements
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import block, loop
from rollup.engine.columns.numbering import ranked, valid
from rollup.engine.enumerations import Ranking, Seek

_TEMPLATE = """
def core(begin, size, known, marks, low, within_low, high, within_high, place, many):
    for i in range(len(begin)):
        if not known[i]:
            continue
        b, e = begin[i], begin[i] + size[i]
{find}
        place[i], many[i] = f, g - f
"""
_HALVING = """
{at}, end = b, e
while {at} < end:
    middle = ({at} + end) // 2
    if marks[middle] < {mark}[i] or ({upper} and marks[middle] == {mark}[i]):
        {at} = middle + 1
    else:
        end = middle
"""


def _halved(at: str, mark: str, upper: str) -> list[str]:
    """The lines that find the first place behind all that is less than a mark or, if it is `upper`, that mark."""
    return _HALVING.format(at=at, mark=mark, upper=upper).strip().splitlines()


_BEFORE = ["f, g = p, p", "while f > b and marks[f - 1] == marks[p - 1]:", "    f -= 1"]
_BEHIND = ["f, g = q, q", "while g < e and marks[g] == marks[q]:", "    g += 1"]
_ASKED = [*_halved("p", "low", "False"), *_halved("q", "low", "True")]
_ITSELF = [*_ASKED, "f, g = p, q"]


def _or(lines: list[str]) -> list[str]:
    """The lines that find a key itself, or else another one."""
    return [*_ITSELF, "if p == q:", *(f"    {line}" for line in lines)]


_FINDS: dict[Seek, list[str]] = {
    "all": ["f, g = b, e"],
    "first": ["q = b", *_BEHIND],
    "last": ["p = e", *_BEFORE],
    "get": _ITSELF,
    "lower": [*_ASKED, *_BEFORE],
    "floor": _or(_BEFORE),
    "ceiling": _or(_BEHIND),
    "higher": [*_ASKED, *_BEHIND],
    "between": [*_halved("f", "low", "not within_low[i]"), *_halved("g", "high", "within_high[i]"), "g = max(f, g)"],
}
_KEYS = ["f, g = 0, 0", "for j in range(b, e):", "    if j == b or marks[j] != marks[j - 1]:", "        g += 1"]


def sought(op: Ranking, found: Elements, keys: pa.Array, asked: Sequence[pa.Array]) -> tuple[Ints, Ints, np.ndarray]:
    """Where the rows begin that are sought in each list, how many they are (of `keys`, how many keys), and whether that is known;
    `keys`: those of the elements; `asked`: what the question names, for each list.
    """
    rows, known = len(found.begin), found.there.copy()
    for each in asked:
        known &= valid(each)
    bounds = [each for each in asked if not pa.types.is_boolean(each.type)]
    ranks = ranked(pa.concat_arrays([keys, *(each.cast(keys.type) for each in bounds)]))
    marks, *ends = np.split(~ranks if op.down else ranks, [len(keys) + rows * place for place in range(len(bounds))])
    flags = [each.fill_null(False).to_numpy(zero_copy_only=False) for each in asked if pa.types.is_boolean(each.type)]
    (low, high), (within_low, within_high) = _two(ends), _two(flags)
    place, many = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    loop(_text(op.seek, op.gives == "keys"))(
        found.begin, found.size, known, marks, low, within_low, high, within_high, place, many
    )
    return place, many, known


def _two(given: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The two ends of a span; where less is named, what loops are given in their place."""
    nothing = np.zeros(0, np.int64)
    return (given[0], given[1]) if len(given) == 2 else (given[0] if given else nothing, nothing)


@cache
def _text(seek: Seek, counts: bool) -> str:
    """The text of the loop; `counts`: keys and not rows."""
    return _TEMPLATE.format(find=block(_KEYS if counts else _FINDS[seek], 2))


def parts(op: Ranking, found: Elements, place: Ints, many: Ints, known: np.ndarray) -> Elements:
    """Lists of what was found; where that is nothing, there is none, but of a span of keys."""
    there = known if op.seek == "between" else known & (many > 0)
    return replace(found, begin=place, size=np.where(there, many, 0), there=there)
