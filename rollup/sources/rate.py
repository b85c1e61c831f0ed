"""Spark's rate source, for load: attributes are made from a counter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rollup.core.columns import ColumnEngine
from rollup.core.errors import SourceError
from rollup.core.identifiers import quoted
from rollup.plan.app import StreamDef
from rollup.plan.types import Type
from rollup.sources.base import DEAD, Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Rate:
    """Options: `rows_per_second` (1000), `keys` (100). Texts are `k0` …, the long `ts` is the time, numbers count."""

    def __init__(self, stream: StreamDef, options: Mapping[str, Any]) -> None:
        self.stream = stream
        self.options = options

    def check(self) -> None:
        """There is nothing to see without Spark."""

    def frame(self, spark: SparkSession, checkpoint: Path) -> DataFrame:
        reader = spark.readStream.format("rate").option("rowsPerSecond", int(self.options.get("rows_per_second", 1000)))
        return reader.load().selectExpr("unix_millis(timestamp) AS __received", "value AS __arrival")

    def planned(self, frame: DataFrame, checkpoint: Path, batch: int) -> DataFrame:
        """The rows that Spark gives."""
        return frame

    def damaged(self, place: str, problem: BaseException) -> str:
        """No record of it stands for others, so nothing is proven of all of them."""
        raise SourceError(f"cannot read events of {place}: {problem}") from None

    def parts(self, engine: ColumnEngine, batch: pa.Table) -> Iterator[Part]:
        if not batch.num_rows:
            return
        with engine.tables({"rate_rows": batch}):
            engine.connection.execute(
                f"CREATE OR REPLACE TEMP TABLE __made AS SELECT {self._columns()}, __arrival, __received FROM rate_rows"
            )
        # Every kind of source gives a view, so that sources of several kinds can share a worker's engine.
        engine.connection.execute("CREATE OR REPLACE TEMP VIEW __batch AS SELECT * FROM __made")
        yield Part("__batch", batch.num_rows, "rate", 0, DEAD.empty_table(), numbered=True)

    def _columns(self) -> str:
        keys = int(self.options.get("keys", 100))
        made = {
            Type.STRING: f"'k' || (__arrival % {keys})",
            Type.BOOL: "__arrival % 2 = 0",
            Type.LONG: "__arrival",
        }
        columns = {
            name: "__received" if name == "ts" and kind is Type.LONG else made.get(kind) or _number(kind)
            for name, kind in self.stream.attributes.items()
        }
        return ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())


def _number(kind: Type) -> str:
    """Numbers from 0 to 999, or to the greatest of a decimal of fewer digits."""
    precision, scale = kind.digits if kind.exact else (3, 0)
    return f"CAST(__arrival % {10 ** min(3, precision - scale)} AS {kind.duckdb})"
