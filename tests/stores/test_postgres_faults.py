"""Nothing is lost and nothing counts twice, whatever is killed and wherever: the job, the server, or the connection.

Each script is the same: feed batches, break something at a named point, go on, and compare with a run in memory.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2
import pytest

import rollup.stores.postgres.database as postgres_store
import rollup.stores.sql.store as sql
from rollup.core.columns import ColumnEngine
from rollup.core.errors import FencedError, StoreError
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from rollup.stores.databases import store_of
from rollup.stores.memory import MemoryStore
from rollup.stores.postgres.server import PgServer, free_port
from tests.stores.conftest import Backup, NewUrl, execute
from tests.stores.samples import FIRST, SELECT, added, answers, app, batches, host

pytestmark = pytest.mark.postgres
TEXT = app("@BufferSize('2')")
EVENTS = batches(17, 5, 20)
JOB = """
import sys
from rollup.program import compile_app
from rollup.stores.databases import store_of
from tests.stores.test_postgres_faults import EVENTS, TEXT, feed
from tests.stores.samples import host
job = host(TEXT, lambda a, e: store_of(a, e, sys.argv[1]))
feed(job, job.pipelines["Agg"].number)
"""
END = """select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'rollup_ended' and pid <> pg_backend_pid()"""
KILLED_AT = ("commit.begin:2", "commit.level:3", "commit.open:2", "commit.record:2")


def feed(job: LocalHost, done: int) -> None:
    """The batches that have not been committed yet, as a source that can be asked again gives them."""
    for batch in EVENTS[done:]:
        job.send("S", batch)


@pytest.fixture(scope="module")
def wanted() -> dict[str, list[tuple[object, ...]]]:
    """What a run without faults answers."""
    calm = host(TEXT, MemoryStore)
    feed(calm, 0)
    return answers(calm)


Answers = dict[str, list[tuple[object, ...]]]


@pytest.mark.slow
def test_a_job_killed_anywhere_in_a_commit_goes_on_exactly(new_url: NewUrl, wanted: Answers) -> None:
    urls = {point: new_url() for point in KILLED_AT}
    jobs = {
        point: subprocess.Popen(
            [sys.executable, "-c", JOB, url],
            env=os.environ | {"ROLLUP_FAULT": point, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        for point, url in urls.items()
    }
    committed = dict[str, int]()
    for point, url in urls.items():
        assert jobs[point].wait(120) == -signal.SIGKILL, f"the job reached {point}"
        again = host(TEXT, lambda a, e, url=url: store_of(a, e, url))
        committed[point] = again.pipelines["Agg"].number
        feed(again, committed[point])
        assert answers(again) == wanted, point
    assert committed["commit.begin:2"] == committed["commit.open:2"] == 1
    assert committed["commit.record:2"] == 2, "the transaction was over: its batch must not come again"


@pytest.fixture(scope="module")
def mortal() -> Iterator[PgServer]:
    """A server to kill, always at the same port."""
    with tempfile.TemporaryDirectory(prefix="rollup-pg-") as folder:
        os.chmod(folder, 0o755)
        with PgServer(Path(folder), port=free_port()) as server:
            yield server


@pytest.mark.parametrize("where", ["commit.begin", "commit.levels", "commit.record"])
@pytest.mark.slow
def test_a_server_killed_in_a_commit_is_waited_for(
    where: str, mortal: PgServer, wanted: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = where.replace(".", "_")
    execute(mortal.dsn, f"create schema {schema}")
    job = host(TEXT, lambda a, e: store_of(a, e, f"{mortal.dsn}?options=-csearch_path%3D{schema}", patience=60))
    reached = list[str]()

    def crash(name: str) -> None:
        if name == where:
            reached.append(name)
            if len(reached) == 2:
                mortal.kill9()
                threading.Timer(0.5, mortal.start).start()

    monkeypatch.setattr(sql, "point", crash)
    feed(job, 0)
    assert len(reached) >= len(EVENTS)
    assert answers(job) == wanted


class Cutter:
    """A TCP proxy before the server that cuts the connection at the next COMMIT: before it is sent on, or after the
    server has done it but before the client hears of it."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.mode = ""
        self.cuts = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            state = {"cut": False}
            threading.Thread(target=self._forward, args=(client, server, state, True), daemon=True).start()
            threading.Thread(target=self._forward, args=(server, client, state, False), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, state: dict[str, bool], up: bool) -> None:
        try:
            while data := source.recv(65536):
                if up and self.mode and b"COMMIT\x00" in data:
                    mode, self.mode, state["cut"] = self.mode, "", True
                    self.cuts += 1
                    if mode == "before":
                        break
                elif not up and state["cut"]:
                    break  # the answer to COMMIT: swallowed
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutter(url: str) -> Iterator[tuple[Cutter, str]]:
    """A proxy before the server of a URL, and the URL through it."""
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    proxy = Cutter((parts.hostname, parts.port))
    yield proxy, url.replace(f":{parts.port}/", f":{proxy.port}/")
    proxy.listener.close()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.few(1)
def test_a_connection_lost_at_commit_counts_the_batch_once(when: str, new_url: NewUrl, wanted: Answers) -> None:
    url = new_url()
    with cutter(url) as (proxy, through):
        job = host(TEXT, lambda a, e: store_of(a, e, through))
        for batch in EVENTS:
            proxy.mode = when
            job.send("S", batch)
        assert proxy.cuts == len(EVENTS)
    found = host(TEXT, lambda a, e: store_of(a, e, url))
    assert answers(found) == wanted
    assert execute(url, 'select count(*) from "Agg_COMMIT"') == [(len(EVENTS),)]


def test_sessions_ended_by_an_administrator_are_opened_again(new_url: NewUrl, wanted: Answers) -> None:
    url = new_url() + "%20-capplication_name%3Drollup_ended"
    job = host(TEXT, lambda a, e: store_of(a, e, url))
    for batch in EVENTS:
        execute(
            url,
            END,
        )
        job.send("S", batch)
    assert answers(job) == wanted


def test_an_old_job_that_was_paused_cannot_write_after_another_took_over(new_url: NewUrl) -> None:
    url = new_url()
    make: Callable[..., sql.SqlStore] = lambda a, e: store_of(a, e, url)  # noqa: E731
    old = host(TEXT, make)
    old.send("S", EVENTS[0])
    new = host(TEXT, make)
    for batch in EVENTS[1:]:
        new.send("S", batch)
    before = answers(new)
    with pytest.raises(FencedError):
        old.send("S", [("z", 1, 1.0, "a", True, FIRST + 10**9)])
    assert answers(new) == before


PAUSED = """
import os, signal, sys
import rollup.stores.sql.store as sql
from rollup.program import compile_app
from rollup.stores.databases import store_of
from tests.stores.test_postgres_faults import EVENTS, TEXT, feed
from tests.stores.samples import host
job = host(TEXT, lambda a, e: store_of(a, e, sys.argv[1], patience=20))
job.send("S", EVENTS[0])
def pause(name):
    if name == sys.argv[2]:
        print("paused", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
sql.point = pause
try:
    feed(job, 1)
except sql.FencedError as problem:
    print("fenced", problem, flush=True)
"""


@pytest.mark.parametrize("where", ["commit.begin", "commit.open"])
@pytest.mark.slow
def test_a_job_paused_inside_its_transaction_holds_nobody_up_and_can_never_commit(
    where: str, new_url: NewUrl, wanted: Answers
) -> None:
    url = new_url()
    paused = subprocess.Popen(
        [sys.executable, "-c", PAUSED, url, where],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert paused.stdout is not None and paused.stdout.readline() == "paused\n"
        second = host(TEXT, lambda a, e: store_of(a, e, url, patience=20))
        assert second.pipelines["Agg"].number == 1
        second.send("S", EVENTS[1])
        os.kill(paused.pid, signal.SIGCONT)
        assert "fenced commit 2 of Agg is taken (another job writes this aggregation)" in paused.stdout.read()
    finally:
        paused.kill()
        paused.wait()
    for batch in EVENTS[2:]:
        second.send("S", batch)
    assert answers(second) == wanted
    assert execute(url, 'select count(*), max(number) from "Agg_COMMIT"') == [(len(EVENTS), len(EVENTS))]


def test_a_database_that_has_gone_back_is_noticed_and_the_next_start_goes_on_from_there(
    new_url: NewUrl, wanted: Answers
) -> None:
    url = new_url()
    job = host(TEXT, lambda a, e: store_of(a, e, url))
    for batch in EVENTS[:2]:
        job.send("S", batch)
    backup = Backup(url)
    for batch in EVENTS[2:4]:
        job.send("S", batch)
    backup.restore()
    lost = r"newest commit of Agg is 2 where this job has made 4: the database has gone back.*start the job again"
    with pytest.raises(StoreError, match=lost):
        job.send("S", EVENTS[4])
    assert execute(url, 'select max(number) from "Agg_COMMIT"') == [(2,)]
    again = host(TEXT, lambda a, e: store_of(a, e, url))
    feed(again, again.pipelines["Agg"].number)
    assert answers(again) == wanted


def test_a_snapshot_goes_on_after_a_lost_connection_only_when_there_was_no_commit(new_url: NewUrl) -> None:
    url = new_url() + "%20-capplication_name%3Drollup_ended"
    job = host(TEXT, lambda a, e: store_of(a, e, url))
    job.send("S", EVENTS[0])
    snapshot = job.stores["Agg"].snapshot()
    root = job.program.aggregations["Agg"].root
    assert snapshot.loaded().number == 1
    rows = snapshot.rows(root).num_rows
    execute(url, END)
    assert snapshot.rows(root).num_rows == rows > 0 and snapshot.number == 1
    execute(url, END)
    job.send("S", EVENTS[1])
    with pytest.raises(StoreError, match="lost while commit 1 was read, and the newest is 2 now"):
        snapshot.extent(root)


def test_a_server_that_stays_away_is_reported_with_what_to_do() -> None:
    port = free_port()
    with pytest.raises(StoreError, match=r"Agg: prepare: the database does not answer: .*refused.*start again"):
        host(TEXT, lambda a, e: store_of(a, e, f"postgresql://me:secret@127.0.0.1:{port}/x", patience=0.3))


def test_a_wrong_password_is_refused_at_once_and_not_shown(new_url: NewUrl) -> None:
    parts = urlsplit(new_url())
    with pytest.raises(StoreError, match="password authentication failed") as caught:
        host(TEXT, lambda a, e: store_of(a, e, f"postgresql://rollup:secret@{parts.hostname}:{parts.port}/postgres"))
    assert "secret" not in str(caught.value)


def test_a_deadlock_or_a_busy_table_is_tried_again(new_url: NewUrl) -> None:
    url = new_url()
    job = host(TEXT, lambda a, e: store_of(a, e, url + "%20-clock_timeout%3D200ms"))
    other = psycopg2.connect(url)
    other.cursor().execute('lock table "Agg_OPEN" in exclusive mode')
    threading.Timer(1.0, other.rollback).start()
    job.send("S", EVENTS[0])
    assert job.pipelines["Agg"].number == 1
    other.close()


def test_a_table_that_stays_busy_is_said_with_who_uses_it(new_url: NewUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    url = new_url()
    job = host(TEXT, lambda a, e: store_of(a, e, url))
    later = app("@BufferSize('2')", f"{SELECT}, max(i) as most")
    store = store_of(compile_app(later).aggregations["Agg"], ColumnEngine(), url, patience=0.3)
    columns = added(job, store.aggregation)
    monkeypatch.setattr(postgres_store, "_WRITE", postgres_store._WRITE.replace("10s", "200ms"))
    other = psycopg2.connect(url, application_name="a long report")
    other.cursor().execute('select count(*) from "Agg_OPEN"')
    used = f"used by process {other.info.backend_pid} of the server"
    with pytest.raises(
        StoreError, match=rf"Agg: evolve: .*{used} \(a long report, idle in transaction: .*end what hol"
    ):
        store.evolve(columns, [])
    other.rollback()  # returns when the lock is gone
    other.close()
    store.evolve(columns, [])
    assert execute(url, 'select "AGG_MAX_i" from "Agg_OPEN"') == []


def test_a_snapshot_that_rests_holds_no_change_up(new_url: NewUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    url = new_url()
    job = host(TEXT, lambda a, e: store_of(a, e, url))
    job.send("S", EVENTS[0])
    resting = store_of(job.pipelines["Agg"].aggregation, ColumnEngine(), url).snapshot()
    assert resting.loaded().number == 1
    later = app("@BufferSize('2')", f"{SELECT}, max(i) as most")
    store = store_of(compile_app(later).aggregations["Agg"], ColumnEngine(), url)
    monkeypatch.setattr(postgres_store, "_WRITE", postgres_store._WRITE.replace("10s", "200ms"))
    store.evolve(added(job, store.aggregation), [])
    with pytest.raises(StoreError, match=r"the connection was lost while commit 1 was read.*ask again"):
        resting.ledger()
    assert store.snapshot().number == 2


def test_a_server_with_as_many_clients_as_it_takes_is_waited_for(new_url: NewUrl) -> None:
    url = urlsplit(new_url())
    role = f"few_{os.getpid()}"
    execute(url.geturl(), f"create role {role} superuser login password 'few' connection limit 1")
    few = url._replace(netloc=f"{role}:few@{url.hostname}:{url.port}").geturl()
    job = host(TEXT, lambda a, e: store_of(a, e, few))
    store = job.pipelines["Agg"].store
    assert isinstance(store, sql.SqlStore) and isinstance(store.database, postgres_store.PostgresDatabase)
    other = psycopg2.connect(few)  # while its role is a superuser, of which no limit counts
    execute(url.geturl(), f"alter role {role} nosuperuser; grant {url.username} to {role}")
    store.database.engine.dispose()
    threading.Timer(1.0, other.close).start()
    job.send("S", EVENTS[0])
    assert other.closed and job.pipelines["Agg"].number == 1
