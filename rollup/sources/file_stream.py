"""New files as a stream of Spark's: a source of Spark that asks this process, by the gateway of `foreachBatch`.

Its offsets are entries of the log of files, as Spark's own source of files writes them. It gives no rows: what a batch has
is read from that log.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rollup.sources.new_files import NewFiles

_STREAMING = "org.apache.spark.sql.execution.streaming.Source"
_CLOSING = "org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow"
_ROW = "org.apache.spark.sql.catalyst.InternalRow"


def streamed(spark: SparkSession, files: NewFiles) -> DataFrame:
    """The streaming DataFrame of new files."""
    from pyspark.java_gateway import ensure_callback_server_started
    from pyspark.sql import DataFrame

    gateway: Any = spark.sparkContext._gateway  # pyright: ignore[reportPrivateUsage]
    session: Any = spark._jsparkSession  # pyright: ignore[reportPrivateUsage]
    ensure_callback_server_started(gateway)
    java = gateway.jvm
    loader = java.Thread.currentThread().getContextClassLoader()
    rows = java.org.apache.spark.sql.types.StructType.fromDDL("path STRING")
    kind = java.scala.reflect.ClassTag.apply(java.Class.forName(_ROW, True, loader))
    nothing = session.internalCreateDataFrame(session.sparkContext().emptyRDD(kind), rows, True)
    relation = java.org.apache.spark.sql.execution.streaming.runtime.StreamingExecutionRelation(
        _Source(java, files, nothing),
        nothing.queryExecution().analyzed().output(),
        java.scala.Option.empty(),
        getattr(getattr(java.org.apache.spark.sql.catalyst.streaming, "Unassigned$"), "MODULE$"),
        session,
    )
    return DataFrame(java.org.apache.spark.sql.classic.Dataset.ofRows(session, relation), spark)


class _Source:
    """What Spark asks of a source; the names are Spark's."""

    def __init__(self, java: Any, files: NewFiles, nothing: Any) -> None:
        self._java, self._files, self._nothing = java, files, nothing

    def latestOffset(self, start: Any, limit: Any) -> Any:
        """Where the next batch ends."""
        before = -1 if start is None else int(json.loads(start.json())["logOffset"])
        entry = self._files.after(before)
        if entry < 0:
            return None
        return self._java.org.apache.spark.sql.execution.streaming.runtime.FileStreamSourceOffset(entry)

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends with what is there now."""
        self._files.close()

    def getDefaultReadLimit(self) -> Any:
        """The log's entries are the limit."""
        return self._java.org.apache.spark.sql.connector.read.streaming.ReadLimit.allAvailable()

    def getBatch(self, start: Any, end: Any) -> Any:
        """Rows without rows."""
        return self._nothing

    def schema(self) -> Any:
        """Of what `getBatch` gives."""
        return self._nothing.schema()

    def reportLatestOffset(self) -> None:
        """Not known before it is listed."""

    def commit(self, end: Any) -> None:
        """Files stay."""

    def stop(self) -> None:
        """Nothing is held."""

    def toString(self) -> str:
        """What Spark's reports call it."""
        return f"files in {self._files.folder.path}"

    def hashCode(self) -> int:
        """It is a key of Spark's tables of offsets."""
        return id(self._files) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        """There is one."""
        return bool(other.hashCode() == self.hashCode())

    class Java:
        """Spark's interfaces."""

        implements = (_STREAMING, _CLOSING)
