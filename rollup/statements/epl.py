"""EPL in an app: a block is a module of `rollup.Engine`, whose event types are the streams of the app."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count, groupby
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.descriptions import descendants
from rollup.core.errors import PlanError
from rollup.engine.columns.running.placing import Placed
from rollup.engine.rows.patterns.matcher import TURNS
from rollup.engine.state import State
from rollup.lang.epl.reader import read_module
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.streams import FilterSource
from rollup.lang.sections import Section
from rollup.live import Engine, Heard
from rollup.plan.app import StreamDef
from rollup.plan.types import Type
from rollup.statements.component import Described, Event, Key, Names, Refused, Streams, Taken
from rollup.statements.rows import Emitted, Live, caused, say_hurried
from rollup.statements.values import comparable, schema_of, stores_of, stream_with, table_of, wrapped_row

_TYPES = {Type.BOOL: "boolean", Type.OBJECT: "object"}
"""EPL's words for the types of attributes, where they are not SiddhiQL's."""
_SILENCE = 7 * 86_400_000
"""In a silence that is longer (ms), TURNS instants at which something is due are gone through, each by itself."""
_MODULE = "statements"
"""Begins the names of the statements that have none."""
_OUT = "what goes into "
"""Begins the names of the statements that listen for the app; no text of a user's can give such a name."""


class Epl:
    """The language's entry; see `rollup.statements.component.Language`."""

    def names(self, section: Section) -> Names:
        """The event types that a module reads and inserts into, without those that it declares itself."""
        nodes = list(descendants(read_module(section.placed)))
        own = {node.name for node in nodes if isinstance(node, (sm.CreateSchema, sm.CreateWindow, sm.CreateTable))}
        reads = {node.type for node in nodes if isinstance(node, FilterSource)}
        writes = {node.target for node in nodes if isinstance(node, sm.InsertInto) and not node.table}
        writes |= {node.target for node in nodes if isinstance(node, sm.MergeInsert) and node.target is not None}
        return Names(frozenset(reads - own), frozenset((writes - own) | set(_named(nodes))))

    def compile(self, section: Section, streams: Streams, names: Names) -> EplBlock:
        """The module over the streams. Raises SyntaxProblem or PlanError with the place."""
        return EplBlock(section, streams, names)


def _asked(placed: Placed) -> Placed:
    """Where a statement runs that is asked event by event: no program takes its batches."""
    return replace(placed, executor="rows") if placed.executor == "program" else placed


class EplBlock(Live[Engine]):
    """The statements of a module."""

    def __init__(self, section: Section, streams: Streams, names: Names) -> None:
        self._section = section
        self._streams = {name: streams[name] for name in (*names.reads, *names.writes) if name in streams}
        self._titles = _titles(section.placed)
        self._writing = tuple(name for name in names.writes if name not in self._titles)
        super().__init__(names.reads & streams.keys(), {})
        engine = self.begun(0)
        self._keys = comparable(engine.keys(self.reads, names.writes), streams)
        self._stores = stores_of(engine.stores)
        self._writes = self._given(engine)
        self._placed = [_asked(each) for each in engine.plan() if not each.statement.startswith(_OUT)]

    @property
    def described(self) -> Described:
        """Large batches take those statements over columns that columns cover."""
        executors = sorted({each.executor for each in self._placed})
        state, remarks = (
            "windows, partial matches and stores of the module",
            tuple(map(_remark, count(1), self._placed)),
        )
        reason = "columns take batches of 256 events or more" if "columns" in executors else "see below"
        return Described(" and ".join(executors) or "rows", reason, state, self._keys, remarks)

    @property
    def stores(self) -> Streams:
        """The module's named windows and tables; see `rollup.statements.component.Keeping`."""
        return self._stores

    def stored(self, state: State, name: str) -> pa.Table:
        """The rows of a named window or table, in all partitions of its context."""
        found = self.restored(state).query(f"select * from `{name}`")
        stream = self._stores[name]
        return table_of(schema_of(stream), [wrapped_row(row.values(), stream) for row in found])

    def begun(self, start: int) -> Engine:
        engine = Engine(start)
        if self._streams:
            engine.deploy(" ".join(_schema(stream) for stream in self._streams.values()), "streams")
        engine.deploy(self._section.placed, _MODULE)
        listening = [f"@name('{_OUT}{name}') select * from `{name}`;" for name in self._writing]
        if listening:
            engine.deploy(" ".join(listening), "outputs")
        engine.heard()
        return engine

    def restored(self, state: State) -> Engine:
        return Engine.restored(state)

    def snapshot(self, running: Engine) -> State:
        return running.snapshot()

    def fed(self, running: Engine, events: Sequence[Event]) -> Taken:
        """A batch: events of one stream that stand together go as one, so that columns take what they cover."""
        given = list[Event]()
        silences = self._silences(running, events)
        for (read, silence), run in groupby(events, key=lambda event: (self._read(event), silences.get(event.key, ()))):
            part = list(run)
            if silence:
                given += caused(part[0], self._passed(running, part[0]))
            if read is None:
                for event in part:
                    running.advance(max(event.at, running.now))
                    given += caused(event, self._emitted(running.heard()))
                continue
            names = list(self._streams[read].attributes)
            rows = [dict(zip(names, event.values, strict=True)) for event in part]
            answered = running.answered(read, rows, [event.at for event in part])
            for place, heard in groupby(answered.brought, key=lambda each: each[0]):
                given += caused(part[place], self._emitted(each for _, each in heard))
            if answered.refused is not None:
                place, problem = answered.refused
                return Taken(given, [Refused(part[place], str(problem))])
        return Taken(given)

    def _read(self, event: Event) -> str | None:
        return event.stream if event.stream in self.reads else None

    def _silences(self, running: Engine, events: Sequence[Event]) -> Mapping[Key, tuple[Key, ...]]:
        """Each event behind a long silence, and those after it up to the next one, with the key of that event."""
        times = np.maximum.accumulate(np.array([running.now, *(event.at for event in events)], np.int64))
        behind = np.flatnonzero(np.diff(times) > _SILENCE).tolist()
        ends = [*behind[1:], len(events)] if behind else []
        return {
            event.key: (events[begin].key,)
            for begin, end in zip(behind, ends, strict=True)
            for event in events[begin:end]
        }

    def _passed(self, running: Engine, event: Event) -> Iterable[Emitted]:
        """What is due in a silence before an event. How much of it is told has an end, which is said."""
        began = running.now
        if not running.advance_at_most(event.at, TURNS):
            say_hurried(self._section.file or f"the block at line {self._section.line}", began, event.at)
        return self._emitted(running.heard())

    def _emitted(self, heard: Iterable[Heard]) -> Iterable[Emitted]:
        for each in heard:
            stream = self._writes.get(each.statement.removeprefix(_OUT))
            if stream is not None:
                for row in each.new:
                    yield each.at, stream.name, wrapped_row(row.values(), stream)

    def _given(self, engine: Engine) -> Mapping[str, StreamDef]:
        found = dict[str, StreamDef]()
        for name in self._writing:
            found[name] = self._stream(name, engine.columns(_OUT + name))
        for name in self._titles:
            found[name] = self._stream(name, engine.columns(name))
        return found

    def _stream(self, name: str, columns: Mapping[str, Any]) -> StreamDef:
        given = stream_with(name, columns)
        wanted = self._streams.get(name)
        if wanted is not None and name in self._titles:
            raise PlanError(f"{name!r} is the name of a statement and of a stream", hint="rename one of them")
        return given if wanted is None else wanted


def _titles(text: str) -> tuple[str, ...]:
    return _named(list(descendants(read_module(text))))


def _named(nodes: Iterable[Any]) -> tuple[str, ...]:
    """The names of statements whose deliveries go nowhere else: each is a stream of that name."""
    return tuple(
        node.name
        for node in nodes
        if isinstance(node, sm.Statement)
        and node.name is not None
        and isinstance(node.body, (sm.Query, sm.OnSelect))
        and (node.body if isinstance(node.body, sm.Query) else node.body.query).insert is None
    )


def _schema(stream: StreamDef) -> str:
    columns = ", ".join(f"`{name}` {_TYPES.get(kind, kind)}" for name, kind in stream.attributes.items())
    return f"create schema `{stream.name}`({columns});"


def _remark(number: int, placed: Placed) -> str:
    where = "over columns" if placed.reason is None else f"on rows ({placed.reason})"
    return f"statement {number if placed.statement.startswith(_MODULE) else placed.statement}: {where}"
