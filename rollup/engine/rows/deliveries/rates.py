"""Output rates: which of the selected rows leave, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rollup.engine.rows.deliveries.selecting import Selected
from rollup.engine.rows.runner import Runner

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
        while self._edge <= now:
            self._edge += self._spec.span or 1
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


class Snapshots:
    """The rows that are in, again at each edge: kept by what came and left, without a window the last (of each group)."""

    def __init__(self, spec: Rate, leave: Leave, now: int, windowed: bool, aggregated: bool) -> None:
        self._spec, self._leave, self._edge = spec, leave, now + (spec.span or 0)
        self._windowed, self._aggregated = windowed, aggregated
        self._rows: list[Selected] = []

    @property
    def due(self) -> int | None:
        """The next edge of the raster."""
        return self._edge

    def offer(self, rows: Sequence[Selected]) -> None:
        """Every row, of either kind."""
        for made in rows:
            if self._windowed and made.expired:
                self._left(made)
            elif self._windowed:
                self._rows.append(made)
            elif self._spec.grouped:
                self._replace(made)
            else:
                self._rows = [made]
        if self._aggregated and self._windowed:
            self._refresh(rows)

    def _replace(self, made: Selected) -> None:
        """A group keeps the place that its first row had."""
        for place, each in enumerate(self._rows):
            if each.key == made.key:
                self._rows[place] = made
                return
        self._rows.append(made)

    def _left(self, made: Selected) -> None:
        for place, each in enumerate(self._rows):
            if (self._aggregated and each.key == made.key) or each.row.values[:-1] == made.row.values[:-1]:
                del self._rows[place]
                return

    def _refresh(self, rows: Sequence[Selected]) -> None:
        """Aggregated rows show the present values of their group."""
        for made in rows:
            for place, each in enumerate(self._rows):
                if each.key == made.key:
                    self._rows[place] = made._replace(expired=False)

    def fire(self, now: int) -> None:
        """An edge of the raster."""
        while self._edge <= now:
            self._edge += self._spec.span or 1
        rows = self._rows
        if self._aggregated:
            rows = list({made.key: made for made in rows}.values())
        if rows:
            self._leave(list(rows))

    def snapshot(self) -> Any:
        """The rows and the next edge."""
        return [[list(made) for made in self._rows], self._edge]

    def restore(self, state: Any) -> None:
        """Go on."""
        self._rows, self._edge = [Selected(*made) for made in state[0]], state[1]
