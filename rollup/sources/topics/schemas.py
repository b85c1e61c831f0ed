"""Schemas of the values of topics, by their kind: each is read by the library of that kind, loaded when one is met."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from rollup.core.errors import ConfigError
from rollup.sources.topics.values import Group, Schema, Unread, read_by, without_value

AVRO, PROTOBUF = "AVRO", "PROTOBUF"
_BY_ENDING = {".proto": PROTOBUF}


def schema_of(kind: str, text: str, referred: Mapping[str, str] | None = None, registered: bool = True) -> Schema:
    """A schema with the texts that it refers to by their names; `registered` are messages as a registry's client writes them.

    Raises ValueError when the text is none, and ModuleNotFoundError without the library of its kind.
    """
    if kind == PROTOBUF:
        from rollup.sources.topics import protobuf

        return protobuf.Schema(text, referred, placed=registered)
    from rollup.sources.topics import avro

    return avro.Schema(text, list((referred or {}).values()))


@lru_cache(maxsize=64)
def _of_file(path: Path, changed: int) -> Schema:
    return schema_of(_BY_ENDING.get(path.suffix, AVRO), path.read_text(), registered=False)


class Alone:
    """Values that are records by the schema in a file (`.proto`: of its first message, else Avro), with nothing before them."""

    def __init__(self, stream: str, path: str) -> None:
        try:
            self._schema = _of_file(Path(path), Path(path).stat().st_mtime_ns)
        except OSError as problem:
            raise ConfigError(f"[sources.{stream}] schema_file: cannot read {path}: {problem.strerror}") from None
        except ValueError as problem:
            raise ConfigError(f"[sources.{stream}] schema_file: {path} is {problem}") from None

    def read(self, values: pa.ChunkedArray) -> tuple[list[Group], list[Unread]]:
        """See `Values`."""
        places, messages, none = without_value(values)
        groups, wrong = read_by(self._schema, places, messages) if len(places) else ([], [])
        return groups, none + wrong
