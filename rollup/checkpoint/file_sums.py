"""Checksums of files that others may read, so that their names are not ours to choose: sinks' files, dead letters.

They are lines of a file `_rollup_sums` in the folder, which readers of Parquet and of Delta tables pass over: the checksum
of a file, its name, and the checksum of the line. The last line of a name counts. A line that is cut or damaged says
nothing, and neither does a name without a line. An object store keeps checksums itself, so there are none of ours.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from rollup.checkpoint.checksums import sum_of
from rollup.core.objects import is_object

_NAME, _LOG = "_rollup_sums", "_delta_log"
_TAIL, _MOST = 1 << 20, 100
"""The bytes at the end of the file in which the last commit is looked for, and how many commits are noted at once."""


class FileSums:
    """The checksums of a folder's files.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.parquet"
    ...     _ = file.write_bytes(b"rows")
    ...     sums = FileSums(Path(folder))
    ...     sums.add(["a.parquet"])
    ...     before = list(sums.damaged())
    ...     _ = file.write_bytes(b"Rows")
    ...     before, [Path(each).name for each in sums.damaged()]
    ([], ['a.parquet'])
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = None if is_object(str(folder)) else folder / _NAME

    def add(self, names: Iterable[str]) -> None:
        """Note the files as they are now; those that are not there are left out. Raises OSError."""
        if self._file is None:
            return
        lines = list[str]()
        for name in names:
            if (self.folder / name).is_file():
                line = f"{sum_of(self.folder / name):08x} {name}"
                lines.append(f"{line} {zlib.crc32(line.encode()):08x}\n")
        if lines:
            with self._file.open("a", encoding="utf-8") as file:
                file.write("\n" + "".join(lines))  # the line before may have been cut

    def add_commits(self) -> None:
        """Note what the newest commits of a Delta table have added, and their entries in its log. Raises OSError."""
        if self._file is None:
            return
        version = self._noted()
        if version is None or not self._entry(version).exists():  # nothing was noted, or the table went back
            newest = max((int(each.stem) for each in (self.folder / _LOG).glob("[0-9]*.json")), default=0)
            version = max(-1, newest - _MOST)
        for _ in range(_MOST):
            version += 1
            entry = self._entry(version)
            if not entry.exists():
                return
            log = [entry.with_suffix(".checkpoint.parquet"), entry]
            self.add([*_added(entry.read_bytes()), *(f"{_LOG}/{each.name}" for each in log)])

    def _entry(self, version: int) -> Path:
        return self.folder / _LOG / f"{version:020d}.json"

    def damaged(self, among: Collection[str] | None = None) -> Iterator[str]:
        """The files that are there with another checksum, of all or `among` some. Raises OSError."""
        if self._file is None or not self._file.exists():
            return
        for name, expected in dict(_read(self._file.read_bytes())).items():
            if among is not None and name not in among:
                continue
            if (self.folder / name).is_file() and sum_of(self.folder / name) != expected:
                yield str(self.folder / name)

    def _noted(self) -> int | None:
        """The version of the last commit that was noted."""
        assert self._file is not None
        if not self._file.exists():
            return None
        with self._file.open("rb") as file:
            file.seek(max(0, self._file.stat().st_size - _TAIL))
            names = [Path(name) for name, _ in _read(file.read())]
        found = [int(each.stem) for each in names if each.parent.name == _LOG and each.suffix == ".json"]
        return found[-1] if found else None


def _read(content: bytes) -> Iterator[tuple[str, int]]:
    for line in content.decode("utf-8", "replace").splitlines():
        said, _, own = line.rpartition(" ")
        if own == f"{zlib.crc32(said.encode()):08x}":
            total, _, name = said.partition(" ")
            yield name, int(total, 16)


def _added(entry: bytes) -> Iterator[str]:
    """The data files that an entry of a table's log adds, where they are in its folder."""
    for line in entry.splitlines():
        if (added := json.loads(line).get("add")) and not added["path"].startswith(("/", "file:")):
            yield unquote(added["path"])
