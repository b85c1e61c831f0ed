"""What all nodes have: a place in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Position(NamedTuple):
    """Line and column, counted from 1; 0, 0 for a node that no text wrote."""

    line: int = 0
    column: int = 0


class Enclosed(Position):
    """The place of an expression that stands in parentheses."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """Base of all nodes."""

    at: Position = field(default=Position(), compare=False, repr=False)
