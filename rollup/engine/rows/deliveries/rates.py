"""Output rates: which of the selected rows leave, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rollup.engine.expressions import Expr, Slot, walk
from rollup.engine.row import Row
from rollup.engine.rows.deliveries.selecting import Selected
from rollup.engine.rows.runner import Runner
from rollup.engine.timers import edge

Mode = Literal["all", "first", "last", "snapshot"]
Leave = Callable[[list[Selected]], None]


@dataclass(frozen=True)
class Rate:
    """One of `events` (rows that would leave) and `span` (time on the engine's clock); `grouped`: by group."""

    mode: Mode
    events: int | None
    span: int | None
    grouped: bool


class Rates:
    """What waits for its turn; `leave` gets the rows whose turn it is, a delivery at a time."""

    def __init__(self, spec: Rate, leave: Leave, runner: Runner) -> None:
        self._spec, self._leave, self._runner = spec, leave, runner
        self._edge = runner.now + (spec.span or 0)
        self._waiting: list[Selected] = []
        self._counts: dict[Any, int] = {}
        self._given: dict[Any, int] = {}

    @property
    def due(self) -> int | None:
        """The next edge of the raster; first rows have none."""
        return None if self._spec.span is None or self._spec.mode == "first" else self._edge

    def offer(self, rows: Sequence[Selected]) -> None:
        """Rows that would leave together; those of them whose turn it is leave together."""
        found = self._ready(rows)
        if found:
            self._leave(found)

    def _ready(self, rows: Sequence[Selected]) -> list[Selected]:
        if self._spec.events is None and self._spec.mode == "first":
            return self._first_of_span(rows)
        if self._spec.events is None:
            self._waiting += rows
            return []
        return self._first_of_events(rows) if self._spec.mode == "first" else self._whole_events(rows)

    def _first_of_events(self, rows: Sequence[Selected]) -> list[Selected]:
        found = list[Selected]()
        for made in rows:
            key = made.key if self._spec.grouped else None
            count = self._counts.get(key, 0)
            self._counts[key] = (count + 1) % (self._spec.events or 1)
            if count == 0:
                found.append(made)
        return found

    def _whole_events(self, rows: Sequence[Selected]) -> list[Selected]:
        found = list[Selected]()
        for made in rows:
            self._waiting.append(made)
            if len(self._waiting) >= (self._spec.events or 1):
                found += self._picked()
                self._waiting = []
        return found

    def _first_of_span(self, rows: Sequence[Selected]) -> list[Selected]:
        """A row leaves when the last one that left, of its group, is as old as the span."""
        now, found = self._runner.now, list[Selected]()
        for made in rows:
            key = made.key if self._spec.grouped else None
            if key not in self._given or now - self._given[key] >= (self._spec.span or 0):
                self._given[key] = now
                found.append(made)
        return found

    def _picked(self) -> list[Selected]:
        if self._spec.mode != "last":
            return self._waiting
        if self._spec.grouped:
            return list({made.key: made for made in self._waiting}.values())
        return self._waiting[-1:]

    def fire(self, now: int) -> None:
        """An edge of the raster."""
        if self._edge <= now:
            self._edge = edge(self._edge, self._spec.span or 1, now)
        rows, self._waiting = (self._picked() if self._waiting else []), []
        if rows:
            self._leave(rows)

    def snapshot(self) -> Any:
        """What waits, what was counted, when each group's row left last, the next edge."""
        waiting = [list(made) for made in self._waiting]
        return [waiting, list(self._counts.items()), list(self._given.items()), self._edge]

    def restore(self, state: Any) -> None:
        """Go on."""
        self._waiting = [Selected(*made) for made in state[0]]
        self._counts, self._given = ({key: value for key, value in items} for items in state[1:3])
        self._edge = state[3]


class Aggregated:
    """The columns of a select that hold aggregates, by their places."""

    def __init__(self, columns: Sequence[Expr]) -> None:
        self.places = tuple(n for n, column in enumerate(columns) if any(map(_of_aggregate, walk(column))))
        self.all = len(self.places) == len(columns)
        self._plain = [n for n in range(len(columns)) if n not in self.places]

    def plain(self, made: Selected) -> Any:
        """The group of a row and what it holds besides aggregates."""
        return made.key, [made.row.values[place] for place in self._plain]

    def taken(self, made: Selected, source: Selected) -> Selected:
        """A row with the aggregates of another."""
        values = list(made.row.values)
        for place in self.places:
            values[place] = source.row.values[place]
        return made._replace(row=Row(made.row.id, tuple(values)))


def _of_aggregate(part: Expr) -> bool:
    """Whether it is an aggregate's value; slot 0 is the time."""
    return isinstance(part, Slot) and part.index > 0


class Snapshots:
    """The rows that are in, again at each edge, with the present values of the columns that are `aggregated`, of each group
    one; without a window the last row (of each group)."""

    def __init__(self, spec: Rate, leave: Leave, now: int, windowed: bool, aggregated: Aggregated) -> None:
        self._spec, self._leave, self._edge = spec, leave, now + (spec.span or 0)
        self._windowed, self._aggregated = windowed, aggregated
        self._rows: list[Selected] = []
        """What is in the window."""
        self._present: dict[Any, Selected] = {}
        """The last row of each group."""

    @property
    def due(self) -> int | None:
        """The next edge of the raster."""
        return self._edge

    def offer(self, rows: Sequence[Selected]) -> None:
        """Every row, of either kind."""
        for made in rows:
            if self._windowed:
                self._moved(made)
            elif not made.expired:
                self._present[made.key if self._spec.grouped else None] = made  # in the place of the group's first row

    def _moved(self, made: Selected) -> None:
        """A row has come into the window or left it."""
        if made.expired:
            plain = self._aggregated.plain(made)
            place = next((n for n, each in enumerate(self._rows) if self._aggregated.plain(each) == plain), None)
            if place is None:
                return
            del self._rows[place]
        else:
            self._rows.append(made)
        if self._aggregated.places:
            self._present[made.key] = made

    def fire(self, now: int) -> None:
        """An edge of the raster."""
        if self._edge <= now:
            self._edge = edge(self._edge, self._spec.span or 1, now)
        rows = self._shown()
        if rows:
            self._leave(rows)

    def _shown(self) -> list[Selected]:
        """Each row with its group's aggregates, of a group the oldest; where there is nothing else, the aggregates of each."""
        if not self._windowed:
            return list(self._present.values())
        if not self._aggregated.places:
            return list(self._rows)
        oldest = {made.key: made for made in reversed(self._rows)}
        self._present = {key: made for key, made in self._present.items() if key in oldest}
        if self._aggregated.all:
            return [made._replace(expired=False) for made in self._present.values()]
        rows = [made for made in self._rows if oldest[made.key] is made] if self._spec.grouped else self._rows
        return [self._aggregated.taken(made, self._present[made.key]) for made in rows]

    def snapshot(self) -> Any:
        """The rows, the last of each group, and the next edge."""
        present = [list(made) for made in self._present.values()]
        return [[list(made) for made in self._rows], present, self._edge]

    def restore(self, state: Any) -> None:
        """Go on."""
        self._rows, present = ([Selected(*made) for made in rows] for rows in state[:2])
        grouped = self._windowed or self._spec.grouped
        self._present, self._edge = {made.key if grouped else None: made for made in present}, state[2]
