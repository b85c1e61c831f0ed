"""Chores beside a live job: whatever happens to one is its answer, never the end of the job, and it is done once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from rollup.checkpoint.checksums import sealed, unsealed
from rollup.core.errors import FencedError, StoreError
from rollup.lifecycle.maintenance.between_batches import REPLAY, Request
from tests.lifecycle.conftest import trades
from tests.lifecycle.filejob import MIDNIGHT, FileJob, Place

DAY = 86_400_000


@pytest.fixture
def job(place: Place) -> FileJob:
    place.add(*trades(200))
    return FileJob(place.conf).run()


def ask(job: FileJob, text: str | None = None, name: str = "one") -> Path:
    """Leave a request, as a replay does; where its answer will be."""
    folder = job.chores.home / "requests"
    folder.mkdir(exist_ok=True)
    asked = folder / f"{name}.json"
    asked.write_text(json.dumps(asdict(Request(REPLAY, MIDNIGHT, MIDNIGHT + DAY))) if text is None else text)
    return asked.with_suffix(".answer")


def said_in(answer: Path) -> dict[str, str]:
    return unsealed(answer.read_bytes(), ["done", "refused"])


def raising(problem: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise problem

    return fail


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (StoreError("the range is gone"), "the range is gone"),
        (KeyError("AGG_COUNT"), "KeyError: 'AGG_COUNT'"),
        (RuntimeError("of a library\nand more"), "RuntimeError: of a library"),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
    ],
)
def test_an_error_of_a_request_is_its_answer_and_the_job_goes_on(
    job: FileJob, place: Place, monkeypatch: pytest.MonkeyPatch, problem: Exception, said: str
) -> None:
    answer = ask(job)
    with monkeypatch.context() as fault:
        fault.setattr(job.store.records, "write", raising(problem))
        assert job.chores.run() == [said]
    assert said_in(answer) == {"refused": said}
    assert not job.chores.waiting, "it does not wait for the next start to end that, too"
    place.add(*trades(250)[200:])
    before = job.pipeline.number
    assert job.step() and job.pipeline.number == before + 1


DAMAGED = sealed(asdict(Request(REPLAY, MIDNIGHT, MIDNIGHT + DAY))).replace(b"1514764800000", b"1514764800008").decode()


@pytest.mark.parametrize("text", ["{", "[]", '{"kind": "replay"}', "\x00", DAMAGED])
def test_what_is_no_request_is_refused(job: FileJob, text: str) -> None:
    answer = ask(job, text)
    job.chores.run()
    assert "is no request" in said_in(answer)["refused"]
    assert not job.chores.waiting


def test_another_job_ends_this_one_and_leaves_the_request_to_it(job: FileJob, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(job)
    monkeypatch.setattr(job.store.records, "write", raising(FencedError("another job is here")))
    with pytest.raises(FencedError):
        job.chores.run()
    assert job.chores.waiting


def test_a_request_whose_answer_cannot_be_written_is_done_once(job: FileJob, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = ask(job)
    before = job.pipeline.number
    with monkeypatch.context() as fault:
        fault.setattr(
            "rollup.lifecycle.maintenance.between_batches.replace_durably",
            raising(OSError(28, "No space left on device")),
        )
        fault.setattr(
            "rollup.lifecycle.maintenance.between_batches.replace_durably",
            raising(OSError(28, "No space left on device")),
        )
        said = job.chores.run() + job.chores.run()
    assert [line.split(":")[-1] for line in said if "cannot answer" in line] == [" No space left on device"] * 2
    job.chores.run()
    assert "replay is commit" in said_in(answer)["done"]
    assert job.pipeline.number == before + 1 and not job.chores.waiting


def test_retention_that_fails_is_said_and_tried_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, "@purge(enable='true', interval='1 sec', @retentionPeriod(sec='120 sec'))\n").write()
    place.add(*trades(200))
    job = FileJob(place.conf).run()
    monkeypatch.setattr(job.chores, "_purged", -1e9)
    with monkeypatch.context() as fault:
        fault.setattr(job.store.records, "write", raising(RuntimeError("of a library")))
        assert job.chores.run() == ["retention of TradeAgg has removed nothing: RuntimeError: of a library"]
    assert not job.chores.waiting, "not at once"
    assert any(line.startswith("removed seconds") for line in job.chores.purge())
