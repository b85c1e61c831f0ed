"""The job of `tests.statements.jobs` of which something goes back, over a model of Spark: `python -m
tests.statements.going_back FOLDER`.

Prints one JSON object: for each script what differs from what is known by hand; nothing does when all is well. It is a
process of its own, since it forks.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rollup.checkpoint.records import RecordFolder
from rollup.conf import load
from rollup.core.errors import RollupError
from rollup.hosts.spark.ownership import agreed
from tests.job.jobs import ROOT, Job
from tests.job.kills import inside
from tests.statements.jobs import expected, job, results
from tests.statements.kills import run, warm

SINKS = ("means", "sums", "rising", "before", "out.db")
FIRST, LAST = 4, 9
"""Files at the time of the backup, and in the end; between them the job has had two more."""


def back(folder: Path, *names: str) -> None:
    """Bring folders and files back as they were at the time of the backup; those that were not there then go."""
    for name in names:
        here, there = folder / name, folder / "backup" / name
        remove(folder, name)
        if there.is_dir():
            shutil.copytree(there, here)
        elif there.exists():
            shutil.copy2(there, here)


def remove(folder: Path, *names: str) -> None:
    """Remove folders and files."""
    for name in names:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def damage(folder: Path) -> None:
    """A disk breaks in the newest record of the statements, and its owner does what the job says."""
    newest = max((folder / "tables/_rollup/_statements").glob("commit-*.json"))
    newest.write_bytes(newest.read_bytes()[:-9])
    assert run(folder / "job.toml", folder / "said.txt") == 1
    assert "remove the newest commit-" in (folder / "said.txt").read_text()
    newest.unlink()


def elsewhere(folder: Path) -> None:
    """The job is given another checkpoint."""
    path = folder / "job.toml"
    path.write_text(path.read_text().replace('checkpoint = "checkpoint"', 'checkpoint = "another"'))


def obey(found: Job, said: str) -> None:
    """What the job says that it needs, done word for word."""
    if command := re.search(r"`rollup recover CONF (--[^`]*)`", said):
        options = ["recover", str(found.path), *command[1].split()]
        subprocess.run([sys.executable, "-m", "rollup.cli.main", *options], cwd=ROOT, check=True, capture_output=True)
    elif name := re.search(r"remove the tables of (\w+) as well", said):
        for path in found.folder.glob(f"tables/**/{name[1]}*"):
            remove(found.folder, str(path.relative_to(found.folder)))


def moved(folder: Path) -> Path:
    """The project is moved, with all that is in it."""
    return folder.rename(folder.with_name(f"{folder.name} moved é%"))


def other_id(folder: Path) -> None:
    """One bit of the id of the query is another one; its owner brings back the file that the job names."""
    metadata = folder / "checkpoint/Trades/metadata"
    right = metadata.read_bytes()
    at = right.index(b'"id"') + 8
    metadata.write_bytes(right[:at] + bytes([right[at] ^ 1]) + right[at + 1 :])
    assert run(folder / "job.toml", folder / "said.txt") == 1
    said = (folder / "said.txt").read_text()
    assert f"{metadata} says that the query of Trades is" in said and "checkpoint/rollup.json that it is" in said
    metadata.write_bytes(right)


SCRIPTS: dict[str, Callable[[Path], Path | None]] = {
    "tables from a backup": lambda folder: back(folder, "tables"),
    "tables and checkpoint from a backup": lambda folder: back(folder, "tables", "checkpoint"),
    "the checkpoint from a backup": lambda folder: back(folder, "checkpoint"),
    "sinks from a backup": lambda folder: back(folder, *SINKS),
    "one sink from a backup": lambda folder: back(folder, "means"),
    "everything from a backup": lambda folder: back(folder, "tables", "checkpoint", *SINKS),
    "tables and sinks from a backup": lambda folder: back(folder, "tables", *SINKS),
    "sinks removed": lambda folder: remove(folder, *SINKS),
    "the newest record removed": damage,
    "the checkpoint removed": lambda folder: remove(folder, "checkpoint"),
    "another checkpoint": elsewhere,
    "the project moved": moved,
    "another id of the query": other_id,
}


def differing(folder: Path, script: Callable[[Path], Path | None], per_batch: int) -> dict[str, Any]:
    """What a job has wrong after a script; batches are cut in another way behind it."""
    said = folder / "said.txt"
    for files in (FIRST, FIRST + 2):
        found = job(folder, files)
        assert run(found.path, said) == 0, said.read_text()
        if files == FIRST:
            for name in ("tables", "checkpoint", *SINKS):
                place = folder / "backup" / name
                place.parent.mkdir(exist_ok=True)
                (shutil.copytree if (folder / name).is_dir() else shutil.copy2)(folder / name, place)
    found = job(folder, LAST, per_batch)
    if place := script(folder):
        found, said = job(place, LAST, per_batch), place / "said.txt"
    if code := run(found.path, said):
        obey(found, said.read_text())
        code = run(found.path, said)
    if code:
        return {"code": code, "said": said.read_text()[-2000:]}
    wanted, given = expected(LAST), inside(partial(results, found))
    return {name: [wanted[name], given[name]] for name in wanted if wanted[name] != given[name]}


class Holding:
    """What holds events of streams, as its newest commit has it."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        self.source = source

    def remark(self, source: Mapping[str, Any]) -> None:
        raise AssertionError("nothing goes back here")


def taken(folder: Path) -> str | None:
    """What a start says of the checkpoint and the tables; None when they are of each other."""
    conf = load(folder / "job.toml")
    records = {name: RecordFolder(conf.tables / "_rollup" / name).newest() for name in ("Agg", "_statements")}
    marked = {name: Holding(record.source) for name, record in records.items() if record is not None}
    try:
        agreed(conf, conf.program(), marked)
    except RollupError as problem:
        return str(problem)
    return None


def flips(folder: Path, places: int) -> dict[str, Any]:
    """One bit of each file of Spark's log is another one, at some places: which of them a start takes, or does not name."""
    found, moments, missed = job(folder, 6), random.Random(3), list[str]()
    assert run(found.path, folder / "said.txt") == 0 and inside(partial(taken, folder)) is None
    log = folder / "checkpoint" / "Trades"
    # Of the last batch's end the log says only that it was.
    newest = max((log / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    files = [f for f in log.rglob("*") if f.is_file() and not f.name.startswith("rollup-") and f != newest]
    for file in files:
        right = file.read_bytes()
        for at in sorted(moments.sample(range(len(right)), min(places, len(right)))):
            file.write_bytes(right[:at] + bytes([right[at] ^ (1 << moments.randrange(8))]) + right[at + 1 :])
            said = inside(partial(taken, folder))
            missed += [] if said and str(file) in said else [f"{file} at {at}: {said}"]
        file.write_bytes(right)
    return {"files": len(files), "missed": missed}


def main() -> None:
    """See the module."""
    folder = Path(sys.argv[1])
    warm(folder / "warm")
    chosen = sys.argv[2:] or list(SCRIPTS)
    if chosen[0] == "flips":
        print(json.dumps(flips(folder / "flips", int(chosen[1]))))
        return
    found = {name: differing(folder / f"{n}", SCRIPTS[name], 3) for n, name in enumerate(chosen)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
