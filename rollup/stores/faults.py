"""Named points between two side effects, where tests end the process or raise.

`ROLLUP_FAULT=<point>[:<n>]` ends the process with SIGKILL when the point is reached for the n-th time (default 1).
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "batch.begin",
    "commit.begin",
    "commit.rewrite",
    "commit.level",
    "commit.levels",
    "commit.ledger",
    "commit.open",
    "commit.record",
    "maintain.compact",
    "maintain.compact.written",
    "maintain.compact.swapped",
    "batch.end",
)
OF_STATEMENTS = (
    "statements.begin",
    "statements.rows",
    "statements.record",
    "statements.fed",
    "statements.sink",
)
"""Points that only an app with statements passes."""
_reached: dict[str, int] = {}


def point(name: str) -> None:
    """Pass a point; does nothing unless the environment asks for a fault here."""
    wanted = os.environ.get("ROLLUP_FAULT")
    if wanted is None:
        return
    where, _, count = wanted.partition(":")
    if where == name:
        _reached[name] = _reached.get(name, 0) + 1
        if _reached[name] == int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)
