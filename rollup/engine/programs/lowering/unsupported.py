"""Why a statement does not run as a program: values with a code, from one registry."""

from __future__ import annotations

from dataclasses import dataclass

FEATURES = {
    "statement": "a statement of this kind",
    "input": "what the statement reads",
    "window": "the window",
    "value": "a value of this type",
    "function": "a function",
    "aggregate": "an aggregate function",
    "groups": "levels of groups",
    "rate": "the output rate",
    "output": "what is done to an output as a whole",
    "removed": "the remove stream alone",
    "lookup": "sub-queries and look-ups",
    "context": "a context",
    "join": "a join",
    "store": "a table, or a store in a context",
    "action": "an action",
    "circle": "a stream that goes on into itself",
}
"""By code, what is not supported."""


@dataclass(frozen=True)
class Unsupported:
    """A reason: its code, the detail of it, and the statement."""

    code: str
    detail: str = ""
    place: str = ""

    @property
    def feature(self) -> str:
        """What is not supported."""
        return FEATURES[self.code]

    def __str__(self) -> str:
        return f"{self.place}: {self.feature}{f' ({self.detail})' if self.detail else ''}"


class NotLowered(Exception):
    """A plan that has no program yet."""

    def __init__(self, code: str, detail: str = "") -> None:
        assert code in FEATURES
        super().__init__(code, detail)
        self.code, self.detail = code, detail
