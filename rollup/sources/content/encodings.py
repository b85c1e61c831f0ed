"""Files of text that are not UTF-8, written anew as what all readers take."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

import pyarrow as pa

_CHUNK = 8 << 20
_NO_TEXT = "rollup.no_text"
codecs.register_error(_NO_TEXT, lambda problem: ("\udcff", problem.end))  # pyright: ignore[reportAttributeAccessIssue]


_SIGNS = {
    b"\xfd7zXZ": "packed by xz", b"PK\3\4": "a zip archive (or a spreadsheet)", b"7z\xbc\xaf": "packed by 7z",
    b"\x1f\x8b": "packed by gzip", b"BZh": "packed by bzip2", b"\x28\xb5\x2f\xfd": "packed by zstd",
    b"\x04\x22\x4d\x18": "packed by lz4", b"%PDF": "a PDF", b"PAR1": "Parquet", b"SQLite format 3": "a database of SQLite",
    b"\xd0\xcf\x11\xe0": "a spreadsheet or document of Office", b"Obj\x01": "a file of Avro", b"ORC": "ORC",
}  # fmt: skip


def no_text(head: bytes) -> str | None:
    """What a file is that begins so, where it is known to be none of text, and the cure.

    >>> no_text(b"PAR1..."), no_text(b"a,b")
    ('it is Parquet, and its name says something else', None)
    """
    what = next((word for sign, word in _SIGNS.items() if head.startswith(sign)), None)
    if what is None or "packed" not in what:
        return what and f"it is {what}, and its name says something else"
    return f"it is {what}; names that end in .gz, .bz2, .zst or .lz4 are unpacked, others unpack first"


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
