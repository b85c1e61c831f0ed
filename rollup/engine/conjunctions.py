"""Conditions as the parts that must all hold."""

from __future__ import annotations

from collections.abc import Sequence

from rollup.engine.expressions import All, Expr


def conjuncts(condition: Expr | None) -> tuple[Expr, ...]:
    """The parts of a condition that must all hold."""
    if condition is None:
        return ()
    if isinstance(condition, All):
        return tuple(part for each in condition.args for part in conjuncts(each))
    return (condition,)


def conjunction(parts: Sequence[Expr]) -> Expr | None:
    """All of some conditions; None of none."""
    return None if not parts else parts[0] if len(parts) == 1 else All(tuple(parts))
