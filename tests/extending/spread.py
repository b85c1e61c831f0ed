"""A toy aggregate: the greatest value less the least one; its rows share their partials with those of `min` and `max`."""

from __future__ import annotations

from sqlglot import exp

from rollup.engine.aggregates import partials
from rollup.engine.aggregates.declaration import Aggregate, Kept
from rollup.engine.aggregates.known import MIN
from rollup.plan.aggregates import Gives, Summary

SPREAD = Summary(
    Aggregate(
        "spread",
        MIN.slots,
        MIN.enter,
        MIN.leave,
        "{values}[-1] - {values}[0] if {values} else None",
        lambda types: types[0],
        merge=MIN.merge,
        kept=Kept(
            (partials.MIN, partials.MAX),
            lambda find, constants: exp.Sub(this=find("max"), expression=find("min")),
        ),
    ),
    Gives.ARGUMENT,
    numeric=True,
)
