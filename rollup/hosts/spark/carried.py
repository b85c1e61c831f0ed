"""The log that Spark keeps of a streaming query, where the checkpoint is in an object store.

Spark writes into a folder of this machine, which needs none of its clients of object stores. What a batch needs to come
again as it was is brought to the object store before the batch is read: a commit never knows of a batch that the
checkpoint does not. A job that starts on any machine begins with a copy of what is there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG

from rollup.core.errors import FencedError, StoreError
from rollup.core.objects import ObjectPath, create, replace_durably
from rollup.hosts.exchange import Scratch
from rollup.hosts.spark.log_sums import LogSums
from rollup.hosts.spark.watching.failures import cause

_AT_ONCE = 16
_PLANS = "offsets/"
"""What makes a batch known; all that it names is brought before it."""
_Seen = tuple[int, int, int]


class QueryLog:
    """The log of a query in a folder that Spark can write: the checkpoint itself."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self.folder = checkpoint
        self.sums = LogSums(self.folder)

    def carry(self) -> None:
        """Bring what has changed in the folder to the checkpoint. Raises StoreError, and FencedError where another job has
        gone on there."""

    def named(self, problem: Exception) -> Exception:
        """What has ended the query, with the name of the checkpoint in the place of the folder."""
        return problem

    def close(self) -> None:
        """Remove the folder where it is a copy."""


class Carried(QueryLog):
    """The log of a query in a copy on this machine of a checkpoint in an object store."""

    def __init__(self, checkpoint: ObjectPath) -> None:
        self._home = Scratch("rollup-checkpoint-", Path(tempfile.gettempdir()))
        super().__init__(Path(self._home.path) / checkpoint.name)
        self.checkpoint = checkpoint
        self.folder.mkdir()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="checkpoint")
        try:
            names = [name for name, _ in checkpoint.listed()]
            list(self._pool.map(self._fetch, names))
        except OSError as problem:
            raise StoreError(f"cannot read the checkpoint {checkpoint}: {problem.strerror}") from None
        self._carried = self._there()

    def carry(self) -> None:
        there = self._there()
        changed = sorted(name for name, seen in there.items() if self._carried.get(name) != seen)
        self._put(name for name in changed if not name.startswith(_PLANS))
        self._put(name for name in changed if name.startswith(_PLANS))
        gone = [self.checkpoint / name for name in self._carried.keys() - there.keys()]
        with self._asking():
            list(self._pool.map(lambda path: path.unlink(missing_ok=True), gone))
        self._carried = there

    def named(self, problem: Exception) -> Exception:
        said = str(problem)
        return (
            cause(Exception(said.replace(str(self.folder), str(self.checkpoint))))
            if str(self.folder) in said
            else problem
        )

    def close(self) -> None:
        self._pool.shutdown()
        self._home.close()

    def _there(self) -> dict[str, _Seen]:
        found = dict[str, _Seen]()
        for path in self.folder.rglob("*"):
            if path.name.startswith("."):
                continue
            try:
                seen = path.stat()
            except FileNotFoundError:
                continue  # Spark has removed it meanwhile
            if S_ISREG(seen.st_mode):
                found[path.relative_to(self.folder).as_posix()] = (seen.st_ino, seen.st_size, seen.st_mtime_ns)
        return found

    def _fetch(self, name: str) -> None:
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((self.checkpoint / name).read_bytes())

    def _put(self, names: Iterable[str]) -> None:
        """Bring files; an entry of a log is made once, all else is replaced."""
        with self._asking():
            list(self._pool.map(self._put_one, names))

    def _put_one(self, name: str) -> None:
        try:
            content = (self.folder / name).read_bytes()
        except FileNotFoundError:
            return
        once = name.rpartition("/")[2].split(".")[0].isdigit() or name == "metadata"
        (create if once else replace_durably)(self.checkpoint / name, content)

    @contextmanager
    def _asking(self) -> Generator[None]:
        try:
            yield
        except FileExistsError as problem:
            raise FencedError(
                f"another job goes on with this checkpoint: it has made {problem.filename}",
                hint="this one has been replaced, and ends",
            ) from None
        except OSError as problem:
            raise StoreError(
                f"cannot write the checkpoint {self.checkpoint}: {problem.strerror}",
                hint="start the job again when the object store answers: nothing that was committed is lost",
            ) from None


def log_of(checkpoint: Path) -> QueryLog:
    """The log of the query of a checkpoint, wherever that is. Raises StoreError when it cannot be read."""
    return Carried(checkpoint) if isinstance(checkpoint, ObjectPath) else QueryLog(checkpoint)
