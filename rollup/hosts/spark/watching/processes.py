"""The processes that Spark runs in on this machine: Java and its Python workers, what they spend, whether they live."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TICK = 1 / os.sysconf("SC_CLK_TCK")


def java_of(spark: SparkSession) -> int | None:
    """The process of Java: our child, or our parent under `spark-submit`; None when it is neither."""
    gateway: Any = spark.sparkContext._gateway  # pyright: ignore[reportPrivateUsage]
    child = getattr(gateway, "proc", None)
    if child is not None:
        return int(child.pid)
    return os.getppid() if "PYSPARK_GATEWAY_PORT" in os.environ else None


def java_ended(spark: SparkSession) -> str | None:
    """How Java has ended, when it was our child and has; None otherwise."""
    child: Any = getattr(spark.sparkContext._gateway, "proc", None)  # pyright: ignore[reportPrivateUsage]
    code = None if child is None else child.poll()
    if code is None:
        return None
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"


def quiet() -> None:
    """Let py4j and pyspark be silent: they print a stack trace for every connection that Java's end cuts.

    What stops a job is said once, in one line, by the command.
    """
    from pyspark import accumulators

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)  # it logs as nobody in particular
    for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        server.handle_error = _nothing


def _nothing(self: object, request: object, client_address: object) -> None:
    """In the place of a stack trace."""


def spent(pid: int) -> float | None:
    """Seconds of processor time of a process and all below it that live; None where the system does not say."""
    times = _processes()
    return sum(times[one][1] for one in (pid, *_below(pid, times))) if pid in times else None


@contextmanager
def ended_on_error() -> Generator[None]:
    """End what was started in here when it ends with an error, Ctrl-C among them.

    Java that is being started does not hear Ctrl-C, and waits for ever for a Python that is gone.
    """
    there = set(_below(os.getpid(), _processes()))
    try:
        yield
    except BaseException:
        _kill(pid for pid in _below(os.getpid(), _processes()) if pid not in there)
        raise


def end_all(pid: int) -> None:
    """End a process and all below it."""
    _kill([pid, *_below(pid, _processes())])


def _kill(processes: Iterable[int]) -> None:
    for pid in processes:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _below(pid: int, processes: Mapping[int, tuple[int, float]]) -> list[int]:
    """The children of a process, their children, and so on."""
    children: dict[int, list[int]] = {}
    for one, (parent, _) in processes.items():
        children.setdefault(parent, []).append(one)
    found, left = list[int](), [pid]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += below
    return found


def _processes() -> Mapping[int, tuple[int, float]]:
    """By process, its parent and its processor time in seconds."""
    found: dict[int, tuple[int, float]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in names:
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rsplit(")", 1)[1].split()
            except (OSError, IndexError):
                continue  # it has just ended
            found[int(name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) * _TICK
    return found
