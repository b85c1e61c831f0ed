"""The laws of every aggregate: what has entered and left leaves no trace, and parts merge to the whole in any order.

Numbers are small whole ones, as doubles, so that sums are exact and equality is equality.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.engine.aggregates import known as aggregates
from rollup.engine.aggregates.declaration import Aggregate
from rollup.engine.expressions import Call, Const, Field
from rollup.engine.folding import AggregateCall, Fold, Group
from rollup.engine.row import Row
from rollup.engine.state import packed, unpacked
from rollup.engine.types import ANY, DOUBLE, LONG
from rollup.lang.siddhi.statements.semantics import FUNCTIONS
from tests.profiles import examples

ALL = [value for value in vars(aggregates).values() if isinstance(value, Aggregate)]
LEAVING = [
    each for each in ALL if each.leave is not None and each is not aggregates.LEAVING
]  # whose value that trace is
MERGING = [aggregate for aggregate in ALL if aggregate.merge is not None]
NUMBERS = st.lists(st.none() | st.integers(-8, 8).map(float), max_size=12)


def test_there_are_aggregates() -> None:
    assert len(ALL) > 12 and len(LEAVING) > 8 and len(MERGING) > 8


def fold_of(aggregate: Aggregate) -> Fold:
    field = Field(0, 0, DOUBLE)
    value = Call(FUNCTIONS["createSet"].operator, (field,), ANY) if aggregate is aggregates.UNION else field
    given = (value, Const(0.75, DOUBLE) if aggregate is aggregates.QUANTILE else Const(3, LONG))
    return Fold([AggregateCall(aggregate, given[: aggregate.arguments[1]])])


def folded(fold: Fold, values: list[float | None]) -> Group:
    group = fold.start()
    for value in values:
        fold.enter(group, (Row(0, (value,)),), None)
    return group


def same(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-6)  # moments are divided: equal to rounding
    return set(one) == set(two) if isinstance(one, tuple) else one == two  # a set's values stand as they came


@pytest.mark.parametrize("aggregate", LEAVING, ids=lambda a: a.name)
@examples(20)
@given(stay=NUMBERS, go=NUMBERS, order=st.randoms(use_true_random=False))
def test_what_left_leaves_no_trace(aggregate: Aggregate, stay: list[Any], go: list[Any], order: Any) -> None:
    fold = fold_of(aggregate)
    both = [*stay, *go]
    order.shuffle(both)
    group = folded(fold, both)
    for value in go:
        fold.leave(group, (Row(0, (value,)),), None)
    assert same(fold.values(group)[0], fold.values(folded(fold, stay))[0])


@pytest.mark.parametrize("aggregate", MERGING, ids=lambda a: a.name)
@examples(20)
@given(one=NUMBERS, two=NUMBERS)
def test_two_parts_merge_to_the_whole_in_either_order(aggregate: Aggregate, one: list[Any], two: list[Any]) -> None:
    fold = fold_of(aggregate)
    whole = fold.values(folded(fold, [*one, *two]))[0]
    for first, second in ((one, two), (two, one)):
        group = folded(fold, first)
        fold.merge(group, folded(fold, second))
        assert same(fold.values(group)[0], whole)


AMONG_NUMBERS = st.lists(st.sampled_from([math.nan, -math.inf, -0.5, 1.0, 1.0, 2.0, math.inf]), max_size=8)


@examples(50)
@given(stay=AMONG_NUMBERS, go=AMONG_NUMBERS, order=st.randoms(use_true_random=False))
def test_nan_is_above_all_numbers_and_leaves_as_they_do(stay: list[float], go: list[float], order: Any) -> None:
    both = [*stay, *go]
    order.shuffle(both)
    left, ever = (sorted(values, key=lambda value: (math.isnan(value), value)) for values in (stay, both))
    expected = [
        (aggregates.MIN, left[:1]),
        (aggregates.MAX, left[-1:]),
        (aggregates.MINEVER, ever[:1]),
        (aggregates.MAXEVER, ever[-1:]),
        (aggregates.MEDIAN, left[len(left) // 2 :][:1]),
    ]
    for aggregate, values in expected:
        fold = fold_of(aggregate)
        group = unpacked(packed(folded(fold, both)))
        for value in go if aggregate.leave is not None else ():
            fold.leave(group, (Row(0, (value + 0.0,)),), None)
        if aggregate is not aggregates.MEDIAN or len(left) % 2:
            assert repr(fold.values(group)[0]) == repr(values[0] if values else None), aggregate.name


ALIKE = st.sampled_from([[0.0, -0.0], [Decimal("1.0"), Decimal("1.00"), Decimal(1)]]).flatmap(
    lambda equal: st.tuples(*[st.lists(st.sampled_from(equal), max_size=6)] * 2)
)


@examples(50)
@given(found=ALIKE, order=st.randoms(use_true_random=False))
def test_of_equal_values_the_one_that_leaves_is_not_shown(found: Any, order: Any) -> None:
    """Equal decimals differ in their digits. Of the two zeros the one without a sign stands for both."""
    stay, go = found
    both = [*stay, *go]
    order.shuffle(both)
    for aggregate in (aggregates.MIN, aggregates.MAX):
        fold = fold_of(aggregate)
        group = unpacked(packed(folded(fold, both)))
        for value in go:
            fold.leave(group, (Row(0, (value,)),), None)
        shown = repr(fold.values(group)[0])
        assert shown in {repr(value + 0.0 if isinstance(value, float) else value) for value in stay or [None]}


COUNTING = (aggregates.DISTINCT_COUNT, aggregates.TOPK, aggregates.CMS, aggregates.HLL)


@pytest.mark.parametrize("aggregate", COUNTING, ids=lambda a: a.name)
def test_what_is_no_number_is_one_value_wherever_it_comes_from(aggregate: Aggregate) -> None:
    fold = fold_of(aggregate)
    group = folded(fold, [float("nan"), float("nan"), 1.0])
    counted = {"topk": '[["nan", 2], ["1.0", 1]]'}
    assert fold.values(group)[0] == counted.get(aggregate.name, 2)
    if aggregate.leave is not None:
        for _ in range(2):
            fold.leave(group, (Row(0, (float("nan"),)),), None)
        assert fold.values(group)[0] == {"topk": '[["1.0", 1]]'}.get(aggregate.name, 1)
