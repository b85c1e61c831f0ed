"""A condition that says what fields of a store's row equal is answered by these, so an event costs the same however many
rows the store has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from rollup.engine.compiling import Evaluate, compiled_row
from rollup.engine.conjunctions import conjuncts
from rollup.engine.expressions import Expr, Field
from rollup.engine.row import Row, Rows
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.selects.joining import equality
from rollup.engine.types import DataType, Kind, RowType

Key = tuple[Any, ...]
EXACT = (Kind.STRING, Kind.INT, Kind.LONG, Kind.BOOL)
"""What is equal as a key where `=` says so: no value of these differs from itself."""
_NO_KEYS = (Kind.LIST, Kind.ROW, Kind.ANY, Kind.NULL)


class Findable(Protocol):
    """Rows that may be found by what they hold."""

    def by(self, places: Collection[int]) -> tuple[int, ...]:
        """By which of some fields it finds rows; none: it has to be looked through."""
        ...

    def having(self, places: tuple[int, ...], key: Key) -> Sequence[Row] | None:
        """The rows that hold these values at places that `by` has named; None: it has to be looked through this time."""
        ...

    def showing(self, places: tuple[int, ...], key: Key) -> Sequence[Row] | None:
        """Those of them that joins and sub-queries find."""
        ...


class Keyed(Findable, Protocol):
    """A store that may find rows by what they hold."""

    def index_by(self, places: tuple[int, ...]) -> KeyIndex:
        """Where these are found, as long as the store is there."""
        ...


class Shared(Keyed, Protocol):
    """A named window or a table."""

    def find(self, key: Key) -> Row | None:
        """The row of a key."""
        ...


class Changing(Protocol):
    """A named window, of which those who follow it may not know all."""

    @property
    def untold(self) -> bool:
        """Whether that is so."""
        ...


class KeyIndex(NamedTuple):
    """Where a store finds rows by a key: those of it, or the only one, MANY where it has several.

    `single`: no key has several; `ordered`: several are in the order in which they came; `window`: that of which nothing
    is to be found so while those who follow it do not know all.
    """

    having: Callable[[Key], Sequence[Row]]
    sole: Callable[[Key], Row | Many | None]
    single: bool = False
    ordered: bool = True
    window: Changing | None = None


class ByKey:
    """What a condition says that a store's row, the input at `place`, must equal; the inputs before it are known, of the
    first the one after it."""

    def __init__(self, where: Expr | None, place: int) -> None:
        parts = conjuncts(where)
        pairs = [pair for part in parts if (pair := equality(part, place or 1)) is not None]
        if place == 0:
            pairs = [(own, known) for known, own in pairs]
        self._equals = {
            own.index: known
            for known, own in pairs
            if isinstance(own, Field) and _findable(known.type) and _findable(own.type)
        }
        plain = all(known.type.kind in EXACT and own.type.kind in EXACT for known, own in pairs)
        self._all = plain and len(self._equals) == len(parts)
        self._places: tuple[int, ...] | None = None
        self._key: Evaluate = compiled_row(())

    def key(self, store: Keyed) -> tuple[tuple[int, ...], tuple[Expr, ...], bool]:
        """The places by which the store finds rows, none where it does not; what stands there; and whether that is all
        that the condition says, as long as none of it is null."""
        places = store.by(self._equals.keys())
        return places, tuple(self._equals[place] for place in places), self._all and len(places) == len(self._equals)

    def rows(self, store: Findable, r: Rows, e: Environment, shown: bool = False) -> Sequence[Row] | None:
        """The rows that may fulfil the condition, or those of them that are `shown`; None: any of them may."""
        if self._places is None:
            self._places = store.by(self._equals.keys())
            self._key = compiled_row([self._equals[place] for place in self._places])
        if not self._places:
            return None
        key = self._key(r, (), e)
        return store.showing(self._places, key) if shown else store.having(self._places, key)


class Found(Protocol):
    """Rows by the values that they hold at some places."""

    def having(self, key: Key) -> Sequence[Row]:
        """The rows with these values."""
        ...

    def sole(self, key: Key) -> Row | Many | None:
        """The row with these values, MANY if several have them; None where there is none."""
        ...


class Many:
    """Several rows, where one is looked for."""


MANY = Many()


class Finder:
    """Rows by the values that they hold at some places, in the order in which they came.

    >>> found = Finder((0,), [Row(1, ("a", 1)), Row(2, ("b", 2)), Row(3, ("a", 3))])
    >>> found.change([Row(4, ("a", 4))], [Row(1, ("a", 1))])
    >>> found.having(("a",)), found.sole(("a",)) is MANY, found.sole(("b",))
    ([Row(3, ('a', 3)), Row(4, ('a', 4))], True, Row(2, ('b', 2)))
    """

    def __init__(self, places: tuple[int, ...], rows: Iterable[Row]) -> None:
        self._key: Callable[[tuple[Any, ...]], Key]
        (first, *others) = places
        self._key = itemgetter(*places) if others else lambda values: (values[first],)
        self._rows: dict[Key, dict[int, Row]] = {}
        self.change(rows, ())

    def refill(self, rows: Iterable[Row]) -> None:
        """These rows instead of those that it has."""
        self._rows.clear()
        self.change(rows, ())

    def change(self, new: Iterable[Row], old: Iterable[Row]) -> None:
        """Rows come, then rows leave, which may be some of those."""
        rows, key_of = self._rows, self._key
        for row in new:
            key = key_of(row.values)
            found = rows.get(key)
            if found is None:
                rows[key] = {row.id: row}
            else:
                found[row.id] = row
        for row in old:
            key = key_of(row.values)
            found = rows.get(key)
            if found is not None and found.pop(row.id, None) is not None and not found:
                del rows[key]

    def having(self, key: Key) -> Sequence[Row]:
        """The rows with these values."""
        found = self._rows.get(key)
        return () if found is None else list(found.values())

    def sole(self, key: Key) -> Row | Many | None:
        """The row with these values; None where there is none."""
        found = self._rows.get(key)
        if found is None:
            return None
        if len(found) > 1:
            return MANY
        (row,) = found.values()
        return row


def findable(kinds: RowType, places: Iterable[int]) -> tuple[int, ...]:
    """Those of some places whose values can be keys as they are, in order."""
    types = list(kinds.fields.values())
    return tuple(place for place in sorted(places) if _findable(types[place]))


def _findable(kind: DataType) -> bool:
    return kind.kind not in _NO_KEYS
