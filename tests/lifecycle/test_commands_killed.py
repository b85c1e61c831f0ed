"""Commands that change a store are killed in the middle, and given again end as if nothing had been.

A few places in every run; `make crash` kills before each side effect. In a process of its own, because the harness
forks and a process with threads must not.
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
from tests.lifecycle.killed_commands import COMMANDS


def survived(folder: Path, name: str, *arguments: str, seconds: float) -> list[dict[str, Any]]:
    """A command killed in many places on every store that it is for; what came of them."""
    command = [sys.executable, "-m", "tests.lifecycle.killed_commands", str(folder), "--only", name, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (found, done.stderr[-2000:])
    for each in found:
        assert each["differ"] == [] and each["killed"] > 0, each
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_change_killed_in_a_few_places_is_given_again(tmp_path: Path) -> None:
    survived(tmp_path, "change", "--most", "2", "--store", "delta", seconds=280)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_before_each_side_effect_is_given_again(tmp_path: Path, name: str) -> None:
    found = survived(tmp_path, name, seconds=3500)
    print(*found, sep="\n")
    assert all(each["killed"] >= 10 for each in found), "nearly all of them were reached"
