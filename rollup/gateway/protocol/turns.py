"""Who may work now, of users who share a few places: nobody takes all of them, and who waits has a turn.

Reading a text takes a process of ours, and a running statement one of the server's processor. A user who asks for
much at once gets so many places. The rest of it waits, and it waits for that user's own work, not for that of others.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Turns:
    """Places for work, so many in all and for each user. Belongs to one event loop.

    A place that is given back goes to the user who has fewest, and of one user's work to what has waited longest.

    >>> async def work() -> list[bool]:
    ...     turns = Turns(3, 2)
    ...     await turns.take("ann"), await turns.take("ann")
    ...     more, other = asyncio.ensure_future(turns.take("ann")), asyncio.ensure_future(turns.take("bob"))
    ...     await other
    ...     before = more.done()
    ...     turns.give_back("ann")
    ...     await more
    ...     return [before, more.done()]
    >>> asyncio.run(work())
    [False, True]
    """

    def __init__(self, places: int, each: int) -> None:
        self._places, self._each = places, each
        self._taken = Counter[str]()
        self._waiting = dict[asyncio.Future[None], str]()

    def may(self, user: str) -> bool:
        """Whether a place of a user need not be waited for."""
        return self._taken[user] < self._each and self._taken.total() < self._places

    async def take(self, user: str) -> None:
        """Wait for a place of a user; it stays taken until it is given back."""
        if self.may(user):
            self._taken[user] += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = user
        try:
            await turn
        except asyncio.CancelledError:
            if self._waiting.pop(turn, None) is None:  # it was given at the same moment
                self.give_back(user)
            raise

    def give_back(self, user: str) -> None:
        """The work in one place of a user is done."""
        self._taken[user] -= 1
        self._taken += Counter()  # forgets who has none
        while ready := [turn for turn, who in self._waiting.items() if not turn.done() and self.may(who)]:
            first = min(ready, key=lambda turn: self._taken[self._waiting[turn]])
            self._taken[self._waiting.pop(first)] += 1
            first.set_result(None)

    @asynccontextmanager
    async def taken(self, user: str) -> AsyncGenerator[None]:
        """A place of a user for as long as the block lasts."""
        await self.take(user)
        try:
            yield
        finally:
            self.give_back(user)
