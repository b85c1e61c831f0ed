"""The inputs of a statement at work: what an event, a change of a store or a match brings, and what is kept of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol

from rollup.engine.compiling import compiled, compiled_row, predicate, shared_test
from rollup.engine.index import Entry, Receiver, both_tests, equal
from rollup.engine.ranges import intervals, paths
from rollup.engine.row import Delta, Row, together
from rollup.engine.rows.keyed import Finder, Key, KeyIndex
from rollup.engine.rows.plans import Filter, Input, Narrow, PatternInput, StoreInput, StreamInput, Unnest
from rollup.engine.rows.runner import Environment, Runner
from rollup.engine.rows.windows.base import Kept, Window


class Home(Protocol):
    """The partition of a statement that inputs belong to; it is the host of their windows."""

    @property
    def environment(self) -> Environment:
        """The clock, variables, look-ups."""
        ...

    def row(self, values: Sequence[Any]) -> Row:
        """A new row."""
        ...


class InputState:
    """One input: its window, and the earlier arrivals of each row where `prior` asks for them."""

    def __init__(self, spec: Input, home: Home) -> None:
        self.spec, self._home = spec, home
        windowed = spec.window if isinstance(spec, (StreamInput, PatternInput)) else None
        self.window: Window | None = windowed.build(home) if windowed is not None else None
        unnest = spec.unnest if isinstance(spec, StreamInput) else ()
        self._unnest = [_Unnesting(each, home) for each in unnest]
        self._follows = isinstance(spec, StoreInput)
        self._recent: deque[Row] = deque(maxlen=spec.prior + self._follows)
        self.remembers = spec.prior > 0
        """Whether earlier arrivals are kept."""
        self._earlier: dict[int, list[Row]] = {}
        self._finders: dict[tuple[int, ...], Finder] = {}
        """What sub-queries have asked for, by its places."""
        condition = spec.condition if isinstance(spec, StoreInput) else None
        self._test = predicate(condition)

    def arrive(self, rows: Sequence[Row]) -> Delta:
        """Rows arrive."""
        for unnesting in self._unnest:
            found = [unnesting.rows(row) for row in rows]
            rows = [inner for each in found for inner in each or ()]
            if not rows:  # a list without rows is a change without rows, no list is none
                passed = self.window is None or self.window.passes_empty
                return Delta((), (), passed and any(each is not None for each in found))
        clock = self._home.environment.clock
        delta = Delta(rows, ()) if self.window is None else self.window.enter(rows, clock.now)
        self.remember(rows)  # what the window refuses has not come
        return delta

    def in_turn(self, turns: Sequence[Sequence[Row]]) -> Delta:
        """Rows arrive one turn after the other; what comes of all of them."""
        return self.arrive(turns[0]) if len(turns) == 1 else together([self.arrive(rows) for rows in turns])

    def follow(self, delta: Delta) -> Delta:
        """A store has changed: the part that concerns this input."""
        if not isinstance(self.spec, StoreInput) or self.spec.condition is not None:
            delta = Delta(self.passing(delta.new), self.passing(delta.old))
        self.remember(delta.new)
        return delta

    def remember(self, rows: Iterable[Row]) -> None:
        """Rows have come: those before each of them, where `prior` asks for them."""
        if self.remembers:
            for row in rows:
                if not self._follows:
                    self._earlier[row.id] = list(self._recent)
                self._recent.append(row)

    @property
    def findable(self) -> bool:
        """Whether rows that the window holds can be found by what they hold, in the order in which they came."""
        return isinstance(self.window, Kept) and self.window.told

    def by(self, places: Collection[int]) -> tuple[int, ...]:
        """By which of some fields."""
        return tuple(sorted(places)) if self.findable else ()

    def having(self, places: tuple[int, ...], key: Key) -> Sequence[Row]:
        """The rows that the window holds with these values."""
        return self.finder(places).having(key)

    showing = having

    def index_by(self, places: tuple[int, ...]) -> KeyIndex:
        """Where they are found."""
        finder = self.finder(places)
        return KeyIndex(finder.having, finder.sole)

    def finder(self, places: tuple[int, ...]) -> Finder:
        """The rows that the window holds by some values of theirs, where `by` has named the places."""
        finder = self._finders.get(places)
        if finder is None:
            assert self.window is not None
            finder = self._finders[places] = Finder(places, self.window.content())
        return finder

    def refill(self) -> None:
        """The window has other rows: they are found by their values."""
        for finder in self._finders.values():
            assert self.window is not None
            finder.refill(self.window.content())

    def moved(self, delta: Delta) -> None:
        """What the window has said that came and left, before anybody looks."""
        for finder in self._finders.values():
            finder.change(delta.new, delta.old)

    @property
    def condition(self) -> Callable[[Iterable[Row | None]], list[Row]] | None:
        """What finds those that fulfil the condition of the input of a store, where it has one."""
        return self.passing if isinstance(self.spec, StoreInput) and self.spec.condition is not None else None

    def passing(self, rows: Iterable[Row | None]) -> list[Row]:
        """The rows of a store that fulfil the input's condition."""
        return [row for row in rows if row is not None and self._test((row,), (), self._home.environment)]

    def earlier(self, row: Row, offset: int) -> Row | None:
        """The row that arrived `offset` rows before this one; of a store that is followed, before the newest."""
        if self._follows:
            there = self._home.environment.arriving and offset < len(self._recent)
            return self._recent[-1 - offset] if there else None
        known = self._earlier.get(row.id, ())
        return known[-offset] if 0 < offset <= len(known) else (row if offset == 0 else None)

    def forget(self, delta: Delta) -> None:
        """After a change: what left, and what nothing keeps, needs no earlier rows."""
        if self.remembers:
            gone = delta.old if self.window is not None else (*delta.new, *delta.old)
            for row in gone:
                self._earlier.pop(row.id, None)

    def snapshot(self) -> Any:
        """Window and earlier rows."""
        window = self.window.snapshot() if self.window is not None else None
        return [window, list(self._recent), list(self._earlier.items())]

    def restore(self, state: Any) -> None:
        """Go on."""
        window, recent, earlier = state
        if self.window is not None:
            self.window.restore(window)
            self.refill()
        self._recent.extend(recent)
        if self.remembers:
            self._earlier = dict(earlier)


class _Unnesting:
    def __init__(self, spec: Unnest, home: Home) -> None:
        self._home = home
        self._rows = compiled(spec.rows)
        self._columns = compiled_row(spec.columns) if spec.columns is not None else None
        self._where = predicate(spec.where)

    def rows(self, row: Row) -> list[Row] | None:
        """The rows inside one row; None where it has no list of them, or where none is left to select from."""
        e, found = self._home.environment, list[Row]()
        inside = self._rows((row,), (), e)
        if inside is None:
            return None
        for inner in inside:
            if inner is not None and self._where((row, inner), (), e):
                found.append(inner if self._columns is None else self._home.row(self._columns((row, inner), (), e)))
        return found if found or self._columns is None else None


def entry_of(filter: Filter, receiver: Receiver, input: int, environment: Environment, narrow: Narrow) -> Entry:
    """A filter's entry in the index, for one partition."""
    equals = {place: compiled(value)((), (), environment) for place, value in filter.equals}
    narrowed, further = narrow(filter.stream)
    for place, value in narrowed.items():
        if place in equals and not equal(equals, {place: value}):
            return Entry(receiver, input, equals, lambda row: False)
        equals[place] = value
    test = shared_test(filter.test, environment) if filter.test is not None else None
    ways = intervals(paths(filter.test, 0), lambda value: compiled(value)((), (), environment))
    return Entry(receiver, input, equals, both_tests(further, test), ways=ways)


class Listening:
    """The entries of one receiver in the index of a runner."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.entries: list[tuple[str, Entry]] = []

    def add(self, stream: str, entry: Entry) -> None:
        """Listen."""
        self.entries.append((stream, entry))
        self._runner.indexes[stream].add(entry)

    def stop(self) -> None:
        """Listen no longer."""
        for stream, entry in self.entries:
            self._runner.indexes[stream].remove(entry)
        self.entries = []
