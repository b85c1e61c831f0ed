"""The model: which streams and tables there are. Calcite's JSON form and ours in TOML are read.

An example of the latter:

    [tables.Orders]
    columns = { rowtime = "TIMESTAMP", productId = "INTEGER", units = "INTEGER" }
    kind = "both"                           # stream, table, or both: a stream whose history is kept as a table
    monotonic = { rowtime = "increasing" }  # or "strictly increasing", "decreasing"; enforced
    slack = "5 minutes"                     # t-sorted instead of sorted; or "3 rows" (k-sorted), "punctuation" (in any order)
    key = ["productId"]
    history = "2 hours"
    delta = "tables/orders"                 # queries without STREAM read there; columns may be left out
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from sqlglot import exp
from sqlglot.errors import SqlglotError

from rollup.core.errors import ConfigError
from rollup.core.options import Known, flag, names, one_of, refuse_unknown, table, text, texts
from rollup.core.options import folder as a_folder
from rollup.core.texts import json_of, toml_of
from rollup.engine.flows.flow import Monotone
from rollup.lang.calcite.history import Rows, delta

KINDS = ("stream", "table", "both")
_SPAN = re.compile(r"(\d+) (second|minute|hour|day)s?")
_MICROSECONDS = {"second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": 86_400_000_000}
_KNOWN: Known = {
    "columns": texts,
    "kind": one_of(*KINDS),
    "monotonic": texts,
    "slack": text,
    "key": names,
    "history": text,
    "temporal": flag,
    "delta": a_folder,
}


@dataclass(frozen=True)
class Table:
    """A name of the model: its columns with DuckDB's types, and how it may be read.

    `slack`: microseconds, or rows when `slack_rows`, or None: only punctuations say how far its columns are. `history`:
    microseconds that are kept; None: all. `rows`: where a table that is stored elsewhere, and only read, has its rows.
    `buckets`: its rows are buckets by `key`, of which the last one that had ended is the version as of a time. Where they
    come as a stream, `time` is the column of their ends, and `passed` the stream that says how far they are. `moving`: its
    rows have the positions in the input from which on they hold, each until the next row of its `key`.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    stream: bool
    table: bool
    monotonic: Mapping[str, Monotone] = field(default_factory=dict[str, Monotone])
    slack: int | None = 0
    slack_rows: bool = False
    key: tuple[str, ...] = ()
    history: int | None = None
    temporal: bool = False
    rows: Rows | None = field(default=None, compare=False)
    buckets: bool = False
    time: str = ""
    passed: str | None = None
    moving: bool = False

    @property
    def since(self) -> str | None:
        """The column that says since when a version of a temporal table's row holds; None where nothing says it."""
        return next(iter(self.monotonic), None) if self.temporal and self.key and self.rows is None else None

    def column(self, name: str) -> str | None:
        """A column as it is declared, without regard to case; None when there is none."""
        return next((column for column, _ in self.columns if column.lower() == name.lower()), None)


class Model:
    """The tables by name, compared without regard to case."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self._tables: dict[str, Table] = {}
        for each in tables:
            if each.name.lower() in self._tables:
                raise ConfigError(
                    f"the model has two tables {each.name}", hint="names are compared without regard to case"
                )
            self.add(each)

    def find(self, name: str) -> Table | None:
        """The table of a name, None when there is none."""
        return self._tables.get(name.lower())

    def add(self, added: Table) -> None:
        """One more table: the target of an INSERT."""
        self._tables[added.name.lower()] = added

    @property
    def tables(self) -> Sequence[Table]:
        """All of them."""
        return list(self._tables.values())

    @classmethod
    def read(cls, path: Path) -> Model:
        """The model of a file. Raises ConfigError with the file and what was wrong there."""
        read = toml_of if path.suffix == ".toml" else json_of
        return cls.of(read(path, "the model"), path.parent)

    @classmethod
    def of(cls, document: Mapping[str, Any], folder: Path = Path()) -> Model:
        """The model of a parsed document, in either form; paths in it are below `folder`."""
        document = table("the model", document)
        if "schemas" in document:
            schemas = [table("a schema of the model", each) for each in _list("`schemas`", document["schemas"])]
            entries = [each for schema in schemas for each in _list("`tables` of a schema", schema.get("tables", []))]
            return cls(_from_calcite(each, folder) for each in entries)
        if not isinstance(document.get("tables"), Mapping):
            raise ConfigError("the model has no tables", hint="[tables.NAME] in TOML, `schemas` with `tables` in JSON")
        return cls(_table(name, entry, folder) for name, entry in document["tables"].items())


def _list(where: str, given: Any) -> Sequence[Any]:
    if not isinstance(given, list):
        raise ConfigError(f"{where} is {given!r}", hint="a list is expected here")
    return cast("list[Any]", given)


def _from_calcite(given: Any, folder: Path) -> Table:
    """A table of Calcite's form: `stream: {stream, history}`, the rest in `operand`."""
    entry = table("a table of the model", given)
    name = entry.get("name")
    if text(name) is not None:
        raise ConfigError(f"a table of the model has the name {name!r}", hint="a text")
    stream = table(f"`stream` of {name}", entry.get("stream") or {})
    kind = "table" if not stream.get("stream") else "both" if stream.get("history") else "stream"
    operand = dict(table(f"`operand` of {name}", entry.get("operand") or {}))
    columns = entry.get("columns") or operand.pop("columns", {})
    named = _by_name(f"a column of {name}", columns) if isinstance(columns, list) else columns
    known = {k: v for k, v in operand.items() if k in _KNOWN}
    return _table(str(name), {"kind": kind, **known, "columns": named}, folder)


def _by_name(where: str, columns: Sequence[Any]) -> dict[str, Any]:
    found = [table(where, each) for each in columns]
    lacking = next((each for each in found if not isinstance(each.get("name"), str) or "type" not in each), None)
    if lacking is not None:
        raise ConfigError(f"{where} is {dict(lacking)!r}", hint='{"name": "units", "type": "INTEGER"}')
    return {each["name"]: each["type"] for each in found}


def _table(name: str, given: Any, folder: Path) -> Table:
    entry = table(name, given)
    refuse_unknown(name, entry, _KNOWN)
    columns = tuple((column, _type(f"{name}.{column}", kind)) for column, kind in entry.get("columns", {}).items())
    stored, rows = delta(name, folder / entry["delta"]) if "delta" in entry else ((), None)
    columns = columns or stored
    if not columns:
        raise ConfigError(f"{name} has no columns")
    _check_stored(name, columns, stored, entry)
    kind = entry.get("kind", "table")
    there = [column for column, _ in columns]
    monotonic = {column: _monotone(name, column, words) for column, words in entry.get("monotonic", {}).items()}
    for column in [*monotonic, *entry.get("key", [])]:
        if column not in there:
            raise ConfigError(f"{name} has no column {column!r}", hint=f"one of {', '.join(there)}")
    slack, by_rows = _slack(name, entry.get("slack"))
    history = _span(name, "history", entry["history"]) if "history" in entry else None
    return Table(
        name, columns, kind in ("stream", "both"), kind in ("table", "both"), monotonic, slack, by_rows,
        tuple(entry.get("key", ())), history, bool(entry.get("temporal", False)), rows,
    )  # fmt: skip


def _check_stored(
    name: str, columns: Sequence[tuple[str, str]], stored: Sequence[tuple[str, str]], entry: Mapping[str, Any]
) -> None:
    """A table that is read from Delta has the columns that it has there, and no versions of its rows."""
    if "delta" not in entry:
        return
    there = {column.lower() for column, _ in stored}
    missing = next((column for column, _ in columns if column.lower() not in there), None)
    if missing is not None:
        raise ConfigError(
            f"{name}: its Delta table has no column {missing!r}", hint=f"it has {', '.join(c for c, _ in stored)}"
        )
    if entry.get("temporal") or entry.get("kind") == "stream":
        raise ConfigError(
            f"{name}: a Delta table is read as a table that is not temporal", hint='kind = "table" or "both"'
        )


def _type(where: str, text: str) -> str:
    try:
        return exp.DataType.build(text, dialect="duckdb").sql("duckdb")
    except SqlglotError:
        raise ConfigError(f"{where}: unknown type {text!r}") from None


def _monotone(table: str, column: str, words: str) -> Monotone:
    found = {
        "increasing": Monotone(),
        "strictly increasing": Monotone(strict=True),
        "decreasing": Monotone(rising=False),
        "strictly decreasing": Monotone(rising=False, strict=True),
    }
    if words not in found:
        raise ConfigError(f"{table}.{column}: {words!r} is no way to move", hint=f"one of {', '.join(found)}")
    return found[words]


def _slack(table: str, text: str | None) -> tuple[int | None, bool]:
    if text is None or text == "punctuation":
        return (0 if text is None else None), False
    rows = re.fullmatch(r"(\d+) rows?", text)
    return (int(rows[1]), True) if rows else (_span(table, "slack", text), False)


def _span(table: str, key: str, text: str) -> int:
    found = _SPAN.fullmatch(text)
    if not found:
        raise ConfigError(
            f"{table}: {key} {text!r} is no span", hint='as in "5 minutes"; slack also "3 rows" or "punctuation"'
        )
    return int(found[1]) * _MICROSECONDS[found[2]]
