"""Parts that several expressions share, computed once, against each expression computed alone."""

from __future__ import annotations

import struct

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from rollup.engine import operators as op
from rollup.engine.columns.cores.sharing import evaluated
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.expressions import All, Call, Case, Coalesce, Const, Expr, Field
from rollup.engine.types import BOOL, DOUBLE

X, Y = Field(0, 0, DOUBLE), Field(0, 1, DOUBLE)
PLUS, MINUS = Const(0.0, DOUBLE), Const(-0.0, DOUBLE)


def _more(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    both = st.tuples(inner, inner)
    less = both.map(lambda args: Call(op.LESS, args, BOOL))
    return st.one_of(
        st.tuples(st.sampled_from([op.MULTIPLY, op.SUBTRACT, op.DIVIDE_IEEE]), both).map(
            lambda found: Call(*found, DOUBLE)
        ),
        both.map(lambda args: Coalesce(args, DOUBLE)),
        st.tuples(less, less, inner, inner).map(
            lambda found: Case(((All((found[0], found[1])), found[2]),), found[3], DOUBLE)
        ),
    )


trees = st.recursive(st.sampled_from([X, Y, PLUS, MINUS, Const(2.0, DOUBLE)]), _more, max_leaves=12)
numbers = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, -3.0, 1e300]))
UNLIKE = tuple(Call(op.MULTIPLY, (X, zero), DOUBLE) for zero in (PLUS, MINUS, PLUS, MINUS))


@given(found=st.lists(trees, min_size=1, max_size=5), rows=st.lists(st.tuples(numbers, numbers), max_size=4))
@example(found=list(UNLIKE), rows=[(1.5, None)])
def test_what_is_shared_has_the_values_of_each_alone(found: list[Expr], rows: list[tuple[float | None, float | None]]):
    columns = [pa.array([row[place] for row in rows], pa.float64()) for place in range(2)]
    alone = [_bits(evaluate(each, columns, len(rows))) for each in found]
    assert [_bits(each) for each in evaluated((*found, *found), columns, len(rows))] == alone * 2


def test_a_constant_that_is_a_list_is_no_fault():
    inside = Call(op.IS_NULL, (Const([1.0], DOUBLE),), BOOL)
    assert [each.to_pylist() for each in evaluated((inside, X), [pa.array([1.0])], 1)] == [[False], [1.0]]


def _bits(values: pa.Array) -> list[bytes | None]:
    return [None if each is None else struct.pack("<d", each) for each in values.to_pylist()]
