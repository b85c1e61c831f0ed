"""Expressions of SiddhiQL over one event or one answer row, in plain Python; null is None, logic is three-valued."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sqlglot import exp

Lookup = Callable[[exp.Column], Any]
Call = Callable[[exp.Anonymous], Any]


class NotExpressible(Exception):
    """Something that this oracle does not cover."""


class Int(int):
    """A whole number of 32 bits; a plain `int` is one of 64."""


def whole(value: int, *operands: Any) -> int | None:
    """The result of an operation as the wider type of its operands; None where it does not fit."""
    bits = 31 if all(isinstance(each, Int) for each in operands) else 63
    if not -(2**bits) <= value < 2**bits:
        return None
    return Int(value) if bits == 31 else int(value)


def evaluate(node: exp.Expression, lookup: Lookup, call: Call | None = None) -> Any:
    """The value of an expression; `call`, when given, answers function calls first and gives NotImplemented to pass."""
    if isinstance(node, exp.Paren):
        return evaluate(node.this, lookup, call)
    if isinstance(node, exp.Column):
        return lookup(node)
    if isinstance(node, exp.Literal):
        return node.this if node.is_string else _number(node)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Anonymous):
        return _function(node, lookup, call)
    if isinstance(node, (exp.And, exp.Or)):
        return _logic(node, evaluate(node.this, lookup, call), evaluate(node.expression, lookup, call))
    return _operation(node, lookup, call)


def _number(node: exp.Literal) -> int | float:
    kind = str(node.meta.get("type") or "")
    if kind in ("double", "float") or not node.is_int:
        return float(node.this)
    return Int(node.this) if kind == "int" else int(node.this)


def _logic(node: exp.Expression, left: Any, right: Any) -> bool | None:
    decisive = isinstance(node, exp.Or)
    if decisive in (left, right):
        return decisive
    return None if None in (left, right) else not decisive


def _operation(node: exp.Expression, lookup: Lookup, call: Call | None) -> Any:
    if isinstance(node, exp.Neg) and isinstance(node.this.unnest(), exp.Literal):
        return -_number(node.this.unnest())
    left = evaluate(node.this, lookup, call)
    if isinstance(node, exp.Is):
        return left is None
    if isinstance(node, exp.Not):
        return None if left is None else not left
    if isinstance(node, exp.Neg):
        return None if left is None else -left if isinstance(left, float) else whole(-left, left)
    right = evaluate(node.expression, lookup, call)
    if left is None or right is None:
        return None
    found = _BINARY[type(node)](left, right)
    return whole(found, left, right) if isinstance(found, int) and not isinstance(found, bool) else found


def _divide(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a / b


def _modulo(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    return math.fmod(a, b) if isinstance(a, float) or isinstance(b, float) else a - b * _divide(a, b)


_BINARY: dict[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
    exp.Div: _divide,
    exp.Mod: _modulo,
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
}


def _cut(value: Any, kind: type[int]) -> int | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return whole(int(value), kind())


_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda value: _cut(value, Int),
    "long": lambda value: _cut(value, int),
    "double": float,
}
"""Python's `int` cuts a fraction off towards zero, as `convert` does."""


def _function(node: exp.Anonymous, lookup: Lookup, call: Call | None) -> Any:
    found = NotImplemented if call is None else call(node)
    if found is not NotImplemented:
        return found
    values = [evaluate(argument, lookup, call) for argument in node.expressions]
    name = node.name.lower()
    if name == "ifthenelse":
        return values[1] if values[0] else values[2]
    if name in ("coalesce", "default"):
        return next((value for value in values if value is not None), None)
    if name in ("maximum", "minimum"):
        present = [value for value in values if value is not None]
        return (max if name == "maximum" else min)(present, default=None)
    if name in ("cast", "convert") and values[1] in _NUMBERS and not isinstance(values[0], str):
        return None if values[0] is None else _NUMBERS[values[1]](values[0])
    if name in ("math:abs", "str:length"):
        if values[0] is None:
            return None
        found = abs(values[0]) if name == "math:abs" else len(values[0])
        return found if isinstance(found, float) else whole(found, values[0] if name == "math:abs" else Int())
    raise NotExpressible(f"function {node.name}")
