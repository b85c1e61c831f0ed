"""The job of `tests.statements.jobs` killed, over a model of Spark: `python -m tests.statements.kills FOLDER [--random N]`.

Prints one JSON object: for each point between two side effects, or each round of random moments, what differs from what
is known by hand; nothing does when all is well. It is a process of its own, since it forks.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import random
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from rollup.lang.epl.reader import read_module
from rollup.lang.siddhi.statements.reader import read_app
from tests.job.kills import Forked, inside, once
from tests.statements.jobs import expected, job, results

FILES = 5
IN_SHARDS = "statements.shards"
POINTS = ("statements.record", "statements.fed", "statements.sink")
MORE = ("statements.begin", "statements.rows", "commit.begin", "commit.record", "batch.end")


def run(path: Path, said: Path, fault: str | None = None, kill_after: float | None = None) -> int:
    """One run to its end, or to where it is killed; its exit code."""

    def action() -> None:
        if fault is not None:
            os.environ["ROLLUP_FAULT"] = fault
        once(path)

    running, until = Forked(action, said), None if kill_after is None else time.monotonic() + kill_after
    while (code := running.poll()) is None:
        if until is not None and time.monotonic() > until:
            running.end()
            return -9
        time.sleep(0.01)
    return code


def differing(
    folder: Path,
    faults: list[str | None],
    moments: random.Random | None = None,
    kills: int = 0,
    shards: int | None = None,
) -> Any:
    """What a job has wrong after some kills and a run to its end."""
    found, said, codes = job(folder, FILES, shards=shards), folder / "said.txt", list[int]()
    for fault in faults:
        codes.append(run(found.path, said, fault))
    for _ in range(kills):
        assert moments is not None
        codes.append(run(found.path, said, kill_after=moments.uniform(0.1, 3)))
    last = run(found.path, said)
    if last:
        return {"code": last, "said": said.read_text()[-3000:]}
    if any(code != -9 for code in codes[: len(faults)]):
        return {"not reached": dict(zip(map(str, faults), codes, strict=False))}
    wanted, given = expected(FILES), inside(partial(results, found))
    return {name: [wanted[name], given[name]] for name in wanted if wanted[name] != given[name]}


def warm(folder: Path) -> None:
    """Import here what the job imports, and make its grammars, so that forks need not."""
    names = folder / "names.json"

    def work() -> None:
        once(job(folder, 1).path)
        names.write_text(json.dumps(sorted(sys.modules)))

    running = Forked(work, folder.parent / "warm.txt")
    while running.poll() is None:
        time.sleep(0.01)
    assert running.poll() == 0, running.end()
    for name in json.loads(names.read_text()):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    read_module("select * from S")
    read_app("define stream S (k string); from S select k insert into T")


def main() -> None:
    """See the module."""
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--random", type=int, default=0)
    options.add_argument("--counts", type=int, nargs="+", default=[2])
    options.add_argument("--all", action="store_true")
    options.add_argument("--shards", type=int)
    given = options.parse_args()
    warm(given.folder / "warm")
    found, number = dict[str, Any](), 0
    points = POINTS if given.shards is None else (IN_SHARDS, "statements.record")
    for point in dict.fromkeys((*points, *POINTS, *MORE)) if given.all else points:
        for count in given.counts:
            number += 1
            found[f"{point}:{count}"] = differing(given.folder / f"{number}", [f"{point}:{count}"], shards=given.shards)
    moments = random.Random(7)
    for _ in range(given.random):
        number += 1
        found[f"random {number}"] = differing(given.folder / f"{number}", [], moments, 5, given.shards)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
