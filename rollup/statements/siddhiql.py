"""SiddhiQL's own windows, patterns, sequences, joins and partitions in an app: one component, in the order of the text."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from rollup.core.descriptions import descendants
from rollup.engine.dividing import from_outside
from rollup.engine.rows.deliveries.dividing import needs_of
from rollup.engine.state import State
from rollup.lang.sections import Section
from rollup.lang.siddhi import tree
from rollup.lang.siddhi.statements.app import SiddhiApp
from rollup.lang.siddhi.statements.binding import attributes_of
from rollup.lang.siddhi.statements.reader import read_app
from rollup.plan.app import StreamDef
from rollup.plan.dividing import common
from rollup.plan.filled import names_of
from rollup.statements.component import Described, Event, Names, Streams
from rollup.statements.rows import Emitted, OnRows, say_hurried
from rollup.statements.values import comparable, held, plain_row, stores_of, stream_with


class SiddhiQl:
    """The language's entry; see `rollup.statements.component.Language`."""

    def names(self, section: Section) -> Names:
        """The streams that the queries read and insert into, without those of a partition, tables and windows."""
        app = read_app(section.placed)
        nodes = list(descendants(app.statements))
        own = {node.name for node in nodes if isinstance(node, tree.Definition) and node.kind != "stream"}
        reads = {node.name for node in nodes if isinstance(node, tree.Stream) and not node.inner}
        writes = {
            node.output.target
            for node in nodes
            if isinstance(node, tree.Query) and node.output.action == "insert" and not node.output.inner
        }
        return Names(frozenset(reads - own), frozenset(writes - own))

    def compile(self, section: Section, streams: Streams, names: Names) -> SiddhiQueries:
        """The queries over the streams. Raises SyntaxProblem or PlanError with the place."""
        return SiddhiQueries(section, streams, names)


class SiddhiQueries(OnRows[SiddhiApp]):
    """All such queries of an app, with its tables and shared windows."""

    def __init__(self, section: Section, streams: Streams, names: Names) -> None:
        defined = {s.name for s in read_app(section.placed).statements if isinstance(s, tree.Definition)}
        others = [streams[name] for name in sorted(names.reads | names.writes) if name in streams.keys() - defined]
        self._tables = names.tables
        tables = [_defined(table.stream, "table") for table in names.tables]
        self._text = "; ".join([section.placed.rstrip().rstrip(";"), *map(_defined, others), *tables])
        super().__init__(names.reads, {})
        app = SiddhiApp(self._text, of_job=True)
        spec, stores = app.spec, stores_of(app.stores)
        filled = names_of(names.tables)
        self._stores = {name: store for name, store in stores.items() if name not in filled}
        self._keys = comparable(common(from_outside(needs_of(spec), self.reads, names.writes), instants=True), streams)
        self._writes = {name: stream_with(name, attributes_of(spec.streams[name])) for name in names.writes}

    @property
    def described(self) -> Described:
        state = "windows, partial matches, tables and partitions"
        return Described("rows", "SiddhiQL delivers event by event", state, self._keys)

    @property
    def stores(self) -> Streams:
        """The tables and shared windows; see `rollup.statements.component.Keeping`."""
        return self._stores

    def stored(self, state: State, name: str) -> pa.Table:
        """The rows of a table or shared window."""
        return held(self._stores[name], self.restored(state).stored(name))

    def begun(self, start: int) -> SiddhiApp:
        return SiddhiApp(self._text, start, of_job=True, filled={table.name: table.rows for table in self._tables})

    def restored(self, state: State) -> SiddhiApp:
        app = self.begun(0)
        app.restore(state)
        return app

    def snapshot(self, running: SiddhiApp) -> State:
        return running.snapshot()

    def move(self, running: SiddhiApp, to: int) -> None:
        if to > (began := running.now):
            running.jump(to)
            if running.hurried:
                say_hurried("SiddhiQL", began, to)

    def send(self, running: SiddhiApp, event: Event) -> None:
        running.send(event.stream, [event.values], event.at)

    def taken(self, running: SiddhiApp) -> Iterable[Emitted]:
        for emitted in running.taken():
            stream = self._writes.get(emitted.stream)
            if stream is not None:
                yield running.now, stream.name, plain_row(emitted.values, stream)


def _defined(stream: StreamDef, kind: str = "stream") -> str:
    columns = ", ".join(f"`{name}` {kind}" for name, kind in stream.attributes.items())
    return f"define {kind} `{stream.name}` ({columns})"
