"""The least that a scheduled streaming job on Spark can be: a session, one batch through one `mapInArrow`, the end."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rollup.java import use_java

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def main() -> None:
    """Command line of this peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", help="a folder of text files")
    parser.add_argument("checkpoint")
    options = parser.parse_args()
    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    rows: list[int] = []

    def batch(frame: DataFrame, number: int) -> None:
        rows.append(frame.mapInArrow(_same, frame.schema).toArrow().num_rows)

    writer = spark.readStream.text(options.input).writeStream.option("checkpointLocation", options.checkpoint)
    writer.trigger(availableNow=True).foreachBatch(batch).start().awaitTermination()
    spark.stop()
    print(sum(rows))


if __name__ == "__main__":
    main()
