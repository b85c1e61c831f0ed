"""The metadata of a message (key, time, headers) as attributes of its event: `message = { user = "key", sent = "timestamp" }`.

They become members of the record under the names of their attributes, in front of its own. So whatever reads records
(dead letters that are taken in again, replay, the search for what is not there) has them without knowing of messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.core.identifiers import quoted
from rollup.core.untyped import pc
from rollup.plan.app import StreamDef
from rollup.sources.content.records import text
from rollup.sources.topics.values import shown, texts

if TYPE_CHECKING:
    from pyspark.sql import Column

OPTION = "message"
KEY, HEADER = "key", "headers."
TOPIC_COLUMN = "kafka_topic"
_PLACES = {
    "timestamp": "timestamp",
    "topic": TOPIC_COLUMN,
    "partition": "kafka_partition",
    "offset": "kafka_offset",
}
"""Fields that every message is read with, and the columns that have them."""
_BLANK = text(" \t\r\n")


@dataclass(frozen=True)
class Metadata:
    """Attributes by the field of the message that each one is: key, timestamp (ms), topic, partition, offset, `headers.NAME`."""

    fields: Mapping[str, str]

    @classmethod
    def of(cls, stream: StreamDef, options: Mapping[str, Any]) -> Metadata:
        """Those of a source. Raises ConfigError."""
        fields: Mapping[str, str] = options.get(OPTION, {})
        for name, field in fields.items():
            where = f"[sources.{stream.name}]: {OPTION} has {field!r} for {name}"
            if name not in stream.own:
                raise ConfigError(
                    f"[sources.{stream.name}]: {OPTION} names {name}, which is no attribute of the stream",
                    hint=f"attributes are {', '.join(stream.own)}",
                )
            if name in options.get("columns", {}):
                raise ConfigError(f"{where}, and `columns` has it too", hint="one of them says where it is")
            if field not in (KEY, *_PLACES) and not field.startswith(HEADER):
                raise ConfigError(where, hint=f"one of {', '.join((KEY, *_PLACES))}, or {HEADER}NAME")
        return cls(fields)

    @cached_property
    def binary(self) -> dict[str, str]:
        """The fields that are read only because they are asked for, each with the name of its column of bytes."""
        asked = sorted({field for field in self.fields.values() if field not in _PLACES})
        return {field: f"beside_{at}" for at, field in enumerate(asked)}

    @property
    def topic(self) -> bool:
        """Whether an attribute is the topic of the message."""
        return TOPIC_COLUMN in map(_PLACES.get, self.fields.values())

    def selected(self) -> list[Column]:
        """`binary` of Spark's messages; of headers of one name the last counts."""
        from pyspark.sql import functions as f

        def column(field: str) -> Column:
            if field == KEY:
                return f.col(KEY).cast("binary")
            name = field.removeprefix(HEADER)
            found = f.filter("headers", lambda header: header["key"] == f.lit(name))
            return f.try_element_at(found, f.lit(-1))["value"]

        return [column(field).alias(name) for field, name in self.binary.items()]

    def columns(self, messages: pa.Table) -> dict[str, pa.ChunkedArray]:
        """The values of each attribute: numbers, or texts; bytes that are none are written as 0x and their digits."""
        return {
            name: messages[_PLACES[field]] if field in _PLACES else _texts(messages[self.binary[field]])
            for name, field in self.fields.items()
        }

    def in_documents(self, engine: ColumnEngine, raw: pa.ChunkedArray, messages: pa.Table) -> pa.ChunkedArray:
        """Texts of JSON objects with the attributes as their first members; what is no object stays as it is."""
        if not self.fields:
            return raw
        given = self.columns(messages)
        members = ", ".join(f"{quoted(name)} := c{at}" for at, name in enumerate(given))
        start, own = f"LTRIM(raw, {_BLANK})", f"CAST(TO_JSON(STRUCT_PACK({members})) AS VARCHAR)"
        rest = f"LTRIM({start}[2:], {_BLANK})"
        comma = f"CASE WHEN STARTS_WITH({rest}, '}}') THEN '' ELSE ',' END"
        whole = f"CASE WHEN STARTS_WITH({start}, '{{') THEN {own}[:-2] || {comma} || {rest} ELSE raw END"
        rows = pa.table({"raw": raw, **{f"c{at}": column for at, column in enumerate(given.values())}})
        return engine.run(f"SELECT {whole} AS raw FROM message_rows", message_rows=rows)["raw"]

    def in_structs(self, records: pa.Array, messages: pa.Table) -> pa.Array:
        """Records with the attributes as their first members."""
        if not self.fields:
            return records
        own = {name: column.combine_chunks() for name, column in self.columns(messages).items()}
        names = [field.name for field in records.type]
        rest = {name: column for name, column in zip(names, records.flatten(), strict=True) if name not in own}
        return pa.StructArray.from_arrays([*own.values(), *rest.values()], [*own, *rest])


def _texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    raw, readable = texts(values)
    if pc.all(pc.or_(readable, pc.is_null(values))).as_py() is not False:
        return raw
    digits = [None if value is None else shown(value) for value in values.to_pylist()]
    return pc.if_else(readable, raw, pa.chunked_array([pa.array(digits, pa.string())]))
