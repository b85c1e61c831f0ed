"""Texts whose parts stand in one another: room for what people and programs write, a sentence for what is deeper."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from rollup.core.errors import SyntaxProblem

_FRAMES = 6000
"""Python's own limit of 1,000 calls in one another is met by 120 comparisons with `or`. This many take 3 MB of a
thread's 8 MB of stack."""
Given = ParamSpec("Given")
Made = TypeVar("Made")


def nests(work: Callable[Given, Made]) -> Callable[Given, Made]:
    """For what reads or plans a text of a user's. It raises SyntaxProblem where the text nests too deeply.

    >>> @nests
    ... def depth(of: list) -> int:
    ...     return 1 + max(map(depth, of), default=0)
    >>> depth([[], [[]]])
    3
    >>> endless = []; endless.append(endless); depth(endless)
    Traceback (most recent call last):
    rollup.core.errors.SyntaxProblem: the text nests too deeply (...)
    """

    @wraps(work)
    def working(*given: Given.args, **named: Given.kwargs) -> Made:
        if sys.getrecursionlimit() < _FRAMES:
            sys.setrecursionlimit(_FRAMES)  # and never lower again: another thread may be in the middle of a text
        try:
            return work(*given, **named)
        except (RecursionError, IndentationError):  # the second is Python's word for code of ours with too many levels
            raise SyntaxProblem(TOO_DEEP, hint=NESTING) from None

    return working


TOO_DEEP = "the text nests too deeply"
NESTING = "a hundred levels are read; a long list of values is one: x in (1, 2, …)"
