"""Compaction of Delta tables on real folders: it must lose nothing, show nothing half done, end, and be worth its work.

What is planned is tested by itself, since how often a row is written again shows only over many rounds; the rest runs
against real tables, with readers beside it and processes killed in the middle of it.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rollup.ask import Asker
from rollup.core.calendar import Duration
from rollup.hosts.local import LocalHost
from rollup.hosts.pipeline import Pipeline
from rollup.stores.delta.compact import Compactor, DataFile, jobs
from rollup.stores.delta.store import DeltaStore, delta_store
from tests.retrieval.trades import DAY, HOUR, SECOND, START, Event, app, asker, delta_host

FEW = 8


def store_of(host: LocalHost) -> DeltaStore:
    found = host.stores["A"]
    assert isinstance(found, DeltaStore)
    return found


def content(store: DeltaStore) -> dict[Duration, Counter[tuple[Any, ...]]]:
    """The rows of every level, however they are spread over files."""
    snapshot = store.snapshot()
    levels = store.aggregation.levels
    return {level: Counter(tuple(row.values()) for row in snapshot.rows(level).to_pylist()) for level in levels}


def batches(count: int, seed: int = 1) -> list[list[Event]]:
    """Events of ten keys, the null key among them, over some days; every seventh comes an hour late."""
    draw = random.Random(seed)
    keys = [*(f"k{i}" for i in range(9)), None]
    return [
        [
            (draw.choice(keys), draw.randint(-5, 5), START + n * HOUR + i * 40 * SECOND - (i % 7 == 6) * HOUR)
            for i in range(60)
        ]
        for n in range(1, count + 1)
    ]


def test_the_rows_are_the_same_after_as_before(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app("correct"))
    store = store_of(host)
    for batch in batches(40):
        host.send("S", batch)
    before, counted = content(store), {level: len(store.snapshot().files(level)) for level in store.aggregation.levels}
    done = store.maintain(30.0)
    assert done["SECONDS"] > 10 and done["LATE"] > 10
    assert content(store) == before  # nothing is pinned, so nothing is changed for readers
    host.pipelines["A"].rewrite({})
    assert content(store) == before
    assert all(len(store.snapshot().files(level)) < number for level, number in counted.items() if number >= FEW)


@pytest.mark.slow
def test_what_no_kept_commit_needs_goes_once_its_time_is_over_and_no_sooner(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app("correct"))
    for batch in batches(70):
        host.send("S", batch)
    options = {"path": str(tmp_path / "store"), "keep_files": "1 hour"}
    store = delta_store(store_of(host).aggregation, host.engine, options)
    pipeline = Pipeline(store.aggregation, store, host.engine)
    pipeline.start()
    before, held = content(store), store.snapshot()
    rows = held.rows(Duration.SECONDS).num_rows

    def files() -> int:
        return sum(path.is_file() for path in (tmp_path / "store").rglob("*"))

    assert store.maintain(30.0)
    pipeline.rewrite({})
    there = files()
    assert store.release(lambda: pipeline.rewrite({})) == 0 and files() > there / 2
    assert held.rows(Duration.SECONDS).num_rows == rows  # of a commit that is older than the compaction
    store.vacuum_hours, store.keep_log = 0, 0
    assert store.release(lambda: pipeline.rewrite({})) > there / 2 and files() < 90
    assert store.release(lambda: pipeline.rewrite({})) < 20  # logs of its own looking
    for again in (store, delta_store(store.aggregation, host.engine, options)):
        again.load()
        assert content(again) == before


def test_rows_lie_by_hour_then_key_then_time_and_a_key_of_a_day_reads_few_row_groups(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app(buffer=0))
    store = store_of(host)
    keys = [f"k{i:02}" for i in range(40)]
    for part in range(2):  # each is sorted by itself, being large enough
        at = START + part * HOUR
        host.send("S", [(key, 1, at + second * SECOND) for second in range(3600) for key in keys])
    host.send("S", [("k00", 1, START + DAY)])
    assert store.maintain(60.0) == {}  # a running job does not stop for two files
    store = DeltaStore(store.aggregation, host.engine, tmp_path / "store")
    pipeline = Pipeline(store.aggregation, store, host.engine)
    pipeline.start()
    assert store.maintain(60.0)["SECONDS"] == 2
    pipeline.rewrite({})
    files = [pq.ParquetFile(file) for file in store.snapshot().files(Duration.SECONDS)]
    groups = [file.metadata.row_group(i) for file in files for i in range(file.num_row_groups)]
    assert sum(group.num_rows for group in groups) == 2 * 3600 * 40 and max(g.num_rows for g in groups) <= 65_536
    column = files[0].schema_arrow.get_field_index("k")
    holding = [g for g in groups if g.column(column).statistics.min <= "k17" <= g.column(column).statistics.max]
    assert len(groups) >= 9 and len(holding) <= 4
    for file in (pq.ParquetFile(name) for name in store.snapshot().files(Duration.SECONDS) if "/sorted-" in name):
        rows = file.read(["AGG_TIMESTAMP", "k"]).to_pylist()
        order = [(row["AGG_TIMESTAMP"] // HOUR, row["k"], row["AGG_TIMESTAMP"]) for row in rows]
        assert order == sorted(order)


def test_a_table_that_no_commit_has_pinned_is_left_alone(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app())
    store = store_of(host)
    store.compact_after = 2
    for batch in batches(6):
        host.send("S", batch)
    assert store.maintain(30.0)
    assert store.maintain(30.0) == {}
    host.send("S", batches(9)[-1])
    host.send("S", batches(12)[-1])
    assert store.maintain(30.0)


@pytest.mark.slow
def test_what_is_put_together_once_is_not_put_together_again(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app())
    store = store_of(host)
    for batch in batches(30):
        host.send("S", batch)
    while store.maintain(30.0):
        host.pipelines["A"].rewrite({})
    again = DeltaStore(store.aggregation, host.engine, tmp_path / "store")
    again.load()
    assert again.maintain(30.0) == {}


def written_again(rounds: int, rows: int) -> tuple[float, int]:
    """How often a row is written by compaction on average when as many files come one by one, and the most files."""
    files, written, most = list[DataFile](), 0, 0
    for number in range(rounds):
        files.append(DataFile(f"part-{number}.parquet", rows, rows * 8, "2018-01-01", number))
        for job in jobs(files, FEW):
            total = sum(file.rows for file in job)
            written += total
            files = [file for file in files if file not in job]
            files.append(DataFile(f"sorted-{number}-{total}.parquet", total, total * 8, "2018-01-01", job[0].low))
        most = max(most, sum(not file.done for file in files))
    return written / (rounds * rows), most


@pytest.mark.parametrize(("rounds", "rows", "times"), [(20_000, 100, 5), (3_000, 10_000, 3), (500, 200_000, 3)])
def test_a_row_is_written_again_a_few_times_however_long_the_history(rounds: int, rows: int, times: float) -> None:
    average, most = written_again(rounds, rows)
    assert average <= times
    assert most <= 4 * FEW


def test_work_is_cut_to_the_time_there_is_and_the_least_of_it_is_always_done(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app())
    compactor = Compactor(host.engine, ["k"])
    large = [DataFile(f"part-{i}.parquet", 1_000_000, 9_000_000, f"2018-01-{i + 1:02}", i) for i in range(9)]
    todo = jobs(large, FEW)
    assert len(todo) == 9
    given = list(compactor._fitting(todo, time.monotonic() + 3.0))  # pyright: ignore[reportPrivateUsage]
    assert [file.path for job in given for file in job] == ["part-8.parquet"] or len(given) == len(todo)
    assert len(list(compactor._fitting(todo, time.monotonic() - 1.0))) == 1  # pyright: ignore[reportPrivateUsage]


@pytest.mark.slow
def test_readers_during_compaction_see_whole_batches_only(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app("correct", 1))
    store = store_of(host)
    store.compact_after = 2
    store.vacuum_hours = 1
    host.send("S", batches(1)[0])
    ended, wrong, allowed = threading.Event(), list[str](), {60}

    def write() -> None:
        for number, batch in enumerate(batches(30)[1:], 2):
            allowed.add(60 * number)  # before it is visible
            host.send("S", batch)
            store.maintain(5.0)
        ended.set()

    def read(reader: Asker, per: str) -> int:
        last = asked = 0
        while not ended.is_set() or asked < 3:
            answer = reader.query(f"from A within {START - DAY}L, {START + 9 * DAY}L per '{per}' select sum(n) as n")
            found = answer["n"][0].as_py()
            if found not in allowed or found < last:
                wrong.append(f"{per}: {found} events after {last}")
            last, asked = found, asked + 1
        return last

    reader = asker(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        reads = [pool.submit(read, reader, per) for per in ("seconds", "hours", "auto")]
        pool.submit(write).result(timeout=120)
        assert [each.result(timeout=60) for each in reads] == [60 * 30] * 3
    assert not wrong


APP = """define stream S (k string, v long, ts long);
define aggregation A from S select k, sum(v) as total, count() as n group by k aggregate by ts every sec ... hour;"""
KILLED = """
import sys
from pathlib import Path
from tests.stores.test_delta_compaction import APP, batches, store_of
from tests.retrieval.trades import delta_host
host = delta_host(Path(sys.argv[1]), APP)
store = store_of(host)
store.compact_after = 2
done = store.snapshot().number if store.load() else 0
for batch in batches(8)[done:]:
    host.send("S", batch)
    store.maintain(30.0)
"""


def feed(folder: Path, fault: str | None) -> int:
    """Send what is not committed yet in a process of its own, compacting all the time; its exit code."""
    folder.mkdir(exist_ok=True)
    environment = dict(os.environ) | ({"ROLLUP_FAULT": f"maintain.{fault}"} if fault else {})
    command, root = [sys.executable, "-c", KILLED, str(folder)], Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=120, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()[-2000:]
    return done.returncode


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> DeltaStore:
    """What an uninterrupted run leaves."""
    folder = tmp_path_factory.mktemp("whole")
    assert feed(folder, None) == 0
    found = asker(folder).store("A")
    assert isinstance(found, DeltaStore)
    return found


@pytest.mark.parametrize("fault", ["compact.written:2", "compact.swapped:1", "compact.swapped:6"])
@pytest.mark.slow
def test_a_store_killed_while_it_compacts_goes_on_as_if_it_never_was(
    tmp_path: Path, whole: DeltaStore, fault: str
) -> None:
    assert feed(tmp_path / "killed", fault) == -signal.SIGKILL
    assert feed(tmp_path / "killed", None) == 0
    found = asker(tmp_path / "killed").store("A")
    assert isinstance(found, DeltaStore)
    assert content(found) == content(whole)
    assert found.snapshot().number == whole.snapshot().number
