"""Killed at any moment and started again, a job ends with what it would have had: to the last bit, nothing twice.

The fast half kills a job without Spark at every named point between two side effects, and the real job three times;
`make crash` kills both at every point, early and late. Values are whole numbers and halves, so sums do not depend on
the order they are made in.
"""

from __future__ import annotations

import ast
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollup.core.columns import ColumnEngine
from rollup.core.errors import FencedError
from rollup.hosts.exchange import Exchange, sweep
from rollup.stores.delta.store import DeltaStore
from rollup.stores.faults import POINTS
from tests.job import faults_child
from tests.job.contents import contents
from tests.job.jobs import ROOT, TRADES, Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAULTS = [f"{point}:{count}" for point in POINTS for count in (1, 3)]
ONCE = [f"{point}:{1 if point == 'commit.rewrite' else 3}" for point in POINTS]
"""Each point once, where there is something to lose already; it rewrites only once."""
LOST_AT = ["commit.levels:4", "batch.begin:5", "commit.record:4"]
Case = dict[str, Any]


class Cases:
    """What comes of a case, by (app, what was lost, fault); each is run when it is first asked for."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        self._found: dict[tuple[str, str | None, str | None], Case] = {}

    def __getitem__(self, asked: tuple[str, str | None, str | None]) -> Case:
        if asked not in self._found:
            assert self._child.stdin is not None and self._child.stdout is not None
            print(json.dumps(asked), file=self._child.stdin, flush=True)
            self._found[asked] = json.loads(self._child.stdout.readline())
        return self._found[asked]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cases]:
    folder = tmp_path_factory.mktemp("faults")
    command = [sys.executable, "-m", "tests.job.faults_child", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        yield Cases(child)
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(60) == 0


@pytest.mark.few(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_killed_at_a_point_and_restarted_nothing_is_lost_and_nothing_counts_twice(cases: Cases, fault: str) -> None:
    case, whole = cases["late", None, fault], cases["late", None, None]
    if fault != "commit.rewrite:3":  # it rewrites once
        assert case["killed"] == signal.SIGKILL
    assert case["again"] == 0
    assert case["result"] == whole["result"]


def test_the_uninterrupted_run_has_late_events_open_rows_and_dead_letters(cases: Cases) -> None:
    whole = cases["late", None, None]["result"]
    assert all(whole[name] for name in ("A_SECONDS", "A_HOURS", "A_LATE", "B_LATE", "A open SECONDS", "letters")), (
        whole.keys()
    )
    assert len(whole["letters"]) == faults_child.BATCHES


def _data(result: dict[str, Any]) -> dict[str, Any]:
    """Without the ledger, which counts what came again, and the number of commits."""
    return {name: found for name, found in result.items() if not name.endswith(("_LATE", " commits"))}


@pytest.mark.parametrize("lost", ["checkpoint", "both"])
@pytest.mark.few(1)
@pytest.mark.parametrize("fault", LOST_AT)
def test_without_checkpoint_everything_is_sent_again_and_counts_once(cases: Cases, lost: str, fault: str) -> None:
    case, whole = cases["plain", lost, fault], cases["plain", None, None]
    assert (case["killed"], case["again"]) == (signal.SIGKILL, 0)
    assert _data(case["result"]) == _data(whole["result"])


@pytest.mark.few(1)
@pytest.mark.parametrize("fault", LOST_AT)
def test_without_commit_records_only_the_open_bucket_of_the_finest_level_is_lost(cases: Cases, fault: str) -> None:
    case, whole = cases["plain", "records", fault], cases["plain", None, None]
    assert (case["killed"], case["again"]) == (signal.SIGKILL, 0)
    found, wanted = set(case["result"]["A_SECONDS"]), set(whole["result"]["A_SECONDS"])
    assert len(wanted - found) <= 2, "at most the keys of one second and of the next"
    assert len(found - wanted) <= 1
    assert case["result"]["letters"] == whole["result"]["letters"]


# Two jobs, and what a killed one leaves behind


def test_of_two_jobs_on_one_store_the_one_that_commits_second_is_stopped_and_leaves_nothing(tmp_path: Path) -> None:
    program = faults_child.compile_app(faults_child.PLAIN)
    engine = ColumnEngine(threads=1)
    first, second = (
        faults_child.Pipeline(program.aggregations["A"], faults_child.store(program, "A", engine, tmp_path), engine)
        for _ in range(2)
    )
    first.start()
    faults_child.advance(engine, first, 0, "q1", late=False)
    second.start()
    faults_child.advance(engine, second, 1, "q1", late=False)
    before = contents(tmp_path, program)
    with pytest.raises(FencedError, match=r"only one job may write an aggregation"):
        faults_child.advance(engine, first, 1, "q1", late=False)
    assert contents(tmp_path, program) == before
    faults_child.advance(engine, second, 2, "q1", late=False)
    assert contents(tmp_path, program) != before


def test_a_table_that_moved_on_without_a_record_is_put_back(tmp_path: Path) -> None:
    program = faults_child.compile_app(faults_child.PLAIN)
    engine = ColumnEngine(threads=1)
    pipeline = faults_child.Pipeline(
        program.aggregations["A"], faults_child.store(program, "A", engine, tmp_path), engine
    )
    pipeline.start()
    faults_child.advance(engine, pipeline, 0, "q1", late=False)
    before = contents(tmp_path, program)
    half = tmp_path / "_rollup" / "A" / "commit-000000000001.json"
    faults_child.advance(engine, pipeline, 1, "q1", late=False)
    (tmp_path / "_rollup" / "A" / "commit-000000000002.json").unlink()
    assert half.exists()
    store = DeltaStore(program.aggregations["A"], engine, tmp_path)
    loaded = store.load()
    assert loaded is not None and loaded.number == 1
    again = faults_child.Pipeline(program.aggregations["A"], store, engine)
    again.start()
    assert contents(tmp_path, program) == before
    faults_child.advance(engine, again, 1, "q1", late=False)
    assert len(contents(tmp_path, program)["A_SECONDS"]) > len(before["A_SECONDS"])


def test_the_exchange_folder_of_a_killed_job_is_removed_by_the_next_one_and_that_of_a_living_one_stays(
    tmp_path: Path,
) -> None:
    code = "import time; from pathlib import Path; from rollup.hosts.exchange import Exchange; "
    code += f"print(Exchange(Path({str(tmp_path)!r})).path, flush=True); time.sleep(99)"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        (theirs / "left.arrow").write_bytes(b"x")
        ours = Exchange(tmp_path)
        assert (sweep(tmp_path), theirs.exists()) == ([], True)
        other.kill()
    assert sweep(tmp_path) == [theirs]
    assert not theirs.exists()
    assert Path(ours.path).exists()
    ours.close()
    assert not Path(ours.path).exists()


# The real job


def write_events(folder: Path, files: int = 6, rows: int = 400) -> None:
    """Files of JSON events in order of time, every eleventh event late, one broken line a file."""
    folder.mkdir()
    for number in range(files):
        lines = ["{broken " + str(number)]
        for i in range(number * rows, (number + 1) * rows):
            ts = 1_600_001_910_000 + i * 97 - (9_000 if i % 11 == 0 else 0)
            lines.append(json.dumps({"symbol": f"s{i % 5}", "price": i % 16 / 4, "quantity": i, "ts": ts}))
        file = folder / f"{number}.json"
        file.write_text("\n".join(lines) + "\n")
        os.utime(file, (1_600_000_000 + number, 1_600_000_000 + number))


def job(folder: Path, **more: str) -> Job:
    """The job over the events, one file a batch; `more` as `Job` takes it."""
    folder.mkdir(exist_ok=True)
    source = {"kind": "json", "path": str(folder.parent / "events"), "max_files_per_batch": 1}
    return Job(folder, source, app=TRADES, **more)


@pytest.fixture
def whole(tmp_path: Path, spark: SparkSession) -> dict[str, Any]:
    """What an uninterrupted run leaves."""
    write_events(tmp_path / "events")
    reference = job(tmp_path / "reference")
    reference.run(spark)
    return contents(tmp_path / "reference" / "tables", reference.conf.program())


def uncut(result: dict[str, Any]) -> dict[str, Any]:
    """Without what says how the events were cut into batches: what came after a lost batch, Spark cuts anew."""
    late = [repr(ast.literal_eval(row)[1:]) for row in result["TradeAgg_LATE"]]  # its first column is the commit
    return {**result, "TradeAgg_LATE": sorted(late), "TradeAgg commits": None}


def killed(real: Job, fault: str) -> bool:
    """Run the job to a fault; whether it got there."""
    code, said = real.finish("--once", fault=fault)
    assert code in (0, -signal.SIGKILL), said
    return code != 0


@pytest.mark.spark
@pytest.mark.slow
def test_the_real_job_killed_three_times_on_its_way_ends_as_if_it_never_was(
    tmp_path: Path, whole: dict[str, Any]
) -> None:
    real = job(tmp_path / "real")
    assert killed(real, "commit.levels:2")
    assert killed(real, "commit.record:2")
    assert killed(real, "batch.end:1")
    code, said = real.finish("--once")
    assert code == 0, said
    assert uncut(contents(tmp_path / "real" / "tables", real.conf.program())) == uncut(whole)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_the_real_job_killed_at_a_point_ends_as_if_it_never_was(
    tmp_path: Path, whole: dict[str, Any], fault: str
) -> None:
    real = job(tmp_path / "real")
    reached = killed(real, fault)
    assert reached or fault.startswith(("commit.rewrite", "maintain.compact")), (
        "nothing rewrites, and six files are few"
    )
    code, said = real.finish("--once")
    assert code == 0, said
    assert uncut(contents(tmp_path / "real" / "tables", real.conf.program())) == uncut(whole)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(5))
def test_the_real_job_killed_ten_times_at_random_moments_ends_as_if_it_never_was(
    tmp_path: Path, whole: dict[str, Any], seed: int
) -> None:
    real = job(tmp_path / "real")
    kill_ten_times(real, random.Random(seed))
    code, said = real.finish("--once")
    assert code == 0, said
    assert uncut(contents(tmp_path / "real" / "tables", real.conf.program())) == uncut(whole)


def kill_ten_times(real: Job, moments: random.Random) -> None:
    """Run the job ten times, each to a random moment."""
    for _ in range(10):
        process = real.process("--once", start_new_session=True)
        time.sleep(moments.uniform(0.3, 1.2) * duration())
        # Python and the JVM at once, as when the machine goes.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@cache
def duration() -> float:
    """Seconds from the start of a process to its session, about: what a random moment is measured against."""
    began = time.monotonic()
    code = "from rollup.hosts.spark.session import session; session({}, False).range(1).count()"
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    )
    return time.monotonic() - began
