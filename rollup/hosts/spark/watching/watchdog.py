"""A watch over what is asked of Spark: tasks whose Python worker was killed or hangs may never answer, and say nothing.

Length alone says nothing: a batch may rightly take an hour. But then Java or a worker uses the processor. A warning
comes when an answer is due and all of them together have done next to nothing for a while. After a longer while the job
had better end. Its commits are whole, and the next start takes the batch again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import structlog

from rollup.core.errors import RollupError

SAID, ENDED = 20.0, 60.0
"""Seconds without work after which it is said, and after which the job ends."""
_EVERY = 2.0
_BUSY = 0.05
"""Share of one core below which Java and its workers count as doing nothing; waiting, they use a hundredth or two."""


class Watchdog:
    """Looks at the requests to Spark, at the oldest of those that have no answer.

    `spent` gives the processor seconds of all that may work on it, None when that cannot be known, as on a cluster: then
    a request that takes long is said, and nothing more.
    """

    def __init__(self, spent: Callable[[], float | None], clock: Callable[[], float] = time.monotonic) -> None:
        self._spent, self._clock = spent, clock
        self._asked: list[str] = []
        self._idle, self._said = 0.0, False
        self._last: tuple[float, float | None] = (0.0, None)
        self._log = structlog.get_logger("rollup")

    @contextmanager
    def asking(self, what: str) -> Generator[None]:
        """While an answer of Spark is due."""
        self._moved()
        self._asked.append(what)
        try:
            yield
        finally:
            self._moved()
            self._asked.remove(what)

    def _moved(self) -> None:
        self._idle, self._said, self._last = 0.0, False, (self._clock(), None)

    def look(self) -> RollupError | None:
        """To be called again and again from another thread; the error to end the job with, when it is time."""
        what, now = next(iter(self._asked), None), self._clock()
        if what is None or now - self._last[0] < _EVERY:
            return None
        (before, spent), passed = self._last, now - self._last[0]
        self._last = now, self._spent()
        if spent is not None and self._last[1] is not None and self._last[1] - spent >= _BUSY * passed:
            self._idle, self._said = 0.0, False
            return None
        # No more than two looks at once: after a pause of this whole machine the others have not had their time either.
        self._idle += min(now - before, 2 * _EVERY)
        if self._idle >= SAID and not self._said:
            self._said = True
            self._log.warning("no answer from Spark", waiting_for=what, idle_seconds=round(self._idle))
        if self._idle < ENDED or self._last[1] is None:
            return None
        return RollupError(
            f"{what}: for {self._idle:.0f} s neither Java nor a Python worker has done anything: one was killed or hangs",
            hint="start the job again: nothing that was committed is lost, and the batch is taken again",
        )
