"""The rows that are loaded: one table a question and commit, shared by all who ask the same, within a budget.

A table never changes, so whoever reads it reads one whole commit. It stays until the transaction of a session that was
given its name ends, as PostgreSQL keeps one from being dropped as long. Of the others, those of older commits go first,
then those that were asked for longest ago. A transaction holds no more than nobody holds: one alone up to half of the
budget, two a third each. Who reads a table by its own name holds no share of it: where it has to go, it goes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from rollup.checkpoint.records import RecordFolder
from rollup.core.calendar import Duration
from rollup.core.errors import QueryError, RollupError
from rollup.gateway.protocol.session import Session
from rollup.gateway.rewriting.catalog import select_from, select_kept
from rollup.gateway.rewriting.loader import Key, Load, Loader, Where
from rollup.gateway.rewriting.mentions import by_name, columns
from rollup.plan.aggregation import TIMESTAMP, Aggregation
from rollup.plan.types import Type
from rollup.retrieval.as_of import AsOf
from rollup.retrieval.gaps import FILLS
from rollup.retrieval.questions import AUTO, bounds, level_or_period, zone_for
from rollup.retrieval.tables import TableReader

log = logging.getLogger(__name__)

_FIRST, _LAST = -(2**63), 2**63 - 1
_PATIENCE = 2.0
"""Seconds for which somebody may read a table that has to go, as one does who looks at the sizes of all tables."""
_MILLISECONDS = re.compile(r"0|-?[1-9][0-9]{8,18}")
"""Short numbers are none: somebody who writes '2018' means a year."""

Moment = dict[str | TableReader, int]
"""The commit of each aggregation, and of each reader of tables, that a statement has begun to read, so that all its
sources read the same."""


@dataclass(eq=False)
class Slice:
    """A table of loaded rows, or one being loaded."""

    key: Key
    table: str
    task: asyncio.Future[Load]
    pins: int = 0
    size: int = 0

    @property
    def loaded(self) -> bool:
        """Whether its rows are there."""
        return self.task.done() and not self.task.cancelled() and self.task.exception() is None


@dataclass
class Budget:
    """How much may be loaded at once: bytes on disk, which the server keeps in memory as it can, and tables."""

    bytes: int = 1 << 30
    tables: int = 512


@dataclass
class Slices:
    """All tables of loaded rows; belongs to one event loop."""

    aggregations: Mapping[str, Aggregation]
    loader: Loader
    budget: Budget = field(default_factory=Budget)
    folders: Mapping[str, RecordFolder] = field(default_factory=dict[str, RecordFolder])
    evicted: int = 0
    loads: int = 0
    _known: dict[Key, Slice] = field(default_factory=dict[Key, Slice])
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _doomed: dict[Slice, float] = field(default_factory=dict[Slice, float])
    """Tables that nobody is given any more, and since when."""
    _evicting: asyncio.Task[None] | None = None
    _held_by: WeakKeyDictionary[Session, set[Slice]] = field(default_factory=WeakKeyDictionary[Session, set[Slice]])

    async def query(
        self,
        session: Session | None,
        moment: Moment,
        name: str,
        spec: Mapping[str, Any],
        values: Values,
        called: bool = False,
    ) -> str:
        """SQL for the rows a source asks for, once they are loaded. Raises RollupError; see `Source` for the spec.

        `called`: for a function of the server, whose columns do not depend on what a text names.
        """
        if name in self.loader.tables:
            return await self._table(session, moment, name)
        aggregation = self.aggregations.get(name)
        if aggregation is None:
            raise QueryError(f"aggregation {name!r} is not defined", hint=f"known are {', '.join(self.aggregations)}")
        _check(spec)
        start, end, per = asked_range(aggregation, spec, values)
        number = await self._as_of(aggregation, spec["as_of"]) if "as_of" in spec else moment.get(name)
        if number is None:
            number = moment[name] = await self._newest(name)
        named = spec.get("named", ())
        loaded = _loaded(aggregation, spec.get("columns"), named)
        where, limit, fill = _where(aggregation, spec), spec.get("limit"), spec.get("fill")
        key = Key(name, number, start, end, per, loaded, where, limit, fill)
        table = await self._held(session, key)
        return select_from(aggregation, frozenset(loaded), table, by_name(aggregation) if named and called else named)

    async def _table(self, session: Session | None, moment: Moment, name: str) -> str:
        """SQL for the rows of a table beside aggregations; all that one reader has are read from one commit."""
        stream, reader = self.loader.tables[name], self.loader.tables.reader(name)
        if reader not in moment:
            moment[reader] = await self._in_thread(reader.newest)
        table = await self._held(session, Key(name, moment[reader], 0, 0, "", tuple(stream.attributes)))
        return select_kept(stream, table)

    async def _as_of(self, aggregation: Aggregation, said: str) -> int:
        moment = AsOf.said(said, aggregation.zone)
        return await self._in_thread(lambda: self.loader.as_of(aggregation.name, moment))

    async def _newest(self, name: str) -> int:
        folder = self.folders.get(name)
        numbers = [] if folder is None else folder.numbers()
        return numbers[-1] if numbers else await self._in_thread(lambda: self.loader.newest(name))

    async def _held(self, session: Session | None, key: Key) -> str:
        """The table of a key; it stays until the session's transaction ends. Raises QueryError beyond its share."""
        held = set[Slice]() if session is None else self._held_by.setdefault(session, set())
        if held and all(each.key != key for each in held):
            self._check_share(held)
        found = self._known.pop(key, None)
        if found is None or (found.task.done() and not found.loaded):
            found = self._started(key)
        self._known[key] = found  # the last one in the order is the one used last
        if session is not None and found not in held:
            held.add(found)
            found.pins += 1
            session.hold(lambda: self._released(held, found))
        await asyncio.shield(found.task)
        return found.table

    def _check_share(self, held: set[Slice]) -> None:
        pinned = [each for each in (*self._known.values(), *self._doomed) if each.pins]
        tables, size = self.budget.tables - len(pinned), self.budget.bytes - sum(each.size for each in pinned)
        if len(held) > tables or sum(each.size for each in held) > size:
            raise QueryError(
                f"this transaction holds {len(held)} loaded ranges, which is its share of what may be loaded",
                hint="end the transaction, which lets go of them; `memory_mb` in [serve] bounds their size",
            )

    def _started(self, key: Key) -> Slice:
        table = f"slice_{next(self._numbers)}"
        made = Slice(key, table, asyncio.ensure_future(self._in_thread(lambda: self.loader.load(key, table))))
        self.loads += 1
        made.task.add_done_callback(lambda _: self._finished(made))
        return made

    def _finished(self, made: Slice) -> None:
        if made.loaded:
            made.size = made.task.result().bytes
        elif self._known.get(made.key) is made:
            del self._known[made.key]
        if self.over_budget() or self._stale():
            self._evict_soon()

    def _released(self, share: set[Slice], held: Slice) -> None:
        share.discard(held)
        held.pins -= 1
        if not held.pins and (self.over_budget() or held in self._stale()):
            self._evict_soon()

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.loader.pool, work)

    # the budget

    @property
    def bytes(self) -> int:
        """What all tables take."""
        return sum(each.size for each in (*self._known.values(), *self._doomed))

    @property
    def tables(self) -> int:
        """How many there are."""
        return len(self._known) + len(self._doomed)

    def over_budget(self) -> bool:
        """Whether something has to go."""
        return self.bytes > self.budget.bytes or self.tables > self.budget.tables

    def forget(self) -> None:
        """Count nothing as loaded any more: the server has been made anew."""
        self._known.clear()
        self._doomed.clear()

    def _stale(self) -> list[Slice]:
        newest: Moment = {}
        for key in self._known:
            newest[key.aggregation] = max(key.number, newest.get(key.aggregation, key.number))
        return [each for each in self._known.values() if each.key.number < newest[each.key.aggregation]]

    def _evict_soon(self) -> None:
        if self._evicting is None or self._evicting.done():
            self._evicting = asyncio.ensure_future(self._evict())

    async def _evict(self) -> None:
        await self._drop(self._doomed)
        for victim in [*self._stale(), *tuple(self._known.values())]:
            wanted = self._known.get(victim.key) is victim and (self.over_budget() or victim in self._stale())
            if wanted and victim.loaded and not victim.pins:
                del self._known[victim.key]
                self._doomed[victim] = time.monotonic()
                await self._drop([victim])

    def overdue(self) -> list[str]:
        """The tables that somebody has read for too long while they have to go, for want of room; each is tried again."""
        if not self._doomed or not self.over_budget():
            return []
        self._evict_soon()
        late = time.monotonic() - _PATIENCE
        return [each.table for each, since in self._doomed.items() if since < late]

    async def _drop(self, victims: Iterable[Slice]) -> None:
        """Drop tables that nobody is given any more; one that a query still reads is tried again next time."""
        for victim in tuple(victims):
            try:
                if await self._in_thread(lambda victim=victim: self.loader.drop(victim.table)):
                    self._doomed.pop(victim, None)
                    self.evicted += 1
            except RollupError as problem:
                log.warning("a table could not be dropped: %s", problem)


Values = tuple[Any, Any, Any]
"""Start, end and level as the client gave them; the end is None for one pattern."""


def asked_range(aggregation: Aggregation, spec: Mapping[str, Any], values: Values) -> tuple[int, int, str]:
    """Start, end and level's word of a source's values. Raises RollupError when one of them is wrong."""
    low, high, per = (_number(values[0]), _number(values[1]), values[2])
    auto = isinstance(per, str) and per.strip().lower() == AUTO
    width = None if auto else level_or_period(aggregation, per)
    word = AUTO if width is None else width.plural if isinstance(width, Duration) else width.text
    if spec.get("view"):
        if not all(each is None or type(each) is int for each in (low, high)):
            raise QueryError("the range of a view is given in milliseconds")
        start, end = (_FIRST if low is None else low), (_LAST if high is None else high)
        return start, max(start, end), word
    start, end = bounds([low] if high is None else [low, high], zone_for(aggregation, per))
    return start, end, word


def _number(bound: Any) -> Any:
    """Milliseconds that came as text: a driver writes a number so where it does not know the type of a parameter."""
    return int(bound) if isinstance(bound, str) and _MILLISECONDS.fullmatch(bound) else bound


def _loaded(aggregation: Aggregation, wanted: list[str] | None, named: Collection[str]) -> tuple[str, ...]:
    """The columns to load; AGG_TIMESTAMP is always one of them, for AGG_TIME and for the count of rows."""
    names = columns(aggregation)
    found = (name for name in names if wanted is None or name == TIMESTAMP or name.casefold() in wanted)
    return (*found, *(name for name in by_name(aggregation) if name in named))


def _where(aggregation: Aggregation, spec: Mapping[str, Any]) -> Where:
    kinds = {key.name: str if key.type is Type.STRING else int for key in aggregation.keys}
    for part in spec.get("where", ()):
        match part:
            case [str() as key, [*values]] if key in kinds and values and all(type(v) is kinds[key] for v in values):
                continue
            case _:
                raise QueryError("a spec's `where` lists group keys with their values")
    return tuple((key, tuple(values)) for key, values in spec.get("where", ()))


def _check(spec: Mapping[str, Any]) -> None:
    """A spec may come from a client that calls the rewriter's functions itself."""
    if not isinstance(spec, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise QueryError("a spec is an object")
    names, limit = spec.get("columns", []), spec.get("limit", 0)
    if (
        not isinstance(names, list)
        or not all(isinstance(each, str) for each in names)
        or not isinstance(spec.get("where", []), list)
    ):
        raise QueryError("a spec's `columns` is a list of names, its `where` a list")
    if not isinstance(named := spec.get("named", []), list) or not all(isinstance(each, str) for each in named):
        raise QueryError("a spec's `named` is a list of names")
    if not isinstance(spec.get("as_of", ""), str):
        raise QueryError("a spec's `as_of` is a text")
    if spec.get("fill") not in (None, *FILLS):
        raise QueryError(f"unknown fill {spec.get('fill')!r}", hint=", ".join(FILLS))
    if type(limit) is not int or not 0 <= limit < 2**31:
        raise QueryError("a spec's `limit` is a whole number")


def request(payload: bytes) -> dict[str, Any]:
    """What a function of the server asks, out of its notice."""
    return json.loads(bytes.fromhex(payload.decode("ascii")))
