"""What goes through a query: rows of its inputs with their kind and time, in one piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from rollup.engine.row import Rows


class Item(NamedTuple):
    """The rows of the inputs, whether they leave (expired) or come (current), and the time at which they do."""

    rows: Rows
    expired: bool
    time: int


RESET = Item((), False, 0)
"""Between a batch that leaves and the next: aggregates begin anew, also those whose values never leave."""
Chunk = list[Item]
"""One delivery."""
Emit = Callable[[Chunk], None]
EmitEach = Callable[[list[Chunk]], None]
"""Several that leave a query together, each selected by itself."""


class Subscriber(Protocol):
    """Who reads a stream."""

    def deliver(self, stream: str, chunk: Sequence[Item]) -> None:
        """A delivery of the stream: items of one row each."""
        ...
