"""What the C library keeps of freed memory is given back between batches."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rollup.ask import Asker
from rollup.core import columns
from rollup.core.columns import ColumnEngine, Database
from rollup.core.freed import give_back
from rollup.hosts import maintenance
from tests.job.jobs import ROOT, Job
from tests.job.kills import once
from tests.job.soak import megabytes

LIBRARY = ctypes.CDLL(None)


@pytest.mark.skipif(not hasattr(LIBRARY, "malloc_trim"), reason="not the GNU C library")
def test_freed_memory_below_what_is_in_use_goes_back() -> None:
    LIBRARY.malloc.restype, LIBRARY.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    LIBRARY.free.argtypes = [ctypes.c_void_p]
    blocks = [LIBRARY.malloc(8000) for _ in range(20_000)]
    for block in blocks:
        ctypes.memset(block, 1, 8000)
    for block in blocks[:-1]:
        LIBRARY.free(block)
    kept = megabytes()
    assert give_back() and megabytes() < kept - 100
    LIBRARY.free(blocks[-1])


def test_of_files_that_are_read_nothing_is_kept(tmp_path: Path) -> None:
    """A kilobyte a file, until most of the machine's memory is full, was part of a job's growth by the hour."""
    engine = ColumnEngine(threads=1)
    for number in range(20):
        file = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"n": [number]}), file)
        found = engine.run("SELECT n FROM read_parquet($file)", {"file": str(file)})
        assert found["n"].to_pylist() == [number]
    assert engine.count("SELECT SUM(memory_usage_bytes) FROM duckdb_memory() WHERE tag = 'OBJECT_CACHE'") == 0


def test_what_a_database_keeps_of_each_query_goes_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """After some thousand queries the next piece of work has a new database, with the settings of the one before."""
    monkeypatch.setattr(columns, "_MOST", 50)
    engine, seen = ColumnEngine(threads=1), weakref.WeakSet[Database]()
    databases = 0
    engine.confine([str(tmp_path)])
    for _ in range(60):
        with engine.use():
            databases += engine.database not in seen
            seen.add(engine.database)
            assert engine.count("SELECT current_setting('threads')") == 1
            with pytest.raises(duckdb.PermissionException):
                engine.run("SELECT * FROM read_text('pyproject.toml')")
    assert databases > 2 and list(seen) == [engine.database]


def test_a_piece_of_work_has_one_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has made stays, also while pieces of work within it and those of other threads begin and end."""
    monkeypatch.setattr(columns, "_MOST", 1)
    engine = ColumnEngine(threads=1)
    with engine.use():
        engine.connection.execute("CREATE TEMP TABLE made AS SELECT 7 AS n")
        other = threading.Thread(target=lambda: [_one(engine) for _ in range(3)])
        other.start()
        other.join()
        with engine.use():
            assert engine.run("SELECT n FROM made")["n"].to_pylist() == [7]
    with engine.use(), pytest.raises(duckdb.CatalogException):
        engine.count("SELECT n FROM made")


def _one(engine: ColumnEngine) -> None:
    with engine.use():
        engine.count("SELECT 1")


def test_questions_go_on_over_a_new_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rows that threads share and queries that are prepared belong to a database; they are made again in the next one."""
    rows = [{"k": f"k{n % 3}", "q": n, "ts": 1_600_000_000_000 + n * 400} for n in range(500)]
    (tmp_path / "S").mkdir()
    (tmp_path / "S" / "0.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    app = (
        "define stream S (k string, q int, ts long);\n"
        "define aggregation A from S select k, sum(q) as s group by k aggregate by ts every sec, min;"
    )
    job = Job(tmp_path, {"kind": "json", "path": str(tmp_path / "S")}, app=app, streams=("S",))
    once(job.path)
    monkeypatch.setattr(columns, "_MOST", 1)
    asker = Asker(job.conf)
    sql = "SELECT SUM(s) AS s FROM A WITHIN '2020-09-13' PER 'sec'"
    siddhi = "from A within '2020-09-13' per 'min' select sum(s) as s"
    found, databases = list[int](), set[int]()

    def ask() -> None:
        for _ in range(5):
            found.extend(asker.query(text)["s"][0].as_py() for text in (sql, siddhi, sql))
            databases.add(id(asker.engine.database))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [sum(range(500))] * 45 and len(databases) > 1


def test_an_engine_that_is_closed_is_not_closed_again_at_the_end() -> None:
    program = "from rollup.core.columns import ColumnEngine\nengine = ColumnEngine()\nengine.close()"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_job_gives_it_back_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    times = list[None]()
    monkeypatch.setattr(maintenance, "give_back", lambda: times.append(None))
    upkeep = maintenance.Upkeep([])
    for _ in range(200):
        upkeep.after_batch()
    assert len(times) == 3
