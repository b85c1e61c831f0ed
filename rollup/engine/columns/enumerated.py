"""Functions of lists that are parts of one list: what is asked of elements is worked out once an element, whatever lists it is in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.loops import loop
from rollup.engine.enumerations import Enumerating, Walk
from rollup.engine.expressions import Ask, Call, Closure, Expr, Field, Local, Now, RowOf, Slot, Variable, inside, walk
from rollup.engine.operators import Operator
from rollup.engine.types import Kind

Evaluate = Callable[[Expr, Sequence[pa.Array], int], pa.Array]
_OUTSIDE = (Field, RowOf, Slot, Variable, Now, Ask)
_TEMPLATE = """
def core(begin, size, there, counts, numbers, values, known):
    for i in range(len(begin)):
        if not there[i]:
            continue
        n, total = 0, {zero}
        for j in range(begin[i], begin[i] + size[i]):
            if counts[j]:
                x = numbers[j]
                {each}
        known[i] = {known}
        if known[i]:
            values[i] = {value}
"""


@dataclass(frozen=True)
class Elements:
    """Lists as parts of one list: its `columns`, those of rows or one of values; which of its elements `count`."""

    lists: pa.ListViewArray
    columns: Sequence[pa.Array]
    count: np.ndarray

    @classmethod
    def of(cls, lists: pa.ListViewArray) -> Elements:
        """Those of lists all of whose elements count."""
        values = lists.values
        rows = pa.types.is_struct(values.type)
        columns = [values.field(place) for place in range(values.type.num_fields)] if rows else [values]
        return cls(lists, columns, np.ones(len(values), bool))


def over_element(function: Expr) -> Expr | None:
    """The body of a function of an element over the columns of `Elements`; None where it reads more than the element."""
    if not isinstance(function, Closure) or len(function.parameters) != 1:
        return None
    body = _over_columns(function.body, function.parameters[0])
    read = any(isinstance(each, _OUTSIDE) for each in walk(function.body))
    return None if read or any(isinstance(each, Local | Closure) for each in walk(body)) else body


def _over_columns(expr: Expr, parameter: str) -> Expr:
    match expr:
        case Call(op=Operator(field=int(place)), args=(Local(name=name),)) if name == parameter:
            return Field(0, place, expr.type)
        case Local(name=name) if name == parameter and expr.type.row is None:
            return Field(0, 0, expr.type)
        case _:
            return inside(expr, lambda each: _over_columns(each, parameter))


def enumerated(call: Call, columns: Sequence[pa.Array], evaluate: Evaluate) -> pa.Array:
    """The values of such a function for each list."""
    found, steps, kind = _elements(call.args[0], columns, evaluate), _walk(call), call.type.kind
    counts, numbers = _counting(call, found, evaluate)
    lists, rows = found.lists, len(found.lists)
    values = np.zeros(rows, {Kind.BOOL: bool, Kind.DOUBLE: np.float64}.get(kind, np.int64))
    known = np.zeros(rows, bool)
    there = lists.is_valid().to_numpy(zero_copy_only=False)
    loop(_text(steps, numbers.dtype.kind == "f"))(
        lists.offsets.to_numpy(), lists.sizes.to_numpy(), there, found.count & counts, numbers, values, known
    )
    return pa.array(values, mask=None if known.all() else ~known)


@cache
def _text(steps: Walk, doubles: bool) -> str:
    mean = "total / n" if doubles else "mean_of_whole(total, n)"
    value = steps.value.replace("mean(total, n)", mean)
    return _TEMPLATE.format(zero="0.0" if doubles else "0", each=steps.each, known=steps.known, value=value)


def _walk(call: Call) -> Walk:
    assert isinstance(call.op, Enumerating)
    return call.op.walk


def _elements(expr: Expr, columns: Sequence[pa.Array], evaluate: Evaluate) -> Elements:
    """The elements of what a function is called of: of lists that a column is, or of those that are kept of such."""
    if isinstance(expr, Field):
        return Elements.of(columns[expr.index])
    assert isinstance(expr, Call)
    found = _elements(expr.args[0], columns, evaluate)
    return replace(found, count=found.count & _counting(expr, found, evaluate)[0])


def _counting(call: Call, found: Elements, evaluate: Evaluate) -> tuple[np.ndarray, np.ndarray]:
    """Which elements count, and the number of each, where that matters."""
    rows, counts = len(found.count), _walk(call).counts
    function = over_element(call.args[1]) if len(call.args) > 1 else None
    if function is None and counts != "if a number":
        return found.count, found.count
    read = evaluate(Field(0, 0, call.type) if function is None else function, found.columns, rows)
    if counts != "if a number":
        truth = pc.fill_null(read, counts == "unless false").to_numpy(zero_copy_only=False)
        return ~truth if counts == "unless true" else truth, found.count
    kind = np.float64 if pa.types.is_floating(read.type) else np.int64
    numbers = pc.fill_null(read, pa.scalar(0, read.type)).to_numpy(zero_copy_only=False).astype(kind, copy=False)
    return read.is_valid().to_numpy(zero_copy_only=False), numbers
