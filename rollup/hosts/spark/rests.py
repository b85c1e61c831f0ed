"""The rest of a batch trails `foreachBatch`: its tasks, step and commits go on while Spark plans the next batch.

Spark asks for one batch after the other. Between two it plans and writes its logs, a sixth of a second. While the last
of a batch's tasks ends, other cores have nothing to do. So in a run over all that is there `foreachBatch` returns as soon
as everything of the batch *before* has been committed. Spark then has tasks of two batches, and gives a free core to
the older first. One batch at a time is stepped, in order. The tables are behind Spark's log by one batch at
most, as where only commits trail (`rollup.hosts.trailing`), and a start after a crash is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

from rollup.core.errors import StoppedError

T = TypeVar("T")


class Rests:
    """Batches that `foreachBatch` is done with: the tasks of two are on their way at most, and one rest."""

    def __init__(self) -> None:
        self._jobs = ThreadPoolExecutor(2, thread_name_prefix="tasks")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rest")
        # Never changed, only replaced: another thread looks at them.
        self._asked: tuple[Future[Any], ...] = ()
        self._rest: Future[None] | None = None

    def ask(self, work: Callable[[], T]) -> Callable[[], T]:
        """Begin the tasks of a batch; what waits for their results."""
        asked = self._jobs.submit(work)
        self._asked = (*(each for each in self._asked if not each.done()), asked)
        return asked.result

    def begin(self, rest: Callable[[], None]) -> None:
        """Begin the rest of a batch; the one before has been settled."""
        self._rest = self._thread.submit(rest)

    def settle(self) -> None:
        """Wait for the rest that is on its way, and raise what it raised."""
        if self._rest is not None:
            self._rest.result()

    def check(self) -> None:
        """Raise what went wrong with a rest that has ended; not that it was stopped."""
        rest = self._rest
        if rest is not None and rest.done():
            with suppress(StoppedError):
                rest.result()

    def idle(self, seconds: float) -> bool:
        """Whether nothing is on its way, waited for so long at most."""
        rest = () if self._rest is None else (self._rest,)
        return not wait((*self._asked, *rest), seconds).not_done

    def close(self) -> None:
        """End the threads, when what they do has ended."""
        self._jobs.shutdown()
        self._thread.shutdown()
