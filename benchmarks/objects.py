"""Tables in an object store beside tables in a folder, in one run: catching up, and questions with one client.

``python -m benchmarks.objects`` (``--smoke`` for a tiny run): four batches of 5 M events, then 100 questions of each
shape, in turn. The server is a real one, Versity's gateway over a folder, on the same cores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common import batches, emit, percentile, scratch
from benchmarks.ours import ours_open, ours_query, run_cascade, run_job, run_maintain, write_conf
from benchmarks.questions import questions, siddhi_text, store_events
from benchmarks.timing import timed
from tests.servers.s3 import Versity

BENCH = "objects"
CATCHING_UP, RETRIEVAL = 0.8, 2.5
"""Aims: at least so much of the folder's rate, and at most so many times the folder's median."""
ROWS, RUNS = 1_000_000, 100
Stores = Mapping[str, Mapping[str, str] | None]


def main() -> None:
    """Print the figures of each place, and what the bucket's are of the folder's."""
    events, batch = batches(BENCH, __doc__)
    with scratch("copies") as copies, Versity() as server:
        os.environ |= {**server.environment, "ROLLUP_CACHE_OBJECTS": str(copies)}
        bucket = server.new_bucket()
        rates = dict[str, float]()
        for place, store in _stores(bucket, "caught-up").items():
            with scratch(place) as folder:
                rates[place] = run_cascade(events.files, events.keys, folder, batch, store)["hot_rate"]
            emit(BENCH, f"sec…year into Delta, {place}", rates[place], "events/s", temperature="hot", keys=events.keys)
        ratio = rates["bucket"] / rates["folder"]
        emit(BENCH, "catching up, bucket / folder", ratio, "ratio", ratio=ratio, peer="folder", aim=CATCHING_UP)
        with scratch("asked") as folder:
            _ask(_stores(bucket, "asked"), folder)


def _stores(bucket: str, name: str) -> Stores:
    return {"folder": None, "bucket": {"kind": "delta", "path": f"{bucket}/{name}"}}


def _ask(stores: Stores, folder: Path) -> None:
    opened = dict[str, Any]()
    for place, store in stores.items():
        (folder / place).mkdir()
        conf = write_conf(folder / place, store_events(ROWS).files, store=store)
        run_job(conf, folder / "metrics.jsonl")
        run_maintain(conf)
        opened[place] = ours_open(conf)
    for name, source in questions(ROWS).items():
        asked, spent = [next(source) for _ in range(RUNS)], dict[str, list[float]]()
        for question in asked:
            for place, store in opened.items():
                took = timed(lambda one, store=store: int(ours_query(store, siddhi_text(one)).num_rows), question)
                spent.setdefault(place, []).append(took)
        medians = {place: percentile(found, 50) for place, found in spent.items()}
        for place, found in spent.items():
            emit(
                BENCH, f"{name}, {place}", medians[place], "ms", temperature="hot", p99=percentile(found, 99), runs=RUNS
            )
        times = medians["bucket"] / medians["folder"]
        emit(BENCH, f"{name}, bucket / folder", times, "times", peer="folder", aim=RETRIEVAL)


if __name__ == "__main__":
    main()
