"""The command line. Until its imports are done, Ctrl-C ends it with a line as it does later, and not with a traceback."""

from __future__ import annotations

import sys
from types import TracebackType


def say_interrupted() -> None:
    """The line that every interrupt ends with."""
    print("rollup: interrupted", file=sys.stderr)


def _interrupted(kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        say_interrupted()
    else:
        sys.__excepthook__(kind, problem, trace)


if sys.excepthook is sys.__excepthook__:  # somebody else's is left alone
    sys.excepthook = _interrupted
