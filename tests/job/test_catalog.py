"""The tables of a job under names in a catalog of Spark's: what any other session reads there is what the job wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.hosts.spark.catalog import register
from rollup.stores.registry import open_store
from tests.job.jobs import Job, trades_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = [("a", 3), ("b", 4)]
"""The sums of the seconds that are over."""


def _job(folder: Path, catalog: str, more: str = "") -> Job:
    source = trades_in(folder)
    store = f'kind = "delta"\npath = "tables"\ncatalog = "{catalog}"'
    return Job(folder, source, store=store, more=more)


def _registered(spark: SparkSession, job: Job) -> list[str]:
    """What is said when the tables of a job are registered; they are made when they are not there."""
    conf, program = job.conf, job.conf.program()
    for aggregation in program.aggregations.values():
        open_store(conf, aggregation, ColumnEngine()).load()
    return list(register(spark, conf, program))


@pytest.mark.slow
@pytest.mark.spark
def test_tables_are_registered_once_and_another_of_that_name_is_said(spark: SparkSession, tmp_path: Path) -> None:
    job = _job(tmp_path / "one und Größe", "trades_here")
    try:
        job.run(spark)
        assert spark.catalog.tableExists("trades_here.TradeAgg_YEARS")
        rows = spark.table("trades_here.TradeAgg_SECONDS").select("symbol", "AGG_SUM_quantity").collect()
        assert sorted(map(tuple, rows)) == SECONDS
        assert _registered(spark, job) == []
        said = _registered(spark, _job(tmp_path / "two", "trades_here"))
        there = job.folder / "tables" / "TradeAgg_SECONDS"
        assert said[0].startswith(
            f"warning: [store] catalog: trades_here.TradeAgg_SECONDS is the table at {there}, not "
        )
        assert len(said) == len(list((job.folder / "tables").glob("TradeAgg_*S")))
        (lost,) = _registered(spark, _job(tmp_path / "three", "nowhere.trades"))
        assert lost.startswith("warning: [store] catalog: nowhere.trades cannot be registered: ")
    finally:
        spark.sql("DROP SCHEMA IF EXISTS trades_here CASCADE")


@pytest.mark.slow
def test_a_hive_metastore_has_the_tables_for_other_programs(tmp_path: Path) -> None:
    """Derby as the metastore's database: 60 s, of which two starts of Java and the metastore's schema are the most."""
    metastore = f"jdbc:derby:;databaseName={tmp_path / 'metastore'};create=true"
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": metastore,
    }
    more = "[spark]\n" + "\n".join(f'"{name}" = "{value}"' for name, value in settings.items())
    job = _job(tmp_path / "job", "trades", more)
    code, said = job.finish("--once")
    assert (code, "catalog" in said) == (0, False), said
    reading = (
        "import json, sys; from rollup.hosts.spark.session import session\n"
        "spark = session(json.loads(sys.argv[1]), kafka=False)\n"
        "print(json.dumps([list(row) for row in spark.sql('select symbol, AGG_SUM_quantity from trades.tradeagg_seconds').collect()]))"
    )
    ran = subprocess.run([sys.executable, "-c", reading, json.dumps(settings)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert sorted(map(tuple, json.loads(ran.stdout.splitlines()[-1]))) == SECONDS


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"catalog is 'a.b.c' \(a schema, trades, or one of a catalog"):
        _ = _job(tmp_path, "a.b.c").conf
