"""Tables, checkpoint, source and sinks in Azure's blobs: what S3 is tested with, before a real server of theirs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollup.core.objects import at, names_in
from tests.job.jobs import Job, answers
from tests.job.test_object_store import (
    test_a_name_can_be_made_once,
    test_killed_and_restarted_nothing_is_lost_and_nothing_counts_twice,
    test_names_of_objects_are_paths,
    test_of_two_jobs_that_make_one_commit_one_is_refused,
    whole,
)
from tests.servers.azure import AzureServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "test_a_name_can_be_made_once",
    "test_killed_and_restarted_nothing_is_lost_and_nothing_counts_twice",
    "test_names_of_objects_are_paths",
    "test_of_two_jobs_that_make_one_commit_one_is_refused",
    "whole",
]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def azure() -> Iterator[AzureServer]:
    with AzureServer() as server:
        yield server


@pytest.fixture(params=["az://{}", "abfss://{}@devstoreaccount1.dfs.core.windows.net"], ids=["az", "abfss"])
def afar(azure: AzureServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """An empty container by each of its names, which this process and those that it starts can reach."""
    for name, value in {**azure.environment, "ROLLUP_CACHE_OBJECTS": str(tmp_path / "copies")}.items():
        monkeypatch.setenv(name, value)
    return request.param.format(azure.new_container().removeprefix("az://"))


@pytest.mark.spark
def test_a_job_with_all_that_it_has_in_a_container_answers_as_one_in_folders(
    tmp_path: Path, spark: SparkSession, afar: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in os.environ.items():
        if name.startswith("AZUR"):  # the session is older than the container
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
    jobs = dict[str, Job]()
    for name, place in (("near", str(tmp_path / "all")), ("far", afar)):
        (tmp_path / name).mkdir()
        source = {"kind": "json", "path": f"{place}/in", "max_files_per_batch": 1, "create": True}
        job = Job(tmp_path / name, source, store=f'kind = "delta"\npath = "{place}/tables"')
        job.path.write_text(job.path.read_text().replace('"checkpoint"', f'"{place}/checkpoint"'))
        jobs[name] = job
    for number in range(3):
        trades = [
            {"symbol": f"S{i % 3}", "price": i / 4, "quantity": i, "ts": 1_600_000_000_000 + (number * 300 + i) * 700}
            for i in range(300)
        ]
        text = "".join(json.dumps(trade) + "\n" for trade in trades) + "none\n"
        (tmp_path / "all" / "in").mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / "in" / f"{number}.json").write_text(text)
        at(f"{afar}/in/{number}.json").write_bytes(text.encode())
        for job in jobs.values():
            job.run(spark)
        for per in ("seconds", "years"):
            found = {name: answers(job.conf, "symbol, total, low, mean, events", per) for name, job in jobs.items()}
            assert found["near"] == found["far"] != []
    assert len(jobs["far"].letters()) == 3
    assert sorted(names_in(at(afar))) == ["checkpoint", "in", "tables"]
    assert not list((tmp_path / "far").glob("*/*")) and not list(tmp_path.glob("**/*:*"))
