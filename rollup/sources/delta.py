"""The rows appended to a Delta table. Spark streams the names of the table's log files; a task reads what each adds.

The order of arrival is (table version, place in the log file, row), which Delta's own Spark source does not keep when
one batch holds several versions. Compaction adds no rows and is passed over; a version that rewrites or removes rows
cannot be taken back from the buckets, so it is a dead letter as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import duckdb
import pyarrow as pa

from rollup.aggregation.engine import Engine
from rollup.errors import ConfigError
from rollup.plan.app import StreamDef
from rollup.sources.base import Part, need
from rollup.sources.files import BINARY_FILE, Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES = 1 << 20
"""More files than one commit has."""


class Delta(Files):
    """Options: `path` (the table), `starting_version` (0), `columns`, `max_files_per_batch` (100, of the log)."""

    def __init__(self, stream: StreamDef, options: Mapping[str, Any]) -> None:
        need(stream, options, "path")
        super().__init__(stream, options)
        self._table = Path(options["path"])
        self._first = int(options.get("starting_version", 0))

    def frame(self, spark: SparkSession) -> DataFrame:
        log = self._table / "_delta_log"
        if not log.is_dir():
            raise ConfigError(
                f"[sources.{self.stream.name}]: {self._table} is no Delta table",
                hint="it must be there when the job starts",
            )
        reader = spark.readStream.format("binaryFile").schema(BINARY_FILE).option("pathGlobFilter", "[0-9]*[0-9].json")
        reader = reader.option("maxFilesPerTrigger", int(self.options.get("max_files_per_batch", 100))).option(
            "maxFileAge", "36500d"
        )
        return reader.load(str(log)).selectExpr("path", "unix_micros(modificationTime) AS modified")

    def begin(self) -> None:
        """Before the first batch of a new checkpoint: the log must still hold every version that is to be read."""
        versions = [int(file.stem) for file in (self._table / "_delta_log").glob("*.json") if file.stem.isdigit()]
        if versions and min(versions) > self._first:
            raise ConfigError(
                f"[sources.{self.stream.name}]: the log of {self._table} begins at version {min(versions)}, "
                "older ones are cleaned up",
                hint=f"`starting_version = {min(versions)}` leaves out what was there before",
            )

    def parts(self, engine: Engine, batch: pa.Table) -> Iterator[Part]:
        for row in sorted(batch.to_pylist(), key=lambda row: row["path"]):
            log = Path(unquote(urlparse(row["path"]).path))
            version = int(log.stem)
            if version < self._first:
                continue
            yield from self._version(engine, log, version, row["modified"] // 1000)

    def _version(self, engine: Engine, log: Path, version: int, received: int) -> Iterator[Part]:
        try:
            actions = [json.loads(line) for line in log.read_text().splitlines() if line.strip()]
        except (OSError, ValueError) as problem:
            yield self._refused(engine, log, version, f"the log file cannot be read: {problem}")
            return
        if any(action["remove"].get("dataChange", True) for action in actions if "remove" in action):
            yield self._refused(
                engine, log, version, f"version {version} changes rows that were there; only appended rows are taken"
            )
            return
        for number, added in enumerate(action["add"] for action in actions if "add" in action):
            if added.get("dataChange", True):
                path = str(self._table / unquote(added["path"]))
                yield self._file(engine, path, version * _FILES + number, received, added.get("partitionValues") or {})

    def _file(self, engine: Engine, path: str, order: int, received: int, partition: Mapping[str, str | None]) -> Part:
        try:
            rows, dead = self._parquet(engine, path, received, partition)
        except duckdb.Error as problem:
            rows, dead = (
                self._nothing(engine),
                self._dead(f"the file cannot be read: {str(problem).splitlines()[0]}", path),
            )
        return Part("__batch", rows, path, order, dead)

    def _refused(self, engine: Engine, log: Path, version: int, reason: str) -> Part:
        return Part("__batch", self._nothing(engine), str(log), version * _FILES, self._dead(reason, str(log)))
