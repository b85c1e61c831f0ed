"""The kinds of sources a configuration may name, with their options. A new one is its file and a line here."""

from __future__ import annotations

import re
from typing import Any

from rollup.core.catalogs import TYPES, properties
from rollup.core.options import (
    Known,
    Provider,
    any_text,
    delta_place,
    elsewhere,
    encoding,
    flag,
    folder,
    names,
    one_of,
    place,
    settings,
    text,
    text_or_texts,
    texts,
    url,
    whole,
)
from rollup.sources.topics.ways import READ, SPARK, TASKS

FORMAT, DEBEZIUM = "format", "debezium"
"""The option that says what messages are, where they are no events but changes of rows."""
_ANY: Known = {"lateness": elsewhere, "idle": elsewhere}
_FILES: Known = {
    "path": place,
    "glob": text,
    "moved_from": text,
    "max_files_per_batch": whole(1, 2**31 - 1),
    "create": flag,
    "columns": texts,
    "optional": names,
    **_ANY,
}


def _iceberg_table(value: Any) -> str | None:
    """A table of Iceberg, in a namespace."""
    fits = isinstance(value, str) and re.fullmatch(r"[^.\s]+(\.[^.\s]+)+", value)
    return None if fits else "a table with its namespace, as lake.trades"


_TEXTS: Known = {**_FILES, "encoding": encoding}
_FILES_ENTRY = "rollup.sources.files:Files"
KINDS: dict[str, Provider] = {
    "parquet": Provider(_FILES_ENTRY, _FILES, ("path",)),
    "csv": Provider(_FILES_ENTRY, {**_TEXTS, "header": flag, "separator": any_text, "null": text_or_texts}, ("path",)),
    "json": Provider(_FILES_ENTRY, _TEXTS, ("path",)),
    "delta": Provider(
        "rollup.sources.delta:Delta",
        {
            "path": delta_place,
            "starting_version": whole(0),
            "columns": texts,
            "optional": names,
            "max_files_per_batch": whole(1, 2**31 - 1),
            **_ANY,
        },
        ("path",),
    ),
    "iceberg": Provider(
        "rollup.sources.iceberg:Iceberg",
        {
            "table": _iceberg_table,
            "catalog": text,
            "uri": url,
            "type": one_of(*TYPES),
            "properties": properties,
            "starting_snapshot": whole(0),
            "columns": texts,
            "optional": names,
            "max_files_per_batch": whole(1, 2**31 - 1),
            **_ANY,
        },
        ("table",),
    ),
    "kafka": Provider(
        "rollup.sources.kafka:Kafka",
        {
            "servers": text,
            "topic": text,
            "topics": names,
            "topic_pattern": text,
            "partitions": whole(1, 2**22),
            "starting_offsets": text,
            "max_events_per_batch": whole(1),
            "columns": texts,
            "optional": names,
            "slack": elsewhere,
            "values": one_of("csv", "text"),
            "separator": any_text,
            "null": text_or_texts,
            "fields": names,
            FORMAT: one_of(DEBEZIUM),
            READ: one_of(TASKS, SPARK),
            "message": texts,
            "registry": text,
            "registry_settings": settings,
            "schema_file": folder,
            "options": settings,
            **_ANY,
        },
        ("servers",),
    ),
    "rate": Provider("rollup.sources.rate:Rate", {"rows_per_second": whole(1), "keys": whole(1), **_ANY}),
}
"""Each entry makes the source of a stream: `(stream, options) -> Source`."""
