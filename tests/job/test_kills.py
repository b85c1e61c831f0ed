"""Random apps of several aggregations, killed at random moments, end as runs that nothing has interrupted.

A few rounds in every run, over a model of Spark; `make crash` adds many and kills the real job with its JVM. They run in
a process of their own, because the harness forks and a process with threads must not.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rollup.checkpoint.records import RecordFolder
from rollup.hosts.spark.query_log import newest_done
from rollup.stores.faults import POINTS
from tests.job.jobs import ROOT
from tests.job.kills import Round, once
from tests.job.late_kill import BATCH


def survived(folder: Path, kills: int, *arguments: str, seconds: float = 590) -> list[dict[str, Any]]:
    """Rounds of the harness, each checked; what came of them."""
    command = [sys.executable, "-m", "tests.job.kills", str(folder), "--kills", str(kills), *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=seconds
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (found, done.stderr[-2000:])
    assert sum(each["done"].get("kills", 0) for each in found) >= kills
    assert not any(each["differ"] or each["code"] for each in found)
    return found


@pytest.mark.slow
def test_killed_a_few_times_several_aggregations_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    survived(tmp_path, 4, "--round", "4", "--seed", "5", "--files", "24")


IN_COMMITS = [name for name in POINTS if name.startswith("commit.") and name != "commit.rewrite"]
"""Where a commit can be ended; one that rewrites is no batch's."""


@pytest.mark.parametrize("point", IN_COMMITS)
@pytest.mark.slow
def test_killed_in_a_commit_that_trails_the_batch_comes_again_as_it_was(tmp_path: Path, point: str) -> None:
    one = Round(tmp_path, Random("5-0"), files=12)
    assert one.streams == ("S",) and len(one.names) > 1
    whole, real = one.job("whole", 2), one.job("real", 2)
    killed = subprocess.run(
        [sys.executable, "-m", "tests.job.late_kill", str(real.path), point],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    holds = [RecordFolder(real.conf.tables / "_rollup" / name).newest() for name in one.names]
    assert BATCH - 1 in [record.source["S"]["batch"] for record in holds if record], "Spark is ahead of some"
    assert newest_done(real.conf.checkpoint / "S") == BATCH
    for job in (real, whole):
        once(job.path)
    assert one.everything(real) == one.everything(whole)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", ["1", "2"])
def test_killed_fifty_times_on_delta(tmp_path: Path, seed: str) -> None:
    found = survived(tmp_path, 50, "--round", "10", "--seed", seed, seconds=7000)
    assert sum(each["done"].get("back", 0) for each in found), "aggregations were taken back by themselves too"


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("how", [["--retention"], ["--shards", "--retention"]])
def test_killed_twenty_times_while_rows_are_removed_and_steps_are_made_in_shards(
    tmp_path: Path, how: list[str]
) -> None:
    survived(tmp_path, 20, "--round", "10", "--seed", "8", *how, seconds=7000)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_killed_with_statements_three_sinks_retention_and_upkeep(tmp_path: Path) -> None:
    kills = os.environ.get("ROLLUP_KILLS", "10")  # many, for whoever has the time
    survived(tmp_path, int(kills), "--round", "10", "--seed", "9", "--retention", "--statements", seconds=7000)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("what", ["flips", "damages"])
def test_files_that_are_damaged_are_noticed_or_harmless(tmp_path: Path, what: str) -> None:
    flips = os.environ.get("ROLLUP_FLIPS", "30")
    command = [sys.executable, "-m", "tests.job.flips", str(tmp_path / "flips"), f"--{what}", flips]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=7000
    )
    assert done.returncode == 0, (done.stdout, done.stderr[-2000:])
    assert sum(json.loads(done.stdout.splitlines()[-1]).values()) == int(flips)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", ["3", "4"])
def test_killed_fifty_times_on_postgresql(tmp_path: Path, seed: str) -> None:
    found = survived(tmp_path, 50, "--round", "10", "--seed", seed, "--postgres", seconds=7000)
    assert sum(each["done"].get("locks", 0) for each in found), "commits were made to wait too"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.postgres
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("store", ["delta", "postgres"])
def test_the_real_job_killed_twenty_times_with_its_jvm(tmp_path: Path, store: str) -> None:
    more = ["--postgres"] if store == "postgres" else []
    survived(tmp_path, 20, "--round", "10", "--seed", "6", "--spark", *more, seconds=7000)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.timeout(7200)
def test_the_broker_killed_under_the_real_job_and_the_job_with_it(tmp_path: Path) -> None:
    kills = os.environ.get("ROLLUP_KILLS", "4")
    command = [sys.executable, "-m", "tests.job.broker_kills", str(tmp_path), "--kills", kills]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=7000
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (found, done.stderr[-2000:])
    assert sum(each["done"]["kills"] for each in found) == int(kills)
