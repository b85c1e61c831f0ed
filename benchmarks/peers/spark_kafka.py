"""Spark alone on the topic: `from_json` and a group-by of seconds, a micro-batch at a time, nothing written.

Beside it, what bounds anything that is built on Spark's Kafka source: `--what source` counts the records in the JVM,
`--what python` hands them to Python tasks, which look at nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.common import emit, scratch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SCHEMA = "symbol STRING, price DOUBLE, quantity BIGINT, ts BIGINT"
_VALUES = """symbol, ts - ts % 1000 AS second, SUM(price) AS price_sum, COUNT(price) AS price_count,
    SUM(quantity) AS total, MIN(price) AS low, MAX(price) AS high, COUNT(*) AS events"""


def grouped(batch: DataFrame) -> int:
    """The group-by of a batch into nothing; how many events it had."""
    rows = batch.selectExpr(f"from_json(CAST(value AS STRING), '{_SCHEMA}') AS event").selectExpr("event.*")
    rows.createOrReplaceTempView("events")
    found = batch.sparkSession.sql(f"SELECT {_VALUES} FROM events GROUP BY symbol, ts - ts % 1000")
    return sum(found.select("events").toArrow()["events"].to_pylist())


def counted(batch: DataFrame) -> int:
    """Records read by the JVM."""
    return int(batch.selectExpr("SUM(LENGTH(value))", "COUNT(*)").collect()[0][1])


def _lengths(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array([sum(batch.num_rows for batch in batches)], pa.int64())], ["rows"])


def handed_over(batch: DataFrame) -> int:
    """Records that reach Python tasks."""
    rows = batch.selectExpr("value", "unix_millis(timestamp) AS at", "partition", "offset")
    return sum(row[0] for row in rows.mapInArrow(_lengths, "rows long").collect())


WHAT = {"grouped": grouped, "source": counted, "python": handed_over}


def measure(what: str, bootstrap: str, topic: str, batch_events: int, checkpoint: Path) -> dict[str, Any]:
    """The hot rate: from the end of the first batch to the end of the last."""
    from rollup.hosts.spark.session import session

    spark, ends = session({}, kafka=True), list[tuple[float, int]]()
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", batch_events)

    def batch(frame: DataFrame, number: int) -> None:
        found = WHAT[what](frame)
        ends.append((time.time(), found))

    writer = reader.load().writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = writer.foreachBatch(batch).start()
    query.awaitTermination()
    spark.stop()
    hot = ends[-1][0] - ends[0][0] if len(ends) > 1 else None
    events = sum(found for _, found in ends)
    return {"events": events, "rate": None if hot is None else sum(found for _, found in ends[1:]) / hot}


def main() -> None:
    """Command line of this peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("--batch-events", type=int, default=1_000_000)
    parser.add_argument("--what", choices=list(WHAT), default="grouped")
    options = parser.parse_args()
    with scratch("spark-kafka") as folder:
        found = measure(options.what, options.bootstrap, options.topic, options.batch_events, folder)
    emit(
        "kafka", f"spark, {options.what}", found["rate"], "events/s", temperature="hot",
        peer=f"spark {options.what}", events=found["events"],
    )  # fmt: skip


if __name__ == "__main__":
    main()
