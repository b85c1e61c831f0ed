"""Reads the texts of clients in processes of their own, since reading one takes long and nobody else may wait for it.

Reading is plain Python, some 4 µs a character: a megabyte takes seconds. On the event loop it would hold up every
client, in a thread still most of them. So a few processes read. Long texts never have all of them, nor have the texts of
one user. A process that reads a long text gives way to the others of the machine. What was read of a short text is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import rollup
from rollup.core.errors import QueryError, RollupError, StoreError
from rollup.core.periods import may_say
from rollup.gateway.protocol.forbidden import SHORT, forbidden
from rollup.gateway.protocol.session import VISITOR
from rollup.gateway.protocol.turns import Turns
from rollup.gateway.rewriting.mentions import Template
from rollup.gateway.rewriting.reader_process import GUARD, PARTS, WHOLE, Names, takes_too_long
from rollup.plan.aggregation import Aggregation

log = logging.getLogger(__name__)

PROCESSES, _OF_A_USER = 4, 2
_LONG, _LONG_OF_A_USER = 2, 1
"""Processes, and how many of them one user may have; the same of those that read long texts."""
_SHORT_PATIENCE, _LONGEST = 2.0, 60.0
"""Seconds: of a processor for a short text, since a busy machine makes no text long; by the clock for any."""
_AGAIN = 1.0
"""Seconds until a process that did not start is tried for again."""
_KEPT, _LONGEST_KEPT = 4096, 65_536
_NICE = 10
_HEAD, _PIECE = 8, 1 << 16


class Readers:
    """The processes. Belongs to one event loop.

    A text becomes a `Template`; with a `schema`, for an endpoint before PostgreSQL, one that is the text for that server.
    """

    def __init__(self, aggregations: Mapping[str, Aggregation], schema: str | None = None) -> None:
        self._told = pickle.dumps((dict(aggregations), schema))
        self._final = schema is not None
        self._idle: asyncio.Queue[Child] = asyncio.Queue()
        self._turns, self._long = Turns(PROCESSES, _OF_A_USER), Turns(_LONG, _LONG_OF_A_USER)
        self.children: set[Child] = set()
        self._kept: OrderedDict[tuple[str, bool, Names], Template] = OrderedDict()
        self._errands: set[asyncio.Task[None]] = set()
        self._closed = False

    async def start(self) -> None:
        """Start the processes. Raises StoreError when one does not come up."""
        hired = await asyncio.gather(*(self._hire() for _ in range(PROCESSES)), return_exceptions=True)
        for problem in hired:
            if problem is not None:
                await self.close()
                raise problem

    async def close(self) -> None:
        """End them."""
        self._closed = True
        for errand in self._errands:
            errand.cancel()
        await asyncio.gather(*self._errands, *(child.end() for child in self.children), return_exceptions=True)

    @property
    def idle(self) -> int:
        """How many processes have nothing to do."""
        return self._idle.qsize()

    async def read(self, sql: str, whole: bool = True, names: Names = None) -> Template:
        """What a text asks for in a session whose clocks are `whole` hours from UTC, and which knows the aggregations of
        these `names` alone. Raises RollupError with the position of what is wrong."""
        key = sql, whole, names
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        found: Template = await self._asked(WHOLE if whole else PARTS, sql, names)
        # A Template still has the words of its bounds; a text for the server has the instants they meant.
        if len(sql) <= _LONGEST_KEPT and not (self._final and may_say(sql)):
            self._kept[key] = found
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found

    async def forbidden(self, text: bytes) -> bool:
        """`guard.forbidden`, whose search of a long text is too slow for the event loop as well."""
        return bool(await self._asked(GUARD, text)) if len(text) > SHORT else forbidden(text)

    async def _asked(self, what: str, text: str | bytes, names: Names = None) -> Any:
        session = VISITOR.get(None)
        user, long = "" if session is None else session.user, len(text) > SHORT
        async with self._long.taken(user) if long else nullcontext(), self._turns.taken(user):
            return await self._answered(what, text, names, long)

    async def _answered(self, what: str, text: str | bytes, names: Names, long: bool) -> Any:
        while (child := await self._idle.get()).gone:  # ended from outside while it had nothing to do
            self._back(child)
        try:
            child.give_way(long)
            async with asyncio.timeout(_LONGEST):
                failed, found = await child.ask(what, text, _LONGEST if long else _SHORT_PATIENCE, names)
        except TimeoutError:
            raise takes_too_long() from None
        except (OSError, EOFError):
            raise QueryError("reading this text needs too much memory", hint="a shorter one") from None
        finally:
            self._back(child)
        if failed:
            raise found if isinstance(found, RollupError) else RuntimeError(found)
        return found

    def _back(self, child: Child) -> None:
        """One that was interrupted, or cannot get its priority back, is replaced."""
        if child.idle and not child.gone and child.give_way(False):
            self._idle.put_nowait(child)
            return
        errand = asyncio.ensure_future(self._replaced(child))
        self._errands.add(errand)
        errand.add_done_callback(self._errands.discard)

    async def _replaced(self, child: Child) -> None:
        await child.end()
        self.children.discard(child)
        while not self._closed:
            try:
                return await self._hire()
            except (StoreError, OSError) as problem:
                log.error("%s; %d are left, and another is tried for again", problem, len(self.children))
                await asyncio.sleep(_AGAIN)

    async def _hire(self) -> None:
        child = await Child.started(self._told)
        self.children.add(child)
        self._idle.put_nowait(child)


class Child:
    """One process; it answers one question after the other."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid
        self.polite = False
        self.idle = True

    @classmethod
    async def started(cls, told: bytes) -> Child:
        """A process that has read what it is told. Raises StoreError when there is none."""
        root = str(Path(rollup.__file__).parents[1])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        child = cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "rollup.gateway.rewriting.reader_process"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
            )
        )
        try:
            await child._exchanged(told)
        except (OSError, EOFError):
            await child.end()
            raise StoreError("a process that reads texts does not start", hint="is there enough memory?") from None
        except asyncio.CancelledError:
            await child.end()
            raise
        return child

    @property
    def gone(self) -> bool:
        """Whether it is known to have ended."""
        return self._process.returncode is not None

    async def ask(self, what: str, text: str | bytes, seconds: float, names: Names = None) -> tuple[bool, Any]:
        """Whether it failed, and the answer or the error; it may take so many seconds of a processor.

        Raises OSError or EOFError when the process ends.
        """
        return pickle.loads(await self._exchanged(pickle.dumps((what, text, seconds, names))))

    def give_way(self, polite: bool) -> bool:
        """Let other processes go first, or not any more; whether that could be done."""
        if polite != self.polite:
            try:
                os.setpriority(os.PRIO_PROCESS, self.pid, _NICE if polite else os.getpriority(os.PRIO_PROCESS, 0))
                self.polite = polite
            except OSError:
                return False
        return True

    async def end(self) -> None:
        """Kill it, and wait until its end has been heard and its pipes are closed.

        Only the end of what it says closes them. Whoever leaves before leaves them to be closed after the loop.
        """
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        said = self._process.stdout
        assert said is not None
        while not said.at_eof():
            try:
                await said.read(_PIECE)
            except RuntimeError:  # who still waits for an answer there hears of the end first
                await asyncio.sleep(0)

    async def _exchanged(self, question: bytes) -> bytes:
        to, back = self._process.stdin, self._process.stdout
        assert to is not None and back is not None
        self.idle = False
        to.write(len(question).to_bytes(_HEAD, "big"))
        to.write(question)
        await to.drain()
        answer = await back.readexactly(int.from_bytes(await back.readexactly(_HEAD), "big"))
        self.idle = True
        return answer
