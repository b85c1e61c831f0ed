"""What is cut from a streaming query's log, without Spark, so that it goes on where tables are that know less."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rollup.ask import opened
from rollup.core.errors import StoreError
from rollup.hosts.spark import query_log
from rollup.hosts.spark.log_sums import LogSums, release
from rollup.hosts.spark.query_log import beyond, drop_drafts, query_of, remove, spent
from rollup.sinks.base import Held
from rollup.sinks.files import FileSink
from rollup.sources.base import DEAD
from rollup.sources.file_log import listed
from rollup.stores.dead_letters import DeadLetters
from tests.job.jobs import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def checkpoint(folder: Path, plans: int, done: int, since: int = 0) -> Path:
    """The log of a query that has planned and done so many batches, as Spark leaves it: Hadoop adds checksums."""
    for name, count in (("offsets", plans), ("commits", done)):
        log = folder / name
        log.mkdir(parents=True)
        for number in range(since, count):
            (log / str(number)).write_text("v1\n{}")
            (log / f".{number}.crc").write_bytes(b"crc")
    (folder / "metadata").write_text(json.dumps({"id": "q"}))
    return folder


def left(folder: Path) -> tuple[list[int], list[int]]:
    """Numbers of the plans and of the batches that are done; every one has its checksum and no other is there."""
    found = [sorted(int(path.name) for path in (folder / name).glob("[0-9]*")) for name in ("offsets", "commits")]
    for name, numbers in zip(("offsets", "commits"), found, strict=True):
        assert sorted(path.name for path in (folder / name).glob(".*")) == sorted(f".{n}.crc" for n in numbers)
    return found[0], found[1]


@pytest.mark.parametrize(
    ("plans", "done", "why"),
    [(4, 4, "all is done"), (5, 4, "killed inside batch 4"), (5, 3, "batch 3 is in the tables, and Spark was killed")],
)
def test_a_query_that_is_not_ahead_of_the_tables_stays_as_it_is(
    tmp_path: Path, plans: int, done: int, why: str
) -> None:
    assert beyond(checkpoint(tmp_path, plans, done), 3) == [], why


def test_a_query_ahead_of_the_tables_forgets_all_but_the_plan_of_the_next_batch(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, plans=8, done=7)
    remove(beyond(folder, 3))
    assert left(folder) == ([0, 1, 2, 3, 4], [0, 1, 2, 3])
    assert beyond(folder, 3) == []


def test_of_a_first_plan_that_was_not_written_to_its_end_nothing_stays_and_of_later_ones_all(tmp_path: Path) -> None:
    begun, never = checkpoint(tmp_path / "begun", plans=2, done=0), checkpoint(tmp_path / "never", plans=0, done=0)
    for folder in (begun, never):
        for name in (".0.c1e7.tmp", "..0.c1e7.tmp.crc", ".0.crc"):
            (folder / "offsets" / name).write_bytes(b"")
        drop_drafts(folder)
    assert not list((never / "offsets").iterdir())
    assert len(list((begun / "offsets").iterdir())) == 6
    drop_drafts(tmp_path / "not yet there")


@pytest.mark.parametrize("killed_after", range(7))
def test_a_log_that_was_cut_half_is_cut_to_its_end_the_next_time(tmp_path: Path, killed_after: int) -> None:
    folder = checkpoint(tmp_path, plans=8, done=7)
    remove(beyond(folder, 3)[:killed_after])
    remove(beyond(folder, 3))
    assert left(folder) == ([0, 1, 2, 3, 4], [0, 1, 2, 3])


@pytest.mark.parametrize("missing", [3, 4])
def test_a_log_that_no_longer_has_the_plans_is_refused_and_left_alone(tmp_path: Path, missing: int) -> None:
    folder = checkpoint(tmp_path, plans=8, done=7)
    (folder / "offsets" / str(missing)).unlink()
    with pytest.raises(StoreError, match=rf"end with batch 3 of .* no longer knows batch {missing} .*recover.*replay"):
        beyond(folder, 3)
    assert (folder / "commits" / "6").exists()


def test_a_folder_without_a_query_has_none(tmp_path: Path) -> None:
    assert query_of(tmp_path) is None and beyond(tmp_path, 0) == []
    assert query_of(checkpoint(tmp_path / "one", 1, 1)) == "q"


def test_dead_letters_of_batches_that_come_again_are_written_again_however_they_are_cut(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path)
    for batch in range(5):
        letters.append(_letter(f"f:{batch}"), "q", batch)
    letters.append(_letter("other"), "p", 9)
    letters.forget("q", 1)
    again = DeadLetters(tmp_path)
    again.append(_letter("f:1"), "q", 1)
    again.append(pa.concat_tables([_letter("f:2"), _letter("f:3"), _letter("f:4")]), "q", 2)
    found = sorted((row["position"], row["query"], row["batch"]) for row in again.read().to_pylist())
    assert found == [("f:0", "q", 0), ("f:1", "q", 1), *((f"f:{n}", "q", 2) for n in (2, 3, 4)), ("other", "p", 9)]


def test_files_of_batches_that_come_again_are_removed_and_those_of_other_queries_stay(tmp_path: Path) -> None:
    sink = FileSink({"path": str(tmp_path / "out")})
    for query, batch in (("q", 0), ("q", 1), ("q", 2), ("p", 2)):
        sink.write(pa.table({"n": [batch]}), query, Held(batch + 1))
    assert sink.forget("q", 1) and sink.held("q") == Held(1, None)
    found = {file.name: pq.read_table(file)["n"].to_pylist() for file in (tmp_path / "out").glob("*.parquet")}
    assert found == {"q-rows-000000000001.parquet": [0], "p-rows-000000000003.parquet": [2]}


def _letter(position: str) -> pa.Table:
    return pa.table([["S"], ["no record"], [position], ["{"]], schema=DEAD)


@pytest.mark.parametrize("files", [True, False])
def test_of_a_log_stay_the_last_batches_and_for_replays_all_plans_of_a_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: bool
) -> None:
    folder = checkpoint(tmp_path, plans=9, done=9)
    entries = [*map(str, range(9)), "2.compact", "5.compact", "8.compact"] if files else ["0"]
    (folder / "sources" / "0").mkdir(parents=True)
    for name in entries:
        (folder / "sources" / "0" / name).write_text("v1\n{}")
    monkeypatch.setattr(query_log, "KEPT", 3)
    LogSums(folder).add()
    release(folder)
    LogSums(folder).verify()
    assert left(folder) == ([5, 6, 7, 8] if files else [*range(9)], [5, 6, 7, 8])
    stay = ["5", "5.compact", "6", "7", "8", "8.compact"] if files else ["0"]
    assert sorted(path.name for path in (folder / "sources" / "0").iterdir()) == stay
    assert spent(folder) == []


def test_a_job_goes_on_over_a_log_of_which_the_spent_part_is_gone(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(tmp_path, {"kind": "json", "path": "in", "max_files_per_batch": 1})
    (tmp_path / "in").mkdir()
    monkeypatch.setattr(query_log, "KEPT", 1)
    spark.conf.set("spark.sql.streaming.fileSource.log.compactInterval", "2")
    try:
        for number in range(8):
            trade = {"symbol": "A", "price": 1.0, "quantity": 1, "ts": 1_700_000_000_000 + number}
            (tmp_path / "in" / f"{number}.json").write_text(json.dumps(trade) + "\n")
            if number in (5, 6, 7):
                job.run(spark)
                assert spent(tmp_path / "checkpoint" / "Trades") or number > 5
                release(tmp_path / "checkpoint" / "Trades")
        job.run(spark)
    finally:
        spark.conf.unset("spark.sql.streaming.fileSource.log.compactInterval")
    assert sorted(each.path for each in listed(tmp_path / "checkpoint" / "Trades", None)) == [
        str(tmp_path / "in" / f"{number}.json") for number in range(8)
    ]
    rows = opened(job.path).query("from TradeAgg within '2023-**-** **:**:**' per 'years' select events")
    assert rows["events"].to_pylist() == [8]
