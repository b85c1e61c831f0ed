"""What a start costs: `rollup run --once` over a few events, process start to end, beside a bare streaming query.

``python -m benchmarks.cold`` (``--smoke`` for a moment): the two take turns, so that both have the machine as it is.
Then both under `spark-submit`; the first batch of a process beside its later ones; `rollup --help` and a question in a
new process, beside the import of DuckDB alone. ``--only`` takes some of these parts.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import ROOT, SMOKE_EVENTS, Stopwatch, emit, event_files, machine, scratch
from benchmarks.ours import OursFailed, run_job, write_conf
from rollup.archive import QUICK, java_options
from rollup.java import java_home

BENCH = "cold"
AIM = 1 / 0.75
"""A bare query's time in ours."""
FIRST_BATCH = 3.0
"""Hot batches that the first may last."""
QUESTION = "from TradeAgg within '2018-**-** **:**:**' per 'days' select symbol, total"
_EVENT = '{{"symbol": "k{0}", "price": 1.5, "quantity": 2, "ts": {1}}}\n'
_BARE = "benchmarks.peers.spark_bare"


@dataclass(frozen=True)
class Seconds:
    """By the clock, and of the processor, of a process and of those it waited for: Java is not among them."""

    clock: float
    processor: float


def ran(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Seconds:
    """How long a command takes. Raises OursFailed when it fails."""
    before, watch = os.times(), Stopwatch()
    full = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    done = subprocess.run(command, cwd=ROOT, env=full, capture_output=True, text=True, check=False)
    clock, after = watch.total(), os.times()
    if done.returncode != 0:
        raise OursFailed(done.stderr[-1500:])
    own = after.children_user + after.children_system - before.children_user - before.children_system
    return Seconds(clock, own)


def rollup(*words: str) -> list[str]:
    """The command as its script in the environment runs it."""
    return [sys.executable, "-c", "from rollup.cli.main import entry; entry()", *words]


def events(folder: Path) -> Path:
    """Seven events in a file of a folder."""
    folder.mkdir()
    file = folder / "events.json"
    file.write_text("".join(_EVENT.format(key % 2, 1_515_110_450_000 + 1000 * key) for key in range(7)))
    return file


def by_turns(what: str, ours: Callable[[Path], Seconds], bare: Callable[[Path], Seconds], turns: int) -> None:
    """Our job and the bare query one after the other, each time over the same seven events and from nothing."""
    with scratch("cold") as folder:
        file, times = events(folder / "in"), list[tuple[Seconds, Seconds]]()
        for turn in range(turns):
            own = folder / f"run-{turn}"
            own.mkdir()
            conf = write_conf(own, [file], kind="json")
            times.append((ours(conf), bare(own)))
    told(f"{what}, seven events", [each.clock for each, _ in times])
    told(f"{what}: a bare streaming query", [each.clock for _, each in times], peer="spark")
    ratio = statistics.median(theirs.clock for _, theirs in times) / statistics.median(own.clock for own, _ in times)
    emit(BENCH, f"{what}: bare / ours", ratio, "ratio", ratio=ratio, peer="spark", aim=AIM)


def command(turns: int) -> None:
    """`rollup run --once`."""
    by_turns(
        "rollup run --once",
        lambda conf: ran(rollup("run", str(conf), "--once")),
        lambda folder: ran([sys.executable, "-m", _BARE, str(folder.parent / "in"), str(folder / "bare")]),
        turns,
    )


def submitted(turns: int) -> None:
    """`spark-submit jobs/aggregate.py`, told of the archive as docs/deployment.md says, and the bare query's script."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    submit = [str(Path(spec.origin).parent / "bin" / "spark-submit"), "--master", "local[*]"]
    environment = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    archive = ["--driver-java-options", f"{QUICK} {java_options()}"]
    job, bare = str(ROOT / "jobs" / "aggregate.py"), str(ROOT / "benchmarks" / "peers" / "spark_bare.py")
    by_turns(
        "spark-submit",
        lambda conf: ran([*submit, *archive, job, "--conf", str(conf), "--once"], environment),
        lambda folder: ran([*submit, bare, str(folder.parent / "in"), str(folder / "bare")], environment),
        turns,
    )


def first_batch(number: int, turns: int) -> None:
    """The first batch of a process beside the later ones, of a million events of 100 keys each, from Parquet."""
    found = event_files(100, number)
    firsts, later = list[float](), list[float]()
    for _ in range(turns):
        with scratch("cold-first") as folder:
            run_job(write_conf(folder, found.files, batch_files=1), metrics := folder / "metrics.jsonl")
            rows = [json.loads(row) for row in metrics.read_text().splitlines()]
        seconds = [row["seconds"] for row in rows if row["events"]]
        firsts.append(seconds[0])
        later += seconds[2:]
    of = {"events": found.file_rows, "processes": turns}
    hot = statistics.median(later)
    emit(BENCH, "the first batch of a process", statistics.median(firsts), "s", temperature="cold", **of)
    emit(BENCH, "a later batch", hot, "s", temperature="hot", **of)
    emit(BENCH, "first / later batch", statistics.median(firsts) / hot, "ratio", aim_most=FIRST_BATCH, **of)


def short(again: int) -> None:
    """Commands that start no Spark."""
    with scratch("cold-short") as folder:
        conf = str(write_conf(folder, [events(folder / "in")], kind="json"))
        ran(rollup("run", conf, "--once"))
        commands = {
            "rollup --help": rollup("--help"),
            "a first question": rollup("query", conf, QUESTION),
            "import duckdb": [sys.executable, "-c", "import duckdb"],
        }
        for what, words in commands.items():
            found = [ran(words) for _ in range(again)]
            processor = statistics.median(one.processor for one in found)
            told(what, [one.clock for one in found], processor=processor)


def told(what: str, seconds: Sequence[float], **more: float | str) -> None:
    """Print the median and the least of a command's runs."""
    emit(BENCH, what, statistics.median(seconds), "s", temperature="cold", least=min(seconds), **more)


def main() -> int:
    """Command line; exit code 1 when one of the commands failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="each once: proves that it runs")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=["run", "submit", "batch", "short"])
    options = parser.parse_args()
    machine(BENCH)
    turns = 1 if options.smoke else options.turns
    parts: Mapping[str, Callable[[], None]] = {
        "run": lambda: command(turns),
        "submit": lambda: submitted(turns),
        "batch": lambda: first_batch(SMOKE_EVENTS if options.smoke else 6_000_000, min(turns, 3)),
        "short": lambda: short(1 if options.smoke else 10),
    }
    try:
        for name in options.only or parts:
            parts[name]()
    except OursFailed as error:
        emit(BENCH, "rollup", None, "s", error=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
