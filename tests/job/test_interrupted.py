"""Ctrl-C while a job starts: it ends at once without a traceback, leaves nothing running, and the next start does it all.

Real processes, since what is tested is what a signal meets on its way: imports, the Java that is being started, leases.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollup.core.columns import ColumnEngine
from tests.job.jobs import Job, answers

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
