"""A job whose surroundings change under it: a lost checkpoint, a clock that goes back, a foreign hand in its tables.

The job is the real one over a model of Spark (`tests.job.model_spark`), in this process.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import rollup
from rollup.checkpoint.records import RecordFolder
from rollup.core.errors import ConfigError, StoreError
from rollup.lifecycle.recover import recover
from rollup.statements.committed.commits import FOLDER, Commits
from tests.job.jobs import Job, answers
from tests.job.kills import once

APP = """define stream S (k string, n long, ts long);
define aggregation A from S select k, sum(n) as total, count() as events group by k aggregate by ts every sec, min;
@OutOfOrder('correct')
define aggregation B from S select count() as events aggregate by ts every sec ... hour;
"""
BEGIN = 1_600_000_000_000


def job(folder: Path, files: int = 4) -> Job:
    """Some files of ten events, a second apart; the fifth of each is late by 20 s."""
    (folder / "in").mkdir()
    for number in range(files):
        add(folder, number)
    return Job(folder, {"kind": "json", "path": str(folder / "in"), "max_files_per_batch": 1}, app=APP, streams=("S",))


TWO = """define stream S (k string, n long, ts long);
define stream R (k string, n long, ts long);
from S select k, n, ts insert into T;
from R select k, n, ts insert into T;
@OutOfOrder('correct')
define aggregation A from T select count() as events aggregate by ts every sec, min;
@OutOfOrder('correct')
define aggregation B from S select count() as events aggregate by ts every sec, min;
@OutOfOrder('correct')
define aggregation C from R select count() as events aggregate by ts every sec, min;
"""


def two_streams(folder: Path) -> Job:
    """The same files for two streams, and an aggregation of both beside one of each."""
    found = job(folder)
    source = {"kind": "json", "path": str(folder / "in"), "max_files_per_batch": 1}
    return Job(found.folder, source, source, app=TWO, streams=("S", "R"))


def add(folder: Path, number: int) -> None:
    """One file more."""
    times = [BEGIN + (number * 10 + at - (20 if at == 5 else 0)) * 1000 for at in range(10)]
    lines = [json.dumps({"k": "k", "n": 1, "ts": ts}) for ts in times]
    path = folder / "in" / f"{number:04d}.json"
    path.write_text("\n".join(lines))
    os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def events(found: Job) -> dict[str, int]:
    """How many events each aggregation has."""
    return {name: found_events(found, name) for name in ("A", "B")}


def found_events(found: Job, name: str) -> int:
    return sum(row[0] for row in answers(found.conf, "events", "minutes", name))


def test_a_lost_checkpoint_is_said_with_the_number_of_events_that_may_count_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = job(tmp_path)
    once(real.path)
    assert events(real) == {"A": 40, "B": 40}
    capsys.readouterr()
    shutil.rmtree(real.folder / "checkpoint")
    once(real.path)
    out, error = capsys.readouterr()
    said = {match[1]: int(match[2]) for match in re.finditer(r"aggregation=(\w) .*events_at_most=(\d+)", out + error)}
    assert set(said) == {"A", "B"} and "the checkpoint is lost" in out + error
    for name, found in events(real).items():
        assert 40 <= found <= 40 + said[name]
    once(real.path)
    assert "the checkpoint is lost" not in "".join(capsys.readouterr()), "only when it is so"


def test_the_newest_record_deleted_is_a_commit_less_and_nothing_is_lost(tmp_path: Path) -> None:
    real = job(tmp_path)
    once(real.path)
    for name, newest in (("A", 2), ("B", 1)):  # of one aggregation more than of the other
        records = RecordFolder(real.conf.tables / "_rollup" / name)
        for number in records.numbers()[-newest:]:
            records.path(number).unlink()
    once(real.path)
    assert events(real) == {"A": 40, "B": 40}


def test_one_aggregation_taken_back_does_not_disturb_the_other(tmp_path: Path) -> None:
    real = job(tmp_path, files=8)
    once(real.path)
    recover(real.conf, real.conf.program().aggregations["A"], to_commit=3)
    add(tmp_path, 8)
    once(real.path)
    assert events(real) == {"A": 90, "B": 90}


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("back", [1, 2])
@pytest.mark.few(2)
def test_taken_back_to_before_the_first_batch_of_one_of_its_streams_an_aggregation_gets_that_again(
    tmp_path: Path, back: int, deleted: bool
) -> None:
    real = two_streams(tmp_path)
    once(real.path)
    assert {name: found_events(real, name) for name in "ABC"} == {"A": 80, "B": 40, "C": 40}
    records = RecordFolder(real.conf.tables / "_rollup" / "A")
    if deleted:
        for number in records.numbers()[back + 1 :]:  # the first is of before the first batch
            records.path(number).unlink()
    else:
        recover(real.conf, real.conf.program().aggregations["A"], to_commit=back)
    add(tmp_path, 4)
    once(real.path)
    assert {name: found_events(real, name) for name in "ABC"} == {"A": 100, "B": 50, "C": 50}


def test_going_back_to_before_the_first_batch_is_refused(tmp_path: Path) -> None:
    real = job(tmp_path)
    once(real.path)
    with pytest.raises(StoreError, match="commit 0 of A is from before its first batch"):
        recover(real.conf, real.conf.program().aggregations["A"], to_commit=0)
    once(real.path)
    assert events(real) == {"A": 40, "B": 40}


def test_a_foreign_append_is_put_aside(tmp_path: Path) -> None:
    real = job(tmp_path)
    once(real.path)
    path = str(real.conf.tables / "A_MINUTES")
    table = DeltaTable(path).to_pyarrow_table()
    write_deltalake(path, table, mode="append")
    assert events(real)["A"] == 40, "readers see what the record names"
    add(tmp_path, 4)
    once(real.path)
    assert events(real) == {"A": 50, "B": 50}


def test_a_clock_that_goes_back_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = job(tmp_path)
    once(real.path)
    monkeypatch.setattr("time.time", lambda: BEGIN / 1000 - 86_400)
    add(tmp_path, 4)
    once(real.path)
    assert events(real) == {"A": 50, "B": 50}


def test_files_without_a_record_that_names_them_are_no_part_of_an_answer(tmp_path: Path) -> None:
    real = job(tmp_path)
    once(real.path)
    records = RecordFolder(real.conf.tables / "_rollup" / "A")
    records.write_rows("open-SECONDS-000000000099.arrow", pa.table({"x": [1]}))
    assert events(real)["A"] == 40


TOLD = """define stream S (k string, n long, ts long);
define stream R (k string, n long, ts long);
@OutOfOrder('correct')
define aggregation A from S select count() as events aggregate by ts every sec, min;
@lang('epl') {
  create window Had#keepall as (k string);
  insert into Had select k from S;
  insert into Had select k from R;
}
"""


def told(folder: Path) -> Job:
    """The same files for two streams, both of which statements read."""
    found = job(folder)
    source = {"kind": "json", "path": str(folder / "in"), "max_files_per_batch": 1}
    return Job(found.folder, source, source, app=TOLD, streams=("S", "R"))


def had(found: Job) -> int:
    return rollup.query(found.conf, "select * from Had").num_rows


@pytest.mark.parametrize("left", [1, 5])
def test_statements_that_are_taken_back_get_again_what_came_since_of_every_stream(tmp_path: Path, left: int) -> None:
    real = told(tmp_path)
    once(real.path)
    records = RecordFolder(real.conf.tables / "_rollup" / FOLDER)
    assert (had(real), len(records.numbers())) == (80, 8)
    for number in records.numbers()[left:]:
        records.path(number).unlink()
    assert had(real) == 10 * left
    add(tmp_path, 4)
    once(real.path)
    assert (had(real), found_events(real, "A")) == (100, 50)


def test_statements_without_any_record_begin_anew_and_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = told(tmp_path)
    once(real.path)
    assert "begin here" not in capsys.readouterr().out
    shutil.rmtree(real.conf.tables / "_rollup" / FOLDER)
    add(tmp_path, 4)
    once(real.path)
    assert re.search(r"statements have no state and begin here.*batches=\{'S': 4, 'R': 4\}", capsys.readouterr().out)
    assert (had(real), found_events(real, "A")) == (20, 50)


@pytest.mark.parametrize("make", [two_streams, told])
@pytest.mark.few(1)
def test_one_of_two_checkpoints_lost_is_refused_where_something_holds_events_of_both(
    tmp_path: Path, make: Callable[[Path], Job], capsys: pytest.CaptureFixture[str]
) -> None:
    real = make(tmp_path)
    once(real.path)
    add(tmp_path, 4)
    shutil.rmtree(real.conf.checkpoint / "S")
    with pytest.raises(ConfigError) as caught:
        once(real.path)
    said, name = str(caught.value), "the statements" if make is told else "A"
    assert f"the checkpoint {real.conf.checkpoint / 'S'} is lost, and {name} would" in said
    assert (
        f"without the events of R so far, which would not come again (bring it back, or remove {real.conf.checkpoint / 'R'} as well"
        in said
    )
    shutil.rmtree(real.conf.checkpoint / "R")
    once(real.path)
    if make is told:
        assert had(real) == 100
    assert found_events(real, "A") >= (50 if make is told else 100)


def test_after_the_loss_of_all_checkpoints_every_commit_has_a_mark_of_every_stream(tmp_path: Path) -> None:
    real = two_streams(tmp_path)
    once(real.path)
    records = RecordFolder(real.conf.tables / "_rollup" / "A")
    before = records.numbers()[-1]
    lost = {mark["query"] for mark in records.read(before).source.values()}
    shutil.rmtree(real.conf.checkpoint)
    once(real.path)
    sources = [records.read(number).source for number in records.numbers() if number > before]
    marked = [source for source in sources if source]
    assert len(marked) == 8, "beside that of what the tables have"
    for source in marked:
        assert source.keys() == {"S", "R"}
        assert lost.isdisjoint(mark["query"] for mark in source.values())


def test_a_checkpoint_of_which_nothing_has_come_is_no_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    real = told(tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    real.path.write_text(real.path.read_text().replace(str(tmp_path / "in"), str(empty), 1))
    once(real.path)
    assert had(real) == 40
    shutil.rmtree(real.conf.checkpoint / "S")
    add(tmp_path, 4)
    shutil.copy2(tmp_path / "in" / "0004.json", empty)
    once(real.path)
    assert (had(real), "begin anew" in capsys.readouterr().out) == (60, False)


def damages(path: Path) -> Iterator[str]:
    """One damage after the other, each of the file as it was."""
    content = path.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    for how, made in {"cut": content[:middle], "a byte short": content[:-1], "empty": b"", "flipped": flipped}.items():
        path.write_bytes(made)
        yield how
    path.unlink()
    if not path.name.startswith("commit"):
        yield "gone"
    path.mkdir()
    yield "a folder"
    path.rmdir()
    path.write_bytes(content)


def test_damage_to_what_statements_have_committed_is_named_with_a_cure_that_helps(tmp_path: Path) -> None:
    real = told(tmp_path)
    once(real.path)
    commits = Commits(real.conf.tables / "_rollup" / FOLDER)
    number = commits.numbers()[-1]
    record = commits.folder / f"commit-{number:012d}.json"
    (rows,) = commits.folder.glob(f"open-*-{number:012d}.arrow")
    attempts = [
        lambda: commits.newest(),
        lambda: rollup.query(real.conf, "select * from Had"),
        lambda: rollup.query(real.conf, "from Had select *"),
        lambda: once(real.path),
    ]
    for file in (record, rows):
        for how in damages(file):
            for attempt in attempts:
                with pytest.raises(StoreError) as caught:
                    attempt()
                said = str(caught.value)
                assert str(file) in said, how
                assert how == "a folder" or "remove the newest commit-" in said, how
    assert had(real) == 80
    commits.folder.rename(commits.folder.with_name("elsewhere"))
    commits.folder.write_text("no folder")
    for attempt in attempts:
        with pytest.raises(StoreError, match=f"{commits.folder}"):
            attempt()
