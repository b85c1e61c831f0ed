"""Functions of numbers over columns: to the last bit what they give of each."""

from __future__ import annotations

import math
import struct
from itertools import product

import pyarrow as pa
import pytest

from rollup.engine import operators as op
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.compiling import compiled
from rollup.engine.expressions import Call, Const, Expr, Field
from rollup.engine.operators import GREATEST, INT_MAX, INT_MIN, LEAST, LONG_MAX, LONG_MIN, Operator
from rollup.engine.row import Row
from rollup.engine.types import BOOL, DOUBLE, INT, LONG, DataType, Kind
from rollup.lang.epl.java import STATIC
from rollup.lang.epl.semantics import BITS, CASTS, REMAINDER

NUMBERS = [
    0.0, -0.0, 0.5, -0.5, 1.5, -2.5, 0.49999999999999994, -0.3, 1e-300, 5e-324, 2.0**52 + 1, 2.0**53 - 1, -(2.0**53) + 1,
    2.0**63, -(2.0**63), float(LONG_MAX), 2.0**63 - 1024, 1e300, math.inf, -math.inf, math.nan, 123.456, -7.0, None,
    2.0**31, 2.0**31 - 0.5, -(2.0**31) - 0.5, -(2.0**31) - 1,
]  # fmt: skip
FUNCTIONS = {
    f"{owner}.{name}": function
    for owner, functions in STATIC.items()
    for name, function in functions.items()
    if function[0] is not op.ADD and (function[0].doubles or function[0].numpy)
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_doubles_gives_over_columns_what_it_gives_of_each(name: str) -> None:
    operator, result, wants = FUNCTIONS[name]
    rows = list(product(NUMBERS, repeat=len(wants.split())))
    fields = tuple(Field(0, place, DOUBLE) for place in range(len(rows[0])))
    call = Call(operator, fields, result([DOUBLE] * len(fields)))
    _same(call, rows, pa.float64())


OF_DOUBLES = [
    (REMAINDER, DOUBLE),
    (LEAST, DOUBLE),
    (GREATEST, DOUBLE),
    (CASTS[Kind.INT], INT),
    (CASTS[Kind.LONG], LONG),
]


@pytest.mark.parametrize(("operator", "kind"), OF_DOUBLES, ids=lambda each: getattr(each, "name", None))
def test_an_operator_of_doubles_does_too(operator: Operator, kind: DataType) -> None:
    arity = 1 if operator.name.startswith("to ") else 2
    fields = tuple(Field(0, place, DOUBLE) for place in range(arity))
    _same(Call(operator, fields, kind), list(product(NUMBERS, repeat=arity)), pa.float64())


WHOLE = {INT: [0, 1, -1, 7, -8, INT_MAX, INT_MIN, None], LONG: [0, 1, -1, 7, LONG_MAX, LONG_MIN, INT_MAX + 1, None]}


@pytest.mark.parametrize("kind", WHOLE, ids=str)
@pytest.mark.parametrize("operator", [*BITS.values(), REMAINDER, LEAST, GREATEST], ids=lambda each: each.name)
def test_so_does_one_of_whole_numbers(operator: Operator, kind: DataType) -> None:
    fields = (Field(0, 0, kind), Field(0, 1, kind))
    _same(Call(operator, fields, kind), list(product(WHOLE[kind], repeat=2)), kind.arrow)


@pytest.mark.parametrize("kind", WHOLE, ids=str)
def test_a_whole_number_is_looked_for_among_literals(kind: DataType) -> None:
    literals = tuple(Const(value, LONG) for value in (7, LONG_MAX, -1))
    _same(Call(op.MEMBER, (Field(0, 0, kind), *literals), BOOL), [(each,) for each in WHOLE[kind]], kind.arrow)


def _same(call: Expr, rows: list[tuple[float | None, ...]], kind: pa.DataType | None) -> None:
    columns = [pa.array(column, kind) for column in zip(*rows, strict=True)]
    of_each = compiled(call)
    found = evaluate(call, columns, len(rows)).to_pylist()
    assert list(map(_bits, found)) == [_bits(of_each((Row(0, row),), (), None)) for row in rows]


def _bits(value: object) -> object:
    return struct.pack("<d", value) if isinstance(value, float) else (type(value), value)
