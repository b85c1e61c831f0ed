"""Whether a value compares with those of a list: with one of them, with all, with any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast

from rollup.engine.operators import Operator, member

Sign = Literal["=", "!=", "<", "<=", ">", ">="]


def _among(value: Any, values: Any) -> bool | None:
    """SQL's IN over a list: unknown when it is not found and something is null."""
    found = list(values or ())
    if not found:
        return False
    return None if value is None else member(value, *found)


AMONG = Operator("in list", _among, strict=False)


@dataclass(frozen=True, kw_only=True)
class Quantifier(Operator):
    """A comparison of a value with those of a list, which must hold for `every` one of them, or for any."""

    sign: Sign
    every: bool


@cache
def quantifier(operator: str, every: bool, several: bool, nothing: bool = False) -> Quantifier:
    """Whether a comparison holds for all values, or for any; `several`: nothing is known of lists without values.

    `any` of an order passes nulls over; `nothing`: the text itself says null, of which an order with `all` knows nothing.
    """
    sign = {"=": "==", "!=": "!="}.get(operator, operator)
    compare: Callable[[Any, Any], bool] = eval(f"lambda a, b: a {sign} b")  # one of six signs of the grammar
    ordered = operator not in ("=", "!=")
    passes_over, unknown = ordered and not every, ordered and every and nothing

    def test(value: Any, values: Any) -> bool | None:
        found = list(values or ())
        if not found:
            return None if several else every
        if unknown:
            return None
        known = [each for each in found if each is not None] if passes_over else []
        answers = [None if value is None or each is None else compare(value, each) for each in known or found]
        if (not every) in answers:
            return not every
        return None if None in answers else every

    name = f"{operator} {'all' if every else 'any'}"
    return Quantifier(name, test, strict=False, sign=cast(Sign, operator), every=every)
