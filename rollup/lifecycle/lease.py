"""Who may write an aggregation: a lease that one job holds, with a heartbeat, and that another takes when it stops.

A lease is a file `lease-<n>.json` made with `link`, which fails when the name exists: of two jobs that take over at the
same moment one gets number n + 1. Whoever sees a number above its own has lost. The lease decides who tries; that two
can never both commit is the commit number's doing (`FencedError`), also when a paused job wakes up late.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rollup.errors import FencedError, StoreError
from rollup.stores.delta_record import write_durably

TIMEOUT = 10.0
"""Seconds without a heartbeat after which a lease may be taken over."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lease: what it does, where it runs, since when (seconds since the epoch)."""

    what: str
    host: str
    pid: int
    started: str
    since: float

    def __str__(self) -> str:
        return f"{self.what}, process {self.pid} on {self.host}"

    @classmethod
    def me(cls, what: str) -> Holder:
        """This process."""
        return cls(what, socket.gethostname(), os.getpid(), _started(os.getpid()) or "", time.time())

    @property
    def dead(self) -> bool:
        """Whether it is known to be gone: it ran on this machine, and no such process runs now."""
        return self.host == socket.gethostname() and _started(self.pid) != self.started


class Lease:
    """The lease of one aggregation.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> first, second = Lease(folder, "run"), Lease(folder, "run")
    >>> first.take(), second.take()
    (True, False)
    >>> first.release()
    >>> second.take()
    True
    """

    def __init__(self, folder: Path, what: str, timeout: float = TIMEOUT) -> None:
        self.folder = folder
        self.what = what
        self.timeout = timeout
        self.number = 0
        self._seen: tuple[int, int] = (0, 0)
        self._since = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> bool:
        """Take the lease if it is free or its holder is gone; whether it is ours now.

        A holder on another machine counts as gone when its heartbeat has not changed for `timeout` seconds of our own
        clock, so call this again and again while waiting. Raises StoreError when the folder cannot be written.
        """
        newest = self._newest()
        if newest and not self._gone(newest):
            return False
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            draft = self.folder / f".lease.{os.getpid()}.{id(self)}"
            write_durably(draft, json.dumps(asdict(Holder.me(self.what))).encode())
            try:
                os.link(draft, self._path(newest + 1))
            finally:
                draft.unlink(missing_ok=True)
        except FileExistsError:
            return False
        except OSError as problem:
            raise StoreError(
                f"cannot write {self.folder}: {problem.strerror}", hint="the job needs to write there"
            ) from None
        self.number = newest + 1
        self._path(newest).unlink(missing_ok=True)
        self._beat()
        return True

    def holder(self) -> Holder | None:
        """Who holds it now, None when nobody does."""
        newest = self._newest()
        if not newest:
            return None
        try:
            return Holder(**json.loads(self._path(newest).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def age(self) -> float | None:
        """Seconds since the holder's last heartbeat, None when nobody holds it."""
        if self.holder() is None:
            return None
        try:
            return time.time() - self._path(self._newest()).stat().st_mtime
        except FileNotFoundError:
            return None

    @property
    def lost(self) -> bool:
        """Whether another job has taken over from us."""
        return bool(self.number) and self._newest() != self.number

    def check(self) -> None:
        """Raise FencedError when another job has taken over."""
        if self.lost:
            raise FencedError(
                f"{self.holder() or 'another job'} has taken over {self.folder.name}",
                hint="this job has stopped; nothing is lost",
            )

    def release(self) -> None:
        """Give it back."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self.number and not self.lost:
            # The file stays, empty, so that no number is ever used twice.
            draft = self.folder / f".lease.{os.getpid()}.{id(self)}"
            draft.write_text("{}")
            draft.rename(self._path(self.number))
        self.number = 0

    def _beat(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._beating, name=f"lease {self.folder.name}", daemon=True)
        self._thread.start()

    def _beating(self) -> None:
        while not self._stop.wait(self.timeout / 4):
            try:
                os.utime(self._path(self.number))
            except OSError:
                continue  # taken over, or the disk is away: `check` and the commit number decide, not the heartbeat

    def _gone(self, newest: int) -> bool:
        """Whether the holder of a lease is gone."""
        holder = self.holder()
        if holder is None or holder.dead:
            return True
        try:
            seen = newest, self._path(newest).stat().st_mtime_ns
        except FileNotFoundError:
            return True
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since >= self.timeout

    def _newest(self) -> int:
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return 0
        return max(
            (int(name[6:-5]) for name in names if name.startswith("lease-") and name.endswith(".json")), default=0
        )

    def _path(self, number: int) -> Path:
        return self.folder / f"lease-{number:06d}.json"


def _started(pid: int) -> str | None:
    """When a process of this machine was started, so that no number used again is mistaken; None when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self").exists():
            return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ""
