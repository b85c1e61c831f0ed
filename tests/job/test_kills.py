"""Random apps of several aggregations, killed at random moments, end as runs that nothing has interrupted.

A few rounds in every run, over a model of Spark; `make crash` adds many and kills the real job with its JVM. They run in
a process of their own, because the harness forks and a process with threads must not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.job.jobs import ROOT


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


def test_killed_a_few_times_several_aggregations_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    survived(tmp_path, 4, "--round", "4", "--seed", "5", "--files", "24")


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
