"""A Kafka topic of JSON events. The order of arrival is (timestamp, offset, partition), as one 64-bit number."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rollup.aggregation.engine import Engine
from rollup.plan.app import StreamDef
from rollup.sources.base import Part, need
from rollup.sources.records import IS_OBJECT, json_readers, text, view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BITS = 22
"""Of an arrival number, below the millisecond: room for 4 million events of one millisecond."""

# A partition's timestamps may go back (a producer's clock); its order is that of its offsets, so the running maximum
# of the timestamp takes the place of the timestamp.
_NUMBERED = f"""
SELECT raw, readable, timestamp AS __received, kafka_partition, kafka_offset,
    (moment << {_BITS}) + LEAST(
        (1 << {_BITS}) - 1,
        (ROW_NUMBER() OVER (PARTITION BY kafka_partition, moment ORDER BY kafka_offset) - 1) * :parts + kafka_partition
    ) AS __arrival
FROM (SELECT *, MAX(timestamp) OVER (PARTITION BY kafka_partition ORDER BY kafka_offset) AS moment FROM kafka_rows)
"""


# Bytes that are no UTF-8 must not reach DuckDB as text; the dead letter shows them with replacement characters.
_TEXT = (
    "make_valid_utf8(CAST(value AS STRING)) AS raw",
    "COALESCE(is_valid_utf8(CAST(value AS STRING)), false) AS readable",
)
_PLACE = ("unix_millis(timestamp) AS timestamp", "partition AS kafka_partition", "offset AS kafka_offset")


class Kafka:
    """Options: `servers`, `topic`, `partitions` (64, not less than the topic has), `starting_offsets` (earliest),
    `max_events_per_batch`, `columns` (rename), `slack` (1 day, see `rollup.lifecycle.raw_kafka`), `options` (of Spark's
    Kafka source)."""

    def __init__(self, stream: StreamDef, options: Mapping[str, Any]) -> None:
        need(stream, options, "servers", "topic")
        self.stream = stream
        self.options = options

    def frame(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.options["servers"])
        reader = reader.option("subscribe", self.options["topic"]).option(
            "startingOffsets", self.options.get("starting_offsets", "earliest")
        )
        if "max_events_per_batch" in self.options:
            reader = reader.option("maxOffsetsPerTrigger", int(self.options["max_events_per_batch"]))
        for name, value in self.options.get("options", {}).items():
            reader = reader.option(name, value)
        return reader.load().selectExpr(*_TEXT, *_PLACE)

    def between(self, spark: SparkSession, starts: Mapping[int, int], ends: Mapping[int, int]) -> DataFrame:
        """A bounded read: of every partition of the topic the offsets from its start to before its end."""
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", self.options["servers"])
        reader = reader.option("subscribe", self.options["topic"])
        for name, value in self.options.get("options", {}).items():
            if not name.lower().startswith(("starting", "ending", "maxoffsets", "minoffsets", "maxtrigger")):
                reader = reader.option(name, value)
        for name, offsets in (("startingOffsets", starts), ("endingOffsets", ends)):
            reader = reader.option(name, json.dumps({self.options["topic"]: {str(p): o for p, o in offsets.items()}}))
        return reader.load().selectExpr(*_TEXT, *_PLACE)

    def parts(self, engine: Engine, batch: pa.Table) -> Iterator[Part]:
        if not batch.num_rows:
            return
        with engine.tables({"kafka_rows": batch}):
            numbered = _NUMBERED.replace(":parts", str(int(self.options.get("partitions", 64))))
            engine.connection.execute(
                f"CREATE OR REPLACE TEMP TABLE __lines AS SELECT *, readable AND {IS_OBJECT} AS ok FROM ({numbered})"
            )
        readers = json_readers(self.stream, "CASE WHEN ok THEN raw END", self.options.get("columns"))
        position = f"{text(self.options['topic'] + ':')} || kafka_partition || ':' || kafka_offset"
        rows, dead = view(engine, self.stream, "__lines", readers, "raw", "ok", position)
        yield Part("__batch", rows, self.options["topic"], 0, dead, numbered=True, places="__read")
