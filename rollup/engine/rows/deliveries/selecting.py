"""The select of a delivery: aggregates, one row or one row a group, having, order, limit.

Without an aggregate and without groups every row leaves; with an aggregate only the last row of a delivery; with groups
the last row of each, in the order in which the groups first came. What leaves and what comes are each ordered apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

from rollup.engine.compiling import compiled_key, compiled_row, predicate
from rollup.engine.expressions import Expr
from rollup.engine.folding import AggregateCall, Fold, Group
from rollup.engine.reals import orderable
from rollup.engine.row import Row
from rollup.engine.rows.deliveries.item import RESET, Item
from rollup.engine.rows.windows.base import Host
from rollup.engine.rows.windows.ranked import sort_key

Kind = Literal["current", "expired", "all"]


@dataclass(frozen=True)
class Selection:
    """The columns over the inputs' rows and the slots (the time, then the aggregates), and what stands behind them.

    `order_by` are places of columns; `kind` says which rows leave; `each`: every row of a group does.
    """

    columns: tuple[Expr, ...]
    calls: tuple[AggregateCall, ...] = ()
    group_by: tuple[Expr, ...] = ()
    having: Expr | None = None
    order_by: tuple[tuple[int, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    kind: Kind = "current"
    each: bool = False


class Selected(NamedTuple):
    """A row that leaves a query: its group's key, the row (its time last), whether it is expired."""

    key: Any
    row: Row
    expired: bool


class Selector:
    """The groups of a select."""

    def __init__(self, spec: Selection, host: Host) -> None:
        self.spec, self._host = spec, host
        self._columns, self._key = compiled_row(spec.columns), compiled_key(spec.group_by)
        self._fold, self._having = Fold(spec.calls), predicate(spec.having)
        self._groups: dict[Any, Group] = {}

    def select(self, chunks: Iterable[Sequence[Item]]) -> list[Selected]:
        """The rows of a delivery that leave. Its pieces are folded, ordered and cut each by itself; what comes behind one
        of which the limit has cut rows off does not leave."""
        end = None if self.spec.limit is None else self.spec.offset + self.spec.limit
        found, over = list[Selected](), False
        for rows in [self._piece(chunk) for chunk in chunks]:
            if not over:
                found += rows[self.spec.offset : end]
                over = end is not None and len(rows) > end
        return found

    def _piece(self, chunk: Sequence[Item]) -> list[Selected]:
        found = list[tuple[Selected, bool]]()
        for item in chunk:
            if item is RESET:
                self._groups.clear()
            elif (made := self._one(item)) is not None:
                found.append(made)
        return self._ordered(self._last(found))

    def _one(self, item: Item) -> tuple[Selected, bool] | None:
        """The row of one item after it has entered or left its group, and whether `having` holds of it."""
        environment, kind = self._host.environment, self.spec.kind
        key = self._key(item.rows, (item.time,), environment)
        slots = (item.time, *self._folded(key, item))
        if kind != "all" and item.expired != (kind == "expired"):
            return None
        values = self._columns(item.rows, slots, environment)
        row = self._host.row((*values, item.time))
        return Selected(key, row, item.expired), self._having(item.rows, slots, environment)

    def _folded(self, key: Any, item: Item) -> tuple[Any, ...]:
        if not self.spec.calls:
            return ()
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = self._fold.start()
        change = self._fold.leave if item.expired else self._fold.enter
        change(group, item.rows, self._host.environment)
        return self._fold.values(group)

    def _last(self, found: list[tuple[Selected, bool]]) -> list[Selected]:
        """`having` is asked of every row, so the last that leaves is the last of which it holds."""
        rows = [made for made, holds in found if holds]
        if self.spec.each:
            return rows
        if self.spec.group_by:
            return list({made.key: made for made in rows}.values())
        return rows[-1:] if self.spec.calls else rows

    def _ordered(self, rows: list[Selected]) -> list[Selected]:
        places = [place for place, _ in self.spec.order_by]
        if places:
            down = [descending for _, descending in self.spec.order_by]
            runs = [list(run) for _, run in groupby(rows, key=lambda made: made.expired)]
            rows = [row for run in runs for row in sorted(run, key=lambda made: self._sorted(made, places, down))]
        return rows

    @staticmethod
    def _sorted(made: Selected, places: Sequence[int], down: Sequence[bool]) -> Any:
        """Null comes last, in either direction."""
        values = [made.row.values[place] for place in places]
        pairs = [
            ((value is None) is not descending, orderable(value))
            for value, descending in zip(values, down, strict=True)
        ]
        return sort_key(pairs, down)

    def snapshot(self) -> Any:
        """The groups."""
        return [[key, group] for key, group in self._groups.items()]

    def restore(self, state: Any) -> None:
        """The groups."""
        self._groups = {key: group for key, group in state}
