"""Folders of a job on this machine, for the exchange and for temporary files.

Tasks hand large results to the driver through the first, in memory where that can be. Spark and the libraries in Java
leave their temporary files in the second. A killed job cannot remove its folder. So each holds a locked file as long as its job lives, and a job that starts
removes the folders whose lock nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

_PREFIX = "rollup-exchange-"
_LOCK = ".lock"


_MEMORY = Path("/dev/shm")
_ROOM = 2 << 30
"""Bytes that must be free in memory: the partial rows of a batch take megabytes, of one that catches up a gigabyte. A
container is often given 64 MB there, and a task that fills it fails."""


def place() -> Path:
    """Where the folder is made: in memory where that has room, else where temporary files go."""
    try:
        free = shutil.disk_usage(_MEMORY).free
    except OSError:
        free = 0
    return _MEMORY if free >= _ROOM and os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())


class Scratch:
    """A folder of this job, named by a prefix; those of jobs that are gone are removed first, `close` removes this one."""

    def __init__(self, prefix: str, parent: Path) -> None:
        sweep(parent, prefix)
        self.path = tempfile.mkdtemp(prefix=prefix, dir=parent)
        self._lock = os.open(Path(self.path) / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder and what is left in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


class Exchange(Scratch):
    """The folder for large results."""

    def __init__(self, parent: Path | None = None) -> None:
        if parent is None:  # one that was killed may have had its folder in the other place
            sweep(_MEMORY)
        super().__init__(_PREFIX, parent or place())


@contextmanager
def batches_file(
    file: Path, schema: pa.Schema, options: pa.ipc.IpcWriteOptions | None = None
) -> Generator[pa.ipc.RecordBatchFileWriter]:
    """A file of record batches that is being written for another process. Raises OSError that has its name."""
    try:
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as writer:
            yield writer
    except OSError as problem:
        if problem.errno is None or problem.filename is not None:
            raise
        raise OSError(problem.errno, os.strerror(problem.errno), str(file)) from None


def sweep(parent: Path, prefix: str = _PREFIX) -> list[Path]:
    """Remove the folders of a prefix whose jobs are gone; which they were. Others' folders are left alone."""
    gone: list[Path] = []
    for folder in parent.glob(f"{prefix}*"):
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
