"""Files and objects by name: what a store keeps beside its tables lies in a folder, or in an object store.

A name is a `Path`. One of a folder is Python's own, and nothing is between it and the system; one of an object store
(`s3://bucket/name`, `az://container/name`) is an `ObjectPath`, which does the same by requests. Four acts differ in more than the way there,
and are functions here: `create` (once, whoever is first), `write_durably`, `replace_durably` and `names_in`.

Who may read and write is said by the environment, as the libraries of each store have it; nothing of it is kept here.
"""

from __future__ import annotations

import errno
import fnmatch
import io
import os
import re
import shutil
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PosixPath
from threading import get_native_id
from typing import Any, Self

from rollup.core.object_clients import CLIENTS, Client, client_of

_NAME = re.compile(r"([a-z][a-z0-9+.-]*):/+([^/]+)(?:/+(.*))?\Z", re.DOTALL)


def at(text: str | Path, base: Path | None = None) -> Path:
    """The file or object of a name; `base` is the folder that one of this machine is relative to.

    >>> str(at("s3://bucket/tables") / "TradeAgg"), str(at("tables", Path("/jobs")))
    ('s3://bucket/tables/TradeAgg', '/jobs/tables')
    """
    if isinstance(text, Path):
        return text
    if is_object(text):
        return ObjectPath(text)
    return Path(text) if base is None else base / text


def is_object(text: str) -> bool:
    """Whether a text is the name of an object."""
    return package_of(text) is not None


def package_of(text: str) -> str | None:
    """The package that reads and writes what has a name; None for a file of this machine.

    >>> package_of("hdfs://namenode:8020/tables"), package_of("/tables")
    ('hdfs_native', None)
    """
    scheme, found, _ = text.partition("://")
    return CLIENTS.get(scheme) if found else None


class ObjectPath(PosixPath):
    """An object, or all objects whose names begin so, with the methods of a path that this package uses.

    Any other would ask the system for a file, and is refused. Errors of the object store are raised as OSError.
    """

    def __str__(self) -> str:
        found = _NAME.match(super().__str__())
        return super().__str__() if found is None else f"{found[1]}://{'/'.join(filter(None, found.groups()[1:]))}"

    def __fspath__(self) -> str:
        raise OSError(errno.ENOTSUP, "it is an object, and can only be read and written as a whole", str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),)

    @property
    def key(self) -> str:
        """The name within its bucket."""
        return self._split[2] or ""

    @contextmanager
    def _asking(self) -> Generator[Client]:
        """The client of its bucket. Errors are raised as those of a system, without what was sent: that can name a key."""
        scheme, bucket, _ = self._split
        client = client_of(scheme, bucket)
        try:
            yield client
        except Exception as problem:
            if (meaning := client.meaning(problem)) is None:
                raise
            raise OSError(*meaning, str(self)) from None

    @property
    def _split(self) -> tuple[str, str, str | None]:
        found = _NAME.match(str(self))
        if found is None:
            raise OSError(errno.EINVAL, "it names no bucket", str(self))
        return found[1], found[2], found[3]

    # what there is

    def is_file(self, **_: Any) -> bool:
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self, **_: Any) -> bool:
        return next(self.listed(), None) is not None

    def exists(self, **_: Any) -> bool:
        return self.is_file() or self.is_dir()

    def stat(self, **_: Any) -> os.stat_result:
        """Its size and time; the number of the file is that of its content, as the store has it."""
        with self._asking() as client:
            found = client.head(self.key)
        seconds = found.modified // 1000
        number = zlib.crc32(found.tag.encode())
        return os.stat_result((0o100644, number, 0, 1, 0, 0, found.size, seconds, seconds, seconds))

    def iterdir(self) -> Generator[Self]:
        yield from (self / name for name in names_in(self))

    def glob(self, pattern: str, **_: Any) -> Iterator[Self]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Those of one level, as the patterns of this package are, or of two: `*/name`."""
        first, _sign, rest = pattern.partition("/")
        for name in names_in(self):
            if fnmatch.fnmatchcase(name, first):
                yield from (self / name).glob(rest) if rest else (self / name,)

    def rglob(self, pattern: str, **_: Any) -> Iterator[Self]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Those of all levels whose last name is as a pattern."""
        for name, _modified in self.listed():
            path = self / name
            if fnmatch.fnmatchcase(path.name, pattern):
                yield path

    def resolve(self, strict: bool = False) -> Self:
        return self

    def absolute(self) -> Self:
        return self

    def is_absolute(self) -> bool:
        return True

    # reading and writing

    def read_bytes(self) -> bytes:
        with self._asking() as client:
            return client.get(self.key)

    def read_text(self, encoding: str | None = None, errors: str | None = None, newline: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def open(self, *_: Any, **__: Any) -> Any:
        """Its bytes, to be read."""
        return io.BytesIO(self.read_bytes())

    def write_bytes(self, data: Any) -> int:
        with self._asking() as client:
            client.put(self.key, bytes(data))
        return len(data)

    def write_text(
        self, data: str, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> int:
        return self.write_bytes(data.encode(encoding or "utf-8"))

    def create(self, content: bytes) -> None:
        """As `create`. An answer may be lost on its way and the request come twice: what is there then is ours."""
        try:
            with self._asking() as client:
                client.create(self.key, content)
        except OSError as problem:
            try:
                if self.read_bytes() == content:
                    return
            except OSError:
                raise problem from None
            if isinstance(problem, FileExistsError):
                raise
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self)) from None

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: an object needs no folder."""

    def rmdir(self) -> None:
        """Nothing: it is gone with its last object."""

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok and not self.is_file():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        with self._asking() as client:
            client.delete([self.key])

    def rename(self, target: Any) -> Self:
        with self._asking() as client:
            client.move(self.key, target.key)
        return target

    def names(self) -> list[str]:
        """As `names_in`."""
        with self._asking() as client:
            return client.names(self.key)

    def listed(self) -> Iterator[tuple[str, int]]:
        """All objects whose names begin so: the rest of the name, and when it was written, ms."""
        prefix = f"{self.key}/" if self.key else ""
        with self._asking() as client:
            for found in client.below(self.key):
                yield found.key.removeprefix(prefix), found.modified

    def fetch(self, file: Path) -> None:
        """Write its bytes into a file of this machine, piece by piece."""
        with self._asking() as client, file.open("wb") as target:
            for piece in client.pieces(self.key):
                target.write(piece)

    def remove_all(self) -> None:
        """Remove all objects whose names begin so."""
        with self._asking() as client:
            client.clear(self.key)


def create(path: Path, content: bytes) -> None:
    """Make a file that appears whole, and once: raises FileExistsError when there is one of the name."""
    if isinstance(path, ObjectPath):
        return path.create(content)
    draft = path.with_name(f".{path.name}.{get_native_id()}")
    try:
        write_durably(draft, content)
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file whose content has reached the disk when this returns. Raises OSError that has its name."""
    if isinstance(path, ObjectPath):
        path.write_bytes(content)
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as problem:  # what a full disk says of a file that was opened is without it
        raise OSError(problem.errno, problem.strerror, str(path)) from None


def replace_durably(path: Path, content: bytes) -> None:
    """Write a file that readers, and whoever is killed in the middle, find whole: the old one or the new one."""
    if isinstance(path, ObjectPath):
        path.write_bytes(content)
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_durably(draft, content)
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)


def names_in(folder: Path) -> list[str]:
    """The names in a folder. Raises FileNotFoundError where there is none, but not for objects: none has one."""
    return folder.names() if isinstance(folder, ObjectPath) else os.listdir(folder)


def holds_table(folder: Path) -> bool:
    """Whether there is a Delta table. Raises OSError where that cannot be said.

    The library's own question keeps all threads of the process waiting until a store has answered, a lease's too. (Its
    writes do so as well; of them there is no other way.)
    """
    try:
        return any(name[:20].isdigit() for name in names_in(folder / "_delta_log"))
    except (FileNotFoundError, NotADirectoryError):
        return False


def renew(path: Path) -> None:
    """Give a file that is there the time of now."""
    if isinstance(path, ObjectPath):
        path.write_bytes(path.read_bytes())
    else:
        os.utime(path)


def absent(files: Sequence[Path]) -> list[str]:
    """Those of some files that are not there; a folder of objects is asked once for all that are in it."""
    if not any(isinstance(file, ObjectPath) for file in files):
        return [str(file) for file in files if not file.exists()]
    there = {folder: set(names_in(folder)) for folder in {file.parent for file in files}}
    return [str(file) for file in files if file.name not in there[file.parent]]


def remove_all(folder: Path) -> None:
    """Remove a folder with all that is in it, as far as that is allowed."""
    if isinstance(folder, ObjectPath):
        folder.remove_all()
    else:
        shutil.rmtree(folder, ignore_errors=True)
