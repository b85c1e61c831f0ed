"""Random statements over random events: on rows event by event, in batches, over columns, and with restarts all the same.

`make crash` looks for what nobody has met: from another seed each time, which the failure names. `SEED=n` begins there,
`SECONDS=n` looks so long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import count
from random import Random

import numba
import numpy as np
import pytest

from rollup.engine.columns.loops import loop
from tests.live.comparing.grammar import Grammar
from tests.live.comparing.runs import accepted, difference, report, steps


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loops that run as they are written: to compile those of a statement takes longer than its few events do."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    loop.cache_clear()
    with np.errstate(all="ignore"):  # as compiled code has it
        yield
    loop.cache_clear()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.usefixtures("interpreted")
def test_how_events_come_and_where_statements_run_makes_no_difference(seed: int) -> None:
    _compared(seed, 40)


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
def test_how_events_come_and_where_statements_run_makes_no_difference_for_long() -> None:
    _compared_for(_seconds())


@pytest.mark.slow
def test_compiled_loops_make_no_difference_either() -> None:
    _compared_for(_seconds())


def _seconds() -> float:
    return float(os.environ.get("SECONDS", 240))


def _compared_for(seconds: float) -> None:
    first, end = int(os.environ.get("SEED", time.time_ns() // 1000)), time.monotonic() + seconds
    for seed in count(first):
        _compared(seed, 60)
        if time.monotonic() > end:
            return


def _compared(seed: int, events: int) -> None:
    random = Random(seed)
    program = Grammar(random).program()
    if accepted(program):
        course = steps(random, events)
        assert difference(program, course) is None, f"seed {seed}: {report(program, course)}"
