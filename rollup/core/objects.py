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
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path, PosixPath
from threading import get_native_id
from typing import TYPE_CHECKING, Any, Self

from rollup.core.errors import ConfigError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = ("s3", "az", "abfss")
"""The object stores whose names are read and written."""
_NAME = re.compile(r"([a-z][a-z0-9+.-]*):/+([^/]+)(?:/+(.*))?\Z", re.DOTALL)
_PREFIXES = ("AWS_", "AZURE_", "AZURITE_")
_STATUS = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
_DETAIL = re.compile(r"(?:: Error performing|: Generic|\n|<).*", re.DOTALL)
_RETRIES: Any = {"max_retries": 8, "retry_timeout": timedelta(seconds=30)}


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
    return text.partition("://")[0] in SCHEMES and "://" in text


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

    @property
    def store(self) -> ObjectStore:
        """The client of its bucket."""
        scheme, bucket, _ = self._split
        settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_PREFIXES)))
        return _client(f"{scheme}://{bucket}", settings)

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
        return next(self._below(), None) is not None

    def exists(self, **_: Any) -> bool:
        return self.is_file() or self.is_dir()

    def stat(self, **_: Any) -> os.stat_result:
        """Its size and time; the number of the file is that of its content, as the store has it."""
        import obstore

        with self._asking():
            found = obstore.head(self.store, self.key)
        return _stat(found)

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
        for key in self._below():
            path = self / key.removeprefix(f"{self.key}/")
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
        import obstore

        with self._asking():
            return bytes(obstore.get(self.store, self.key).bytes())

    def read_text(self, encoding: str | None = None, errors: str | None = None, newline: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def open(self, *_: Any, **__: Any) -> Any:
        """Its bytes, to be read."""
        return io.BytesIO(self.read_bytes())

    def write_bytes(self, data: Any) -> int:
        import obstore

        with self._asking():
            obstore.put(self.store, self.key, bytes(data), use_multipart=False)
        return len(data)

    def write_text(
        self, data: str, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> int:
        return self.write_bytes(data.encode(encoding or "utf-8"))

    def create(self, content: bytes) -> None:
        """As `create`. An answer may be lost on its way and the request come twice: what is there then is ours."""
        import obstore

        try:
            with self._asking():
                obstore.put(self.store, self.key, content, mode="create", use_multipart=False)
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
        import obstore

        if not missing_ok and not self.is_file():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        with self._asking():
            obstore.delete(self.store, self.key)

    def rename(self, target: Any) -> Self:
        """One after the other: whoever looks meanwhile finds some objects under both names, and none under neither."""
        import obstore

        for name in [self.key] if self.is_file() else [*self._below()]:
            with self._asking():
                obstore.copy(self.store, name, target.key + name.removeprefix(self.key))
                obstore.delete(self.store, name)
        return target

    def listed(self) -> Iterator[tuple[str, int]]:
        """All objects whose names begin so: the rest of the name, and when it was written, ms."""
        import obstore

        prefix = f"{self.key}/" if self.key else ""
        with self._asking():
            for some in obstore.list(self.store, prefix or None):
                for each in some:
                    yield each["path"].removeprefix(prefix), int(each["last_modified"].timestamp() * 1000)

    def fetch(self, file: Path) -> None:
        """Write its bytes into a file of this machine, piece by piece."""
        import obstore

        with self._asking(), file.open("wb") as target:
            for piece in obstore.get(self.store, self.key).stream():
                target.write(piece)

    def remove_all(self) -> None:
        """Remove all objects whose names begin so."""
        import obstore

        if found := [*self._below()]:
            with self._asking():
                obstore.delete(self.store, found)

    def _below(self) -> Iterator[str]:
        import obstore

        with self._asking():
            for some in obstore.list(self.store, f"{self.key}/" if self.key else None):
                yield from (each["path"] for each in some)

    @contextmanager
    def _asking(self) -> Generator[None]:
        """Errors of the object store as those of a system, without what it sent: that can name a key."""
        from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError

        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self)) from None
        except AlreadyExistsError:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self)) from None
        except (PermissionDeniedError, UnauthenticatedError):
            raise OSError(errno.EACCES, "the object store does not allow it", str(self)) from None
        except BaseError as problem:
            status = _STATUS.search(str(problem))
            said = status[1].strip() if status else _DETAIL.sub("", str(problem)) or type(problem).__name__
            raise OSError(errno.EIO, f"the object store answers: {said}", str(self)) from None


def _stat(found: Mapping[str, Any]) -> os.stat_result:
    import zlib

    seconds = int(found["last_modified"].timestamp())
    number = zlib.crc32(str(found["e_tag"]).encode())
    return os.stat_result((0o100644, number, 0, 1, 0, 0, found["size"], seconds, seconds, seconds))


@lru_cache(32)
def _client(bucket: str, settings: tuple[tuple[str, str], ...]) -> ObjectStore:
    from obstore.store import from_url

    given = dict(settings)
    profile: Any = None
    if "AWS_PROFILE" in given and "AWS_ACCESS_KEY_ID" not in given:
        try:
            from obstore.auth.boto3 import Boto3CredentialProvider
        except ImportError:
            raise ConfigError(f"{bucket}: a profile is read by boto3", hint="`pip install boto3`") from None
        profile = Boto3CredentialProvider()
    plain = any(value.startswith("http://") for value in given.values())
    options: Any = {"timeout": "20s", "allow_http": plain}
    return from_url(bucket, client_options=options, retry_config=_RETRIES, credential_provider=profile)


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
    if not isinstance(folder, ObjectPath):
        return os.listdir(folder)
    import obstore

    with folder._asking():  # pyright: ignore[reportPrivateUsage]
        found = obstore.list_with_delimiter(folder.store, folder.key or None)
    paths = [*(each["path"] for each in found["objects"]), *found["common_prefixes"]]
    return [path.rstrip("/").rpartition("/")[2] for path in paths]


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
