"""Aggregate calls as one generated fold: a group's state is a list of slots, one function each to enter, leave and read.

>>> from rollup.engine.aggregates.known import AVG, COUNT
>>> from rollup.engine.expressions import Field
>>> from rollup.engine.row import Row
>>> from rollup.engine.types import DOUBLE
>>> fold = Fold([AggregateCall(COUNT), AggregateCall(AVG, (Field(0, 0, DOUBLE),))])
>>> group = fold.start()
>>> for value in (1.0, None, 4.0):
...     fold.enter(group, (Row(1, (value,)),), None)
>>> fold.values(group)
(3, 2.5)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from rollup.core.errors import PlanError
from rollup.engine.aggregates.declaration import Aggregate
from rollup.engine.aggregates.helpers import HELPERS
from rollup.engine.compiling import Source
from rollup.engine.expressions import Const, Expr
from rollup.engine.row import comparable
from rollup.engine.types import DataType

Direction = Literal["enter", "leave"]
Group = list[Any]
"""The slots of one group, call after call."""


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate over its arguments; `distinct` counts each value once while it is in, `where` says which rows enter."""

    aggregate: Aggregate
    args: tuple[Expr, ...] = ()
    distinct: bool = False
    where: Expr | None = None

    @property
    def type(self) -> DataType:
        """The type of the value. Raises PlanError for arguments that do not fit."""
        least, most = self.aggregate.arguments
        if not least <= len(self.args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise PlanError(f"{self.aggregate.name} takes {wanted} argument(s), not {len(self.args)}")
        try:
            return self.aggregate.result([argument.type for argument in self.args])
        except PlanError as problem:
            raise PlanError(f"{self.aggregate.name} {problem.message}", hint=problem.hint) from None


class Fold:
    """The generated functions of some aggregate calls; a group is the list that `start` gives."""

    def __init__(self, calls: Sequence[AggregateCall]) -> None:
        self.calls = tuple(calls)
        self._places: list[dict[str, int]] = []
        starts, width = list[str](), 0
        for call in self.calls:
            slots = {**call.aggregate.slots, **({"seen_values": "{}"} if call.distinct else {})}
            self._places.append({name: width + place for place, name in enumerate(slots)})
            starts += [self._line(len(self._places) - 1, start) for start in slots.values()]
            width += len(slots)
        source = self.source()
        source.line(f"return [{', '.join(starts)}]")
        self.start: Callable[[], Group] = source.function("start", "")

    @cached_property
    def enter(self) -> Callable[[Group, Any, Any], None]:
        """`enter(group, rows, e)`: the rows of the inputs enter."""
        return self._change("enter")

    @cached_property
    def leave(self) -> Callable[[Group, Any, Any], None]:
        """`leave(group, rows, e)`: rows that had entered leave; aggregates whose values never leave are left as they are."""
        return self._change("leave")

    @cached_property
    def values(self) -> Callable[[Group], tuple[Any, ...]]:
        """The values of the calls."""
        source = self.source()
        source.line(f"return ({''.join(f'({self.value(place)}), ' for place in range(len(self.calls)))})")
        return source.function("values", "g")

    def value(self, place: int) -> str:
        """The text of a call's value over the slots `g`."""
        return self._line(place, self.calls[place].aggregate.value).format(**self._slots(place))

    @cached_property
    def beyond(self) -> Callable[[Group], int] | None:
        """How many of the values are null since 64 bits do not hold them; None where none can be."""
        found = [
            self._line(place, call.aggregate.beyond).format(**self._slots(place))
            for place, call in enumerate(self.calls)
            if call.aggregate.beyond is not None
        ]
        if not found:
            return None
        source = self.source()
        source.line(f"return {' + '.join(f'({text})' for text in found)}")
        return source.function("beyond", "g")

    @cached_property
    def merge(self) -> Callable[[Group, Group], None]:
        """`merge(group, other)`: another state of the same calls is added to the group."""
        source = self.source()
        for place, call in enumerate(self.calls):
            if call.aggregate.merge is None or call.distinct:
                raise PlanError(f"{call.aggregate.name} of two parts cannot be put together")
            other = {f"o_{name}": f"h[{index}]" for name, index in self._places[place].items()}
            source.line(call.aggregate.merge.format(**self._slots(place), **other))
        source.line("return None")
        return source.function("merge", "g, h")

    def source(self, slots: Sequence[str] | None = None, rows: Mapping[int, str] | None = None) -> Source:
        """Source that finds the functions which the lines of the declarations call."""
        source = Source(rows, slots)
        source.objects.update(HELPERS, enter_distinct=enter_distinct, leave_distinct=leave_distinct)
        for place, call in enumerate(self.calls):
            source.objects.update({f"c{place}_{name}": value for name, value in call.aggregate.objects.items()})
        return source

    def _line(self, place: int, text: str) -> str:
        """A line of a declaration; names of its own objects are told apart from those of other calls."""
        for name in self.calls[place].aggregate.objects:
            text = text.replace(name, f"c{place}_{name}")
        return text

    def _slots(self, place: int) -> dict[str, str]:
        return {name: f"g[{index}]" for name, index in self._places[place].items()}

    def _change(self, name: Direction) -> Callable[[Group, Any, Any], None]:
        source = self.source()
        source.line("s = ()")
        self.changes(source, name)
        source.line("return None")
        return source.function(name, "g, r, e")

    def changes(self, source: Source, direction: Direction) -> None:
        """The lines by which the rows `r` enter the slots `g` or leave them."""
        for place, call in enumerate(self.calls):
            text = call.aggregate.enter if direction == "enter" else call.aggregate.leave
            if text is not None:
                self._guarded(source, place, call, text, direction)

    def _guarded(self, source: Source, place: int, call: AggregateCall, text: str, direction: str) -> None:
        if call.where is not None:
            test = source.emit(call.where)
            source.block(f"if {test} is True:", lambda: self._taken(source, place, call, text, direction))
        else:
            self._taken(source, place, call, text, direction)

    def _taken(self, source: Source, place: int, call: AggregateCall, text: str, direction: str) -> None:
        slots = self._slots(place)
        given = dict(zip(("x", "y", "z"), [source.emit(argument) for argument in call.args], strict=False))
        asked = [value for value, argument in zip(given.values(), call.args, strict=False) if not _certain(argument)]
        conditions = [f"{value} is not None" for value in asked] if call.aggregate.skips else []
        if call.distinct:
            conditions.append(f"{direction}_distinct({slots['seen_values']}, {given['x']})")
        body = self._line(place, text).format(**slots, **given)
        if conditions:
            source.block(f"if {' and '.join(conditions)}:", lambda: source.line(body))
        else:
            source.line(body)


def enter_distinct(counts: dict[Any, int], value: Any) -> bool:
    """Count a value that comes; whether it is the first of its kind."""
    key = comparable(value)
    counts[key] = counts.get(key, 0) + 1
    return counts[key] == 1


def leave_distinct(counts: dict[Any, int], value: Any) -> bool:
    """Count a value that leaves; whether it was the last of its kind."""
    key = comparable(value)
    counts[key] = counts.get(key, 0) - 1
    if counts[key] > 0:
        return False
    del counts[key]
    return True


def _certain(argument: Expr) -> bool:
    """Whether an argument is never null."""
    return isinstance(argument, Const) and argument.value is not None
