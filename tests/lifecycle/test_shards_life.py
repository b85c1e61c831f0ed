"""The lifecycle commands on an aggregation whose step runs in shards: its open rows are in several files, which only the
job itself writes, so a commit of another hand between two of its batches must be one that it can go on from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollup.checkpoint.records import RecordFolder
from tests.job.jobs import Job
from tests.lifecycle.conftest import trades
from tests.lifecycle.filejob import APP, MIDNIGHT, Place
from tests.lifecycle.opened import Opened, everything, spoil

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RANGE = ("--from", "2018-01-01", "--to", "2018-01-04")


def open_files(conf: Path) -> set[str]:
    """How the open rows of the newest commit are kept."""
    record = Opened.of(conf).store.snapshot().record  # type: ignore[attr-defined]
    return {type(found).__name__ for found in record.open.values()}


def two_jobs(folder: Path, annotations: str = "") -> tuple[Place, Job, Job]:
    """Where the files go, and two jobs over them: one whose step runs in shards, and one whose runs in the driver."""
    for name in ("incoming", "driver", "shards"):
        (folder / name).mkdir()
    app = APP.format(annotations=annotations, extra="")
    source = {"kind": "parquet", "path": str(folder / "incoming")}
    sharded = Job(folder / "shards", source, app=app, more='[cascade]\nhost = "shards"\nshards = 2')
    return Place(folder), sharded, Job(folder / "driver", source, app=app)


@pytest.mark.slow
@pytest.mark.spark
def test_verify_replay_and_recover_between_batches_in_shards(
    tmp_path: Path, spark: SparkSession, rollup: Callable[..., tuple[int, str]]
) -> None:
    events = trades(400)
    files, sharded, single = two_jobs(tmp_path, "@OutOfOrder('correct') ")
    conf = sharded.path

    files.add(*events[:200])
    sharded.run(spark)
    before = everything(conf)
    assert open_files(conf) == {"list"}, "a file a shard"
    assert rollup("verify", conf, "--raw")[0] == 0
    spoil(conf, MIDNIGHT, MIDNIGHT + 86_400_000)
    assert rollup("verify", conf)[0] == 1
    code, output = rollup("replay", conf, *RANGE)
    assert code == 0, output
    assert everything(conf) == before
    assert open_files(conf) == {"str"}, "a replay writes them whole"

    files.add(*events[200:300])
    sharded.run(spark)
    assert open_files(conf) == {"list"}
    code, output = rollup("recover", conf)
    assert code == 0 and "nothing to recover" in output
    records = RecordFolder(tmp_path / "shards" / "tables" / "_rollup" / "TradeAgg")
    *_, whole, newest = records.numbers()
    records.path(newest).write_text("{")
    code, output = rollup("recover", conf)
    assert code == 2 and f"--to-commit {whole}" in output
    assert rollup("recover", conf, "--to-commit", whole)[0] == 0

    files.add(*events[300:])
    sharded.run(spark)
    single.run(spark)
    assert everything(conf) == everything(single.path)
    assert rollup("verify", conf, "--raw")[0] == 0


@pytest.mark.slow
@pytest.mark.spark
def test_a_rebuild_from_the_tables_after_shards_is_that_of_the_driver(
    tmp_path: Path, spark: SparkSession, rollup: Callable[..., tuple[int, str]]
) -> None:
    events = trades(300)
    files, sharded, single = two_jobs(tmp_path)

    files.add(*events[:200])
    for job in (sharded, single):
        job.run(spark)
        code, output = rollup("recover", job.path, "--rebuild", "--aggregation", "TradeAgg")
        assert code == 0 and "lost: what was still open at seconds" in output, output
    assert open_files(sharded.path) == {"str"}, "a rebuild writes them whole"
    assert everything(sharded.path) == everything(single.path)

    files.add(*events[200:])
    for job in (sharded, single):
        job.run(spark)
        assert rollup("verify", job.path)[0] == 0
    assert open_files(sharded.path) == {"list"}, "the next batch splits them again"
    assert everything(sharded.path) == everything(single.path)
