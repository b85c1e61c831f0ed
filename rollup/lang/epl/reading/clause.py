"""A clause that has been read, on its way into the statement it belongs to."""

from __future__ import annotations

from typing import Any, NamedTuple

from lark import Token


class Clause(NamedTuple):
    """A clause by name."""

    name: str
    value: Any


def clauses(parts: list[Any]) -> dict[str, Any]:
    """The clauses among a rule's children."""
    return {part.name: part.value for part in parts if isinstance(part, Clause)}


def others(parts: list[Any]) -> list[Any]:
    """The children that are neither clauses nor keywords nor missing."""
    return [part for part in parts if part is not None and not isinstance(part, (Clause, Token))]
