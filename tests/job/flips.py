"""A harness that turns one bit of a file that a job wrote, or damages a file otherwise, and asks: noticed, harmless, or wrong?

`python -m tests.job.flips FOLDER --flips 300 --seed 1` prints a JSON line for each flip that is neither, and at the end how many
there were of each kind. First `rollup verify` looks, in one process for many flips. What it does not name, and some of what
it does, goes on to a run of the job in a copy, several flips at once while they are harmless: a flip is noticed when the job, a question or `rollup verify` says so in words; it
is harmless when all that users see is what a job without it has. Like `tests.job.kills` it runs forks over a model of Spark.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rollup.core.errors import RollupError
from tests.job.jobs import Job
from tests.job.kills import Forked, Round, inside, once, warm

FILES, MORE = 8, 4
AT_ONCE, SAMPLE, TOGETHER = 100, 25, 8
"""Flips that one process looks at; how many of those that `verify` notices one goes on to a run; flips in one run."""
WRITTEN = ("tables", "checkpoint", "counts", "falls")


@dataclass(frozen=True)
class Flip:
    """A bit of a file, below the folder of a job."""

    file: str
    bit: int

    def turn(self, folder: Path) -> None:
        """Turn it, or turn it back."""
        content = bytearray((folder / self.file).read_bytes())
        content[self.bit // 8] ^= 1 << self.bit % 8
        (folder / self.file).write_bytes(content)


@dataclass(frozen=True)
class Damage:
    """What else becomes of files: one is cut, emptied, removed, longer, or has the content of another one of its kind."""

    file: str
    how: str
    other: str

    def turn(self, folder: Path) -> None:
        """Do it."""
        file, content = folder / self.file, (folder / self.file).read_bytes()
        match self.how:
            case "cut":
                file.write_bytes(content[: len(content) // 2])
            case "emptied":
                file.write_bytes(b"")
            case "removed":
                file.unlink()
            case "longer":
                file.write_bytes(content + b"\0more\n")
            case _:
                file.write_bytes((folder / self.other).read_bytes())


HOW = ("cut", "emptied", "removed", "longer", "another's")


def looked(found: Job, some: list[Flip]) -> list[str]:
    """What `rollup verify` makes of each flip: it names the file, is silent, or ends with a traceback."""
    from typer.testing import CliRunner

    from rollup.cli.main import cli

    results = list[str]()
    for one in some:
        one.turn(found.folder)
        checked = CliRunner().invoke(cli, ["verify", str(found.path)])
        one.turn(found.folder)
        if checked.exception is not None and not isinstance(checked.exception, SystemExit | RollupError):
            results.append(f"traceback: {checked.exception!r}")
        else:
            results.append("noticed" if checked.exit_code else "silent")
    return results


def seen(one: Round, found: Job) -> dict[str, Any]:
    """What users see of a job, or the error that a question gives, and what `rollup verify` says."""
    from typer.testing import CliRunner

    from rollup.cli.main import cli

    checked = CliRunner().invoke(cli, ["verify", str(found.path)])
    if checked.exit_code in (1, 2) and isinstance(checked.exception, SystemExit | None):
        return {"all": {}, "verify": checked.exit_code, "said": checked.output}
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


def made(folder: Path, seed: int) -> tuple[Round, Job, dict[str, Any]]:
    """A job that has more to take, and what it would have then."""
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
    return one, base, inside(partial(one.everything, whole))


def damages(folder: Path, number: int, seed: int) -> Counter[str]:
    """Damage so many files, each in a copy of one store; how many ended how."""
    one, base, wanted = made(folder, seed)
    moments, results = random.Random(seed), Counter[str]()
    for _ in range(number):
        file = picked(base.folder, moments).file
        alike = [path for path in (base.folder / file).parent.iterdir() if path.suffix == Path(file).suffix]
        other = moments.choice(sorted(alike)).relative_to(base.folder).as_posix()
        results += tried(one, base, [Damage(file, moments.choice(HOW), other)], wanted, seed)
    return results


def flips(folder: Path, number: int, seed: int) -> Counter[str]:
    """Flip so many bits, each in a copy of one store; how many flips ended how."""
    one, base, wanted = made(folder, seed)
    moments, results = random.Random(seed), Counter[str]()
    for begin in range(0, number, AT_ONCE):
        some = [picked(base.folder, moments) for _ in range(min(AT_ONCE, number - begin))]
        silent = list[Flip]()
        for place, (each, said) in enumerate(zip(some, inside(partial(looked, base, some)), strict=True)):
            if said == "silent":
                silent.append(each)
            elif said == "noticed" and place % SAMPLE:
                results["verified"] += 1
            else:
                sampled = said == "noticed"
                results += tried(one, base, [each], wanted, seed) if sampled else told(seed, [each], "traceback", said)
        for at in range(0, len(silent), TOGETHER):
            results += tried(one, base, silent[at : at + TOGETHER], wanted, seed)
        print(f"{begin + len(some)} of {number}: {dict(results)}", file=sys.stderr, flush=True)
    return results


def tried(one: Round, base: Job, some: Sequence[Flip | Damage], wanted: dict[str, Any], seed: int) -> Counter[str]:
    """Run the job on with flips; where they are not harmless together, with each half of them."""
    shutil.rmtree(one.folder / "trial", ignore_errors=True)
    shutil.copytree(base.folder, one.folder / "trial")
    found = one.job("trial", 2)
    for each in some:
        each.turn(found.folder)
    ended, said = verdict(one, found, wanted)
    if ended != "harmless" and len(some) > 1:
        half = len(some) // 2
        return tried(one, base, some[:half], wanted, seed) + tried(one, base, some[half:], wanted, seed)
    return told(seed, some, ended, said)


def told(seed: int, some: Sequence[Flip | Damage], ended: str, said: str) -> Counter[str]:
    """How flips ended; a line for each that is neither noticed nor harmless."""
    if ended not in ("harmless", "refused", "verified"):
        for each in some:
            print(json.dumps({"seed": seed, **asdict(each), "ended": ended, "said": said}), flush=True)
    return Counter({ended: len(some)})


def picked(folder: Path, moments: random.Random) -> Flip:
    """A bit of any file that the job or Spark wrote: first a kind of file, else most were files of one kind."""
    there = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size]
    ours = [path for path in there if path.relative_to(folder).parts[0] in WRITTEN]
    kind = moments.choice(sorted({_kind(path, folder) for path in ours}))
    file = moments.choice([path for path in ours if _kind(path, folder) == kind])
    return Flip(file.relative_to(folder).as_posix(), moments.randrange(8 * file.stat().st_size))


def _kind(path: Path, folder: Path) -> str:
    """What a file is: the folder of its table or checkpoint, and its ending."""
    parts = path.relative_to(folder).parts
    return "/".join([*(part for part in parts[:-1] if "=" not in part), path.suffix, path.name.split("-")[0][:4]])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument(
        "--damages", type=int, default=0, help="Instead: so many files cut, emptied, removed and so on."
    )
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    warm(statements=True)
    work, number = (damages, given.damages) if given.damages else (flips, given.flips)
    results = work(given.folder, number, given.seed)
    print(json.dumps(results))
    sys.exit(any(results[ended] for ended in ("wrong", "traceback", "hangs")))


if __name__ == "__main__":
    main()
