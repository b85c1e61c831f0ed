"""Dead letters that are taken in again: each once, however often it is asked for and wherever it is killed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from rollup.core.errors import StoreError
from rollup.lifecycle.retake import Retake
from rollup.lifecycle.states import changed_statements
from rollup.sources.base import DEAD
from rollup.stores.dead_letters import DeadLetters
from tests.job.jobs import Job, answers
from tests.job.model_spark import ModelSpark

STREAM = "define stream S (k string, v {}, ts long);\n"
APP = (
    STREAM.format("double")
    + "@OutOfOrder('correct')\ndefine aggregation A from S select k, sum(v) as s, count() as n group by k aggregate by ts every sec, min;\n"
    + "@OutOfOrder('correct')\ndefine aggregation B from S select count() as n aggregate by ts every sec, min;\n"
    + "@sink(type='file', path='told') define stream Told (k string);\nfrom S[k == 'b']#window.length(2) select k insert into Told;\n"
)
ROWS: list[Any] = [
    {"k": "a", "v": 1, "w": 1, "ts": 1_000},
    {"k": "a", "v": 1.5, "w": "?", "ts": 1_500},
    {"k": "b", "v": 2.5, "w": "?", "ts": 61_000},
    {"k": "b", "v": "much", "w": "?", "ts": 61_000},
    {"k": "b", "v": 2, "w": 2, "ts": 4_102_444_800_000_000},
    "no record",
    {"k": "c", "v": 4, "w": 4, "ts": 121_000},
]
RIGHT = [("a", 2.5, 2), ("b", 2.5, 1), ("c", 4.0, 1)]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job that read `v` where it is not to be found in all records."""
    (tmp_path / "in").mkdir()
    text = "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in ROWS)
    (tmp_path / "in" / "a.json").write_text(text)
    made = Job(tmp_path, {"kind": "json", "path": "in", "columns": {"v": "w"}}, app=APP, streams=("S",))
    made.run(ModelSpark())  # type: ignore[arg-type]
    assert len(made.letters()) == 5
    return made


def mend(job: Job) -> None:
    lines = [line for line in job.path.read_text().splitlines() if not line.startswith("columns")]
    job.path.write_text("\n".join(lines) + "\n")


def retaken(job: Job, **chosen: Any) -> list[str]:
    return list(Retake(job.conf, job.conf.program()).run(chosen.get("stream"), chosen.get("reason")))


def told(job: Job, name: str = "told") -> list[Any]:
    import pyarrow.parquet as pq

    return [k for file in sorted((job.folder / name).rglob("*.parquet")) for k in pq.read_table(file)["k"].to_pylist()]


def check(job: Job) -> None:
    assert answers(job.conf, "k, s, n", "minutes", "A") == RIGHT
    assert sum(n for (n,) in answers(job.conf, "n", "minutes", "B")) == 4
    assert told(job) == ["b"]
    assert sorted(row["reason"].split(":")[0] for row in job.letters()) == [
        "not a record", "the time is outside of the years 1 to 9999", "v is not a double",
    ]  # fmt: skip


def test_what_can_be_used_after_a_fix_is_taken_in_again_once(job: Job) -> None:
    assert retaken(job) == ["S: none of 5 records can be used yet"]
    mend(job)
    assert retaken(job, reason="not a record") == ["S: none of 1 records can be used yet"]
    assert retaken(job) == ["S: 2 records were taken in again; 3 are still dead"]
    check(job)
    assert retaken(job) == ["S: none of 3 records can be used yet"]
    job.run(ModelSpark())  # type: ignore[arg-type]
    check(job)


def test_what_is_passed_over_is_said(job: Job) -> None:
    assert retaken(job, reason="another") == ["no dead letters to take in"]
    row = {"stream": "Old", "reason": "not a record", "position": "old.json:0", "raw": "?"}
    DeadLetters(job.conf.tables).append(pa.Table.from_pylist([row], schema=DEAD), "another", 0)
    assert retaken(job)[0] == "Old: 1 records stay dead, as the app does not read this stream"


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("where", ["retake.request", "statements.record", "commit.record", "commit.record 2", "retake.taken", "retake.letters"])  # fmt: skip
@pytest.mark.few(2)
def test_killed_anywhere_it_takes_each_record_once(job: Job, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mend(job)
    name, _, times = where.partition(" ")
    left = [int(times or 1)]

    def point(at: str) -> None:
        if at == name:
            left[0] -= 1
            if left[0] == 0:
                raise _Killed

    for module in ("rollup.lifecycle.retake", "rollup.stores.delta.store", "rollup.statements.committed.commits"):
        monkeypatch.setattr(f"{module}.point", point)
    with pytest.raises(_Killed):
        retaken(job)
    assert left == [0]
    monkeypatch.undo()
    said = retaken(job)
    assert said[0] == "S: 2 records were taken in again (begun before, and now done to its end)"
    check(job)


def test_killed_while_it_removes_its_request_it_has_nothing_left_to_do(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    mend(job)

    whole = shutil.rmtree

    def remove(folder: Any, *rest: Any, **more: Any) -> None:
        if "_retake" in str(folder) and (Path(folder) / "said").exists():
            (Path(folder) / "said").unlink()
            raise _Killed
        whole(folder, *rest, **more)

    monkeypatch.setattr(shutil, "rmtree", remove)
    with pytest.raises(_Killed):
        retaken(job)
    monkeypatch.undo()
    assert retaken(job) == ["S: none of 3 records can be used yet"]
    check(job)
    assert not list((job.conf.tables / "_rollup").glob("_retake*"))


def test_a_request_in_which_one_bit_is_another_is_refused_and_takes_nothing(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    mend(job)

    def stop(name: str) -> None:
        if name == "retake.request":
            raise KeyboardInterrupt

    monkeypatch.setattr("rollup.lifecycle.retake.point", stop)
    with pytest.raises(KeyboardInterrupt):
        retaken(job)
    home, before = job.conf.tables / "_rollup" / "_retake", answers(job.conf, "k, s, n", "minutes", "A")
    for file in home.iterdir():
        whole = file.read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 12)):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
            with pytest.raises(StoreError, match=r"cannot be read") as caught:
                retaken(job)
            assert str(home) in str(caught.value) and "bring the file back" in str(caught.value.hint)
        file.write_bytes(whole)
    assert answers(job.conf, "k, s, n", "minutes", "A") == before


def test_a_file_that_was_dead_as_a_whole_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("key,v,ts\na,1,1000\na,x,1000\nb,2,2000\n")
    app = (
        STREAM.format("long")
        + "define aggregation A from S select k, sum(v) as s group by k aggregate by ts every sec, min;"
    )
    job = Job(tmp_path, {"kind": "csv", "path": "in"}, app=app, streams=("S",))
    job.run(ModelSpark())  # type: ignore[arg-type]
    assert [row["reason"] for row in job.letters()] == ["the file has no column k; it has key, v, ts"]
    job.path.write_text(job.path.read_text().replace('path = "in"', 'path = "in"\ncolumns = { k = "key" }'))
    assert retaken(job) == ["S: 2 records were taken in again; 1 are still dead"]
    assert answers(job.conf, "k, s", "minutes", "A") == [("a", 1), ("b", 2)]
    assert [(row["reason"], row["position"]) for row in job.letters()] == [
        ("v is not a long", f"{tmp_path}/in/a.csv:1")
    ]


def test_letters_are_replaced_once_for_a_mark(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path)
    row = {"stream": "S", "reason": "r", "position": "p", "raw": "x"}
    letters.append(pa.Table.from_pylist([row, row, {**row, "raw": "y"}]), "q", 0)
    kept = letters.read()
    gone = kept.filter(pa.array([row == "x" for row in kept["raw"].to_pylist()])).slice(0, 1)
    for _ in range(2):
        letters.replace(gone, kept.slice(0, 0), 7)
        assert sorted(letters.read()["raw"].to_pylist()) == ["x", "y"]


CASTS = (
    STREAM.format("double")
    + "define stream Big (k string, v double, ts long);\nfrom S[v > 1] select k, v, ts insert into Big;\n"
    + "@OutOfOrder('correct')\ndefine aggregation A from S select k, sum(v) as s, count() as n group by k aggregate by ts every sec, min;\n"
    + "@sink(type='file', path='told') define stream Told (k int);\n@sink(type='file', path='big') define stream BigOnes (k int);\n"
    + "@lang('sql', into='Told') {{ SELECT STREAM {cast}(k AS INTEGER) AS k FROM S }}\n"
    + "@lang('sql', into='BigOnes') {{ SELECT STREAM {cast}(k AS INTEGER) AS k FROM Big }}\n"
    + "from S[k == 'x'] select k insert into Third;\n"
)


def test_what_only_a_statement_refuses_stands_where_it_was_read_and_only_that_statement_takes_it_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    records = [
        {"k": k, "v": v, "ts": n * 1000} for n, (k, v) in enumerate([("1", 0.5), ("x", 2.5), ("3", 3.5), ("x", 1)])
    ]
    file = tmp_path / "in" / "a.json"
    file.write_text("".join(json.dumps(each) + "\n" for each in records))
    job = Job(tmp_path, {"kind": "json", "path": "in"}, app=CASTS.format(cast="CAST"), streams=("S",))
    job.run(ModelSpark())  # type: ignore[arg-type]
    totals = [("1", 0.5, 1), ("3", 3.5, 1), ("x", 3.5, 2)]
    assert answers(job.conf, "k, s, n", "minutes", "A") == totals
    letters = [(row["stream"], row["position"], json.loads(row["raw"]), row["at"]) for row in job.letters()]
    assert sorted(letters, key=str) == [
        ("Big", f"{file}:1", records[1], 1000),
        ("S", f"{file}:1", records[1], 1000),
        ("S", f"{file}:3", records[3], 3000),
    ]
    assert len({row["by"] for row in job.letters()}) == 2 and all("'x'" in row["reason"] for row in job.letters())
    before = job.letters()
    assert retaken(job) == ["Big: none of 1 records can be used yet", "S: none of 2 records can be used yet"]
    assert [row["position"] for row in job.letters()] == [row["position"] for row in before]
    app = next(path for path in tmp_path.iterdir() if path.suffix == ".siddhi")
    app.write_text(CASTS.format(cast="SAFE_CAST"))
    assert len(changed_statements(job.conf, job.conf.program(), accept=True)) == 2
    for _ in range(2):
        retaken(job)
        assert not job.letters() and answers(job.conf, "k, s, n", "minutes", "A") == totals
        assert sorted(told(job, "told"), key=str) == [1, 3, None, None] and sorted(told(job, "big"), key=str) == [
            3,
            None,
        ]


def test_letters_of_a_table_from_before_they_said_whose_they_are_are_read_and_go_on(tmp_path: Path) -> None:
    old = pa.table([["S"], ["why"], ["f:1"], ["{}"], ["q"], [1]], names=[*DEAD.names, "query", "batch"])
    write_deltalake(
        str(tmp_path / "DEAD_LETTERS"), old.cast(pa.schema([*DEAD, ("query", pa.string()), ("batch", pa.int64())]))
    )
    letters = DeadLetters(tmp_path)
    assert letters.read().select(["position", "by"]).to_pylist() == [{"position": "f:1", "by": None}]
    new = pa.table([["S"], ["why"], ["f:2"], ["{}"]], schema=DEAD).append_column("by", pa.array(["sql"]))
    letters.append(new, "q-statements", 1)
    assert [row["by"] for row in letters.read().sort_by("position").to_pylist()] == [None, "sql"]


def test_a_job_killed_behind_the_commit_of_its_statements_has_their_dead_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"k": "x", "v": 1, "ts": 1}\n{"k": "2", "v": 2, "ts": 2}\n')
    job = Job(tmp_path, {"kind": "json", "path": "in"}, app=CASTS.format(cast="CAST"), streams=("S",))

    def point(at: str) -> None:
        if at == "statements.sink":
            raise StoreError("killed")

    monkeypatch.setattr("rollup.hosts.statements.delivery.point", point)
    with pytest.raises(StoreError, match="killed"):
        job.run(ModelSpark())  # type: ignore[arg-type]
    monkeypatch.undo()
    job.run(ModelSpark())  # type: ignore[arg-type]
    assert [row["position"] for row in job.letters()] == [f"{tmp_path}/in/a.json:0"]
    assert told(job, "told") == [2] and answers(job.conf, "n", "minutes", "A") == [(1,), (1,)]


def test_the_advised_cures_cure_a_run_of_which_nothing_could_be_used(tmp_path: Path) -> None:
    """Tables that hold no event take another kind of time, and another stream: no row of them means anything yet."""
    app = "define stream S (k string, v {}, ts {});\n{}define aggregation A from {} select k, sum(v) as s, count() as n group by k aggregate by ts every sec, min;\n"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"k": "a", "v": "1,5", "ts": "2024-01-01T10:00:00Z"}\n' * 2)
    job = Job(tmp_path, {"kind": "json", "path": "in"}, app=app.format("double", "long", "", "S"), streams=("S",))
    job.run(ModelSpark())  # type: ignore[arg-type]
    assert {row["reason"] for row in job.letters()} == {"v is not a double"}
    query = "from S select k, convert(str:replace(v, ',', '.'), 'double') as v, ts insert into T;\n"
    (tmp_path / "app.siddhi").write_text(app.format("string", "string", query, "T"))
    assert retaken(job) == ["S: 2 records were taken in again"]
    assert answers(job.conf, "k, s, n", "minutes", "A") == [("a", 3.0, 2)]
    (tmp_path / "app.siddhi").write_text(app.format("string", "long", query, "T"))
    with pytest.raises(StoreError, match=r"the kind of time \(string → long\)"):
        retaken(job)


def test_the_reason_of_a_file_that_was_dead_as_a_whole_becomes_those_of_its_records(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("k;v;ts\na;much;1000\nb;more;2000\n")
    source = {"kind": "csv", "path": "in"}
    job = Job(tmp_path, source, app=APP, streams=("S",))
    job.run(ModelSpark())  # type: ignore[arg-type]
    assert [row["reason"] for row in job.letters()] == ["the file has no column k, v, ts; it has k;v;ts"]
    Job(tmp_path, {**source, "separator": ";"}, app=APP, streams=("S",))
    for _ in range(2):
        retaken(job)
        assert [row["reason"] for row in job.letters()] == ["v is not a double"] * 2
