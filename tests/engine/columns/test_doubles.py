"""Functions of doubles over columns: to the last bit what they give of each number."""

from __future__ import annotations

import math
import struct
from itertools import product

import pyarrow as pa
import pytest

from rollup.engine.columns.evaluate import evaluate
from rollup.engine.compiling import compiled
from rollup.engine.expressions import Call, Field
from rollup.engine.operators import LONG_MAX
from rollup.engine.row import Row
from rollup.engine.types import DOUBLE
from rollup.lang.epl.java import STATIC

NUMBERS = [
    0.0, -0.0, 0.5, -0.5, 1.5, -2.5, 0.49999999999999994, -0.3, 1e-300, 5e-324, 2.0**52 + 1, 2.0**53 - 1, -(2.0**53) + 1,
    2.0**63, -(2.0**63), float(LONG_MAX), 2.0**63 - 1024, 1e300, math.inf, -math.inf, math.nan, 123.456, -7.0, None,
]  # fmt: skip
FUNCTIONS = {
    f"{owner}.{name}": function
    for owner, functions in STATIC.items()
    for name, function in functions.items()
    if function[0].doubles is not None
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_doubles_gives_over_columns_what_it_gives_of_each(name: str) -> None:
    operator, result, wants = FUNCTIONS[name]
    rows = list(product(NUMBERS, repeat=len(wants.split())))
    fields = tuple(Field(0, place, DOUBLE) for place in range(len(rows[0])))
    call = Call(operator, fields, result([DOUBLE] * len(fields)))
    columns = [pa.array(column, pa.float64()) for column in zip(*rows, strict=True)]
    of_each = compiled(call)
    found = evaluate(call, columns, len(rows)).to_pylist()
    assert list(map(_bits, found)) == [_bits(of_each((Row(0, row),), (), None)) for row in rows]


def _bits(value: object) -> object:
    return struct.pack("<d", value) if isinstance(value, float) else value
