"""A REST catalog of Iceberg: levels are listed there, and a table of it is a source, as with a catalog in SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog import Catalog, load_catalog

from tests.job.jobs import Job, answers
from tests.job.test_iceberg_source import SCHEMA, append, wanted
from tests.lifecycle.conftest import rollup
from tests.servers.iceberg_rest import RestCatalog
from tests.stores.test_iceberg import (
    test_a_range_of_time_reads_the_files_that_have_it,
    test_the_rows_are_those_of_the_delta_tables_behind_commits_compaction_and_rewrites,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "rollup",
    "test_a_range_of_time_reads_the_files_that_have_it",
    "test_the_rows_are_those_of_the_delta_tables_behind_commits_compaction_and_rewrites",
]
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Iceberg scan planning")]


@pytest.fixture
def server() -> Iterator[RestCatalog]:
    with RestCatalog() as found:
        yield found


@pytest.fixture
def catalog(server: RestCatalog) -> Catalog:
    return load_catalog("rollup", type="rest", uri=server.uri)


@pytest.mark.spark
def test_a_job_reads_a_table_of_the_catalog_and_lists_its_levels_there(
    tmp_path: Path, spark: SparkSession, server: RestCatalog, catalog: Catalog, monkeypatch: pytest.MonkeyPatch,
    rollup: Callable[..., tuple[int, str]],
) -> None:  # fmt: skip
    catalog.create_namespace("lake")
    table = catalog.create_table("lake.trades", SCHEMA, location=f"file://{tmp_path}/lake")
    append(table, 0, 1, 2)
    monkeypatch.setenv("LAKE_CREDENTIAL", "ann:of-the-tests-only")
    properties = {"credential_env": "LAKE_CREDENTIAL"}
    source = {"kind": "iceberg", "table": "lake.trades", "uri": server.uri, "properties": properties}
    where = f'iceberg = {{ namespace = "levels", uri = "{server.uri}", credential_env = "LAKE_CREDENTIAL" }}'
    job = Job(tmp_path, source, store=f'kind = "delta"\npath = "tables"\n{where}')
    job.run(spark)
    events = {symbol: 0 for symbol in ("S0", "S1", "S2")}
    for row in wanted(0, 1, 2):
        events[row["symbol"]] += 1
    assert answers(job.conf, "symbol, events", "years") == list(events.items())
    code, said = rollup("verify", job.path, "--raw")
    assert code == 0, said
    code, said = rollup("maintain", job.path)
    assert code == 0, said
    seconds = catalog.load_table("levels.TradeAgg_SECONDS").scan().to_arrow()
    closed = sum(row[-1] for row in answers(job.conf, "symbol, events", "seconds"))
    assert 0 < sum(seconds["AGG_EVENTS"].to_pylist()) <= closed == 120
