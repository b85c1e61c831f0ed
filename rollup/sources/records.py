"""Raw records to events: each attribute is read with its type; a record that does not fit is a dead letter."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rollup.aggregation.dialects import to_sql
from rollup.aggregation.engine import Engine
from rollup.plan.app import StreamDef
from rollup.plan.types import Type
from rollup.sources.base import DEAD

Readers = Mapping[str, tuple[str, str]]
"""For each attribute, SQL that reads it (null when it cannot) and SQL that says whether the record has it."""


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def cast(sql: str, kind: Type) -> str:
    """SQL that reads a text as a type, null when it cannot."""
    return f"TRY_CAST({sql} AS {to_sql(kind.sql)})"


def json_readers(stream: StreamDef, raw: str) -> Readers:
    """Attributes of a JSON object by name; a missing one is null."""
    readers: dict[str, tuple[str, str]] = {}
    for name, kind in stream.attributes.items():
        value = f"json_extract_string({raw}, {text('$.' + quoted(name))})"
        readers[name] = (cast(value, kind), f"{value} IS NOT NULL")
    return readers


def view(engine: Engine, stream: StreamDef, relation: str, readers: Readers, raw: str, valid: str, position: str) -> tuple[int, pa.Table]:
    """Make the view `__batch` of the records that fit; how many records there were, and the dead letters.

    `relation` has `__arrival` and `__received`; `raw` is the record's text, `valid` whether it is a record at all, and
    `position` where it stands.
    """
    connection = engine.connection
    columns = ", ".join(f"{read} AS {quoted(name)}" for name, (read, _) in readers.items())
    wrong = " ".join(f"WHEN {has} AND ({read}) IS NULL THEN {text(f'{name} is not a {stream.attributes[name]}')}" for name, (read, has) in readers.items())
    reason = f"CASE WHEN NOT COALESCE({valid}, false) THEN 'not a record' {wrong} END"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE __read AS SELECT {columns}, __arrival, __received, {reason} AS __reason, "
        f"CASE WHEN {reason} IS NOT NULL THEN {raw} END AS __raw, {position} AS __position FROM {relation}"
    )
    connection.execute("CREATE OR REPLACE TEMP VIEW __batch AS SELECT * EXCLUDE (__reason, __raw, __position) FROM __read WHERE __reason IS NULL")
    dead = engine.run(
        f"SELECT {text(stream.name)} AS stream, __reason AS reason, __position AS position, __raw AS raw FROM __read WHERE __reason IS NOT NULL"
    )
    return engine.count("SELECT COUNT(*) FROM __read"), dead.cast(DEAD)
