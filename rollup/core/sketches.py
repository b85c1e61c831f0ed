"""Sketches as SQL functions: fold values, merge sketches, read estimates.

Those of HLL and of frequent values are Apache DataSketches' own, so its other readers can open them too; which of two
orders they are merged in shows, so parts are merged in the order of their bytes. Quantiles are counts
(`rollup.core.ranks`), since KLL sketches merge by chance; they keep its name, as do their columns, because tables may
still hold KLL sketches of before, which are read.

| function | takes | gives |
|---|---|---|
| rollup_hll_fold / rollup_hll_merge | list of values as text / list of sketches | HLL, lg_k 12 |
| rollup_kll_fold / rollup_kll_merge | list of doubles / list of sketches | counts of values or of narrow ranges |
| rollup_topk_fold / rollup_topk_merge | list of values as text / list of sketches | frequent strings, 2^10 counters |
| rollup_counts_fold / rollup_counts_merge | list of values as text and whether they are numbers / list of counts | how often each value came, exact |
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import datasketches as _datasketches
import duckdb
import numpy as np
from duckdb.sqltypes import BIGINT, BLOB, BOOLEAN, DOUBLE, VARCHAR

from rollup.core import ranks
from rollup.core.json_line import json_line

ds: Any = _datasketches  # its classes come from C++, where no type checker can see them
_LG_K, _LG_MAP = 12, 10
_EMPTY = 0
"""Stands for the empty text, which the library passes over; a number is hashed as no other text is."""
QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


def hll_fold(values: Iterable[str | None] | None) -> bytes | None:
    """A HyperLogLog sketch of the values that are not null; None when there is none."""
    present = [value for value in values or () if value is not None]
    if not present:
        return None
    sketch = ds.hll_sketch(_LG_K)
    for value in present:
        sketch.update(value if value else _EMPTY)
    return sketch.serialize_compact()


def _in_order(parts: Iterable[bytes | None] | None) -> list[bytes]:
    return sorted(part for part in parts or () if part is not None)


def hll_merge(parts: Iterable[bytes | None] | None) -> bytes | None:
    """One sketch of all parts."""
    union, some = ds.hll_union(_LG_K), False
    for part in _in_order(parts):
        union.update(ds.hll_sketch.deserialize(part))
        some = True
    return union.get_result().serialize_compact() if some else None


def hll_estimate(sketch: bytes | None) -> int:
    """The estimated number of distinct values; 0 for no sketch.

    >>> hll_estimate(hll_merge([hll_fold(["a", "b"]), hll_fold(["b", "c"]), None]))
    3
    """
    return round(ds.hll_sketch.deserialize(sketch).get_estimate()) if sketch else 0


def kll_fold(values: Iterable[float | None] | None) -> bytes | None:
    """The counts of the values that are neither null nor NaN, which has no rank; None when there is none."""
    present = np.array([value for value in values or () if value is not None], dtype=np.float64)
    present = present[~np.isnan(present)]
    return ranks.Counts.of(present).packed() if len(present) else None


def _counts(blob: bytes) -> ranks.Counts:
    """Those of a sketch; what a KLL sketch has kept counts as often as it says."""
    found = ranks.unpacked(blob)
    if found is None:
        items = list(ds.kll_doubles_sketch.deserialize(blob))
        found = ranks.Counts.of(np.array([value for value, _ in items]), np.array([weight for _, weight in items]))
    return found


def kll_merge(parts: Iterable[bytes | None] | None) -> bytes | None:
    """One sketch of all parts."""
    found = ranks.total(_counts(part) for part in parts or () if part is not None)
    return None if found is None else found.packed()


def kll_quantile(sketch: bytes | None, rank: float) -> float | None:
    """The value at a rank from 0 to 1; None for no sketch.

    >>> kll_quantile(kll_fold([1.0, 2.0, 3.0]), 0.5)
    2.0
    """
    return _counts(sketch).at(rank) if sketch else None


def kll_quantiles(sketch: bytes | None) -> str | None:
    """The values at the ranks of QUANTILES, as a JSON object."""
    found = {str(rank): kll_quantile(sketch, rank) for rank in QUANTILES}
    return None if None in found.values() else json_line(found)


def topk_fold(values: Iterable[str | None] | None) -> bytes | None:
    """A frequent-items sketch of the values that are not null."""
    present = [value for value in values or () if value is not None]
    if not present:
        return None
    sketch = ds.frequent_strings_sketch(_LG_MAP)
    for value in present:
        sketch.update(value)
    return sketch.serialize()


def topk_merge(parts: Iterable[bytes | None] | None) -> bytes | None:
    """One sketch of all parts."""
    merged, some = ds.frequent_strings_sketch(_LG_MAP), False
    for part in _in_order(parts):
        merged.merge(ds.frequent_strings_sketch.deserialize(part))
        some = True
    return merged.serialize() if some else None


def topk_items(sketch: bytes | None, count: int) -> str | None:
    """The `count` most frequent values with their estimated counts, as a JSON list of pairs, most frequent first.

    >>> topk_items(topk_fold(["a", "b", "a"]), 1)
    '[["a", 2]]'
    """
    if sketch is None:
        return None
    found = ds.frequent_strings_sketch.deserialize(sketch).get_frequent_items(
        ds.frequent_items_error_type.NO_FALSE_NEGATIVES
    )
    ranked = sorted(found, key=lambda item: (-item[1], item[0]))[:count]
    return json_line([[item[0], item[1]] for item in ranked])


def counts_fold(values: Iterable[str | None] | None, numbers: bool) -> bytes | None:
    """How often each value came that is not null; None when there is none. `numbers` says how values are in order."""
    return _packed(Counter(value for value in values or () if value is not None), numbers)


def _packed(counts: Mapping[str, int], numbers: bool) -> bytes | None:
    kept = {value: n for value, n in sorted(counts.items()) if n}
    return json.dumps([numbers, kept], ensure_ascii=False, separators=(",", ":")).encode() if kept else None


def counts_merge(parts: Iterable[bytes | None] | None) -> bytes | None:
    """The counts of all parts together."""
    total, numbers = Counter[str](), False
    for part in parts or ():
        if part is not None:
            numbers, counts = json.loads(part)
            total.update(counts)
    return _packed(total, numbers)


def counts_less(came: bytes | None, gone: bytes | None) -> bytes | None:
    """The counts of what came without those of what was taken back.

    >>> counts_mode(counts_less(counts_fold(["a", "a", "b"], False), counts_fold(["a", "a"], False)))
    'b'
    """
    if came is None or gone is None:
        return came
    (numbers, total), (_, less) = json.loads(came), json.loads(gone)
    return _packed({value: n - less.get(value, 0) for value, n in total.items()}, numbers)


def counts_mode(counts: bytes | None) -> str | None:
    """The value that came most often; of several the least.

    >>> counts_mode(counts_fold(["10", "9", "10", "9", "8"], True))
    '9'
    """
    if counts is None:
        return None
    numbers, found = json.loads(counts)
    return min(found, key=lambda value: (-found[value], _ranked(value) if numbers else value))


def _ranked(text: str) -> tuple[bool, Decimal]:
    """NaN is greater than every number."""
    number = Decimal(text)
    return number.is_nan(), Decimal(0) if number.is_nan() else number


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the functions known to a DuckDB connection."""
    lists: dict[str, tuple[Callable[..., Any], list[Any], Any]] = {
        "rollup_hll_fold": (hll_fold, [duckdb.list_type(VARCHAR)], BLOB),
        "rollup_hll_merge": (hll_merge, [duckdb.list_type(BLOB)], BLOB),
        "rollup_hll_estimate": (hll_estimate, [BLOB], BIGINT),
        "rollup_kll_fold": (kll_fold, [duckdb.list_type(DOUBLE)], BLOB),
        "rollup_kll_merge": (kll_merge, [duckdb.list_type(BLOB)], BLOB),
        "rollup_kll_quantiles": (kll_quantiles, [BLOB], VARCHAR),
        "rollup_counts_fold": (counts_fold, [duckdb.list_type(VARCHAR), BOOLEAN], BLOB),
        "rollup_counts_merge": (counts_merge, [duckdb.list_type(BLOB)], BLOB),
        "rollup_counts_less": (counts_less, [BLOB, BLOB], BLOB),
        "rollup_counts_mode": (counts_mode, [BLOB], VARCHAR),
        "rollup_topk_fold": (topk_fold, [duckdb.list_type(VARCHAR)], BLOB),
        "rollup_topk_merge": (topk_merge, [duckdb.list_type(BLOB)], BLOB),
        "rollup_topk_items": (topk_items, [BLOB, BIGINT], VARCHAR),
        "rollup_kll_quantile": (kll_quantile, [BLOB, DOUBLE], DOUBLE),
    }
    for name, (function, arguments, result) in lists.items():
        special: Any = "special"  # nulls reach the function; its type is one of an enum that takes words too
        connection.create_function(name, function, arguments, result, null_handling=special)
