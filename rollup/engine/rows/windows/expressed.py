"""Windows by a condition over their own content.

The condition sees two rows, the newest (input 0) and the oldest (input 1), and slots: `CURRENT`, `EXPIRED`, `NEWEST`,
`OLDEST`, then the values of the aggregate calls over the content.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rollup.engine.compiling import predicate
from rollup.engine.expressions import Expr
from rollup.engine.folding import AggregateCall, Fold
from rollup.engine.row import NOTHING, Delta, Row
from rollup.engine.rows.windows.base import Host, Window
from rollup.engine.rows.windows.counted import Batches

CURRENT, EXPIRED, NEWEST, OLDEST = range(4)
"""Slots: rows in the window, rows that this evaluation let out, arrival of the newest and the oldest row."""
AGGREGATES = 4
"""The slot of the first aggregate call."""


class Content:
    """Rows with their arrivals and the aggregates over them."""

    def __init__(self, condition: Expr, calls: Sequence[AggregateCall], host: Host) -> None:
        self._test, self._fold, self._environment = predicate(condition), Fold(calls), host.environment
        self.rows: deque[tuple[Row, int]] = deque()
        self._group = self._fold.start()

    def add(self, row: Row, now: int) -> None:
        """A row comes in."""
        self.rows.append((row, now))
        self._fold.enter(self._group, (row,), self._environment)

    def pop(self) -> Row:
        """The oldest row leaves."""
        row, _ = self.rows.popleft()
        self._fold.leave(self._group, (row,), self._environment)
        return row

    def holds(self, expired: int) -> bool:
        """Whether the condition is true of the content; there must be a row."""
        (newest, newest_at), (oldest, oldest_at) = self.rows[-1], self.rows[0]
        slots = (len(self.rows), expired, newest_at, oldest_at, *self._fold.values(self._group))
        return self._test((newest, oldest), slots, self._environment)

    def clear(self) -> None:
        """All rows leave."""
        self.rows.clear()
        self._group = self._fold.start()

    def remove(self, row: Row) -> None:
        """A row is taken out, wherever it stands."""
        kept = [each for each in self.rows if each[0] is not row]
        if len(kept) < len(self.rows):
            self.rows = deque(kept)
            self._fold.leave(self._group, (row,), self._environment)

    def snapshot(self) -> Any:
        """Rows, arrivals and aggregates."""
        return [[list(pair) for pair in self.rows], self._group]

    def restore(self, state: Any) -> None:
        """Rows, arrivals and aggregates."""
        self.rows = deque((row, at) for row, at in state[0])
        self._group = state[1]


@dataclass(frozen=True)
class Expressed:
    """Rows from the newest back as long as the condition holds: rows leave from the front until it does."""

    condition: Expr
    calls: tuple[AggregateCall, ...] = ()

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _Expressed(Content(self.condition, self.calls, host))


class _Expressed(Window):
    told = True

    def __init__(self, content: Content) -> None:
        self._content = content

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        old = list[Row]()
        for row in rows:
            self._content.add(row, now)
            expired = 0
            while self._content.rows and not self._content.holds(expired):
                old.append(self._content.pop())
                expired += 1
        return Delta(rows, old)

    def content(self) -> Iterable[Row]:
        return (row for row, _ in self._content.rows)

    def remove(self, row: Row) -> None:
        self._content.remove(row)

    def snapshot(self) -> Any:
        return self._content.snapshot()

    def restore(self, state: Any) -> None:
        self._content.restore(state)


@dataclass(frozen=True)
class ExpressedBatch:
    """Rows in batches that close when the condition is true; `inclusive`: the row that made it true is in the batch.

    `early`: a row comes at once, and a batch leaves when it closes. `together`: what arrives in one delivery is not
    divided but where the batch closes, once. `passes`: a row that closes a batch of none comes and leaves at once.
    """

    condition: Expr
    calls: tuple[AggregateCall, ...] = ()
    inclusive: bool = True
    early: bool = False
    together: bool = False
    passes: bool = False

    def build(self, host: Host) -> Window:
        """The window, empty."""
        if self.early:
            return _EarlyExpressedBatch(Content(self.condition, self.calls, host), self.inclusive)
        return _ExpressedBatch(Content(self.condition, self.calls, host), self.inclusive, self.together, self.passes)


class _ExpressedBatch(Batches):
    def __init__(self, content: Content, inclusive: bool, together: bool, passes: bool) -> None:
        super().__init__()
        self._content, self._inclusive, self._together, self._passes = content, inclusive, together, passes
        self.in_batches = inclusive

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        new, old = list[Row](), list[Row]()
        for arrived in [rows] if self._together else ([row] for row in rows):
            closing = self._closing(arrived, now)
            if closing == 0 and self._passes and not self.current:
                new += arrived
                old += [*self.last, *arrived]
                self.last = []
                self._content.clear()
                continue
            inside = len(arrived) if closing is None or self._inclusive else closing
            self.current += arrived[:inside]
            if closing is not None:
                let_out = self.release()
                new += let_out.new
                old += let_out.old
                self._content.clear()
                self.current += arrived[inside:]
                for row in arrived[inside:]:
                    self._content.add(row, now)
        return Delta(new, old) if new or old else NOTHING

    def _closing(self, rows: Sequence[Row], now: int) -> int | None:
        """The place of the first row that closes the batch; all are added."""
        closing: int | None = None
        for place, row in enumerate(rows):
            self._content.add(row, now)
            if closing is None and self._content.holds(len(self.last)):
                closing = place
        return closing

    def remove(self, row: Row) -> None:
        super().remove(row)
        self._content.remove(row)

    def snapshot(self) -> Any:
        return [super().snapshot(), self._content.snapshot()]

    def restore(self, state: Any) -> None:
        super().restore(state[0])
        self._content.restore(state[1])


class _EarlyExpressedBatch(_Expressed):
    def __init__(self, content: Content, inclusive: bool) -> None:
        super().__init__(content)
        self._inclusive = inclusive

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        old = list[Row]()
        for row in rows:
            self._content.add(row, now)
            if self._content.holds(0):
                batch = list(self.content())
                alone = len(batch) == 1
                self._content.clear()
                if self._inclusive or alone:
                    old += batch
                else:
                    old += batch[:-1]
                    self._content.add(row, now)
        return Delta(rows, old)
