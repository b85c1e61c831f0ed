"""Programs are made in several threads at once: a server warms its readers so."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rollup.engine.compiler.source import functions_of

TEXT = "def f(t):\n" + "\n".join(f"    if t > {n}:\n        s.x[{n}] = (t + {n}) * (t - {n})" for n in range(20))


class Circle:
    """What only a collection frees, and then in Python: where it does, another thread may go on."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        sum(range(20))


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads that take turns, and collections, as often as can be."""
    often, seldom = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(20, 2, 2)
    sys.setswitchinterval(1e-6)
    yield
    gc.set_threshold(*often)
    sys.setswitchinterval(seldom)


def test_texts_are_read_in_several_threads_at_once(restless: None) -> None:
    def read(_: int) -> list[str]:
        _ = [Circle() for _ in range(100)]
        return list(functions_of(TEXT))

    with ThreadPoolExecutor(4) as pool:
        assert set(map(tuple, pool.map(read, range(100)))) == {("f",)}
