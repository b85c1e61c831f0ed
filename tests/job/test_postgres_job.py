"""The real job into a real PostgreSQL, where commits trail: killed, or with a database that has gone back, it is exact.

What is compared is all there is: answers of every level with open buckets, late events, dead letters.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg2
import pytest

from rollup.core.calendar import Duration
from tests.job.jobs import Job, answers
from tests.job.test_crash import job, kill_ten_times, write_events
from tests.servers.postgres import PostgresServer
from tests.stores.conftest import Backup, execute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.postgres]


def into(folder: Path, url: str) -> Job:
    """The job of the crash tests, into a database."""
    return job(folder, store=f'kind = "sql"\nurl = "{url}"')


def everything(found: Job) -> dict[str, Any]:
    """What a job has left, as its users see it."""
    columns = "AGG_TIMESTAMP, symbol, total, low, high, mean, events, AGG_FINAL, AGG_LATE_MOVED"
    levels = {level.plural: answers(found.conf, columns, level.plural) for level in Duration}
    return {**levels, "letters": [(letter["position"], letter["raw"]) for letter in found.letters()]}


@pytest.fixture
def whole(tmp_path: Path, spark: SparkSession) -> dict[str, Any]:
    """What a run into Delta leaves that nothing interrupts."""
    write_events(tmp_path / "events")
    reference = job(tmp_path / "reference")
    reference.run(spark)
    return everything(reference)


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Ask again and again until something is so."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "not so in time"
        time.sleep(0.01)


def progress(found: Job, url: str) -> tuple[int, int]:
    """The last batch that Spark has behind it, and the last one in the tables; -1 before the first."""
    done = (int(file.name) for file in (found.conf.checkpoint / "Trades" / "commits").glob("[0-9]*"))
    try:
        ((made,),) = execute(url, 'select coalesce(max(number), 0) - 1 from "TradeAgg_COMMIT"')
    except psycopg2.errors.UndefinedTable:
        made = -1
    return max(done, default=-1), int(str(made))


@pytest.mark.slow
def test_killed_with_a_commit_on_its_way_it_ends_as_if_it_never_was(
    tmp_path: Path, whole: dict[str, Any], postgres: PostgresServer, spark: SparkSession
) -> None:
    url = postgres.new_database()
    real = into(tmp_path / "real", url)
    process = real.process("--once", start_new_session=True)
    try:
        wait_until(lambda: progress(real, url)[1] >= 1)
        with psycopg2.connect(url) as reader:  # a lock keeps the next commit from ending, and Spark goes on
            reader.cursor().execute('lock table "TradeAgg_OPEN" in exclusive mode')
            wait_until(lambda: progress(real, url)[0] > progress(real, url)[1])
            os.killpg(process.pid, signal.SIGKILL)
        reader.close()
    finally:
        process.kill()
        process.communicate()
    done, made = progress(real, url)
    assert 1 <= made < done <= made + 2
    real.run(spark)
    assert everything(real) == whole


TWO = """define stream Trades (symbol string, price double, quantity long, ts long);
define aggregation A from Trades select symbol, sum(quantity) as total, count() as events
group by symbol aggregate by ts every sec ... day;
define aggregation B from Trades select symbol, max(price) as high, count() as events
group by symbol aggregate by ts every sec, min;
"""


@pytest.mark.slow
def test_killed_where_one_aggregation_is_ahead_of_another_neither_lacks_an_event(
    tmp_path: Path, postgres: PostgresServer, spark: SparkSession
) -> None:
    url = postgres.new_database()
    write_events(tmp_path / "events", files=12, rows=40)
    source = {"kind": "json", "path": str(tmp_path / "events"), "max_files_per_batch": 1}
    (tmp_path / "real").mkdir()
    real = Job(tmp_path / "real", source, app=TWO, store=f'kind = "sql"\nurl = "{url}"')

    def made(name: str) -> int:
        try:
            return int(str(execute(url, f'select coalesce(max(number), 0) from "{name}_COMMIT"')[0][0]))
        except psycopg2.errors.UndefinedTable:
            return 0

    process = real.process("--once", start_new_session=True)
    try:
        wait_until(lambda: made("A") >= 2, 200)
        with psycopg2.connect(url) as reader:  # A's commits wait, and B's go on until the job waits for A
            reader.cursor().execute('lock table "A_OPEN" in exclusive mode')
            wait_until(lambda: made("B") >= made("A") + 2, 200)
            os.killpg(process.pid, signal.SIGKILL)
        reader.close()
    finally:
        process.kill()
        process.communicate()
    assert made("B") >= made("A") + 2
    real.run(spark)
    for name in ("A", "B"):
        assert sum(row[0] for row in answers(real.conf, "events", "minutes", name)) == 12 * 40, name


@pytest.mark.slow
def test_a_database_brought_back_from_a_backup_is_caught_up_with(
    tmp_path: Path, whole: dict[str, Any], postgres: PostgresServer, spark: SparkSession
) -> None:
    url = postgres.new_database()
    events = tmp_path / "events"
    later = sorted(events.iterdir())[2:]
    for file in later:
        file.rename(tmp_path / file.name)
    real = into(tmp_path / "real", url)
    real.run(spark)
    backup = Backup(url)
    for file in later:
        shutil.move(tmp_path / file.name, file)
    real.run(spark)
    assert everything(real) == whole
    backup.restore()
    assert everything(real) != whole
    real.run(spark)
    assert everything(real) == whole


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(3))
def test_killed_ten_times_at_random_moments_it_ends_as_if_it_never_was(
    tmp_path: Path, whole: dict[str, Any], postgres: PostgresServer, spark: SparkSession, seed: int
) -> None:
    real = into(tmp_path / "real", postgres.new_database())
    kill_ten_times(real, random.Random(seed))
    real.run(spark)
    assert everything(real) == whole
