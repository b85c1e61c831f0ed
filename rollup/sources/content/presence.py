"""Which attributes the records of a batch have: one that none of them has is probably spelled wrong.

Every attribute may be null in a record. That no record of a whole batch even has it, is a sign that the configuration
looks for it in the wrong place, unless it is listed as `optional`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from rollup.core.columns import ColumnEngine
from rollup.core.dialects import to_sql
from rollup.core.errors import ConfigError
from rollup.core.identifiers import quoted
from rollup.plan.app import StreamDef
from rollup.plan.reading import KEPT, WHOLE
from rollup.sources.content.records import json_paths

LOOKED = pa.schema([("attribute", pa.string()), ("has", pa.bool_()), ("place", pa.string()), ("rounded", pa.string())])
"""An attribute that records should have, whether one of a part has it, and where the first record of the part stands; its
type where it has values so great that whole numbers may have been rounded."""

HAS = ", which has "
"""Stands between the place of a record and the names of its members."""
_SHOWN = 30


def check_names(stream: StreamDef, options: Mapping[str, Any]) -> None:
    """Raise ConfigError when `optional` or `columns` names what is no attribute of the stream."""
    for key in ("columns", "optional"):
        for name in options.get(key, ()):
            if name not in stream.own:
                raise ConfigError(
                    f"[sources.{stream.name}]: {key} names {name}, which is no attribute of the stream",
                    hint=f"attributes are {', '.join(stream.own)}",
                )


def expected(stream: StreamDef, options: Mapping[str, Any]) -> list[str]:
    """The attributes that records should have."""
    return [name for name in stream.attributes if name not in options.get("optional", ())]


def looked(has: Mapping[str, bool], place: str) -> pa.Table:
    """What was found in a part."""
    rows = [{"attribute": name, "has": found, "place": place} for name, found in has.items()]
    return pa.Table.from_pylist(rows, schema=LOOKED)


def great(engine: ColumnEngine, stream: StreamDef, converted: Iterable[str] | None = None) -> pa.Table:
    """The attributes of the events in `__batch` that have such values; those that were converted, or all."""
    kinds = {name: str(stream.attributes[name]) for name in (stream.attributes if converted is None else converted)}
    names = [name for name, kind in kinds.items() if kind in WHOLE]
    if not names:
        return LOOKED.empty_table()
    most = [
        f"BOOL_OR(ABS({quoted(name)}) >= {1 << WHOLE[kinds[name]]} AND ABS({quoted(name)}) < {KEPT}) AS c{number}"
        for number, name in enumerate(names)
    ]
    found = engine.run(f"SELECT {', '.join(most)} FROM __batch").to_pylist()[0]
    rows = [
        {"attribute": name, "has": True, "place": "", "rounded": kinds[name]}
        for number, name in enumerate(names)
        if found[f"c{number}"]
    ]
    return pa.Table.from_pylist(rows, schema=LOOKED)


def objects(relation: str, ok: str, arrival: str, origin: str | None, *place: str) -> exp.Select:
    """What `json_looked` reads, of a relation with `raw`: whether it is an object, its arrival, and its place (an origin,
    where it is the same for all, and columns that say where in it)."""
    raw = exp.Case().when(exp.maybe_parse(ok, dialect="duckdb"), exp.column("raw"))
    parts: list[exp.Expr] = [] if origin is None else [exp.Literal.string(origin)]
    parts += [exp.column(name) for name in place]
    where = parts[0]
    for part in parts[1:]:
        where = exp.DPipe(this=exp.DPipe(this=where, expression=exp.Literal.string(":")), expression=part)
    columns = [exp.alias_(raw, "raw"), exp.alias_(exp.column(arrival), "__arrival"), exp.alias_(where, "place")]
    return exp.select(*columns).from_(exp.to_table(relation))


def json_looked(engine: ColumnEngine, stream: StreamDef, options: Mapping[str, Any], found: exp.Select) -> pa.Table:
    """What there is of attributes in JSON objects whose events have just become `__batch`; null is there.

    `found` are those objects (`objects`), read again only when an attribute is null in every event.
    """
    names = expected(stream, options)
    without = _without_value(engine, names)
    rest = _members(engine, {name: options.get("columns", {}).get(name, name) for name in without}, found)
    there = looked({name: True for name in names if name not in without}, "")
    return pa.concat_tables([there, rest, great(engine, stream)])


def _without_value(engine: ColumnEngine, names: list[str]) -> list[str]:
    """Of some attributes those that are null in every event that was read."""
    if not names:
        return []
    counts = [exp.alias_(exp.Count(this=exp.column(name, quoted=True)), f"c{i}") for i, name in enumerate(names)]
    row = engine.run(to_sql(exp.select(*counts).from_("__batch"))).to_pylist()[0]
    return [name for i, name in enumerate(names) if not row[f"c{i}"]]


def _members(engine: ColumnEngine, places: Mapping[str, str], found: exp.Select) -> pa.Table:
    """Which attributes are members, by the name or path of each; nothing when there are no objects."""
    if not places:
        return LOOKED.empty_table()
    raw = exp.column("raw")
    there = [
        exp.or_(*(exp.func("json_exists", raw, exp.Literal.string(path)) for path in json_paths(where)))
        for where in places.values()
    ]
    has = [exp.alias_(exp.func("bool_or", one), f"c{i}") for i, one in enumerate(there)]
    members = exp.maybe_parse(f"place || '{HAS}' || ARRAY_TO_STRING(JSON_KEYS(raw)[:{_SHOWN}], ', ')", dialect="duckdb")
    first = exp.alias_(exp.Anonymous(this="MIN_BY", expressions=[members, exp.column("__arrival")]), "first")
    known = exp.Not(this=exp.Is(this=raw, expression=exp.Null()))
    row = engine.run(to_sql(exp.select(*has, first).from_(found.subquery("r")).where(known))).to_pylist()[0]
    if row["first"] is None:
        return LOOKED.empty_table()
    return looked({name: bool(row[f"c{i}"]) for i, name in enumerate(places)}, row["first"])


def absent(tables: Iterable[pa.Table]) -> Mapping[str, str]:
    """The attributes that no part of a batch has, each with the first place where it was looked for.

    >>> absent([looked({"a": False, "b": False}, "x:0"), looked({"a": False, "b": True}, "y:0")])
    {'a': 'x:0'}
    """
    known, places = list(tables), dict[str, str]()
    for row in (row for table in known for row in table.to_pylist() if not row["has"]):
        places.setdefault(row["attribute"], row["place"])
    found = present(known)
    return {name: place for name, place in places.items() if name not in found}


def present(tables: Iterable[pa.Table]) -> set[str]:
    """The attributes that some part of a batch has."""
    return {row["attribute"] for table in tables for row in table.to_pylist() if row["has"]}
