"""What operators have in common: the protocol, ports, and the names that their texts may use.

An operator's annotated fields are its state. A field that the plan gives a value is a *constant*: a whole number stands in
the state, so programs that differ in it share code; a truth value decides branches of the text when the plan is lowered.
A method marked with `port` is bound by the plan, to methods of other operators or to expressions.

The protocol of a change: `insert(row)` and `remove(row)`, any number of each, then `flush()`. That of the clock: `due()`
says when `on_timer()` wants to be called; FOREVER is never. How the pieces become one program is in `lowering/linking.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

FOREVER = 1 << 62
"""No instant."""
Method = TypeVar("Method", bound=Callable[..., Any])


def port(method: Method) -> Method:
    """A method that the plan binds."""
    return method


class Operator:
    """An operator of a plan."""


class State:
    """What all operators see of the program: the clock, and the number of the delivery at hand."""

    now: int
    place: int


s = State()
"""The state of the program that an operator is a part of."""
Row = Any
"""A row: the struct that the plan names."""
Left = Row
Right = Row
Pair = Row
"""The rows of the sides of a join, and both of them."""
Group = Any
"""A group: its key, its count of rows, and the slots of its aggregates."""
Key = Any
"""The value that rows are told apart by; a tuple of several."""
Made = Any
"""A row of the output that waits for it; None where there is none."""
Item = TypeVar("Item")
Value = TypeVar("Value")


class List(Generic[Item]):
    """Items in order."""

    def append(self, item: Item) -> None: ...
    def clear(self) -> None: ...
    def __getitem__(self, index: int) -> Item: ...
    def __iter__(self) -> Iterator[Item]: ...
    def __len__(self) -> int: ...


class Queue(Generic[Item]):
    """Rows in order, of which the first leaves."""

    def append(self, item: Item) -> None: ...
    def __getitem__(self, index: int) -> Item: ...
    def first(self) -> Item: ...
    def popleft(self) -> Item: ...
    def __iter__(self) -> Iterator[Item]: ...
    def __len__(self) -> int: ...


class Rows(Queue[Item]):
    """Rows in order, of which any may leave."""

    def remove(self, item: Item) -> None: ...


class Map(Generic[Item, Value]):
    """Values by key in the order in which keys came."""

    def get(self, key: Item) -> Value: ...
    def values(self) -> Iterator[Value]: ...
    def clear(self) -> None: ...
    def __getitem__(self, key: Item) -> Value: ...
    def __setitem__(self, key: Item, value: Value) -> None: ...
    def __delitem__(self, key: Item) -> None: ...
    def __contains__(self, key: Item) -> bool: ...


class Heap(Generic[Item]):
    """Tuples, of which the least comes first."""

    def push(self, item: Any) -> None: ...
    def pop(self) -> Any: ...
    def __getitem__(self, index: int) -> Any: ...
    def __len__(self) -> int: ...


class Bucket:
    """Rows with one key."""

    rows: Rows[Row]


class Stamped:
    """A row with the instant at which it arrived."""

    def __init__(self, time: int, row: Row) -> None:
        self.time, self.row = time, row


class Interval:
    """The interval of a unit: since when, and the rows of the unit that have come and left in it."""

    key: Key
    since: int
    inserted: int
    removed: int

    def __init__(self, key: Key, since: int) -> None:
        self.key, self.since = key, since


class Note:
    """What is known of a group between two outputs: the row as it was, and whether the group has changed."""

    group: Group
    before: Made
    touched: bool
