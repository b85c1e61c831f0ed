"""Checksums of Spark's own log of a streaming query: what its entries say decides which events a batch has.

They stand in a file beside the log, a line an entry, added when its batch begins: Spark writes an entry once, and before
the batch. An entry without a line is from before there were checksums.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rollup.core.errors import StoreError
from rollup.core.objects import ObjectPath, replace_durably
from rollup.hosts.spark.query_log import remove, spent

_FILE = "rollup-sums"
_AT_ONCE = 8
_LINE = re.compile(r"([0-9a-f]{8}) ([0-9a-f]{8}) ([^\n]+)")
"""The checksum of the rest of the line, of the entry, and the entry's path below the log."""


class LogSums:
    """The checksums of the log in a checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self._known: dict[str, str] | None = None

    def verify(self) -> None:
        """Raises StoreError when an entry is another one than Spark has written."""
        known = self._read()
        names = [name for name in self._entries() if name in known]
        with ThreadPoolExecutor(_AT_ONCE) as pool:  # of objects each is a request
            sums = [*pool.map(self._sum, names)]
        for name, found in zip(names, sums, strict=True):
            if known[name] != found:
                raise StoreError(
                    f"{self.checkpoint / name} is damaged: its checksum is another than {self.checkpoint / _FILE} says",
                    hint=f"bring the checkpoint back, or remove {self.checkpoint}: the stream is read from its start, and "
                    "tables and sinks pass over what they have",
                )

    def add(self) -> None:
        """Note the entries that are new."""
        known = self._read()
        new = {name: self._sum(name) for name in self._entries() if name not in known}
        if new:
            known |= new
            if isinstance(self.checkpoint, ObjectPath):
                self._write()
                return
            with (self.checkpoint / _FILE).open("a") as file:
                file.write("".join(_line(name, found) for name, found in new.items()))

    def _write(self) -> None:
        text = "".join(_line(name, found) for name, found in self._read().items())
        replace_durably(self.checkpoint / _FILE, text.encode())

    def forget(self, entries: Collection[Path]) -> None:
        """Entries are going to be removed or changed; lines of others that are there no more go as well."""
        gone = {path.relative_to(self.checkpoint).as_posix() for path in entries}
        there = set(self._entries()) - gone
        self._known = {name: found for name, found in self._read().items() if name in there}
        self._write()

    def _entries(self) -> Iterator[str]:
        for log in (self.checkpoint / "offsets", self.checkpoint / "commits", *self.checkpoint.glob("sources/*")):
            for path in log.iterdir() if log.is_dir() else ():
                if path.name[0].isdigit():
                    yield path.relative_to(self.checkpoint).as_posix()

    def _read(self) -> dict[str, str]:
        """By entry, its checksum; of a line that is damaged nothing is known."""
        if self._known is None:
            try:
                lines = (self.checkpoint / _FILE).read_text(errors="replace").split("\n")
            except FileNotFoundError:
                lines = []
            found = [match for match in map(_LINE.fullmatch, lines) if match is not None]
            self._known = {m[3]: m[2] for m in found if _line(m[3], m[2]).startswith(m[1])}
        return self._known

    def _sum(self, name: str) -> str:
        return f"{zlib.crc32((self.checkpoint / name).read_bytes()):08x}"


def _line(name: str, found: str) -> str:
    rest = f"{found} {name}"
    return f"{zlib.crc32(rest.encode()):08x} {rest}\n"


def release(checkpoint: Path) -> None:
    """Remove what the log of a query has that nothing reads any more."""
    if over := spent(checkpoint):
        LogSums(checkpoint).forget(over)
        remove(over)
