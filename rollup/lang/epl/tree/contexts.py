"""Contexts: how partitions begin and end."""

from __future__ import annotations

from dataclasses import dataclass

from rollup.lang.epl.tree.expressions import Crontab, Expression, Period
from rollup.lang.epl.tree.node import Node
from rollup.lang.epl.tree.streams import FilterSource, PatternSource


@dataclass(frozen=True)
class FilterCondition(Node):
    """An event begins or ends."""

    source: FilterSource
    alias: str | None = None


@dataclass(frozen=True)
class PatternCondition(Node):
    """A match begins or ends; `inclusive`: the events of the match are seen by the statements too."""

    source: PatternSource
    inclusive: bool = False
    alias: str | None = None


@dataclass(frozen=True)
class AfterCondition(Node):
    """`after 5 sec`."""

    period: Period


@dataclass(frozen=True)
class CrontabCondition(Node):
    """One crontab, or the first of several that comes."""

    crontabs: tuple[Crontab, ...]


Condition = FilterCondition | PatternCondition | AfterCondition | CrontabCondition


@dataclass(frozen=True)
class Start(Node):
    """`@now`, a condition, or `@now and` a condition; one of the two at least."""

    now: bool = False
    condition: Condition | None = None


@dataclass(frozen=True)
class KeyedStream(Node):
    """`a and b from Type(filter) as alias`."""

    keys: tuple[Expression, ...]
    source: FilterSource
    alias: str | None = None


@dataclass(frozen=True)
class Keyed(Node):
    """`partition by …`, with its own beginning and end where it has one."""

    streams: tuple[KeyedStream, ...]
    initiated: tuple[FilterCondition, ...] = ()
    terminated: Condition | None = None


@dataclass(frozen=True)
class HashedStream(Node):
    """`hash_code(a) from Type(filter)`."""

    function: Expression
    source: FilterSource


@dataclass(frozen=True)
class Hashed(Node):
    """`coalesce by … granularity n [preallocate]`."""

    streams: tuple[HashedStream, ...]
    granularity: int
    preallocate: bool = False


@dataclass(frozen=True)
class Categories(Node):
    """`group by condition as label, … from Type(filter)`."""

    categories: tuple[tuple[Expression, str], ...]
    source: FilterSource


@dataclass(frozen=True)
class StartEnd(Node):
    """`start … end …`: at most one partition at a time."""

    start: Start
    end: Condition | None = None


@dataclass(frozen=True)
class Overlapping(Node):
    """`initiated by [distinct(…)] … terminated by …`: a partition for each beginning."""

    start: Start
    end: Condition | None = None
    distinct: tuple[Expression, ...] = ()


ContextForm = Keyed | Hashed | Categories | StartEnd | Overlapping


@dataclass(frozen=True)
class CreateContext(Node):
    """`create context name …`; several levels, outermost first, when it is nested. A lone level has the context's name."""

    name: str
    levels: tuple[tuple[str, ContextForm], ...]
