"""Which files a batch has: the log of its source says it, by name and modification time.

What the log wrote down is the same each time a batch is tried. It has the format of Spark's own source of files, which
older checkpoints have; `rollup.sources.new_files` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from rollup.core.errors import StoreError, refused_by_system
from rollup.core.objects import is_object, replace_durably

_LEGAL = "/!'()*,;:$&+=@~-_."
"""Signs that Java leaves as they are in the path of a URI, beside letters, digits and what is no ASCII."""


@dataclass(frozen=True)
class Listed:
    """A file as the log has it: its path, when it was modified (ms), and the number of the entry that names it."""

    path: str
    modified: int
    entry: int


def in_order(modified: int) -> int:
    """The place of a file among those of a batch, by when it was modified (ms): files that were made within one second are
    in the order of their names.

    >>> in_order(1_500), in_order(1_999)
    (1, 1)
    """
    return modified // 1000


def planned(checkpoint: Path, batch: int) -> list[Listed]:
    """The files of a batch of the streaming query of a checkpoint. Raises StoreError when its log does not say."""
    upto = _position(checkpoint, batch)
    before = _position(checkpoint, batch - 1) if batch else -1
    return list(listed(checkpoint, range(before + 1, upto + 1)))


def listed(checkpoint: Path, entries: range | None) -> Iterator[Listed]:
    """The files that entries of the source's log name, in its order; None: all that it knows."""
    folder = sources_log(checkpoint)
    if entries is None:
        yield from map(parsed, lines_of(folder))
        return
    missing = set(entries)
    for file in _files(folder) if missing else ():
        number, compact = _number(file), file.suffix == ".compact"
        if number < entries.start or not missing or not (compact or number in missing):
            continue
        for found in map(parsed, _lines(file)):
            if found.entry in missing:
                yield found
        missing -= set(range(number + 1)) if compact else {number}


def sources_log(checkpoint: Path) -> Path:
    """The folder of the source's log in the checkpoint of a query."""
    return checkpoint / "sources" / "0"


def lines_of(log: Path) -> list[str]:
    """A line for each file that a log knows: those of the last entry that sums up, and of the entries behind it."""
    files = _files(log)
    last = max((at for at, file in enumerate(files) if file.suffix), default=0)
    return [line for file in files[last:] for line in _lines(file)]


def _files(log: Path) -> list[Path]:
    return sorted((file for file in log.iterdir() if _number(file) >= 0), key=_number) if log.is_dir() else []


def _number(file: Path) -> int:
    """The number of an entry of a log, `17` or `19.compact`; -1 for what is none."""
    return int(file.stem) if file.stem.isdigit() and file.suffix in ("", ".compact") else -1


def _lines(file: Path) -> list[str]:
    # Not `splitlines`, which also cuts at signs that a name may have.
    return [line for line in file.read_text().split("\n")[1:] if line]


def parsed(line: str) -> Listed:
    """The file that a line of the log names."""
    row = json.loads(line)
    return Listed(named(row["path"]), int(row["timestamp"]), int(row["batchId"]))


def move(checkpoint: Path, old: str, new: str) -> None:
    """Let the source's log name the files of a folder in another one, where they are now."""
    for file in sources_log(checkpoint).glob("[0-9]*"):
        head, *lines = file.read_text().split("\n")
        moved = [_moved(json.loads(line), old, new) if line else line for line in lines]
        replace_durably(file, "\n".join([head, *moved]).encode())


def _moved(row: dict[str, Any], old: str, new: str) -> str:
    """A line of the log; the name below the folder is left as Spark has written it."""
    scheme, path = row["path"].partition("//")[0], urlsplit(row["path"]).path
    place = old.rstrip("/") + "/"
    cut = next((end for end in range(len(place), len(path) + 1) if unquote(path[:end]) == place), None)
    if cut is not None:
        row = {**row, "path": f"{scheme}//{as_java(new.rstrip('/') + '/')}{path[cut:]}"}
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False)


def as_java(path: str) -> str:
    """A path as Java writes it into a URI.

    >>> as_java("/in/é [1] 5%.json")
    '/in/é%20%5B1%5D%205%25.json'
    """
    return "".join(sign if not sign.isascii() or sign.isalnum() or sign in _LEGAL else quote(sign) for sign in path)


def as_uri(path: str) -> str:
    """A file, or an object, as the log writes it.

    >>> as_uri("/in/a b.json"), as_uri("s3://bucket/in/a#.json")
    ('file:///in/a%20b.json', 's3://bucket/in/a%23.json')
    """
    if not is_object(path):
        return f"file://{as_java(path)}"
    scheme, _, name = path.partition("://")
    return f"{scheme}://{as_java(name)}"


def named(uri: str) -> str:
    """The path of a file, or the name of an object, that the log writes as a URI.

    >>> named("file:///in/a%2541%23.json"), named("s3://bucket/in/a%23.json")
    ('/in/a%41#.json', 's3://bucket/in/a#.json')
    """
    if is_object(uri):
        return unquote(uri)
    return unquote(urlsplit(uri).path)


def _position(checkpoint: Path, batch: int) -> int:
    """The newest entry of the source's log that a batch has."""
    try:
        return int(logged(checkpoint / "offsets" / str(batch), checkpoint, batch)["logOffset"])
    except (ValueError, KeyError, TypeError) as problem:
        raise unsaid(checkpoint, batch, problem) from None


def logged(entry: Path, checkpoint: Path, batch: int) -> Any:
    """What an entry of the log of a query says of its source: its last line. Raises StoreError."""
    try:
        return json.loads(entry.read_text().strip().split("\n")[-1])
    except (OSError, ValueError) as problem:
        refused = refused_by_system(f"cannot read {entry}", problem)
        raise refused or unsaid(checkpoint, batch, problem) from None


def planned_at(checkpoint: Path, batch: int) -> int | None:
    """When a batch was planned, ms since 1970: the same each time it is tried. None where the log does not say."""
    try:
        said = json.loads((checkpoint / "offsets" / str(batch)).read_text().split("\n")[1])
        return int(said["batchTimestampMs"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def unsaid(checkpoint: Path, batch: int, problem: object) -> StoreError:
    """The error of a log from which it cannot be known what a batch has."""
    return StoreError(f"the log of the stream in {checkpoint} does not say what batch {batch} has: {problem}")
