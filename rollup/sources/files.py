"""Files that appear in a folder: Parquet, CSV and JSON lines.

Spark only streams the names of new files; each task reads its files with DuckDB, which is faster than the way through
the JVM. The order of arrival is (modification time, path, row).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import duckdb
import pyarrow as pa

from rollup.aggregation.engine import Engine
from rollup.errors import ConfigError
from rollup.plan.app import StreamDef
from rollup.plan.types import Type
from rollup.sources.base import DEAD, Part, need
from rollup.sources.records import IS_OBJECT, Readers, cast, json_readers, quoted, text, view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BINARY_FILE = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
_ENDINGS = {"parquet": "*.parquet", "csv": "*.csv*", "json": "*.json*"}
_WHOLE_LINES = f"header = false, delim = {text(chr(31))}, quote = '', escape = ''"
"""Options that read a line as one column: the separator can stand in no JSON text and in no header."""
_REJECTS = ("__scans", "__rejects")
_EXACT = {
    Type.INT: "INTEGER",
    Type.LONG: "BIGINT",
    Type.FLOAT: "FLOAT",
    Type.DOUBLE: "DOUBLE",
    Type.STRING: "VARCHAR",
    Type.BOOL: "BOOLEAN",
}


def _lines(path: str, columns: str, options: str) -> str:
    """A CSV file as a relation; lines that are none of it go to the table of rejects."""
    rejects = f"store_rejects = true, rejects_scan = {text(_REJECTS[0])}, rejects_table = {text(_REJECTS[1])}"
    return f"read_csv({text(path)}, columns = {{{columns}}}, {options}, auto_detect = false, {rejects})"


def _placed(received: int) -> str:
    """The columns that every relation of events has beside its attributes, for rows in the order of their file."""
    return f"ROW_NUMBER() OVER () - 1 AS __arrival, CAST({received} AS BIGINT) AS __received"


class Files:
    """Options: `path` (a folder), `glob`, `max_files_per_batch` (100), `columns` (rename).

    For csv also `header` (true), `separator` (,) and `null` (the text that stands for null, empty).

    A file counts when its name appears, so write it aside and rename it. `max_file_age` (365d): a file that appears
    later with an older modification time, compared with the newest one seen, is passed over.
    """

    def __init__(self, stream: StreamDef, options: Mapping[str, Any]) -> None:
        need(stream, options, "path")
        self.stream = stream
        self.options = options
        self.kind: str = options["kind"]
        self._renamed: Mapping[str, str] = options.get("columns", {})

    def frame(self, spark: SparkSession) -> DataFrame:
        """Names and modification times of new files; their content is never read by Spark."""
        reader = (
            spark.readStream.format("binaryFile")
            .schema(BINARY_FILE)
            .option("pathGlobFilter", self.options.get("glob", _ENDINGS[self.kind]))
        )
        reader = reader.option("maxFilesPerTrigger", int(self.options.get("max_files_per_batch", 100))).option(
            "recursiveFileLookup", "true"
        )
        reader = reader.option("maxFileAge", self.options.get("max_file_age", "365d"))
        try:
            Path(self.options["path"]).mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ConfigError(
                f"[sources.{self.stream.name}]: cannot make the folder {self.options['path']}: {problem.strerror}"
            ) from None
        return reader.load(self.options["path"]).selectExpr("path", "unix_micros(modificationTime) AS modified")

    def parts(self, engine: Engine, batch: pa.Table) -> Iterator[Part]:
        for row in batch.to_pylist():
            path = unquote(urlparse(row["path"]).path)
            try:
                rows, dead = getattr(self, f"_{self.kind}")(engine, path, row["modified"] // 1000)
            except duckdb.Error as problem:
                reason = f"the file cannot be read: {str(problem).splitlines()[0]}"
                rows, dead = self._nothing(engine), self._dead(reason, path)
            yield Part("__batch", rows, path, row["modified"], dead)

    def _column(self, name: str) -> str:
        return self._renamed.get(name, name)

    def _parquet(
        self, engine: Engine, path: str, received: int, partition: Mapping[str, str | None] | None = None
    ) -> tuple[int, pa.Table]:
        """Columns of the right type are read as they are; others are converted, and what does not fit is a dead letter.

        `partition` are columns whose value is that of the whole file and stands outside of it.
        """
        constants = [
            f"CAST({'NULL' if value is None else text(value)} AS VARCHAR) AS {quoted(name)}"
            for name, value in (partition or {}).items()
        ]
        hive = "" if partition is None else ", hive_partitioning = false"
        file = f"(SELECT {', '.join(['*', *constants])} FROM read_parquet({text(path)}, file_row_number = true{hive}))"
        types = {row[0]: row[1] for row in engine.connection.execute(f"DESCRIBE SELECT * FROM {file}").fetchall()}
        missing = [name for name in self.stream.attributes if self._column(name) not in types]
        if missing:
            wanted, found = map(self._column, missing), (name for name in types if name != "file_row_number")
            reason = f"the file has no column {', '.join(wanted)}; it has {', '.join(found)}"
            return self._nothing(engine), self._dead(reason, path)
        readers = {name: self._typed(name, kind, types) for name, kind in self.stream.attributes.items()}
        relation = f"(SELECT *, file_row_number AS __arrival, CAST({received} AS BIGINT) AS __received FROM {file})"
        if all(read == quoted(self._column(name)) for name, (read, _) in readers.items()):
            columns = ", ".join(f"{read} AS {quoted(name)}" for name, (read, _) in readers.items())
            engine.connection.execute(
                f"CREATE OR REPLACE TEMP VIEW __batch AS SELECT {columns}, __arrival, __received FROM {relation}"
            )
            return engine.count(f"SELECT SUM(num_rows) FROM parquet_file_metadata({text(path)})"), DEAD.empty_table()
        return view(
            engine,
            self.stream,
            f"{relation} AS r",
            readers,
            "CAST(TO_JSON(r) AS VARCHAR)",
            "true",
            f"{text(path + ':')} || __arrival",
        )

    def _typed(self, name: str, kind: Type, types: Mapping[str, str]) -> tuple[str, str]:
        column, stored = quoted(self._column(name)), types[self._column(name)]
        has = f"{column} IS NOT NULL"
        if stored == _EXACT[kind]:
            return column, has
        if kind is Type.LONG and (stored.startswith("TIMESTAMP") or stored == "DATE"):
            # DuckDB would round to the next millisecond, and an event could fall into the next second.
            return f"EPOCH_MS(DATE_TRUNC('millisecond', {column}))", has
        return cast(column, kind), has

    def _csv(self, engine: Engine, path: str, received: int) -> tuple[int, pa.Table]:
        header, separator = bool(self.options.get("header", True)), self.options.get("separator", ",")
        found = (
            self._header(engine, path, separator) if header else [self._column(name) for name in self.stream.attributes]
        )
        missing = [self._column(name) for name in self.stream.attributes if self._column(name) not in found]
        if missing:
            return self._nothing(engine), self._dead(
                f"the file has no column {', '.join(missing)}; it has {', '.join(found)}", path
            )
        columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in found)
        options = f"header = {header}, delim = {text(separator)}, quote = '\"', escape = '\"'"
        relation = f"(SELECT *, {_placed(received)} FROM {_lines(path, columns, options)}) AS r"
        readers = {name: self._text(name, kind) for name, kind in self.stream.attributes.items()}
        return self._view(engine, path, relation, readers, "CAST(TO_JSON(r) AS VARCHAR)", "true")

    @staticmethod
    def _header(engine: Engine, path: str, separator: str) -> list[str]:
        file = _lines(path, "'line': 'VARCHAR'", _WHOLE_LINES)
        first = engine.connection.execute(f"SELECT line FROM {file} LIMIT 1").fetchone()
        return next(csv.reader([first[0]], delimiter=separator), []) if first and first[0] else []

    def _view(
        self, engine: Engine, path: str, relation: str, readers: Readers, raw: str, valid: str
    ) -> tuple[int, pa.Table]:
        """The records that fit, and letters for those that do not and for lines that are no record."""
        for name in _REJECTS:
            engine.connection.execute(f"DROP TABLE IF EXISTS {name}")
        rows, dead = view(engine, self.stream, relation, readers, raw, valid, f"{text(path + ':')} || __arrival")
        broken = engine.run(
            f"SELECT {text(self.stream.name)} AS stream, ARG_MIN(error_message, column_idx) AS reason, "
            f"{text(path + ':line ')} || line AS position, RTRIM(ANY_VALUE(csv_line), CHR(10)) AS raw "
            f"FROM {_REJECTS[1]} GROUP BY line ORDER BY line"
        )
        return rows, pa.concat_tables([dead, broken.cast(DEAD)])

    def _text(self, name: str, kind: Type) -> tuple[str, str]:
        column = f"NULLIF({quoted(self._column(name))}, {text(self.options.get('null', ''))})"
        return cast(column, kind), f"{column} IS NOT NULL"

    def _json(self, engine: Engine, path: str, received: int) -> tuple[int, pa.Table]:
        lines = _lines(path, "'raw': 'VARCHAR'", _WHOLE_LINES)
        file = f"(SELECT * FROM {lines} WHERE TRIM(raw) <> '')"
        relation = f"(SELECT raw, {_placed(received)}, {IS_OBJECT} AS ok FROM {file})"
        readers = json_readers(self.stream, "CASE WHEN ok THEN raw END", self._renamed)
        return self._view(engine, path, relation, readers, "raw", "ok")

    def _nothing(self, engine: Engine) -> int:
        columns = ", ".join(
            f"CAST(NULL AS {_EXACT[kind]}) AS {quoted(name)}" for name, kind in self.stream.attributes.items()
        )
        engine.connection.execute(f"CREATE OR REPLACE TEMP VIEW __batch AS SELECT {columns}, {_placed(0)} WHERE false")
        return 0

    def _dead(self, reason: str, path: str) -> pa.Table:
        return pa.table([[self.stream.name], [reason], [path], [""]], schema=DEAD)
