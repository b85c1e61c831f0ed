"""What the C library keeps of freed memory is given back between batches."""

from __future__ import annotations

import ctypes

import pytest

from rollup.core.freed import give_back
from rollup.hosts import maintenance
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


def test_a_job_gives_it_back_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    times = list[None]()
    monkeypatch.setattr(maintenance, "give_back", lambda: times.append(None))
    upkeep = maintenance.Upkeep([])
    for _ in range(200):
        upkeep.after_batch()
    assert len(times) == 3
