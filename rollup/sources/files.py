"""Files that appear in a folder: Parquet, CSV and JSON lines, and the Parquet files of a Delta table.

Spark only streams the names of new files; each task reads its files with DuckDB, which is faster than the way through
the JVM. The order of arrival is (modification time, path, row).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import duckdb
import pyarrow as pa

from rollup.aggregation.engine import Engine
from rollup.plan.app import StreamDef
from rollup.plan.types import Type
from rollup.sources.base import DEAD, Part, need, register
from rollup.sources.records import cast, json_readers, quoted, text, view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BINARY_FILE = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
_ENDINGS = {"parquet": "*.parquet", "csv": "*.csv*", "json": "*.json*"}
_EXACT = {Type.INT: "INTEGER", Type.LONG: "BIGINT", Type.FLOAT: "FLOAT", Type.DOUBLE: "DOUBLE", Type.STRING: "VARCHAR", Type.BOOL: "BOOLEAN"}


@register("parquet", "csv", "json")
class Files:
    """Options: `path` (a folder), `glob`, `max_files_per_batch` (100), `header` and `separator` (csv), `columns` (rename)."""

    def __init__(self, stream: StreamDef, options: Mapping[str, Any]) -> None:
        need(stream, options, "path")
        self.stream = stream
        self.options = options
        self.kind: str = options["kind"]
        self._renamed: Mapping[str, str] = options.get("columns", {})

    def frame(self, spark: SparkSession) -> DataFrame:
        """Names and modification times of new files; their content is never read by Spark."""
        reader = spark.readStream.format("binaryFile").schema(_BINARY_FILE).option("pathGlobFilter", self.options.get("glob", _ENDINGS[self.kind]))
        reader = reader.option("maxFilesPerTrigger", int(self.options.get("max_files_per_batch", 100))).option("recursiveFileLookup", "true")
        Path(self.options["path"]).mkdir(parents=True, exist_ok=True)
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

    def _parquet(self, engine: Engine, path: str, received: int) -> tuple[int, pa.Table]:
        """Columns of the right type are read as they are; others are converted, and what does not fit is a dead letter."""
        file = f"read_parquet({text(path)}, file_row_number = true)"
        types = {row[0]: row[1] for row in engine.connection.execute(f"DESCRIBE SELECT * FROM {file}").fetchall()}
        missing = [name for name in self.stream.attributes if self._column(name) not in types]
        if missing:
            reason = f"the file has no column {', '.join(map(self._column, missing))}; it has {', '.join(n for n in types if n != 'file_row_number')}"
            return self._nothing(engine), self._dead(reason, path)
        readers = {name: self._typed(name, kind, types) for name, kind in self.stream.attributes.items()}
        relation = f"(SELECT *, file_row_number AS __arrival, CAST({received} AS BIGINT) AS __received FROM {file})"
        if all(read == quoted(self._column(name)) for name, (read, _) in readers.items()):
            columns = ", ".join(f"{read} AS {quoted(name)}" for name, (read, _) in readers.items())
            engine.connection.execute(f"CREATE OR REPLACE TEMP VIEW __batch AS SELECT {columns}, __arrival, __received FROM {relation}")
            return engine.count(f"SELECT SUM(num_rows) FROM parquet_file_metadata({text(path)})"), DEAD.empty_table()
        return view(engine, self.stream, f"{relation} AS r", readers, "CAST(TO_JSON(r) AS VARCHAR)", "true", f"{text(path + ':')} || __arrival")

    def _typed(self, name: str, kind: Type, types: Mapping[str, str]) -> tuple[str, str]:
        column, stored = quoted(self._column(name)), types[self._column(name)]
        has = f"{column} IS NOT NULL"
        if stored == _EXACT[kind]:
            return column, has
        if kind is Type.LONG and stored.startswith("TIMESTAMP"):
            return f"EPOCH_MS({column})", has
        return cast(column, kind), has

    def _csv(self, engine: Engine, path: str, received: int) -> tuple[int, pa.Table]:
        options = {"all_varchar": "true", "header": str(self.options.get("header", True)).lower(), "delim": text(self.options.get("separator", ","))}
        options |= {"null_padding": "true", "strict_mode": "false", "auto_detect": "true", "sample_size": "1000"}
        if options["header"] == "false":
            names = ", ".join(text(self._column(name)) for name in self.stream.attributes)
            options["names"] = f"[{names}]"
        file = f"read_csv({text(path)}, {', '.join(f'{k} = {v}' for k, v in options.items())})"
        found = [row[0] for row in engine.connection.execute(f"DESCRIBE SELECT * FROM {file}").fetchall()]
        missing = [name for name in self.stream.attributes if self._column(name) not in found]
        if missing:
            return self._nothing(engine), self._dead(f"the file has no column {', '.join(missing)}; it has {', '.join(found)}", path)
        relation = f"(SELECT *, ROW_NUMBER() OVER () - 1 AS __arrival, CAST({received} AS BIGINT) AS __received FROM {file}) AS r"
        readers = {name: self._text(name, kind) for name, kind in self.stream.attributes.items()}
        return view(engine, self.stream, relation, readers, "CAST(TO_JSON(r) AS VARCHAR)", "true", f"{text(path + ':')} || __arrival")

    def _text(self, name: str, kind: Type) -> tuple[str, str]:
        column = f"NULLIF({quoted(self._column(name))}, {text(self.options.get('null', ''))})"
        return cast(column, kind), f"{column} IS NOT NULL"

    def _json(self, engine: Engine, path: str, received: int) -> tuple[int, pa.Table]:
        file = f"read_csv({text(path)}, columns = {{'raw': 'VARCHAR'}}, delim = '\\x1f', quote = '', escape = '', header = false, auto_detect = false)"
        relation = f"(SELECT raw, ROW_NUMBER() OVER () - 1 AS __arrival, CAST({received} AS BIGINT) AS __received FROM {file})"
        valid = "json_valid(raw) AND json_type(raw) = 'OBJECT'"
        engine.connection.execute(f"CREATE OR REPLACE TEMP TABLE __lines AS SELECT *, {valid} AS ok FROM {relation}")
        readers = json_readers(self.stream, "CASE WHEN ok THEN raw END")
        return view(engine, self.stream, "__lines", readers, "raw", "ok", f"{text(path + ':')} || __arrival")

    def _nothing(self, engine: Engine) -> int:
        columns = ", ".join(f"CAST(NULL AS {_EXACT[kind]}) AS {quoted(name)}" for name, kind in self.stream.attributes.items())
        engine.connection.execute(
            f"CREATE OR REPLACE TEMP VIEW __batch AS SELECT {columns}, CAST(0 AS BIGINT) AS __arrival, CAST(0 AS BIGINT) AS __received WHERE false"
        )
        return 0

    def _dead(self, reason: str, path: str) -> pa.Table:
        return pa.table([[self.stream.name], [reason], [path], [""]], schema=DEAD)
