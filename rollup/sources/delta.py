"""The rows appended to a Delta table. Spark streams the names of the table's log files; a task reads what each adds.

The order of arrival is (table version, place in the log file, row), which Delta's own Spark source does not keep when
one batch holds several versions. Compaction adds no rows and is passed over; a version that rewrites or removes rows
cannot be taken back from the buckets, so it is a dead letter as a whole.

A bounded read (a replay) asks for a range of an attribute: files whose statistics say that they have nothing of it are
counted and not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.core.objects import at
from rollup.plan.app import StreamDef
from rollup.sources.base import DEAD, Part, need
from rollup.sources.content.damage import PASSING, unreadable
from rollup.sources.content.presence import check_names
from rollup.sources.file_log import Listed
from rollup.sources.files import Files
from rollup.sources.new_files import Folder

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FILES = 1 << 20
"""More files than one commit has."""
WITHIN = "within"
"""The option of a bounded read: [attribute, start, end), in the attribute's unit."""


class Delta(Files):
    """Options: `path` (the table), `starting_version` (0), `columns`, `optional`, `max_files_per_batch` (100, of the log)."""

    def __init__(self, stream: StreamDef, options: Mapping[str, Any]) -> None:
        need(stream, options, "path")
        super().__init__(stream, options)
        self._table = at(options["path"])
        self._first = int(options.get("starting_version", 0))
        self._within: tuple[str, int, int] | None = options.get(WITHIN)

    @property
    def folder(self) -> Folder:
        """The log of the table: a file a version."""
        return Folder(self._table / "_delta_log", "[0-9]*[0-9].json", deep=False)

    @staticmethod
    def order(file: Listed) -> tuple[int, str]:
        """Versions are in the order of their numbers, whenever a copy of the table was made."""
        return 0, file.path

    def check(self) -> None:
        """See `Source.check`."""
        check_names(self.stream, self.options)
        if not (self._table / "_delta_log").is_dir():
            raise ConfigError(
                f"[sources.{self.stream.name}]: {self._table} is no Delta table",
                hint="it must be there when the job starts",
            )

    def begin(self) -> None:
        """Before the first batch of a new checkpoint: the log must still hold every version that is to be read."""
        versions = [int(file.stem) for file in (self._table / "_delta_log").glob("*.json") if file.stem.isdigit()]
        if versions and min(versions) > self._first:
            raise ConfigError(
                f"[sources.{self.stream.name}]: the log of {self._table} begins at version {min(versions)}, "
                "older ones are cleaned up",
                hint=f"`starting_version = {min(versions)}` leaves out what was there before",
            )

    def parts(self, engine: ColumnEngine, batch: pa.Table) -> Iterator[Part]:
        for row in sorted(batch.to_pylist(), key=lambda row: row["path"]):
            log = at(row["path"])
            version = int(log.stem)
            if version < self._first:
                continue
            yield from self._version(engine, log, version, row["modified"] // 1000)

    def _version(self, engine: ColumnEngine, log: Path, version: int, received: int) -> Iterator[Part]:
        try:
            actions = _actions(log)
        except OSError as problem:
            raise unreadable(str(log), problem) from None
        except ValueError as problem:
            yield self._refused(engine, log, version, f"the log file cannot be read: {problem}")
            return
        if _changes(actions):
            yield self._refused(
                engine, log, version, f"version {version} changes rows that were there; only appended rows are taken"
            )
            return
        for number, added in enumerate(action["add"] for action in actions if "add" in action):
            if not added.get("dataChange", True):
                continue
            path, order = str(self._table / unquote(added["path"])), version * _FILES + number
            passed = self._passed(added)
            if passed is None:
                with self._fetched([path]):
                    yield self._file(engine, path, order, received, added.get("partitionValues") or {})
            else:
                self._nothing(engine)
                yield Part("__batch", passed, path, order, DEAD.empty_table())

    def needs(self, log: Path) -> list[Path]:
        """The data files that reading a version takes. Raises OSError or ValueError when its log file is damaged."""
        actions = _actions(log)
        if int(log.stem) < self._first or _changes(actions):
            return []
        added = [action["add"] for action in actions if "add" in action]
        wanted = [one for one in added if one.get("dataChange", True) and self._passed(one) is None]
        return [self._table / unquote(one["path"]) for one in wanted]

    def _passed(self, added: Mapping[str, Any]) -> int | None:
        """How many rows a file has when none of them is in the range that is asked for; None when it must be read."""
        if self._within is None:
            return None
        attribute, start, end = self._within
        stats, column = json.loads(added.get("stats") or "{}"), self._column(attribute)
        low, high = (_number(stats.get(name, {}).get(column)) for name in ("minValues", "maxValues"))
        if low is None or high is None or "numRecords" not in stats or (high >= start and low < end):
            return None
        return int(stats["numRecords"])

    def _file(
        self, engine: ColumnEngine, path: str, order: int, received: int, partition: Mapping[str, str | None]
    ) -> Part:
        try:
            rows, dead, found = self._parquet(engine, path, received, partition)
        except (duckdb.Error, *PASSING) as problem:
            rows, dead, found = self._nothing(engine), self._dead(self.damaged(path, problem), path), None
        return Part("__batch", rows, path, order, dead, looked=found)

    def _refused(self, engine: ColumnEngine, log: Path, version: int, reason: str) -> Part:
        return Part("__batch", self._nothing(engine), str(log), version * _FILES, self._dead(reason, str(log)))


def _actions(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().split("\n") if line.strip()]


def _changes(actions: list[dict[str, Any]]) -> bool:
    """Whether a version changes or removes rows that were there before."""
    return any(action["remove"].get("dataChange", True) for action in actions if "remove" in action)


def _number(value: Any) -> int | None:
    """A statistic as the attribute reads its column: a number as it is, a time in ms (UTC when it has no zone)."""
    if isinstance(value, str):
        if value[4:5] != "-":
            return None  # a text, though it may be all digits
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            return None
        return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
    return value if isinstance(value, int) else None
