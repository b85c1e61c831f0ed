"""Columns that have types, to events: one of its attribute's type is taken as it is; others are converted, and what does not
fit is a dead letter. They are the columns of a relation `r`, or the members of a struct of that name in one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb

from rollup.core.columns import ColumnEngine
from rollup.core.identifiers import quoted
from rollup.plan.app import StreamDef
from rollup.plan.reading import cast
from rollup.plan.types import Type
from rollup.sources.content.records import Readers

ROW = "r"


@dataclass(frozen=True)
class Columns:
    """The columns of a relation `r`, and those that are asked for by a path into structs (`http.status`): the type of each."""

    types: Mapping[str, str]
    paths: Mapping[str, str]

    @classmethod
    def of(cls, engine: ColumnEngine, types: Mapping[str, str], relation: str, asked: Iterable[str]) -> Columns:
        """Columns of known types, and of those that are asked for and not among them, the members of structs."""
        paths = dict[str, str]()
        for path in asked:
            root, *rest = path.split(".")
            if path not in types and rest and types.get(root, "").startswith("STRUCT"):
                try:
                    told = engine.connection.execute(f"DESCRIBE SELECT {_sql(root, *rest)} FROM {relation} AS {ROW}")
                except duckdb.Error:
                    continue
                paths[path] = told.fetchall()[0][1]
        return cls(types, paths)

    @property
    def names(self) -> set[str]:
        """All that attributes may be read from."""
        return {*self.types, *self.paths}

    def readers(self, stream: StreamDef, renamed: Mapping[str, str]) -> Readers:
        """How each attribute is read; one that is not there is null."""
        return {
            name: self._reader(renamed.get(name, name), kind, stream.zone) for name, kind in stream.attributes.items()
        }

    def exact(self, stream: StreamDef, renamed: Mapping[str, str]) -> bool:
        """Whether every attribute has a column of its own type."""
        return all(self._type(renamed.get(name, name)) == kind.duckdb for name, kind in stream.attributes.items())

    def converted(self, stream: StreamDef, renamed: Mapping[str, str]) -> list[str]:
        """The attributes whose columns are of another type; a float is a double to the last digit."""
        exact = {("FLOAT", "DOUBLE")}
        found = {name: (self._type(renamed.get(name, name)), kind.duckdb) for name, kind in stream.attributes.items()}
        return [name for name, (stored, kind) in found.items() if stored != kind and (stored, kind) not in exact]

    def raw(self, stream: StreamDef, renamed: Mapping[str, str]) -> str:
        """A record as JSON; times are as its attributes have them, so that it is read again as it was."""
        times = [
            f"{quoted(found)} := {self._reader(found, kind, stream.zone)[0]}"
            for name, kind in stream.attributes.items()
            if (found := renamed.get(name, name)) in self.types and self._is_instant(found, kind)
        ]
        row = f"STRUCT_UPDATE({ROW}, {', '.join(times)})" if times else ROW
        return f"CAST(TO_JSON({row}) AS VARCHAR)"

    def _type(self, name: str) -> str | None:
        return self.types.get(name) or self.paths.get(name)

    def _is_instant(self, name: str, kind: Type) -> bool:
        stored = self._type(name) or ""
        return kind is Type.LONG and (stored.startswith("TIMESTAMP") or stored == "DATE")

    def _reader(self, name: str, kind: Type, zone: str) -> tuple[str, str]:
        stored = self._type(name)
        if stored is None:
            return f"CAST(NULL AS {kind.duckdb})", "false"
        column = _sql(name) if name in self.types else _sql(*name.split("."))
        has = f"{column} IS NOT NULL"
        if stored == kind.duckdb:
            return column, has
        if kind is Type.TIMESTAMP and (stored.startswith("TIMESTAMP") or stored == "DATE"):
            return f"TRY_CAST({_microseconds(column) if stored.endswith('_NS') else column} AS TIMESTAMPTZ)", has
        return _instant(column, stored) if self._is_instant(name, kind) else cast(column, kind, zone), has


def _sql(*path: str) -> str:
    return ".".join([ROW, *map(quoted, path)])


def _instant(column: str, stored: str) -> str:
    """A time as milliseconds, cut: rounded to the next one, an event could fall into the next second."""
    if stored in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS"):
        return _cut(f"EPOCH_NS({column})", 1_000_000)
    if stored == "DATE":
        column = f"TRY_CAST({column} AS TIMESTAMP)"
    return f"EPOCH_MS(DATE_TRUNC('millisecond', {column}))"


def _microseconds(column: str) -> str:
    """A time to the nanosecond as one to the microsecond, cut."""
    return f"MAKE_TIMESTAMP({_cut(f'EPOCH_NS({column})', 1000)})"


def _cut(number: str, size: int) -> str:
    return f"({number} // {size} - CASE WHEN {number} % {size} < 0 THEN 1 ELSE 0 END)"
