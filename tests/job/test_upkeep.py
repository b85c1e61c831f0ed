"""How much of a job's time upkeep may take: with a clock of its own, since real time would prove nothing here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from rollup.hosts.maintenance import Upkeep


@dataclass
class Slow:
    """A store whose upkeep takes as long as it is told, whatever the budget."""

    takes: float
    now: float = 0.0
    budgets: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def maintain(self, budget: float) -> dict[str, int]:
        self.budgets.append(budget)
        self.now += self.takes
        return {}


def _run(store: Slow, batches: int, batch_seconds: float) -> float:
    """Seconds of upkeep over so many batches."""
    upkeep, began = Upkeep([cast("Any", store)], store.clock), store.now
    for _ in range(batches):
        store.now += batch_seconds
        upkeep.after_batch()
    return store.now - began - batches * batch_seconds


def test_upkeep_that_overruns_its_budget_waits_until_it_has_earned_the_time() -> None:
    store = Slow(takes=3.0)
    spent = _run(store, 800, 0.5)
    assert 0 < spent <= 0.1 * (800 * 0.5 + spent) + 3.0
    assert len(store.budgets) < 100


def test_a_budget_is_a_tenth_of_the_time_since_the_last_and_at_most_two_seconds() -> None:
    quick, rare = Slow(takes=0.0), Slow(takes=0.0)
    _run(quick, 8, 0.5)
    _run(rare, 8, 60.0)
    assert quick.budgets == [0.4]
    assert rare.budgets == [2.0]
