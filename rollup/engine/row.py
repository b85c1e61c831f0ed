"""Rows and deltas of the row executor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast


class Row:
    """One row: an identity and its values, in the order of its type's fields.

    Identity is the number, since a window removes *this* row and not an equal one; a copy with other values (an update
    of a named window) is another row with a number of its own. Only an event that is heard as one of a schema which its own
    inherits has the same number with other values.

    >>> Row(7, ("IBM", 10.0))
    Row(7, ('IBM', 10.0))
    """

    __slots__ = ("id", "values")

    def __init__(self, id: int, values: tuple[Any, ...]) -> None:
        self.id = id
        self.values = values

    def __repr__(self) -> str:
        return f"Row({self.id}, {self.values!r})"


NAN = math.nan
"""What is no number, as a key: it equals nothing but the very same object."""


def comparable(value: Any) -> Any:
    """A value that can be a key: rows by identity of content, lists as tuples; what is no number is one and the same key, and a
    zero has no sign.

    >>> {comparable([1, float("nan")]), comparable([1, float("nan")])}, comparable(2.0), comparable(-0.0)
    ({(1, nan)}, 2.0, 0.0)
    """
    if isinstance(value, Row):
        return ("row", comparable(value.values))
    if isinstance(value, (list, tuple)):
        return tuple(comparable(each) for each in cast("Sequence[Any]", value))
    if value != value:
        return NAN
    return value + 0.0 if isinstance(value, float) else value


def listed(value: Any) -> Any:
    """The value that a key was made of, where that holds no rows."""
    return [listed(each) for each in cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value


def nested(value: Any) -> Any:
    """A value as columns are made of it: rows, in lists too, as tuples.

    >>> nested([Row(7, (1, Row(8, (2,))))])
    [(1, (2,))]
    """
    if isinstance(value, Row):
        return tuple(map(nested, value.values))
    return [nested(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


Rows = tuple[Row | None, ...]
"""One row an input, None where an outer join has none or a pattern's tag is not bound."""


class Delta(NamedTuple):
    """A change: what comes (insert stream) and what leaves (remove stream), each oldest first.

    `forced`: it is delivered although it is empty.
    """

    new: Sequence[Row]
    old: Sequence[Row]
    forced: bool = False

    def __bool__(self) -> bool:
        return bool(self.new) or bool(self.old) or self.forced


delta_of: Callable[[tuple[Sequence[Row], Sequence[Row], bool]], Delta] = partial(tuple.__new__, Delta)
"""`Delta(*given)` at a third of its cost, for who makes one an event."""
NOTHING = Delta((), ())


def together(deltas: Sequence[Delta]) -> Delta:
    """Several changes as one."""
    new, old = [row for each in deltas for row in each.new], [row for each in deltas for row in each.old]
    return Delta(new, old, any(each.forced for each in deltas))
