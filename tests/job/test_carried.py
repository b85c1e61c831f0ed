"""A checkpoint in an object store: each start is that of another machine, which has nothing but the store."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollup.core.errors import FencedError, StoreError
from rollup.core.objects import at, names_in
from rollup.hosts.spark.carried import log_of
from tests.job.contents import contents
from tests.job.jobs import Job, answers
from tests.job.test_crash import job as job_over_events
from tests.job.test_crash import kill_ten_times, killed, uncut, whole

__all__ = ["whole"]  # a fixture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.kafka import KafkaBroker


def written(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_what_changes_in_the_folder_is_in_the_store_and_comes_back(afar: str) -> None:
    checkpoint = at(f"{afar}/checkpoint/S")
    log = log_of(checkpoint)
    written(log.folder, metadata="m", offsets__0="a", commits__0="b", notes="1", **{"offsets__.0.crc": "c"})
    log.carry()
    written(log.folder, offsets__1="d", notes="2")
    (log.folder / "commits" / "0").unlink()
    log.carry()
    again = log_of(checkpoint)
    found = {
        str(path.relative_to(again.folder)): path.read_text() for path in again.folder.rglob("*") if path.is_file()
    }
    assert found == {"metadata": "m", "offsets/0": "a", "offsets/1": "d", "notes": "2"}
    written(again.folder, offsets__2="mine")
    again.carry()
    written(log.folder, offsets__2="mine")
    log.carry()  # the same plan is no other job
    written(again.folder, offsets__3="mine")
    again.carry()
    written(log.folder, offsets__3="another")
    with pytest.raises(FencedError, match=r"another job goes on with this checkpoint: it has made .*://.*/offsets/3"):
        log.carry()
    for each in (log, again):
        each.close()
        assert not each.folder.exists()


def test_a_batch_whose_plan_cannot_be_brought_ends_the_job_by_name(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(at(f"{bucket}/checkpoint/S"))
    written(log.folder, offsets__0="a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("rollup.core.object_clients._RETRIES", {"max_retries": 0})
    with pytest.raises(StoreError, match=r"cannot write the checkpoint s3://.*/checkpoint/S: the object store"):
        log.carry()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.kafka
def test_a_job_goes_on_from_the_store_as_from_a_folder(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker, afar: str
) -> None:
    """Files and a topic; batches that take a part, and a run that ends before its last batch is done."""
    topic = kafka.new_topic(2)
    (tmp_path / "in").mkdir()
    app = """define stream Files (symbol string, quantity long, ts long);
define stream Topic (symbol string, quantity long, ts long);
from Files select * insert into Trades;
from Topic select * insert into Trades;
define stream Trades (symbol string, quantity long, ts long);
@OutOfOrder('correct') define aggregation TradeAgg from Trades select symbol, sum(quantity) as total, count() as events
group by symbol aggregate by ts every sec ... year;
"""
    files = {"kind": "json", "path": str(tmp_path / "in"), "max_files_per_batch": 2}
    topics = {"kind": "kafka", "servers": kafka.bootstrap, "topic_pattern": topic, "max_events_per_batch": 20}
    jobs = dict[str, Job]()
    for name, checkpoint in (("near", "checkpoint"), ("far", f"{afar}/checkpoint")):
        (tmp_path / name).mkdir()
        jobs[name] = Job(tmp_path / name, files, topics, app=app, streams=("Files", "Topic"))
        path = jobs[name].path
        path.write_text(path.read_text().replace('"checkpoint"', f'"{checkpoint}"'))
    sent = 0
    for number in range(2):
        for part in range(3):
            rows = [
                {"symbol": f"S{i % 3}", "quantity": i, "ts": 1_600_000_000_000 + (number * 30 + i) * 700}
                for i in range(30)
            ]
            lines = [json.dumps(row) for row in rows]
            (tmp_path / "in" / f"{number}-{part}.json").write_text("\n".join(lines) + "\n")
            kafka.produce(topic, lines, partition=part % 2)
            sent += 60
        for job in jobs.values():
            job.run(spark)
        found = {name: answers(job.conf, "symbol, total, events", "years") for name, job in jobs.items()}
        assert found["near"] == found["far"]
        assert sum(row[-1] for row in found["far"]) == sent
        for stream in ("Files", "Topic"):  # as after a kill: Spark had it, and nobody brought it
            commits = at(f"{afar}/checkpoint/{stream}/commits")
            (commits / max(names_in(commits), key=int)).unlink()
    assert not list(tmp_path.glob("far/*checkpoint*"))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_job_that_is_killed_goes_on_elsewhere_as_if_it_never_was(
    tmp_path: Path, whole: dict[str, Any], afar: str
) -> None:
    """Three times on its way and ten times at random; each start knows what the store has and nothing else."""
    real = job_over_events(tmp_path / "real")
    real.path.write_text(real.path.read_text().replace('"checkpoint"', f'"{afar}/checkpoint"'))
    for fault in ("batch.begin:2", "commit.levels:2", "commit.record:2", "batch.end:1"):
        assert killed(real, fault)
    kill_ten_times(real, random.Random(1))
    code, said = real.finish("--once")
    assert code == 0, said
    assert uncut(contents(tmp_path / "real" / "tables", real.conf.program())) == uncut(whole)
    assert not (tmp_path / "real" / "checkpoint").exists()
