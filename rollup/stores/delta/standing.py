"""What later versions of a table have done to the rows of one: most often nothing.

Our own compaction, and the OPTIMIZE, ZORDER, VACUUM or properties of other programs, make versions with the same rows.
A commit pins a version; the newest one with the same rows stands for it, since its files are those that a VACUUM leaves.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_OURS = "rollup/"
_MAPPED = "delta.columnMapping.mode"
"""The one property that changes what a column of a file is called."""


@dataclass(frozen=True)
class Made:
    """One version of a table as its log tells it: whether it changed rows, by what operation, and whether we made it."""

    version: int
    changes: bool
    operation: str
    ours: bool


def actions_of(path: Path, version: int) -> list[dict[str, Any]]:
    """What the log of a table says that one version has done. Raises OSError where it is gone, ValueError where it is damaged."""
    lines = (path / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]  # not `splitlines`: a key may have any sign


def made_after(path: Path, version: int) -> Iterator[Made]:
    """The versions of a table after one, as long as their log is there."""
    for number in itertools.count(version + 1):
        try:
            actions = actions_of(path, number)
        except (OSError, ValueError):
            return
        yield _made(number, actions)


def _made(number: int, actions: list[dict[str, Any]]) -> Made:
    info: Mapping[str, Any] = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
    operation = str(info.get("operation", "a change"))
    ours = operation == "RESTORE" or any(
        str(each.get("txn", {}).get("appId", "")).startswith(_OURS) for each in actions
    )
    return Made(number, any(map(_changes, actions)), operation, ours)


def _changes(action: Mapping[str, Any]) -> bool:
    """Whether an action changes rows, or may change how they are read."""
    for kind in ("add", "remove"):
        if kind in action:
            return bool(action[kind].get("dataChange", True) or action[kind].get("deletionVector"))
    return _MAPPED in action.get("metaData", {}).get("configuration", {})


def standing(path: Path, version: int) -> int:
    """The newest version of a table that has the same rows as one."""
    for made in made_after(path, version):
        if made.changes:
            break
        version = made.version
    return version


def drop_log(path: Path, needed: int, before: float) -> int:
    """Remove what a table's log has from before a time, and no version from `needed` on is read by; how many files."""
    found = [(int(file.name[:20]), file) for file in (path / "_delta_log").iterdir() if file.name[:20].isdecimal()]
    base = max((number for number, file in found if ".checkpoint" in file.name and number <= needed), default=0)
    over = [file for number, file in found if number < base and file.stat().st_mtime <= before]
    for file in over:
        file.unlink()
    return len(over)
