"""Queries that run once a key, each key with windows, sums and patterns of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from rollup.engine.compiling import compiled, predicate
from rollup.engine.expressions import Expr
from rollup.engine.row import comparable
from rollup.engine.rows.deliveries.item import Item
from rollup.engine.rows.deliveries.queries import Query, QuerySpec, Write, streams_of
from rollup.engine.rows.deliveries.selecting import Selected
from rollup.engine.timers import Order, Phase

if TYPE_CHECKING:
    from rollup.engine.rows.deliveries.app import DeliveryApp


class Purge(NamedTuple):
    """How often keys are looked at, and for how long one of them had no event that is then forgotten, in ms."""

    every: int
    idle: int


@dataclass(frozen=True)
class PartitionSpec:
    """Queries once a key: by stream the value, or the labels whose conditions hold; without `purge` keys stay."""

    values: dict[str, Expr]
    ranges: dict[str, tuple[tuple[Expr, str], ...]]
    queries: tuple[QuerySpec, ...]
    purge: Purge | None = None


class Partition:
    """The queries of each key that was seen; streams that are not keyed go to all of them."""

    def __init__(self, app: DeliveryApp, spec: PartitionSpec, order: Order) -> None:
        self._app, self._spec, self.order = app, spec, order
        self._values = {stream: compiled(expr) for stream, expr in spec.values.items()}
        self._ranges = {s: [(predicate(test), name) for test, name in given] for s, given in spec.ranges.items()}
        self._read = [frozenset(streams_of(query.input)) for query in spec.queries]
        self._inner = {q.output.target for q in spec.queries if q.output.target.startswith("#")}
        self._keys: dict[Any, list[Query]] = {}
        self._used: dict[Any, int] = {}
        self._due: int | None = None
        self._numbers = count()
        for stream in dict.fromkeys(name for query in spec.queries for name in streams_of(query.input)):
            if stream not in self._inner:
                app.read(stream, self)

    def start(self) -> None:
        """There is no key yet; those that come are looked at from now on."""
        if self._spec.purge is not None:
            self._ask(self._app.runner.now + self._spec.purge.every)

    def fire(self, phase: Phase, now: int) -> None:
        """Keys are looked at; what has been idle for too long begins anew with its next event.

        A key stays while a window of it waits for an instant: its rows would never come out.
        """
        assert self._spec.purge is not None and self._due is not None
        idle = [key for key, used in self._used.items() if now - used > self._spec.purge.idle]
        for key in [key for key in idle if not any(query.waits for query in self._keys[key])]:
            del self._used[key]
            for query in self._keys.pop(key):
                query.stop()
        self._ask(now + self._spec.purge.every - (now - self._due) % self._spec.purge.every)

    def _ask(self, due: int) -> None:
        self._due = due
        self._app.runner.timers.ask(self, Phase.WINDOW, due)

    def deliver(self, stream: str, chunk: Sequence[Item]) -> None:
        """Each event to the queries of its key; those of one key that follow one another are one delivery.

        An event that has no key lies between none; one of several keys, in ranges that overlap, ends a delivery.
        """
        if stream not in self._values and stream not in self._ranges:
            for key in list(self._keys):
                self._give(key, stream, chunk)
            return
        keyed = [(key, item) for item in chunk for key in self._of(stream, item)]
        for key, run in groupby(keyed, key=lambda each: each[0]):
            if self._spec.purge is not None:
                self._used[key] = self._app.runner.now
            self._give(key, stream, [item for _, item in run])

    def _of(self, stream: str, item: Item) -> list[Any]:
        environment = self._app.runner.environment
        if stream in self._values:
            key = self._values[stream](item.rows, (item.time,), environment)
            return [] if key is None else [comparable(key)]
        return [name for test, name in self._ranges[stream] if test(item.rows, (item.time,), environment)]

    def _give(self, key: Any, stream: str, chunk: Sequence[Item]) -> None:
        for query, read in zip(self._queries(key), self._read, strict=True):
            if stream in read:
                query.deliver(stream, chunk)

    def _queries(self, key: Any) -> list[Query]:
        if key not in self._keys:
            number = next(self._numbers)
            self._keys[key] = [self._made(key, number, place) for place in range(len(self._spec.queries))]
            for query in self._keys[key]:
                query.start()
        return self._keys[key]

    def _made(self, key: Any, number: int, place: int) -> Query:
        spec, order = self._spec.queries[place], (*self.order, place, number)
        return Query(spec, self._app.runner, order, self._app.stored, self._writer(key, spec))

    def _writer(self, key: Any, spec: QuerySpec) -> Write:
        if spec.output.target not in self._inner:
            return self._app.writer(spec.output)

        def inside(rows: Sequence[Selected]) -> None:
            self._give(key, spec.output.target, [Item((made.row,), False, made.row.values[-1]) for made in rows])

        return inside

    def snapshot(self) -> Any:
        """The queries of each key; where keys are forgotten, also when each had an event, and the next look."""
        keys = [[key, [query.snapshot() for query in queries]] for key, queries in self._keys.items()]
        return keys if self._spec.purge is None else [keys, list(self._used.items()), self._due]

    def restore(self, state: Any) -> None:
        """The queries of each key."""
        if self._spec.purge is not None:
            state, used, due = state
            self._used = {comparable(key): at for key, at in used}
            self._ask(due)
        for key, states in state:
            for query, inner in zip(self._queries(comparable(key)), states, strict=True):
                query.restore(inner)
