"""Which input a batch holds: the names of files, or where it ends in each partition. Never how a stream was cut.

A batch may come again cut in another way, so a number of it says nothing about what is in it. An input is plain data:
`{"files": base64 of 8 bytes a name}`, or `{"offsets": {partition: the next offset}}`, which holds all before it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from rollup.core.errors import SourceError
from rollup.core.untyped import pc

Input = Mapping[str, Any]
FILES, OFFSETS = "files", "offsets"
_NAME = 8
"""Bytes that stand for the name of a file; that two of the thousand a mark holds are equal has odds of 1 in 10^13."""
_PARTITION, _START, _END = "kafka_partition", "kafka_start", "kafka_end"
"""Columns of batches whose rows are ranges of offsets that a task is to read."""
_NUMBERED = (("kafka_partition", "kafka_offset"), (None, "__arrival"))
"""Columns of batches whose rows are numbered by their source: the partition, if there are any, and the number."""


def held(batch: pa.Table) -> Input:
    """The input that the rows of a batch are, as `Source.frame` gives them; nothing when there is none.

    >>> held(pa.table({"kafka_partition": [0, 0, 1], "kafka_offset": [7, 8, 3]}))
    {'offsets': {'0': 9, '1': 4}}
    """
    if not batch.num_rows:
        return {}
    if "path" in batch.column_names:
        return {FILES: joined(map(_digest, batch["path"].to_pylist()))}
    if _END in batch.column_names:
        ends = zip(batch[_PARTITION].to_pylist(), batch[_END].to_pylist(), strict=True)
        return {OFFSETS: {str(partition): end for partition, end in sorted(ends)}}
    partition, number = _columns(batch)
    if partition is None:
        return {OFFSETS: {"": pc.max(batch[number]).as_py() + 1}}
    last = batch.group_by(partition).aggregate([(number, "max")]).to_pydict()
    return {OFFSETS: {str(p): n + 1 for p, n in sorted(zip(last[partition], last[f"{number}_max"], strict=True))}}


def rest(batch: pa.Table, taken: Input) -> pa.Table:
    """The rows of a batch that are not of an input.

    >>> batch = pa.table({"kafka_partition": [0, 0, 1], "kafka_offset": [7, 8, 3]})
    >>> rest(batch, {"offsets": {"0": 8}})["kafka_offset"].to_pylist()
    [8, 3]
    >>> ranges = pa.table({"kafka_partition": [0, 1], "kafka_start": [7, 3], "kafka_end": [9, 4]})
    >>> held(ranges), rest(ranges, {"offsets": {"0": 8, "1": 4}}).to_pylist()
    ({'offsets': {'0': 9, '1': 4}}, [{'kafka_partition': 0, 'kafka_start': 8, 'kafka_end': 9}])
    """
    if not batch.num_rows or not taken:
        return batch
    if FILES in taken:
        known = names(taken[FILES])
        return batch.filter(pa.array([_digest(path) not in known for path in batch["path"].to_pylist()], pa.bool_()))
    offsets: Mapping[str, int] = taken[OFFSETS]
    if _END in batch.column_names:
        return _later(batch, offsets)
    partition, number = _columns(batch)
    keep = pa.array([True] * batch.num_rows) if not offsets else None
    for name, start in offsets.items():
        later = pc.greater_equal(batch[number], start)
        other = later if partition is None else pc.or_(pc.not_equal(batch[partition], int(name)), later)
        keep = other if keep is None else pc.and_(keep, other)
    return batch.filter(keep)


def _later(ranges: pa.Table, offsets: Mapping[str, int]) -> pa.Table:
    """What of ranges of offsets is not before some offsets."""
    rows = [row | {_START: max(row[_START], offsets.get(str(row[_PARTITION]), 0))} for row in ranges.to_pylist()]
    return pa.Table.from_pylist([row for row in rows if row[_START] < row[_END]], schema=ranges.schema)


def together(parts: Iterable[Input]) -> Input:
    """Inputs of one stream as one.

    >>> together([{"offsets": {"0": 9}}, {}, {"offsets": {"0": 4, "1": 1}}])
    {'offsets': {'0': 9, '1': 1}}
    """
    found = [part for part in parts if part]
    if not found:
        return {}
    if FILES in found[0]:
        return {FILES: joined(name for part in found for name in names(part[FILES]))}
    most: dict[str, int] = {}
    for part in found:
        most |= {name: max(offset, most.get(name, 0)) for name, offset in part[OFFSETS].items()}
    return {OFFSETS: most}


def names(text: str) -> frozenset[bytes]:
    """The names that `joined` has put together."""
    content = base64.b64decode(text)
    return frozenset(content[i : i + _NAME] for i in range(0, len(content), _NAME))


def joined(some: Iterable[bytes]) -> str:
    """Names as one text."""
    return base64.b64encode(b"".join(sorted(set(some)))).decode()


def _digest(path: str) -> bytes:
    return blake2b(path.encode("utf-8", "surrogateescape"), digest_size=_NAME).digest()


def _columns(batch: pa.Table) -> tuple[str | None, str]:
    for partition, number in _NUMBERED:
        if number in batch.column_names:
            return partition, number
    raise SourceError(
        f"the rows of a source ({', '.join(batch.column_names)}) do not say which input they are",
        hint="`path` names a file, `__arrival` numbers rows, `kafka_partition` and `kafka_offset` do both",
    )
