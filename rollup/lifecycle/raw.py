"""The raw source read again: which files the job has taken, in the order it took them, and their partial rows.

What a job has taken is what its last commit says: the streaming query's own log names the files of each batch. Without
that log (a lost checkpoint, another folder) it is every file that is there, in order of modification time and path.
Files are folded by the same function that Spark tasks run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa

from rollup.aggregation.partials import FIRST, LAST
from rollup.conf import Conf
from rollup.errors import ConfigError, StoreError
from rollup.hosts.task import TaskSpec, pack, run, unpack_row
from rollup.plan.aggregation import Aggregation
from rollup.plan.program import Program
from rollup.untyped import pc

_GLOBS = {"parquet": "*.parquet", "csv": "*.csv*", "json": "*.json*"}
_ARRIVALS = (FIRST, LAST, "AGG_LAST_ARRIVAL", "AGG_FIRST_ARRIVAL")


@dataclass(frozen=True)
class RawFile:
    """A file of a stream: where it is, when it was modified (ms), and the number of the log entry that took it."""

    stream: str
    path: str
    modified: int
    entry: int = 0


@dataclass(frozen=True)
class Folded:
    """The partial rows of files (a table each, arrivals numbered over the stream) and how many records they held."""

    files: Sequence[RawFile]
    partials: list[pa.Table]
    bases: Mapping[str, int]
    events: int
    dead: int


class RawSource:
    """The raw events of one aggregation of a configuration; `folder` reads that in place of the stream's own path."""

    def __init__(self, conf: Conf, program: Program, aggregation: Aggregation, folder: Path | None = None) -> None:
        self.conf = conf
        self.program = program
        self.aggregation = aggregation
        self.folder = folder
        self.streams = [name for name in program.inputs if aggregation.stream in reached(program, name)]
        for name in self.streams:
            kind = conf.sources[name]["kind"]
            if kind not in _GLOBS:
                raise ConfigError(
                    f"stream {name} comes from {kind}, which keeps no raw events to read again",
                    hint=f"{', '.join(_GLOBS)} can be read again",
                )

    def files(self, marks: Mapping[str, Any]) -> list[RawFile]:
        """The files taken up to the marks of a commit (`Loaded.source`), in order of arrival."""
        return [file for stream in self.streams for file in self._of(stream, marks.get(stream))]

    def fold(self, files: Sequence[RawFile], bases: Mapping[str, int]) -> Folded:
        """Partial rows of files of one stream; `bases` has the arrivals before them, by stream."""
        base = bases.get(files[0].stream, 0) if files else 0
        partials, found, dead = list[pa.Table](), dict[str, int](), 0
        start = base
        for file in files:
            found[Path(file.path).as_posix()] = base
            rows = self._run(self._spec(file.stream), file)
            dead += sum(row["rows"] for row in rows if row["kind"] == "dead")
            partials += [
                shifted(unpack_row(row["payload"], row["file"]), base)
                for row in rows
                if row["kind"] == "partials" and row["name"] == self.aggregation.name
            ]
            base += sum(row["rows"] for row in rows if row["kind"] == "part")
        return Folded(files, [table for table in partials if table.num_rows], found, base - start, dead)

    def second_look(self, folded: Folded, steps: pa.Table, suspects: pa.Table) -> list[pa.Table]:
        """What admission asks for when events of one bucket arrived on both sides of a step of the clock."""
        again: list[pa.Table] = []
        for file in folded.files:
            spec = replace(
                self._spec(file.stream),
                refold={self.aggregation.name: (pack(steps), pack(suspects))},
                bases=folded.bases,
            )
            again += [
                unpack_row(row["payload"], row["file"]) for row in self._run(spec, file) if row["kind"] == "partials"
            ]
        return again

    def _spec(self, stream: str) -> TaskSpec:
        return TaskSpec(self.conf.text(), self.conf.zone, stream, dict(self.conf.sources[stream]), None, (), threads=2)

    def _run(self, spec: TaskSpec, file: RawFile) -> list[dict[str, Any]]:
        if not Path(file.path).exists():
            raise StoreError(
                f"the raw file {file.path} is gone",
                hint="bring it back, or choose a range that the folder still has with --source",
            )
        batch = pa.RecordBatch.from_pydict({"path": [Path(file.path).as_uri()], "modified": [file.modified * 1000]})
        return [row for found in run(spec, iter([batch])) for row in found.to_pylist()]

    def _of(self, stream: str, mark: Mapping[str, Any] | None) -> list[RawFile]:
        options = self.conf.sources[stream]
        if self.folder is not None:
            return _there(stream, self.folder, options)
        taken = _log(stream, self.conf.checkpoint / stream, mark)
        return taken if taken is not None else _there(stream, Path(options["path"]), options)


def reached(program: Program, stream: str) -> set[str]:
    """A stream and all that are derived from it."""
    return {stream, *(derivation.target for derivation in program.fed_by(stream))}


def _there(stream: str, folder: Path, options: Mapping[str, Any]) -> list[RawFile]:
    pattern = options.get("glob", _GLOBS[options["kind"]])
    paths = [
        path
        for path in folder.rglob("*")
        if path.is_file() and fnmatch(path.name, pattern) and path.name[0] not in "._"
    ]
    found = [RawFile(stream, str(path), path.stat().st_mtime_ns // 1_000_000) for path in paths]
    return sorted(found, key=lambda file: (file.modified, file.path))


def _log(stream: str, checkpoint: Path, mark: Mapping[str, Any] | None) -> list[RawFile] | None:
    """The files that the streaming query's log names up to the batch of a commit; None when there is no such log."""
    folder = checkpoint / "sources" / "0"
    if mark is None or not folder.is_dir():
        return None
    last = _entry(checkpoint, mark)
    if last is None:
        return None
    found: dict[str, RawFile] = {}
    for name in folder.iterdir():
        if name.name.startswith(".") or not name.name.split(".")[0].isdigit():
            continue
        for line in name.read_text().splitlines()[1:]:
            row = json.loads(line)
            if row["batchId"] <= last:
                path = unquote(urlparse(row["path"]).path)
                found[path] = RawFile(stream, path, int(row["timestamp"]), int(row["batchId"]))
    return sorted(found.values(), key=lambda file: (file.entry, file.modified, file.path))


def _entry(checkpoint: Path, mark: Mapping[str, Any]) -> int | None:
    """The source's own log entry at a batch of the query; None when the log is of another query or does not know it."""
    try:
        if json.loads((checkpoint / "metadata").read_text())["id"] != mark["query"]:
            return None
        return int(json.loads((checkpoint / "offsets" / str(mark["batch"])).read_text().splitlines()[-1])["logOffset"])
    except (OSError, ValueError, KeyError, IndexError):
        return None


def shifted(table: pa.Table, base: int) -> pa.Table:
    """Partial rows whose arrivals count from `base` instead of 0."""
    for name in _ARRIVALS if base else ():
        index = table.schema.get_field_index(name)
        if index >= 0:
            table = table.set_column(index, name, pc.add(table[name], base))
    return table


def batches(files: Sequence[RawFile], size: int = 16) -> Iterator[list[RawFile]]:
    """The files in their order, some at a time and of one stream; how they are cut changes nothing."""
    batch: list[RawFile] = []
    for file in files:
        if batch and (len(batch) == size or batch[0].stream != file.stream):
            yield batch
            batch = []
        batch.append(file)
    if batch:
        yield batch
