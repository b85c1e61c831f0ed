"""A toy aggregate: the greatest value less the least one; it shares its partials with `min` and `max`."""

from __future__ import annotations

from sqlglot import exp

from rollup.plan.aggregates import Aggregate

SPREAD = Aggregate(
    ("AGG_MIN", "AGG_MAX"),
    lambda name, kind: kind,
    lambda columns, extra: exp.Sub(this=columns("AGG_MAX"), expression=columns("AGG_MIN")),
)
