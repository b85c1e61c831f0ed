"""Micro-batches for an hour: memory of every process of the job, and the cost of a batch early and late.

    python -m benchmarks.soak [--minutes 60] [--rate 20000] [--trigger "1 second"] [--speed 1]

Prints a JSON line every minute (resident megabytes of the Python driver, the JVM and the Python workers, the median
batch of that minute, the processor time a batch took, which a loaded machine does not change much, and the files of
each table: those of its pinned version, and all in its folder) and one at the end: growth of memory over the second
half, the ratio of late to early batches by both, and the most files of each table in each half. With a `--speed` of
20 the events' own time passes 20 times as fast, so that every batch closes buckets and adds a file to every table.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from deltalake import DeltaTable

from benchmarks.common import ROOT
from rollup.checkpoint.records import RecordFolder

_APP = """define stream Ticks (symbol string, price double, quantity long, ts long);
from Ticks select symbol, price, quantity, (ts - {begin}L) * {speed} + {begin}L as at insert into Trades;
define stream Trades (symbol string, price double, quantity long, at long);
define aggregation TradeAgg from Trades
select symbol, avg(price) as avgPrice, sum(quantity) as total, min(price) as low, max(price) as high, count() as events
group by symbol aggregate by at every sec ... year;
"""


def write_conf(folder: Path, rate: int, trigger: str, speed: int) -> Path:
    """The app and a configuration that makes `rate` events a second, whose own time passes `speed` times as fast."""
    (folder / "app.siddhi").write_text(_APP.format(begin=int(time.time() * 1000), speed=speed))
    conf = folder / "soak.toml"
    conf.write_text(f"""app = "app.siddhi"
checkpoint = "checkpoint"
trigger = "{trigger}"

[sources.Ticks]
kind = "rate"
rows_per_second = {rate}
keys = 100

[store]
kind = "delta"
path = "tables"
""")
    return conf


def resident(job: psutil.Process) -> dict[str, float]:
    """Resident megabytes of the job's processes by what they are."""
    sizes = {"driver": job.memory_info().rss / 1e6, "jvm": 0.0, "workers": 0.0}
    for child in job.children(recursive=True):
        try:
            sizes["jvm" if "java" in child.name() else "workers"] += child.memory_info().rss / 1e6
        except psutil.NoSuchProcess:
            continue
    return {name: round(size) for name, size in sizes.items()}


def processor_seconds(job: psutil.Process) -> float:
    """Processor time of the job's processes since they began."""
    spent = 0.0
    for process in (job, *job.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        spent += times.user + times.system
    return spent


def files(tables: Path) -> dict[str, tuple[int, int]]:
    """Of each table the data files of its newest pinned version, and all that lie in its folder."""
    found: dict[str, tuple[int, int]] = {}
    for home in (tables / "_rollup").glob("*/"):
        record = RecordFolder(home).newest()
        for name, version in {} if record is None else record.versions.items():
            path = tables / f"{home.name}_{name}"
            found[name] = (
                len(DeltaTable(str(path), version=version).file_uris()),
                sum(1 for _ in path.rglob("*.parquet")),
            )
    return found


def batches(metrics: Path, start: int) -> tuple[list[dict[str, Any]], int]:
    """The batches written to the metrics file after byte `start`, and where it ends now."""
    if not metrics.exists():
        return [], start
    with metrics.open() as file:
        file.seek(start)
        lines = file.readlines()
        whole = [line for line in lines if line.endswith("\n")]
        return [json.loads(line) for line in whole], start + sum(map(len, whole))


def run(
    minutes: float, rate: int, every: float = 60.0, trigger: str = "1 second", speed: int = 1
) -> list[dict[str, Any]]:
    """The samples of a soak run, printed as they come."""
    samples: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder, position, events, spent = Path(name), 0, 0, 0.0
        conf, metrics = write_conf(folder, rate, trigger, speed), folder / "metrics.jsonl"
        command = [sys.executable, "-m", "rollup.cli.main", "run", str(conf), "--metrics-json", str(metrics)]
        job = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        end = time.monotonic() + minutes * 60
        try:
            while time.monotonic() < end and job.poll() is None:
                time.sleep(min(every, max(0.1, end - time.monotonic())))
                found, position = batches(metrics, position)
                events += sum(batch["events"] for batch in found)
                seconds = [batch["seconds"] for batch in found if batch["events"]]
                before, spent = spent, processor_seconds(psutil.Process(job.pid))
                sample = {"bench": "soak", "events": events, **resident(psutil.Process(job.pid))}
                sample |= {
                    "batches": len(seconds),
                    "median_batch_s": round(statistics.median(seconds), 3) if seconds else None,
                    "processor_batch_s": round((spent - before) / len(seconds), 3) if seconds else None,
                    "files": files(folder / "tables"),
                }
                samples.append(sample)
                print(json.dumps(sample), flush=True)
        finally:
            job.send_signal(signal.SIGTERM)
            _, said = job.communicate(timeout=60)
        if job.returncode != 0:
            raise SystemExit(f"the job ended with {job.returncode}: {said.decode()[-800:]}")
    return samples


def summary(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Late against early: memory at the end over that half way, the median batch of the last over the first quarter."""
    timed = [s for s in samples if s["median_batch_s"]][1:]  # the first holds the start
    quarter = max(1, len(timed) // 4)

    def growing(name: str) -> float:
        early, late = (statistics.median(s[name] for s in part) for part in (timed[:quarter], timed[-quarter:]))
        return round(late / early, 3)

    half, last = samples[len(samples) // 2], samples[-1]
    growth = {name: round(last[name] / max(half[name], 1), 3) for name in ("driver", "jvm", "workers")}
    return {
        "bench": "soak",
        "what": "late batch / early batch",
        "ratio": growing("median_batch_s"),
        "processor_ratio": growing("processor_batch_s"),
        "memory_end_over_half": growth,
        "most_files_first_half": most_files(samples[: len(samples) // 2]),
        "most_files_second_half": most_files(samples[len(samples) // 2 :]),
    }


def most_files(samples: Sequence[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Of each table the most files that a sample found, pinned and in its folder."""
    names = {name: None for sample in samples for name in sample["files"]}
    pairs = {name: [sample["files"].get(name, (0, 0)) for sample in samples] for name in names}
    return {
        name: (max(pinned for pinned, _ in found), max(there for _, there in found)) for name, found in pairs.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--trigger", default="1 second", help="how often a batch may start")
    parser.add_argument("--speed", type=int, default=1, help="how fast the events' own time passes")
    parser.add_argument("--smoke", action="store_true", help="one minute at a tenth of the rate")
    options = parser.parse_args(arguments)
    minutes, rate = (1.0, options.rate // 10) if options.smoke else (options.minutes, options.rate)
    every = 20 if options.smoke else 60
    print(json.dumps(summary(run(minutes, rate, every, options.trigger, options.speed))))


if __name__ == "__main__":
    main()
