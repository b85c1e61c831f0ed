"""Late events are looked at a second time in what the tasks have kept, and counted as if the batch were read again.

The job is the real one over a model of Spark (`tests.job.model_spark`), in this process, from files of JSON with events
that are early and late in the same second.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollup.hosts.spark.collecting import Tasks
from rollup.hosts.spark.tasks.kept import Kept
from tests.job.jobs import Job, answers
from tests.job.kills import once

APP = """define stream S (k string, n long, ts long);
define stream T (k string, n long, ts long);
from S[n > 2] select k, n * 2 as n, ts insert into T;
define aggregation A from S select k, sum(n) as total, count() as events group by k aggregate by ts every sec ... hour;
@OutOfOrder('correct') @BufferSize('2')
define aggregation B from T select k, sum(n) as total, count() as events group by k aggregate by ts every sec ... hour;
"""
BEGIN = 1_600_000_000_000
FILES, BATCHES = 2, 5


def job(folder: Path) -> Job:
    """Batches of some files; each file begins where the one before ended, its events up to three seconds out of order."""
    chance = random.Random(7)
    (folder / "in").mkdir(parents=True)
    for number in range(FILES * BATCHES):
        lines = list[str]()
        for at in range(200):
            ts = BEGIN + number * 10_000 + at * 50 + chance.randint(-3000, 3000)
            lines.append(json.dumps({"k": chance.choice("ab"), "n": chance.randint(1, 5), "ts": ts}))
        path = folder / "in" / f"{number:04d}.json"
        path.write_text("\n".join(lines))
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))
    options = {"kind": "json", "path": str(folder / "in"), "max_files_per_batch": FILES}
    return Job(folder, options, app=APP, streams=("S",))


def ran(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[bool]]:
    """The rows of both aggregations, and of each Spark job whether it was a second look."""
    found, asked = job(folder), list[bool]()
    plain: Callable[..., Any] = Tasks.results

    def results(tasks: Tasks, frame: Any, spec: Any) -> Any:
        asked.append(bool(spec.refold))
        return plain(tasks, frame, spec)

    with monkeypatch.context() as patch:
        patch.setattr(Tasks, "results", results)
        once(found.path)
    return [answers(found.conf, "k, total, events", "seconds", name) for name in ("A", "B")], asked


def test_events_that_are_kept_give_what_a_second_reading_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []
    kept: Callable[..., Any] = Kept.files

    def files(self: Kept, rows: Any) -> Any:
        found = kept(self, rows)
        seen.extend(Path(file) for _, file in found or [])
        return found

    monkeypatch.setattr(Kept, "files", files)
    with_files, asked = ran(tmp_path / "kept", monkeypatch)
    assert asked.count(False) == BATCHES, "one job a batch"
    assert 1 <= asked.count(True) <= 2, "only the first batch is read again, once for each aggregation"
    assert len(seen) == FILES * (BATCHES - 1) and not any(file.exists() for file in seen)
    monkeypatch.setattr(Kept, "wanted", lambda self, stream: False)
    again, asked = ran(tmp_path / "again", monkeypatch)
    assert asked.count(True) > 2 and with_files == again


def test_a_kept_file_that_is_gone_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: Callable[..., Any] = Kept.files

    def files(self: Kept, rows: Any) -> Any:
        found = kept(self, rows)
        for _, file in found or []:
            Path(file).unlink()
        return found

    monkeypatch.setattr(Kept, "files", files)
    found, asked = ran(tmp_path / "gone", monkeypatch)
    assert asked.count(True) > 2 and sum(row[-1] for row in found[0]) == 200 * FILES * BATCHES
