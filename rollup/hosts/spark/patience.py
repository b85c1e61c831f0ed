"""A batch that fails is tried again: a share may be away for a second, and memory is short only for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import structlog

from rollup.core.errors import RollupError, SourceError, StoppedError, SystemFault
from rollup.hosts.spark.watching.failures import cause

Result = TypeVar("Result")
WAITS: Sequence[float] = (1, 2, 4, 8)
"""Seconds before each new try; after the last one the job ends."""


def pause(stop: threading.Event, seconds: float) -> bool:
    """Wait before the next try; whether `stop` was set."""
    return stop.wait(seconds)


def patiently(work: Callable[[], Result], stop: threading.Event, stream: str) -> Result:
    """What a Spark job gives, tried again while it fails for what may pass.

    Raises what the last try raised; at once what is no passing fault (another error of ours); StoppedError when `stop`
    is set while it waits.
    """
    from py4j.protocol import Py4JJavaError  # what Spark leaves as it is: a worker that died
    from pyspark.errors import PySparkException

    for number, wait in enumerate(WAITS, start=1):
        try:
            return work()
        except (PySparkException, Py4JJavaError) as problem:
            found = cause(problem)
            if type(found) not in (SourceError, RollupError, SystemFault):
                raise
        structlog.get_logger("rollup").warning(
            "the batch failed and is tried again", stream=stream, cause=str(found), tries=number, seconds=wait
        )
        if pause(stop, wait):
            raise StoppedError("stopped before a new try")
    return work()
