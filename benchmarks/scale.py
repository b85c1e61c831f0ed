"""One batch too large for a driver: 10 million partial rows (a million keys, ten seconds), the step in shards.

Run as ``python -m benchmarks.scale``: JSON lines with the time of the batch and the greatest resident memory of the
driver's JVM, the driver's Python and the Python workers. ``--host driver`` runs the same in the driver, to compare.
The JVM's heap is limited to 4 GiB; in local mode it is executor as well.
"""

from __future__ import annotations

import argparse
import json
import resource
import threading
from pathlib import Path

from benchmarks.common import FIRST_MS, SMOKE_EVENTS, Stopwatch, cache_dir, emit, machine, scratch, write_parquet
from benchmarks.ours import AGGREGATION, write_conf

BENCH = "scale"
SECONDS, FILES = 10, 20
HEAP = "4g"


class Memory:
    """Watches this process, the JVM and the Python workers it starts; the peaks in GiB."""

    def __init__(self) -> None:
        self.jvm = self.workers = self.worker = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> Memory:
        """Watch no longer."""
        self._end.set()
        self._thread.join()
        return self

    @property
    def driver(self) -> float:
        """The peak of this process."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    def _watch(self) -> None:
        import psutil

        me = psutil.Process()
        while not self._end.wait(0.1):
            workers: list[float] = []
            for child in me.children(recursive=True):
                try:
                    resident = (
                        child.memory_full_info().pss / 2**30
                        if "python" in child.name()
                        else child.memory_info().rss / 2**30
                    )
                    if "java" in child.name():
                        self.jvm = max(self.jvm, resident)
                    else:
                        workers.append(resident)
                except (psutil.NoSuchProcess, psutil.AccessDenied):
                    continue
            self.workers, self.worker = max(self.workers, sum(workers)), max([self.worker, *workers])


def event_files(keys: int) -> Path:
    """An event a key and second, in order of time; a file has one second of some of the keys."""
    folder, parts = cache_dir(f"scale-{keys}"), FILES // SECONDS
    for index in range(FILES):
        second, first = index // parts, index % parts * (keys // parts)
        rows = f"""
            SELECT 'k' || LPAD(CAST({first} + i AS VARCHAR), 8, '0') AS symbol, (i % 1024) / 8.0 AS price,
                   i % 128 AS quantity, {FIRST_MS} + 1000 * {second} + i % 1000 AS ts
            FROM range({keys // parts}) AS numbers(i)"""
        write_parquet(folder / f"part-{index:04d}.parquet", rows)
    return folder


def run_job(keys: int, host: str) -> None:
    """One run of the job over all files in one batch."""
    from deltalake import DeltaTable

    from rollup.conf import load
    from rollup.hosts.reporting.progress import Reporter
    from rollup.hosts.spark.driver import SparkHost

    files = event_files(keys)
    with scratch(f"scale-{host}") as folder:
        conf = write_conf(folder, [files / "part-0000.parquet"], FILES)
        conf.write_text(
            conf.read_text() + f'\n[cascade]\nhost = "{host}"\n\n[spark]\n"spark.driver.memory" = "{HEAP}"\n'
        )
        memory, watch = Memory(), Stopwatch()
        job = SparkHost(load(conf), reporter=Reporter(folder / "metrics.jsonl", terminal=False))
        started = watch.lap()
        job.run(once=True)
        memory.stop()
        batch = sum(json.loads(line)["seconds"] for line in (folder / "metrics.jsonl").read_text().splitlines())
        pipeline = job.pipelines[AGGREGATION]
        opened = {level.plural: rows for level, rows in pipeline.state.open_rows.items()}
        table = DeltaTable(str(folder / "store" / f"{AGGREGATION}_SECONDS"))
        stored = sum(table.get_add_actions(flatten=True)["num_records"].to_pylist())
        assert stored + opened["seconds"] == keys * SECONDS, "every partial row is in the table or open"
        about = {
            "host": host,
            "keys": keys,
            "partial_rows": keys * SECONDS,
            "stored": stored,
            "open_rows": opened,
            "start_seconds": started,
        }
        emit(BENCH, "batch", batch, "s", **about)
        emit(BENCH, "rate", keys * SECONDS / batch, "rows/s", host=host)
        for what in ("jvm", "driver", "workers", "worker"):
            emit(BENCH, f"peak {what}", getattr(memory, what), "GiB", host=host)
        emit(BENCH, "peak driver in all", memory.jvm + memory.driver, "GiB", host=host, heap=HEAP)
        job.spark.stop()


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", choices=["auto", "driver", "shards"], default="shards")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--smoke", action="store_true", help="a small run that only proves that it runs")
    arguments = parser.parse_args()
    machine(BENCH)
    run_job(SMOKE_EVENTS // SECONDS if arguments.smoke else arguments.keys, arguments.host)


if __name__ == "__main__":
    main()
