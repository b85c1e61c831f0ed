"""Expressions as texts in a loop, of the unknown too: of each the text of its value and that of whether it is known. What a value
is where it is not known does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rollup.engine import operators as op
from rollup.engine.expressions import All, Any_, Call, Const, Expr
from rollup.engine.types import Kind

YES = "True"
_COMPARED = {each.name for each in (op.EQUAL, op.UNEQUAL, op.LESS, op.LESS_EQUAL, op.GREATER, op.GREATER_EQUAL)}
_REACHES: Mapping[str, Callable[[Sequence[int]], int]] = {
    op.ADD.name: sum,
    op.SUBTRACT.name: sum,
    op.NEGATE.name: sum,
    op.MULTIPLY.name: math.prod,
    **{each.name: math.prod if sign == "*" else sum for sign, each in op.WRAPPING.items()},
}
"""How far from zero arithmetic may be, by how far its arguments may."""
_WRAPPING = {each.name for each in op.WRAPPING.values()}
_ASKED = {op.SAME.name: "(not {0})", op.NOT_SAME.name: "{0}", op.IS_NULL.name: "(not {0})", op.NOT_NULL.name: "{0}"}
"""What is asked of whether a value is known."""


@dataclass(frozen=True)
class Term:
    """Texts of value and whether it is known. `reach`: how far from zero a whole number may be; None: it is a double or a truth."""

    value: str
    known: str = YES
    reach: int | None = None
    truth: bool = False


Leaf = Callable[[Expr], Term | None]
"""What stands for what is neither a constant nor made of others; None: it is unknown to the loop."""


def test(expr: Expr, leaf: Leaf) -> str | None:
    """The text of whether an expression is true; None where a loop may not say what the row executor says."""
    found = term(expr, leaf)
    if found is None or not found.truth:
        return None
    return found.value if found.known == YES else f"({found.known} and {found.value})"


def term(expr: Expr, leaf: Leaf) -> Term | None:
    """The term of an expression."""
    match expr:
        case Const():
            return _constant(expr)
        case All(args=args) | Any_(args=args):
            return _together(_terms(args, leaf), isinstance(expr, All))
        case Call() if expr.op.name in _ASKED:
            return _asked(expr, leaf)
        case Call():
            args = _terms(expr.args, leaf)
            return None if args is None else _call(expr, args)
        case _:
            return leaf(expr)


def _terms(exprs: Sequence[Expr], leaf: Leaf) -> list[Term] | None:
    found = [each for expr in exprs if (each := term(expr, leaf)) is not None]
    return found if len(found) == len(exprs) else None


def _constant(expr: Const) -> Term | None:
    value = expr.value
    if isinstance(value, bool):
        return Term(str(value), truth=True)
    if isinstance(value, int) and abs(value) <= op.LONG_MAX:
        return Term(f"({value})", reach=abs(value))
    return Term(f"({value!r})") if isinstance(value, float) and math.isfinite(value) else None


def _together(args: list[Term] | None, every: bool) -> Term | None:
    """Known is also what one part decides: one that is false of all, one that is true of any."""
    if args is None or not all(arg.truth for arg in args):
        return None
    values = [arg.value for arg in args]
    if all(arg.known == YES for arg in args):
        return Term(_joined(values, every), truth=True)
    known = " and ".join(arg.known for arg in args)
    deciding = [f"({arg.known} and {'not ' if every else ''}{arg.value})" for arg in args]
    sure = [f"(not {arg.known} or {arg.value})" if every else f"({arg.known} and {arg.value})" for arg in args]
    return Term(_joined(sure, every), f"({known} or {' or '.join(deciding)})", truth=True)


def _joined(texts: Sequence[str], every: bool) -> str:
    return f"({(' and ' if every else ' or ').join(texts)})"


def _asked(expr: Call, leaf: Leaf) -> Term | None:
    """Whether a value is null; `is` says it beside a null."""
    asked, *nothing = expr.args
    if not all(isinstance(each, Const) and each.value is None for each in nothing):
        return None
    found = term(asked, leaf)
    return None if found is None else Term(_ASKED[expr.op.name].format(found.known), truth=True)


def _call(expr: Call, args: Sequence[Term]) -> Term | None:
    name, known = expr.op.name, _known(args)
    if name == op.NOT.name and args[0].truth:
        return Term(f"(not {args[0].value})", known, truth=True)
    if any(arg.truth for arg in args) or expr.op.compiled is None:
        return _divided(name, args, known)
    text = expr.op.compiled.format(*(arg.value for arg in args))
    if name in _COMPARED:
        return Term(text, known, truth=True) if _alike(args) else None
    if name == op.TO_DOUBLE.name:
        return Term(text, known)
    if name not in _REACHES:
        return None
    if any(arg.reach is None for arg in args):
        return Term(text, known)
    reach = _REACHES[name]([arg.reach or 0 for arg in args])
    if name in _WRAPPING:
        return Term(text, known, min(reach, -op.LONG_MIN))
    return Term(text, known, reach) if reach <= op.LONG_MAX else None


def _divided(name: str, args: Sequence[Term], known: str) -> Term | None:
    """Division of what is a double, or may be made one."""
    if name != op.DIVIDE_IEEE.name or any(arg.truth or (arg.reach or 0) > op.EXACT for arg in args):
        return None
    # Interpreted, only numbers of NumPy divide by zero as the machine does.
    return Term(f"(np.float64({args[0].value}) / np.float64({args[1].value}))", known)


def _known(args: Sequence[Term]) -> str:
    found = list(dict.fromkeys(arg.known for arg in args if arg.known != YES))
    return f"({' and '.join(found)})" if found else YES


def _alike(args: Sequence[Term]) -> bool:
    """Whether numbers compare in a loop as they do exactly: a whole number with a double where it is one."""
    mixed = len({arg.reach is None for arg in args}) > 1
    return not mixed or all((arg.reach or 0) <= op.EXACT for arg in args)


def numeric(kind: Kind) -> bool:
    """Whether values of a kind are numbers in a loop."""
    return kind in (Kind.DOUBLE, Kind.INT, Kind.LONG)


def number(value: str, known: str, kind: Kind) -> Term:
    """A number of a kind that a loop is given."""
    reach = {Kind.INT: -op.INT_MIN, Kind.LONG: -op.LONG_MIN}.get(kind)
    return Term(value, known, reach)
