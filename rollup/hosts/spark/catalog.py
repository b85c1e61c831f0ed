"""The tables of the levels under names in the catalog of a Spark session: a Hive metastore, Unity Catalog, or Spark's own.

They are registered where they lie (`CREATE TABLE … LOCATION`), once; the catalog has neither rows nor files of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

from sqlglot import exp

from rollup.conf import Conf
from rollup.program import Program

if TYPE_CHECKING:
    from delta.tables import DeltaTable
    from pyspark.sql import SparkSession


def register(spark: SparkSession, conf: Conf, program: Program) -> Iterator[str]:
    """Register the tables that are not yet in the schema that `catalog` of [store] names; a warning for each that cannot be.

    The session needs Delta. Tables whose aggregation has an @store of its own are in no folder, and are left out.
    """
    from delta.tables import DeltaTable
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    place: str = conf.store["catalog"]
    schema = place.split(".")
    folders = [each.table(level) for each in program.aggregations.values() if not each.store for level in each.levels]
    try:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {_quoted(*schema)}")
    except (PySparkException, Py4JError) as problem:
        yield _warning(place, problem)
        return
    for folder in folders:
        name, path = _quoted(*schema, folder), conf.tables / folder
        try:
            if not spark.catalog.tableExists(name):
                spark.catalog.createTable(name, path=str(path), source="delta")
            elif (there := _location(DeltaTable.forName(spark, name))) != str(path):
                yield (
                    f"warning: [store] catalog: {place}.{folder} is the table at {there}, not {path}; "
                    "drop it there, and the next start registers this one"
                )
        except (PySparkException, Py4JError) as problem:
            yield _warning(f"{place}.{folder}", problem)


def _quoted(*parts: str) -> str:
    return ".".join(exp.to_identifier(part, quoted=True).sql("spark") for part in parts)


def _location(table: DeltaTable) -> str:
    """Where a table lies, as a configuration writes it: Java has `file:` before a folder, and signs of a URL in it."""
    return re.sub(r"^file:/+", "/", unquote(str(table.detail().collect()[0]["location"])))


def _warning(name: str, problem: Exception) -> str:
    said = str(problem).strip().partition("\n")[0]
    return f"warning: [store] catalog: {name} cannot be registered: {said}. The tables are right; the next start tries again"
