"""The job of `tests.statements.jobs` of which something goes back, over a model of Spark: `python -m
tests.statements.going_back FOLDER`.

Prints one JSON object: for each script what differs from what is known by hand; nothing does when all is well. It is a
process of its own, since it forks.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

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


SCRIPTS: dict[str, Callable[[Path], None]] = {
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
}


def differing(folder: Path, script: Callable[[Path], None], per_batch: int) -> dict[str, Any]:
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
    found = _more(folder, per_batch)
    script(folder)
    if code := run(found.path, said):
        obey(found, said.read_text())
        code = run(found.path, said)
    if code:
        return {"code": code, "said": said.read_text()[-2000:]}
    wanted, given = expected(LAST), inside(partial(results, found))
    return {name: [wanted[name], given[name]] for name in wanted if wanted[name] != given[name]}


def _more(folder: Path, per_batch: int) -> Job:
    return job(folder, LAST, per_batch)


def main() -> None:
    """See the module."""
    folder = Path(sys.argv[1])
    warm(folder / "warm")
    chosen = sys.argv[2:] or list(SCRIPTS)
    found = {name: differing(folder / f"{n}", SCRIPTS[name], 3) for n, name in enumerate(chosen)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
