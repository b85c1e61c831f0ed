"""Aggregates in loops: the lines of their declarations over arrays of slots, one element a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.aggregates import known
from rollup.engine.columns.cores.covering import against, first, wide
from rollup.engine.columns.cores.sharing import evaluated
from rollup.engine.columns.cores.slots import EVER, Slot, ever, slots_of
from rollup.engine.columns.evaluate import Columns, arrow
from rollup.engine.expressions import Case, Const, Expr
from rollup.engine.folding import AggregateCall, Fold, Group
from rollup.engine.types import INT, NULL, Kind

Held = Literal["nothing", "all stay", "rows"]
"""What is held of the rows of a window: nothing, be it that all stay; or the rows, by a program."""
NUMBERS = (Kind.DOUBLE, Kind.INT, Kind.LONG)
"""The kinds of values that a loop is given as they are."""
EXTREMES = (known.MIN.name, known.MAX.name)
_SUMS = (known.SUM.name, known.AVG.name)
_WRAPPING = (known.SUM_OF_LONGS.name, known.AVG_OF_LONGS.name)
_MOMENTS = (known.STDDEV.name, known.VARIANCE.name, known.STDDEV_POPULATION.name, known.SUM_OF_SQUARES.name)
_COUNTS = (known.COUNT.name, known.COUNT_EVER.name)
_EVERS = (known.COUNT_EVER.name, known.LEAVING.name, *EVER)
_ORDERED = (known.MEDIAN.name, known.AVEDEV.name)
_CAME = (*EXTREMES, *EVER)
"""Those whose value is one that came."""


def uncountable(call: AggregateCall, held: Held = "nothing", emptied: bool = True) -> str | None:
    """The first reason why a call cannot be counted over what is held; `emptied`: groups that have emptied may be shown once more."""
    name, rows = call.aggregate.name, held == "rows"
    if call.aggregate.standing and rows:
        return None
    args = values_of(call)
    if call.where is not None and name in EVER:
        return f"the aggregate {name} with a filter"  # of a null it is another value than of no row
    if call.distinct and (name not in (*_SUMS, *_WRAPPING, *_MOMENTS, *_COUNTS) or not rows):
        return f"{name} of different values"
    kinds, wanted = {arg.type.kind for arg in args}, (Kind.DOUBLE, Kind.INT)
    if name in _EVERS and rows and emptied:  # on rows it is forgotten with the next row
        return f"the aggregate {name} by groups with the remove stream, or of batches"
    if name == known.LEAVING.name:
        return f"the aggregate {name} with a filter" if call.where is not None else None
    if name in _COUNTS:
        wanted = NUMBERS if call.distinct else tuple(Kind)
    elif name in _MOMENTS:
        wanted = (Kind.DOUBLE,)
    elif name in _WRAPPING:
        wanted = (Kind.LONG, Kind.INT)
    elif name in EVER or (name in EXTREMES and held != "nothing"):
        wanted = NUMBERS
    elif name not in _SUMS and not (name in _ORDERED and rows):
        return f"the aggregate {name}"
    if not kinds <= {*wanted}:  # of longs sums that do not wrap may leave 64 bits
        return f"{name} of {'different values of type ' if call.distinct else ''}{args[0].type}"
    return first(against(arg) or (None if name in (*_WRAPPING, *_CAME) else wide(arg)) for arg in args)


def values_of(call: AggregateCall) -> tuple[Expr, ...]:
    """The arguments; null where a filter keeps a row out."""
    if call.where is None:
        return call.args
    return tuple(Case(((call.where, arg),), Const(None, NULL), arg.type) for arg in call.args or (Const(1, INT),))


@dataclass(frozen=True)
class Lines:
    """The calls of a statement as lines for a template. Group `k`, row `i`; arguments `x0 v0 x1 v1 …`, results `r0 ok0 …`."""

    calls: tuple[AggregateCall, ...]

    @cached_property
    def arguments(self) -> tuple[Expr, ...]:
        """The different arguments of the calls."""
        return tuple(dict.fromkeys(arg for call in self.calls for arg in values_of(call)))

    def _at(self, call: AggregateCall) -> int | None:
        """Which argument is a call's."""
        found = values_of(call)
        return self.arguments.index(found[0]) if found else None

    @cached_property
    def _begins(self) -> list[int]:
        """Where the slots of each call begin in a group of the row executor."""
        widths = [len(call.aggregate.slots) for call in self.calls]
        return [sum(widths[:place]) for place in range(len(widths))]

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """What is kept of a group from step to step."""
        found = zip(self.calls, self._begins, strict=True)
        return tuple(
            slot
            for place, (call, begin) in enumerate(found)
            for slot in slots_of(place, call, begin, self._double(call))
        )

    @cached_property
    def fold(self) -> Fold:
        """The same calls event by event, as the row executor has them."""
        return Fold(self.calls)

    def _double(self, call: AggregateCall) -> bool:
        args = values_of(call)
        return call.aggregate.name not in _COUNTS and bool(args) and args[0].type.kind is Kind.DOUBLE

    @property
    def names(self) -> dict[str, str]:
        """The names of arguments, slots and results, as parameters of a loop, and the functions before it."""
        given = [f"x{i}, v{i}" for i in range(len(self.arguments))]
        results = [f"r{i}, ok{i}" for i in range(len(self.calls))]
        return {"given": "".join(f"{n}, " for n in given), "slots": "".join(f"{slot.name}, " for slot in self.slots),
                "results": "".join(f"{n}, " for n in results)}  # fmt: skip

    def change(self, direction: str, row: str) -> list[str]:
        """The lines by which the row at `row` enters or leaves group `k`."""
        enters, lines = direction == "enter", list[str]()
        for place, call in enumerate(self.calls):
            at, text = self._at(call), call.aggregate.enter if enters else call.aggregate.leave
            if text is None:
                continue
            if call.aggregate.name in _CAME:
                lines += ever(call, place, f"x{at}[{row}]", f"v{at}[{row}]")
                continue
            body = text.format(**self._named(place), x=f"x{at}[{row}]").replace("wrapped", "")  # as slots do
            lines += [body] if at is None else [f"if v{at}[{row}]:", f"    {body}"]
        return lines

    def forget(self) -> list[str]:
        """The lines by which group `k` becomes as at the beginning."""
        return [f"{slot.name}[k] = {slot.start}" for slot in self.slots]

    def value(self, row: str = "n") -> list[str]:
        """The lines that write the values of group `k` as a row of the results."""
        return [line for place, call in enumerate(self.calls) for line in self._of_slots(place, call, row)]

    def _of_slots(self, place: int, call: AggregateCall, row: str) -> list[str]:
        if call.aggregate.name in _CAME:
            value = next(
                slot.name for slot in self.slots if slot.name.startswith(f"g{place}_") and slot.part == "value"
            )
            return [f"ok{place}[{row}], r{place}[{row}] = g{place}_known[k], {value}[k]"]
        text = call.aggregate.value.format(**self._named(place))
        value, _, condition = text.removesuffix(" else None").partition(" if ")
        if value.startswith("mean("):
            total, _, count = value[5:-1].partition(", ")
            value = f"{total} / {count}" if self._double(call) else f"mean_of_whole({total}, {count})"
        return [
            f"ok{place}[{row}] = {f'({condition}) != 0' if condition else 'True'}",
            f"if ok{place}[{row}]:",
            f"    r{place}[{row}] = {value}",
        ]

    def _named(self, place: int) -> dict[str, str]:
        return {name: f"g{place}_{name}[k]" for name in self.calls[place].aggregate.slots}

    # arrays

    def given(self, columns: Columns, rows: int) -> list[np.ndarray]:
        """Values and validity of each argument, for a loop."""
        values = evaluated(self.arguments, columns, rows)
        return [array for each, found in zip(self.arguments, values, strict=True) for array in arrays_of(each, found)]

    def given_types(self) -> list[pa.DataType]:
        """The columns that keep the arguments of rows that will leave."""
        return [kind for each in self.arguments for kind in (arrow_of(each), pa.bool_())]

    def slot_types(self) -> list[pa.DataType]:
        """The columns that keep the slots."""
        return [slot.type for slot in self.slots]

    def group(self, slots: Sequence[Any]) -> Group:
        """A group of the row executor, from a row of these columns."""
        group = self.fold.start()
        for slot, value in zip(self.slots, slots, strict=True):
            slot.put(group, value)
        return group

    def grown(self, slots: Sequence[pa.ChunkedArray], groups: int) -> list[np.ndarray]:
        """The slots in arrays of their own, with room for more groups."""
        out: list[np.ndarray] = []
        for slot, column in zip(self.slots, slots, strict=True):
            array = np.zeros(groups, slot.dtype)
            array[: len(column)] = column.to_numpy()
            out.append(array)
        return out

    def room(self, rows: int) -> list[np.ndarray]:
        """Arrays for results."""
        out: list[np.ndarray] = []
        for call in self.calls:
            whole = call.type.kind in (Kind.INT, Kind.LONG)
            out += [np.zeros(rows, np.int64 if whole else bool if call.type.kind is Kind.BOOL else np.float64)]
            out += [np.zeros(rows, bool)]
        return out

    def results(self, room: Sequence[np.ndarray], rows: int) -> list[pa.Array]:
        """The results as columns."""
        made = zip(self.calls, room[0::2], room[1::2], strict=True)
        return [_result(call, value[:rows], ok[:rows]) for call, value, ok in made]


def arrow_of(argument: Expr) -> pa.DataType:
    """What the numbers of an argument are kept as."""
    return pa.float64() if argument.type.kind is Kind.DOUBLE else pa.int64()


def arrays_of(expr: Expr, array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The values of an expression and their validity, for a loop; what is no number is only counted."""
    rows = len(array)
    valid = np.ones(rows, bool) if not array.null_count else pc.is_valid(array).to_numpy(zero_copy_only=False)
    if expr.type.kind not in NUMBERS:
        return np.zeros(rows, np.int64), valid
    kind = np.float64 if expr.type.kind is Kind.DOUBLE else np.int64
    filled = pc.fill_null(array, pa.scalar(0, array.type)) if array.null_count else array
    return filled.to_numpy(zero_copy_only=False).astype(kind, copy=False), valid


def _result(call: AggregateCall, value: np.ndarray, known: np.ndarray) -> pa.Array:
    """The results of a call as a column. What stood in an order is no zero with a sign."""
    value = value + 0.0 if call.aggregate.name in EXTREMES and value.dtype.kind == "f" else value
    itself = call.aggregate.name in _CAME and not _wide(call)  # a sum may be wider than its type says
    return pa.array(value, arrow(call.type) if itself else None, mask=None if known.all() else ~known)


def _wide(call: AggregateCall) -> bool:
    """Whether it is one of some values that may be wider than their type says."""
    return call.aggregate.name in _CAME and call.type == INT and wide(call.args[0]) is not None
