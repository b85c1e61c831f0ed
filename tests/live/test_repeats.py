"""Repeats that begin again, against answers by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from rollup.live import Engine

SCHEMA = "create schema S(price double, volume int);"
TYPES = pa.schema([("price", pa.float64()), ("volume", pa.int32())])


def _events(seed: int) -> tuple[list[dict[str, Any]], list[int]]:
    pick, at = random.Random(seed), 0
    events = [{"price": pick.random() * 100, "volume": pick.randrange(6)} for _ in range(700)]
    return events, [at := at + pick.choice([0, 0, 1, 1, 3, 25]) for _ in events]


def _told(text: str, seed: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """What a statement says, with the instant, of events in batches of any size, and after restarts."""
    pick, (events, times) = random.Random(seed), _events(seed)
    engine, begin = Engine(columns=None), 0
    engine.deploy(SCHEMA)
    engine.deploy(text)
    while begin < len(events):
        size = pick.choice([1, 7, 60, 650])
        some: Any = events[begin : begin + size]
        given = pa.Table.from_pylist(some, TYPES) if pick.random() < 0.7 else some
        engine.send("S", given, at=times[begin : begin + size])
        begin += size
        yield from ((each.at, row) for each in engine.heard() for row in each.new)
        if pick.random() < 0.2:
            engine = Engine.restored(engine.snapshot(), columns=None)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("a", "b"), [("price > 80", "price < 20"), ("price > 50", "price > 70")], ids=["apart", "both"]
)
def test_a_repeat_begins_again_behind_the_event_that_ends_it(a: str, b: str, seed: int) -> None:
    text = f"select * from pattern [every (a=S({a}) until b=S({b}))]"
    events, times = _events(seed)
    wanted, held = list[tuple[int, dict[str, Any]]](), list[dict[str, Any]]()
    for event, at in zip(events, times, strict=True):
        if eval(b, {}, event):
            wanted.append((at, {"a": held or None, "b": event}))
            held = []
        elif eval(a, {}, event):
            held = [*held, event]
    assert list(_told(text, seed)) == wanted


def test_a_number_of_events_begins_again_with_the_next() -> None:
    events, times = _events(1)
    high = [(at, event) for event, at in zip(events, times, strict=True) if event["price"] > 50]
    pairs = zip(high[::2], high[1::2], strict=False)
    told = list(_told("select * from pattern [every [2] a=S(price > 50)]", 1))
    assert told == [(at, {"a": [one, two]}) for (_, one), (at, two) in pairs]
