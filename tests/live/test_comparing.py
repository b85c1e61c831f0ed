"""Random statements over random events: on rows event by event, in batches, over columns, and with restarts all the same.

`make crash` looks for what nobody has met: from another seed each time, which the failure names. `SEED=n` begins there,
`SECONDS=n` looks so long.
"""

from __future__ import annotations

import os
import time
from itertools import count
from random import Random

import pytest

from tests.live.comparing.grammar import Grammar
from tests.live.comparing.runs import accepted, difference, report, steps

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.parametrize("seed", range(20))
def test_how_events_come_and_where_statements_run_makes_no_difference(seed: int) -> None:
    _compared(seed, 40)


@pytest.mark.slow
def test_how_events_come_and_where_statements_run_makes_no_difference_for_long() -> None:
    compared_for_long()


def compared_for_long() -> None:
    """One seed after the other, so many seconds."""
    first, end = (
        int(os.environ.get("SEED", time.time_ns() // 1000)),
        time.monotonic() + float(os.environ.get("SECONDS", 240)),
    )
    for seed in count(first):
        _compared(seed, 60)
        if time.monotonic() > end:
            return


def _compared(seed: int, events: int) -> None:
    random = Random(seed)
    program = Grammar(random).program()
    if not accepted(program):
        return
    course = steps(random, events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rollup.engine.residence._LEAST", 2)
        patch.setattr("rollup.engine.residence._WORTH", 0)
        assert difference(program, course) is None, f"seed {seed}: {report(program, course)}"
