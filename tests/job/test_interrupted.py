"""Ctrl-C while a job starts: it ends at once without a traceback, leaves nothing running, and the next start does it all.

Real processes, since what is tested is what a signal meets on its way: imports, the Java that is being started, leases.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rollup.core.columns import ColumnEngine
from tests.job.jobs import ROOT, Job, answers
from tests.job.stuck_child import HOWS

APP = """define stream S (k string, n long, ts long);
define aggregation A from S select k, count() as events group by k aggregate by ts every sec, min;
"""


def job(folder: Path) -> Job:
    (folder / "in").mkdir()
    (folder / "in" / "a.json").write_text('{"k": "a", "n": 1, "ts": 1600000000000}\n')
    return Job(folder, {"kind": "json", "path": str(folder / "in")}, app=APP, streams=("S",))


def processes(group: int) -> list[int]:
    """The processes of a session that still run."""
    found = list[int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == group and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def interrupted(found: Job, seconds: float, number: signal.Signals) -> tuple[int, str]:
    """Start a job, send its whole group a signal so long after; how it ended and what it said."""
    process = found.process("--once", "--takeover", "1", start_new_session=True)
    try:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, number)
        _, said = process.communicate(timeout=120)
        until = time.monotonic() + 30
        while processes(process.pid):
            assert time.monotonic() < until, "what it started ends with it"
            time.sleep(0.05)
        return process.returncode, said
    finally:
        process.kill()


@pytest.mark.parametrize("ask", [ColumnEngine.run, ColumnEngine.count])
def test_an_interrupt_in_a_query_is_one_and_no_error_of_what_was_asked(ask: Callable[[ColumnEngine, str], Any]) -> None:
    """DuckDB makes an error of it, which the look at an app took for a reason why it cannot run."""
    engine, endless = ColumnEngine(threads=1), "SELECT SUM(a.range * b.range) FROM range(9999999) a, range(9999999) b"
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        ask(engine, endless)


def ended_in_time(found: Job, process: subprocess.Popen[str], stuck: Path, patience: float) -> str:
    """Wait until a job is stuck and send it a signal; what it said. It and all that it started has ended in time."""
    try:
        until = time.monotonic() + 120
        while not stuck.exists():
            assert process.poll() is None and time.monotonic() < until, process.communicate()
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        _, said = process.communicate(timeout=patience + 60)
        while processes(process.pid):
            assert time.monotonic() - began < patience + 60, "what it started ends with it"
            time.sleep(0.05)
        assert "Traceback" not in said, said
        return said
    finally:
        process.kill()


STATEMENTS = """define stream T (k string, c long);
from S select k, count() as c group by k insert into T;
"""


@pytest.mark.parametrize("how", HOWS)
def test_a_process_that_is_told_to_end_and_is_stuck_is_ended(how: str) -> None:
    """Also where no other Python runs meanwhile, and so no handler of a signal does."""
    work = f"with ended_in_time(1):\n    signal.signal(15, lambda *_: None)\n    print('stuck', flush=True)\n    HOWS['{how}']()"
    text = f"import signal\nfrom rollup.hosts.spark.watching.deadline import ended_in_time\nfrom tests.job.stuck_child import HOWS\n{work}"
    with subprocess.Popen(
        [sys.executable, "-c", text], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "stuck\n"
        began = time.monotonic()
        process.terminate()
        _, said = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL and time.monotonic() - began > 0.9
    assert "did not end within 1 s of the signal" in said


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    "point", ["batch.begin", "statements.begin", "commit.open", "commit.record", "statements.sink"]
)
def test_wherever_a_job_is_stuck_a_signal_ends_it_and_the_next_start_does_it_all(
    tmp_path: Path, point: str, how: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"k": "a", "n": 1, "ts": 1600000000000}\n')
    real = Job(
        tmp_path, {"kind": "json", "path": str(tmp_path / "in")}, app=APP + STATEMENTS, streams=("S",),
        more=f'[sinks.T]\nkind = "files"\npath = "{tmp_path / "out"}"\n',
    )  # fmt: skip
    command = [sys.executable, "-m", "tests.job.stuck_child", point, how, str(real.path), "--once", "--patience", "2"]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    said = ended_in_time(real, process, real.path.with_name("stuck"), 2)
    assert "did not end within 2 s of the signal" in said
    code, said = real.finish("--once", "--takeover", "1")
    assert code == 0, said
    assert sum(row[0] for row in answers(real.conf, "events", "minutes", "A")) == 1
    assert [row["c"] for row in pq.read_table(tmp_path / "out").to_pylist()] == [1]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_is_interrupted_ends_without_a_traceback_and_the_next_does_it_all(
    tmp_path: Path, number: signal.Signals
) -> None:
    real = job(tmp_path)
    ended = set[int]()
    for tenths in (3, 6, 10, 15, 20, 30, 45, 60, 90):
        code, said = interrupted(real, tenths / 10, number)
        assert "Traceback" not in said and "py4j" not in said.lower(), (tenths, said)
        # Python ends itself with SIGINT where the interrupt has met text that a library had it run.
        assert code in (0, 130, -number, -signal.SIGINT), (tenths, code, said)
        assert code != 130 or "rollup: interrupted" in said, (tenths, said)
        ended.add(code)
    assert ended - {0}, "some met the start"
    code, said = real.finish("--once", "--takeover", "1")
    assert code == 0, said
    assert sum(row[0] for row in answers(real.conf, "events", "minutes", "A")) == 1
