"""Functions of lists of which it is said what they do with each element, so that loops can do the same.

The lines are Python over `n`, which counts from 0, `total`, a number that is 0 at first, `found`, a place, and of an element over
`x`, its number, and `j`, its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rollup.engine.expressions import Expr
from rollup.engine.operators import Operator

Counts = Literal["unless false", "if true", "unless true", "if a number"]
"""Which elements count, by what the function that the list's is given says of them; without one, each, or each that is a number."""


@dataclass(frozen=True)
class Walk:
    """`each`: what is done with an element that counts; then there is a `value` if `known`. `adds`: it adds numbers up. `finds`:
    the value is an element, that at a place. `backward`: the last element comes first.

    >>> SUM.each, SUM.known, KEPT.each
    ('n += 1; total += x', 'n > 0', '')
    """

    counts: Counts
    each: str = ""
    value: str = "n"
    known: str = "True"
    adds: bool = False
    finds: bool = False
    backward: bool = False


KEPT = Walk("unless false")
"""A list of the elements that count."""
COUNT = Walk("unless false", "n += 1")
ANY = Walk("if true", "n += 1", "n > 0")
EVERY = Walk("unless true", "n += 1", "n == 0")
SUM = Walk("if a number", "n += 1; total += x", "total", "n > 0", adds=True)
MEAN = Walk("if a number", SUM.each, "mean(total, n)", "n > 0", adds=True)
LEAST = Walk("if a number", "total = x if n == 0 or x < total else total; n += 1", "total", "n > 0")
GREATEST = Walk("if a number", "total = x if n == 0 or x > total else total; n += 1", "total", "n > 0")
FIRST = Walk("unless false", "found = j; break", "found", "found >= 0", finds=True)
LAST = Walk("unless false", FIRST.each, FIRST.value, FIRST.known, finds=True, backward=True)
_BETTER = "if found < 0 or x {} total: total, found = x, j"
LEAST_BY = Walk("if a number", _BETTER.format("<"), FIRST.value, FIRST.known, finds=True)
GREATEST_BY = Walk("if a number", _BETTER.format(">"), FIRST.value, FIRST.known, finds=True)


@dataclass(frozen=True, kw_only=True)
class Enumerating(Operator):
    """A function of a list, and of a function of its elements: null of a list that is null."""

    walk: Walk


NO_VALUES = Operator("no values", lambda: [], strict=False)
"""What stands in place of a list that is null, where that is one of no elements."""
Way = Literal[
    "all",
    "take",
    "take last",
    "reverse",
    "order",
    "order down",
    "distinct",
    "take while",
    "take last while",
    "map",
    "map all",
]
"""How a list is made of another: of the first or the last elements, so many or as long as a function is not false; of all in another
order, or once each; of what a function makes of each, if that is not null or be it null.
"""


@dataclass(frozen=True, kw_only=True)
class Arranging(Operator):
    """A function of a list, and of a number or of a function of its elements, that gives a list: null of a list that is null."""

    way: Way


Seek = Literal["first", "last", "lower", "floor", "ceiling", "higher", "get", "between", "all"]
"""Which elements are sought: those under the first or the last key, under the nearest below or above one, or that one itself where it
is there, under that one, from one to another, or all.
"""
Gives = Literal["event", "events", "key", "there", "count", "keys"]
"""What is given of these: the first of them, all, their key, whether there are any, their number, or that of their keys."""


@dataclass(frozen=True, kw_only=True)
class Ranking(Operator):
    """A question to rows that are in the order of their `key`, an expression over one, `down` or up. It names keys, and of a span of
    keys whether its ends are within; it is null if one of these is.
    """

    seek: Seek
    gives: Gives
    key: Expr
    down: bool
