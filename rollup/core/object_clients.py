"""What reads and writes objects by their names: object stores by obstore, HDFS by hdfs-native.

    client = client_of("s3", "bucket")
    client.create("a/name", b"content")  # FileExistsError when there is one

An error of a library is raised as it is; `meaning` says what it would be of a system.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import uuid4

from rollup.core.errors import ConfigError

if TYPE_CHECKING:
    from hdfs_native import FileStatus


class Seen(NamedTuple):
    """An object: its name, its size, when it was written (ms), and a text that changes with its content."""

    key: str
    size: int
    modified: int
    tag: str


class Client(Protocol):
    """One bucket of an object store, or one file system of HDFS. Names are relative to it, and use `/`."""

    def head(self, key: str) -> Seen:
        """An object that is there."""
        ...

    def get(self, key: str) -> bytes:
        """All bytes of an object."""
        ...

    def pieces(self, key: str) -> Iterator[Any]:
        """The same, one piece after the other."""
        ...

    def put(self, key: str, content: bytes) -> None:
        """Write an object. Readers find the old one or the new one, both whole."""
        ...

    def create(self, key: str, content: bytes) -> None:
        """Write an object unless there is one of the name, in one act."""
        ...

    def move(self, key: str, target: str) -> None:
        """Give an object, or all below a name, another name."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; one that is not there is passed over."""
        ...

    def clear(self, key: str) -> None:
        """Remove all objects below a name."""
        ...

    def below(self, key: str) -> Iterator[Seen]:
        """All objects below a name, at any depth; of the empty name, all there are."""
        ...

    def names(self, key: str) -> list[str]:
        """The names of one level below a name."""
        ...

    def meaning(self, problem: Exception) -> tuple[int, str] | None:
        """What an error of the library is: a number of `errno` and a text that tells no key. None for one of another."""
        ...


CLIENTS: Mapping[str, str] = {"s3": "obstore", "az": "obstore", "abfss": "obstore", "hdfs": "hdfs_native"}
"""The package that reads and writes the names of a scheme."""
_PREFIXES = {"obstore": ("AWS_", "AZURE_", "AZURITE_"), "hdfs_native": ("HADOOP_", "KRB5")}
"""How the variables begin that say where and as whom."""


def client_of(scheme: str, authority: str) -> Client:
    """The client of a bucket or a file system; one for as long as the environment says the same."""
    prefixes = _PREFIXES[CLIENTS[scheme]]
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith(prefixes)))
    return _client(scheme, authority, settings)


@lru_cache(32)
def _client(scheme: str, authority: str, settings: tuple[tuple[str, str], ...]) -> Client:
    makers: Mapping[str, Callable[[str, Mapping[str, str]], Client]] = {"obstore": Bucket, "hdfs_native": Hdfs}
    return makers[CLIENTS[scheme]](f"{scheme}://{authority}", dict(settings))


_STATUS = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
_DETAIL = re.compile(r"(?:: Error performing|: Generic|\n|<).*", re.DOTALL)
_RETRIES: Any = {"max_retries": 8, "retry_timeout": timedelta(seconds=30)}


class Bucket:
    """A bucket of S3, or a container of Azure."""

    def __init__(self, url: str, settings: Mapping[str, str]) -> None:
        from obstore.store import from_url

        profile: Any = None
        if "AWS_PROFILE" in settings and "AWS_ACCESS_KEY_ID" not in settings:
            try:
                from obstore.auth.boto3 import Boto3CredentialProvider
            except ImportError:
                raise ConfigError(f"{url}: a profile is read by boto3", hint="`pip install boto3`") from None
            profile = Boto3CredentialProvider()
        plain = any(value.startswith("http://") for value in settings.values())
        options: Any = {"timeout": "20s", "allow_http": plain}
        self._store = from_url(url, client_options=options, retry_config=_RETRIES, credential_provider=profile)

    def head(self, key: str) -> Seen:
        import obstore

        return _seen(obstore.head(self._store, key))

    def get(self, key: str) -> bytes:
        import obstore

        return bytes(obstore.get(self._store, key).bytes())

    def pieces(self, key: str) -> Iterator[Any]:
        import obstore

        return iter(obstore.get(self._store, key).stream())

    def put(self, key: str, content: bytes) -> None:
        import obstore

        obstore.put(self._store, key, content, use_multipart=False)

    def create(self, key: str, content: bytes) -> None:
        import obstore

        obstore.put(self._store, key, content, mode="create", use_multipart=False)

    def move(self, key: str, target: str) -> None:
        """One after the other: whoever looks meanwhile finds some objects under both names, and none under neither."""
        import obstore

        for name in [each.key for each in self.below(key)] or [key]:
            obstore.copy(self._store, name, target + name.removeprefix(key))
            obstore.delete(self._store, name)

    def delete(self, keys: Sequence[str]) -> None:
        import obstore

        if keys:
            obstore.delete(self._store, keys)

    def clear(self, key: str) -> None:
        self.delete([each.key for each in self.below(key)])

    def below(self, key: str) -> Iterator[Seen]:
        import obstore

        for some in obstore.list(self._store, f"{key}/" if key else None):
            yield from map(_seen, some)

    def names(self, key: str) -> list[str]:
        import obstore

        found = obstore.list_with_delimiter(self._store, key or None)
        paths = [*(each["path"] for each in found["objects"]), *found["common_prefixes"]]
        return [path.rstrip("/").rpartition("/")[2] for path in paths]

    def meaning(self, problem: Exception) -> tuple[int, str] | None:
        from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError

        if isinstance(problem, FileNotFoundError):
            return errno.ENOENT, os.strerror(errno.ENOENT)
        if isinstance(problem, AlreadyExistsError):
            return errno.EEXIST, os.strerror(errno.EEXIST)
        if isinstance(problem, (PermissionDeniedError, UnauthenticatedError)):
            return errno.EACCES, "the object store does not allow it"
        if not isinstance(problem, BaseError):
            return None
        status = _STATUS.search(str(problem))
        said = status[1].strip() if status else _DETAIL.sub("", str(problem)) or type(problem).__name__
        return errno.EIO, f"the object store answers: {said}"


def _seen(found: Mapping[str, Any]) -> Seen:
    return Seen(found["path"], found["size"], int(found["last_modified"].timestamp() * 1000), str(found["e_tag"]))


_DRAFT = "._COPYING_"
"""How Hadoop's own programs end the name of a file that is not finished; its readers pass over those."""
_PIECE = 1 << 23
_PATIENCE = {
    "dfs.client.failover.max.attempts": "7",
    "dfs.client.failover.sleep.base.millis": "500",
    "dfs.client.failover.sleep.max.millis": "4000",
}
"""Half a minute until a name node that does not answer is said to be away; the library's own is many minutes."""
_MESSAGE = re.compile(r'RPCError\("[\w.$]*?(\w+)", "((?:[^"\\]|\\(?!n))*)')


class Hdfs:
    """A file system of HDFS, as its name node or a configuration of Hadoop names it.

    HDFS shows a file from its first byte on. So an object is written under the name of a draft, and gets its own by a
    rename, which the name node does in one act, and refuses where it shall not replace.
    """

    def __init__(self, url: str, _settings: Mapping[str, str]) -> None:
        from hdfs_native import Client as Native

        self._native = Native(url, _PATIENCE)

    def head(self, key: str) -> Seen:
        found = self._native.get_file_info(f"/{key}")
        if found.isdir:
            raise FileNotFoundError
        return _status(found)

    def get(self, key: str) -> bytes:
        with self._native.read(f"/{key}") as file:
            return bytes(file.read())

    def pieces(self, key: str) -> Iterator[Any]:
        with self._native.read(f"/{key}") as file:
            while piece := file.read(_PIECE):
                yield piece

    def put(self, key: str, content: bytes) -> None:
        self._write(key, content, replace=True)

    def create(self, key: str, content: bytes) -> None:
        self._write(key, content, replace=False)

    def _write(self, key: str, content: bytes, *, replace: bool) -> None:
        draft = f"/{key}.{uuid4().hex}{_DRAFT}"
        try:
            with self._native.create(draft) as file:
                file.write(content)
            self._native.rename(draft, f"/{key}", replace)
        except BaseException:
            with suppress(Exception):
                self._native.delete(draft)
            raise

    def move(self, key: str, target: str) -> None:
        self._native.mkdirs(f"/{target}".rpartition("/")[0] or "/")
        self._native.rename(f"/{key}", f"/{target}", True)

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._native.delete(f"/{key}")

    def clear(self, key: str) -> None:
        self._native.delete(f"/{key}", recursive=True)

    def below(self, key: str) -> Iterator[Seen]:
        return (_status(found) for found in self._list(key, deep=True) if not found.isdir)

    def names(self, key: str) -> list[str]:
        return [found.path.rpartition("/")[2] for found in self._list(key, deep=False)]

    def _list(self, key: str, *, deep: bool) -> Iterator[FileStatus]:
        """What is in a folder; nothing where there is none, as it may be gone while it is listed."""
        with suppress(FileNotFoundError):
            for found in self._native.list_status(f"/{key}", deep):
                if not found.path.endswith(_DRAFT) and found.path != f"/{key}":  # that is a file: it has nothing below
                    yield found

    def meaning(self, problem: Exception) -> tuple[int, str] | None:
        if not isinstance(problem, (OSError, RuntimeError)) or getattr(problem, "errno", None) is not None:
            return None  # the library's own have no number
        if isinstance(problem, (FileNotFoundError, FileExistsError)):
            number = errno.ENOENT if isinstance(problem, FileNotFoundError) else errno.EEXIST
            return number, os.strerror(number)
        said = _MESSAGE.search(str(problem))
        if said is not None and said[1] == "AccessControlException":
            return errno.EACCES, f"HDFS does not allow it: {said[2]}"
        if said is not None and said[1] == "ParentNotDirectoryException":
            return errno.ENOTDIR, os.strerror(errno.ENOTDIR)
        return errno.EIO, f"HDFS answers: {said[2] if said else str(problem).partition(chr(10))[0]}"


def _status(found: FileStatus) -> Seen:
    tag = f"{found.modification_time}-{found.length}"
    return Seen(found.path.lstrip("/"), found.length, found.modification_time, tag)
