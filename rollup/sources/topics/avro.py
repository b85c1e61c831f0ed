"""Records of Avro as columns.

A schema describes messages that have no frame of their own. Those of one schema are put behind each other as one block of
an Avro file, each with a mark behind it that no message can guess, and polars reads the block at once. Where a mark is
not found again, or polars does not know a type, fastavro reads message by message and says which one is damaged.
"""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Sequence
from datetime import date, time
from typing import Any

import fastavro
import numpy as np
import polars
import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType, expand_schema

from rollup.core.untyped import pc
from rollup.sources.topics.values import NO_RECORD, structs

TYPES = b"types"
"""What the metadata of a field calls the types that its values have, where they are of several."""
_BITS = 62
_PLAIN = frozenset({"string", "long", "int", "double", "float", "boolean", "bytes"})
_NAMED = ("record", "enum", "fixed", "error")
_INNER = ("type", "items", "values", "fields")
_LOGICAL = frozenset({None, "timestamp-millis", "timestamp-micros", "date", "decimal"})
"""What polars reads as fastavro does."""


class Schema:
    """A schema of Avro with what it refers to. Raises ValueError when it is none, or not that of a record.

    >>> one = Schema('{"type": "record", "name": "T", "fields": [{"name": "k", "type": "string"}]}')
    >>> found, wrong = one.read(pa.array([bytes([2, 65]), bytes([4, 65])]))
    >>> found.to_pylist(), sorted(wrong)
    ([{'k': 'A'}, None], [1])
    """

    def __init__(self, text: str, referred: Sequence[str] = ()) -> None:
        named = dict[str, Any]()
        try:
            for one in referred:
                fastavro.parse_schema(json.loads(one), named)
            whole: Any = _plainly(expand_schema(fastavro.parse_schema(json.loads(text), named)), set())
            self._schema = fastavro.parse_schema(whole)
        except (ValueError, SchemaParseException, UnknownType) as problem:
            raise ValueError(f"no schema of Avro: {problem}") from None
        if not isinstance(whole, dict) or whole.get("type") != "record":
            raise ValueError("no schema of a record")
        if _endless(whole):
            raise ValueError("a schema of lists whose items take no bytes: nothing bounds their length")
        self._known, self._whole = _known(whole), whole
        mark = {"name": "__mark", "type": "long"}
        framed = {"type": "record", "name": "__framed", "fields": [{"name": "__value", "type": whole}, mark]}
        empty = io.BytesIO()
        fastavro.writer(empty, fastavro.parse_schema(framed), [])
        self._head, self._foot = empty.getvalue(), empty.getvalue()[-16:]

    def read(self, messages: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """The records of messages as structs, null where there is none; and of those, by place, why."""
        found = self._together(messages) if self._known else None
        return (found, {}) if found is not None else self._each(messages)

    def _together(self, messages: pa.Array) -> pa.Array | None:
        """All records, where each message holds one and nothing else and all types are known."""
        secret = secrets.randbits(_BITS)
        large = pa.large_binary()
        mark, nothing = pa.scalar(_long(secret), large), pa.scalar(b"", large)
        marked = pc.binary_join_element_wise(messages.cast(large), mark, nothing)
        _, ends, data = marked.buffers()
        body = memoryview(data)[: np.frombuffer(ends, np.int64)[marked.offset + len(marked)]]
        block = b"".join([self._head, _long(len(messages)), _long(len(body)), body, self._foot])
        try:
            table = polars.read_avro(io.BytesIO(block)).to_arrow()
        except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError):
            return None
        if table.num_rows != len(messages) or not pc.all(pc.equal(table["__mark"], secret)).as_py():
            return None
        return table["__value"].combine_chunks()

    def _each(self, messages: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        records, wrong = list[Any](), dict[int, str]()
        for place, message in enumerate(messages.to_pylist()):
            data = io.BytesIO(message)
            try:
                record: Any = fastavro.schemaless_reader(data, self._schema, None)
                rest = len(message) - data.tell()
                if rest:
                    raise ValueError(f"{rest} bytes stand behind it")
            except Exception as problem:  # it reads bytes alone: whatever it raises, it raises for them
                wrong[place] = f"{NO_RECORD}: {str(problem) or type(problem).__name__}"
                record = None
            records.append(record if record is None else _as_texts(self._whole, record))
        return self._noted(structs(records)), wrong

    def _noted(self, records: pa.Array) -> pa.Array:
        """Records whose fields of several types say in their metadata which, see `TYPES`."""
        several = {each["name"]: types for each in self._whole["fields"] if len(types := _types(each["type"])) > 1}
        if not several or not pa.types.is_struct(records.type):
            return records
        fields = [
            field.with_metadata({TYPES: ", ".join(several[field.name])}) if field.name in several else field
            for field in records.type
        ]
        return pa.StructArray.from_arrays(records.flatten(), fields=fields, mask=records.is_null())


def _plainly(kind: Any, taken: set[str]) -> Any:
    """A type whose UUIDs are the texts that they are written as, and whose types within are no two of one name, which
    `taken` has: one that is used twice stands there twice."""
    if isinstance(kind, list):
        return [_plainly(each, taken) for each in kind]
    if not isinstance(kind, dict):
        return kind
    rest = {name: each for name, each in kind.items() if (name, each) != ("logicalType", "uuid")}
    if kind.get("type") in _NAMED:
        while rest["name"] in taken:
            rest["name"] += "_"
        taken.add(rest["name"])
    return rest | {name: _plainly(each, taken) for name, each in rest.items() if name in _INNER}


def _types(kind: Any) -> list[str]:
    """The names of the types that a value may have, null aside."""
    branches = kind if isinstance(kind, list) else [kind]
    names = [each if isinstance(each, str) else each.get("logicalType") or each["type"] for each in branches]
    return [name for name in names if name != "null"]


def _as_texts(kind: Any, value: Any) -> Any:
    """A value in which those of a union of several types are texts: what a field is read as is never up to its neighbours.

    >>> _as_texts({"type": "array", "items": ["null", "string", "long"]}, ["a", 7, None])
    ['a', '7', None]
    """
    if value is None or isinstance(kind, str):
        return value
    if isinstance(kind, list):
        types = [each for each in kind if each != "null"]
        return _as_texts(types[0], value) if len(types) == 1 else _text(value)
    match kind["type"]:
        case "record":
            return {each["name"]: _as_texts(each["type"], value[each["name"]]) for each in kind["fields"]}
        case "array":
            return [_as_texts(kind["items"], each) for each in value]
        case "map":
            return {name: _as_texts(kind["values"], each) for name, each in value.items()}
        case _:
            return value


def _text(value: Any) -> str:
    """A text as it is, a number, a list or a record as JSON has it, a time in ISO form."""
    match value:
        case bytes():
            return value.decode(errors="replace")
        case bool() | int() | float() | list() | dict():
            return json.dumps(value, default=_text)
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)


def _known(kind: Any) -> bool:
    """Whether polars reads a type: of records, lists and what may be null, those that nearly everybody writes."""
    if isinstance(kind, list):
        return len(kind) == 2 and "null" in kind and all(each == "null" or _known(each) for each in kind)
    if not isinstance(kind, dict):
        return kind in _PLAIN
    match kind["type"]:
        case "record":
            return all(_known(field["type"]) for field in kind["fields"])
        case "array":
            return _known(kind["items"])
        case "enum":
            return True
        case plain:
            return plain in _PLAIN and kind.get("logicalType") in _LOGICAL


def _endless(kind: Any) -> bool:
    """Whether a type has lists whose items take no bytes: a damaged length would be followed to its end."""
    if isinstance(kind, list):
        return any(map(_endless, kind))
    if not isinstance(kind, dict):
        return False
    inner = [field["type"] for field in kind.get("fields", ())] + [
        kind[name] for name in ("items", "values") if name in kind
    ]
    return (kind["type"] == "array" and _takes_nothing(kind["items"])) or any(map(_endless, inner))


def _takes_nothing(kind: Any) -> bool:
    if isinstance(kind, dict) and kind["type"] == "record":
        return all(_takes_nothing(field["type"]) for field in kind["fields"])
    return kind == "null" or (isinstance(kind, dict) and (kind["type"] == "null" or kind.get("size") == 0))


def _long(number: int) -> bytes:
    """A whole number that is not negative, as Avro writes it.

    >>> _long(1).hex(), _long(64).hex()
    ('02', '8001')
    """
    left, found = number << 1, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])
