"""What loops keep of a group from step to step: the slots of declarations, as arrays with one element a group.

A slot of the *ever* functions may be None, so it is two arrays: the value, and whether there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa

from rollup.engine.aggregates import known
from rollup.engine.folding import AggregateCall, Group
from rollup.engine.reals import orderable

_BETTER = {
    known.MINEVER.name: "{x} < {y} or {y} != {y}",
    known.MAXEVER.name: "{x} > {y} or {x} != {x}",
    known.MIN.name: "{x} < {y} or {y} != {y}",
    known.MAX.name: "{x} >= {y} or {x} != {x}",
}
"""When a value `x` takes the place of `y`; NaN is above all numbers."""
ENDS = {known.MIN.name: 0, known.MAX.name: -1}
"""Where, among all values in order, that of a function is."""
EVER = (known.MINEVER.name, known.MAXEVER.name, known.FIRST_EVER.name, known.LAST_EVER.name)
"""The functions of all that ever came whose value is one that came."""


@dataclass(frozen=True)
class Slot:
    """An array: its name, its start, its type; the `place` in a group of the row executor that it is of, and what of it; where
    values in order are there, which `end` of them.
    """

    name: str
    start: str
    type: pa.DataType
    place: int
    part: Literal["all", "value", "known"] = "all"
    end: int | None = None

    @cached_property
    def dtype(self) -> Any:
        """The type in NumPy; each start is its zero."""
        return self.type.to_pandas_dtype()

    def put(self, group: Group, value: Any) -> None:
        """The element goes into a group; whether there is one comes behind the value."""
        if self.part != "known":
            if self.end is None:
                group[self.place] = value
            else:
                group[self.place].add(orderable(value))
        elif not value:
            if self.end is None:
                group[self.place] = None
            else:
                group[self.place].clear()


def slots_of(call: int, aggregate: AggregateCall, begin: int, double: bool) -> list[Slot]:
    """The slots of a call whose own begin there in a group; `double`: whether it is of doubles."""
    number, found = pa.float64() if double else pa.int64(), list[Slot]()
    for place, (name, start) in enumerate(aggregate.aggregate.slots.items(), begin):
        array, end = f"g{call}_{name}", ENDS.get(aggregate.aggregate.name)
        if start == "None" or end is not None:
            found += [
                Slot(array, "0", number, place, "value", end),
                Slot(f"g{call}_known", "False", pa.bool_(), place, "known", end),
            ]
        elif start == "False":
            found.append(Slot(array, start, pa.bool_(), place))
        else:
            found.append(Slot(array, start, pa.int64() if name == "n" else number, place))
    return found


def ever(call: AggregateCall, place: int, x: str, there: str) -> list[str]:
    """The lines by which a value enters one of the functions of all that ever came; `there`: whether it is not null."""
    name, skips = call.aggregate.name, call.aggregate.skips
    value, exists, seen = (f"g{place}_{slot}[k]" for slot in ("value", "known", "seen"))
    if name in _BETTER:
        best = f"g{place}_{next(iter(call.aggregate.slots))}[k]"
        better = _BETTER[name].format(x=x, y=best)
        return [f"if {there} and (not {exists} or {better}):", f"    {best}, {exists} = {x}, True"]
    if name == known.LAST_EVER.name:
        return (
            [f"if {there}:", f"    {value}, {exists} = {x}, True"] if skips else [f"{value}, {exists} = {x}, {there}"]
        )
    comes = f"if {there} and not {seen}:" if skips else f"if not {seen}:"
    return [comes, f"    {value}, {exists}, {seen} = {x}, {there}, True"]
