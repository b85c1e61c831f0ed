"""Merging partial rows is a commutative monoid, for every aggregate there is: this is what lets tasks, batches, levels
and readers put a bucket together in any order.

For each entry of AGGREGATES, random events are folded in parts. Any order and any grouping of the merges gives what
one fold of all events gives; no rows at all is the neutral element. Quantiles are the same bytes, other sketches agree in
their estimates.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import datasketches
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.aggregation.cascade import Cascade
from rollup.aggregation.partials import Partials
from rollup.core.sketches import kll_fold, kll_merge, kll_quantile
from rollup.engine.aggregates import partials
from rollup.engine.aggregates.partials import Partial
from rollup.hosts.local import LocalHost
from rollup.plan.aggregates import AGGREGATES
from rollup.program import compile_app
from tests.aggregation.rig import shared_engine
from tests.profiles import examples

_CALLS = {"topk": "topk(x, 3)", "covariance": "covariance(x, y)", "corr": "corr(x, y)"}
_TEXTS = st.sampled_from([None, "a", "b", "é", "null", ""])
_NUMBERS = st.one_of(st.none(), st.integers(-1000, 1000).map(lambda n: n / 4))
_WHOLE = st.one_of(st.none(), st.integers(-(2**62), 2**62))
_VALUES = {"string": _TEXTS, "double": _NUMBERS, "long": _WHOLE, "int": st.one_of(st.none(), st.integers(-5, 5))}
_ARROW = {"string": pa.string(), "double": pa.float64(), "long": pa.int64(), "int": pa.int32()}
_NUMERIC = ("sum", "avg", "stddev", "variance", "quantiles", "covariance", "corr")
_ESTIMATES = {
    "AGG_HLL": "rollup_hll_estimate({})",
    "AGG_TOPK": "rollup_topk_items({}, 9)",
}
CASES = [
    pytest.param(name, kind) for name in AGGREGATES for kind in _VALUES if not (name in _NUMERIC and kind == "string")
]


def other(arrival: int) -> float | None:
    """The second argument of an event, for aggregates that have two."""
    return None if arrival % 5 == 3 else arrival * 7 % 11 / 4


class Law:
    """One aggregate over one type: how events fold and how rows merge."""

    def __init__(self, name: str, kind: str) -> None:
        call = _CALLS.get(name, name if "(" in name else f"{name}(x)")
        select = f"select {call} as v aggregate by ts every sec ... min;"
        app = f"define stream S (x {kind}, y double, ts long); define aggregation A from S {select}"
        self.aggregation = compile_app(app).aggregations["A"]
        self.partials, self.cascade, self.kind = Partials(self.aggregation), Cascade(self.aggregation), kind

    def fold(self, values: list[tuple[int, Any]], in_order: bool = False) -> pa.Table:
        """Partial rows of events given as (arrival, value); unless in order, their times repeat, so arrival decides."""
        arrivals = [arrival for arrival, _ in values]
        events = {
            "x": pa.array([value for _, value in values], _ARROW[self.kind]),
            "y": pa.array([other(arrival) for arrival in arrivals], pa.float64()),
            "ts": pa.array([arrival if in_order else arrival // 3 % 7 for arrival in arrivals], pa.int64()),
            "__arrival": pa.array(arrivals, pa.int64()),
            "__received": pa.array([0] * len(values), pa.int64()),
        }
        with shared_engine().tables({"events": pa.table(events)}):
            return (
                self.partials.fold(shared_engine(), "events")
                .select(self.aggregation.state_schema.names)
                .cast(self.aggregation.state_schema)
            )

    def merge(self, *parts: pa.Table) -> pa.Table:
        """The parts as one row."""
        return self.cascade.merge(shared_engine(), self.aggregation.levels[1], list(parts))

    def read(self, rows: pa.Table) -> list[dict[str, Any]]:
        """Rows to compare: sketches as their estimates."""
        columns = [f'"{name}"' for name in rows.schema.names]
        for prefix, estimate in _ESTIMATES.items():
            columns = [
                f"{estimate.format(name)} AS {name}" if name.startswith(f'"{prefix}_') else name for name in columns
            ]
        return shared_engine().run(f"SELECT {', '.join(columns)} FROM rows", rows=rows).to_pylist()


@cache
def law(name: str, kind: str) -> Law:
    """The law of an aggregate over a type, made once."""
    return Law(name, kind)


def same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> bool:
    """Equal rows; means and moments, which divide, nearly."""
    return len(found) == len(wanted) and all(
        _close(name, row[name], other[name]) for row, other in zip(found, wanted, strict=True) for name in row
    )


def _close(name: str, a: Any, b: Any) -> bool:
    if name.startswith(("AGG_MEAN_", "AGG_M2_", "AGG_COMOMENT_")) and a is not None and b is not None:
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)
    return bool(a == b)


@pytest.mark.parametrize(("name", "kind"), CASES)
@examples(4)
@given(data=st.data())
def test_any_order_and_grouping_of_merges_gives_the_fold_of_all_events(
    name: str, kind: str, data: st.DataObject
) -> None:
    values = list(enumerate(data.draw(st.lists(_VALUES[kind], min_size=1, max_size=12))))
    shares = [data.draw(st.integers(0, 2)) for _ in values]
    it = law(name, kind)
    a, b, c = (
        it.fold([value for value, own in zip(values, shares, strict=True) if own == share]) for share in range(3)
    )
    whole = it.read(it.merge(it.fold(values)))
    assert same(it.read(it.merge(it.merge(a, b), c)), whole), "merging in order gives the whole"
    assert same(it.read(it.merge(a, it.merge(b, c))), whole), "associative"
    assert same(it.read(it.merge(c, a, b)), whole), "commutative, and all at once"
    nothing = a.slice(0, 0)
    assert same(it.read(it.merge(nothing, it.fold(values), nothing)), whole), "no rows are the neutral element"


def test_every_partial_belongs_to_an_aggregate_so_that_none_escapes_the_laws() -> None:
    declared = {each.name for each in vars(partials).values() if isinstance(each, Partial)}
    assert {partial.name for entry in AGGREGATES.values() for partial in entry.kept.partials} == declared


@pytest.mark.parametrize("parts", [2, 7])
def test_a_merged_distinct_estimate_stays_within_its_bounds(parts: int) -> None:
    it, distinct = law("hll", "string"), 20_000
    rows = [it.fold([(n, str(n % distinct)) for n in range(part, 2 * distinct, parts)]) for part in range(parts)]
    estimate = it.read(it.merge(*rows))[0]["AGG_HLL_x"]
    assert abs(estimate - distinct) < 0.05 * distinct


@pytest.mark.parametrize("parts", [2, 7])
def test_merged_quantiles_are_the_same_bytes_and_stay_within_their_bounds(parts: int) -> None:
    it, size = law("quantiles", "double"), 20_000
    rows = [it.fold([(n, float(n)) for n in range(part, size, parts)]) for part in range(parts)]
    merged = it.merge(*rows)
    median = (
        shared_engine().run('SELECT rollup_kll_quantile("AGG_KLL_x", 0.5) AS q FROM rows', rows=merged)["q"][0].as_py()
    )
    assert abs(median - size / 2) < 0.004 * size / 2
    assert it.merge(*reversed(rows)).equals(merged)
    assert (
        it.merge(it.fold([(n, float(n)) for n in range(size)]))
        .select(["AGG_KLL_x"])
        .equals(merged.select(["AGG_KLL_x"]))
    )


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=600), st.floats(0, 1))
def test_a_quantile_is_a_value_of_that_rank_within_its_stated_error(values: list[float], rank: float) -> None:
    wanted = sorted(values)[min(int(rank * len(values)), len(values) - 1)]
    found = kll_quantile(kll_fold(values), rank)
    assert found is not None
    assert found == wanted or (len(set(values)) > 256 and abs(found - wanted) <= max(0.004 * abs(wanted), 5e-308))


def test_a_kll_sketch_of_before_is_read_and_merged() -> None:
    old = datasketches.kll_doubles_sketch(200)
    for n in range(100):
        old.update(float(n))
    assert kll_quantile(old.serialize(), 0.5) == 50.0
    assert kll_quantile(kll_merge([old.serialize(), kll_fold([200.0] * 100)]), 0.75) == 200.0


OVERFLOWN = (
    "define stream S (v long, at string); @OutOfOrder('correct') define aggregation A from S "
    "select sum(v) as t, avg(v) as a aggregate by at every sec ... min;"
)
FULL = [(2**63 - 1, "1970-01-01 00:00:00"), (1, "1970-01-01 00:00:00"), (1, "1970-01-01 00:00:05")]


@pytest.mark.parametrize(
    "at", ["1970-01-01 00:00:00", "1970-01-01 05:30:00 +05:30"], ids=["a correction", "another zone"]
)
def test_a_stored_sum_beyond_64_bits_stays_null_when_another_part_joins_it(at: str) -> None:
    host = LocalHost.of(OVERFLOWN)
    host.send("S", FULL)
    host.send("S", [(5, at)])
    answer = host.query("from A within '1970-01-01 00:00:00' per 'seconds' select t, a").to_pylist()
    assert answer == [{"t": None, "a": None}]
