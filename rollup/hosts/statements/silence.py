"""Time that goes on for statements while no event comes, so that `not B for 5 sec` acts in a stream that has fallen silent.

When all sources have been silent for their `idle`, the clock of statements follows that of the machine, less what sources
may be late (`Running.passed`). What came of it is committed, as what comes of a batch.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from rollup.plan.lateness import idle_of, late_of

_REST = 10.0
"""A step is not made again before so many times its own duration have passed: that of a large state takes long."""
_LEAST = 0.5
"""Seconds between two steps, at least."""


class Silence:
    """When the clock of a job's statements goes on by itself; `inputs` are the streams whose sources they wait for."""

    def __init__(self, sources: Mapping[str, Mapping[str, Any]], inputs: Collection[str]) -> None:
        waits = [idle_of(name, sources[name]) for name in inputs]
        self._wait = None if None in waits or not waits else max(wait for wait in waits if wait is not None) / 1000
        self._late = max((late_of(name, sources[name]) for name in inputs), default=0)
        self._said = any("idle" in sources[name] for name in inputs)
        self._until = time.monotonic() + (self._wait or 0)

    def heard(self) -> None:
        """Something has come."""
        self._until = time.monotonic() + (self._wait or 0)

    def took(self, seconds: float) -> None:
        """A step of time has taken so long."""
        self._until = time.monotonic() + max(_LEAST, _REST * seconds)

    def clock(self, live: bool) -> int | None:
        """The time that it is now for statements; None while events come. Unless the configuration says `idle`, only the
        clock of a live stream goes on: one of old data will have more of that time."""
        if self._wait is None or time.monotonic() < self._until or not (live or self._said):
            return None
        return int(time.time() * 1000) - self._late
