"""Named windows, and what they share with tables: rows that several statements read. Unique indexes are checked before anything
changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rollup.core.errors import QueryError
from rollup.engine.compiling import is_key, predicate
from rollup.engine.expressions import Expr
from rollup.engine.index import Entry
from rollup.engine.row import NOTHING, Delta, Row, comparable, together
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.keyed import Finder, Found, Key, KeyIndex, findable
from rollup.engine.rows.plans import ALL, Narrowing
from rollup.engine.rows.windows.base import Kept, WindowSpec
from rollup.engine.rows.windows.keyed import UniqueWindow
from rollup.engine.timers import Order, Phase
from rollup.engine.types import RowType

if TYPE_CHECKING:
    from rollup.engine.rows.contexts.partitions import Partition

Updates = Sequence[tuple[Row, Mapping[int, Any]]]
"""Rows, and their new values by place."""
Observe = Callable[[Sequence[Row | None], Sequence[Row | None]], None]
"""Rows that come and rows that leave."""


@dataclass(frozen=True)
class WindowStore:
    """A named window: its rows' type, the window, and from which other store it is filled at its start."""

    type: RowType
    window: WindowSpec
    filled_from: str | None = None
    filled_where: Expr | None = None
    seen: tuple[str, tuple[int | None, ...]] | None = None
    """The stream as whose event a partition sees a row, and where that stream's columns stand in the row."""


@dataclass(frozen=True)
class UniqueIndex:
    """No two rows of a store have the same values at these places."""

    name: str
    places: tuple[int, ...]


def updated(row: Row, values: Mapping[int, Any]) -> tuple[Any, ...]:
    """The values of a row with some of them replaced."""
    found = list(row.values)
    for place, value in values.items():
        found[place] = value
    return tuple(found)


class Store(Instance, ABC):
    """What a named window and a table have in common. A store is an instance in every partition of its context."""

    def __init__(self, name: str, where: Partition, order: Order) -> None:
        super().__init__(name, (), (), where, order)
        self.consumers: list[tuple[Instance, int]] = []
        self.observers: dict[int, Observe] = {}
        """Who is told of what comes and leaves before all who follow: sub-queries that keep aggregates of it."""
        self.unique: list[UniqueIndex] = []

    @abstractmethod
    def content(self) -> Sequence[Row]:
        """The rows, in order."""

    def shown(self) -> Sequence[Row]:
        """The rows that joins and sub-queries find: those that have come and not left."""
        return self.content()

    @property
    def told(self) -> bool:
        """Whether what it shows is what it has told those who follow that came, without what it has told that left."""
        return False

    def asked(self, filtered: bool) -> Sequence[Row]:
        """The rows that actions and requests find; those with a condition look also into a batch that was let out."""
        return self.content()

    def narrowing(self) -> Narrowing:
        """What its partition adds to a filter over the rows that come in as events."""
        return ALL

    @abstractmethod
    def find(self, key: Key) -> Row | None:
        """The row of a key."""

    @abstractmethod
    def by(self, places: Collection[int]) -> tuple[int, ...]:
        """By which of some fields rows are found without looking through the store; none: by none."""

    @abstractmethod
    def having(self, places: tuple[int, ...], key: Key) -> Sequence[Row] | None:
        """The rows that hold these values at places that `by` has named; None: they have to be looked for."""

    def showing(self, places: tuple[int, ...], key: Key) -> Sequence[Row] | None:
        """Those of them that joins and sub-queries find."""
        return self.having(places, key)

    @abstractmethod
    def index_by(self, places: tuple[int, ...]) -> KeyIndex:
        """Where rows are found by what they hold at places that `by` has named."""

    @abstractmethod
    def change(self, coming: Sequence[Row], updates: Updates = (), leaving: Sequence[Row] = ()) -> Delta:
        """Rows come, get other values by place, and leave, all as one change; the delta of what was asked for.

        Raises QueryError when a unique index or key forbids it; nothing has changed then.
        """

    def leave(self, consumer: Instance) -> None:
        """A consumer follows no longer."""
        self.consumers = [each for each in self.consumers if each[0] is not consumer]

    def changed(self, deltas: dict[int, Delta]) -> None:
        """A store has no inputs."""

    def check(self, coming: Iterable[Row], leaving: Iterable[Row] = ()) -> None:
        """Raise QueryError when rows that come break a unique index."""
        gone, rows = {row.id for row in leaving}, list(coming)
        for index in self.unique:
            keys = [self._key(index, row) for row in rows]
            known = self._known(index, set(keys), gone)
            for key in keys:
                if key in known:
                    shown = ", ".join(repr(value) for value in key)
                    raise QueryError(
                        f"{self.name} has a row{' with ' if key else ''}{shown} already, and index {index.name} is unique",
                        hint="nothing was changed; update the row, or delete it first",
                    )
                known.add(key)

    def _known(self, index: UniqueIndex, keys: set[Key], gone: set[int]) -> set[Key]:
        """Those of some keys that rows have which stay."""
        return keys & {self._key(index, row) for row in self.content() if row.id not in gone}

    def _key(self, index: UniqueIndex, row: Row) -> Key:
        return tuple(comparable(row.values[place]) for place in index.places)


class NamedWindow(Store):
    """A window that statements fill, change and follow."""

    def __init__(self, name: str, statement: str, spec: WindowStore, where: Partition, order: Order) -> None:
        super().__init__(name, where, order)
        self.spec, self.statement = spec, statement
        self.window = spec.window.build(self)
        self._finders: dict[tuple[int, ...], Finder] = {}
        """What has been asked for, by its places."""
        self._entry: Entry | None = None
        self._untold: list[Delta] = []
        """What consumers do not know yet: the event that changed the window is still with other statements."""

    def narrowing(self) -> Narrowing:
        """What its partition adds to a filter over the rows that come in as events, by the columns that the stream has."""
        if self.spec.seen is None:
            return ALL
        stream, places = self.spec.seen
        equals, test = self.partition.narrow(stream)
        here = {places[place]: value for place, value in equals.items()}
        if None in here:  # to a partition it is an event whose key is null
            return {}, lambda row: False

        def passes(row: Row) -> bool:
            return test is None or test(
                Row(row.id, tuple(None if place is None else row.values[place] for place in places))
            )

        return {place: value for place, value in here.items() if place is not None}, None if test is None else passes

    def listen(self) -> None:
        """In a context, rows that come in as events find the windows of the partitions that they are of."""
        super().listen()
        if (index := self.component.entering(self.name)) is not None:
            equals, test = self.narrowing()
            self._entry = Entry(self, 0, equals, test)
            index.add(self._entry)

    def stop(self) -> None:
        """The partition ends."""
        super().stop()
        if self._entry is not None and (index := self.component.entering(self.name)) is not None:
            index.remove(self._entry)

    def start(self) -> None:
        """Rows of another store come in, silently."""
        super().start()
        if self.spec.filled_from is not None:
            test = predicate(self.spec.filled_where)
            held = self.component.store(self.spec.filled_from, self.partition).content()
            rows = [self.row(row.values) for row in held if test((row,), (), self.environment)]
            self.window.enter(rows, self.runner.now)
            self.ask_timers()

    def content(self) -> Sequence[Row]:
        """In the window's order."""
        return list(self.window.content())

    def shown(self) -> Sequence[Row]:
        """What joins and sub-queries find: what consumers have been told of."""
        rows = list(self.window.shown())
        if not self._untold:
            return rows
        came = {row.id for delta in self._untold for row in delta.new}
        left = {row.id: row for delta in self._untold for row in delta.old if row.id not in came}
        return [*left.values(), *(row for row in rows if row.id not in came and row.id not in left)]

    @property
    def told(self) -> bool:
        return self.window.told

    def asked(self, filtered: bool) -> Sequence[Row]:
        return [*self.window.shown(), *self.content()] if filtered and self.window.in_batches else self.content()

    def find(self, key: Key) -> Row | None:
        """A window has no keys."""
        return None

    def by(self, places: Collection[int]) -> tuple[int, ...]:
        return findable(self.spec.type, places) if self.window.told else ()

    def having(self, places: tuple[int, ...], key: Key) -> Sequence[Row] | None:
        """Looked for where several are not in the order of their arrival."""
        found = self.finder(places).having(key)
        return found if len(found) < 2 or isinstance(self.window, Kept) else None

    def showing(self, places: tuple[int, ...], key: Key) -> Sequence[Row] | None:
        """Looked for while consumers do not know all."""
        return None if self._untold else self.having(places, key)

    def index_by(self, places: tuple[int, ...]) -> KeyIndex:
        found = self.finder(places)
        return KeyIndex(found.having, found.sole, found is self.window, isinstance(self.window, Kept), self)

    def finder(self, places: tuple[int, ...]) -> Found:
        """The rows that are in by some values of theirs, where `by` has named the places."""
        if isinstance(self.window, UniqueWindow) and self.window.places == places:
            return self.window
        finder = self._finders.get(places)
        if finder is None:
            finder = self._finders[places] = Finder(places, self.window.content())
        return finder

    def _known(self, index: UniqueIndex, keys: set[Key], gone: set[int]) -> set[Key]:
        kinds = list(self.spec.type.fields.values())  # what is found by its values is found as they are: NaN is not
        plain = all(is_key(kinds[place]) for place in index.places)
        if not plain or self.by(index.places) != tuple(sorted(index.places)):
            return super()._known(index, keys, gone)
        having = self.finder(index.places).having
        return {key for key in keys if any(row.id not in gone for row in having(key))}

    def change(self, coming: Sequence[Row], updates: Updates = (), leaving: Sequence[Row] = ()) -> Delta:
        """Updated rows are new ones that stand at the end; what leaves the window for others leaves with them."""
        window, old, new = self.window, [*leaving], [*coming]
        for row, values in updates:
            old.append(row)
            new.append(self.row(updated(row, values)))
        if self.unique:
            self.check(new, old)
        for row in old:
            window.remove(row)
        came, left, forced = window.enter(new, self.environment.clock.now) if new else NOTHING
        if old and not window.in_batches:  # a batch leaves as a whole, and of an unfinished one nobody knows
            left = [*old, *left] if left else old
        self._moved(Delta(came, left, forced))
        return Delta(new, old)

    def fire(self, phase: Any, now: int) -> None:
        """The window's timer."""
        while self.alive and (due := self.window.due) is not None and due <= now:
            self._moved(self.window.fire(now))

    def ask_timers(self) -> None:
        """The window's next instant."""
        if self.window.timed:
            self.runner.timers.ask(self, Phase.WINDOW, self.window.due)

    def rows(self) -> list[Row]:
        """The content."""
        return list(self.content())

    def _moved(self, delta: Delta) -> None:
        """The window has changed: what is found by key, the next instant, and whom to tell."""
        for finder in self._finders.values():
            finder.change(delta.new, delta.old)
        self.ask_timers()
        if delta:
            self.runner.deliver(self.statement, delta)
            self._untold.append(delta)
            self.runner.tell_later(self._tell)

    def _tell(self) -> None:
        if self._untold:
            untold, self._untold = self._untold, []
            delta = untold[0] if len(untold) == 1 else together(untold)
            for observe in self.observers.values():
                observe(delta.new, delta.old)
            for consumer, places in groupby(list(self.consumers), itemgetter(0)):
                consumer.followed([number for _, number in places], delta)

    @property
    def untold(self) -> bool:
        """Whether consumers do not know all."""
        return bool(self._untold)

    def kept(self) -> Any:
        """The window."""
        return self.window.snapshot()

    def restore_kept(self, state: Any) -> None:
        """The window."""
        self.window.restore(state)
        for finder in self._finders.values():
            finder.refill(self.window.content())
