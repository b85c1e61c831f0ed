"""Files of an object store that never change, kept on this machine: what was read or written once is not fetched again.

Their names say which content they have, so a copy is never out of date. DuckDB and Arrow then read files, as they do of
a folder. The copies take a bounded place: those that were used longest ago go first, but none of the last minutes, since
somebody may be reading it.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from rollup.core.cache import cache_root
from rollup.core.objects import ObjectPath, at, is_object

LIMIT = "ROLLUP_OBJECTS_MB"
"""The variable that says how many megabytes copies may take."""
_LIMIT_MB = 4096
_AT_ONCE = 8
_SERVERS = ("AWS_ENDPOINT_URL", "AZURE_STORAGE_ACCOUNT_NAME", "AZURITE_BLOB_STORAGE_URL", "HADOOP_CONF_DIR")
"""What says, beside the name of a bucket, which one it is."""
_IN_USE = 600.0
"""Seconds since its last use for which a copy stays in any case."""
_MARKED = 60.0
"""Seconds after which a further use is noted."""
_swept_at = 1 << 26
"""Bytes after which the place is looked through again."""
_lock = threading.Lock()
_fetched = [_swept_at]


def near(file: Path) -> Path:
    """A file that never changes, as one of this machine. Raises OSError; FileNotFoundError when there is none."""
    if not isinstance(file, ObjectPath):
        return file
    copy = _copy_of(file)
    if not _used(copy):
        _put(copy, file.read_bytes())
    return copy


def all_near(files: Sequence[str]) -> list[str]:
    """The same for files by name, many at once; one that is gone has the name of a file that is not there."""
    if not files or not is_object(files[0]):  # all are of one store
        return list(files)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="fetch") as pool:
        return list(pool.map(_near, files))


def keep(file: Path, content: bytes | memoryview) -> None:
    """Keep a copy of what was just written; a place that is full is no reason not to go on."""
    if isinstance(file, ObjectPath):
        with suppress(OSError):
            _put(_copy_of(file), content)


def place() -> Path:
    """The folder of the copies."""
    return Path(os.environ.get("ROLLUP_CACHE_OBJECTS") or cache_root() / "objects")


def _near(file: str) -> str:
    path = at(file)
    try:
        return str(near(path))
    except FileNotFoundError:
        return str(_copy_of(path))


def _copy_of(file: Path) -> Path:
    servers = " ".join(os.environ.get(name, "") for name in _SERVERS)
    where = f"{servers} {file.parent}"
    return place() / f"{hashlib.sha256(where.encode()).hexdigest()[:24]}-{file.name}"


def _used(copy: Path) -> bool:
    """Whether there is a copy; its use is noted."""
    try:
        if time.time() - copy.stat().st_mtime > _MARKED:
            os.utime(copy)
    except OSError:
        return False
    return True


def _put(copy: Path, content: bytes | memoryview) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    draft = copy.with_name(f".{copy.name}.{threading.get_native_id()}")
    try:
        draft.write_bytes(content)
        draft.rename(copy)
    finally:
        draft.unlink(missing_ok=True)
    with _lock:
        _fetched[0] += len(content)
        due = _fetched[0] >= _swept_at
        if due:
            _fetched[0] = 0
    if due:
        sweep(int(os.environ.get(LIMIT, _LIMIT_MB)) << 20)


def sweep(limit: int) -> None:
    """Remove copies until what is left takes no more than a limit, or is in use."""
    found = list(_sizes(place().iterdir()))
    total = sum(size for _, size, _ in found)
    for used, size, copy in sorted(found):
        if total <= limit or time.time() - used < _IN_USE:
            return
        copy.unlink(missing_ok=True)
        total -= size


def _sizes(files: Iterable[Path]) -> Iterable[tuple[float, int, Path]]:
    for file in files:
        with suppress(OSError):
            seen = file.stat()
            yield seen.st_mtime, seen.st_size, file
