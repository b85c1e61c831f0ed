"""Functions of lists that are parts of one list: what is asked of elements is worked out once an element, whatever lists it is in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.elements import Elements, columns_of
from rollup.engine.columns.loops import loop
from rollup.engine.columns.numbering import ranked, told_apart, valid
from rollup.engine.columns.seeking import parts, sought
from rollup.engine.enumerations import Arranging, Enumerating, Ranking, Walk
from rollup.engine.expressions import (
    Ask,
    Call,
    Closure,
    Coalesce,
    Const,
    Expr,
    Field,
    Local,
    Now,
    RowOf,
    Slot,
    Variable,
    inside,
    walk,
)
from rollup.engine.operators import Operator
from rollup.engine.types import ANY, DataType, Kind

Evaluate = Callable[[Expr, Sequence[pa.Array], int], pa.Array]
_OUTSIDE = (Field, RowOf, Slot, Variable, Now, Ask)
_TEMPLATE = """
def core(begin, size, there, counts, numbers, values, known):
    for i in range(len(begin)):
        if not there[i]:
            continue
        n, total, found = 0, {zero}, -1
        for j in range({order}):
            if counts[j]:
                x = numbers[j]
                {each}
        known[i] = {known}
        if known[i]:
            values[i] = {value}
"""


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
    steps, kind = _walk(call), call.type.kind
    found = _elements(call.args[0], columns, evaluate)
    counts, numbers = _counting(call, found, evaluate)
    dtype = np.int64 if steps.finds else {Kind.BOOL: bool, Kind.DOUBLE: np.float64}.get(kind, np.int64)
    values, known = np.zeros(len(found.begin), dtype), np.zeros(len(found.begin), bool)
    loop(_text(steps, numbers.dtype.kind == "f"))(
        found.begin, found.size, found.there, found.count & counts, numbers, values, known
    )
    made = pa.array(values, mask=None if known.all() else ~known)
    return _of_row(found.columns, made, call.type) if steps.finds else made


def arranged(call: Call, columns: Sequence[pa.Array], evaluate: Evaluate) -> pa.ListViewArray:
    """The lists that a function makes of lists."""
    return _listed(call, _elements(call, columns, evaluate))


def _listed(call: Call, found: Elements) -> pa.ListViewArray:
    assert call.type.element is not None
    row = call.type.element.row
    return found.lists(None if row is None else list(row.fields))


def asked(call: Call, columns: Sequence[pa.Array], evaluate: Evaluate) -> pa.Array:
    """The answers to a question to lists that are in an order."""
    assert isinstance(call.op, Ranking)
    found, keys, place, many, known = _sought(call, call.op, columns, evaluate)
    missing = None if known.all() else ~known
    match call.op.gives:
        case "events":
            return _listed(call, parts(call.op, found, place, many, known))
        case "there":
            return pa.array(many > 0, mask=missing)
        case "count" | "keys":
            return pa.array(many, pa.int32(), mask=missing)
        case "key":
            return keys.take(pa.array(place, mask=~(known & (many > 0))))
        case _:
            return _of_row(found.columns, pa.array(place, mask=~(known & (many > 0))), call.type)


def _sought(call: Call, op: Ranking, columns: Sequence[pa.Array], evaluate: Evaluate) -> Any:
    """The elements of the lists, their keys, and what is found of them."""
    found = _elements(call.args[0], columns, evaluate)
    keys = evaluate(op.key, found.columns, len(found.count))
    given = [evaluate(each, columns, len(found.begin)) for each in call.args[1:]]
    return found, keys, *sought(op, found, keys, given)


def _of_row(columns: Sequence[pa.Array], places: pa.Array, kind: DataType) -> pa.Array:
    """The elements at some places, rows or values."""
    taken = [column.take(places) for column in columns]
    if kind.row is None:
        return taken[0]
    return pa.StructArray.from_arrays(taken, list(kind.row.fields), mask=places.is_null())


@cache
def _text(steps: Walk, doubles: bool) -> str:
    mean = "total / n" if doubles else "mean_of_whole(total, n)"
    value = steps.value.replace("mean(total, n)", mean)
    order = "begin[i] + size[i] - 1, begin[i] - 1, -1" if steps.backward else "begin[i], begin[i] + size[i]"
    zero = "0.0" if doubles else "0"
    return _TEMPLATE.format(zero=zero, order=order, each=steps.each, known=steps.known, value=value)


def _walk(call: Call) -> Walk:
    assert isinstance(call.op, Enumerating)
    return call.op.walk


def _elements(expr: Expr, columns: Sequence[pa.Array], evaluate: Evaluate) -> Elements:
    """The elements of what a function is called of: of lists that a column is, or of those that are made of such."""
    if isinstance(expr, Field):
        return Elements.of(columns[expr.index])
    if isinstance(expr, Coalesce):  # with a list of no elements
        found = _elements(expr.args[0], columns, evaluate)
        return replace(found, there=np.ones(len(found.there), bool))
    assert isinstance(expr, Call)
    if isinstance(expr.op, Ranking):
        found, _, *where = _sought(expr, expr.op, columns, evaluate)
        return parts(expr.op, found, *where)
    found = _elements(expr.args[0], columns, evaluate)
    if isinstance(expr.op, Arranging):
        return _arranged(expr, expr.op, found, evaluate)
    return found.counting(_counting(expr, found, evaluate)[0])


def _arranged(call: Call, op: Arranging, found: Elements, evaluate: Evaluate) -> Elements:
    """The elements as a function arranges them."""
    given = call.args[1:]
    if isinstance(count := given[0] if given else None, Const):
        return found.arranged(op.way, limit=max(count.value, 0))
    made = [] if count is None else [evaluate(_body(count), found.columns, len(found.count))]
    values = made or [evaluate(Field(0, place, ANY), found.columns, 0) for place in range(len(found.columns))]
    match op.way:
        case "all":
            return found
        case "map" | "map all":
            mapped = replace(found, columns=columns_of(made[0]) if made else found.columns)
            return mapped.counting(valid(made[0])) if op.way == "map" else mapped
        case "take while" | "take last while":
            truth = pc.fill_null(made[0], True).to_numpy(zero_copy_only=False)
            return found.arranged(op.way, truth.astype(np.int64))
        case "distinct":
            codes = told_apart(values, np.zeros(len(found.count), np.int64))
            return found.arranged("distinct", codes, int(codes.max(initial=-1)) + 1)
        case "order" | "order down":
            (ranks,) = map(ranked, values)
            return found.arranged("order", ~ranks if op.way == "order down" else ranks)
        case way:
            return found.arranged(way)


def _body(function: Expr) -> Expr:
    body = over_element(function)
    assert body is not None
    return body


def _counting(call: Call, found: Elements, evaluate: Evaluate) -> tuple[np.ndarray, np.ndarray]:
    """Which elements count, and the number of each, where that matters."""
    rows, steps = len(found.count), _walk(call)
    function = over_element(call.args[1]) if len(call.args) > 1 else None
    if function is None and steps.counts != "if a number":
        return found.count, found.count
    read = evaluate(Field(0, 0, call.type) if function is None else function, found.columns, rows)
    if steps.counts != "if a number":
        truth = pc.fill_null(read, steps.counts == "unless false").to_numpy(zero_copy_only=False)
        return ~truth if steps.counts == "unless true" else truth, found.count
    if pa.types.is_string(read.type):
        return valid(read), ranked(read)
    kind = np.float64 if pa.types.is_floating(read.type) else np.int64
    numbers = pc.fill_null(read, pa.scalar(0, read.type)).to_numpy(zero_copy_only=False).astype(kind, copy=False)
    return valid(read), numbers
