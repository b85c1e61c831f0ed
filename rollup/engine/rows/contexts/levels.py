"""Contexts as they are planned: levels that say by what partitions begin and end."""

from __future__ import annotations

from dataclasses import dataclass

from rollup.engine.expressions import Expr
from rollup.engine.rows.contexts.conditions import Condition
from rollup.engine.rows.plans import Filter, Lookup


@dataclass(frozen=True)
class KeyedStream:
    """The events of a stream and where their keys stand."""

    filter: Filter
    places: tuple[int, ...]


@dataclass(frozen=True)
class Keyed:
    """A partition a key. `initiated`: only these events begin one; `end`: what ends one, else it lives on."""

    streams: tuple[KeyedStream, ...]
    initiated: tuple[tuple[Filter, str | None], ...] = ()
    end: Condition | None = None
    lookups: tuple[Lookup, ...] = ()


@dataclass(frozen=True)
class Hashed:
    """A partition a remainder of a hash: for each stream its events and the hash of one."""

    streams: tuple[tuple[Filter, Expr], ...]
    granularity: int
    preallocate: bool = False
    end: None = None
    lookups: tuple[Lookup, ...] = ()


@dataclass(frozen=True)
class Categories:
    """A partition a condition; an event may fulfil several, or none."""

    filter: Filter
    categories: tuple[tuple[str, Expr], ...]
    end: None = None
    lookups: tuple[Lookup, ...] = ()


@dataclass(frozen=True)
class Lived:
    """Partitions that begin and end. `overlap`: one for each beginning, else none begins while one lives."""

    start: tuple[Condition, ...]
    end: Condition | None
    overlap: bool
    distinct: tuple[Expr, ...] = ()
    lookups: tuple[Lookup, ...] = ()


Level = Keyed | Hashed | Categories | Lived


@dataclass(frozen=True)
class Context:
    """A context: its levels with their names, outermost first."""

    name: str
    levels: tuple[tuple[str, Level], ...]
