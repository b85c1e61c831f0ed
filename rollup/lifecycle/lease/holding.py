"""Who may write an aggregation: a lease that one job holds, with a heartbeat, and that another takes when it stops.

A lease has a number that can be made once: of two jobs that take over at the same moment one gets n + 1, and whoever
sees a number above its own has lost. It is kept beside the commit records (`rollup.lifecycle.lease.places`): where two
jobs share a store they share its leases. The lease decides who tries; that two can never both commit is the commit
number's doing (`FencedError`), also when a paused job wakes up late.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Protocol

import structlog

from rollup.checkpoint.checksums import sealed, unsealed
from rollup.core.errors import FencedError, StoreError
from rollup.stores.sql.session import Result, patiently

TIMEOUT = 10.0
"""Seconds without a heartbeat after which a lease may be taken over."""
_PATIENCE = 60
"""Seconds that a database is waited for."""
_PARTING = 5
"""And when a lease is given back: a process that goes on would be taken for its holder for as long as it lives."""
_GIVEN_BACK = ("", "{}")
"""What a lease that was given back says, in a database and in a file."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lease: what it does, where it runs, since when (seconds since the epoch)."""

    what: str
    host: str
    pid: int
    started: str
    since: float

    def __str__(self) -> str:
        return f"{self.what}, process {self.pid} on {self.host}" if self.pid else self.what

    @classmethod
    def me(cls, what: str) -> Holder:
        """This process."""
        return cls(what, socket.gethostname(), os.getpid(), _started(os.getpid()) or "", time.time())

    @classmethod
    def unknown(cls) -> Holder:
        """Whoever holds a lease whose text says nothing: only its heartbeat can tell whether it lives."""
        return cls("a job whose lease cannot be read", "", 0, "", 0.0)

    @property
    def dead(self) -> bool:
        """Whether it is known to be gone: it ran on this machine, and no such process runs now."""
        return self.host == socket.gethostname() and _started(self.pid) != self.started


_FIELDS = [each.name for each in fields(Holder)]


class Place(Protocol):
    """Where the leases of one aggregation are kept, by number.

    Raises StoreError when it refuses, and ConnectionLost when it is away.
    """

    name: str

    def newest(self) -> int:
        """The newest number, 0 when there is none."""
        ...

    def read(self, number: int) -> tuple[str, float] | None:
        """Who holds it, as text (see `blank`), and its last heartbeat, seconds since the epoch; None without it."""
        ...

    def add(self, number: int, holder: str) -> bool:
        """Make a lease; False when there is one with the number."""
        ...

    def beat(self, number: int) -> None:
        """Renew the heartbeat."""
        ...

    def blank(self, number: int) -> None:
        """Give it back: its text says nobody from now on. The number stays, so that none is ever used twice."""
        ...

    def remove(self, number: int) -> None:
        """Remove one that is not the newest any more."""
        ...


class Lease:
    """The lease of one aggregation.

    >>> import tempfile
    >>> from rollup.lifecycle.lease.places import Files
    >>> folder = Path(tempfile.mkdtemp())
    >>> first, second = Lease(Files(folder), "run"), Lease(Files(folder), "run")
    >>> first.take(), second.take()
    (True, False)
    >>> first.release()
    >>> second.take()
    True
    """

    def __init__(self, place: Place, what: str, timeout: float = TIMEOUT) -> None:
        self.place = place
        self.what = what
        self.timeout = timeout
        self.number = 0
        self._newest = 0
        self._seen: tuple[int, float] = (0, 0.0)
        self._since = 0.0
        self._failing = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._log = structlog.get_logger("rollup")

    @property
    def name(self) -> str:
        """The aggregation."""
        return self.place.name

    def take(self) -> bool:
        """Take the lease if it is free or its holder is gone; whether it is ours now.

        A holder on another machine counts as gone when its heartbeat has not changed for `timeout` seconds of our own
        clock, so call this again and again while waiting. Raises StoreError when it cannot be written.
        """
        me = sealed(asdict(Holder.me(self.what))).decode()
        return self._patiently(lambda: self._take(me))

    def _take(self, me: str) -> bool:
        """One try. One before it may have made the lease, and its answer was lost on the way."""
        newest = self.place.newest()
        found = self.place.read(newest) if newest else None
        if found is None or found[0] != me:
            if (newest and not self._gone(newest)) or not self.place.add(newest + 1, me):
                return False
            newest += 1
        self.number = self._newest = newest
        self.place.remove(newest - 1)
        self._keep()
        return True

    def holder(self) -> Holder | None:
        """Who holds it now, None when nobody does."""
        found = self._patiently(self._held)
        return None if found is None else found[0]

    def age(self) -> float | None:
        """Seconds since the holder's last heartbeat, None when nobody holds it."""
        found = self._patiently(self._held)
        return None if found is None else time.time() - found[1]

    @property
    def lost(self) -> bool:
        """Whether another job has taken over from us, as the last heartbeat found."""
        return self._newest != self.number

    def check(self) -> None:
        """Raise FencedError when another job has taken over, StoreError when the lease itself is gone."""
        if self._newest < self.number:
            raise StoreError(
                f"the lease of {self.name} is gone, and what lay beside it: somebody has removed its folder or table",
                hint="stop every job on it, bring the tables back, start again",
            )
        if self.lost:
            raise FencedError(
                f"{self.holder() or 'another job'} has taken over {self.name}",
                hint="this job has stopped; nothing is lost",
            )

    def beat(self) -> None:
        """One heartbeat; one that cannot be written is left out, as the commit's number decides in any case.

        Whatever the error: a thread that died of it would leave a job that believes for ever in a lease it has lost.
        The first one of a row of failures is logged, and the end of the row.
        """
        try:
            self._newest = self.place.newest()
            self.place.beat(self.number)
        except Exception as problem:
            if not self._failing:
                self._log.warning("the lease cannot be renewed", aggregation=self.name, because=str(problem))
            self._failing = True
            return
        if self._failing:
            self._log.info("the lease is renewed again", aggregation=self.name)
        self._failing = False

    def release(self) -> None:
        """Give it back. When that cannot be said, it is free after `timeout` seconds."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with suppress(Exception):  # our process ends, and no reason may keep it from that
            patiently(f"{self.name}: lease", _PARTING, self._give_back)
        self.number = self._newest = 0

    def _give_back(self) -> None:
        if self.number and self.place.newest() == self.number:
            self.place.blank(self.number)

    def _keep(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._beating, name=f"lease {self.name}", daemon=True)
        self._thread.start()

    def _beating(self) -> None:
        while not self._stop.wait(self.timeout / 4):
            self.beat()

    def _held(self) -> tuple[Holder, float] | None:
        """Who holds the newest lease, and the last heartbeat; None when nobody does."""
        newest = self.place.newest()
        return self._read(newest) if newest else None

    def _read(self, number: int) -> tuple[Holder, float] | None:
        """As `_held`. A text that cannot be read is somebody's: only one that says so is given back."""
        found = self.place.read(number)
        if found is None or found[0].strip() in _GIVEN_BACK:
            return None
        try:
            return Holder(**unsealed(found[0].encode(), _FIELDS)), found[1]
        except (ValueError, TypeError):
            return Holder.unknown(), found[1]

    def _gone(self, newest: int) -> bool:
        """Whether the holder of a lease is gone."""
        found = self._read(newest)
        if found is None or found[0].dead:
            return True
        if (newest, found[1]) != self._seen:
            self._seen, self._since = (newest, found[1]), time.monotonic()
        return time.monotonic() - self._since >= self.timeout

    def _patiently(self, action: Callable[[], Result]) -> Result:
        return patiently(f"{self.name}: lease", _PATIENCE, action)


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
