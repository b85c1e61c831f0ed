"""Which rows of several tables of partial rows need merging: those whose group another table has too.

Tables that hold each of their groups once are compared by the ranges of their buckets first. In a stream in order this
leaves the seams. Where ranges overlap, as those of a topic's partitions always do, the groups are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.plan.aggregation import TIMESTAMP

Marks = npt.NDArray[np.uint64]
_ROOM = 16
"""Places for marks, a row: the more there are, the fewer rows are taken for another's group by chance."""
_LONG = 512
"""Rows of a run, on average, from which on it is quicker to copy runs than to take rows."""


def seams(parts: list[pa.Table]) -> tuple[list[pa.Table], list[pa.Table]]:
    """(rows of buckets that only one part can have, the other rows), by the range of bucket starts of each part."""
    ranges = [pc.min_max(part[TIMESTAMP]).as_py() for part in parts]
    alone, shared = list[pa.Table](), list[pa.Table]()
    for i, part in enumerate(parts):
        others = [(r["min"], r["max"]) for j, r in enumerate(ranges) if j != i]
        overlaps = [(max(low, ranges[i]["min"]), min(high, ranges[i]["max"])) for low, high in others]
        overlaps = [(low, high) for low, high in overlaps if low <= high]
        for low, high in _joined(overlaps):
            before, rest = cut(part, low - 1)[::-1]
            part, within = cut(rest, high)
            alone.append(before)
            shared.append(within)
        alone.append(part)
    return [t for t in alone if t.num_rows], [t for t in shared if t.num_rows]


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges, both ends included, sorted and with overlapping ones put together."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def alike(parts: list[pa.Table], identity: Sequence[str]) -> tuple[list[pa.Table], list[pa.Table]]:
    """(rows whose group no other part has, the other rows) of parts that have each of their groups once.

    `identity` names the columns of a group. Rows keep their order. A row may be taken for one of the others by chance,
    which costs its merging and nothing else; where a column's values cannot be told apart as cheaply, all are.
    """
    marks = _marks(parts, identity) if len(parts) > 1 else None
    if marks is None:
        return [], parts
    shared = _again(marks)
    if 2 * sum(map(np.count_nonzero, shared)) > sum(map(len, shared)):
        return [], parts  # to take the few others out would cost more than it saves
    alone = [part.filter(pa.array(~found)) for part, found in zip(parts, shared, strict=True)]
    others = [part.filter(pa.array(found)) for part, found in zip(parts, shared, strict=True)]
    return [t for t in alone if t.num_rows], [t for t in others if t.num_rows]


def _marks(parts: list[pa.Table], identity: Sequence[str]) -> list[Marks] | None:
    """For each row a number that all rows of its group have; None where a column's equal values may differ in bits."""
    found = np.zeros(sum(part.num_rows for part in parts), np.uint64)
    for name in identity:
        column = pa.chunked_array([chunk for part in parts for chunk in part[name].chunks])
        if pa.types.is_floating(column.type):  # both zeros are one group, and all that is no number is one
            return None
        coded = column.dictionary_encode(null_encoding="encode").combine_chunks()
        found *= len(coded.dictionary)  # beyond 64 bits it only says less
        found += coded.indices.to_numpy().astype(np.uint64)
    return np.split(found, np.cumsum([part.num_rows for part in parts])[:-1])


def _again(marks: list[Marks]) -> list[npt.NDArray[np.bool_]]:
    """Which of each part's marks another part has too."""
    size = 1 << (_ROOM * sum(map(len, marks))).bit_length()
    seen, again = np.zeros(size, bool), np.zeros(size, bool)
    for each in marks:
        each &= np.uint64(size - 1)
        again[each[seen[each]]] = True
        seen[each] = True
    return [again[each] for each in marks]


def in_order(rows: pa.Table) -> pa.Table:
    """Rows by bucket start, those of one bucket in the order they have.

    Parts of a batch are a few runs in order, and rows of one bucket stand together: such are copied run by run, in
    half the time that taking them row by row needs.
    """
    starts = rows[TIMESTAMP].to_numpy()
    falls = np.count_nonzero(starts[1:] < starts[:-1])
    if not falls:
        return rows
    order = np.argsort(starts, kind="stable")
    if falls * _LONG < len(order):  # otherwise there is no need to look for runs
        begins = np.flatnonzero(np.diff(order, prepend=-2) != 1)
        if len(begins) * _LONG < len(order):
            return _copied(rows, order[begins], np.diff(begins, append=len(order)))
    return rows.take(pa.array(order))


def _copied(rows: pa.Table, begins: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> pa.Table:
    """Runs of rows one behind the other, in one piece."""
    runs = zip(begins.tolist(), lengths.tolist(), strict=True)
    return pa.concat_tables([rows.slice(begin, length) for begin, length in runs]).combine_chunks()


def cut(table: pa.Table, last: int) -> tuple[pa.Table, pa.Table]:
    """(rows whose bucket starts after `last`, rows up to it); sorted rows are cut without copying."""
    starts = table[TIMESTAMP].to_numpy()
    if not len(starts) or (starts[-1] <= last and starts.max() <= last):
        return table.slice(0, 0), table
    if (starts[1:] >= starts[:-1]).all():
        at = int(np.searchsorted(starts, last, side="right"))
        return table.slice(at), table.slice(0, at)
    done = pa.array(starts <= last)
    return table.filter(pc.invert(done)), table.filter(done)
