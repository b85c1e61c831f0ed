"""Names in DuckDB's SQL: a name of a user's may have any character, so none stands in a text as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def quoted(name: str, table: str = "") -> str:
    """A name in double quotes, in which any character may stand; `table` is an alias of our own.

    >>> quoted("it's", "r")
    'r."it\\'s"'
    """
    escaped = '"' + name.replace('"', '""') + '"'
    return f"{table}.{escaped}" if table else escaped


def same(names: Iterable[str], left: str, right: str) -> str:
    """The condition that two rows have equal values in these columns, nulls among them.

    >>> same(["k"], "a", "b")
    'a."k" IS NOT DISTINCT FROM b."k"'
    """
    return " AND ".join(f"{quoted(name, left)} IS NOT DISTINCT FROM {quoted(name, right)}" for name in names)


def alike(names: Sequence[str]) -> list[str]:
    """The names that differ from another one by case alone, which SQL does not tell apart.

    >>> alike(["a", "b", "A"])
    ['a', 'A']
    """
    folded = [name.lower() for name in names]
    return [name for name in names if folded.count(name.lower()) > 1]
