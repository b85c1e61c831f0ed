"""What brings outputs: the clock, so many rows, or a condition over counts; and what has to be over before anything does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from rollup.engine import operators as op
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import All, Any_, Call, Const, Expr, Slot, Variable, walk
from rollup.engine.rows.selects.rate import Schedule
from rollup.engine.rows.selects.rates import INSERTED, INSERTED_EVER, LAST_OUTPUT, REMOVED, REMOVED_EVER
from rollup.engine.state import State
from rollup.engine.timers import edge

_COUNTED = """
def core(at, arrived, left, inserted, inserted_ever, removed, removed_ever, last, {given}ends):
    n = 0
    for i in range(len(at)):
        inserted += arrived[i]
        inserted_ever += arrived[i]
        removed += left[i]
        removed_ever += left[i]
        if {condition}:
            ends[n] = i
            n, inserted, removed, last = n + 1, 0, 0, at[i]
    return n, inserted, inserted_ever, removed, removed_ever, last
"""
_NAMES = {
    INSERTED: "inserted",
    INSERTED_EVER: "inserted_ever",
    REMOVED: "removed",
    REMOVED_EVER: "removed_ever",
    LAST_OUTPUT: "last",
}
_OPERATORS = {
    each.name: each
    for each in (op.EQUAL, op.UNEQUAL, op.LESS, op.LESS_EQUAL, op.GREATER, op.GREATER_EQUAL, op.NOT, op.WRAPPING["+"],
                 op.WRAPPING["-"])
}  # fmt: skip
_MOST = 2**53


@dataclass(frozen=True)
class Clock:
    """The instants of outputs that the clock brings: in whole spans from the first change on, or by a schedule; or none."""

    span: int = 0
    schedule: Schedule | None = None

    @property
    def runs(self) -> bool:
        """Whether the clock brings any."""
        return self.span > 0 or self.schedule is not None

    def first(self, at: int) -> int | None:
        """The first, when the first change is at that instant."""
        return at + self.span if self.schedule is None else self.schedule.after(at)

    def later(self, due: int, now: int) -> int | None:
        """The next after `now`, when one was due earlier."""
        return edge(due, self.span, now) if self.schedule is None else self.schedule.after(now)

    def until(self, due: int, now: int) -> tuple[Ints, int | None]:
        """Those from the one that is due next up to `now`, and the next then."""
        if self.schedule is None:
            ticks = np.arange(due, now + 1, self.span)
            return ticks, due + self.span * len(ticks)
        found, after = list[int](), due
        while after is not None and after <= now:
            found.append(after)
            after = self.schedule.after(after)
        return np.array(found, np.int64), after


@dataclass(frozen=True)
class After:
    """What must be over before anything counts: `span` from the start, or `events` rows, the change that brings one more
    counting whole; neither: nothing.
    """

    span: int | None = None
    events: int | None = None

    def start(self, now: int) -> int | None:
        """What is waited for at the start: until when, or how many rows have come meanwhile; None: nothing."""
        return now + self.span if self.span is not None else None if self.events is None else 0

    def over(self, waits: int | None, at: Ints, come: Ints) -> tuple[int, int | None]:
        """The first change that counts, of some at these instants with which so many rows come; and what is waited for then."""
        if waits is None:
            return 0, None
        if self.events is None:
            begin, then = int(np.searchsorted(at, waits)), waits
        else:
            seen = waits + np.cumsum(come)
            begin, then = int(np.searchsorted(seen, self.events, "right")), int(seen[-1]) if len(seen) else waits
        return begin, then if begin == len(at) else None


@dataclass(frozen=True)
class Counts:
    """When the clock is due; rows that have come and left since the last output and ever; when that was; what is waited for;
    how many rows brought an output, as was known last.
    """

    due: int | None = None
    inserted: int = 0
    removed: int = 0
    inserted_ever: int = 0
    removed_ever: int = 0
    last: int = 0
    waits: int | None = None
    limit: int = 0

    @classmethod
    def of(cls, state: State) -> Counts:
        """Those of a state; an earlier version's had fewer."""
        return cls(**{each.name: state.scalars[each.name] for each in fields(cls) if each.name in state.scalars})


@dataclass(frozen=True)
class Condition:
    """What brings outputs when it holds after a change; `text` is over the counts and `given`, numbers that it mentions."""

    text: str
    given: tuple[int, ...]

    @classmethod
    def of_rows(cls, limit: int) -> Condition:
        """So many rows have come, or left, since the last output."""
        return cls("inserted >= c0 or removed >= c0", (limit,))

    @classmethod
    def of(cls, expr: Expr) -> Condition | None:
        """That of an expression over the counts; None for one that is over more than these and whole numbers."""
        if not all(map(_counted, walk(expr))):
            return None
        given = [each.value for each in walk(expr) if isinstance(each, Const)]
        return cls(_text(expr, iter(range(len(given)))), tuple(given))

    @property
    def of_left(self) -> bool:
        """Whether it asks how many rows have left."""
        return "removed" in self.text

    def ends(self, at: Ints, come: Ints, left: Ints, counts: Counts) -> tuple[Ints, Counts]:
        """The changes after which it holds, of some at these instants with which so many rows come and leave."""
        names = "".join(f"c{i}, " for i in range(len(self.given)))
        ends, run = np.empty(len(at), np.int64), loop(_COUNTED.format(given=names, condition=self.text))
        before = (counts.inserted, counts.inserted_ever, counts.removed, counts.removed_ever, counts.last)
        n, inserted, inserted_ever, removed, removed_ever, last = map(
            int, run(at, come, left, *before, *self.given, ends)
        )
        known = counts.due, inserted, removed, inserted_ever, removed_ever, last, counts.waits, counts.limit
        return ends[:n], Counts(*known)


@dataclass(frozen=True)
class Pacing:
    """What brings outputs, once `after` is over: the clock, so many `rows`, or a condition."""

    clock: Clock
    rows: Const | Variable | None = None
    condition: Condition | None = None
    after: After = After()

    def known(self, counts: Counts) -> Counts:
        """The counts, with how many rows bring an output now: a variable that is null says nothing, and none less than one."""
        if not isinstance(self.rows, Const):
            return counts
        return replace(counts, limit=max(counts.limit if self.rows.value is None else self.rows.value, 1))


def _counted(expr: Expr) -> bool:
    match expr:
        case Slot() | All() | Any_():
            return True
        case Const(value=value):
            return type(value) is int and abs(value) < _MOST
        case Call():
            return expr.op.name in _OPERATORS
        case _:
            return False


def _text(expr: Expr, numbers: Iterator[int]) -> str:
    """The text of an expression in a loop, where nothing is null; its constants are numbered as they stand."""
    match expr:
        case Slot(index=index):
            return _NAMES[index]
        case Const():
            return f"c{next(numbers)}"
        case All(args=args) | Any_(args=args):
            word = " and " if isinstance(expr, All) else " or "
            return f"({word.join(_text(each, numbers) for each in args)})"
        case Call():
            assert expr.op.compiled is not None
            return expr.op.compiled.format(*(_text(each, numbers) for each in expr.args))
        case _:
            raise AssertionError
