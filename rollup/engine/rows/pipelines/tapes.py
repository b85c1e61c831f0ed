"""What one statement delivers for many events, as lists that grow by a row."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rollup.engine.row import Delta, Row
from rollup.engine.rows.runner import Delivery

Values = tuple[Any, ...]
Noted = tuple[int, int, Values]


class Tape:
    """The rows that a statement has delivered, in order: the place of the event that brought each, whether it comes (1) or
    leaves (-1), and its values. The rows of one event are one delivery, those that leave last.

    >>> tape = Tape("sums")
    >>> tape.note((0, 1, (3.0,))); tape.note((1, 1, (4.0,))); tape.note((1, -1, (3.0,)))
    >>> list(tape.deliveries())
    [(0, [(3.0,)], []), (1, [(4.0,)], [(3.0,)])]
    """

    __slots__ = ("note", "rows", "statement")

    def __init__(self, statement: str) -> None:
        self.statement = statement
        self.rows: list[Noted] = []
        self.note = self.rows.append
        """One row more."""

    def deliveries(self) -> Iterator[tuple[int, list[Values], list[Values]]]:
        """The place of each event that brought something, what comes and what leaves."""
        at, new, old = -1, list[Values](), list[Values]()
        for place, sign, values in self.rows:
            if place != at and (new or old):
                yield at, new, old
                new, old = [], []
            at = place
            (new if sign > 0 else old).append(values)
        if new or old:
            yield at, new, old

    def taken(self) -> Tape:
        """The same rows on a tape of their own; this one begins again."""
        found = Tape(self.statement)
        found.rows += self.rows
        self.rows.clear()
        return found


TapeOf = Callable[[str], Tape]
"""The tape of a statement: its own, or one for all its partitions."""


def merged(tapes: Sequence[Tape], times: Sequence[int]) -> list[Delivery]:
    """The deliveries of statements which stand in the order in which they deliver for one event; `times` are the events'."""
    placed = [
        [((place, number), tape.statement, new, old) for place, new, old in tape.deliveries()]
        for number, tape in enumerate(tapes)
    ]
    return [
        Delivery(statement, times[place], Delta([Row(0, each) for each in new], [Row(0, each) for each in old]))
        for (place, _), statement, new, old in heapq.merge(*placed, key=lambda each: each[0])
    ]
