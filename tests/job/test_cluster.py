"""The job on a real standalone cluster, master and workers as processes of their own, leaves what the local job leaves.

Executors of another process see nothing of the driver's memory and take no part in its exchange folder, so this is
where a hidden dependence on one process would show.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.job.contents import contents
from tests.job.jobs import Job
from tests.servers.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A master and two workers of one core each."""
    with Cluster(tmp_path / "cluster") as running:
        yield running


def events(folder: Path) -> None:
    """Four files, some events late, a broken line in each."""
    folder.mkdir()
    for number in range(4):
        rows = [
            {
                "symbol": f"s{i % 3}",
                "price": i % 8 / 4,
                "quantity": i,
                "ts": 1_600_001_910_000 + i * 97 - (9_000 if i % 11 == 0 else 0),
            }
            for i in range(number * 300, number * 300 + 300)
        ]
        file = folder / f"{number}.json"
        file.write_text("{broken\n" + "".join(json.dumps(row) + "\n" for row in rows))
        os.utime(file, (1_600_000_000 + number, 1_600_000_000 + number))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.cluster
def test_a_job_on_a_cluster_leaves_what_a_local_one_leaves(
    tmp_path: Path, spark: SparkSession, cluster: Cluster
) -> None:
    events(tmp_path / "events")
    source = {"kind": "json", "path": str(tmp_path / "events"), "max_files_per_batch": 2}
    more = "[spark]\n" + "\n".join(f'"{name}" = "{value}"' for name, value in cluster.settings().items())
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    there, here = Job(tmp_path / "there", source, more=more), Job(tmp_path / "here", source)
    code, said = there.finish("--once", seconds=400)
    assert code == 0, said
    here.run(spark)
    found = contents(tmp_path / "there" / "tables", there.conf.program())
    assert found == contents(tmp_path / "here" / "tables", here.conf.program())
    assert len(found["letters"]) == 4
    executors = list((tmp_path / "cluster").glob("w*/app-*/*"))
    assert len(executors) == 2, "both workers have run an executor"
