"""The methods of lists: what they do with values and functions of them, and what their result is. Tables, not code.

A list that is null gives null. Of values that are null no number is made, and they stand before all others in an order.
An element of which a condition knows nothing stays, as in the reference: `where` leaves out what it knows to be false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from itertools import count, takewhile
from operator import add
from typing import Any

from rollup.engine import decimals
from rollup.engine.aggregates import helpers
from rollup.engine.reals import orderable
from rollup.engine.row import comparable

Of = Callable[[Any], Any]


def _kept(values: Any, test: Of) -> list[Any]:
    return [value for value in values if test(value) is not False]


def _chosen(values: Any, test: Of | None) -> Sequence[Any]:
    return values if test is None else _kept(values, test)


def _last(values: Sequence[Any]) -> Any:
    return values[-1] if values else None


def _mapped(values: Any, of: Of | None) -> list[Any]:
    return list(values) if of is None else [of(value) for value in values]


def _known(values: Any, of: Of | None = None) -> list[Any]:
    return [value for value in _mapped(values, of) if value is not None]


def _sorted(values: Any, of: Of | None, down: bool) -> list[Any]:
    keys = _mapped(values, of)
    places = sorted(range(len(keys)), key=lambda n: (keys[n] is not None, orderable(keys[n])), reverse=down)
    return [values[place] for place in places]


def _folded(values: Any, start: Any, step: Callable[[Any, Any], Any]) -> Any:
    for value in values:
        start = step(start, value)
    return start


def _distinct(values: Any, of: Of | None = None) -> list[Any]:
    seen: dict[Any, Any] = {}
    for value in values:
        seen.setdefault(comparable(value if of is None else of(value)), value)
    return list(seen.values())


def _mean(values: Any, of: Of | None = None) -> Any:
    found = _known(values, of)
    return helpers.mean(_total(found), len(found)) if found else None


def _sum(values: Any, of: Of | None = None) -> Any:
    found = _known(values, of)
    return _total(found) if found else None


def _total(values: Any) -> Any:
    return decimals.total(values) if isinstance(values[0], Decimal) else reduce(add, values, 0)


def _best(choose: Callable[..., Any]) -> Callable[..., Any]:
    return lambda values, of=None: choose(_known(values, of), default=None)


def _best_by(choose: Callable[..., Any]) -> Callable[..., Any]:
    def best(values: Any, of: Of) -> Any:
        keyed = [(key, value) for value in values if (key := of(value)) is not None]
        return choose(keyed, key=lambda pair: pair[0])[1] if keyed else None

    return best


def _counts(values: Any, of: Of | None) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    for value in _mapped(values, of):
        helpers.add_counts(counts, {value: 1})
    return counts


def _frequent(choose: Callable[..., Any]) -> Callable[..., Any]:
    def found(values: Any, of: Of | None = None) -> Any:
        counts = _counts(values, of)
        return choose(counts, key=counts.__getitem__) if counts else None

    return found


def _grouped(values: Any, of: Of, what: Of | None = None) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for value in values:
        groups.setdefault(of(value), []).append(value if what is None else what(value))
    return groups


def _map(values: Any, of: Of, what: Of) -> dict[Any, Any]:
    return {of(value): what(value) for value in values}


def _ending(values: Any, test: Of) -> list[Any]:
    """The values from the end backwards as long as the test holds, in their order."""
    return list(takewhile(lambda value: test(value) is not False, reversed(values)))[::-1]


def _both(values: Any, others: Any) -> list[Any]:
    return list(values) if others is None else [value for value in values if value in others]


METHODS: Mapping[str, tuple[Callable[..., Any], str, str]] = {
    "where": (_kept, "list", "test"),
    "take": (lambda values, n: None if n is None else values[: max(n, 0)], "list", "whole"),
    "takelast": (lambda values, n: None if n is None else values[-n:] if n > 0 else [], "list", "whole"),
    "takewhile": (lambda values, test: list(takewhile(lambda value: test(value) is not False, values)), "list", "test"),
    "takewhilelast": (_ending, "list", "test"),
    "countof": (lambda values, test=None: len(_chosen(values, test)), "int", "test?"),
    "anyof": (lambda values, test: any(test(value) is True for value in values), "bool", "test"),
    "allof": (lambda values, test: all(test(value) is True for value in values), "bool", "test"),
    "firstof": (lambda values, test=None: next(iter(_chosen(values, test)), None), "element", "test?"),
    "lastof": (lambda values, test=None: _last(_chosen(values, test)), "element", "test?"),
    "first": (lambda values: next(iter(values), None), "element", ""),
    "last": (_last, "element", ""),
    "countevents": (len, "int", ""),
    "selectfrom": (_known, "mapped", "of"),
    "arrayof": (lambda values, of=None: _mapped(values, of), "mapped", "of?"),
    "sumof": (_sum, "value", "numbers?"),
    "average": (_mean, "mean", "numbers?"),
    "min": (_best(min), "value", "orders?"),
    "max": (_best(max), "value", "orders?"),
    "minby": (_best_by(min), "element", "orders"),
    "maxby": (_best_by(max), "element", "orders"),
    "mostfrequent": (_frequent(max), "value", "of?"),
    "leastfrequent": (_frequent(min), "value", "of?"),
    "orderby": (lambda values, of=None: _sorted(values, of, False), "list", "orders?"),
    "orderbydesc": (lambda values, of=None: _sorted(values, of, True), "list", "orders?"),
    "reverse": (lambda values: list(values)[::-1], "list", ""),
    "distinctof": (_distinct, "list", "of?"),
    "intersect": (_both, "list", "list"),
    "except": (lambda values, others: [value for value in values if value not in (others or ())], "list", "list"),
    "union": (lambda values, others: [*values, *(others or ())], "list", "list"),
    "sequenceequal": (lambda values, others: list(values) == others, "bool", "list"),
    "groupby": (_grouped, "groups", "of of?"),
    "tomap": (_map, "map", "of of"),
    "aggregate": (_folded, "first", "value of"),
    "listevents": (list, "list", ""),
}
"""By name in lower case: the function, what its result is (`_result` in methods.py), what it wants (fitting.py)."""


def placed(function: Callable[..., Any], more: Sequence[int]) -> Callable[..., Any]:
    """A method whose functions also take the place of a value, and the number of values; `more`: how many of these.

    A method calls each of its functions once a value, in their order.
    """

    def call(values: Any, *rest: Any) -> Any:
        given = [_with_place(each, n, len(values)) if n else each for each, n in zip(rest, more, strict=True)]
        return function(values, *given)

    return call


def _with_place(function: Callable[..., Any], more: int, size: int) -> Callable[..., Any]:
    places = count()
    return lambda *values: function(*values, *(next(places), size)[:more])
