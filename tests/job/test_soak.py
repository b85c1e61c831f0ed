"""A day of events through a job of every kind of part, in minutes: what the process holds does not grow with it.

`ROLLUP_SOAK` says how many hours of events; the first third is left for caches to fill.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.job.jobs import ROOT


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_memory_is_flat_over_a_day_of_events(tmp_path: Path) -> None:
    hours = os.environ.get("ROLLUP_SOAK", "6")
    command = [sys.executable, "-m", "tests.job.soak", str(tmp_path / "soak"), "--hours", hours]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=7000
    )
    assert done.returncode == 0, done.stderr[-2000:]
    held = [json.loads(line)["megabytes"] for line in done.stdout.splitlines() if line.startswith('{"hours"')]
    assert len(held) >= int(hours) - 1
    filled = max(held[: len(held) // 3 + 1])
    assert max(held) < 1.25 * filled, held
