"""How a program stops: a check of the checked build failed, or the program itself refused to go on."""

from __future__ import annotations

from enum import IntEnum

from rollup.engine.compiler.source import Source


class Check(IntEnum):
    """What the checked build looks at."""

    INDEX = 1
    NOTHING = 2
    FREED = 3
    EMPTY = 4
    ABSENT = 5
    COUNT = 6
    OVERFLOW = 7
    ZERO = 8
    SHIFT = 9
    CHANGED = 10


_TEXTS = {
    Check.INDEX: "an index that the container does not have",
    Check.NOTHING: "None where a value is needed",
    Check.FREED: "a reference to a struct that was freed",
    Check.EMPTY: "the first of an empty container",
    Check.ABSENT: "a key or a row that is not in the container",
    Check.COUNT: "a struct is referred to less often than it was counted",
    Check.OVERFLOW: "a whole number beyond 64 bits; write wrapped(...) where that is meant",
    Check.ZERO: "a division by zero",
    Check.SHIFT: "a shift by less than 0 or more than 63 bits",
    Check.CHANGED: "a container that was changed inside a loop over it",
}
REFUSED = 1 << 32
"""Codes of refusals begin here."""


class Fault(Exception):
    """A wrong program. The message begins with the file and the line of the operator."""


class Refused(Exception):
    """The program refused to go on, by `refuse(code)`."""

    def __init__(self, code: int) -> None:
        super().__init__(f"refused with code {code}")
        self.code = code


def failure(source: Source, code: int, where: int) -> Exception:
    """The exception for the words that compiled code left. `where`: the number of the function, and the line in its file."""
    if code >= REFUSED:
        return Refused(code - REFUSED)
    functions = list(source.functions.values())
    function, line = functions[where >> 32], where & 0xFFFFFFFF
    return Fault(f"{function.file}:{line}: {_TEXTS[Check(code)]} (in {function.name})")
