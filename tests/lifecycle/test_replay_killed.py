"""A replay ended by SIGKILL, half way through the raw files and at each place of its commit: the store is as it was or
as it should be, and the same command given again goes on and ends right. Only a process that really dies shows it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.job.jobs import ROOT
from tests.lifecycle.conftest import trades
from tests.lifecycle.filejob import MIDNIGHT, FileJob, Place
from tests.lifecycle.opened import everything, spoil
from tests.lifecycle.test_replay_verify import loaded

RANGE = ("--from", "2018-01-01", "--to", "2018-01-04")
DYING = """
import os, signal, sys
from rollup.cli.main import app
from rollup.lifecycle.replay import recompute

whole, left = recompute.TrueRows._note, [2]

def note(*given):
    whole(*given)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)

recompute.TrueRows._note = note
sys.argv = ["rollup", *sys.argv[1:]]
app()
"""


def killed(*command: str, fault: str = "") -> None:
    """Run Python with the project on its path until it kills itself."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **({"ROLLUP_FAULT": fault} if fault else {})}
    ended = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-3000:]


@pytest.mark.slow
def test_a_replay_killed_among_the_raw_files_goes_on_where_it_was(
    place: Place, rollup: Callable[..., tuple[int, str]]
) -> None:
    loaded(place, trades(900), files=45)
    before = everything(place.conf.path)
    spoil(place.conf.path, MIDNIGHT, MIDNIGHT + 86_400_000)
    damaged = everything(place.conf.path)
    killed("-c", DYING, "replay", str(place.conf.path), *RANGE)
    assert everything(place.conf.path) == damaged != before
    kept = list((place.root / "tables" / "_rollup" / "TradeAgg").glob("replay-*/part-*.arrow"))
    assert len(kept) == 2, "of three rounds of sixteen files"
    for file in sorted((place.root / "incoming").iterdir())[:32]:
        file.unlink()  # what is done is not read again
    code, output = rollup("replay", place.conf.path, *RANGE)
    assert code == 0, output
    assert "900 events of 45 files" in output
    assert everything(place.conf.path) == before
    assert not list((place.root / "tables" / "_rollup" / "TradeAgg").glob("replay-*")), "nothing is left behind"


@pytest.mark.parametrize(
    ("fault", "done"),
    [
        pytest.param("commit.rewrite:2", False, marks=pytest.mark.slow),
        ("commit.open", False),
        pytest.param("commit.record", True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_a_replay_killed_in_its_commit_is_simply_given_again(
    place: Place, rollup: Callable[..., tuple[int, str]], fault: str, done: bool
) -> None:
    loaded(place, trades(300))
    before, conf = everything(place.conf.path), str(place.conf.path)
    spoil(place.conf.path, MIDNIGHT, MIDNIGHT + 86_400_000)
    damaged = everything(place.conf.path)
    killed("-m", "rollup.cli.main", "replay", conf, *RANGE, fault=fault)
    assert everything(place.conf.path) == (before if done else damaged)
    assert rollup("replay", conf, *RANGE)[0] == 0
    assert everything(place.conf.path) == before
    assert rollup("verify", conf, "--raw")[0] == 0
    assert FileJob(place.conf).pipeline.number == 8 + done, "six batches, the damage, the replay"
