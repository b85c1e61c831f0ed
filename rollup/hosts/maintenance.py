"""Upkeep of the stores between batches: a tenth of the job's time, and no more than two seconds at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

import structlog

from rollup.core.errors import FencedError
from rollup.core.freed import give_back
from rollup.stores.base import Store

_EVERY = 8
"""Batches from one upkeep to the next."""
_GIVEN_BACK = 64
"""Batches from one time to the next that free memory is given back; it takes 20 ms where there is much."""
_SHARE, _MOST = 0.1, 2.0


class Upkeep:
    """Lets stores put small files together now and then; what one run takes too long, the next ones wait for.

    A store does its least piece of work however small the budget, so time is counted afterwards.
    """

    def __init__(self, stores: Collection[Store], clock: Callable[[], float] = time.monotonic) -> None:
        self._stores = stores
        self._clock = clock
        self._log = structlog.get_logger("rollup")
        self._batches, self._allowance, self._since = 0, 0.0, clock()

    def after_batch(self) -> None:
        """To be called between two batches."""
        self._batches += 1
        if self._batches % _EVERY:
            return
        if self._batches % _GIVEN_BACK == 0:
            give_back()
        now = self._clock()
        self._allowance = min(_MOST, self._allowance + _SHARE * (now - self._since))
        self._since = now
        if self._allowance <= 0:
            return
        for store in self._stores:
            self._maintain(store, self._allowance / len(self._stores))
        self._allowance -= self._clock() - now

    def _maintain(self, store: Store, budget: float) -> None:
        """Upkeep of one store. What fails there is said and tried again: it has lost nothing, and the job can do without.

        Raises FencedError, as then another job is at work.
        """
        try:
            store.maintain(budget)
        except FencedError:
            raise
        except Exception as problem:
            self._log.error("files could not be put together", because=str(problem))
