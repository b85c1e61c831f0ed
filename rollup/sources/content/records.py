"""Raw records to events: each attribute is read with its type; a record that does not fit is a dead letter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.core.identifiers import quoted
from rollup.plan.app import StreamDef
from rollup.sources.base import DEAD

NO_RECORD = "not a record"
"""The reason of what cannot be read as one."""
NO_VALUE = "no value (a tombstone)"
"""The reason of a message that only says that its key is gone: it is no event, and nothing is wrong with it."""
Readers = Mapping[str, tuple[str, str]]
"""For each attribute, SQL that reads it (null when it cannot) and SQL that says whether the record has it."""


def text(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def literal(path: str) -> str:
    """A path as DuckDB's readers take it: a name is a name, never a pattern.

    >>> literal("/in/a[1]*.csv")
    '/in/a[[]1][*].csv'
    """
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in path)


def json_paths(found: str) -> list[str]:
    """Where a value may be.

    >>> json_paths("a"), json_paths("http.status"), json_paths("$.x[0]")
    (['$."a"'], ['$."http.status"', '$."http"."status"'], ['$.x[0]'])
    """
    if found.startswith("$"):
        return [found]
    parts = found.split(".")
    whole = f"$.{_member(found)}"
    return [whole, "$." + ".".join(map(_member, parts))] if len(parts) > 1 and all(parts) else [whole]


def _member(name: str) -> str:
    sign = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{sign}"'


def is_member(name: str) -> bool:
    """Whether a name is that of a member of the document, written as it is."""
    return len(json_paths(name)) == 1 and name[:1] not in ("$", "") and not set(name) & {'"', "\\"}


def check_paths(stream: StreamDef, renamed: Mapping[str, str]) -> None:
    """Raise ConfigError for a path that is none, or of many values: it would fail every batch."""
    for name, found in renamed.items():
        for path in json_paths(found):
            try:
                kind = duckdb.connect().execute("SELECT TYPEOF(json_extract_string('{}', $1))", [path]).fetchall()
            except duckdb.Error:
                kind = []
            if kind != [("VARCHAR",)]:
                raise ConfigError(
                    f"[sources.{stream.name}]: columns has {found!r} for {name}, which is no path of one value",
                    hint="e.g. `http.status`, or `$.items[0].price`",
                )


def view(
    engine: ColumnEngine,
    stream: StreamDef,
    relation: str,
    readers: Readers,
    raw: str,
    valid: str,
    position: str,
    keep: Sequence[str] = (),
) -> tuple[int, pa.Table]:
    """Make the view `__batch` of the records that fit; how many records there were, and the dead letters.

    `relation` has `__arrival` and `__received`; `raw` is the record's text, `valid` whether it is a record at all, and
    `position` where it stands, of `__arrival` and the columns to `keep`; `__places` has it for every record. The
    relation is read once.
    """
    connection = engine.connection
    columns = ", ".join(f"{read} AS {quoted(name)}" for name, (read, _) in readers.items())
    wrong = " ".join(
        f"WHEN {has} AND ({read}) IS NULL THEN {text(f'{name} is not a {stream.attributes[name]}')}"
        for name, (read, has) in readers.items()
    )
    none = f"CASE WHEN ({raw}) IS NULL THEN {text(NO_VALUE)} ELSE {text(NO_RECORD)} END"
    reason = f"CASE WHEN NOT COALESCE({valid}, false) THEN {none} {wrong} END"
    kept = "".join(f", {name}" for name in keep)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE __read AS SELECT {columns}, __arrival, __received, {reason} AS __reason, "
        f"CASE WHEN {reason} IS NOT NULL THEN {raw} END AS __raw{kept} FROM {relation}"
    )
    show(engine, "__read", "* EXCLUDE (__reason, __raw" + kept + ")", position, "WHERE __reason IS NULL")
    dead = engine.run(
        f"SELECT {text(stream.name)} AS stream, __reason AS reason, {position} AS position, __raw AS raw "
        "FROM __read WHERE __reason IS NOT NULL"
    )
    return engine.count("SELECT COUNT(*) FROM __read"), dead.cast(DEAD)


def show(engine: ColumnEngine, relation: str, columns: str, position: str, where: str = "") -> None:
    """Make `__batch` of some columns of a relation, and `__places` of all its rows."""
    places = f"SELECT __arrival, {position} AS __position FROM {relation}"
    engine.connection.execute(f"CREATE OR REPLACE TEMP VIEW __places AS {places}")
    engine.connection.execute(f"CREATE OR REPLACE TEMP VIEW __batch AS SELECT {columns} FROM {relation} {where}")


def nothing(engine: ColumnEngine, stream: StreamDef) -> int:
    """Make `__batch` of no event at all; how many that are."""
    columns = ", ".join(f"CAST(NULL AS {kind.duckdb}) AS {quoted(name)}" for name, kind in stream.attributes.items())
    placed = "CAST(0 AS BIGINT) AS __arrival, CAST(0 AS BIGINT) AS __received"
    engine.connection.execute(f"CREATE OR REPLACE TEMP VIEW __batch AS SELECT {columns}, {placed} WHERE false")
    return 0
