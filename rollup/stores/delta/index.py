"""Which files of a Delta table hold which times: from the log, and from one version to the next only by what it adds.

A reader that follows a job opens a new version every second; what that costs must not grow with the table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import DeltaTable

from rollup.plan.aggregation import TIMESTAMP
from rollup.retrieval.since import Interval
from rollup.stores.delta.standing import actions_of

Longs = npt.NDArray[np.int64]
_LEAST, _MOST = -(2**63), 2**63 - 1
_STEPS = 64
"""A version further away than this is read from the log's last checkpoint."""


@dataclass(frozen=True)
class FileIndex:
    """The files of one version of a table with the AGG_TIMESTAMP range of each; without statistics, any time.

    `digest` is the sum of a number for each file, in any order. The number is made of the file's name and its values here.
    A commit record has the digest, so a log that says something else is found. Names of files carry their checksums.
    """

    paths: list[str]
    low: Longs
    high: Longs
    rows: Longs
    bytes: Longs
    digest: int = 0

    @property
    def sum(self) -> str:
        """The digest as a commit record has it."""
        return f"{self.digest % 2**64:016x}"

    @classmethod
    def of(cls, table: DeltaTable) -> FileIndex:
        """The files of an open table."""
        # Not `pa.table` (nor `fill_null` below): they look for pandas objects, and import pandas for that.
        actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()
        if not actions.num_rows:
            return NO_FILES
        root = unquote(table.table_uri.rstrip("/").removeprefix("file://"))
        names = set(actions.schema.names)

        def longs(name: str, missing: int) -> Longs:
            if name not in names:
                return np.full(actions.num_rows, missing, np.int64)
            return np.array([missing if value is None else value for value in actions[name].to_pylist()], np.int64)

        paths = [unquote(path) for path in actions["path"].to_pylist()]
        numbers = [
            longs(f"min.{TIMESTAMP}", _LEAST),
            longs(f"max.{TIMESTAMP}", _MOST),
            longs("num_records", 0),
            longs("size_bytes", 0),
        ]
        digest = sum(map(_number, paths, zip(*(each.tolist() for each in numbers), strict=True)))
        return cls([f"{root}/{path}" for path in paths], *numbers, digest=digest)

    def between(self, start: int | None, end: int | None) -> list[str]:
        """The files that can hold rows with start <= AGG_TIMESTAMP < end."""
        if not self.paths:
            return []
        fits = np.ones(len(self.paths), bool)
        if start is not None:
            fits &= self.high >= start
        if end is not None:
            fits &= self.low < end
        return [self.paths[i] for i in np.flatnonzero(fits)]

    def after(self, root: Path, version: int, later: int) -> FileIndex | None:
        """The files of a later version, by what the versions between have done; None when their logs are gone."""
        actions = _between(root, version, later)
        return None if actions is None else self.by(root, actions)

    def by(self, root: Path, actions: Iterable[dict[str, Any]]) -> FileIndex:
        """The files after some actions, in their order."""
        added, removed = dict[str, Any](), set[str]()
        for action in actions:
            _apply(root, action, added, removed)
        return self._changed(f"{root}/", added, removed)

    def touched(self, root: Path, version: int, later: int) -> list[Interval] | None:
        """The times of the files that the versions between have added or removed with other rows; None as for `after`.

        A compaction is left out: its files have the rows of those that it removes.
        """
        actions = _between(root, version, later)
        if actions is None:
            return None
        known = {path: (int(low), int(high)) for path, low, high in zip(self.paths, self.low, self.high, strict=True)}
        found = list[Interval]()
        for action in actions:
            for kind in {"add", "remove"} & action.keys():
                file = action[kind]
                path = f"{root}/{unquote(file['path'])}"
                if kind == "add":
                    low, high, *_ = _numbers(file)
                    known[path] = low, high
                if file.get("dataChange", True):
                    low, high = known.get(path, (_LEAST, _MOST))
                    found.append((low, high + 1))
        return found

    def beside(self, other: FileIndex) -> list[Interval]:
        """The times of the files that one of two versions has and the other has not."""
        mine, theirs = set(self.paths), set(other.paths)
        return [
            (int(low), int(high) + 1)
            for index, known in ((self, theirs), (other, mine))
            for path, low, high in zip(index.paths, index.low, index.high, strict=True)
            if path not in known
        ]

    def _changed(self, root: str, added: dict[str, Any], removed: set[str]) -> FileIndex:
        if not (removed or added):
            return self
        kept = np.array([path not in removed and path not in added for path in self.paths], bool)
        columns = [getattr(self, name) for name in ("low", "high", "rows", "bytes")]
        gone = [(self.paths[i], tuple(int(column[i]) for column in columns)) for i in np.flatnonzero(~kept)]
        digest = self.digest - sum(_number(path.removeprefix(root), numbers) for path, numbers in gone)
        digest += sum(_number(path.removeprefix(root), numbers) for path, numbers in added.items())
        old = [column[kept] for column in columns]
        new = [np.array([file[i] for file in added.values()], np.int64) for i in range(4)]
        paths = [path for path, stays in zip(self.paths, kept, strict=True) if stays] + list(added)
        return FileIndex(paths, *(np.concatenate(pair) for pair in zip(old, new, strict=True)), digest=digest)


_NONE = np.zeros(0, np.int64)
NO_FILES = FileIndex([], _NONE, _NONE, _NONE, _NONE)
"""That of a table without files."""


def _between(root: Path, version: int, later: int) -> list[dict[str, Any]] | None:
    """What the versions after one have done, up to a later one; None when their logs are gone, or they are too many."""
    if not version <= later <= version + _STEPS:
        return None
    try:
        return [action for number in range(version + 1, later + 1) for action in actions_of(root, number)]
    except OSError:
        return None


def _number(path: str, numbers: Sequence[int]) -> int:
    """A number for what an index says of a file, its path from the table's folder on."""
    return int.from_bytes(hashlib.blake2b(f"{path} {tuple(numbers)}".encode(), digest_size=8).digest())


def _apply(root: Path, action: dict[str, Any], added: dict[str, Any], removed: set[str]) -> None:
    if "add" in action:
        add = action["add"]
        added[f"{root}/{unquote(add['path'])}"] = tuple(_numbers(add))
    elif "remove" in action:
        path = f"{root}/{unquote(action['remove']['path'])}"
        added.pop(path, None)
        removed.add(path)


def _numbers(add: dict[str, Any]) -> Sequence[int]:
    stats = json.loads(add.get("stats") or "{}")
    low, high = stats.get("minValues", {}).get(TIMESTAMP), stats.get("maxValues", {}).get(TIMESTAMP)
    return (
        _LEAST if low is None else low,
        _MOST if high is None else high,
        stats.get("numRecords", 0),
        add.get("size", 0),
    )
