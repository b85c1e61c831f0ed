"""Whether what a function is given fits it: as many values, and values, lists or functions of the right types."""

from __future__ import annotations

from collections.abc import Sequence

from rollup.engine.expressions import Closure, Expr
from rollup.engine.types import DataType, Kind
from rollup.lang.epl.catalog import loose, problem
from rollup.lang.epl.render import render
from rollup.lang.epl.tree import expressions as ex

_SAID = {
    "number": "a number", "whole": "a whole number", "text": "a text", "list": "a list", "value": "a value",
    "order": "a value that has an order", "of": "a function (x => …)", "test": "a condition (x => x > 1)",
    "numbers": "numbers (x => x.price)", "orders": "values that have an order (x => x.price)",
}  # fmt: skip
_FUNCTIONS = ("of", "test", "numbers", "orders")


def counted(node: ex.Call, wants: str, given: int) -> None:
    """Raise PlanError when these are not as many arguments as a method wants: a word for each, `?` if it may be missing."""
    words = wants.split()
    least = sum(not word.endswith("?") for word in words)
    if not least <= given <= len(words):
        much = str(least) if least == len(words) else f"{least} to {len(words)}"
        raise problem(f"`{node.name}` takes {much} argument(s), not {given}", node)


def fitting(node: ex.Call, wants: str, element: DataType, arguments: Sequence[Expr]) -> None:
    """Raise PlanError when arguments are not what the method wants.

    Without its function a method of numbers, or of an order, is about the elements of the list themselves.
    """
    for n, word in enumerate(word.rstrip("?") for word in wants.split()):
        if n < len(arguments):
            fits = isinstance(arguments[n], Closure) == (word in _FUNCTIONS) and _is(word, arguments[n].type)
        else:
            fits = word not in ("numbers", "orders") or _is(word, element)
        if not fits:
            raise problem(f"`{render(node)}` needs {_SAID[word]}", node)


def _is(word: str, kind: DataType) -> bool:
    if loose(kind):
        return True
    match word:
        case "number" | "numbers":
            return kind.numeric
        case "whole":
            return kind.integral
        case "text":
            return kind.kind is Kind.STRING
        case "test":
            return kind.kind is Kind.BOOL
        case "list":
            return kind.kind is Kind.LIST
        case "order" | "orders":
            return kind.kind not in (Kind.LIST, Kind.ROW)
        case _:
            return True
