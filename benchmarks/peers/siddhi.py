"""The reference engine itself: Siddhi 5.1.21, tables in memory, avg, sum, min, max, count over sec…year.

Needs a folder with a built copy of the reference harness (``bench.sh``, ``target-5.1.21``), named by
``ROLLUP_SIDDHI_ORACLE``; says so and ends well when there is none. The harness makes its own events of the same
shape (one per millisecond, keys drawn evenly), so no file reading counts against the engine, and warms up first.
The default lengths are those that suit it best: at 100 keys it is fastest over 20 million events (compiled code is
warm), at 10,000 over one million, since its cost grows with the buckets on the heap, which would not hold 20 million.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import emit, skipped

VERSION = "5.1.21"
LENGTHS = {100: (20_000_000, 500_000), 10_000: (1_000_000, 50_000)}  # keys: events measured, events to warm up
MODES = ("single", "array")  # one event a call, or a thousand
RATE = re.compile(
    r"n=(?P<events>\d+): (?P<rate>\d+) events/s wall \((?P<seconds>[\d.]+) s\), (?P<cpu>\d+) events/s per CPU"
)
QUERY = re.compile(r"\| (?P<question>\w+) rows=(?P<rows>\d+) first=(?P<first>[\d.]+)ms best=(?P<best>[\d.]+)ms")


@dataclass(frozen=True)
class Run:
    """One run of the harness: events/s by the wall clock and per CPU second, and its retrieval times (ms)."""

    events: int
    rate: float
    cpu_rate: float
    seconds: float
    questions: tuple[dict[str, str], ...]


def oracle_folder() -> Path | str:
    """The folder of the built harness, or the reason why it cannot be used."""
    named = os.environ.get("ROLLUP_SIDDHI_ORACLE")
    if not named:
        return "ROLLUP_SIDDHI_ORACLE does not name a folder with a built copy of the reference harness"
    missing = [part for part in ("bench.sh", f"target-{VERSION}/classes") if not (Path(named) / part).exists()]
    return f"{named} lacks {', '.join(missing)}: run its build.sh {VERSION}" if missing else Path(named)


def parse(text: str) -> Run | None:
    """What one line of the harness says, or None when the run failed.

    >>> line = "5.1.21 keys=100 buffer=0 mode=single n=3000000: 640000 events/s wall (4.69 s), 1 events/s per CPU"
    >>> parse(line).rate
    640000.0
    """
    found = RATE.search(text)
    if found is None:
        return None
    questions = tuple(match.groupdict() for match in QUERY.finditer(text))
    return Run(int(found["events"]), float(found["rate"]), float(found["cpu"]), float(found["seconds"]), questions)


def run(folder: Path, keys: int, events: int, warm: int, mode: str, limit: int) -> Run | None:
    """Run the harness once; None when it fails or takes longer than ``limit`` seconds."""
    command = ["./bench.sh", VERSION, *map(str, (keys, events, 0, mode, warm))]
    environment = os.environ | {"LIMIT": str(limit)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return parse(done.stdout)


def lengths(keys: int, events: int | None) -> tuple[int, int]:
    """Events to measure and to warm up with."""
    measured, warm = LENGTHS.get(keys, LENGTHS[10_000])
    return (measured, warm) if events is None else (events, min(warm, events // 4))


def main() -> None:
    """Command line of this peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--events", type=int, help="20,000,000 at 100 keys and 1,000,000 at 10,000 unless given")
    parser.add_argument("--limit", type=int, default=240, help="seconds a run may take, its retrievals included")
    options = parser.parse_args()
    folder = oracle_folder()
    if isinstance(folder, str):
        skipped("cascade", "siddhi", folder)
        return
    events, warm = lengths(options.keys, options.events)
    for mode in MODES:
        report(run(folder, options.keys, events, warm, mode, options.limit), options.keys, mode)


def report(result: Run | None, keys: int, mode: str) -> None:
    """Print the rate of a run and its retrieval times, or that it failed."""
    if result is None:
        skipped("cascade", "siddhi", f"the harness failed or ran out of time: {keys} keys, mode {mode}")
        return
    emit(
        "cascade", f"sec…year in memory, {mode}", result.rate, "events/s", temperature="hot", peer="siddhi",
        version=VERSION, keys=keys, events=result.events, seconds=result.seconds, per_cpu_second=result.cpu_rate,
    )  # fmt: skip
    for question in result.questions:
        emit(
            "retrieval", question["question"], float(question["best"]), "ms", temperature="hot", peer="siddhi",
            keys=keys, rows=int(question["rows"]), first_ms=float(question["first"]),
        )  # fmt: skip


if __name__ == "__main__":
    main()
