"""An app at work: streams to the queries that read them, in the app's order and depth first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollup.core.crontabs import Crontab
from rollup.engine.compiling import predicate
from rollup.engine.expressions import Expr
from rollup.engine.row import Row
from rollup.engine.rows.deliveries.inputs import Stored, StreamInput, StreamSpec
from rollup.engine.rows.deliveries.item import RESET, Item, Subscriber
from rollup.engine.rows.deliveries.partitions import Partition, PartitionSpec
from rollup.engine.rows.deliveries.queries import ChangeSpec, InsertSpec, Query, QuerySpec, Write, streams_of
from rollup.engine.rows.deliveries.selecting import Kind, Selected
from rollup.engine.rows.deliveries.tables import Change, Table
from rollup.engine.rows.keyed import ByKey
from rollup.engine.rows.runner import Runner
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.state import Packer, State, Unpacker
from rollup.engine.timers import Order, Phase, edge
from rollup.engine.types import RowType


@dataclass(frozen=True)
class SharedSpec:
    """A window that queries share: what is inserted enters it, and its readers get what comes and leaves."""

    window: WindowSpec
    output: Kind


@dataclass(frozen=True)
class AppSpec:
    """What an app runs, in its order; `tables` by the places of their keys, `stored` the rows of tables and windows.

    `triggers`: streams that get a row with its time every so often, by a calendar, or, None, once at the start.
    """

    streams: dict[str, RowType]
    stored: dict[str, RowType] = field(default_factory=dict[str, RowType])
    tables: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    shared: dict[str, SharedSpec] = field(default_factory=dict[str, SharedSpec])
    queries: tuple[QuerySpec | PartitionSpec, ...] = ()
    asks: tuple[tuple[str, Expr], ...] = ()
    triggers: dict[str, int | Crontab | None] = field(default_factory=dict[str, int | Crontab | None])


def circle(spec: AppSpec) -> list[str]:
    """The names of streams that feed each other in a circle, in order; none where no queries make one."""
    feeds, done = dict[str, list[str]](), set[str]()
    for part in spec.queries:
        for query in part.queries if isinstance(part, PartitionSpec) else (part,):
            for stream in streams_of(query.input):
                feeds.setdefault(stream, []).append(query.output.target)

    def from_(trail: list[str]) -> list[str]:
        for target in [each for each in feeds.get(trail[-1], ()) if each not in done]:
            found = trail[trail.index(target) :] if target in trail else from_([*trail, target])
            if found:
                return found
        done.add(trail[-1])
        return []

    return next((found for stream in feeds if (found := from_([stream]))), [])


Emitted = Callable[[str, Sequence[Selected]], None]


class DeliveryApp:
    """Runs an app; `emitted` hears what queries insert into each stream, and `filled` are rows of some tables, which no
    state has."""

    def __init__(
        self, spec: AppSpec, emitted: Emitted, start: int = 0, filled: Mapping[str, Sequence[Sequence[Any]]] = {}
    ) -> None:
        self.spec, self._emitted = spec, emitted
        self.runner = Runner(start, depth_first=True)
        self.tables = {name: Table(spec.stored[name], key, self.runner) for name, key in spec.tables.items()}
        for name, rows in filled.items():
            for values in rows:
                self.tables[name].insert((*values, 0))
        self._kept = {name: table for name, table in self.tables.items() if name not in filled}
        self._readers: dict[str, list[Subscriber]] = {}
        self.runner.environment.ask = [self._asked(table, on) for table, on in spec.asks]
        self.shared = {name: Shared(self, name, given) for name, given in spec.shared.items()}
        self._parts = [self._part(place, query) for place, query in enumerate(spec.queries)]
        self._triggers = [Trigger(self, name, every) for name, every in spec.triggers.items()]
        for part in (*self._parts, *self._triggers):
            part.start()

    def send(self, stream: str, rows: Sequence[Sequence[Any]], at: int) -> None:
        """Events of a stream that are delivered together, with their time."""
        items = [Item((self.runner.row((*values, at)),), False, at) for values in rows]
        if stream in self.tables or stream in self.shared:
            self.write(stream, [Selected(None, row, False) for item in items for row in item.rows if row is not None])
        else:
            self.publish(stream, items)

    def advance(self, to: int) -> None:
        """The clock goes on; each query, in the app's order, finishes what is due of it by then before the next does."""
        self.runner.advance_in_turn(to)

    def publish(self, stream: str, chunk: Sequence[Item]) -> None:
        """A delivery to everyone who reads the stream."""
        for reader in self._readers.get(stream, ()):
            reader.deliver(stream, chunk)

    def read(self, stream: str, reader: Subscriber) -> None:
        """The reader gets the stream's deliveries, after those who read it already."""
        self._readers.setdefault(stream, []).append(reader)

    def write(self, target: str, rows: Sequence[Selected]) -> None:
        """Rows go into a stream, a table or a shared window."""
        if target in self.tables:
            for made in rows:
                self.tables[target].insert(made.row.values)
        elif target in self.shared:
            self.shared[target].insert([made.row for made in rows])
        else:
            self._emitted(target, rows)
            self.publish(target, [Item((made.row,), False, made.row.values[-1]) for made in rows])

    def stored(self, name: str) -> Stored:
        """A table or shared window, for joins and questions."""
        return self.tables[name] if name in self.tables else self.shared[name]

    def writer(self, output: InsertSpec | ChangeSpec) -> Write:
        """What a query's rows do."""
        if isinstance(output, InsertSpec):
            return lambda rows: self.write(output.target, rows)
        change = Change(self.tables[output.target], output, self.runner)
        return {"delete": change.delete, "update": change.update, "upsert": change.upsert}[output.action]

    def _part(self, place: int, spec: QuerySpec | PartitionSpec) -> Query | Partition:
        if isinstance(spec, PartitionSpec):
            return Partition(self, spec, (place,))
        query = Query(spec, self.runner, (place, 0), self.stored, self.writer(spec.output))
        for stream in streams_of(spec.input):
            self.read(stream, query)
        return query

    def _asked(self, table: str, on: Expr) -> Callable[[Any, Any, Any], bool]:
        test, stored = predicate(on), self.tables[table]
        keys = dict[int, ByKey]()

        def found(r: Any, s: Any, e: Any) -> bool:
            place = len(r)
            by_key = keys[place] if place in keys else keys.setdefault(place, ByKey(on, place))
            return any(test((*r, row), s, e) for row in stored.matching(by_key, r, e))

        return found

    def snapshot(self) -> State:
        """The whole state: named tables and scalars."""
        packer = Packer()
        for place, part in enumerate(self._parts):
            packer.node(f"query/{place}", part.snapshot())
        for name, table in self._kept.items():
            packer.node(f"table/{name}", table.snapshot())
        for name, shared in self.shared.items():
            packer.node(f"window/{name}", shared.snapshot())
        packer.node("triggers", [trigger.snapshot() for trigger in self._triggers])
        return packer.state({"now": self.runner.now, "rows": self.runner.rows})

    def restore(self, state: State) -> None:
        """Go on from a snapshot of the same app."""
        unpacker = Unpacker(state)
        self.runner.environment.now = state.scalars["now"]
        self.runner.rows = max(self.runner.rows, state.scalars["rows"])  # behind those of rows that are filled in
        for place, part in enumerate(self._parts):
            part.restore(unpacker.node(f"query/{place}"))
        for name, table in self._kept.items():
            table.restore(unpacker.node(f"table/{name}"))
        for name, shared in self.shared.items():
            shared.restore(unpacker.node(f"window/{name}"))
        for trigger, due in zip(self._triggers, unpacker.node("triggers"), strict=True):
            trigger.restore(due)


class Trigger:
    """A stream of ticks."""

    def __init__(self, app: DeliveryApp, name: str, every: int | Crontab | None) -> None:
        self._app, self._name, self._every = app, name, every
        self._due: int | None = None
        self.order: Order = (-2, list(app.spec.triggers).index(name))

    def start(self) -> None:
        """The first tick: at once, or when the time has passed."""
        if self._every is None:
            self._tick(self._app.runner.now)
        else:
            self.restore(self._after(self._app.runner.now))

    def fire(self, phase: Phase, now: int) -> None:
        """A tick is due; those that a jump of the clock has passed over are one."""
        due = self._due
        if due is not None and due <= now:
            due = self._after(now) if isinstance(self._every, Crontab) else edge(due, self._every or 1, now)
        self._tick(now)
        self.restore(due)

    def _after(self, instant: int) -> int:
        """The tick after that instant."""
        return self._every.after(instant) if isinstance(self._every, Crontab) else instant + (self._every or 1)

    def _tick(self, now: int) -> None:
        self._app.write(self._name, [Selected(None, self._app.runner.row((now, now)), False)])

    def snapshot(self) -> Any:
        """The next tick."""
        return self._due

    def restore(self, due: int | None) -> None:
        """Go on with the next tick."""
        self._due = due
        self._app.runner.timers.ask(self, Phase.WINDOW, due)


class Shared(Stored):
    """A shared window. What goes in together leaves as from a window of a query's own, batch by batch."""

    def __init__(self, app: DeliveryApp, name: str, spec: SharedSpec) -> None:
        self._app, self._name, self._spec = app, name, spec
        self._input = StreamInput(StreamSpec(name, window=spec.window), app.runner, self._give)
        self.order: Order = (-1, list(app.spec.shared).index(name))

    def insert(self, rows: Sequence[Row]) -> None:
        """Rows that arrive together."""
        self._input.deliver(self._name, [Item((row,), False, row.values[-1]) for row in rows])
        self._ask()

    def fire(self, phase: Phase, now: int) -> None:
        """A timer of the window is due."""
        self._input.fire(now)
        self._ask()

    def content(self) -> Iterable[Row]:
        """The rows that others see."""
        return self._input.content()

    def _ask(self) -> None:
        self._app.runner.timers.ask(self, Phase.WINDOW, self._input.due)

    def _give(self, chunk: Sequence[Item]) -> None:
        wanted = self._spec.output
        items = [
            item for item in chunk if item is not RESET and (wanted == "all" or item.expired is (wanted == "expired"))
        ]
        if items:
            self._app.publish(self._name, items)

    def snapshot(self) -> Any:
        """The window's."""
        return self._input.snapshot()

    def restore(self, state: Any) -> None:
        """The window's."""
        self._input.restore(state)
        self._ask()
