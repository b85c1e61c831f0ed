"""Files of ours carry a checksum that is verified when they are read, so that a damaged one is never taken for data.

A JSON file has it as its last key, over all the bytes before; a file of rows has it in its name, which the commit
record gives, or for a data file the log of its table. Files from before there were checksums are read as they are.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

_CHECKSUM = "checksum"
_END = re.compile(rb', "checksum": "([0-9a-f]{8})"\}\s*\Z')
_NAME = re.compile(r"-c([0-9a-f]{8})(?:-[0-9]+\.arrow|\.parquet)\Z")
_CHUNK = 1 << 20


def sealed(content: Mapping[str, Any], indent: int | None = None) -> bytes:
    """An object that is not empty as JSON, with its checksum.

    >>> sealed({"a": 1})
    b'{"a": 1, "checksum": "7aa88204"}'
    """
    text = json.dumps(content, indent=indent, default=str).encode().removesuffix(b"}")
    return text + f', "{_CHECKSUM}": "{zlib.crc32(text):08x}"}}'.encode()


def unsealed(content: bytes, known: Collection[str]) -> dict[str, Any]:
    """The object that `sealed` made bytes of. Raises ValueError when it is damaged, or has keys that are not `known`.

    >>> unsealed(b'{"a": 2, "checksum": "7aa88204"}', ["a"])
    Traceback (most recent call last):
    ValueError: its checksum is another
    """
    end = _END.search(content)
    if end is not None:
        if zlib.crc32(content[: end.start()]) != int(end.group(1), 16):
            raise ValueError("its checksum is another")
        content = content[: end.start()] + b"}"
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    if strange := set(found) - set(known):
        raise ValueError(f"it has {', '.join(sorted(strange))}")
    return found


def named(name: str, content: bytes | memoryview) -> str:
    """The name of a file of rows (`…-<number>.arrow`, `….parquet`) with the checksum of its content.

    >>> named("open-DAYS-000000000012.arrow", b"rows")
    'open-DAYS-c0a8bf4a1-000000000012.arrow'
    >>> named("part-7.parquet", b"rows")
    'part-7-c0a8bf4a1.parquet'
    """
    start, sign, end = name.rpartition("." if name.endswith(".parquet") else "-")
    return f"{start}-c{zlib.crc32(content):08x}{sign}{end}"


def says_its_sum(name: str) -> bool:
    """Whether the name of a file of rows has a checksum."""
    return _NAME.search(name) is not None


def verified(path: Path) -> bool:
    """Whether the name of a file of rows says its checksum. Raises OSError, and ValueError when it is another."""
    expected = _NAME.search(path.name)
    if expected is None:
        return False
    if sum_of(path) != int(expected.group(1), 16):
        raise ValueError("its checksum is another")
    return True


def sum_of(path: Path) -> int:
    """The checksum of a file. Raises OSError."""
    found = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found = zlib.crc32(chunk, found)
    return found
