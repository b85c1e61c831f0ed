"""The retrieval questions as plain Spark SQL group-bys over the Delta tables of our own store, in one session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.common import THREADS
from benchmarks.ours import LEVEL_COLUMNS, level_path
from benchmarks.ours_retrieval import Rollup
from benchmarks.questions import Question, spark_sql
from benchmarks.timing import main


class SparkSql:
    """Spark with Delta on this machine's two cores, set as for small tables."""

    name = "spark sql"

    def prepare(self, rows: int) -> Path:
        """Our store, made by our job unless it is there; returns its folder."""
        return Rollup().prepare(rows).parent

    def open(self, folder: Path) -> Any:
        """A session with one view a level."""
        session = _session()
        for level in ("seconds", "hours", "days"):
            table = session.read.format("delta").load(str(level_path(folder, level)))
            table.createOrReplaceTempView(f"level_{level}")
        return session

    def ask(self, store: Any, question: Question) -> int:
        """The whole answer as an Arrow table."""
        return int(store.sql(spark_sql(question, f"level_{question.level}", LEVEL_COLUMNS)).toArrow().num_rows)


def _session() -> Any:
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(f"local[{THREADS}]")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.sql.shuffle.partitions", str(THREADS))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
    )
    return configure_spark_with_delta_pip(builder).getOrCreate()


if __name__ == "__main__":
    main(SparkSql())
