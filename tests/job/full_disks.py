"""A harness that fills a disk under a job, makes room again, and starts the job as the runbook says.

`python -m tests.job.full_disks FOLDER PLACE …` prints a JSON line a round: what was on the small file system, how much room
was left there, how the job ended and what it said, and in what its tables, sinks and dead letters differ from a plain sum in
Python of the same events. The file system is a real one, mounted, so only root may run it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
from deltalake import DeltaTable

from rollup.stores.postgres.server import PgServer
from tests.job.jobs import SINKS, Job, answers
from tests.job.kills import Forked, Run, Spawned, inside, once, rollup_command, warm

APP = """define stream S (k string, q long, ts long);
define stream Counts (k string, q long);
define stream Falls (k string, q long);
define stream Sums (k string, q long);
@OutOfOrder('correct')
define aggregation A from S select k, sum(q) as total, count() as events group by k aggregate by ts every sec ... hour;
from S select k, q insert into Counts;
from S select k, sum(q) as q group by k insert into Falls;
from S[q < 3] select k, q insert into Sums;
"""
BEGIN, FILES, ROWS = 1_600_001_910_000, 60, 40
MASTER = '[spark]\n"spark.master" = "local[2]"\n"spark.driver.memory" = "1g"\n'


class NotMounted(Exception):
    """This process may not mount a file system."""


@dataclass
class SmallDisk:
    """A file system of so many megabytes; `fill` leaves so many bytes of it, `free` takes that back."""

    path: Path
    megabytes: int

    def fill(self, left: int) -> None:
        """Write until there is no room, then give a little of it back."""
        with suppress(OSError), (self.path / "filler").open("ab", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        with suppress(OSError), (self.path / "filler").open("ab", buffering=0) as file:
            while True:
                file.write(bytes(512))
        size = (self.path / "filler").stat().st_size
        os.truncate(self.path / "filler", max(0, size - left))

    def free(self) -> None:
        """Make room."""
        (self.path / "filler").unlink()


@contextmanager
def mounted(folder: Path, megabytes: int) -> Generator[SmallDisk]:
    """A small disk at a new folder. Raises NotMounted."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        raise NotMounted
    try:
        yield SmallDisk(folder, megabytes)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def write_events(folder: Path, files: int = FILES) -> None:
    """Files of events, with a broken line in each: dead letters are written all the time."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        lines = [json.dumps(dict(zip(("k", "q", "ts"), event, strict=True))) for event in events(number)]
        file = folder / f"{number:04d}.json"
        file.write_text("\n".join([*lines, "{broken " + str(number)]) + "\n")
        os.utime(file, (1_600_000_000 + number, 1_600_000_000 + number))


def events(number: int) -> list[tuple[str, int, int]]:
    """Those of a file: key, quantity, time."""
    ids = range(number * ROWS, (number + 1) * ROWS)
    return [(f"k{i % 5}", i % 7, BEGIN + i * 97 - (9000 if i % 11 == 0 else 0)) for i in ids]


def expected(files: int = FILES) -> dict[str, Any]:
    """What all events come to, by plain Python."""
    found = [event for number in range(files) for event in events(number)]
    wanted: dict[str, Any] = {}
    for level, width in (("seconds", 1000), ("hours", 3_600_000)):
        totals, counts = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
        for k, q, at in found:
            totals[at // width * width, k] += q
            counts[at // width * width, k] += 1
        wanted[level] = sorted([at, k, totals[at, k], counts[at, k]] for at, k in counts)
    rows = [(k, q) for k, q, _ in found]
    running = Counter[str]()
    wanted["Falls"] = sorted([k, running[k]] for k, q, _ in found if running.update({k: q}) is None)
    wanted["Counts"] = sorted(rows)
    wanted["Sums"] = sorted(row for row in rows if row[1] < 3)
    return wanted | {"letters": sorted("{broken " + str(number) for number in range(files))}


def left(job: Job) -> dict[str, Any]:
    """What a job has left, in the form of `expected`."""
    found: dict[str, Any] = {
        level: sorted(map(list, answers(job.conf, "AGG_TIMESTAMP, k, total, events", level, "A")))
        for level in ("seconds", "hours")
    }
    tables = {
        "Counts": DeltaTable(str(job.folder / "counts")).to_pyarrow_table(),
        "Falls": pq.read_table(job.folder / "falls"),
    }
    found |= {name: sorted([row["k"], row["q"]] for row in table.to_pylist()) for name, table in tables.items()}
    with sqlite3.connect(job.folder / "out.db") as database:
        found["Sums"] = sorted(map(list, database.execute("select k, q from sums").fetchall()))
    return found | {"letters": sorted(letter["raw"] for letter in job.letters())}


PLACES = ("store", "checkpoint", "files", "delta", "sqlite", "letters", "spark", "postgres")
"""What is on the small disk: the store's folder, that of the checkpoint, of a sink of each kind, of DEAD_LETTERS, of what Spark
spills, of a PostgreSQL that stores the tables."""


@dataclass
class Round:
    """A job with one of its places on a small disk."""

    folder: Path
    place: str
    disk: SmallDisk
    spark: bool = False
    files: int = FILES
    server: PgServer | None = None
    job: Job = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_events(self.folder / "in", self.files)
        small = {name: self.disk.path if name == self.place else self.folder for name in PLACES}
        sinks = SINKS.format(folder=small["sqlite"])
        for name, kind in (("counts", "delta"), ("falls", "files")):
            sinks = sinks.replace(f'"{name}"', f'"{small[kind] / name}"')
            if small[kind] != self.folder:
                (self.folder / name).symlink_to(small[kind] / name)
        if self.place == "sqlite":
            (self.folder / "out.db").symlink_to(self.disk.path / "out.db")
        tables = small["store"] / "tables"
        tables.mkdir()
        if self.place == "letters":
            (self.disk.path / "letters").mkdir()
            (tables / "DEAD_LETTERS").symlink_to(self.disk.path / "letters")
        more = MASTER
        if self.place == "spark":
            (self.disk.path / "spill").mkdir()
            more += f'"spark.local.dir" = "{self.disk.path / "spill"}"\n'
        store = f'kind = "delta"\npath = "{tables}"'
        if self.server is not None:
            store = f'kind = "sql"\nurl = "{self.server.url}"'
        source = {"kind": "json", "path": "in", "max_files_per_batch": 1}
        self.job = Job(self.folder, source, app=APP, streams=("S",), more=more + sinks, store=store)
        if self.place == "checkpoint":
            (self.disk.path / "checkpoint").mkdir()
            (self.folder / "checkpoint").symlink_to(self.disk.path / "checkpoint")

    def start(self) -> Run:
        """The job to its end, in a process of its own."""
        return Spawned(self.job) if self.spark else Forked(partial(once, self.job.path), self.folder / "said.txt")

    def run(self, batches: int, left_over: int, seconds: float = 120) -> dict[str, Any]:
        """Fill the disk behind so many batches, before the start where there are none, wait for what the job does, make room, let it end, and compare."""
        if not batches:
            self.disk.fill(left_over)
        run = self.start()
        if batches:
            until(lambda: run.poll() is not None or self.done() >= batches, seconds)
            assert run.poll() is None, run.end()
            self.disk.fill(left_over)
        began = time.monotonic()
        until(lambda: run.poll() is not None, seconds)
        code, waited = run.poll(), round(time.monotonic() - began, 1)
        said = run.end()
        at = self.done()
        self.disk.free()
        down = self.server is not None and self.server.pid is None
        if self.server is not None:
            self.server.start()
        again = self.start()
        until(lambda: again.poll() is not None, 2 * seconds)
        ended = again.poll()
        found = {"place": self.place, "left": left_over, "code": code, "waited": waited, "at": at, "again": ended}
        words = again.end()
        found |= {"down": True} if down else {}
        if ended:
            return found | {"said": said[-1500:], "then": words[-3000:]}
        return found | {"differ": self.differ(), "said": said[-1500:]}

    def differ(self) -> list[str]:
        """In what the job's results are others than a plain sum of the events; with them what `verify` finds."""
        wanted, got = expected(self.files), inside(partial(left, self.job))
        differ = [name for name in wanted if json.loads(json.dumps(wanted[name])) != got[name]]
        return differ + inside(lambda: ["verify"] * (rollup_command("verify", str(self.job.path), "--raw") != 0))

    def done(self) -> int:
        """How many batches are done."""
        return sum(1 for _ in (self.folder / "checkpoint" / "S" / "commits").glob("[0-9]*"))


def until(true: Callable[[], bool], seconds: float) -> None:
    """Wait until something is so, or the time is over."""
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)


@contextmanager
def stored(disk: SmallDisk) -> Generator[PgServer]:
    """A PostgreSQL whose data is on a disk, with little room for its log beside."""
    settings = {"max_wal_size": "32MB", "min_wal_size": "32MB", "shared_buffers": "16MB"}
    disk.path.chmod(0o755)
    server = PgServer(disk.path / "pg", settings=settings)
    try:
        yield server.start()
    finally:
        server.stop()


@contextmanager
def on_disk(folder: Path, place: str) -> Generator[tuple[SmallDisk, PgServer | None]]:
    """A disk for a place, and the server that stores the tables where it is that of one. Raises NotMounted."""
    with mounted(folder, 150 if place == "postgres" else 40) as disk:
        if place == "postgres":
            with stored(disk) as server:
                yield disk, server
        else:
            yield disk, None


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("places", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    if not given.spark:
        warm(statements=True)
    moments = random.Random(given.seed)
    for place in given.places:
        for number in range(given.rounds):
            folder = given.folder / f"{place}-{given.seed}-{number}"
            shutil.rmtree(folder, ignore_errors=True)
            left_over, batches = moments.choice((0, 0, 4096, 20_000, 60_000, 200_000)), moments.randint(1, 25)
            # A server's user must reach its folder, so that is not below one of pytest.
            with TemporaryDirectory() as small, on_disk(Path(small) / "small", place) as (disk, server):
                Path(small).chmod(0o755)
                one = Round(folder / "job", place, disk, given.spark, server=server)
                print(json.dumps(one.run(0 if place == "spark" else batches, left_over)), flush=True)
            if not given.keep:
                shutil.rmtree(folder)


if __name__ == "__main__":
    main()
