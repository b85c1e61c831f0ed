"""The catalog: which tables there are and what their columns hold. Both forms are read, the document's flat one and the tool's nested one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa

from rollup.core.errors import ConfigError, PlanError
from rollup.core.texts import json_of
from rollup.lang.uql.tree import Name


class Kind(StrEnum):
    """What a value is. Spans come from arithmetic only; no field holds one."""

    INTEGER = "integer"
    FLOAT = "float"
    TEXT = "text"
    BOOLEAN = "boolean"
    TIME = "timestamp"
    SPAN = "duration"

    @property
    def numeric(self) -> bool:
        """Whether sum and avg make sense of it."""
        return self in (Kind.INTEGER, Kind.FLOAT)


_TYPES: Mapping[str, tuple[Kind, pa.DataType]] = {
    "integer8": (Kind.INTEGER, pa.int8()),
    "integer16": (Kind.INTEGER, pa.int16()),
    "integer32": (Kind.INTEGER, pa.int32()),
    "integer64": (Kind.INTEGER, pa.int64()),
    "float32": (Kind.FLOAT, pa.float32()),
    "float64": (Kind.FLOAT, pa.float64()),
    "text": (Kind.TEXT, pa.string()),
    "boolean": (Kind.BOOLEAN, pa.bool_()),
    "timestamp": (Kind.TIME, pa.timestamp("us", "UTC")),
}
_USAGES = ("data", "time", "group", "sequence")


@dataclass(frozen=True)
class Field:
    """A column: its kind, the Arrow type its values must fit, and what it is used for."""

    name: str
    kind: Kind
    arrow: pa.DataType
    usage: str = "data"


@dataclass(frozen=True)
class Table:
    """A table of the catalog by its full path, as (instance, database, schema, table)."""

    path: tuple[str, ...]
    fields: tuple[Field, ...]

    @property
    def name(self) -> str:
        """The path with dots."""
        return ".".join(self.path)

    @property
    def time(self) -> Field | None:
        """The first field with usage time: the clock of a session that names none."""
        return next((f for f in self.fields if f.usage == "time" and f.kind is Kind.TIME), None)


@dataclass(frozen=True)
class Extension:
    """An aggregate function that a catalog names: its file of Python, unless it is a known one, and the kind of its value."""

    name: str
    file: Path | None
    kind: Kind


@dataclass(frozen=True)
class Catalog:
    """The tables that queries may name, and the aggregate functions that they have besides the known ones.

    >>> flat = {"name": "c", "schemas": [{"name": "foo", "fields": [{"name": "x", "type": "integer16"}]}]}
    >>> Catalog.of(flat).tables[0].fields[0].arrow
    DataType(int16)
    """

    tables: tuple[Table, ...]
    functions: tuple[Extension, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Catalog:
        """The catalog of a JSON file. Raises ConfigError with the file, and what was wrong there."""
        return cls.of(json_of(path, "the catalog"), path.parent)

    @classmethod
    def of(cls, document: Any, folder: Path = Path()) -> Catalog:
        """The catalog of a parsed document, in either form; its files are told from `folder`. Raises ConfigError."""
        tables = tuple(_tables(_object(document, "the catalog")))
        if not tables:
            raise ConfigError(
                "the catalog has no table", hint="`schemas` (flat), or `databases` with schemas with tables"
            )
        return cls(tables, tuple(_extension(entry, folder) for entry in _objects(document, "functions")))

    def find(self, name: Name) -> Table:
        """The table that a name means, by as many parts of its path as make it clear. Raises PlanError with the list."""
        parts = tuple(name.text.split("."))
        found = [table for table in self.tables if table.path[-len(parts) :] == parts]
        if len(found) == 1:
            return found[0]
        known = ", ".join(table.name for table in found or self.tables)
        problem = f"{name.text} is the name of several tables" if found else f"unknown table: {name.text}"
        raise PlanError(problem, line=name.line, column=name.column, hint=f"known: {known}")


def _tables(document: Mapping[str, Any]) -> Iterator[Table]:
    if "databases" not in document:
        for schema in _objects(document, "schemas"):
            yield _table((), schema)
        return
    instance = _name(document, "the instance")
    for database in _objects(document, "databases"):
        for schema in _objects(database, "schemas"):
            path = (instance, _name(database, "a database"), _name(schema, "a schema"))
            for table in _objects(schema, "tables"):
                yield _table(path, table)


def _table(path: tuple[str, ...], document: Mapping[str, Any]) -> Table:
    name = _name(document, "a table")
    form = document.get("format", "csv")
    if form != "csv":
        raise ConfigError(f"{name}: the format {form!r} is not known", hint="csv")
    fields = tuple(_field(name, field) for field in _objects(document, "fields"))
    names = [field.name for field in fields]
    double = next((field for field in names if names.count(field) > 1), None)
    if double is not None:
        raise ConfigError(f"{name}: the field {double} stands twice")
    if not fields:
        raise ConfigError(f"{name} has no fields")
    return Table((*path, name), fields)


def _field(table: str, document: Mapping[str, Any]) -> Field:
    name = _name(document, f"a field of {table}")
    kind, arrow = _TYPES.get(str(document.get("type")), (None, None))
    if kind is None:
        allowed = f"one of {', '.join(_TYPES)}"
        raise ConfigError(f"{table}.{name}: unknown field type: {document.get('type')}", hint=allowed)
    usage = str(document.get("usage", "data"))
    if usage not in _USAGES:
        raise ConfigError(f"{table}.{name}: unknown usage: {usage}", hint=f"one of {', '.join(_USAGES)}")
    return Field(name, kind, arrow, usage)


def _extension(document: Mapping[str, Any], folder: Path) -> Extension:
    name = _name(document, "a function")
    kind, _ = _TYPES.get(str(document.get("type", "float64")), (None, None))
    if kind is None:
        allowed = f"one of {', '.join(_TYPES)}"
        raise ConfigError(f"the function {name} has an unknown type: {document.get('type')}", hint=allowed)
    file = document.get("file")
    return Extension(name, folder / file if isinstance(file, str) and file else None, kind)


def _object(document: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise ConfigError(f"{what} is no JSON object: {json.dumps(document)[:40]}")
    return document


def _objects(document: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    found = document.get(key, [])
    if not isinstance(found, list):
        raise ConfigError(f"`{key}` of the catalog is no list: {json.dumps(found)[:40]}")
    return [_object(entry, f"an entry of `{key}`") for entry in found]


def _name(document: Mapping[str, Any], what: str) -> str:
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{what} of the catalog has no name")
    return name
