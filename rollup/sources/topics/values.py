"""What the bytes of messages hold: JSON, or records of Avro or Protobuf, by one schema or by those of a registry.

A registry's client writes byte 0 and the number of a schema (four bytes, the first the highest) before each value. Every
message is read by the schema that it was written with, and its fields are then found by name. So fields may be added,
removed or widened while a job runs, as in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.sources.content.records import NO_VALUE

NO_RECORD = "not a record of its schema"


@dataclass(frozen=True)
class Group:
    """Messages that are read together: their places in the batch, and what they hold, texts of JSON (as bytes) or structs."""

    places: pa.Array
    records: pa.Array | pa.ChunkedArray


@dataclass(frozen=True)
class Unread:
    """A message that holds no record: its place in the batch, why, and its bytes as far as people can read them."""

    place: int
    reason: str
    raw: str | None


class Values(Protocol):
    """A way to write events into the bytes of a message."""

    def read(self, values: pa.ChunkedArray) -> tuple[list[Group], list[Unread]]:
        """Every message of a batch once. Raises SourceError where nobody can say yet what they hold."""
        ...


class Schema(Protocol):
    """A description of records, which reads the messages that were written by it."""

    def read(self, messages: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """The records of messages as structs, null where there is none; and of those, by place, why."""
        ...


class Json:
    """A JSON object each. That one is none is seen where its attributes are read."""

    def read(self, values: pa.ChunkedArray) -> tuple[list[Group], list[Unread]]:
        """See `Values`."""
        return [Group(_places(values), values)], []


def texts(values: pa.Array | pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Values as texts, and which of them are texts at all: bytes that are no UTF-8 have replacement characters.

    >>> [each.to_pylist() for each in texts(pa.array([b"a", None, b"b\\xff"]))]
    [['a', None, 'b\\ufffd'], [True, False, False]]
    """
    found = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    try:
        return found.cast(pa.string()), found.is_valid()
    except pa.ArrowInvalid:
        each = found.to_pylist()
    raw = [None if value is None else value.decode(errors="replace") for value in each]
    readable = [text is not None and text.encode() == value for text, value in zip(raw, each, strict=True)]
    return pa.chunked_array([pa.array(raw, pa.string())]), pa.chunked_array([pa.array(readable, pa.bool_())])


def shown(value: bytes) -> str:
    """Bytes for people, and for whoever wants them back.

    >>> shown(bytes([0, 0, 0, 0, 7, 65]))
    '0x000000000741'
    """
    return f"0x{value.hex()}"


def unread(places: pa.Array, messages: pa.Array, reasons: Sequence[str]) -> list[Unread]:
    """Messages that hold no record, each for a reason."""
    rows = zip(places.to_pylist(), reasons, messages.to_pylist(), strict=True)
    return [Unread(place, reason, shown(message)) for place, reason, message in rows]


def without_value(values: pa.ChunkedArray) -> tuple[pa.Array, pa.Array, list[Unread]]:
    """The messages that have a value: their places and their bytes; and those that have none."""
    found, every = values.combine_chunks(), _places(values)
    if not found.null_count:
        return every, found, []
    there = found.is_valid()
    none = every.filter(pc.invert(there)).to_pylist()
    return every.filter(there), found.filter(there), [Unread(place, NO_VALUE, None) for place in none]


def _places(values: pa.ChunkedArray) -> pa.Array:
    return pa.array(np.arange(len(values)))


def read_by(schema: Schema | str | None, places: pa.Array, messages: pa.Array) -> tuple[list[Group], list[Unread]]:
    """Messages of one schema, or of None for JSON, or those that cannot be read, and why."""
    if schema is None:
        return [Group(places, messages)], []
    if isinstance(schema, str):
        return [], unread(places, messages, [schema] * len(messages))
    records, wrong = schema.read(messages)
    if not wrong:
        return [Group(places, records)], []
    gone = pa.array(sorted(wrong), pa.int64())
    there = pc.invert(pc.is_in(pa.array(range(len(messages)), pa.int64()), gone))
    left = [Group(places.filter(there), records.filter(there))] if len(wrong) < len(messages) else []
    return left, unread(places.take(gone), messages.take(gone), [wrong[at] for at in gone.to_pylist()])


def structs(records: Sequence[Any]) -> pa.Array:
    """Records as structs; a field whose values have no type in common is JSON, as whatever is no column is."""
    try:
        return pa.array(records)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        names = dict.fromkeys(name for record in records if record is not None for name in record)
        columns = [_column([None if record is None else record[name] for record in records]) for name in names]
        absent = pa.array([record is None for record in records])
        return pa.StructArray.from_arrays(columns, list(names), mask=absent)


def _column(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.array([None if each is None else _text(each) for each in values])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
