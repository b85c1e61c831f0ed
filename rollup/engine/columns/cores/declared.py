"""Aggregates in loops: the lines of their declarations over arrays of slots, one element a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine import operators as op
from rollup.engine.aggregates import known
from rollup.engine.columns.cores.covering import against, first, wide
from rollup.engine.columns.cores.holding import TREE, Different, Extreme, Holding, Ordered, Queue, merged
from rollup.engine.columns.cores.looked_up import (
    EXTREMES,
    NUMBERS,
    Order,
    against_looking_up,
    enter_rows,
    foremost,
    looked_up,
    looked_up_in,
    nothing,
    skipping,
    standing,
)
from rollup.engine.columns.cores.sharing import evaluated
from rollup.engine.columns.cores.slots import EVER, Slot, ever, slots_of
from rollup.engine.columns.evaluate import Columns, arrow
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Case, Const, Expr
from rollup.engine.folding import AggregateCall, Fold, Group, enter_distinct
from rollup.engine.reals import orderable
from rollup.engine.row import Row
from rollup.engine.types import INT, NULL, Kind

Held = Literal["nothing", "all stay", "rows", "queue"]
"""What a core holds of the rows of a window: nothing, be it that all stay; rows, which leave in any order; or in the order in
which they came."""
_SUMS = (known.SUM.name, known.AVG.name)
_WRAPPING = (known.SUM_OF_LONGS.name, known.AVG_OF_LONGS.name)
_MOMENTS = (known.STDDEV.name, known.VARIANCE.name, known.STDDEV_POPULATION.name, known.SUM_OF_SQUARES.name)
_COUNTS = (known.COUNT.name, known.COUNT_EVER.name)
_EVERS = (known.COUNT_EVER.name, known.LEAVING.name, *EVER)
_ORDERED = (known.MEDIAN.name, known.AVEDEV.name)
_SIGNLESS = (known.MIN.name, known.MAX.name, known.MEDIAN.name)
_CAME = (*EXTREMES, *EVER)
"""Those whose value is one that came."""


def uncountable(call: AggregateCall, held: Held = "nothing", emptied: bool = True, whole: bool = False) -> str | None:
    """The first reason why a call cannot be part of a loop over what is held; `emptied`: groups that have emptied may be shown
    once more; `whole`: rows are held whole, and not only what the aggregates are of.
    """
    name, stay = call.aggregate.name, held == "all stay"
    held = "nothing" if stay else held
    if looked_up(call):
        return against_looking_up(call, whole and held != "nothing", held == "queue")
    args, rankable = values_of(call), held == "queue" or (whole and held == "rows")
    if call.where is not None and (name in EVER or (call.aggregate.at is not None and not call.aggregate.skips)):
        return f"the aggregate {name} with a filter"  # of a null it is another value than of no row
    if call.distinct and (name not in (*_SUMS, *_WRAPPING, *_MOMENTS, *_COUNTS) or held == "nothing"):
        return f"{name} of different values"
    kinds, wanted = {arg.type.kind for arg in args}, (Kind.DOUBLE, Kind.INT)
    if name in _EVERS and held != "nothing" and emptied:  # on rows it is forgotten with the next row
        return f"the aggregate {name} by groups with the remove stream, or of batches"
    if name == known.LEAVING.name:
        return f"the aggregate {name} with a filter" if call.where is not None else None
    if name in _COUNTS:
        wanted = NUMBERS if call.distinct else tuple(Kind)
    elif name in _MOMENTS:
        wanted = (Kind.DOUBLE,)
    elif name in _WRAPPING:
        wanted = (Kind.LONG, Kind.INT)
    elif name in EVER or (name in EXTREMES and (rankable or stay)) or (standing(call) and held != "nothing"):
        wanted = NUMBERS
    elif name not in _SUMS and not (name in _ORDERED and rankable):
        return f"the aggregate {name}"
    if not kinds <= {*wanted}:  # of longs sums that do not wrap may leave 64 bits
        return f"{name} of {'different values of type ' if call.distinct else ''}{args[0].type}"
    return first(against(arg) or (None if name in (*_WRAPPING, *_CAME) else wide(arg)) for arg in args)


def reach_of(call: AggregateCall) -> int | None:
    """How far from zero a whole number may be that is the value of a call; None: it is a double."""
    exact = call.aggregate.name in (*_SUMS, *_COUNTS)  # a sum is wider than its arguments
    if call.aggregate.name == known.SUM_OF_LONGS.name or _wide(call):
        return -op.LONG_MIN
    return {Kind.INT: op.EXACT, Kind.LONG: op.EXACT if exact else -op.LONG_MIN}.get(call.type.kind)


def arguments_of(call: AggregateCall) -> tuple[Expr | Order, ...]:
    """What a loop is given for a call."""
    if not looked_up(call):
        return values_of(call)
    if standing(call):
        if call.where is not None and not skipping(call):  # of a row that stands the value may be null
            return (Case(((call.where, Const(1, INT)),), Const(None, NULL), INT),)
        return values_of(call) if skipping(call) else ()
    order = foremost(call)
    return (replace(order, by=values_of(call)) if order.skips else order,)


def values_of(call: AggregateCall) -> tuple[Expr, ...]:
    """The arguments that are values: what tells the rows of a window apart is none; null where a filter keeps a row out."""
    args = call.args[1:] if standing(call) else call.args
    if call.where is None:
        return args
    return tuple(Case(((call.where, arg),), Const(None, NULL), arg.type) for arg in args or (Const(1, INT),))


@dataclass(frozen=True)
class Lines:
    """The calls of a statement as lines for a template. Group `k`, row `i`; arguments `x0 v0 x1 v1 …`, results `r0 ok0 …`.

    `stay`: none ever leaves.
    """

    calls: tuple[AggregateCall, ...]
    stay: bool = False

    @cached_property
    def arguments(self) -> tuple[Expr | Order, ...]:
        """The different arguments of the calls."""
        return tuple(dict.fromkeys(arg for call in self.calls for arg in arguments_of(call)))

    def _at(self, call: AggregateCall) -> int | None:
        """Which argument is a call's."""
        found = arguments_of(call)
        return self.arguments.index(found[0]) if found else None

    @cached_property
    def _begins(self) -> list[int]:
        """Where the slots of each call begin in a group of the row executor."""
        widths = [len(call.aggregate.slots) + call.distinct for call in self.calls]
        return [sum(widths[:place]) for place in range(len(widths))]

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """What is kept of a group from step to step."""
        found = zip(self.calls, self._begins, strict=True)
        return tuple(
            slot
            for place, (call, begin) in enumerate(found)
            if self._structure(call) is None or call.distinct
            for slot in slots_of(place, call, begin, self._double(call))
        )

    def _structure(self, call: AggregateCall) -> Holding | None:
        """What a loop holds for a call."""
        name, at = call.aggregate.name, self._at(call)
        if standing(call):
            return Queue(at if skipping(call) or looked_up(call) else None)
        if at is None:
            return None
        if looked_up(call):
            return Extreme(at, known.MIN.name)
        if call.distinct:
            return Different(at)
        if name in EXTREMES and self.stay:
            return None
        if name in EXTREMES:
            return Extreme(at, name)
        return Ordered(at, name == known.AVEDEV.name) if name in _ORDERED else None

    @cached_property
    def held(self) -> list[Holding]:
        """What a loop holds of the rows of the window."""
        return merged([found for call in self.calls if (found := self._structure(call)) is not None])

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
        given += [each.extra for each in self.held if isinstance(each, Different | Ordered)]
        results = [f"r{i}, ok{i}" for i in range(len(self.calls))]
        return {"given": "".join(f"{n}, " for n in given), "slots": "".join(f"{slot.name}, " for slot in self.slots),
                "results": "".join(f"{n}, " for n in results)}  # fmt: skip

    @property
    def functions(self) -> str:
        """The functions that stand before a loop."""
        return TREE if any(isinstance(each, Ordered) for each in self.held) else ""

    @cached_property
    def ever(self) -> bool:
        """Whether a call is of all that ever came."""
        return any(call.aggregate.name in _EVERS for call in self.calls)

    def change(self, direction: str, row: str) -> list[str]:
        """The lines by which the row at `row` enters or leaves group `k`."""
        enters = direction == "enter"
        lines = [line for each in self.held for line in (each.enter(row) if enters else each.leave(row))]
        for place, call in enumerate(self.calls):
            at, text = self._at(call), call.aggregate.enter if enters else call.aggregate.leave
            if text is None or (self._structure(call) is not None and not call.distinct):
                continue
            if call.aggregate.name in _CAME:
                lines += ever(call, place, f"x{at}[{row}]", f"v{at}[{row}]")
                continue
            body = text.format(**self._named(place), x=f"x{at}[{row}]").replace("wrapped", "")  # as slots do
            asked = f"fresh{at}" if call.distinct else f"v{at}[{row}]"
            lines += [body] if at is None else [f"if {asked}:", f"    {body}"]
        return lines

    def prologue(self, first: str = "0") -> list[str]:
        """The lines that make what the loop holds of the rows of the window, from the `first` on."""
        lines = [line for each in self.held for line in each.begin()]
        if self.held:
            lines += [f"for i in range({first}, old):", "    k = codes[i]"]
        return [*lines, *(f"    {line}" for each in self.held for line in each.enter("i"))]

    def forget(self) -> list[str]:
        """The lines by which group `k` becomes as at the beginning."""
        return [f"{slot.name}[k] = {slot.start}" for slot in self.slots]

    def value(self, row: str = "n") -> list[str]:
        """The lines that write the values of group `k` as a row of the results."""
        return [line for place, call in enumerate(self.calls) for line in self._value(place, call, row)]

    def _value(self, place: int, call: AggregateCall, row: str) -> list[str]:
        structure, at = None if call.distinct else self._structure(call), self._at(call)
        match structure:
            case Extreme():
                return structure.value(place, row, looked_up(call))
            case Queue() if (stands := call.aggregate.at) is not None:
                return structure.value(place, row, None if looked_up(call) else at, stands)
            case Queue():
                return structure.all(place, row)
            case Ordered() if call.aggregate.name in EXTREMES:
                return structure.end(place, row, call.aggregate.name == known.MAX.name)
            case Ordered(linked=True):
                return structure.mean_distance(place, row, self._double(call))
            case Ordered():
                return structure.middle(place, row)
            case _:
                return self._of_slots(place, call, row)

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
        values = iter(evaluated(self._computed, columns, rows))
        return [
            array
            for each in self.arguments
            for array in (each.arrays(columns, rows) if isinstance(each, Order) else arrays_of(each, next(values)))
        ]

    @cached_property
    def _computed(self) -> tuple[Expr, ...]:
        return tuple(each for each in self.arguments if not isinstance(each, Order))

    def given_types(self) -> list[pa.DataType]:
        """The columns that keep the arguments of rows that will leave."""
        return [
            kind
            for argument in self.arguments
            for kind in (pa.int64() if isinstance(argument, Order) else arrow_of(argument), pa.bool_())
        ]

    def arranged(self, given: Sequence[np.ndarray], codes: Ints) -> list[np.ndarray]:
        """The arguments of all rows, with what else the loop is given of them; `codes`: the groups of the rows."""
        more = [each for each in self.held if isinstance(each, Different | Ordered)]
        return [*given, *(each.array(given[2 * each.at], codes) for each in more)]

    def slot_types(self) -> list[pa.DataType]:
        """The columns that keep the slots."""
        return [slot.type for slot in self.slots]

    def slots_in(self, groups: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The values of these columns, from groups of the row executor."""
        return [[slot.of(group) for group in groups] for slot in self.slots]

    def group(self, slots: Sequence[Any]) -> Group:
        """A group of the row executor, from a row of these columns; what is held of rows is not in it yet."""
        group = self.fold.start()
        for slot, value in zip(self.slots, slots, strict=True):
            slot.put(group, value)
        return group

    def hold(self, groups: Sequence[Group], held: pa.Table) -> None:
        """The rows that are held, with their group and arguments, and whole where that matters, enter such groups."""
        numbers = held.column("group").to_pylist()
        for call, begin in zip(self.calls, self._begins, strict=True):
            if self._structure(call) is None:
                continue
            if looked_up(call):
                enter_rows(call, begin, groups, zip(numbers, _rows(held), strict=True))
                continue
            at = self._at(call)
            values, there = (held.column(f"given{2 * (at or 0) + place}").to_pylist() for place in range(2))
            place = begin + len(call.aggregate.slots) if call.distinct else begin
            for row, (number, value, exists) in enumerate(zip(numbers, values, there, strict=True)):
                inside: Any = groups[number][place]
                if call.aggregate.at is not None and not (call.aggregate.skips and not exists):
                    inside[row] = value if exists else None
                elif exists and call.distinct:
                    enter_distinct(inside, value)
                elif exists:
                    inside.add(orderable(value))

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
            whole = call.type.kind in (Kind.INT, Kind.LONG) or looked_up(call)
            out += [np.zeros(rows, np.int64 if whole else bool if call.type.kind is Kind.BOOL else np.float64)]
            out += [np.zeros(rows, np.int64 if call.aggregate.listed else bool)]
        return out

    def results(self, room: Sequence[np.ndarray], rows: int) -> list[pa.Array]:
        """The results as columns."""
        made = zip(self.calls, room[0::2], room[1::2], strict=True)
        return [_result(call, value[:rows], ok[:rows]) for call, value, ok in made]

    def looked_up(self, results: Sequence[pa.Array], columns: Columns, codes: Ints) -> list[pa.Array]:
        """The results with those that are places of rows looked up in these; `codes`: their groups."""
        found = zip(self.calls, results, strict=True)
        return [looked_up_in(call, each, columns, codes) if looked_up(call) else each for call, each in found]

    def of_slots(self, slots: list[Any]) -> list[pa.Array]:
        """The results of a group of the row executor that holds no rows, as columns of one row."""
        found = zip(self.calls, self.fold.values(slots), self.results(self.room(1), 1), strict=True)
        return [nothing(call.type) if looked_up(call) else pa.array([value], each.type) for call, value, each in found]


def _rows(held: pa.Table) -> Iterator[Row]:
    """The rows that are held whole."""
    fields = [held.column(name).to_pylist() for name in held.column_names if name.startswith("field")]
    return (Row(number, values) for number, values in enumerate(zip(*fields, strict=True), 1))


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
    """The results of a call as a column; of lists where each begins, and how many values it has. What stood in an order is no
    zero with a sign."""
    if call.aggregate.listed:
        return pa.StructArray.from_arrays([pa.array(value), pa.array(known)], ["begin", "count"])
    value = value + 0.0 if call.aggregate.name in _SIGNLESS and value.dtype.kind == "f" else value
    return pa.array(value, _column(call), mask=None if known.all() else ~known)


def _column(call: AggregateCall) -> pa.DataType | None:
    """The type of a result: what is a value that was there has its type, a sum may be wider than its type says."""
    if looked_up(call):
        return pa.int64()
    itself = call.aggregate.name in _CAME or call.aggregate.at is not None
    return arrow(call.type) if itself and not _wide(call) else None


def _wide(call: AggregateCall) -> bool:
    """Whether it is one of some values that may be wider than their type says."""
    return call.aggregate.name in _CAME and call.type == INT and wide(call.args[0]) is not None
