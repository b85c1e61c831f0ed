"""A toy source: throws of a die, as many as its batches ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rollup.core.columns import ColumnEngine
from rollup.core.errors import SourceError
from rollup.plan.app import StreamDef
from rollup.sources.base import DEAD, Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Dice:
    """Options: `sides`. A row of a batch says with `throws` how many events it stands for; attributes are `who`, `points`, `ts`."""

    def __init__(self, stream: StreamDef, options: Mapping[str, Any]) -> None:
        self.stream, self.sides = stream, int(options.get("sides", 6))

    def check(self) -> None:
        """A die is always there."""

    def frame(self, spark: SparkSession, checkpoint: Path) -> DataFrame:
        rows = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
        return rows.selectExpr("value AS __arrival", "CAST(value AS INT) AS throws")

    def planned(self, frame: DataFrame, checkpoint: Path, batch: int) -> DataFrame:
        return frame

    def damaged(self, place: str, problem: BaseException) -> str:
        raise SourceError(f"a die cannot be damaged, and yet: {problem}")

    def parts(self, engine: ColumnEngine, batch: pa.Table) -> Iterator[Part]:
        throws = [at for count in batch["throws"].to_pylist() for at in range(count)]
        made = pa.table(
            {
                "who": [f"player {at % 2}" for at in throws],
                "points": pa.array([at % self.sides + 1 for at in throws], pa.int64()),
                "ts": pa.array([at * 1000 for at in throws], pa.int64()),
                "__arrival": pa.array(range(len(throws)), pa.int64()),
                "__received": pa.array([0] * len(throws), pa.int64()),
            }
        )
        with engine.tables({"throws": made}):
            engine.connection.execute("CREATE OR REPLACE TEMP TABLE __throws AS SELECT * FROM throws")
        yield Part("__throws", len(throws), "die", 0, DEAD.empty_table())
