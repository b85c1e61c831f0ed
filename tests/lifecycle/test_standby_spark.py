"""Two real jobs on Spark, one on standby, and one paused in the middle of its life.

`test_lease.py` says the same of a job without Spark; this shows it once on the whole program. Slow: Spark starts twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rollup.core.columns import ColumnEngine
from rollup.lifecycle.status import newest
from rollup.stores.registry import open_store
from tests.lifecycle.conftest import ON_POSTGRES, trades
from tests.lifecycle.filejob import Place
from tests.lifecycle.test_lease import ROOT, assert_right


def start(place: Place, log: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rollup.cli.main", "run", str(place.root / "rollup.toml"), *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=log.open("wb"), stderr=subprocess.STDOUT)


def wait_for(what: str, condition: object, log: Path, seconds: float = 400) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < until, f"{what}\n{log.read_text()[-3000:]}"
        time.sleep(0.2)


@pytest.mark.slow
@ON_POSTGRES
def test_a_spark_job_that_is_paused_is_replaced_and_fenced_when_it_wakes(place: Place) -> None:
    events = trades(1200)
    conf = place.conf
    store = open_store(conf, conf.program().aggregations["TradeAgg"], ColumnEngine(threads=1))

    def arrived() -> int:
        found = newest(store)
        marks = {} if found is None else found.loaded().source
        return marks["Trades"]["arrivals"] if marks else 0

    first_log, second_log = place.root / "first.log", place.root / "second.log"
    place.add(*events[:300])
    first = start(place, first_log, "--takeover", "3")
    second: subprocess.Popen[bytes] | None = None
    try:
        wait_for("the first job commits", lambda: arrived() == 300, first_log)
        second = start(place, second_log, "--standby", "--takeover", "3")
        wait_for("the second waits", lambda: "is at work; waiting" in second_log.read_text(), second_log)
        place.add(*events[300:600])
        wait_for("the first still works", lambda: arrived() == 600, first_log)
        os.kill(first.pid, signal.SIGSTOP)
        place.add(*events[600:900])
        wait_for("the second takes over", lambda: arrived() == 900, second_log)
        os.kill(first.pid, signal.SIGCONT)
        assert first.wait(150) == 2, first_log.read_text()[-3000:]
        last = [line for line in first_log.read_text().splitlines() if line.startswith("rollup: ")][-1]
        assert "taken over" in last or "another job" in last
        place.add(*events[900:])
        wait_for("the second goes on", lambda: arrived() == 1200, second_log)
        second.send_signal(signal.SIGTERM)
        assert second.wait(150) == 0, second_log.read_text()[-3000:]
    finally:
        for job in (first, second):
            if job is not None and job.poll() is None:
                job.send_signal(signal.SIGCONT)
                job.kill()
                job.wait()
    assert_right(place, 1200)
