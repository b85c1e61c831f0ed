"""Those who have not logged in yet: how many wait, which of them goes, who may sit, and what a wrong password costs.

Nobody without a password keeps out one who has it: where too many wait, the one who has waited longest goes, of the
address that most of them are from. No user keeps out another one: half of the seats are kept, in equal parts, for users
who do not have their part yet.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from rollup.gateway.protocol.session import Session

WAITING = 64
"""How many may wait at once."""

_FIRST, _LONGEST = 0.1, 10.0
"""Seconds that the try after one wrong password waits; twice as long after each further one, up to the longest."""
_FORGOTTEN = 900.0
_REMEMBERED = 4096


@dataclass(eq=False, slots=True)
class Guest:
    """One connection, from its first byte to its last."""

    writer: asyncio.StreamWriter
    session: Session | None = None
    user: str = ""
    judged: bool = False
    """Whether the server has said that the password was right, or wrong."""
    gone: bool = False

    @property
    def address(self) -> str:
        """The machine it comes from."""
        peer = self.writer.get_extra_info("peername")
        return str(peer[0]) if peer else ""

    @property
    def sits(self) -> bool:
        """Whether its user has logged in."""
        return not self.gone and self.session is not None and self.session.logged_in

    @property
    def waits(self) -> bool:
        """Whether it takes a place although nobody has logged in."""
        return not self.gone and (self.session is None or not self.session.logged_in)


def make_room(guests: Iterable[Guest]) -> None:
    """Cut off one of those who wait, in the order in which they came, when there are too many."""
    waiting = [guest for guest in guests if guest.waits]
    if len(waiting) <= WAITING:
        return
    crowd = Counter(guest.address for guest in waiting)
    victim = next(guest for guest in waiting if crowd[guest.address] == max(crowd.values()))
    victim.gone = True
    victim.writer.transport.abort()


def may_sit(guest: Guest, guests: Iterable[Guest], users: Collection[str], most: int) -> bool:
    """Whether a guest may have one of so many seats, for all that is kept for other users.

    >>> from types import SimpleNamespace
    >>> ann, bob = (Guest(None, user=user) for user in ("ann", "bob"))  # type: ignore[arg-type]
    >>> sitting = [Guest(None, SimpleNamespace(logged_in=True), "ann") for _ in range(6)]  # type: ignore[arg-type]
    >>> may_sit(ann, sitting, ["ann", "bob"], 8), may_sit(bob, sitting, ["ann", "bob"], 8)
    (False, True)
    """
    taken = Counter(each.user for each in guests if each is not guest and each.sits)
    part = most // (2 * len(users)) if users else 0
    kept = sum(max(0, part - taken[user]) for user in users if user != guest.user)
    return sum(taken.values()) + kept < most


@dataclass
class Failures:
    """How often a user's password was wrong from an address, and when for the last time."""

    _known: OrderedDict[tuple[str, str], tuple[int, float]] = field(
        default_factory=OrderedDict[tuple[str, str], tuple[int, float]]
    )

    def patience(self, address: str, user: str, now: float | None = None) -> float:
        """The seconds that this user's next try from there has to wait.

        >>> failures = Failures()
        >>> for _ in range(4):
        ...     failures.note("10.0.0.1", "ann", False, now=0.0)
        >>> failures.patience("10.0.0.1", "ann", now=1.0), failures.patience("10.0.0.2", "ann", now=1.0)
        (0.8, 0.0)
        >>> failures.patience("10.0.0.1", "ann", now=1000.0)
        0.0
        """
        times, last = self._known.get((address, user), (0, 0.0))
        if not times or (time.monotonic() if now is None else now) - last > _FORGOTTEN:
            return 0.0
        return min(_FIRST * 2.0 ** min(times - 1, 30), _LONGEST)

    def note(self, address: str, user: str, passed: bool, now: float | None = None) -> None:
        """One try is over. Whoever passes begins anew."""
        times, _ = self._known.pop((address, user), (0, 0.0))
        if passed:
            return
        self._known[address, user] = (times + 1, time.monotonic() if now is None else now)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
