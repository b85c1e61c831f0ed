"""What an event of a pipeline, or a row that leaves a named window by the clock, puts on its way to streams and named windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rollup.engine.row import Row
from rollup.engine.rows.pipelines.acting import Telling
from rollup.engine.rows.pipelines.steps import Take

Waiting = deque[tuple[Take, Row]]
"""Rows on their way, and what is done with each."""


def _dropping(inserts: Waiting, waiting: Waiting, telling: Telling) -> Callable[[], None]:
    """What still waits when something was refused is dropped."""

    def drop() -> None:
        telling.refused()
        inserts.clear()
        waiting.clear()

    return drop


def draining(inserts: Waiting, waiting: Waiting, telling: Telling, times: list[int]) -> Callable[[int], None]:
    """What is on its way, until nothing more is; each row has a place, for its deliveries are its own."""
    changed, tell, drop = telling.waiting, telling.now, _dropping(inserts, waiting, telling)

    def drain(place: int) -> None:
        try:
            if changed and not inserts:
                tell()
            while queue := inserts or waiting:
                work, each = queue.popleft()
                times.append(times[place])
                work(len(times) - 1, each)
                if changed:
                    tell()
        except BaseException:
            drop()
            raise

    return drain


def with_what_it_causes(take: Take, inserts: Waiting, waiting: Waiting, telling: Telling, times: list[int]) -> Take:
    """An event, then what it has put on its way."""
    unheard, drain = telling.unheard, draining(inserts, waiting, telling, times)
    drop = _dropping(inserts, waiting, telling)

    def whole(place: int, row: Row) -> bool:
        try:
            if not take(place, row):
                return False
        except BaseException:
            drop()
            raise
        drain(place)
        if unheard:
            unheard.clear()
        return True

    return whole
