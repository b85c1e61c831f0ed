"""Files of text that are not UTF-8, written anew as what all readers take."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

import pyarrow as pa

_CHUNK = 8 << 20
_NO_TEXT = "rollup.no_text"
codecs.register_error(_NO_TEXT, lambda problem: ("\udcff", problem.end))  # pyright: ignore[reportAttributeAccessIssue]


def written_in(head: bytes) -> str | None:
    """The encoding of a file that begins so, where it is not UTF-8: the usual one of spreadsheets is a guess.

    >>> written_in("Köln".encode()), written_in("Köln".encode("cp1252")), written_in("Köln".encode("utf-16"))
    (None, 'cp1252', 'utf-16')
    """
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return None


def in_utf8(path: str, encoding: str, copy: str, most: int = sys.maxsize) -> None:
    """Write a file, unpacked, as UTF-8, or the beginning of it that has about `most` bytes. Raises as `lines` does.

    Bytes that are none of the encoding are none of UTF-8 in the copy, so that their lines are dead letters.
    """
    decoder = codecs.getincrementaldecoder(encoding)(_NO_TEXT)
    with pa.input_stream(path, compression="detect") as file, Path(copy).open("wb") as made:
        while made.tell() < most and (found := file.read(_CHUNK)):
            made.write(decoder.decode(found).encode("utf-8", "surrogateescape"))
        made.write(decoder.decode(b"", final=True).encode("utf-8", "surrogateescape"))
