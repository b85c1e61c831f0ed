"""Questions from Python: `rollup.query(conf, text)` and what the command line, the gateway and Spark share of it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rollup.checkpoint.records import identity
from rollup.conf import Conf, load
from rollup.core.columns import ColumnEngine
from rollup.core.errors import QueryError, RollupError
from rollup.core.nesting import nests
from rollup.dimensions import dimensions
from rollup.lang.sql.source import position
from rollup.retrieval.as_of import AsOf
from rollup.retrieval.explain import explain
from rollup.retrieval.plan_cache import Planner
from rollup.retrieval.questions import Ask, bounds, zone_for
from rollup.retrieval.tables import Tables
from rollup.stores.base import Snapshot, Store
from rollup.stores.registry import open_store

if TYPE_CHECKING:
    from rollup.ask_sql import SqlAsker
    from rollup.grants import Grant
    from rollup.program import Program
    from rollup.statements.committed.kept import Kept
    from rollup.subscribe import Subscription

Parameters = Mapping[str, Any] | Sequence[Any] | None
_SPACE = r"(?>\s|--[^\n]*\n|/\*.*?\*/)*+"
_SIDDHI = re.compile(rf"{_SPACE}(?:explain\s+)?from\b{_SPACE}(?:`([^`]+)`|(\w+)|)", re.IGNORECASE | re.DOTALL)


class Asker:
    """Answers questions about the aggregations of a configuration, the named windows and tables of its statements, and
    its dimensions; opens stores for reading only when asked."""

    def __init__(self, conf: Conf, program: Program | None = None, grant: Grant | None = None) -> None:
        """`program`: the app of the configuration, where it has been compiled already; `grant`: what may be read of it."""
        self.conf = conf
        self.grant = grant
        self._whole = conf.program() if program is None else program
        self.program = self._whole if grant is None else grant.program(self._whole)
        self.engine = ColumnEngine()
        self._stores: dict[str, Store] = {}
        self._lock = threading.Lock()
        self.planner = Planner(self.program.aggregations)
        self.zone = conf.zone_of(self.program)

    @nests
    def query(self, text: str, parameters: Parameters = None, as_of: str | int | None = None) -> pa.Table:
        """The answer to a question in SiddhiQL or SQL. Raises a RollupError before any data is read.

        `as_of` is the commit of all aggregations of which the text says none: its number, or a time.
        """
        moment = None if as_of is None else AsOf.said(str(as_of), self.zone)
        if not is_question(text):
            return self._sql.query(text, parameters, moment)
        try:
            return self._asked(text, moment)
        except RollupError:
            if wrong := _of_source(text):
                raise wrong from None
            raise

    def _asked(self, text: str, as_of: AsOf | None) -> pa.Table:
        """The answer to a question in SiddhiQL."""
        name = asked_name(text)
        if name in self.tables:
            if as_of is not None:
                raise QueryError(f"{name} has its newest rows alone", hint="`as of` is about aggregations")
            return self._of_table(text, name)
        if name and name not in self.program.aggregations:
            raise self._unknown(text, name)
        ask = self.planner.ask(text)
        return self.answer(replace(ask, as_of=as_of) if ask.as_of is None else ask)

    def answer(self, ask: Ask) -> pa.Table:
        """The answer to a checked question."""
        with self.engine.use():
            snapshot = self.snapshot(ask.aggregation.name, ask.as_of)
            return explain(snapshot, ask) if ask.explain else snapshot.answer(ask)

    @cached_property
    def _sql(self) -> SqlAsker:
        from rollup.ask_sql import SqlAsker
        from rollup.stores.dead_letters import DeadLetters

        tables, letters = self.tables, DeadLetters(self.conf.tables).read
        program, engine = self.program, self.engine
        if self.grant is None:
            return SqlAsker(engine, program.aggregations, self.snapshot, tables, program.streams, letters, self.zone)
        alone = ColumnEngine()  # it sees the rows of a statement's sources, and no file
        alone.confine([])
        return SqlAsker(alone, program.aggregations, self.snapshot, tables, zone=self.zone, by_rows=True)

    @cached_property
    def kept(self) -> Kept:
        """The named windows and tables of statements, as their last commit has left them."""
        from rollup.statements.committed.kept import Kept

        return Kept(self.conf.tables, self.program)

    @cached_property
    def tables(self) -> Tables:
        """What stands beside aggregations in a question."""
        kept = [] if self.program.statements is None else [self.kept]
        found = Tables([*kept, *dimensions(self.conf, self._whole)])
        return found if self.grant is None else found.only(self.grant.reads)

    def _of_table(self, text: str, name: str) -> pa.Table:
        """The answer to an on-demand query of a named window or table."""
        from rollup.ask_mistakes import of_levels
        from rollup.lang.siddhi.statements.app import asked

        if wrong := of_levels(text, name):
            raise QueryError(wrong[0], hint=wrong[1])
        now = time.time_ns() // 1_000_000
        reader = self.tables.reader(name)
        return asked(text, self.tables[name], lambda: reader.rows(name, reader.newest()), now)

    def _unknown(self, text: str, name: str) -> RollupError:
        from rollup.ask_mistakes import unknown, without_range

        aggregations = self.program.aggregations
        stored = any(name in map(each.table, each.levels) for each in aggregations.values())
        said = without_range(name, aggregations) if stored else None
        message, hint = said or unknown(name, aggregations, self.tables, self.program.streams)
        return QueryError(message, hint=hint).at(*position(text, _place(text)))

    def snapshot(self, name: str, as_of: AsOf | None = None) -> Snapshot:
        """The newest commit of an aggregation, or an earlier one. Raises StoreError for one that is not kept."""
        return self.store(name).snapshot() if as_of is None else self.store(name).as_of(as_of)

    def subscribe(
        self,
        name: str,
        per: str,
        since: str | int | None = None,
        on: str | None = None,
        commit: int | None = None,
        every: float | None = None,
    ) -> Subscription:
        """What each commit changes in the rows per a level or a period; iterate over it, also with `async for`.

        `since` leaves out buckets that begin before it: a time, or a range as `within` takes it, of which the start
        counts. `on` is a condition over a row. `commit` is the one that was seen last: the first change has what is
        different since, and without it all rows. `every` are the seconds between two looks, or
        `rollup.subscribe.EVERY`. Raises a RollupError.
        """
        from rollup.lang.sql.declarations import parse_condition
        from rollup.subscribe import EVERY, Subscription, asked

        aggregation = self.program.aggregations.get(name)
        if aggregation is None:
            known = ", ".join(self.program.aggregations) or "none"
            raise QueryError(f"{name!r} is no aggregation", hint=f"subscriptions are to aggregations: {known}")
        start = bounds([since], zone_for(aggregation, per))[0] if isinstance(since, str) else since
        ask = asked(aggregation, per, start, None if on is None else parse_condition(on))
        return Subscription(self.store(name), self.engine, ask, commit, EVERY if every is None else every)

    def store(self, name: str) -> Store:
        """The store of an aggregation."""
        with self._lock:
            if name not in self._stores:
                self._stores[name] = open_store(self.conf, self.program.aggregations[name], self.engine)
            return self._stores[name]


def is_question(text: str) -> bool:
    """Whether a text is SiddhiQL, which begins with `from`; everything else is SQL.

    >>> is_question("EXPLAIN from A within '2018-**-** **:**:**' per 'days'"), is_question("select 1")
    (True, False)
    """
    return _SIDDHI.match(text) is not None


def _of_source(text: str) -> RollupError | None:
    from rollup.ask_mistakes import of_source

    found = of_source(text)
    return None if found is None else QueryError(found[1], hint=found[2]).at(*position(text, found[0]))


def asked_name(text: str) -> str:
    """What a question in SiddhiQL asks; empty where it does not begin with a name.

    >>> asked_name("from `A b` select *"), asked_name("from 'A'")
    ('A b', '')
    """
    found = _SIDDHI.match(text)
    return "" if found is None else found[1] or found[2] or ""


def _place(text: str) -> int:
    """Where the name stands that a question asks."""
    found = _SIDDHI.match(text)
    assert found is not None
    return found.start(found.lastindex or 0)


def query(
    conf: Conf | Asker | Path | str, text: str, parameters: Parameters = None, as_of: str | int | None = None
) -> pa.Table:
    """Ask the aggregations of a configuration (its path, or what `rollup.open` gave); an Arrow table.

    `text` is SiddhiQL (`from A within … per … select …`) or a SELECT with `A WITHIN … PER …` as a table; named windows
    and tables of statements, and dimensions, stand in both by their names alone. `parameters` are those of the SELECT: a list for `?`
    and `$1`, a mapping for `$name`. `as_of` names an earlier commit, by its number or a time. AGG_TIMESTAMP is in milliseconds since the epoch. Raises a RollupError that names
    what is wrong with the question.
    """
    return opened(conf).query(text, parameters, as_of)


def opened(conf: Conf | Asker | Path | str) -> Asker:
    """What answers questions about a configuration; kept for a path that is asked again, until a file of it changes."""
    if isinstance(conf, Asker):
        return conf
    if isinstance(conf, Conf):
        return Asker(conf)
    path = Path(conf).resolve()
    with _lock:
        known = _kept.pop(path, None)
        if known is None or known[0] != _identities(path, known[1].conf.app):
            seen = identity(path)  # before it is read: what changes meanwhile is then read again by the next question
            found = load(path)
            seen = (*seen, *identity(found.app))
            known = seen, Asker(found)
        _kept[path] = known
        for oldest in list(_kept)[:-_MOST]:
            del _kept[oldest]
        return known[1]


def _identities(path: Path, app: Path) -> tuple[int, ...]:
    return (*identity(path), *identity(app))


_lock = threading.Lock()
_kept: dict[Path, tuple[tuple[int, ...], Asker]] = {}
_MOST = 16
