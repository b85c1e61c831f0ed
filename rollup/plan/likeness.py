"""What is suggested for a name that is not known: what it is called here, what it looks like, or else the known ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

_CALLED = {
    **dict.fromkeys(("mean", "average"), "avg(x)"),
    **dict.fromkeys(("quantile", "approx_percentile", "percentile_cont", "percentile_disc"), "percentile(x, 0.5)"),
    **dict.fromkeys(("stddev_pop", "stddev_samp", "std", "stdev"), "stdDev(x)"),
    **dict.fromkeys(("var", "var_pop", "var_samp"), "variance(x)"),
    **dict.fromkeys(("countdistinct", "count_distinct", "nunique", "distinct"), "distinctCount(x)"),
    "any_value": "any(x)",
    "approx_count_distinct": "hll(x)",
    "if": "ifThenElse(condition, a, b)",
    "nvl": "coalesce(a, b)",
    "ifnull": "coalesce(a, b)",
    "len": "str:length(x)",
}
"""Functions of other languages, by what they are here."""


def near(name: str, known: Iterable[str]) -> str | None:
    """The known name that one looks like, in any case.

    >>> near("totl", ["total", "mean"]), near("x", ["total"])
    ('total', None)
    """
    folded = {each.casefold(): each for each in known}
    close = get_close_matches(name.casefold(), folded, 1, 0.7)
    return folded[close[0]] if close else None


def attribute_hint(name: str, known: Collection[str]) -> str:
    """For an attribute: known ones without a qualifier are enough, and a text may lack its quotes."""
    plain = [each for each in known if "." not in each] or list(known)
    close = near(name, plain)
    if close:
        return f"did you mean {close}?"
    return f"known are {', '.join(sorted(plain)) or 'none here'}; a text stands in quotes"


def function_hint(name: str, functions: Collection[str]) -> str:
    """For a function, which may be meant for an aggregate; those stand only where events are aggregated."""
    from rollup.plan.aggregates import AGGREGATES
    from rollup.plan.composed import COMPOSED

    aggregates = (*AGGREGATES, *COMPOSED)
    if name.lower() in COMPOSED:
        return f"{name} stands in `define aggregation`; a question merges its column, merge(…)"
    if name.lower() in AGGREGATES:
        return f"{name} is an aggregate: it stands in `define aggregation` and in questions"
    named = next((each for each in functions if each.rsplit(":", 1)[-1].lower() == name.lower()), None)
    close = _CALLED.get(name.lower()) or named or near(name, [*aggregates, *functions])
    if close:
        return f"did you mean {close}?"
    return f"aggregates are {', '.join(aggregates)}; functions are {', '.join(functions)}"
