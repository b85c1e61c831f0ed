"""The tables of the levels under names in the catalog of a Spark session: a Hive metastore, Unity Catalog, or Spark's own.

They are registered where they lie (`CREATE TABLE … LOCATION`), once; the catalog has neither rows nor files of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rollup.conf import Conf
from rollup.core.objects import ObjectPath
from rollup.program import Program

if TYPE_CHECKING:
    from delta.tables import DeltaTable
    from pyspark.sql import SparkSession


def register(spark: SparkSession, conf: Conf, program: Program) -> Iterator[str]:
    """Register the tables that `catalog` of [store] asks for and that are not there yet; a warning for each that cannot be.

    The session needs Delta. Tables whose aggregation has an @store of its own are in no folder, and are left out.
    """
    from delta.tables import DeltaTable
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    place = conf.store.get("catalog")
    if place is None:
        return
    folders = [each.table(level) for each in program.aggregations.values() if not each.store for level in each.levels]
    try:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {_quoted(place)}")
    except (PySparkException, Py4JError) as problem:
        yield _warning(place, problem)
        return
    for folder in folders:
        name, path = _quoted(f"{place}.{folder}"), conf.tables / folder
        try:
            if not spark.catalog.tableExists(name):
                spark.catalog.createTable(name, path=_uri(path), source="delta")
            elif (there := _location(DeltaTable.forName(spark, name))) != _uri(path):
                yield (
                    f"warning: [store] catalog: {place}.{folder} is the table at {there}, not {path}; "
                    "drop it there, and the next start registers this one"
                )
        except (PySparkException, Py4JError) as problem:
            yield _warning(f"{place}.{folder}", problem)


def _quoted(name: str) -> str:
    return ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))


def _uri(path: Path) -> str:
    return str(path) if isinstance(path, ObjectPath) else path.as_uri()


def _location(table: DeltaTable) -> str:
    """Where a table lies; Java writes `file:/x`."""
    return re.sub(r"^file:/(?=[^/])", "file:///", str(table.detail().collect()[0]["location"]))


def _warning(name: str, problem: Exception) -> str:
    said = str(problem).strip().partition("\n")[0]
    return f"warning: [store] catalog: {name} cannot be registered: {said}. The tables are right; the next start tries again"
