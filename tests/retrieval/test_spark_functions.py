"""Table functions that are renewed at each commit, as the Thrift server does: in Spark, whose views they are made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.retrieval.test_printers import EVENTS, app, asker, delta_host

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
@pytest.mark.spark
def test_functions_that_are_renewed_leave_no_views_of_older_commits_behind(spark: SparkSession, tmp_path: Path) -> None:
    import rollup

    def views() -> set[str]:
        return {row.viewName for row in spark.sql("show views like 'rollup_A_*'").collect()}

    for view in views():
        spark.catalog.dropTempView(view)
    running, trades = delta_host(tmp_path, app()), asker(tmp_path)
    seen = list[set[str]]()
    for at in range(4):
        running.send("S", EVENTS[at : at + 1])
        rollup.register_functions(spark, trades)
        rollup.register_functions(spark, trades)  # without a commit in between nothing is let go
        seen.append(views())
    assert len(seen[1]) == 2 * len(seen[0]) and len(seen[3]) == len(seen[1]), "of the newest and of the one before"
    assert seen[3] & seen[2] and not seen[3] & seen[0]
    assert spark.sql("select * from A('2018-**-** **:**:**', 'months')").count() > 0
