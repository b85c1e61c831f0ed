"""Raw records to events: each attribute is read with its type; a record that does not fit is a dead letter."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rollup.aggregation.engine import Engine
from rollup.plan.app import StreamDef
from rollup.plan.dialects import to_sql
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
    """SQL that reads a text or number as a type, null when it cannot; 1.5 is no integer."""
    read = f"TRY_CAST({sql} AS {to_sql(kind.sql)})"
    if kind in (Type.INT, Type.LONG):
        # DuckDB would round. What is no number at all has no fraction, and is null anyway.
        return f"CASE WHEN COALESCE(TRY_CAST({sql} AS DOUBLE) % 1, 0) = 0 THEN {read} END"
    return read


IS_OBJECT = "CASE WHEN json_valid(raw) THEN json_type(raw) = 'OBJECT' ELSE false END"
"""Whether `raw` is a JSON object. A CASE, because AND does not keep json_type from seeing what is no JSON."""


def json_readers(stream: StreamDef, raw: str, renamed: Mapping[str, str] | None = None) -> Readers:
    """Attributes of a JSON object by name, or by the name or `$.path` that `renamed` gives; a missing one is null."""
    readers: dict[str, tuple[str, str]] = {}
    for name, kind in stream.attributes.items():
        found = (renamed or {}).get(name, name)
        path = found if found.startswith("$") else "$." + quoted(found)
        value = f"json_extract_string({raw}, {text(path)})"
        readers[name] = (cast(value, kind), f"{value} IS NOT NULL")
    return readers


def view(
    engine: Engine, stream: StreamDef, relation: str, readers: Readers, raw: str, valid: str, position: str
) -> tuple[int, pa.Table]:
    """Make the view `__batch` of the records that fit; how many records there were, and the dead letters.

    `relation` has `__arrival` and `__received`; `raw` is the record's text, `valid` whether it is a record at all, and
    `position` where it stands. The relation is read once.
    """
    connection = engine.connection
    columns = ", ".join(f"{read} AS {quoted(name)}" for name, (read, _) in readers.items())
    wrong = " ".join(
        f"WHEN {has} AND ({read}) IS NULL THEN {text(f'{name} is not a {stream.attributes[name]}')}"
        for name, (read, has) in readers.items()
    )
    reason = f"CASE WHEN NOT COALESCE({valid}, false) THEN 'not a record' {wrong} END"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE __read AS SELECT {columns}, __arrival, __received, {reason} AS __reason, "
        f"CASE WHEN {reason} IS NOT NULL THEN {raw} END AS __raw, {position} AS __position FROM {relation}"
    )
    connection.execute(
        "CREATE OR REPLACE TEMP VIEW __batch AS "
        "SELECT * EXCLUDE (__reason, __raw, __position) FROM __read WHERE __reason IS NULL"
    )
    dead = engine.run(
        f"SELECT {text(stream.name)} AS stream, __reason AS reason, __position AS position, __raw AS raw "
        "FROM __read WHERE __reason IS NOT NULL"
    )
    return engine.count("SELECT COUNT(*) FROM __read"), dead.cast(DEAD)
