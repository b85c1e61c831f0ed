"""Values whose schemas stand in a registry (Confluent's, or one that speaks as it does)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.common.schema_registry_client import Schema as Described
from confluent_kafka.schema_registry.error import SchemaRegistryError

from rollup.core.errors import ConfigError, SourceError
from rollup.core.options import with_secrets
from rollup.core.packages import needed_by
from rollup.core.untyped import pc
from rollup.sources.topics.schemas import AVRO, PROTOBUF, schema_of
from rollup.sources.topics.values import Group, Schema, Unread, read_by, unread, without_value

PREFIX = struct.Struct(">bI")
"""Byte 0 and the number of a schema."""
NO_PREFIX = "no number of a schema (byte 0 and four more) stands before it"
_NOT_THERE = 404
_PATIENCE = {"timeout": 10}
"""Of the client; seconds."""


class Registered:
    """Values that begin with the number of their schema in a registry: of Avro or Protobuf, or JSON that a schema describes."""

    def __init__(self, stream: str, url: str, settings: Mapping[str, Any]) -> None:
        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ConfigError(f"[sources.{stream}] registry is no address", hint="an address, as http://host:8081")
        bare = address.netloc.rpartition("@")[2]  # what stands before it is a name and a password
        self._stream, self._url = stream, address._replace(netloc=bare).geturl()
        self._settings = tuple(
            sorted({**_PATIENCE, **with_secrets(settings, f"[sources.{stream}] registry_settings"), "url": url}.items())
        )
        try:
            _client(self._settings)  # it refuses settings that it does not know
        except (ValueError, TypeError) as problem:
            raise ConfigError(f"[sources.{stream}] registry_settings: {problem}") from None

    def read(self, values: pa.ChunkedArray) -> tuple[list[Group], list[Unread]]:
        """See `Values`."""
        places, messages, wrong = without_value(values)
        framed = pc.and_(pc.greater_equal(pc.binary_length(messages), PREFIX.size), pc.starts_with(messages, b"\0"))
        bare = pc.invert(framed)
        strange = places.filter(bare)
        wrong += unread(strange, messages.filter(bare), [NO_PREFIX] * len(strange))
        rest = messages.filter(framed)
        prefix, bodies = pc.binary_slice(rest, 0, PREFIX.size), pc.binary_replace_slice(rest, 0, PREFIX.size, b"")
        parts = pa.table({"prefix": prefix, "place": places.filter(framed), "body": bodies})
        groups = list[Group]()
        for row in parts.group_by("prefix").aggregate([("place", "list"), ("body", "list")]).to_batches():
            for at in range(row.num_rows):
                schema = self._schema(PREFIX.unpack(row["prefix"][at].as_py())[1])
                found, more = read_by(schema, row["place_list"][at].values, row["body_list"][at].values)
                groups, wrong = groups + found, wrong + more
        return groups, wrong

    def _schema(self, number: int) -> Schema | str | None:
        """See `read_by`. Raises SourceError where the registry does not answer: that may pass."""
        try:
            with needed_by(f"[sources.{self._stream}] `registry`", "avro"):
                return _schema(self._settings, number)
        except SchemaRegistryError as problem:
            if problem.http_status_code == _NOT_THERE:
                return f"its schema {number} is not in {self._url}"
            said = f"{problem.error_message} (HTTP {problem.http_status_code})"
        except Exception as problem:  # of the way to it, whatever the client's own client raises
            said = str(problem) or type(problem).__name__
        raise SourceError(
            f"[sources.{self._stream}]: cannot ask {self._url} for schema {number}: {said}",
            hint="nothing is lost; the batch is read again when the registry answers",
        )


@lru_cache(maxsize=64)
def _client(settings: tuple[tuple[str, Any], ...]) -> SchemaRegistryClient:
    return SchemaRegistryClient(dict(settings))


@lru_cache(maxsize=1024)
def _schema(settings: tuple[tuple[str, Any], ...], number: int) -> Schema | str | None:
    client = _client(settings)
    found = client.get_schema(number)
    if found.schema_type == "JSON":
        return None
    if found.schema_type not in (AVRO, PROTOBUF):
        return f"its schema {number} is of {found.schema_type}, which is not read ({AVRO}, {PROTOBUF} and JSON are)"
    try:
        return schema_of(found.schema_type, str(found.schema_str), _referred(client, found))
    except ValueError as problem:
        return f"its schema {number} is {problem}"


def _referred(client: SchemaRegistryClient, schema: Described) -> dict[str, str]:
    """The schemas that one refers to, by the names it has for them, each behind those it refers to itself."""
    found = dict[str, str]()
    for one in schema.references or []:
        there = client.get_version(str(one.subject), int(one.version or 0)).schema
        found |= {**_referred(client, there), str(one.name): str(there.schema_str)}
    return found
