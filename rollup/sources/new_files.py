"""The files that a streaming query has not read yet, in the order in which it reads them, and the log of those it has.

The list is ours: Spark's own takes files of one modification time in the order of the disk, so a batch that takes fewer
than there are would take any of them. An entry of the log names the files of a batch before Spark plans it, in Spark's
own format, so that a batch that is tried again has the same files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import structlog

from rollup.core.errors import ConfigError, StoreError
from rollup.core.objects import ObjectPath, replace_durably
from rollup.sources.file_log import Listed, as_uri, lines_of, parsed, sources_log

_SUMMED_UP = 10
"""Every so many entries of the log one has the files of all before it."""


class Listing(Protocol):
    """What a source has to read: the files of a folder, or what stands in their place."""

    @property
    def path(self) -> Path:
        """What reports call it."""
        ...

    def new(self, known: Collection[str] = ()) -> Iterator[Listed]:
        """What is not known by its name. Raises ConfigError where that cannot be said."""
        ...


@dataclass(frozen=True)
class Folder:
    """The files of a folder whose names a pattern has; `deep` says that folders below it count as well."""

    path: Path
    glob: str
    deep: bool = True

    def new(self, known: Collection[str] = ()) -> Iterator[Listed]:
        """The files that are not known by their paths, in no order. Raises ConfigError where the folder cannot be read."""
        pattern = matcher(self.glob)
        if isinstance(self.path, ObjectPath):
            yield from self._objects(self.path, pattern, known)
            return
        folders = [os.path.abspath(self.path)]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(folder) as there:
                    entries = [entry for entry in there if not _hidden(entry.name)]
            except FileNotFoundError:
                continue  # it has gone since, or an empty folder will come back
            except OSError as problem:
                raise ConfigError(f"cannot read the folder {folder}: {problem.strerror}") from None
            for entry in entries:
                if entry.path in known:
                    continue
                if entry.is_dir():
                    folders += [entry.path] if self.deep else []
                elif pattern.fullmatch(entry.name):
                    yield from _listed(entry)

    def _objects(self, folder: ObjectPath, pattern: re.Pattern[str], known: Collection[str]) -> Iterator[Listed]:
        """The same of objects; an object appears whole."""
        try:
            for name, modified in folder.listed():
                parts, path = name.split("/"), f"{folder}/{name}"
                if (len(parts) > 1 and not self.deep) or any(map(_hidden, parts)) or path in known:
                    continue
                if pattern.fullmatch(parts[-1]):
                    yield Listed(path, modified, -1)
        except OSError as problem:
            raise ConfigError(f"cannot list {folder}: {problem.strerror}") from None


def _listed(entry: os.DirEntry[str]) -> Iterator[Listed]:
    try:
        entry.path.encode()
        yield Listed(entry.path, entry.stat().st_mtime_ns // 1_000_000, -1)
    except FileNotFoundError:
        return
    except UnicodeEncodeError:
        structlog.get_logger("rollup").warning("a file is not read: its name is no UTF-8", file=repr(entry.path))


def _hidden(name: str) -> bool:
    """Names of files that are not finished, and of those that others keep beside theirs, as Spark has it."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def matcher(glob: str) -> re.Pattern[str]:
    r"""A pattern of names as Hadoop has it: `*`, `?`, `[a-z]`, `[^a]`, `{one,other}`, and `\` before a sign that is meant.

    Raises ConfigError when it is none.

    >>> [bool(matcher("{a,b?}[0-9]*.json").fullmatch(name)) for name in ("a1.json", "bb12.json", "b1.json")]
    [True, True, False]
    """
    found, at, braces = list[str](), 0, 0
    while at < len(glob):
        sign, rest = glob[at], glob[at + 1 :]
        if sign == "\\" and rest:
            found.append(re.escape(rest[0]))
            at += 1
        elif sign == "[":
            end = rest.find("]", 1)
            if end < 0:
                raise _no_pattern(glob, "a [ is not closed")
            inside = rest[:end]
            found.append(f"[{'^' if inside[0] in '!^' else ''}{inside.lstrip('!^')}]")
            at += end + 1
        elif sign in "{},":
            braces += {"{": 1, "}": -1, ",": 0}[sign]
            found.append({"{": "(?:", "}": ")", ",": "|" if braces else ","}[sign])
        else:
            found.append({"*": ".*", "?": "."}.get(sign) or re.escape(sign))
        at += 1
    try:
        return re.compile("".join(found), re.DOTALL)
    except re.error as problem:
        raise _no_pattern(glob, problem.msg) from None


def _no_pattern(glob: str, why: str) -> ConfigError:
    return ConfigError(f"`glob` is {glob!r}, which is no pattern of names: {why}")


class NewFiles:
    """The new files of a folder by `order`, at most so many an entry of the log in a query's checkpoint."""

    def __init__(self, folder: Listing, order: Callable[[Listed], Any], checkpoint: Path, most: int) -> None:
        self.folder, self.most = folder, most
        self._order = order
        self._log = sources_log(checkpoint)
        read = [parsed(line) for line in lines_of(self._log)]
        self._known = {file.path for file in read}
        self._newest = max((file.entry for file in read), default=-1)
        self._waiting = list[Listed]()  # the next one last
        self._closed = False

    def close(self) -> None:
        """Take no file that appears from now on."""
        self._look()
        self._closed = True

    def after(self, entry: int) -> int:
        """The entry behind one, which is written down by now; the same one when there is no new file.

        Raises StoreError when the log does not go as far as that.
        """
        if entry > self._newest:
            raise StoreError(
                f"the log of files in {self._log} ends with entry {self._newest}, and batches have read up to {entry}",
                hint=f"bring it back, or remove {self._log.parent.parent}: the stream is read from its start, and tables and "
                "sinks pass over what they have",
            )
        if entry < self._newest:
            return entry + 1  # it was written down, and the job ended before it was planned
        if len(self._waiting) < self.most and not self._closed:
            self._look()
        taken = self._waiting[: -self.most - 1 : -1]
        if taken:
            self._write(entry + 1, taken)
            del self._waiting[-len(taken) :]
        return self._newest

    def _look(self) -> None:
        self._waiting = sorted(self.folder.new(self._known), key=self._order, reverse=True)

    def _write(self, entry: int, files: list[Listed]) -> None:
        rows = ({"path": as_uri(file.path), "timestamp": file.modified, "batchId": entry} for file in files)
        lines = [json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in rows]
        summed = (entry + 1) % _SUMMED_UP == 0
        before = lines_of(self._log) if summed else []
        name = f"{entry}.compact" if summed else str(entry)
        self._log.mkdir(parents=True, exist_ok=True)
        replace_durably(self._log / name, "\n".join(["v1", *before, *lines]).encode())
        self._known |= {file.path for file in files}
        self._newest = entry
