"""A harness that lets a job take hours of events in minutes, and says how much memory it had meanwhile.

`python -m tests.job.soak FOLDER --hours 24` prints a JSON line for each hour of events: how many batches there were, and the
megabytes that the process holds. Each batch is a minute: aggregations, statements of every language and three sinks take it,
and old rows are removed. Spark is a model (`tests.job.model_spark`), so all that grows is ours.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import threading
import time
from pathlib import Path
from random import Random

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


def watch(folder: Path, stop: threading.Event) -> None:
    """A line for each hour of events."""
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
            print(json.dumps(found), flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hours", type=float, default=24)
    given = parser.parse_args()
    job, stop = job_of(given.folder, given.hours), threading.Event()
    watching = threading.Thread(target=watch, args=(given.folder, stop), daemon=True)
    watching.start()
    once(job.path)
    time.sleep(1)
    stop.set()
    watching.join()


if __name__ == "__main__":
    main()
