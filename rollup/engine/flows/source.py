"""The entry of a stream: rows are admitted or refused, and every one says how far time is.

A monotone column is enforced: equal values pass (unless it is strict), a row that goes back is refused with its reason.
A slack admits rows out of order within a span of time, or within so many rows; a punctuation says that nothing before it
will come any more. Where rows may come in any order, only punctuations say how far time is.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.flows.flow import AT, Column, Flow, Monotone, Node, Relational, State, typed_as


@dataclass(frozen=True)
class Bound:
    """How a column is bounded: `time` behind the greatest value so far, or by a buffer of `rows`; `said`: by punctuations alone."""

    column: str
    monotone: Monotone
    time: int = 0
    rows: int | None = None
    said: bool = False


@dataclass(frozen=True)
class Punctuation:
    """No later row lies before `value`, as said at a position of the input. Of `column`; None: the first one that moves."""

    at: int
    value: Any
    column: str | None = None


@dataclass(frozen=True)
class Refused:
    """A row that was not admitted: its position, and why."""

    at: int
    reason: str


@dataclass(frozen=True)
class Arrivals:
    """What has come: rows with their positions in `AT`, punctuations, and what could not even be read."""

    rows: pa.Table
    punctuations: tuple[Punctuation, ...] = ()
    ended: bool = False
    refused: tuple[Refused, ...] = ()
    own: pa.BooleanArray | None = None
    """Which rows are taken; the others only say how far time is. All are when it is None."""


@dataclass(frozen=True)
class Source:
    """A stream by name. `bounds` are its monotone columns, `labels` their names as the user knows them."""

    stream: str
    columns: tuple[Column, ...]
    bounds: tuple[Bound, ...]
    labels: tuple[str, ...]
    inputs: tuple[Node, ...] = ()

    def start(self) -> State:
        """Nothing has come."""
        return State({}, {"bounds": [None] * len(self.bounds), "heaps": [[] for _ in self.bounds]})

    def step(self, state: State, inputs: Sequence[Flow], engine: Relational) -> tuple[State, Flow]:
        """A source has no inputs: `admit` takes its rows."""
        raise NotImplementedError(self.stream)

    def admit(self, state: State, arrivals: Arrivals) -> tuple[State, Flow, list[Refused]]:
        """The rows that are admitted, the marks that all of it makes, and the refusals."""
        rows = arrivals.rows
        entry = _Entry(self, state)
        at = rows.column(AT).to_numpy()
        values = [_comparable(rows.column(bound.column)) for bound in self.bounds]
        if not arrivals.punctuations and self._plain(rows):
            kept = entry.fast(at, values[0])
        else:
            kept = entry.slow(at, values, arrivals.punctuations)
        refused = entry.refused
        if arrivals.own is not None:
            taken = arrivals.own.to_numpy(zero_copy_only=False)
            kept, own = kept & taken, set(at[taken].tolist())
            refused = [each for each in refused if each.at in own]
        admitted = rows if kept.all() else rows.filter(pa.array(kept))
        marks = self._marks(entry, rows)
        return State({}, entry.scalars()), Flow(admitted, marks, arrivals.ended), [*arrivals.refused, *refused]

    def _plain(self, rows: pa.Table) -> bool:
        """Whether the rows themselves say how far the one column is that moves."""
        only = self.bounds[0] if len(self.bounds) == 1 else None
        return only is not None and only.rows is None and not only.said and not rows.column(only.column).null_count

    def _marks(self, entry: _Entry, rows: pa.Table) -> pa.Table:
        columns = [
            _typed(line, bound.monotone.rising, rows.schema.field(bound.column).type)
            for line, bound in zip(entry.lines, self.bounds, strict=True)
        ]
        names = [bound.column for bound in self.bounds]
        return pa.table([*columns, pa.array(entry.at, pa.int64())], names=[*names, AT])


class _Entry:
    """One batch at the entry. Falling columns are compared with the other sign."""

    def __init__(self, source: Source, state: State) -> None:
        self.source = source
        self.bounds: list[int | None] = list(state.scalars["bounds"])
        self.heaps: list[list[int]] = [list(heap) for heap in state.scalars["heaps"]]
        self.at: list[int] | np.ndarray[Any, Any] = []
        self.lines: list[Any] = [[] for _ in source.bounds]
        self.refused: list[Refused] = []

    def scalars(self) -> dict[str, Any]:
        """What is kept."""
        return {"bounds": self.bounds, "heaps": self.heaps}

    def fast(self, at: Any, values: Any) -> Any:
        """One bounded column without a buffer of rows, and rows alone."""
        bound = self.source.bounds[0]
        signed = values if bound.monotone.rising else -values
        if not len(signed):
            self.at, self.lines = at, [np.empty(0)]
            return np.ones(0, bool)
        after = np.maximum.accumulate(signed - bound.time)
        if self.bounds[0] is not None:
            after = np.maximum(after, self.bounds[0])
        first = [self.bounds[0] if self.bounds[0] is not None else signed[0] - 1 - bound.time]
        before = np.concatenate([first, after[:-1]]).astype(signed.dtype)
        kept = signed > before if bound.monotone.strict else signed >= before
        for place in np.flatnonzero(~kept).tolist():
            self._refuse(int(at[place]), 0, signed[place], before[place], False)
        self.bounds[0] = after[-1].item()
        self.at, self.lines = at, [after]
        return kept

    def slow(self, at: Any, values: Sequence[Any], punctuations: Sequence[Punctuation]) -> Any:
        """Any number of bounded columns, buffers and punctuations, one after the other."""
        kept = np.ones(len(at), bool)
        said = {p.at: p for p in punctuations}
        rows = {int(position): place for place, position in enumerate(at)}
        times: list[int] = []
        for position in sorted({*rows, *said}):
            if position in said:
                self._say(said[position])
            else:
                place = rows[position]
                kept[place] = self._admit(position, [self._signed(i, line[place]) for i, line in enumerate(values)])
            times.append(position)
            for line, bound in zip(self.lines, self.bounds, strict=True):
                line.append(bound)
        self.at = times
        return kept

    _punctuated = False

    def _say(self, punctuation: Punctuation) -> None:
        labels = [label.lower() for label in self.source.labels]
        place = 0 if punctuation.column is None else labels.index(punctuation.column.lower())
        kind = next(c.type for c in self.source.columns if c.name == self.source.bounds[place].column)
        self._raise(place, self._signed(place, _number(punctuation.value, kind)))
        self._punctuated = True

    def _signed(self, place: int, value: Any) -> Any:
        return value if value is None or self.source.bounds[place].monotone.rising else -value

    def _admit(self, position: int, values: Sequence[Any]) -> bool:
        for place, value in enumerate(values):
            if value is None:
                label = self.source.labels[place]
                self.refused.append(Refused(position, f"{label} is null, and a null has no place in its order"))
                return False
            bound, shape = self.bounds[place], self.source.bounds[place]
            if bound is not None and (value < bound or (shape.monotone.strict and value == bound)):
                self._refuse(position, place, value, bound, self._punctuated)
                return False
        for place, value in enumerate(values):
            shape = self.source.bounds[place]
            if shape.said:
                continue
            if shape.rows is None:
                self._raise(place, value - shape.time)
                continue
            heapq.heappush(self.heaps[place], int(value))
            if len(self.heaps[place]) > shape.rows:
                self._raise(place, heapq.heappop(self.heaps[place]))
        return True

    def _raise(self, place: int, value: Any) -> None:
        bound = self.bounds[place]
        self.bounds[place] = int(value) if bound is None else max(bound, int(value))

    def _refuse(self, position: int, place: int, value: Any, bound: Any, punctuated: bool) -> None:
        shape = self.source.bounds[place]
        rising, label = shape.monotone.rising, self.source.labels[place]
        sign = 1 if rising else -1
        kind = next(c.type for c in self.source.columns if c.name == shape.column)
        shown, limit = _shown(sign * int(value), kind), _shown(sign * int(bound), kind)
        quasi = "the bound " if shape.time or shape.rows is not None or shape.said or punctuated else ""
        where = "not above" if int(value) == int(bound) else "below" if rising else "above"
        self.refused.append(Refused(position, f"{label} {shown} is {where} {quasi}{limit}"))


def _comparable(values: pa.ChunkedArray) -> Any:
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us")).cast(pa.int64())
    elif pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    return np.array(values.to_pylist(), object) if values.null_count else values.to_numpy()


def _number(value: Any, kind: str) -> int:
    if isinstance(value, int):
        return value
    if kind == "DATE":
        return pa.scalar(value.date() if isinstance(value, datetime) else value, pa.date32()).cast(pa.int32()).as_py()
    return pa.scalar(value, pa.timestamp("us")).cast(pa.int64()).as_py()


def _typed(line: Any, rising: bool, kind: pa.DataType) -> pa.Array:
    """Bounds, whole numbers with the sign of their direction, as values of their column."""
    if isinstance(line, list):
        return typed_as([None if value is None else int(value) if rising else -int(value) for value in line], kind)
    return typed_as(line if rising else -line, kind)


def _shown(value: int, kind: str) -> str:
    if kind.upper().startswith("TIMESTAMP"):
        return str(pa.scalar(value, pa.timestamp("us")).as_py())
    if kind == "DATE":
        return str(pa.scalar(value, pa.int32()).cast(pa.date32()).as_py())
    return str(value)
