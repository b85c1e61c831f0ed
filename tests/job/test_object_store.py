"""Tables in an object store: the same answers, killed at any moment, and no secret where people look.

The servers obey `If-None-Match: *`, and HDFS renames without replacing. What comes of a job is compared with what the same job leaves in a
folder.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollup.checkpoint.records import Record, RecordFolder
from rollup.core import copies
from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, FencedError, StoreError
from rollup.core.objects import absent, at, create, names_in, remove_all
from rollup.hosts.pipeline import Pipeline
from rollup.program import compile_app
from rollup.stores.delta.store import DeltaStore
from tests.job import faults_child
from tests.job.contents import contents
from tests.job.jobs import Job, answers
from tests.servers.s3 import SECRET, S3Server, reached
from tests.servers.unsteady import Unsteady

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FAULTS = [
    "commit.record:3",
    "commit.begin:3",
    "commit.level:3",
    "commit.open:3",
    "maintain.compact.written:1",
    "maintain.compact.swapped:1",
]


def found_in(folder: Path) -> Any:
    """What tables, open rows, clocks, ledger and dead letters of the job below are."""
    return json.loads(json.dumps(contents(folder, compile_app(faults_child.APP))))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the job leaves in a folder."""
    folder = tmp_path_factory.mktemp("whole")
    faults_child.work(folder, faults_child.APP, "q1")
    return found_in(folder)


def test_names_of_objects_are_paths(afar: str) -> None:
    folder = at(f"{afar}/a b/ü")
    assert names_in(folder) == [] and not folder.exists()
    (folder / "one").write_text("1")
    (folder / "in" / "two").write_bytes(b"22")
    assert sorted(names_in(folder)) == ["in", "one"]
    assert folder.is_dir() and not folder.is_file() and (folder / "one").is_file()
    assert (folder / "in" / "two").stat().st_size == 2
    assert absent([folder / "one", folder / "three"]) == [str(folder / "three")]
    assert [path.name for path in folder.glob("*/two")] == ["two"]
    assert list(folder.rglob("two")) == [folder / "in" / "two"]
    (folder / "in").rename(at(f"{afar}/other"))
    assert at(f"{afar}/other/two").read_bytes() == b"22" and not (folder / "in").exists()
    remove_all(folder)
    assert not folder.exists()
    with pytest.raises(FileNotFoundError):
        (folder / "one").read_bytes()


def test_what_is_no_request_is_refused_and_makes_no_local_file(afar: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="it is an object") as refused:
        os.listdir(at(afar))
    assert refused.value.errno == errno.ENOTSUP


def test_a_name_can_be_made_once(afar: str) -> None:
    create(at(f"{afar}/record"), b"first")
    with pytest.raises(FileExistsError):
        create(at(f"{afar}/record"), b"second")
    assert at(f"{afar}/record").read_bytes() == b"first"


def test_of_two_jobs_that_make_one_commit_one_is_refused(afar: str) -> None:
    records = [RecordFolder(at(f"{afar}/_rollup/A")) for _ in range(2)]
    records[0].write(Record(1, {"SECONDS": 1}, {}, {}))
    with pytest.raises(FencedError, match="commit 1 of A was made by another job"):
        records[1].write(Record(1, {"SECONDS": 2}, {}, {}))


def test_a_store_that_takes_a_second_object_of_one_name_is_refused(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Unsteady(os.environ["AWS_ENDPOINT_URL"], forget_conditions=True) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        aggregation = compile_app(faults_child.PLAIN).aggregations["A"]
        with pytest.raises(StoreError, match="takes a second object of one name although it was told not to"):
            DeltaStore(aggregation, ColumnEngine(threads=1), f"{bucket}/tables").load()
        assert not [name for name in names_in(at(f"{bucket}/tables/_rollup/A")) if name.startswith(("commit", "probe"))]


class Meeting(Unsteady):
    """Requests of one wave are answered when as many are there as are awaited, or when one has waited too long."""

    def __init__(self, behind: str) -> None:
        super().__init__(behind)
        self.waves = {wave: threading.Barrier(1) for wave in ("before", "log", "record")}

    def answer(self, asked: BaseHTTPRequestHandler) -> None:
        log, record = "/_delta_log/" in asked.path, "/commit-" in asked.path
        with suppress(threading.BrokenBarrierError):
            self.waves["log" if log else "record" if record else "before"].wait(15)
        super().answer(asked)


def test_a_commit_is_three_round_trips_deep(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for one another: data files beside open rows and the names of records, entries of logs, the record."""
    with Meeting(os.environ["AWS_ENDPOINT_URL"]) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        engine = ColumnEngine(threads=1)
        aggregation = compile_app(faults_child.PLAIN).aggregations["A"]
        pipeline = Pipeline(aggregation, DeltaStore(aggregation, engine, f"{bucket}/tables"), engine)
        pipeline.start()
        for number in range(5):
            faults_child.advance(engine, pipeline, number, "q1", late=False)
        levels, before = len(aggregation.levels), proxy.requests
        proxy.waves["before"], proxy.waves["log"] = threading.Barrier(2 * levels + 1), threading.Barrier(levels)
        faults_child.advance(engine, pipeline, 5, "q1", late=False)  # it closes a second, a minute and an hour
        assert not any(wave.broken for wave in proxy.waves.values())
        assert proxy.requests - before == (2 * levels + 1) + levels + 1


def child(bucket: str) -> list[str]:
    """The job as a command."""
    program = (
        "import sys; from rollup.core.objects import at; from tests.job import faults_child as f; "
        "f.work(at(sys.argv[1]), f.APP, 'q1')"
    )
    return [sys.executable, "-c", program, f"{bucket}/tables"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_killed_and_restarted_nothing_is_lost_and_nothing_counts_twice(afar: str, whole: Any, fault: str) -> None:
    killed = subprocess.run(child(afar), env={**os.environ, "ROLLUP_FAULT": fault}, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    faults_child.work(at(f"{afar}/tables"), faults_child.APP, "q1")
    assert found_in(at(f"{afar}/tables")) == whole


@pytest.mark.slow
def test_two_jobs_at_once_leave_what_one_leaves(afar: str, whole: Any) -> None:
    jobs = [subprocess.Popen(child(afar), stderr=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for job in jobs:
            _, said = job.communicate(timeout=120)
            assert job.returncode == 0 or "only one job may write an aggregation" in said, said
    finally:
        for job in jobs:
            job.kill()
    faults_child.work(at(f"{afar}/tables"), faults_child.APP, "q1")
    assert found_in(at(f"{afar}/tables")) == whole


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["refused", "lost", "doubled", "slow"])
def test_a_disturbed_way_to_the_store_loses_nothing_and_doubles_nothing(bucket: str, whole: Any, trouble: str) -> None:
    """The job is a process of its own: the library of the tables keeps all threads of one waiting while it writes."""
    with Unsteady(os.environ["AWS_ENDPOINT_URL"], trouble=trouble) as proxy:
        environment = {**os.environ, "AWS_ENDPOINT_URL": proxy.endpoint}
        for _ in range(6):  # as a job that has ended, and is started again
            if (
                subprocess.run(child(bucket), env=environment, check=False, timeout=120, capture_output=True).returncode
                == 0
            ):
                break
        assert proxy.troubled > 5
    assert found_in(at(f"{bucket}/tables")) == whole


def test_copies_take_a_bounded_place(afar: str, tmp_path: Path) -> None:
    for number in range(4):
        file = at(f"{afar}/part-{number}.parquet")
        file.write_bytes(bytes(1000))
        near = copies.near(file)
        os.utime(near, (number, number))
    copies.sweep(2500)
    assert len(list(copies.place().iterdir())) == 2
    assert copies.near(at(f"{afar}/part-0.parquet")).stat().st_size == 1000


@pytest.mark.parametrize(
    ("storage", "said"),
    [
        ('secret_access_key = "s"', "no secret stands in a configuration"),
        ('secret_access_key_env = "NOT_THERE"', "names NOT_THERE, a variable that is not set"),
        ('endpiont = "x"', "did you mean `endpoint`"),
    ],
)
def test_a_wrong_way_to_the_store_is_refused_by_name(
    tmp_path: Path, storage: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(tmp_path, {"kind": "json", "path": "in"}, more=f"[storage]\n{storage}")
    with pytest.raises(ConfigError, match=said):
        _ = job.conf


def test_a_job_with_its_tables_in_a_bucket_answers_as_one_in_a_folder_and_tells_no_secret(
    spark: SparkSession, s3: S3Server, bucket: str, tmp_path: Path, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("MY_SECRET", SECRET)
    (tmp_path / "in").mkdir()
    trades = [
        {"symbol": f"S{i % 3}", "price": i / 4, "quantity": i, "ts": 1_600_000_000_000 + i * 700} for i in range(400)
    ]
    text = "".join(json.dumps(trade) + "\n" for trade in trades)
    (tmp_path / "in" / "a.json").write_text(text + "no record\n")
    source = {"kind": "json", "path": str(tmp_path / "in")}
    for name in ("near", "far"):
        (tmp_path / name).mkdir()
    near = Job(tmp_path / "near", source)
    far = Job(
        tmp_path / "far", source, store=f'kind = "delta"\npath = "{bucket}/tables"',
        more=f'[storage]\nendpoint = "{s3.endpoint}"\nsecret_access_key_env = "MY_SECRET"',
    )  # fmt: skip
    near.run(spark)
    far.run(spark)
    for per in ("seconds", "minutes", "years"):
        assert answers(far.conf, "symbol, total, low, mean", per) == answers(near.conf, "symbol, total, low, mean", per)
    assert [letter["reason"] for letter in far.letters()] == [letter["reason"] for letter in near.letters()] != []
    assert not (tmp_path / "far" / "tables").exists() and not list(tmp_path.glob("**/s3:*"))
    said = capfd.readouterr()
    settings = str(spark.sparkContext.getConf().getAll())
    assert SECRET not in said.out + said.err + settings
    kept = b"".join(path.read_bytes() for path in (tmp_path / "far").rglob("*") if path.is_file())
    assert SECRET.encode() not in kept


def test_a_store_that_is_away_is_named_without_the_keys(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Unsteady(os.environ["AWS_ENDPOINT_URL"], forbid=True) as proxy:
        for name, value in reached(proxy.endpoint).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(StoreError, match=r"cannot read s3://.*: the object store") as refused:
            RecordFolder(at(f"{bucket}/_rollup/A")).numbers()
    assert SECRET not in str(refused.value)


def test_a_name_node_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollup.core.object_clients._PATIENCE", {"dfs.client.failover.max.attempts": "1"})
    with pytest.raises(StoreError, match=r"cannot read hdfs://127.0.0.1:9/_rollup/A: HDFS answers: Connection refused"):
        RecordFolder(at("hdfs://127.0.0.1:9/_rollup/A")).numbers()
