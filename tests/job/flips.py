"""A harness that turns one bit of a file that a job wrote, runs the job on, and asks: noticed, harmless, or wrong?

Tables and files of sinks are left out: they are their readers'. `python -m tests.job.flips FOLDER --flips 300 --seed 1` prints a JSON line for each flip that is neither, and at the end how many
there were of each kind. A flip is noticed when the job, a question or `rollup verify` says so in words; it is harmless when all
that users see is what a job without it has. Like `tests.job.kills` it runs forks over a model of Spark.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from rollup.core.errors import RollupError
from tests.job.jobs import Job
from tests.job.kills import Forked, Round, inside, once, warm

FILES, MORE = 8, 4


def flip(file: Path, moments: random.Random) -> int:
    """Turn one bit of a file; which."""
    content = bytearray(file.read_bytes())
    bit = moments.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)
    return bit


def seen(one: Round, found: Job) -> dict[str, Any]:
    """What users see of a job, or the error that a question gives, and what `rollup verify` says."""
    from typer.testing import CliRunner

    from rollup.cli.main import cli

    checked = CliRunner().invoke(cli, ["verify", str(found.path)])
    try:
        return {"all": one.everything(found), "verify": checked.exit_code, "said": checked.output}
    except RollupError as problem:
        return {"refused": str(problem), "verify": checked.exit_code, "said": checked.output}


def verdict(one: Round, found: Job, wanted: dict[str, Any]) -> tuple[str, str]:
    """What came of a flip, and what was said."""
    run = Forked(partial(once, found.path), found.folder / "said.txt")
    one.wait(lambda: run.poll() is not None, 120)
    code, said = run.poll(), run.end()
    if code is None:
        return "hangs", said
    if code:
        words = any(f"rollup.core.errors.{kind}: " in said for kind in KINDS)
        return ("refused" if words else "traceback"), said[-3000:]
    try:
        result = inside(partial(seen, one, found))
    except AssertionError as problem:
        return "traceback", str(problem)[-3000:]
    if "refused" in result:
        return "refused", result["refused"]
    if result["all"] == wanted:
        return "harmless", ""
    differ = [name for name in wanted if wanted[name] != result["all"].get(name)]
    return ("verified" if result["verify"] else "wrong"), f"{differ} {said[-1500:]} {result['said'][-500:]}"


def kinds(kind: type) -> list[str]:
    """The names of a class of errors and of all below it."""
    return [kind.__name__, *(name for below in kind.__subclasses__() for name in kinds(below))]


KINDS = kinds(RollupError)


def flips(folder: Path, number: int, seed: int) -> Counter[str]:
    """Flip so many bits, each in a copy of one store; how many flips ended how."""
    moments, results = random.Random(seed), Counter[str]()
    one = Round(folder, random.Random(f"{seed}"), files=FILES, statements=True)
    for stream in one.streams:
        (folder / f"later-{stream}").mkdir()
        for file in sorted((folder / stream).glob("*.json"))[-MORE:]:
            shutil.move(file, folder / f"later-{stream}" / file.name)
    base = one.job("base", 2)
    code, said = one.finish(base)
    assert code == 0, said
    for stream in one.streams:
        for file in (folder / f"later-{stream}").iterdir():
            shutil.move(file, folder / stream / file.name)
    whole = one.job("whole", 2)
    code, said = one.finish(whole)
    assert code == 0, said
    wanted = inside(partial(one.everything, whole))
    for _ in range(number):
        shutil.rmtree(folder / "trial", ignore_errors=True)
        shutil.copytree(base.folder, folder / "trial")
        found = one.job("trial", 2)
        there = [path for path in sorted(found.folder.rglob("*")) if path.is_file() and path.stat().st_size]
        ours = [path for path in there if path.relative_to(found.folder).parts[0] in ("tables", "checkpoint")]
        kind = moments.choice(sorted({_kind(path, found.folder) for path in ours}))  # else most are files of one kind
        file = moments.choice([path for path in ours if _kind(path, found.folder) == kind])
        bit = flip(file, moments)
        ended, said = verdict(one, found, wanted)
        results[ended] += 1
        if ended not in ("harmless", "refused", "verified"):
            name = file.relative_to(found.folder).as_posix()
            print(json.dumps({"seed": seed, "file": name, "bit": bit, "ended": ended, "said": said}), flush=True)
    return results


def _kind(path: Path, folder: Path) -> str:
    """What a file is: the folder of its table or checkpoint, and its ending."""
    parts = path.relative_to(folder).parts
    return "/".join([*(part for part in parts[:-1] if "=" not in part), path.suffix, path.name.split("-")[0][:4]])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    warm()
    results = flips(given.folder, given.flips, given.seed)
    print(json.dumps(results))
    sys.exit(any(results[ended] for ended in ("wrong", "traceback", "hangs")))


if __name__ == "__main__":
    main()
