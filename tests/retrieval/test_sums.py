"""Sums of doubles in answers, over many stored buckets, beside `math.fsum` over the raw events."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollup
from tests.retrieval.trades import DAY, HOUR, SECOND, START, STORES, stored_in

APP = """define stream S (k string, v double, ts long);
    @BufferSize('3') @OutOfOrder('correct') define aggregation A from S
    select k, sum(v) as total, avg(v) as mean group by k aggregate by ts every sec ... year;"""
Event = tuple[str, float, int]
Rows = list[dict[str, Any]]


def events(hours: int) -> list[Event]:
    """A tenth an hour of one key, and prices of two others; a few come late."""
    draw = random.Random(11)
    tenths = [("tenths", 0.1, START + n * HOUR) for n in range(hours)]
    prices = [
        (
            draw.choice(("x", "y")),
            round(draw.uniform(0, 900), 2),
            START + draw.randrange(hours * HOUR // SECOND) * SECOND,
        )
        for _ in range(6 * hours)
    ]
    return sorted([*tenths, *prices], key=lambda event: event[2] + draw.randrange(20) * SECOND)


EVENTS = events(20 * 24)


@pytest.fixture(params=STORES)
def conf(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return stored_in(request, tmp_path, APP, EVENTS[:2000], EVENTS[2000:])


def by(event: Callable[[Event], Any]) -> dict[Any, list[float]]:
    """The values of the events by something that they have."""
    found = defaultdict[Any, list[float]](list)
    for each in EVENTS:
        found[event(each)].append(each[1])
    return found


def rounded_once(told: Any, values: list[float]) -> bool:
    """The sum of the events, or the double next to it: each stored sum is rounded, and they are added as one."""
    exact = math.fsum(values)
    return abs(told - exact) <= math.ulp(exact)


def test_a_question_over_many_buckets_adds_as_one_sum_of_their_events(conf: Path) -> None:
    whole, keyed = by(lambda e: 0), by(lambda e: e[0])
    assert any(not rounded_once(sum(sorted(values)), values) for values in keyed.values()), "plain sums are further off"

    def asked(text: str) -> Rows:
        return rollup.query(conf, text).to_pylist()

    found = asked("from A within '2018' per 'hours' select k, sum(total) as s, sum(total) / count() as a group by k")
    assert {row["k"] for row in found} == set(keyed) and all(rounded_once(r["s"], keyed[r["k"]]) for r in found)
    for text in ("per 'hours' select merge(total) as s", "per 'hours' select sum(total) as s"):
        assert rounded_once(asked(f"from A within '2018' {text}")[0]["s"], whole[0]), text
    for per, width in (("8 hours", 8 * HOUR), ("5 days", 5 * DAY)):
        spans = by(lambda e, w=width: (e[2] // w * w, e[0]))
        spans = {span: values for span, values in spans.items() if span[0] >= START}
        found = asked(f"from A within '2018' per '{per}' select AGG_TIMESTAMP, k, total, mean")
        assert {(row["AGG_TIMESTAMP"], row["k"]) for row in found} == set(spans)
        for row in found:
            values = spans[row["AGG_TIMESTAMP"], row["k"]]
            assert rounded_once(row["total"], values) and math.isclose(row["mean"], math.fsum(values) / len(values))
    for item in ("merge(total)", "sum(total)", "10 * avg(total)", "10 * merge(mean)"):
        text = (
            f"from A on k == 'tenths' within {START + DAY}L, {START + DAY + 10 * HOUR}L per 'hours' select {item} as s"
        )
        assert asked(text) == [{"s": 1.0}], item
