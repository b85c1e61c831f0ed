"""The compiled passes over many rows give what numpy gives for the same rows: order, late rows, numbers below zero."""

from __future__ import annotations

import numpy as np
import pytest

from rollup.engine.columns import passes
from rollup.engine.columns.groups import grouped
from rollup.engine.columns.slices import Slices


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    import numba  # noqa: F401  # with it loaded the passes are used

    def run(work):  # type: ignore[no-untyped-def]
        found = []
        for least in (1, 10**9):
            monkeypatch.setattr(passes, "_MANY", least)
            found.append(work())
        return found

    return run


@pytest.mark.parametrize("seed", range(20))
def test_windows_late_rows_and_the_clock_are_those_of_numpy(seed: int, both) -> None:  # type: ignore[no-untyped-def]
    chance = np.random.default_rng(seed)
    numbers = np.cumsum(chance.integers(-4, 9, 300)) - 200
    shape = Slices(int(chance.integers(1, 30)), 1, int(chance.integers(-5, 5)))
    shape = Slices(shape.width, shape.width, shape.origin)
    clock = None if seed % 3 == 0 else int(chance.integers(-200, 0))
    one, other = both(lambda: shape.place(numbers, clock))
    assert one.windows.tolist() == other.windows.tolist()
    assert (one.clock, one.late) == (other.clock, other.late)


def test_cells_are_those_of_numpy(both) -> None:  # type: ignore[no-untyped-def]
    import pyarrow as pa

    windows = np.array([3, 3, 4, 3, 5, 4] * 20)
    keys = [pa.array(["b", "a", "b", None, "a", "a"] * 20)]
    one, other = both(lambda: grouped(windows, keys, 0))
    assert one.codes.tolist() == other.codes.tolist()
    assert one.first.tolist() == other.first.tolist()
