"""What every window is: a frozen description that `build`s the logic, and a logic whose state is its snapshot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, overload

from rollup.core.errors import QueryError
from rollup.engine.compiling import compiled, row_key
from rollup.engine.expressions import Expr
from rollup.engine.row import NOTHING, Delta, Row
from rollup.engine.rows.runner import Environment

Key = Callable[[Row], Any]


class Host(Protocol):
    """What a window may ask of the engine it runs in."""

    @property
    def environment(self) -> Environment:
        """The clock and the variables."""
        ...

    def row(self, values: Sequence[Any]) -> Row:
        """A new row with a number of its own."""
        ...


class WindowSpec(Protocol):
    """The description of a window."""

    def build(self, host: Host) -> Window:
        """The window, empty."""
        ...


class Window(ABC):
    """The rows that are kept. `enter` takes the arrivals of one delivery, `fire` is called at `due`."""

    in_batches = False
    """Whether rows come when a batch is complete, and not as they arrive."""
    moved_on = False
    """Whether a batch that is let out is gone already when it comes, and the next has begun."""
    keyed = False
    """Whether each key has a window of its own."""
    reached: int | None = None
    """The time of the newest arrival, in a window that goes by a time that the rows carry."""
    forces = False
    """Whether it may say at an instant that nothing has changed."""
    told = False
    """Whether its content is what it has said that came, without what it has said that left or what was taken out."""
    passes_empty = True
    """Whether a delivery without rows is a change all the same; what waits for a batch or lets few in passes none on."""

    @property
    def timed(self) -> bool:
        """Whether there may ever be a timer."""
        return type(self).due is not Window.due

    @property
    def due(self) -> int | None:
        """The next instant at which `fire` must be called; None: no timer."""
        return None

    @abstractmethod
    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        """Rows arrive: what comes in and what leaves."""

    def fire(self, now: int) -> Delta:
        """A timer is due; `now` may be later than what was asked for."""
        return NOTHING

    @abstractmethod
    def content(self) -> Iterable[Row]:
        """The rows that are in, in the order in which they are iterated."""

    def shown(self) -> Iterable[Row]:
        """The rows that have come and not left: what joins and look-ups find."""
        return self.content()

    @abstractmethod
    def remove(self, row: Row) -> None:
        """Another takes this row out: nothing is delivered. A row that is not in is no error."""

    def previous(self, row: Row) -> Sequence[Row]:
        """The content that `prev` counts in, for that row: the newest last."""
        return tuple(self.content())

    def behind(self, row: Row, back: int) -> Row | None:
        """The row that stands so many before the newest that `prev` counts from, for that row; None where there is none."""
        rows = self.previous(row)
        return rows[len(rows) - 1 - back] if 0 <= back < len(rows) else None

    def around(self, row: Row) -> Sequence[Row]:
        """The content whose number and ends are asked for, for that row: the newest last."""
        return self.previous(row)

    @abstractmethod
    def snapshot(self) -> Any:
        """The state as plain values."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Go on from a snapshot."""


class Kept(Window):
    """A window whose state is the rows in their order of arrival, oldest first; removal by identity is O(1).

    So is that of the oldest: a dict would look through the places of those that left before it.
    """

    def __init__(self) -> None:
        self.rows = OrderedDict[int, Row]()

    def content(self) -> Iterator[Row]:
        """Oldest first."""
        return iter(self.rows.values())

    def previous(self, row: Row) -> Sequence[Row]:
        """The rows as they are while nothing comes or leaves."""
        return _InOrder(self.rows)

    def behind(self, row: Row, back: int) -> Row | None:
        """Nearer to the newest than to the oldest it is as far as from there, without more about the rows."""
        if 0 <= 2 * back < len(self.rows):
            newest = reversed(self.rows.values())
            if back == 1:  # as nearly always
                next(newest)
                return next(newest)
            return next(islice(newest, back, None))
        return super().behind(row, back)

    def remove(self, row: Row) -> None:
        """Nothing is delivered."""
        self.rows.pop(row.id, None)

    def oldest(self) -> Row:
        """The row that came first; there must be one."""
        return next(iter(self.rows.values()))

    def push(self, row: Row) -> None:
        """A row comes in."""
        self.rows[row.id] = row

    def pop(self) -> Row:
        """The oldest row leaves."""
        return self.rows.popitem(last=False)[1]

    def snapshot(self) -> Any:
        """The rows."""
        return list(self.rows.values())

    def restore(self, state: Any) -> None:
        """The rows."""
        self.rows = OrderedDict((row.id, row) for row in state)


class _InOrder(Sequence[Row]):
    """Rows by their places, without a copy of them: to a place it is as far as from the nearer end."""

    def __init__(self, rows: OrderedDict[int, Row]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def __reversed__(self) -> Iterator[Row]:
        return reversed(self._rows.values())

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return tuple(self)[index]
        before = index if index >= 0 else len(self) + index
        if not 0 <= before < len(self):
            raise IndexError(index)
        behind = len(self) - 1 - before
        return next(islice(iter(self), before, None) if before < behind else islice(reversed(self), behind, None))


def value_of(expr: Expr, host: Host) -> Key:
    """The value of an expression over one row."""
    function, environment = compiled(expr), host.environment
    return lambda row: function((row,), (), environment)


def time_of(expr: Expr, host: Host) -> Key:
    """The time that a row carries; raises QueryError for a row that has none."""
    value = value_of(expr, host)

    def time(row: Row) -> Any:
        found = value(row)
        if found is None:
            raise timeless()
        return found

    return time


def timeless() -> QueryError:
    """A row carries no time where its window needs one."""
    return QueryError("a row has no time (its time is null), which its window needs")


def key_of(exprs: Sequence[Expr], host: Host) -> Key:
    """The values of expressions over one row, as a key."""
    return row_key(exprs)(host.environment)
