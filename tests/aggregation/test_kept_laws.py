"""Each aggregate is one function: what rows of tables keep and merge, in SQL, has the value that windows' lines have."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.dialects import to_sql
from rollup.engine.expressions import Const, Expr, Field
from rollup.engine.folding import AggregateCall, Fold
from rollup.engine.row import Row
from rollup.engine.types import DOUBLE, LONG
from rollup.lang.siddhi.statements.semantics import TYPES
from rollup.plan.aggregates import AGGREGATES
from rollup.plan.types import Type
from tests.aggregation.rig import shared_engine
from tests.aggregation.test_merge_laws import law, other
from tests.profiles import examples

_NUMBERS = st.none() | st.integers(-8, 8).map(lambda n: n / 4)
_VALUES = {"double": _NUMBERS, "long": st.none() | st.integers(-9, 9), "string": st.sampled_from([None, "a", "b", "é"])}
_CONSTANTS: dict[str, list[str | None]] = {"topk": ["3"], "quantiles": [None, "0.5", "0.0", "1.0"]}
CASES = [
    pytest.param(name, constant, kind, id=f"{name}-{constant}-{kind}")
    for name, summary in AGGREGATES.items()
    for constant in _CONSTANTS.get(name, [None])
    for kind in _VALUES
    if not (summary.numeric and kind == "string")
]


def by_lines(name: str, constant: str | None, kind: str, values: list[Any]) -> Any:
    """The value as windows have it."""
    summary = AGGREGATES[name]
    if summary.constant is not None and constant is not None:
        summary = summary.constant
    given: tuple[Expr, ...] = (Field(0, 0, TYPES[Type(kind)]), Field(0, 1, DOUBLE))[: summary.kept.arguments]
    if constant is not None:
        given = (*given, Const(float(constant) if "." in constant else int(constant), LONG))
    fold = Fold([AggregateCall(summary.function, given)])
    group = fold.start()
    for place, value in enumerate(values):
        fold.enter(group, (Row(0, (value, other(place))),), None)
    return fold.values(group)[0]


def by_rows(name: str, constant: str | None, kind: str, values: list[Any], cut: int) -> Any:
    """The value as tables have it, of rows that were made of two parts."""
    it = law(name if constant is None else f"{name}(x, {constant})", kind)
    events = list(enumerate(values))
    rows = it.merge(*(it.fold(part, in_order=True) for part in (events[:cut], events[cut:])))
    (output,) = it.aggregation.outputs
    (found,) = shared_engine().run(f"SELECT {to_sql(output.final)} AS value FROM rows", rows=rows).to_pylist()
    return found["value"]


@pytest.mark.parametrize(("name", "constant", "kind"), CASES)
@examples(5)
@given(data=st.data())
def test_rows_of_tables_and_windows_have_the_same_value(
    name: str, constant: str | None, kind: str, data: st.DataObject
) -> None:
    values = data.draw(st.lists(_VALUES[kind], min_size=1, max_size=10))
    cut = data.draw(st.integers(0, len(values)))
    one, other = by_lines(name, constant, kind, values), by_rows(name, constant, kind, values, cut)
    if isinstance(one, float) and isinstance(other, float):
        assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    else:
        assert one == other
