"""What all benchmarks share: JSON lines, timing, machine description, and generated events.

A result line has at least ``bench``, ``what``, ``value`` and ``unit``; ``temperature`` is ``cold`` (start-up and first
use included) or ``hot``; a comparison adds ``ratio`` and ``peer`` (ours divided by theirs: above 1 we are faster).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FIRST_MS = 1_514_764_800_000  # 2018-01-01 00:00:00 UTC
FILE_ROWS = 1_000_000
SMOKE_EVENTS = 200_000
THREADS = 2
SEED = 2018

Line = dict[str, Any]

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is measured would compile every module anew in each process


def bench_events(smoke: bool = False) -> int:
    """Number of events a run uses: ``ROLLUP_BENCH_EVENTS``, 20 million by default, 200,000 for a smoke run."""
    return SMOKE_EVENTS if smoke else int(os.environ.get("ROLLUP_BENCH_EVENTS", "20000000"))


def cache_dir(name: str = "") -> Path:
    """Folder for generated data and scratch stores, ``build/bench`` unless ``ROLLUP_BENCH_CACHE`` names another."""
    base = Path(os.environ.get("ROLLUP_BENCH_CACHE", ROOT / "build" / "bench"))
    base.mkdir(parents=True, exist_ok=True)
    (base / ".gitignore").write_text("*\n")  # generated data stays out of git wherever the folder is
    folder = base / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """An empty folder for one run, removed afterwards."""
    folder = cache_dir("scratch") / f"{name}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def emit(bench: str, what: str, value: float | None, unit: str, **extra: Any) -> Line:
    """Print one result, with the machine's load of the last minute, as a JSON line on standard output; returns it."""
    line: Line = {"bench": bench, "what": what, "value": rounded(value), "unit": unit}
    line |= {name: rounded(item) for name, item in extra.items()}
    line["load_1m"] = round(os.getloadavg()[0], 2)  # a figure taken on a busy machine shows that it was
    print(json.dumps(line), flush=True)
    return line


def rounded(value: Any) -> Any:
    """A float at four significant digits, or whole above 10,000; anything else unchanged."""
    if not isinstance(value, float) or not math.isfinite(value) or value == 0:
        return value
    return round(value) if abs(value) >= 10_000 else float(f"{value:.4g}")


def skipped(bench: str, peer: str, reason: str) -> Line:
    """Print that a peer did not run, and why; a skip is never silent."""
    line: Line = {"bench": bench, "peer": peer, "skipped": reason}
    print(json.dumps(line), flush=True)
    return line


def machine(bench: str) -> Line:
    """Print what the figures were measured on: processor, cores, memory, load of the last minute, versions."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    line: Line = {
        "bench": bench,
        "what": "machine",
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
        "load_1m": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "duckdb": version("duckdb"),
    }
    print(json.dumps(line), flush=True)
    return line


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    names = [row for row in info.read_text().splitlines() if row.startswith("model name")] if info.exists() else []
    return names[0].split(":", 1)[1].strip() if names else platform.processor()


class Stopwatch:
    """Seconds since it was made, or since the last lap."""

    def __init__(self) -> None:
        self.started = self._lap = time.perf_counter()

    def lap(self) -> float:
        """Seconds since the last lap; starts the next one."""
        now = time.perf_counter()
        seconds, self._lap = now - self._lap, now
        return seconds

    def total(self) -> float:
        """Seconds since the watch was made."""
        return time.perf_counter() - self.started


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least ``percent`` of the values do not exceed (nearest rank).

    >>> percentile([4.0, 1.0, 3.0, 2.0], 50)
    2.0
    """
    if not values:
        raise ValueError("percentile of no values")
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def run_module(module: str, *arguments: object, timeout: float = 3600) -> list[Line]:
    """Run ``python -m module`` in a process of its own, pass its JSON lines through and return them.

    A peer gets its own process because two column engines in one may clash, and so that its memory ends with it.
    A process that fails becomes a line with ``error`` and the end of what it said.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return [_failed(module, f"no end after {timeout:.0f} s")]
    lines = [json.loads(row) for row in done.stdout.splitlines() if row.startswith("{")]
    for line in lines:
        print(json.dumps(line), flush=True)
    return lines if done.returncode == 0 else [*lines, _failed(module, _said(done.stderr))]


def _said(errors: str) -> str:
    """The end of what a process said, without the frames of Java's stack traces."""
    return "\n".join(line for line in errors.splitlines() if not line.lstrip().startswith("at "))[-1500:]


def _failed(module: str, reason: str) -> Line:
    line: Line = {"what": module, "error": reason}
    print(json.dumps(line), flush=True)
    return line


def value_of(lines: Sequence[Line], temperature: str) -> float | None:
    """The rate (unit ``events/s``) at that temperature among a peer's lines, the best when there are several."""
    rates = [
        line["value"] for line in lines if line.get("unit") == "events/s" and line.get("temperature") == temperature
    ]
    return max(rates, default=None)


@dataclass(frozen=True)
class Events:
    """Generated events: Parquet files with ``symbol``, ``price``, ``quantity`` and ``ts`` (epoch milliseconds)."""

    files: tuple[Path, ...]
    keys: int
    events: int
    file_rows: int = FILE_ROWS


def event_files(keys: int, events: int) -> Events:
    """One event per millisecond from 2018-01-01 UTC, keys ``k0`` … drawn evenly, in files of a million rows.

    Fewer than four million events come in four files, so that there are always files after the first.
    Generated once and kept; the same arguments give the same rows on every machine.
    """
    file_rows = min(FILE_ROWS, math.ceil(events / 4))
    folder = cache_dir(f"events-{events}-{keys}")
    files = tuple(folder / f"part-{index:04d}.parquet" for index in range(math.ceil(events / file_rows)))
    for index, file in enumerate(files):
        first, last = index * file_rows, min(events, (index + 1) * file_rows)
        write_parquet(file, _event_rows(keys, first, last))
    return Events(files, keys, events, file_rows)


def _event_rows(keys: int, first: int, last: int) -> str:
    return f"""
        SELECT 'k' || (hash(i, {SEED}) % {keys}) AS symbol, 10 + (hash(i, {SEED + 1}) % 1024) / 8.0 AS price,
               (hash(i, {SEED + 2}) % 128)::BIGINT AS quantity, ({FIRST_MS} + i)::BIGINT AS ts
        FROM range({first}, {last}) AS numbers(i)"""


def write_parquet(file: Path, rows: str) -> None:
    """Write the rows of a SQL query as snappy Parquet unless the file is there; never leaves half a file."""
    if file.exists():
        return
    import duckdb  # only here: the process of a peer that clashes with it must not load it for files already there

    half = file.with_suffix(".half")
    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.execute(f"COPY ({rows}) TO '{half}' (FORMAT parquet, COMPRESSION snappy)")
    half.rename(file)


def batches(bench: str, description: str | None, number: int = 4) -> tuple[Events, int]:
    """The events that a benchmark's command line asks for, and the files of one of so many batches; prints the machine.

    A batch has a quarter of `bench_events`, however many there are.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--smoke", action="store_true", help="200,000 events: proves that it runs")
    parser.add_argument("--keys", type=int, default=100)
    options = parser.parse_args()
    machine(bench)
    events = event_files(options.keys, bench_events(options.smoke) * number // 4)
    return events, max(1, len(events.files) // number)
