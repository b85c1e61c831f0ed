"""Questions in SiddhiQL put together from names and values: what the console asks, and shows to be copied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from rollup.core.errors import QueryError


@dataclass(frozen=True)
class Question:
    """A question of an aggregation: the buckets of `per` from `start` to before `end` (ms since 1970).

    >>> print(Question("A", 0, 1000, "days", ("AGG_TIMESTAMP", "s")).text)
    from `A` within 0L, 1000L per 'days' select AGG_TIMESTAMP, s
    """

    aggregation: str
    start: int
    end: int
    per: str
    select: tuple[str, ...]
    on: str = ""
    group_by: tuple[str, ...] = ()
    after: str = ""

    @property
    def text(self) -> str:
        """The question as a text."""
        parts = [
            f"from {name(self.aggregation)}",
            f"on {self.on}" if self.on else "",
            f"within {self.start}L, {self.end}L per {literal(self.per)}",
            f"select {', '.join(self.select)}",
            f"group by {', '.join(self.group_by)}" if self.group_by else "",
            self.after,
        ]
        return " ".join(filter(None, parts))

    def where(self, *conditions: str) -> Question:
        """The same question of fewer rows."""
        return replace(self, on=" and ".join(f"({each})" for each in (self.on, *conditions) if each))


def name(text: str) -> str:
    """A name as SiddhiQL has it. Raises QueryError for one that cannot be written.

    >>> name("order total")
    '`order total`'
    """
    if "`" in text or not text:
        raise QueryError(f"{text!r} cannot be written as a name")
    return f"`{text}`"


def literal(value: Any) -> str:
    """A value of a key as a constant of SiddhiQL. Raises QueryError for a text with both kinds of quotes.

    >>> literal("O'Hare"), literal('5" pipe'), literal(7), literal(True), literal(0.5)
    ('"O\\'Hare"', '\\'5" pipe\\'', '7L', 'true', '0.5')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value}L"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        return f"{value:f}" if "." in f"{value:f}" else f"{value:f}.0"
    for quote in ("'", '"'):
        if quote not in str(value):
            return f"{quote}{value}{quote}"
    raise QueryError(f"{value!r} has both kinds of quotes, which no constant of SiddhiQL can hold")


def equals(key: str, value: Any) -> str:
    """The condition that a key has a value; None is a key's value too.

    >>> equals("symbol", "IBM"), equals("symbol", None)
    ("`symbol` == 'IBM'", '`symbol` is null')
    """
    return f"{name(key)} is null" if value is None else f"{name(key)} == {literal(value)}"


def any_of(key: str, values: Sequence[Any]) -> str:
    """The condition that a key has one of some values."""
    return " or ".join(equals(key, value) for value in values)


def none_of(key: str, values: Iterable[Any]) -> str:
    """The condition that a key has none of some values.

    >>> none_of("symbol", ["IBM"]), none_of("symbol", ["IBM", None])
    ("not (`symbol` == 'IBM') or `symbol` is null", "not (`symbol` == 'IBM') and not (`symbol` is null)")
    """
    given = list(values)
    known = [f"not ({equals(key, value)})" for value in given if value is not None]
    if None in given:
        return " and ".join([*known, f"not ({equals(key, None)})"])
    return f"{' and '.join(known)} or {equals(key, None)}"
