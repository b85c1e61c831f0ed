"""The folder through which tasks on this machine hand large results to the driver, in memory where that can be.

A killed job cannot remove its folder. So each holds a locked file as long as its job lives, and a job that starts
removes the folders whose lock nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "rollup-exchange-"
_LOCK = ".lock"


class Exchange:
    """A folder of this job; `close` removes it."""

    def __init__(self, parent: Path | None = None) -> None:
        memory = Path("/dev/shm")
        parent = parent or (memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir()))
        sweep(parent)
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        self._lock = os.open(Path(self.path) / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder and what is left in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def sweep(parent: Path) -> list[Path]:
    """Remove the folders of jobs that are gone; which they were."""
    gone: list[Path] = []
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR)
        except OSError:
            continue  # another user's, or one that is just being made
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(folder)
        except OSError:
            pass
        finally:
            os.close(lock)
    return gone
