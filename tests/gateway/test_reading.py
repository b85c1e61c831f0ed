"""Texts of clients are read in processes of their own: what they answer, and that no text keeps another one waiting.

A text that is short, or was read before, is answered while long ones are being read; one that takes for ever, or dies of
it, is refused by name and the processes are all there again. No server is needed for that.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import time
import warnings
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rollup.core.errors import QueryError, RollupError, StoreError
from rollup.gateway.protocol.forbidden import forbidden
from rollup.gateway.protocol.session import Session
from rollup.gateway.rewriting import readers as reading
from rollup.gateway.rewriting.mentions import Reader
from rollup.gateway.rewriting.readers import PROCESSES, Child, Readers
from rollup.gateway.servers.share import whole
from rollup.lang.sql.within import has_word, mentions
from rollup.program import compile_app
from tests.gateway.trades import APP, JANUARY

AGGREGATIONS = compile_app(APP).aggregations
QUESTION = f"select symbol from TradeAgg within {JANUARY} per 'days' where total > "


def long_text(literals: int) -> str:
    """A text that takes some 5 µs a literal to read."""
    return f"{QUESTION} 0 and 1 in ({', '.join(['1'] * literals)})"


def run(work: Callable[[Readers], Coroutine[Any, Any, Any]]) -> Any:
    async def all_of_it() -> Any:
        readers = Readers(AGGREGATIONS)
        await readers.start()
        try:
            return await work(readers)
        finally:
            await readers.close()

    return asyncio.run(all_of_it())


def test_a_text_is_read_as_in_this_process_and_errors_keep_their_place() -> None:
    async def work(readers: Readers) -> None:
        here = Reader(AGGREGATIONS).template(QUESTION + "1")
        there = await readers.read(QUESTION + "1")
        assert there.sources == here.sources
        assert there.filled(["(X)"]) == here.filled(["(X)"])
        for wrong in ("select * from TradeAgg within 'x' per", "select * from TradeAgg within 'x' per 'days' where ("):
            with pytest.raises(RollupError) as far:
                await readers.read(wrong)
            with pytest.raises(RollupError) as near:
                Reader(AGGREGATIONS).template(wrong)
            assert str(far.value) == str(near.value)

    run(work)


def test_the_loop_and_short_texts_go_on_while_long_ones_are_read() -> None:
    """More long texts than processes: none of the short ones waits for one of them, and the loop is never held up."""

    async def timed(readers: Readers, number: int) -> float:
        began = time.monotonic()
        await readers.read(f"{QUESTION}{number}")
        return time.monotonic() - began

    async def work(readers: Readers) -> tuple[float, list[float], list[float], list[float]]:
        quiet = [await timed(readers, number) for number in range(30)]
        began = time.monotonic()
        hostile = [asyncio.ensure_future(readers.read(long_text(60_000 + n))) for n in range(2 * PROCESSES)]
        loop_late, disturbed = [], []
        while not all(each.done() for each in hostile) and len(disturbed) < 60:
            disturbed.append(await timed(readers, 1000 + len(disturbed)))
            before = time.monotonic()
            await asyncio.sleep(0.005)
            loop_late.append(time.monotonic() - before)
        assert not hostile[-1].done(), "the long texts were read before the short ones had been asked"
        for each in hostile:
            each.cancel()
        await asyncio.gather(*hostile, return_exceptions=True)
        return time.monotonic() - began, quiet, disturbed, loop_late

    _, quiet, disturbed, loop_late = run(work)
    assert len(disturbed) == 60
    assert _median(disturbed) < _median(quiet) + 0.1
    assert _median(loop_late) < 0.1


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def test_a_text_that_takes_too_long_is_refused_and_all_processes_are_there_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "_LONGEST", 0.3)

    async def work(readers: Readers) -> None:
        with pytest.raises(QueryError, match="takes too long"):
            await readers.read(long_text(200_000))
        async with asyncio.timeout(60):
            while readers.idle < PROCESSES:
                await asyncio.sleep(0.01)
        assert (await readers.read(QUESTION + "1")).sources

    run(work)


def test_a_short_text_may_take_so_much_of_a_processor_however_busy_the_machine_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that does not get its turn for three times its patience answers all the same."""
    monkeypatch.setattr(reading, "_SHORT_PATIENCE", 0.3)

    async def work(readers: Readers) -> None:
        for child in readers.children:
            os.kill(child.pid, signal.SIGSTOP)
        asked = asyncio.ensure_future(readers.read(QUESTION + "1"))
        done, _ = await asyncio.wait({asked}, timeout=0.9)
        assert not done
        for child in readers.children:
            os.kill(child.pid, signal.SIGCONT)
        assert (await asked).sources

    run(work)


def test_a_short_text_that_takes_too_much_of_a_processor_is_refused_and_its_process_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kernel counts a process's time in ticks of some milliseconds: what is short here takes hundreds of them."""
    monkeypatch.setattr(reading, "_SHORT_PATIENCE", 0.05)
    monkeypatch.setattr(reading, "SHORT", 1 << 20)

    async def work(readers: Readers) -> None:
        before = set(readers.children)
        with pytest.raises(QueryError, match="takes too long"):
            await readers.read(long_text(200_000))
        assert (readers.children, readers.idle) == (before, PROCESSES)
        monkeypatch.setattr(reading, "_SHORT_PATIENCE", 2.0)
        assert (await readers.read(QUESTION + "1")).sources

    run(work)


def test_a_process_that_is_killed_costs_its_own_text_only() -> None:
    async def work(readers: Readers) -> None:
        asked = [asyncio.ensure_future(readers.read(long_text(60_000))), asyncio.ensure_future(readers.read(QUESTION))]
        async with asyncio.timeout(60):
            while readers.idle == PROCESSES:
                await asyncio.sleep(0)
        (busy,) = [child for child in readers.children if not child.idle and child.polite]
        os.kill(busy.pid, signal.SIGKILL)
        with pytest.raises(QueryError, match="too much memory"):
            await asked[0]
        with pytest.raises(RollupError):
            await asked[1]  # it ends with `>`
        assert (await readers.read(QUESTION + "2")).sources

    run(work)


def test_processes_that_ended_while_they_had_nothing_to_do_cost_nobody_an_answer() -> None:
    async def work(readers: Readers) -> None:
        for child in list(readers.children):
            os.kill(child.pid, signal.SIGKILL)
        while not all(child.gone for child in readers.children):
            await asyncio.sleep(0.01)
        answers = await asyncio.gather(*(readers.read(QUESTION + str(n)) for n in range(2 * PROCESSES)))
        assert len(answers) == 2 * PROCESSES
        while readers.idle < PROCESSES:
            await asyncio.sleep(0.01)

    run(work)


@pytest.mark.parametrize("problem", [StoreError("no memory"), OSError("no memory")])
def test_a_process_that_does_not_start_is_tried_for_again(monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    monkeypatch.setattr(reading, "_AGAIN", 0.01)

    async def work(readers: Readers) -> None:
        started, failures = Child.started, iter([problem] * 6)

        async def sometimes(told: bytes) -> Child:
            if (failed := next(failures, None)) is not None:
                raise failed
            return await started(told)

        monkeypatch.setattr(Child, "started", sometimes)
        for child in list(readers.children):
            os.kill(child.pid, signal.SIGKILL)
        while not all(child.gone for child in readers.children):
            await asyncio.sleep(0.01)
        assert (await readers.read(QUESTION + "1")).sources

    run(work)


def test_the_guard_says_of_a_long_text_what_it_says_of_a_short_one() -> None:
    async def work(readers: Readers) -> None:
        for end, expected in ((b"alter role ann password 'x'", True), (b"select 1", False)):
            assert await readers.forbidden(end) is expected
            assert await readers.forbidden(b"select 1; " * 10_000 + end) is expected

    run(work)


GAPS = {
    "empty lines": b"\n" * 1_000_000,
    "returns": b"\r\n" * 500_000 + b"notify",
    "half a notify": b";\n" * 250_000 + b" notif" * 80_000,
    "settings": b"set " * 250_000,
    "settings of half a zone": b"set time " * 110_000,
    "times": b"set " + b"time \n" * 160_000,
    "beginnings of comments": b"alter /*" * 125_000,
    "quotes": b'U&"' * 330_000,
    "letters that fold to two": "\u0130".encode() * 500_000,
}
"""Texts of 1 MB in which a search that begins again at each place would take hours."""


@pytest.mark.parametrize("gap", GAPS)
def test_whatever_a_text_repeats_a_look_at_it_ends(gap: str) -> None:
    """What is looked for on the loop, where everybody waits for it, and in the process that guards."""
    text = f"select 1 from TradeAgg within {JANUARY} per 'days' /* ".encode() + GAPS[gap]
    sql, session = text.decode(), cast(Session, SimpleNamespace(zone="UTC"))
    assert Reader(AGGREGATIONS).needs(sql)
    assert not has_word(sql, "aggregation") and not mentions(sql, ["größe"])
    assert forbidden(text) is (gap == "returns")
    assert whole(session, sql)
    assert not whole(session, "select 1; SET LOCAL\ntime  zone 'Asia/Kolkata'; " + sql)


def test_a_text_with_too_many_ranges_is_refused() -> None:
    part = f"select 1 from TradeAgg within {JANUARY} per 'days'"
    with pytest.raises(QueryError, match="more than 256 ranges"):
        Reader(AGGREGATIONS).template(" union all ".join([part] * 257))


def test_what_the_processes_are_told_can_be_told() -> None:
    assert set(pickle.loads(pickle.dumps(AGGREGATIONS))) == set(AGGREGATIONS)


def _sent_but_not_taken(readers: Readers) -> list[asyncio.Future[Any]]:
    """Questions that fill the pipes of processes which stand still."""
    for child in readers.children:
        os.kill(child.pid, signal.SIGSTOP)
    return [asyncio.ensure_future(readers.forbidden(b"select 1; " * 100_000)) for _ in range(2)]


def _answered_but_not_taken(readers: Readers) -> list[asyncio.Future[Any]]:
    """Questions whose answers are longer than what is held of one."""
    return [asyncio.ensure_future(readers.read(long_text(60_000))) for _ in range(2)]


@pytest.mark.parametrize(
    ("asked", "awaited"), [(None, True), (_sent_but_not_taken, False), (_answered_but_not_taken, True)]
)
@pytest.mark.few(1)
def test_nothing_of_a_process_is_left_when_the_loop_has_ended(
    asked: Callable[[Readers], list[asyncio.Future[Any]]] | None, awaited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is open then is closed by whoever collects it, on a loop that is closed: an error that nobody can catch."""
    unraisable = list[Any]()
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)

    async def work(readers: Readers) -> None:
        questions = [] if asked is None else asked(readers)
        while questions and readers.idle == PROCESSES:
            await asyncio.sleep(0)
        if awaited:
            for question in questions:
                question.cancel()
            await asyncio.gather(*questions, return_exceptions=True)
        else:
            for question in questions:
                question.add_done_callback(lambda done: done.cancelled() or done.exception())

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        run(work)
        gc.collect()
    assert [str(each.message) for each in warned if "transport" in str(each.message)] == []
    assert unraisable == []


def test_processes_that_come_up_beside_one_that_does_not_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started, begun = Child.started, list[Child]()

    async def second_fails(told: bytes) -> Child:
        begun.append(await started(told))
        if len(begun) == 2:
            raise StoreError("a process that reads texts does not start")
        return begun[-1]

    monkeypatch.setattr(Child, "started", second_fails)

    async def work() -> None:
        with pytest.raises(StoreError, match="does not start"):
            await Readers(AGGREGATIONS).start()
        failed = begun[1]
        for child in begun:
            if child is not failed:
                with pytest.raises(ProcessLookupError):
                    os.kill(child.pid, 0)
        await failed.end()

    asyncio.run(work())
    assert len(begun) == PROCESSES
