"""Records of Protobuf as columns.

A schema is the text of a `.proto` file, or its descriptor in base64. The compiler of Protobuf makes descriptors of it, and Google's library makes
messages by these. Between the number of a schema and a message stand the places of its type in the file.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import grpc_tools
import pyarrow as pa
from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.confluent.type import decimal_pb2
from google.protobuf import descriptor_pb2, json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.type import calendar_period_pb2

from rollup.sources.topics.values import NO_RECORD, structs

_PATIENCE = 60
"""Seconds for which the compiler may work at a schema."""
_MOST = 32
"""Types in types that the place of a message's type goes down at most."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRAPPED = re.compile(r"google\.protobuf\.(?:Double|Float|Int64|UInt64|Int32|UInt32|Bool|String|Bytes)Value")


class Schema:
    """A schema of Protobuf with the files it imports. Raises ValueError when it is none.

    >>> one = Schema('syntax = "proto3"; message T { string k = 1; optional int64 n = 2; }')
    >>> found, wrong = one.read(pa.array([bytes([0, 10, 1, 65]), bytes([0, 10, 9])]))
    >>> found.to_pylist(), sorted(wrong)
    ([{'k': 'A', 'n': None}, None], [1])
    """

    def __init__(self, text: str, imported: Mapping[str, str] | None = None, placed: bool = True) -> None:
        """`placed`: before each message stand the places of its type; without them it is the first of the file."""
        self._placed = placed
        pool = DescriptorPool()
        for file in _compiled(text, imported or {}).file:
            pool.Add(file)  # pyright: ignore[reportUnknownMemberType]  # each stands behind those it imports
        self._types = pool.FindFileByName(_OWN).message_types_by_name
        self._fields = _Fields()
        if not self._types:
            raise ValueError("a schema without a message")

    def read(self, messages: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """See `rollup.sources.topics.values.Schema`."""
        records, wrong = list[Any](), dict[int, str]()
        for place, message in enumerate(messages.to_pylist()):
            try:
                kind, begin = self._type(message)
                found = GetMessageClass(kind).FromString(message[begin:] if begin else message)
                records.append(_record(found, self._fields.of(kind)))
            except (DecodeError, ValueError, OverflowError, InvalidOperation, json_format.Error) as problem:
                wrong[place] = f"{NO_RECORD}: {str(problem) or type(problem).__name__}"
                records.append(None)
        return structs(records), wrong

    def _type(self, message: bytes) -> tuple[Descriptor, int]:
        """The type of a message, and where the message begins. Raises ValueError."""
        if not self._placed:
            return next(iter(self._types.values())), 0
        depth, at = _number(message, 0)
        if not 0 <= depth <= _MOST:
            raise ValueError(f"its type stands {depth} types deep")
        kinds: Sequence[Descriptor] = list(self._types.values())
        found, places = kinds[0], [0] if depth == 0 else []
        for _ in range(depth):
            place, at = _number(message, at)
            places.append(place)
        for place in places:
            if not 0 <= place < len(kinds):
                raise ValueError(f"its type {places} is not in the schema")
            found = kinds[place]
            kinds = list(found.nested_types)
        return found, at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A signed number of seven bits a byte, and where it ends. Raises ValueError.

    >>> _number(bytes([3, 9]), 0), _number(bytes([128, 1]), 0)
    ((-2, 1), (64, 2))
    """
    found = shift = 0
    while at < len(data) and shift < 35:
        byte = data[at]
        found, shift, at = found | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
    raise ValueError("the place of its type is cut off")


_OWN, _KNOWN = "rollup_own.proto", "rollup_known.bin"
_LOGGED = re.compile(r"WARNING: |[IWEF]\d{4,} ")
"""Lines that the compiler's library writes about itself."""


def _compiled(text: str, imported: Mapping[str, str]) -> FileDescriptorSet:
    """The descriptors of a schema and of all it imports. Raises ValueError with what the compiler says."""
    known = FileDescriptorSet()
    for module in (descriptor_pb2, meta_pb2, decimal_pb2):  # what a schema may import without that a registry has it
        module.DESCRIPTOR.CopyToProto(known.file.add())
    with tempfile.TemporaryDirectory(prefix="rollup-proto-") as made:
        folder, answer = Path(made, "in"), Path(made, "out")
        for name, content in {**imported, _OWN: text}.items():
            file = (folder / name).resolve()
            if not file.is_relative_to(folder.resolve()):
                raise ValueError(f"no schema of Protobuf: it imports {name}")
            if (descriptor := _described(content)) is not None:
                descriptor.name = name
                known.file.append(descriptor)
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
        folder.mkdir(exist_ok=True)
        (folder / _KNOWN).write_bytes(known.SerializeToString())
        googles = (Path(grpc_tools.__file__).parent / "_proto", Path(calendar_period_pb2.__file__).parents[2])
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", *(f"-I{each}" for each in googles)),
                *(f"--descriptor_set_in={folder / _KNOWN}", "--include_imports"),
                *(f"--descriptor_set_out={answer}", _OWN),
            ],
            capture_output=True, text=True, timeout=_PATIENCE, check=False,
        )  # fmt: skip
        if ran.returncode or not answer.is_file():
            said = [line for line in ran.stderr.splitlines() if line.strip() and not _LOGGED.match(line)]
            raise ValueError(
                f"no schema of Protobuf: {(said or ['?'])[0].replace(f'{folder}/', '').replace(_OWN, 'it')}"
            )
        return FileDescriptorSet.FromString(answer.read_bytes())


def _described(text: str) -> FileDescriptorProto | None:
    """The descriptor that a text is, as some clients register schemas; None for the text of a `.proto` file."""
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text.strip(), validate=True))
    except (ValueError, DecodeError):
        return None


# Values: what each type's fields are is found out once, so that a message costs a call a field

_Field = tuple[str, bool, Callable[[Any], Any] | None]
"""A field's name, whether it may be absent, and what makes a value of what Google's library gives, if that is not one."""


def _record(message: Any, fields: Sequence[_Field]) -> dict[str, Any]:
    """A message as its fields by their names in the schema; those that were not written and have no default are None."""
    found = dict[str, Any]()
    for name, absent, made in fields:
        if absent and not message.HasField(name):
            found[name] = None
        else:
            value = getattr(message, name)
            found[name] = value if made is None else made(value)
    return found


class _Fields(dict[str, list[_Field]]):
    """The fields of types by the types' names; a type may hold itself."""

    def of(self, kind: Any) -> list[_Field]:
        """Those of a type."""
        if (known := self.get(kind.full_name)) is None:
            known = self[kind.full_name] = []
            known += [(each.name, each.has_presence, self._made(each)) for each in kind.fields]
        return known

    def _made(self, field: Any) -> Callable[[Any], Any] | None:
        one = self._one(field)
        if not field.is_repeated:
            return one
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            of = self._one(field.message_type.fields_by_name["value"]) or _same
            return lambda found: json.dumps({str(key): of(each) for key, each in sorted(found.items())}, default=_text)
        return list if one is None else lambda found: [one(each) for each in found]

    def _one(self, field: Any) -> Callable[[Any], Any] | None:
        """What makes one value as Avro's library would give it: enums by name, well-known types as what they stand for."""
        if field.enum_type is not None:
            names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
            return lambda number: names.get(number, str(number))
        if field.message_type is None:
            return None
        name = field.message_type.full_name
        if name in _STANDS_FOR:
            return _STANDS_FOR[name]
        if _WRAPPED.fullmatch(name):
            return lambda found: found.value
        fields = self.of(field.message_type)
        return lambda found: _record(found, fields)


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _day(found: Any) -> date | None:
    """A day; None for a year or a month of which the day is left open."""
    return date(found.year, found.month, found.day) if found.year and found.month and found.day else None


def _json(found: Any) -> str:
    return json_format.MessageToJson(found, indent=None)


_STANDS_FOR: dict[str, Callable[[Any], Any]] = {
    "google.protobuf.Timestamp": lambda found: (
        _EPOCH + timedelta(seconds=found.seconds, microseconds=found.nanos // 1000)
    ),
    "google.protobuf.Duration": lambda found: found.seconds + found.nanos / 1e9,
    "google.type.Date": _day,
    "google.type.Decimal": lambda found: Decimal(found.value),
    "confluent.type.Decimal": lambda found: Decimal(int.from_bytes(found.value, "big", signed=True)).scaleb(
        -found.scale
    ),
    **dict.fromkeys((f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue", "FieldMask")), _json),
}
