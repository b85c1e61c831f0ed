"""What the partitions of a context make of a batch, before it is decided what is shown of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.projecting import Made, Moves
from rollup.engine.columns.evaluate import plain
from rollup.engine.columns.groups import Ints
from rollup.engine.operators import LONG_MAX

REST = LONG_MAX
"""When a clock is due that does not run."""


def _nothing() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Ended:
    """The partitions that end, in that order: until when each lived, and by which event of the batch (or TIMER)."""

    part: Ints = field(default_factory=_nothing)
    until: Ints = field(default_factory=_nothing)
    by: Ints = field(default_factory=_nothing)


@dataclass(frozen=True)
class Dues:
    """When the clock does something in each partition next, REST where it does not: it lets something out of its window, and it
    ends it.
    """

    windows: Ints
    ends: Ints

    @classmethod
    def of(cls, count: int, windows: tuple[Ints, Ints] | None, ends: Ints | None = None) -> Dues:
        """Of so many partitions; the windows of some of them."""
        found = np.full(count, REST)
        if windows is not None:
            places, due = windows
            found[places] = due
        return cls(found, np.full(count, REST) if ends is None else ends)


class Late(Enum):
    """What is due without an event and comes at the instant of a batch: what windows let out; that and the ends of partitions,
    where the clock has jumped over them.
    """

    WINDOWS = "windows"
    ALL = "all"


@dataclass(frozen=True)
class PartMoves:
    """The changes of partitions, in order: when, by which event of the batch (or TIMER), and in which partition; `begins`:
    whether the partition begins with it, and tells of it before others do; how many rows come with it, and leave. `after`:
    what the clock brings comes after an output of its instant.
    """

    at: Ints
    event: Ints
    part: Ints
    begins: np.ndarray
    come: Ints
    left: Ints
    after: bool = False

    @classmethod
    def of(
        cls,
        made: Made,
        event: Ints,
        own: Ints,
        named: Ints | None = None,
        began: Ints | None = None,
        after: bool = False,
    ) -> PartMoves:
        """Those that made rows; `event`, `own`: of each event taken its place in the batch and its partition; `named` as in `Parts`;
        `began`: the event with which each partition begins.
        """
        moves = made.moves
        if moves is None:  # what an event lets out is never more than what has come
            at, part, come = made.taken.times, own, np.ones(len(own), np.int64)
            left = np.zeros(len(own), np.int64)
        else:
            at, come, left = moves.at, moves.come, moves.left
            part = partitions_of(made, named, _first_rows(moves))
            event = np.where(moves.event < 0, TIMER, event[np.maximum(moves.event, 0)]) if len(event) else moves.event
        begins = np.zeros(len(part), bool) if began is None else (event >= 0) & (began[part] == event)
        return cls(at, event, part, begins, come, left, after)


def _first_rows(moves: Moves) -> Ints:
    """A row that comes or leaves with each change."""
    entering, leaving = moves.listed
    comes, goes = (np.cumsum(each) - each for each in (moves.come, moves.left))
    found, some = np.empty(len(moves.at), np.int64), moves.come > 0
    found[some], found[~some] = entering[comes[some]], leaving[goes[~some]]
    return found


def partitions_of(made: Made, named: Ints | None, rows: Ints | slice = slice(None)) -> Ints:
    """The partitions of the rows that a window held and of those that came, of which the number is the last field."""
    numbers = plain(made.fields[-1]).to_numpy(zero_copy_only=False)[rows]
    return numbers if named is None else np.searchsorted(named, numbers)


@dataclass(frozen=True)
class Parts:
    """Of partitions that are numbered for this batch alone, those that there were first: their changes, and the rows that were
    made of these, each with its partition, group (None: that is the partition) and what the projection sees.

    `properties`: what it sees of partitions beside; `nothing`: of a total of no rows, of some partitions, the last ones.
    `named`: what partitions are told by in the core, in order; None: their places. `numbers`: those by which they are told
    apart for good, where they end; `begins`: the events with which they begin, where they never do. `regrouped`: the numbers
    that groups have after the batch; None: the same.
    """

    count: int
    moves: PartMoves
    made: Made
    part: Ints
    group: Ints | None
    columns: Sequence[pa.Array]
    properties: Callable[[Ints], Sequence[pa.Array]]
    nothing: Sequence[pa.Array]
    ended: Ended = field(default_factory=Ended)
    named: Ints | None = None
    numbers: Ints | None = None
    begins: Ints | None = None
    regrouped: Ints | None = None

    @property
    def rows(self) -> int:
        """How many rows were made."""
        return len(self.made.at)

    @cached_property
    def move(self) -> Ints:
        """The change that made each row."""
        return self.made.move

    @property
    def sign(self) -> np.ndarray | None:
        """As in `Output`."""
        return self.made.sign

    @property
    def alive(self) -> np.ndarray:
        """Which partitions live on."""
        lives = np.ones(self.count, bool)
        lives[self.ended.part] = False
        return lives


def of_no_rows(core: Folded, part: Ints) -> list[pa.Array]:
    """What a projection sees of groups without rows that are partitions, without their properties."""
    return [pa.array(part), *(pa.repeat(each[0], len(part)) for each in core.nothing())]
