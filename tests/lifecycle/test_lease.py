"""Who may write: leases, a standby that takes over, and a paused job that wakes up. With real processes and signals,
since what is tested is what the operating system does to a job."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path
from threading import Semaphore
from typing import IO, Any, cast

import pytest
from sqlalchemy.exc import IntegrityError

from rollup.conf import load
from rollup.core import objects
from rollup.core.errors import ConfigError, FencedError, StoreError
from rollup.hosts.reporting.progress import Reporter
from rollup.lifecycle.job import Job
from rollup.lifecycle.lease.holding import Holder, Lease
from rollup.lifecycle.lease.holding import Place as LeasePlace
from rollup.lifecycle.lease.places import Files, leases_of
from rollup.stores.postgres.server import free_port
from rollup.stores.sql.lease import Rows
from rollup.stores.sql.session import ConnectionLost
from tests.lifecycle.conftest import ON_POSTGRES, trades
from tests.lifecycle.filejob import FileJob, Place
from tests.servers.postgres import PostgresServer

ROOT = Path(__file__).parents[2]


@contextmanager
def process(
    place: Place, takeover: float = 1.0, fault: str | None = None
) -> Generator[tuple[subprocess.Popen[str], IO[str]]]:
    """A job process; its output is read line by line."""
    environment = {**os.environ, **({} if fault is None else {"ROLLUP_FAULT": fault})}
    command = [sys.executable, "-m", "tests.lifecycle.filejob", str(place.root / "rollup.toml"), "0.05", str(takeover)]
    started = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment)
    assert started.stdout is not None
    try:
        yield started, started.stdout
    finally:
        if started.poll() is None:
            os.kill(started.pid, signal.SIGCONT)
            started.kill()
        started.wait()


def until(lines: IO[str], wanted: str) -> list[str]:
    """Read lines up to the first that has a text."""
    seen: list[str] = []
    for line in lines:
        seen.append(line.strip())
        if wanted in line:
            return seen
    raise AssertionError(f"no {wanted!r} in {seen}")


def heartbeats(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> Semaphore:
    """Released after every heartbeat from now on, whether it could be written or not."""
    heard, beat = Semaphore(0), lease.beat

    def told() -> None:
        beat()
        heard.release()

    monkeypatch.setattr(lease, "beat", told)
    return heard


@pytest.fixture(params=["files", "bucket", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], LeasePlace]:
    """Opens one and the same place for leases, as another job does, too."""
    if request.param == "files":
        return lambda: Files(tmp_path / "Agg")
    if request.param == "bucket":
        folder = objects.at(f"{request.getfixturevalue('bucket')}/tables/Agg")
        return lambda: Files(folder)
    on_postgres = request.param == "postgres"
    url = request.getfixturevalue("postgres").new_database() if on_postgres else f"sqlite:///{tmp_path}/leases.db"
    return lambda: Rows(url, "Agg")


def test_a_second_job_gets_no_lease_while_the_first_lives(
    new_place: Callable[[], LeasePlace], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """For three times as long as a lease lives without a heartbeat, of which there are four in that time."""
    if request.node.callspec.params["new_place"] == "bucket":
        pytest.skip("S3 says times in whole seconds, so a heart that beats more often is not seen")
    first, second = Lease(new_place(), "run", 0.4), Lease(new_place(), "run", 0.4)
    assert second.holder() is None and second.age() is None
    heard = heartbeats(first, monkeypatch)
    assert first.take()
    for _ in range(12):
        assert heard.acquire(timeout=30)
        assert not second.take()
    assert not first.lost
    holder, age = second.holder(), second.age()
    assert holder is not None and holder.pid == os.getpid() and age is not None and age < 30
    first.release()
    assert second.holder() is None
    assert second.take() and second.number == 2
    second.release()


def test_a_lease_without_heartbeat_is_taken_over_once_and_its_holder_knows(
    new_place: Callable[[], LeasePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Lease(new_place(), "run", 0.3)
    monkeypatch.setattr(first, "_keep", lambda: None)
    assert first.take()
    others = [Lease(new_place(), "run", 0.3) for _ in range(4)]
    end, won = time.monotonic() + 10, list[Lease]()
    while time.monotonic() < end and not won:
        won += [lease for lease in others if lease.take()]
        time.sleep(0.02)
    first.beat()
    assert len(won) == 1 and first.lost
    with pytest.raises(FencedError, match="has taken over Agg"):
        first.check()
    for lease in (*won, *others, first):
        lease.release()


def test_two_jobs_that_take_a_lease_at_the_same_moment_do_not_both_get_it(new_place: Callable[[], LeasePlace]) -> None:
    leases = [Lease(new_place(), "run") for _ in range(6)]
    with ThreadPoolExecutor(len(leases)) as threads:
        taken = list(threads.map(lambda lease: lease.take(), leases))
    assert taken.count(True) == 1
    assert {lease.number for lease in leases} == {0, 1}
    for lease in leases:
        lease.release()


def test_who_makes_the_table_of_leases_at_the_same_moment_holds_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL then says that a row of its catalog is there already, as it says of a lease."""
    place = Rows(f"sqlite:///{tmp_path}/leases.db", "Agg")
    create = place._table.create  # pyright: ignore[reportPrivateUsage]

    def after_another(connection: object, checkfirst: bool) -> None:
        monkeypatch.undo()
        create(connection, checkfirst=checkfirst)  # type: ignore[arg-type]
        raise IntegrityError("create table", None, Exception("duplicate key value: pg_type_typname_nsp_index"))

    monkeypatch.setattr(place._table, "create", after_another)  # pyright: ignore[reportPrivateUsage]
    lease = Lease(place, "change")
    assert lease.take()
    lease.release()


@pytest.mark.parametrize("step", ["newest", "read", "add", "remove"])
@pytest.mark.parametrize("done", [True, False], ids=["and was done", "and was not done"])
def test_a_step_whose_answer_is_lost_while_a_lease_is_taken_makes_nobody_its_holder_but_us(
    new_place: Callable[[], LeasePlace], monkeypatch: pytest.MonkeyPatch, step: str, done: bool
) -> None:
    """Or a command would say that it is at work itself, and do nothing."""
    before, place, lost = Lease(new_place(), "run"), new_place(), list[str]()
    assert before.take()
    before.release()
    action = getattr(place, step)

    def once_lost(*arguments: object) -> object:
        found = action(*arguments) if done or lost else None
        if not lost:
            lost.append(step)
            raise ConnectionLost("server closed the connection unexpectedly")
        return found

    monkeypatch.setattr(place, step, once_lost)
    lease = Lease(place, "change")
    assert lease.take() and lost == [step]
    assert lease.number == 2 and not lease.lost
    assert not Lease(new_place(), "run").take()
    lease.release()
    assert Lease(new_place(), "run").holder() is None


@pytest.mark.postgres
def test_a_database_that_is_away_is_waited_for_and_nobody_has_lost_a_lease_there(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollup.lifecycle.lease.holding._PATIENCE", 0.3)
    url = postgres.new_database()
    held, away = Lease(Rows(url, "Agg"), "run", 0.4), Rows(f"postgresql://me:s@127.0.0.1:{free_port()}/x", "Agg")
    heard = heartbeats(held, monkeypatch)
    assert held.take()
    monkeypatch.setattr(held, "place", away)
    assert heard.acquire(timeout=30) and heard.acquire(timeout=30)  # at least the second one while it is away
    held.check()
    with pytest.raises(StoreError, match=r"Agg: lease: the database does not answer: .*refused"):
        Lease(away, "run").take()
    held.release()
    wrong = url.replace(postgres.password, "wrong")
    with pytest.raises(StoreError, match=r"the lease of Agg: .*password authentication failed"):
        Lease(Rows(wrong, "Agg"), "run").take()


@pytest.mark.parametrize("new_store", [pytest.param("postgres", marks=pytest.mark.postgres), "sqlite"], indirect=True)
def test_a_job_elsewhere_with_a_checkpoint_of_its_own_stays_passive_on_the_same_database(
    place: Place, tmp_path: Path
) -> None:
    elsewhere = Place(tmp_path / "elsewhere", place.annotations, store=place.store).write()
    place.add(*trades(100))
    elsewhere.add(*trades(100))
    with process(place, takeover=60) as (first, lines):
        until(lines, "commit 1")
        with process(elsewhere, takeover=60) as (second, waiting):
            until(waiting, "waits")
            place.add(*trades(200)[100:])
            until(lines, "commit 2")
            assert second.poll() is None
            first.kill()  # gone from this machine: free at once
            first.wait()
            assert until(waiting, "commit")[0] == "holds the lease"


@pytest.mark.parametrize(("host", "free"), [(socket.gethostname(), True), ("another machine", False)])
def test_a_process_that_is_gone_is_known_to_be_on_its_own_machine_alone(
    new_place: Callable[[], LeasePlace], monkeypatch: pytest.MonkeyPatch, host: str, free: bool
) -> None:
    """Elsewhere only a heart that has stopped says so: a standby there takes over after `takeover`, not before."""
    gone = Holder("run", host, 2**22 + 1, "never", time.time())
    first = Lease(new_place(), "run", 3600)
    monkeypatch.setattr(first, "_keep", lambda: None)
    with monkeypatch.context() as there:
        there.setattr(Holder, "me", classmethod(lambda cls, what: gone))
        assert first.take()
    patient, quick = Lease(new_place(), "run", 3600), Lease(new_place(), "run", 0.3)
    assert patient.take() is free
    if not free:
        while not quick.take():
            time.sleep(0.05)
    for lease in (patient, quick, first):
        lease.release()


def test_the_lease_of_a_killed_process_is_free_at_once(place: Place) -> None:
    with process(place, takeover=60) as (job, lines):
        until(lines, "holds")
        job.kill()
        job.wait()
        lease = Lease(Files(place.root / "tables" / "_rollup" / "TradeAgg"), "run", 3600)
        assert lease.take()
        lease.release()


@ON_POSTGRES
@pytest.mark.few(1)
def test_a_paused_job_that_wakes_after_a_take_over_is_fenced_and_the_tables_are_right(place: Place) -> None:
    assert_fenced(place)


@pytest.mark.parametrize(
    ("where", "seconds", "taken"), [("s3://b/t", 5.9, False), ("s3://b/t", 6, True), ("t", 1, True)]
)
def test_a_job_in_a_bucket_has_time_for_a_sign_of_life(tmp_path: Path, where: str, seconds: float, taken: bool) -> None:
    conf = Place(tmp_path, store=f'kind = "delta"\npath = "{where}"\n').write().conf
    if taken:
        assert [lease.timeout for lease in leases_of(conf, conf.program(), "run", seconds)] == [seconds]
        return
    with pytest.raises(ConfigError, match=r"a takeover after 5\.9 s, with a lease in s3://b/t.*6 seconds or more"):
        leases_of(conf, conf.program(), "run", seconds)


@pytest.mark.slow
def test_a_paused_job_with_its_tables_in_a_bucket_is_fenced_when_it_wakes(afar: str, tmp_path: Path) -> None:
    """S3 says times in whole seconds."""
    store = f'kind = "delta"\npath = "{afar}/tables"\n'
    assert_fenced(Place(tmp_path, "@OutOfOrder('correct') ", store=store).write(), takeover=6.0)


def assert_fenced(place: Place, takeover: float = 1.0) -> None:
    """A job is paused, another takes over, and the first one wakes."""
    events = trades(1200)
    for at in range(0, 400, 100):
        place.add(*events[at : at + 100])
    with process(place, takeover) as (first, lines):
        until(lines, "commit 4")
        os.kill(first.pid, signal.SIGSTOP)
        place.add(*events[400:500])
        with process(place, takeover) as (_, standby):
            seen = until(standby, "commit 5")
            assert seen[:2] == ["waits", "holds the lease"]
            place.add(*events[500:600])
            until(standby, "commit 6")
            os.kill(first.pid, signal.SIGCONT)
            assert "another job" in until(lines, "FencedError")[-1]
            assert first.wait(20) == 2
            for at in range(600, 1200, 100):
                place.add(*events[at : at + 100])
            until(standby, "commit 12")
    assert_right(place, 1200)


def assert_right(place: Place, events: int) -> None:
    """Every event counted once, as a recomputation from the raw files says."""
    from rollup.lifecycle.verify import Verifier

    job = FileJob(place.conf)
    verifier = Verifier(job.engine, job.pipeline.cascade, job.store.snapshot(), job.book.page())
    assert list(verifier.levels()) == [] and list(verifier.raw(job.raw, None, False)) == []
    state = job.pipeline.state
    counted = sum(sum(table["AGG_EVENTS"].to_pylist()) for table in state.open.values())
    years = job.store.snapshot().rows(job.aggregation.levels[-1])
    assert counted + sum(years["AGG_EVENTS"].to_pylist()) == events


def test_a_job_paused_inside_a_commit_cannot_leave_rows_behind(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    events = trades(900)
    for at in range(0, 300, 100):
        place.add(*events[at : at + 100])
    first = FileJob(place.conf).run()
    place.add(*events[300:400])

    def overtaken(store: object) -> None:
        """Between two tables of the first job's commit another one takes over and commits twice."""
        monkeypatch.undo()
        second = FileJob(place.conf).run()
        place.add(*events[400:500])
        second.run()

    append, count = first.store._append, [0]

    def hooked(*arguments: object) -> None:
        append(*arguments)  # type: ignore[arg-type]
        count[0] += 1
        if count[0] == 1:
            overtaken(first.store)

    monkeypatch.setattr(first.store, "_append", hooked)
    with pytest.raises(FencedError):
        first.run()
    place.add(*events[500:])
    FileJob(place.conf).run()
    assert_right(place, 900)


def test_rows_that_a_woken_job_appends_under_the_new_one_are_put_aside(place: Place) -> None:
    events = trades(900)
    place.add(*events[:300])
    job = FileJob(place.conf).run()
    from deltalake import DeltaTable, write_deltalake

    path = str(place.root / "tables" / "TradeAgg_SECONDS")
    stray = DeltaTable(path).to_pyarrow_table().slice(0, 20)
    write_deltalake(path, stray, mode="append")
    place.add(*events[300:])
    job.run()
    assert_right(place, 900)


@pytest.mark.parametrize(
    ("new_store", "point"),
    [
        ("delta", "commit.rewrite"),
        ("delta", "commit.level"),
        ("delta", "commit.open"),
        ("delta", "commit.record"),
        pytest.param("postgres", "commit.rewrite", marks=pytest.mark.postgres),
        ("sqlite", "commit.open"),
    ],
    indirect=["new_store"],
)
@pytest.mark.few(2)
def test_a_replay_killed_anywhere_in_its_commit_is_whole_or_not_there(place: Place, point: str) -> None:
    for at in range(0, 600, 200):
        place.add(*trades(600)[at : at + 200])
    FileJob(place.conf).run()
    environment = {**os.environ, "ROLLUP_FAULT": point}
    command = [
        sys.executable,
        "-m",
        "rollup.cli.main",
        "replay",
        str(place.conf.path),
        "--from",
        "2018-01-01",
        "--to",
        "2018-01-02 05:00:00",
    ]
    killed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    # No rows close in a replay's commit, so the point between levels is not reached.
    assert killed.returncode == (0 if point == "commit.level" else -signal.SIGKILL)
    assert_right(place, 600)


def test_a_lease_that_cannot_be_read_is_somebodys_until_its_heart_has_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Lease(Files(tmp_path / "Agg"), "run", 0.4), Lease(Files(tmp_path / "Agg"), "run", 0.4)
    heard = heartbeats(first, monkeypatch)
    assert first.take()
    (tmp_path / "Agg" / "lease-000001.json").write_text('{"what": "run", "ho')
    for _ in range(12):
        assert heard.acquire(timeout=30)
        assert not second.take(), "its heart beats"
    end = time.monotonic()
    assert str(second.holder()) == "a job whose lease cannot be read"
    first._stop.set()  # pyright: ignore[reportPrivateUsage]  # as when the process is gone
    while not second.take():
        assert time.monotonic() < end + 30
        time.sleep(0.02)
    first.beat()
    with pytest.raises(FencedError, match="has taken over Agg"):
        first.check()
    second.release()


def test_a_flipped_bit_of_a_lease_is_never_another_holder_and_never_a_free_lease(tmp_path: Path) -> None:
    lease, watcher = (Lease(Files(tmp_path / "Agg"), "run") for _ in range(2))
    assert lease.take()
    path, true = tmp_path / "Agg" / "lease-000001.json", lease.holder()
    content, unknown = path.read_bytes(), 0
    for bit in range(0, len(content) * 8, 3):
        path.write_bytes(content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :])
        found = watcher.holder()
        assert found in (true, Holder.unknown())
        unknown += found != true
    assert unknown > len(content) * 2
    path.write_bytes(json.dumps(asdict(true)).encode() if true else b"")
    assert watcher.holder() == true, "one from before there were checksums"
    lease.release()


def test_a_lease_whose_file_may_not_be_looked_at_is_not_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Lease(Files(tmp_path / "Agg"), "run"), Lease(Files(tmp_path / "Agg"), "run")
    assert first.take()
    read = Path.read_text

    def refuse(path: Path, **options: Any) -> str:
        if path.is_relative_to(tmp_path):
            raise PermissionError(13, "Permission denied")
        return read(path, **options)

    with monkeypatch.context() as fault:
        fault.setattr(Path, "read_text", refuse)
        with pytest.raises(StoreError, match=r"cannot read .*lease-000001.json: Permission denied"):
            second.take()
        fault.setattr(os, "listdir", refuse)
        with pytest.raises(StoreError, match=r"cannot read .*Agg: Permission denied"):
            second.take()
    assert not second.take()
    first.release()


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), RuntimeError("a library's own")])
def test_a_heart_goes_on_beating_after_any_error_and_its_job_then_sees_that_the_lease_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Files(tmp_path / "Agg")
    lease = Lease(place, "run", 0.2)
    assert lease.take()
    tried = threading.Event()

    def refuse() -> int:
        tried.set()
        raise error

    with monkeypatch.context() as fault:
        fault.setattr(place, "newest", refuse)
        assert tried.wait(60)
        tried.clear()
        assert tried.wait(60), "it was tried again"
    assert Files(tmp_path / "Agg").add(2, "{}")
    end = time.monotonic() + 10
    while not lease.lost:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert capsys.readouterr().out.count("cannot be renewed") == 1
    lease.release()


def test_a_lease_whose_folder_was_removed_is_not_taken_for_anothers(tmp_path: Path) -> None:
    lease = Lease(Files(tmp_path / "Agg"), "run", 60)
    assert lease.take()
    shutil.rmtree(tmp_path / "Agg")
    lease.beat()
    with pytest.raises(StoreError, match="the lease of Agg is gone") as refused:
        lease.check()
    assert not isinstance(refused.value, FencedError)
    lease.release()


def test_a_database_that_is_away_for_a_moment_gets_the_lease_back_all_the_same(
    new_place: Callable[[], LeasePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that goes on, as a scheduler's does, would count as its holder for as long as it lives."""
    place = new_place()
    first, newest, tries = Lease(place, "run"), place.newest, count()

    def away() -> int:
        if not next(tries):
            raise ConnectionLost("sorry, too many clients already")
        return newest()

    assert first.take()
    monkeypatch.setattr(place, "newest", away)
    first.release()
    second = Lease(new_place(), "change")
    assert second.holder() is None and second.take()
    second.release()


def test_a_job_of_statements_alone_is_refused_where_another_has_them(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    app = "define stream Trades (k string); from Trades#window.length(2) select k, count() as n insert into Out;"
    (tmp_path / "app.siddhi").write_text(app)
    (tmp_path / "job.toml").write_text(
        'app = "app.siddhi"\ncheckpoint = "c"\n[sources.Trades]\nkind = "json"\npath = "in"\n'
        '[store]\nkind = "delta"\npath = "tables"\n'
    )
    conf, nothing = load(tmp_path / "job.toml"), cast("Any", object())
    first, second = (Job(conf, nothing, Reporter(terminal=False), takeover=1) for _ in range(2))
    try:
        assert first._acquire()  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(
            StoreError, match=r"^run, process \d+ on .* writes _statements already \(`rollup run CONF --standby`"
        ):
            second._acquire()  # pyright: ignore[reportPrivateUsage]
    finally:
        for lease in first.leases:
            lease.release()
    try:
        assert second._acquire()  # pyright: ignore[reportPrivateUsage]
    finally:
        for lease in second.leases:
            lease.release()
