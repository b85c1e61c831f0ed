"""Aggregates in loops: the lines of their declarations over arrays of slots, one element a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.aggregates import known
from rollup.engine.columns.cores.covering import against, first, wide
from rollup.engine.columns.evaluate import Columns, arrow, evaluate
from rollup.engine.expressions import Expr
from rollup.engine.folding import AggregateCall, Fold
from rollup.engine.types import Kind

_SUMS = (known.SUM.name, known.AVG.name)
_MOMENTS = (known.STDDEV.name, known.VARIANCE.name, known.STDDEV_POPULATION.name, known.SUM_OF_SQUARES.name)
_EXTREMES = {
    known.MIN.name: "({x} > {y} or {x} != {x} and {y} == {y})",
    known.MAX.name: "({x} <= {y} or {y} != {y})",
}
"""When an earlier value `x` can never be the answer again behind a later `y`; NaN is above all numbers."""
_COUNTS = (known.COUNT.name, known.COUNT_EVER.name)


def uncountable(call: AggregateCall, oldest_first: bool = False) -> str | None:
    """The first reason why a call cannot be part of a loop; `oldest_first`: rows leave in the order in which they came."""
    name, given = call.aggregate.name, first(against(arg) or wide(arg) for arg in call.args)
    if name in _EXTREMES and oldest_first and not call.distinct and call.where is None:
        kind = call.args[0].type
        return given if kind.kind in (Kind.DOUBLE, Kind.INT) else f"{name} of {kind}"
    if name not in (*_SUMS, *_MOMENTS, *_COUNTS):
        return f"the aggregate {name}"
    if call.distinct or call.where is not None:
        return "an aggregate of different values, or with a filter"
    kinds = {arg.type.kind for arg in call.args}
    whole = name in _SUMS and kinds <= {Kind.DOUBLE, Kind.INT}  # sums of longs may leave 64 bits
    if not whole and name not in _COUNTS and kinds != {Kind.DOUBLE}:
        return f"{name} of {call.args[0].type}"
    return given


@dataclass(frozen=True)
class Lines:
    """The calls of a statement as lines for a template. Group `k`, row `i`; arguments `x0 v0 x1 v1 …`, results `r0 ok0 …`."""

    calls: tuple[AggregateCall, ...]

    @cached_property
    def arguments(self) -> tuple[Expr, ...]:
        """The different arguments of the calls."""
        return tuple(dict.fromkeys(arg for call in self.calls for arg in call.args))

    @cached_property
    def slots(self) -> tuple[tuple[str, str, bool], ...]:
        """Each slot: its array, its start, whether it holds doubles."""
        return tuple(
            (f"g{place}_{name}", start, name not in ("n",) and self._double(call))
            for place, call in enumerate(self.calls)
            for name, start in call.aggregate.slots.items()
            if call.aggregate.name not in _EXTREMES
        )

    @cached_property
    def slot_places(self) -> list[int]:
        """Where each of these slots stands in a group of the row executor."""
        calls = [call for call in self.calls for _ in call.aggregate.slots]
        return [place for place, call in enumerate(calls) if call.aggregate.name not in _EXTREMES]

    @cached_property
    def extremes(self) -> dict[int, int]:
        """The place of the values of a least or greatest in a group of the row executor, and its argument."""
        calls = [call for call in self.calls for _ in call.aggregate.slots]
        found = ((place, call) for place, call in enumerate(calls) if call.aggregate.name in _EXTREMES)
        return {place: self.arguments.index(call.args[0]) for place, call in found}

    @cached_property
    def fold(self) -> Fold:
        """The same calls event by event, as the row executor has them."""
        return Fold(self.calls)

    def _double(self, call: AggregateCall) -> bool:
        return call.aggregate.name not in (*_COUNTS,) and call.args[0].type.kind is Kind.DOUBLE

    @property
    def names(self) -> dict[str, str]:
        """The names of arguments, slots and results, as parameters of a loop."""
        given = [f"x{i}, v{i}" for i in range(len(self.arguments))]
        results = [f"r{i}, ok{i}" for i in range(len(self.calls))]
        return {"given": "".join(f"{n}, " for n in given), "slots": "".join(f"{n}, " for n, _, _ in self.slots),
                "results": "".join(f"{n}, " for n in results)}  # fmt: skip

    def change(self, direction: str, row: str) -> list[str]:
        """The lines by which the row at `row` enters or leaves group `k`."""
        lines: list[str] = []
        for place, call in enumerate(self.calls):
            text = call.aggregate.enter if direction == "enter" else call.aggregate.leave
            if text is None:
                continue
            at = self.arguments.index(call.args[0]) if call.args else None
            if call.aggregate.name in _EXTREMES:
                lines += (_entering if direction == "enter" else _leaving)(place, at, row, call.aggregate.name)
                continue
            body = text.format(**self._named(place), x=f"x{at}[{row}]")
            lines += [body] if at is None else [f"if v{at}[{row}]:", f"    {body}"]
        return lines

    def prologue(self) -> list[str]:
        """The lines that put the rows of the window in line, where a least or greatest is asked for."""
        found = [place for place, call in enumerate(self.calls) if call.aggregate.name in _EXTREMES]
        lines: list[str] = []
        for place in found:
            lines += [f"m{place}_{end} = np.full(len(rows), -1, np.int64)" for end in ("front", "back")]
            lines += [f"m{place}_{way} = np.full(len(codes), -1, np.int64)" for way in ("next", "prev")]
        if found:
            lines += ["for i in range(old):", "    k = codes[i]"]
        for place in found:
            at = self.arguments.index(self.calls[place].args[0])
            lines += [f"    {line}" for line in _entering(place, at, "i", self.calls[place].aggregate.name)]
        return lines

    def forget(self) -> list[str]:
        """The lines by which group `k` becomes as at the beginning."""
        return [f"{name}[k] = {start}" for name, start, _ in self.slots]

    def value(self, row: str = "n") -> list[str]:
        """The lines that write the values of group `k` as a row of the results."""
        lines: list[str] = []
        for place, call in enumerate(self.calls):
            if call.aggregate.name in _EXTREMES:
                at = self.arguments.index(call.args[0])
                lines += [f"ok{place}[{row}] = m{place}_front[k] >= 0", f"if ok{place}[{row}]:"]
                lines += [f"    r{place}[{row}] = x{at}[m{place}_front[k]]"]
                continue
            text = call.aggregate.value.format(**self._named(place))
            value, _, condition = text.removesuffix(" else None").partition(" if ")
            if value.startswith("mean("):
                total, _, count = value[5:-1].partition(", ")
                value = f"{total} / {count}" if self._double(call) else f"mean_of_whole({total}, {count})"
            lines.append(f"ok{place}[{row}] = {f'({condition}) != 0' if condition else 'True'}")
            lines += [f"if ok{place}[{row}]:", f"    r{place}[{row}] = {value}"]
        return lines

    def _named(self, place: int) -> dict[str, str]:
        return {name: f"g{place}_{name}[k]" for name in self.calls[place].aggregate.slots}

    # arrays

    def given(self, columns: Columns, rows: int) -> list[np.ndarray]:
        """Values and validity of each argument, for a loop."""
        out: list[np.ndarray] = []
        for argument in self.arguments:
            array = evaluate(argument, columns, rows)
            valid = np.ones(rows, bool) if not array.null_count else pc.is_valid(array).to_numpy(zero_copy_only=False)
            if argument.type.kind not in (Kind.DOUBLE, Kind.INT, Kind.LONG):
                out += [np.zeros(rows, np.int64), valid]  # only counted
                continue
            kind = np.float64 if argument.type.kind is Kind.DOUBLE else np.int64
            filled = pc.fill_null(array, pa.scalar(0, array.type)) if array.null_count else array
            out += [filled.to_numpy(zero_copy_only=False).astype(kind, copy=False), valid]
        return out

    def given_types(self) -> list[pa.DataType]:
        """The columns that keep the arguments of rows that will leave."""
        return [
            kind
            for argument in self.arguments
            for kind in (pa.float64() if argument.type.kind is Kind.DOUBLE else pa.int64(), pa.bool_())
        ]

    def slot_types(self) -> list[pa.DataType]:
        """The columns that keep the slots."""
        return [pa.float64() if double else pa.int64() for _, _, double in self.slots]

    def grown(self, slots: Sequence[pa.ChunkedArray], groups: int) -> list[np.ndarray]:
        """The slots in arrays of their own, with room for more groups."""
        out: list[np.ndarray] = []
        for (_, start, double), column in zip(self.slots, slots, strict=True):
            array = np.full(groups, float(start) if double else int(float(start)), np.float64 if double else np.int64)
            array[: len(column)] = column.to_numpy()
            out.append(array)
        return out

    def room(self, rows: int) -> list[np.ndarray]:
        """Arrays for results."""
        out: list[np.ndarray] = []
        for call in self.calls:
            whole = call.type.kind in (Kind.INT, Kind.LONG)
            out += [np.zeros(rows, np.int64 if whole else np.float64), np.zeros(rows, bool)]
        return out

    def results(self, room: Sequence[np.ndarray], rows: int) -> list[pa.Array]:
        """The results as columns."""
        made = zip(self.calls, room[0::2], room[1::2], strict=True)
        return [
            pa.array(value[:rows], _column(call), mask=None if ok[:rows].all() else ~ok[:rows])
            for call, value, ok in made
        ]

    def of_slots(self, slots: list[Any]) -> list[pa.Array]:
        """The results of a group of the row executor, as columns of one row."""
        kinds = [column.type for column in self.results(self.room(1), 1)]
        found = zip(self.fold.values(slots), kinds, strict=True)
        return [pa.array([value], kind) for value, kind in found]


def _column(call: AggregateCall) -> pa.DataType | None:
    """The type of a result: a least or greatest is a value that was there, a sum may be wider than its type says."""
    return arrow(call.type) if call.aggregate.name in _EXTREMES else None


def _entering(place: int, at: int | None, row: str, name: str) -> list[str]:
    """A value joins the line of those that may still be the least or greatest of group `k`: what it beats goes."""
    line = f"m{place}"
    beaten = _EXTREMES[name].format(x=f"x{at}[{line}_back[k]]", y=f"x{at}[{row}]")
    return [
        f"if v{at}[{row}]:",
        f"    while {line}_back[k] >= 0 and {beaten}:",
        f"        {line}_back[k] = {line}_prev[{line}_back[k]]",
        f"    {line}_prev[{row}], {line}_next[{row}] = {line}_back[k], -1",
        f"    if {line}_back[k] < 0:",
        f"        {line}_front[k] = {row}",
        "    else:",
        f"        {line}_next[{line}_back[k]] = {row}",
        f"    {line}_back[k] = {row}",
    ]


def _leaving(place: int, at: int | None, row: str, name: str) -> list[str]:
    """The oldest value leaves; where it is still in the line, it is the first of it."""
    line = f"m{place}"
    return [
        f"if v{at}[{row}] and {line}_front[k] == {row}:",
        f"    {line}_front[k] = {line}_next[{row}]",
        f"    if {line}_front[k] < 0:",
        f"        {line}_back[k] = -1",
        "    else:",
        f"        {line}_prev[{line}_front[k]] = -1",
    ]
