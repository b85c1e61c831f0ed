"""What the C library keeps of freed memory is given back between batches."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rollup.core.columns import ColumnEngine
from rollup.core.freed import give_back
from rollup.hosts import maintenance
from tests.job.jobs import ROOT
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
