"""Patterns without a key whose events are compared by order, with more that waits than an event looks at."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.columns.delivering import Event, by_columns, by_rows

_STATEMENTS = [
    "select a.id as i, b.id as j from pattern [every a=S -> b=S(price > a.price)]",
    "select a.id as i, b.id as j from pattern [every a=S -> b=S(price <= a.price, volume != a.volume) where timer:within(700 msec)]",
    "select a.id as i, b.id as j from pattern [every a=S -> b=S(id <= a.id, symbol > a.symbol)]",
]


def _events(seed: int) -> list[Event]:
    """Some 1,500, whose prices and numbers go the way on which most of them wait for long."""
    chance = np.random.default_rng(seed)
    found, at = list[Event](), 0
    for n in range(1500):
        at += int(chance.integers(0, 3))
        price = None if chance.random() < 0.05 else float(1500 - n + chance.integers(0, 40 if n % 400 else 900))
        symbol = ["a", "b", None][int(chance.integers(0, 3))]
        found.append((at, (symbol, price, int(chance.integers(0, 3)), True, int(n + chance.integers(-30, 30)))))
    return found


@pytest.mark.parametrize("text", _STATEMENTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_what_waits_behind_others_is_met_too(text: str, seed: int) -> None:
    events = _events(seed)
    end = events[-1][0] + 1000
    rows = by_rows(text, events, end)
    assert len(rows) > 300
    assert by_columns(text, events, end, [300, 301, 1100], keep=True) == rows
