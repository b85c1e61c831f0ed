"""The job with statements: what its sinks and tables hold is known by hand, also when it was killed on its way (over a
model of Spark, see `tests.statements.kills`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.job.jobs import ROOT
from tests.statements.jobs import HELD, KEYED, expected, expected_keyed, in_files, job, results


def killed(folder: Path, *options: str, script: str = "kills") -> dict[str, Any]:
    """What differs after kills, by point or round; or of which something goes `going_back`, by script."""
    command = [sys.executable, "-m", f"tests.statements.{script}", str(folder), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_killed_between_two_side_effects_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path) -> None:
    found = killed(tmp_path)
    assert found and found == {name: {} for name in found}


@pytest.mark.slow
def test_tables_of_a_backup_with_sinks_that_go_on_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    found = killed(tmp_path, "tables from a backup", "the project moved", script="going_back")
    assert found and found == {name: {} for name in found}


@pytest.mark.parametrize("places", [1, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_one_bit_of_the_log_that_spark_keeps_is_noticed_and_its_file_named(tmp_path: Path, places: int) -> None:
    found = killed(tmp_path, "flips", str(places), script="going_back")
    assert found["files"] > 15 and found["missed"] == []


@pytest.mark.slow
def test_whatever_goes_back_or_is_removed_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path) -> None:
    found = killed(tmp_path, script="going_back")
    assert len(found) == 13 and found == {name: {} for name in found}


@pytest.mark.slow
def test_in_shards_it_is_killed_between_two_side_effects_and_nothing_is_lost_or_comes_twice(tmp_path: Path) -> None:
    found = killed(tmp_path, "--shards", "3")
    assert len(found) == 2 and found == {name: {} for name in found}


@pytest.mark.slow
def test_killed_again_and_again_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path) -> None:
    found = killed(tmp_path, "--all", "--random", "10", "--counts", "1", "2", "4")
    assert found and found == {name: {} for name in found}


@pytest.mark.slow
def test_in_shards_it_is_killed_again_and_again(tmp_path: Path) -> None:
    found = killed(tmp_path, "--all", "--random", "10", "--counts", "1", "2", "4", "--shards", "3")
    assert found and found == {name: {} for name in found}


@pytest.mark.slow
@pytest.mark.spark
def test_run_on_spark_in_shards_gives_the_same(tmp_path: Path) -> None:
    found = job(tmp_path, files=6, per_batch=2, shards=3, more=KEYED)
    code, said = found.finish("--once")
    assert (code, results(found)) == (0, expected(6)), said
    keyed = expected_keyed(6)
    assert {sink: sorted(tuple(row.values()) for row in in_files(found, sink)) for sink in keyed} == keyed
    record = json.loads(max((tmp_path / "tables/_rollup/_statements").glob("commit-*.json")).read_text())
    assert {name: len(files) for name, files in record["open"].items() if name != "statements"} == {
        "jumps.epl": 3,
        "minutes.sql": 3,
        "sql block": 3,
        "uql block": 3,
        "streamcruncher block": 3,
    }


@pytest.mark.spark
def test_run_on_spark_fills_every_sink_and_ends_without_a_word_of_a_library(tmp_path: Path) -> None:
    found = job(tmp_path, files=6, per_batch=2, more=HELD)
    code, said = found.finish("--once")
    assert (code, results(found)) == (0, expected(6)), said
    assert "leaked" not in said
    held = sorted((row["price"], row["total"]) for row in in_files(found, "held"))
    assert held == [(1.0, None), *((minute + 1.0, float(minute)) for minute in range(1, 6))]


def test_plan_says_of_each_statement_how_it_runs_and_where_it_goes(tmp_path: Path) -> None:
    found = job(tmp_path, files=1)
    command = [sys.executable, "-m", "rollup.cli.main", "plan", str(found.path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    for line in (
        "statements siddhiql: on rows",
        "stream Means to delta (exactly once, by the transaction of each append)",
        "stream Rising to files (exactly once, one file a commit, named by its rows)",
        "stream Jumps to aggregation JumpAgg",
        "statements minutes.sql: on columns",
        "table Sums (the last row of each symbol) to delta (exactly once, by the transaction of each append; merged: the last",
        "one, in the driver: a row of any key may ask for any row of Sums; state: open windows and what joins can reach; "
        "tables Sums (the last row of each symbol); reads Sums, Trades",
        "an aggregation would also answer it",
        "stream Minutes to postgres (exactly once, in one transaction with the number of its rows)",
    ):
        assert line in said
