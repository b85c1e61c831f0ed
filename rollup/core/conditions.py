"""Conditions of SQL as trees."""

from __future__ import annotations

from sqlglot import exp


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition that must all hold, without the parentheses around them.

    >>> from sqlglot import parse_one
    >>> [part.sql() for part in conjuncts(parse_one("a AND ((b OR c) AND (d))"))]
    ['a', 'b OR c', 'd']
    """
    if condition is None:
        return []
    bare = condition.unnest()
    return [part for side in bare.flatten() for part in conjuncts(side)] if isinstance(bare, exp.And) else [bare]
