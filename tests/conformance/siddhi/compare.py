"""How a step's answer compares with the recorded one; the rules in words are in tests/conformance/README.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.conformance.compare import Case, Mismatch, same_rows

HIDDEN = (
    "AGG_EVENTS",
    "AGG_LAST_EVENT_TIMESTAMP",
    "AGG_LAST_ARRIVAL",
    "AGG_FIRST_EVENT_TIMESTAMP",
    "AGG_FIRST_ARRIVAL",
)
"""Columns of ours that the reference has not; a case that does not name its columns does not show them."""
_TYPES = {
    "int64": "LONG",
    "int32": "INT",
    "double": "DOUBLE",
    "float": "FLOAT",
    "string": "STRING",
    "bool": "BOOL",
    "decimal128(38, 0)": "LONG",
}
_JAVA = {"Long": "LONG", "Integer": "INT", "Double": "DOUBLE", "Float": "FLOAT", "String": "STRING", "Boolean": "BOOL"}


@dataclass(frozen=True)
class Rows:
    """Rows by position, the names of their columns and, where known, their types (LONG, STRING, …)."""

    names: Sequence[str]
    rows: list[list[Any]]
    types: Sequence[str] | None = None

    @classmethod
    def of(cls, table: pa.Table) -> Rows:
        """The rows of an Arrow table."""
        values = [column.to_pylist() for column in table.columns]
        types = [_TYPES.get(str(kind), str(kind)) for kind in table.schema.types]
        return cls(table.schema.names, [list(row) for row in zip(*values, strict=True)], types)

    def select(self, names: Sequence[str], what: str) -> Rows:
        """Columns by name; the reference's AGG_COUNT also stands for our AGG_COUNT_x, equal without nulls."""
        places = [self._place(name, what) for name in names]
        types = None if self.types is None else [self.types[place] for place in places]
        return Rows(names, [[row[place] for place in places] for row in self.rows], types)

    def _place(self, name: str, what: str) -> int:
        if name in self.names:
            return list(self.names).index(name)
        for place, ours in enumerate(self.names):
            if name == "AGG_COUNT" and ours.startswith("AGG_COUNT_"):
                return place
        raise Mismatch(f"{what}: no column {name} among {list(self.names)}")


def answers(expected: Any) -> bool:
    """Whether something is recorded for a step that can be compared."""
    return expected is not None and not (isinstance(expected, dict) and expected.get("unspecified"))


def check(expected: Any, got: Any, step: Case, case: Case) -> None:
    """Raise Mismatch unless a step's answer is the recorded one."""
    if not answers(expected):
        return
    what = json.dumps(step)[:200]
    if expected == {}:
        if got.get("emitted"):
            raise Mismatch(f"{what} should emit nothing, got {got['emitted']}")
    elif "schema" in expected:
        _schema(expected["schema"], got["tables"][step["schema"]], what)
    elif "dump_table" in step:
        _table(step["dump_table"], expected, got["tables"], what)
    elif "error" in expected:
        if "error" not in got:
            raise Mismatch(f"{what} should be refused, got {got}")
    elif "error" in got:
        raise Mismatch(f"{what} was refused: {got['error']}")
    elif "tables" in expected:
        for name, table in expected["tables"].items():
            _table(name, table, got["tables"], what)
    elif "running" in expected:
        for level, rows in expected["running"].items():
            _same(
                rows,
                got["running"][level].select(_running_columns(case, level, got["running"][level]), what),
                f"{what} {level}",
            )
    elif "emitted" in expected:
        _emitted(expected["emitted"], got["emitted"], case, what)
    else:
        _answer(expected, got["rows"], step, what)


def _answer(expected: Case, got: Rows, step: Case, what: str) -> None:
    if expected.get("null_result"):
        if got.rows:
            raise Mismatch(f"{what} should have no rows, got {got.rows}")
        return
    if "columns" in expected:
        names = [column.split(":")[0] for column in expected["columns"]]
        if names != list(got.names):
            raise Mismatch(f"{what}: columns {list(got.names)} instead of {names}")
    _same_types([_JAVA.get(kind) for kind in expected.get("types", ())], got, what)
    _same(expected["rows"], got, what, "order by" in step["query"])


def _emitted(expected: list[Any], got: list[Any], case: Case, what: str) -> None:
    ordered = any("order by" in line for line in case["app"])
    for stream in sorted({row["stream"] for row in [*expected, *got]}):
        wanted = [row for row in expected if row["stream"] == stream]
        found = [row for row in got if row["stream"] == stream]
        types = found[0].get("types") if found else None
        rows = Rows((), [row["data"] for row in found], types)
        for row in wanted:
            _same_types([_JAVA.get(kind) if kind else None for kind in row.get("types", ())], rows, what)
        _same([row["data"] for row in wanted], rows, f"{what} {stream}", ordered)


def _schema(expected: list[str], got: Rows, what: str) -> None:
    """Each recorded column is there with its type; ours may have more."""
    names = [column.split(":")[0] for column in expected]
    _same_types([_declared(column) for column in expected], got.select(names, what), what)


def _table(name: str, expected: Case, tables: dict[str, Rows], what: str) -> None:
    if name not in tables:
        raise Mismatch(f"{what}: no table {name}, only {sorted(tables)}")
    names = [column.split(":")[0] for column in expected["columns"]]
    found = tables[name].select(names, f"{what} {name}")
    _same_types([_declared(column) for column in expected["columns"]], found, f"{what} {name}")
    _same(expected["rows"], found, f"{what} {name}")


def _declared(column: str) -> str | None:
    """The type behind the colon; what the reference calls OBJECT has no counterpart and is not compared."""
    kind = column.partition(":")[2]
    return kind if kind in _JAVA.values() else None


def _running_columns(case: Case, level: str, got: Rows) -> list[str]:
    """The reference's columns of a row, in its order: as the case's dumped tables have them."""
    for answer in (case["expected"] or {}).get("steps", []):
        tables = (answer or {}).get("tables") if isinstance(answer, dict) else None
        for name, dumped in (tables or {}).items():
            if name.endswith(level):
                return [column.split(":")[0] for column in dumped["columns"]]
    return [name for name in got.names if name not in HIDDEN and not name.startswith("AGG_OVERFLOW")]


def _same_types(expected: Sequence[str | None], got: Rows, what: str) -> None:
    if got.types is None or not expected:
        return
    if len(expected) != len(got.types) or any(
        e is not None and e != g for e, g in zip(expected, got.types, strict=True)
    ):
        raise Mismatch(f"{what}: types {list(got.types)} instead of {list(expected)}")


def _same(expected: list[Any], got: Rows, what: str, ordered: bool = False) -> None:
    floats = [kind in (None, "FLOAT") for kind in got.types or ()]
    if not same_rows(expected, got.rows, ordered, floats):
        raise Mismatch(f"{what}\n  expected {expected}\n  got      {got.rows}")
