"""The tables read by Spark alone, as people do who have the Delta connector and not us."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.retrieval.trades import SECOND, START, app, delta_host

pytest.importorskip("pyspark")
ROWS = 5_000  # distinct bucket starts of one file: a dictionary of more than 8 KiB, which Java reads in another way


@pytest.mark.spark
def test_spark_filters_tables_by_time_and_key(spark: object, tmp_path: Path) -> None:
    host = delta_host(tmp_path, app())
    host.send("S", [("ab"[n % 2], n, START + n * SECOND) for n in range(ROWS)])
    host.send("S", [("a", 0, START + 40 * 86_400 * SECOND)])  # closes all of them
    host.stores["A"].maintain(10.0)  # type: ignore[attr-defined]
    table = spark.read.format("delta").load(str(tmp_path / "store" / "A_SECONDS"))  # type: ignore[attr-defined]
    low, high = START + 1_000 * SECOND, START + 4_000 * SECOND
    found = table.where(f"AGG_TIMESTAMP >= {low} and AGG_TIMESTAMP < {high} and k = 'a'")
    assert found.count() == 1_500
    assert found.agg({"AGG_SUM_v": "sum"}).collect()[0][0] == sum(range(1_000, 4_000, 2))
    assert table.where("AGG_SUM_v = 4321").select("AGG_TIMESTAMP").collect()[0][0] == START + 4_321 * SECOND
