"""A chain of queries over a stream of bytes: reads, steps, writes, with memory that does not grow with the input.

A thread reads while the rows before are worked on; what it has read by then is one batch. Another makes columns of it. Windows of the wall clock
close when their time has come, also while nothing arrives.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from queue import Empty, Queue
from typing import BinaryIO, Protocol

import pyarrow as pa

from rollup.lang.uql.chain import Chain
from rollup.lang.uql.egress import lines
from rollup.lang.uql.ingress import Bad, Ingress
from rollup.lang.uql.plan import Plan

_READ = 4 << 20
_BATCH = 4 << 20
_AHEAD = 8 << 20
"""Bytes in small parts that are read before they are asked for."""
_ROOM = 64 << 10
_BUFFERS = 3
"""One that is read into, one that waits, one that columns are made of."""
_PIECES = 2

Bytes = bytes | memoryview
Clock = Callable[[], int]
"""Microseconds since the query began."""


class Input(Protocol):
    """Where bytes come from: whatever is there now, as much as has room; none at the end."""

    def readinto1(self, buffer: memoryview, /) -> int:
        """How many bytes were there, in the buffer now."""
        ...


@dataclass
class Summary:
    """What happened to the rows of a run."""

    rows: int = 0
    bad: int = 0
    late: int = 0
    unplaced: int = 0
    beyond: int = 0

    def sentences(self) -> list[str]:
        """What the user must hear of, a sentence each."""
        said = [f"{self.rows} rows read"]
        if self.bad:
            said.append(f"{self.bad} rows set aside because they do not fit their table")
        if self.unplaced:
            said.append(f"{self.unplaced} rows without a value to place them by, in no window")
        if self.late:
            said.append(f"{self.late} late rows, in the oldest window still open")
        if self.beyond:
            said.append(f"{self.beyond} sums beyond 64 bits, given as empty fields")
        return said


def run(plans: Sequence[Plan], source: Input, sink: BinaryIO, clock: Clock | None = None) -> Iterator[Bad | Summary]:
    """Run a chain to the end of its input. Gives each row that is set aside as it is met, and the summary last."""
    began = time.monotonic_ns()
    running = _Running(plans, sink, clock or (lambda: (time.monotonic_ns() - began) // 1000))
    pieces, ingress = _ReadAhead(source).pieces(running.wait), Ingress(plans[0].table, plans[0].texts)
    if running.waits:  # what is read then is asked of the states, and rows are stamped when they come
        for piece in pieces:
            yield from running.take(*ingress.read(piece))
    else:
        with closing(_ParsedAhead(pieces, ingress)) as parsed:
            for rows, bad in parsed:
                yield from running.take(rows, bad)
    yield running.finish()


class _Running:
    """A chain in the middle of its input."""

    def __init__(self, plans: Sequence[Plan], sink: BinaryIO, now: Clock) -> None:
        self._chain = Chain(tuple(plans))
        self._states = self._chain.start()
        self._outputs, self._sink, self._now = plans[-1].outputs, sink, now
        self._summary = Summary()

    @property
    def waits(self) -> bool:
        """Whether windows close by the clock on the wall."""
        return self._chain.wall_clock

    def wait(self) -> float | None:
        """Seconds until the next window of the wall clock closes; None: nothing closes by itself."""
        if not self._chain.wall_clock:
            return None
        now = self._now()
        return max(0.0, (self._chain.next_close(self._states, now) - now) / 1e6)

    def take(self, rows: pa.Table, bad: Sequence[Bad]) -> Sequence[Bad]:
        """Work on the rows that were read; gives those that are set aside."""
        now = self._now()
        if self._chain.wall_clock:
            self._states, output = self._chain.advance(self._states, now)
            self._write(output)
        self._summary.rows += rows.num_rows + len(bad)
        self._summary.bad += len(bad)
        self._states, output = self._chain.step(self._states, rows, now)
        self._write(output)
        self._sink.flush()
        return bad

    def finish(self) -> Summary:
        """The input has ended."""
        self._states, output = self._chain.finish(self._states, self._now())
        self._write(output)
        self._sink.flush()
        for state in self._states:
            self._summary.late += state.scalars["late"]
            self._summary.unplaced += state.scalars["unplaced"]
            self._summary.beyond += state.scalars["beyond"]
        return self._summary

    def _write(self, output: pa.Table) -> None:
        self._sink.write(lines(output, self._outputs))


class _Filled:
    """A read that filled most of its buffer. It stays where it is, with room before it for the record that the read
    before it had cut: to copy it would take as long as to read it."""

    def __init__(self, buffer: bytearray, size: int) -> None:
        self.buffer, self._end = buffer, _ROOM + size

    def cut(self, rest: bytes, ended: bool) -> tuple[Bytes, bytes]:
        """The records that have ended, after the `rest` of the read before, and what is left of them."""
        at = self._end if ended else self.buffer.rfind(b"\n", _ROOM, self._end) + 1
        if not at or len(rest) > _ROOM or b'"' in rest or self.buffer.find(b'"', _ROOM, self._end) >= 0:
            return _cut(rest, bytes(self.buffer[_ROOM : self._end]), ended)
        begin = _ROOM - len(rest)
        self.buffer[begin:_ROOM] = rest
        return memoryview(self.buffer).toreadonly()[begin:at], bytes(self.buffer[at : self._end])


class _ReadAhead:
    """Reads in a thread. Whole records that are there are given together, so that a slow start makes larger batches."""

    def __init__(self, source: Input) -> None:
        self._source = source
        self._ready = threading.Condition()
        self._free = [bytearray(_ROOM + _READ) for _ in range(_BUFFERS)]
        self._parts: list[bytes | _Filled] = []
        self._size = 0
        self._ended = False
        self._failed: BaseException | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def pieces(self, wait: Callable[[], float | None]) -> Iterator[Bytes]:
        """Whole records, several at a time; empty when the time to wait was over before something came.

        A piece may be read until the next one is asked for: its buffer is filled again then.
        """
        rest = b""
        while True:
            data, ended = self._take(wait())
            piece, rest = data.cut(rest, ended) if isinstance(data, _Filled) else _cut(rest, data, ended)
            if piece or not ended:
                yield piece
            if isinstance(data, _Filled):
                with self._ready:
                    self._free.append(data.buffer)
                    self._ready.notify_all()
            if ended:
                return

    def _take(self, seconds: float | None) -> tuple[bytes | _Filled, bool]:
        with self._ready:
            self._ready.wait_for(lambda: self._parts or self._ended, seconds)
            if self._failed is not None:
                raise self._failed
            if self._parts and isinstance(self._parts[0], _Filled):
                return self._parts.pop(0), self._ended and not self._parts
            taken, size = list[bytes](), 0
            while self._parts and size < _BATCH and isinstance(part := self._parts[0], bytes):
                taken.append(part)
                size += len(part)
                self._parts.pop(0)
            self._size -= size
            self._ready.notify_all()
            return b"".join(taken), self._ended and not self._parts

    def _read(self) -> None:
        try:
            while self._read_part():
                pass
        except BaseException as problem:  # told to the one who waits for the data
            self._failed = problem
        with self._ready:
            self._ended = True
            self._ready.notify_all()

    def _read_part(self) -> bool:
        """One more part, False at the end. A small one is copied, so that its buffer is free at once."""
        with self._ready:
            self._ready.wait_for(lambda: self._free and self._size < _AHEAD)
            buffer = self._free.pop()
        size = self._source.readinto1(memoryview(buffer)[_ROOM:])
        with self._ready:
            if size > _READ // 2:
                self._parts.append(_Filled(buffer, size))
            else:
                self._free.append(buffer)
                if size:
                    self._parts.append(bytes(buffer[_ROOM : _ROOM + size]))
                    self._size += size
            self._ready.notify_all()
        return size > 0


_Read = tuple[pa.Table, Sequence[Bad]]


class _ParsedAhead:
    """Makes columns of pieces in a thread, while the ones before are worked on. A piece is given as soon as it is there."""

    def __init__(self, pieces: Iterator[Bytes], ingress: Ingress) -> None:
        self._queue: Queue[_Read | BaseException | None] = Queue(_PIECES)
        self._stopped = False
        threading.Thread(target=self._parse, args=(pieces, ingress), name="uql columns", daemon=True).start()

    def __iter__(self) -> Iterator[_Read]:
        while (found := self._queue.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found

    def close(self) -> None:
        """Nobody asks any more: the thread ends with the piece that it has."""
        self._stopped = True
        with suppress(Empty):
            while True:
                self._queue.get_nowait()

    def _parse(self, pieces: Iterator[Bytes], ingress: Ingress) -> None:
        try:
            for piece in pieces:
                if self._stopped:
                    return
                self._queue.put(ingress.read(piece))
        except BaseException as problem:  # told to the one who waits for the rows
            self._queue.put(problem)
        self._queue.put(None)


def _cut(rest: bytes, data: bytes, ended: bool) -> tuple[bytes, bytes]:
    """What has been read, cut after its last whole record."""
    if ended:
        return rest + data, b""
    if b'"' in rest or b'"' in data:
        whole = rest + data
        at = complete(whole)
        return whole[:at], whole[at:]
    at = data.rfind(b"\n") + 1
    view = memoryview(data)
    return (b"".join((rest, view[:at])), bytes(view[at:])) if at else (b"", rest + data)


def complete(data: bytes) -> int:
    """Where the last whole record ends: after a line that does not end inside quotes.

    >>> complete(b'1|a\\n2|"b\\n')
    4
    """
    at = data.rfind(b"\n") + 1
    if b'"' not in data:
        return at
    while at and data.count(b'"', 0, at) % 2:
        at = data.rfind(b"\n", 0, at - 1) + 1
    return at
