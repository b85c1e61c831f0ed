"""Lines of standard input as they come: a command answers what is there before it waits for more."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader, BytesIO
from typing import BinaryIO

_PIECE = 1 << 20


def arriving(source: BinaryIO) -> Iterator[list[bytes]]:
    """Whole lines without their ends, those together that are there at once.

    >>> import io
    >>> list(arriving(io.BytesIO(b"a\\nb\\nc")))
    [[b'a', b'b'], [b'c']]
    """
    assert isinstance(source, (BufferedReader, BytesIO)), "what is there is asked of a buffer"
    rest = b""
    while data := source.read1(_PIECE):
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]
