"""A harness that lets a job take hours of events in minutes, and says how much memory it had meanwhile.

`python -m tests.job.soak FOLDER --hours 24` prints a JSON line for each hour of events: how many batches there were, and the
megabytes that the process holds. Each batch is a minute: aggregations, statements of every language and three sinks take it,
and old rows are removed. Spark is a model (`tests.job.model_spark`), so all that grows is ours.

`--trace` says more of each hour: what is in use, by Python and by everything that asks the C library, what that library
keeps free, and the lines whose objects have grown most since the hour before. It takes twice as long.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import shutil
import threading
import time
import tracemalloc
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from tests.job.jobs import SINKS, Job
from tests.job.kills import once

BEGIN, EVENTS, KEYS = 1_600_000_020_000, 30, 7
APP = """define stream S (k string, q int, v double, ts long);
define stream Late (k string, q int);
define stream Rows (k string, v double);
define stream Left (k string, q int);
@OutOfOrder('correct')
@purge(enable='true', interval='1 min', @retentionPeriod(sec='10 min', min='24 hours', hours='all'))
define aggregation A from S select k, sum(v) as s, count() as c, max(q) as most group by k aggregate by ts every sec, min, hour;
define aggregation B from S[q > 3] select avg(v) as m, distinctCount(k) as d aggregate by ts every sec ... year;
define window Last (k string, q int) time(5 min);
from S select k, q insert into Last;
from S#window.timeBatch(1 min) select k, sum(q) as q group by k insert into Counts;
from every a=S[q > 8] -> b=S[k == a.k and q < 2] within 30 sec select a.k as k, b.q as q insert into Falls;
@lang('epl') { insert into Late select a.k as k, a.q as q from pattern [every a=S(q=9) -> (timer:interval(20 sec) and not S(k=a.k))]; }
@lang('sql', into='Sums') { SELECT STREAM k, SUM(q) AS q FROM S GROUP BY HOP(rowtime, INTERVAL '10' SECOND, INTERVAL '1' MINUTE), k }
@lang('uql') { from S group by k window slide 1 minutes advance every 20 seconds based on rowtime aggregate sum(v) as v append k, v to Rows }
@lang('streamcruncher', into='Left') { select k, q from S (partition by k store last 30 seconds) as w where w.$row_status is dead; }
"""


def job_of(folder: Path, hours: float) -> Job:
    """A job over so many hours of events, a file a minute."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "S").mkdir(parents=True)
    moments = Random(1)
    for minute in range(int(hours * 60)):
        times = sorted(BEGIN + minute * 60_000 + moments.randrange(60_000) for _ in range(EVENTS))
        rows = [
            {"k": f"k{moments.randrange(KEYS)}", "q": moments.randrange(10), "v": at % 97 / 4, "ts": at} for at in times
        ]
        file = folder / "S" / f"{minute:06d}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(file, (1_600_000_000 + minute, 1_600_000_000 + minute))
    source = {"kind": "json", "path": str(folder / "S"), "max_files_per_batch": 1}
    return Job(folder, source, app=APP, streams=("S",), more=SINKS.format(folder=folder))


def megabytes() -> float:
    """What this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


class _Malloc(ctypes.Structure):
    """What `mallinfo2` says, in bytes: `uordblks` are in use, `fordblks` free but kept, `hblkhd` in maps of their own."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]  # fmt: skip


class Trace:
    """What has grown from one hour to the next."""

    def __init__(self) -> None:
        tracemalloc.start(1)
        self._before = tracemalloc.take_snapshot()
        self._malloc = ctypes.CDLL(None).mallinfo2
        self._malloc.restype = _Malloc

    def hour(self) -> dict[str, Any]:
        """Megabytes by who keeps them, and the lines that keep most more than an hour ago, in kilobytes."""
        gc.collect()
        malloc, now = self._malloc(), tracemalloc.take_snapshot()
        grown = now.compare_to(self._before, "lineno")
        self._before = now
        return {
            "python": round(tracemalloc.get_traced_memory()[0] / (1 << 20), 1),
            "malloc": round((malloc.uordblks + malloc.hblkhd) / (1 << 20), 1),
            "free": round(malloc.fordblks / (1 << 20), 1),
            "arrow": round(pa.total_allocated_bytes() / (1 << 20), 1),
            "threads": threading.active_count(),
            "grown": {f"{each.traceback[0].filename.rpartition('/rollup/')[2]}:{each.traceback[0].lineno}":
                      each.size_diff >> 10 for each in grown[:8]},
        }  # fmt: skip


def watch(folder: Path, stop: threading.Event, trace: bool) -> None:
    """A line for each hour of events."""
    tracing = Trace() if trace else None
    hour, began = 0, time.monotonic()
    while not stop.wait(0.2):
        done = (
            max((int(path.name) for path in (folder / "checkpoint" / "S" / "commits").glob("[0-9]*")), default=-1) + 1
        )
        if done >= (hour + 1) * 60:
            hour = done // 60
            found = {
                "hours": hour,
                "batches": done,
                "megabytes": round(megabytes()),
                "seconds": round(time.monotonic() - began),
            }
            found |= {} if tracing is None else tracing.hour()
            print(json.dumps(found), flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--trace", action="store_true")
    given = parser.parse_args()
    job, stop = job_of(given.folder, given.hours), threading.Event()
    watching = threading.Thread(target=watch, args=(given.folder, stop, given.trace), daemon=True)
    watching.start()
    once(job.path)
    time.sleep(1)
    stop.set()
    watching.join()


if __name__ == "__main__":
    main()
