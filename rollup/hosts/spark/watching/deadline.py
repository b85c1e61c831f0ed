"""Ends a job that was told to end and does not: no function of a user's, no driver and no lock can keep it.

Python hears a signal only between two of its instructions, and may be in one for hours. But the system notes a signal in a
pipe at once, and a process of its own reads that pipe, waits, and ends the job as a crash would. Nothing is lost by that:
what was not committed comes again at the next start.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from rollup.hosts.spark.watching.processes import end_all

PATIENCE = 15.0
"""Seconds from a signal to the end of the job."""


@contextmanager
def ended_in_time(patience: float = PATIENCE) -> Generator[None]:
    """After SIGINT or SIGTERM this process, and all below it, have so many seconds to leave this block.

    For the main thread, before it sets its handlers: a signal without one ends a process anyway.
    """
    heard, told = os.pipe()
    os.set_blocking(told, False)
    # A session of its own: whoever ends all processes of a job at once must not end this one first.
    command = [sys.executable, "-m", __name__, str(os.getpid()), str(patience)]
    watcher = subprocess.Popen(command, stdin=heard, start_new_session=True)
    os.close(heard)
    before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(told)
        watcher.terminate()
        watcher.wait()


def watch(pid: int, patience: float) -> None:
    """Read which signals a process got, until it ends; or end it when it takes too long after one."""
    asked = None
    while True:
        left = None if asked is None else asked + patience - time.monotonic()
        if left is not None and left <= 0:
            break
        if select.select([0], [], [], left)[0]:
            signals = os.read(0, 4096)
            if not signals:
                return
            if asked is None and {signal.SIGINT, signal.SIGTERM} & set(signals):
                asked = time.monotonic()
    print(
        f"rollup: what the job was at did not end within {patience:g} s of the signal; it is given up, and the next start does"
        " it again",
        file=sys.stderr,
        flush=True,
    )
    end_all(pid)


if __name__ == "__main__":
    watch(int(sys.argv[1]), float(sys.argv[2]))
