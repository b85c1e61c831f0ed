"""An Iceberg table read again: what its snapshots gave the job, by their names in the log of the query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollup.hosts.listeners.datasets import source
from tests.job.jobs import Job, answers
from tests.job.test_iceberg_source import Read, append, catalog, expired, table

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

__all__ = ["catalog", "table"]  # fixtures
_WHOLE = ("--from", "2020-09-13", "--to", "2020-09-14")
_PER = ("symbol, total, low, mean, events", "seconds")


@pytest.mark.spark
def test_what_was_taken_is_read_again_by_its_snapshots(
    tmp_path: Path, spark: SparkSession, table: Table, rollup: Callable[..., tuple[int, str]]
) -> None:
    """Batches of two; one snapshot is refused, one is not yet read, one is expired in the end."""
    job = Job(tmp_path, Read(tmp_path).options | {"max_files_per_batch": 2})
    append(table, 0, 1, 2)
    table.delete("symbol = 'S0' and quantity > 30")
    append(table, 3)
    job.run(spark)
    append(table, 4)
    before = answers(job.conf, *_PER)
    assert sum(row[-1] for row in before) == 160
    code, said = rollup("verify", job.path, "--raw")
    assert code == 0, said
    code, said = rollup("replay", job.path, *_WHOLE)
    assert code == 0, said
    assert answers(job.conf, *_PER) == before
    code, said = rollup("replay", job.path, *_WHOLE, "--source", tmp_path)
    assert code != 0 and "a source of kind iceberg has no folder" in said
    number = table.snapshots()[1].snapshot_id
    expired(table, 1)
    code, said = rollup("replay", job.path, *_WHOLE)
    assert code != 0 and f"snapshot {number} of lake.trades is expired, and the job has taken it" in said
    assert answers(job.conf, *_PER) == before
    assert source(job.conf, "Trades")[0].name == "lake.trades"
