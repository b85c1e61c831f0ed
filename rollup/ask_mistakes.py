"""What a question is told that names what is not there, and one of SQL where DuckDB, which knows no aggregations, refuses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from rollup.plan.aggregation import TIMESTAMP, Aggregation

_TABLE = re.compile(r"Table with name (.+) does not exist!")
_MERGE = re.compile(r"\bfunction (?:with name )?merge\b", re.IGNORECASE)
_COLUMN = re.compile(r'Referenced column "([^"]+)" not found')
_SYNTAX = re.compile(r'syntax error at or near "\'?(\w+)\'?"|(SELECT clause without selection list)')
_EXPLAIN = re.compile(r"\s*explain\b", re.IGNORECASE)
_PER = re.compile(r"\bwithin\b.*\bper\b", re.IGNORECASE | re.DOTALL)
_JOIN = re.compile(
    r"\s*from\s+[\w`.]+(?:\s+as\s+\w+)?\s+(?:(?:left|right|full|inner|outer)\s+)*(?P<join>join)\b", re.IGNORECASE
)
_FILTER = re.compile(
    r"\s*(?:explain\s+)?from\s+(?P<name>\w+|`[^`]+`)\s*(?P<open>\[)(?P<condition>[^\]]+)", re.IGNORECASE
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_FIRST = ("select", "with", "explain", "values", "from")
_CHANGING = ("insert", "update", "delete", "merge", "upsert")


def about(
    sql: str, said: str, aggregations: Mapping[str, Aggregation], kept: Collection[str], streams: Collection[str]
) -> tuple[str, str] | None:
    """Message and hint for DuckDB's complaint; None where its own is the better one."""
    table, missing, syntax = missing_table(said), _COLUMN.search(said), _SYNTAX.search(said)
    if _MERGE.search(said):
        return merge_in_sql()
    if table is not None:
        return without_range(table, aggregations) or unknown(table, aggregations, kept, streams)
    if missing is not None:
        return _column(missing[1], [one for name, one in aggregations.items() if name.casefold() in sql.casefold()])
    if syntax is not None and syntax[2]:
        return "SELECT names no columns", "SELECT * FROM NAME WITHIN '2018-01-** **:**:**' PER 'days'"
    if syntax is not None:
        return _word(sql, syntax[1], aggregations)
    return None


def missing_table(said: str) -> str | None:
    """The table that DuckDB misses by its complaint."""
    found = _TABLE.search(said)
    return None if found is None else found[1].strip('"')


def without_range(name: str, aggregations: Mapping[str, Aggregation]) -> tuple[str, str] | None:
    """Message and hint for a table that there is none of, when it is named as an aggregation or one of its stored tables."""
    for aggregation in aggregations.values():
        if name.casefold() == aggregation.name.casefold():
            return (
                f"{aggregation.name} is an aggregation, and the question says neither a range nor a duration",
                f"{aggregation.name} WITHIN '2018-01-** **:**:**' PER '{aggregation.levels[-1].plural}'",
            )
        for level in aggregation.levels:
            if name.casefold() == aggregation.table(level).casefold():
                return (
                    f"{aggregation.table(level)} is a stored table, which lacks the buckets that are still open",
                    f"{aggregation.name} WITHIN '2018-01-** **:**:**' PER '{level.plural}' has both",
                )
    return None


def merge_in_sql() -> tuple[str, str]:
    """Message and hint for SiddhiQL's `merge(x)` in a text of SQL."""
    return "merge(x) is of SiddhiQL; in SQL the keys that stay are said by PER", "NAME WITHIN … PER 'days by (country)'"


def without_quotes(name: str, kept: Collection[str]) -> tuple[str, str] | None:
    """Message and hint for a table that PostgreSQL misses because it has put a name without quotes into small letters."""
    for each in kept:
        if name == each.lower() != each:
            return f"there is no {name}: a name with capitals stands in double quotes", f'SELECT … FROM "{each}"'
    return None


def of_source(text: str) -> tuple[int, str, str] | None:
    """Place, message and hint for a SiddhiQL question that joins or filters its source, as only statements of an app do.

    >>> of_source("from A as a join t on a.k == t.k within '2018' per 'days'")[1]
    'a question in SiddhiQL is about one aggregation or table, and joins none'
    >>> of_source("from A[k == 'a'] within '2018' per 'days'")[2]
    "from A on k == 'a' within … per …"
    """
    if found := _FILTER.match(text):
        said = "a question chooses its rows by `on`, not by a filter in brackets"
        return found.start("open"), said, f"from {found['name']} on {found['condition'].strip()} within … per …"
    found = _JOIN.match(text)
    if found is None:
        return None
    said = "a question in SiddhiQL is about one aggregation or table, and joins none"
    return found.start("join"), said, "in SQL: SELECT … FROM A WITHIN '2018' PER 'days' a JOIN t ON a.k = t.k"


def of_levels(text: str, name: str) -> tuple[str, str] | None:
    """Message and hint for a SiddhiQL question to a named window or table that only an aggregation can answer."""
    said = f"{name} is a named window or table, whose rows are of no duration"
    if _EXPLAIN.match(text):
        return said, "`explain` is of aggregations: ask without it"
    if _PER.search(_QUOTED.sub("''", text)):
        return said, "leave `within … per …` out"
    return None


def unknown(
    name: str, aggregations: Mapping[str, Aggregation], kept: Collection[str], streams: Collection[str]
) -> tuple[str, str]:
    """Message and hint for a name that cannot be asked as it is; `kept` are the named windows and tables of statements."""
    there = f"aggregations are {', '.join(aggregations) or 'none'}"
    there += f"; named windows and tables are {', '.join(kept)}" if kept else ""
    if name in streams:
        return f"{name} is a stream, of which no rows are kept", f"ask what keeps some: {there}"
    known = {one.casefold(): one for one in (*aggregations, *kept)}
    close = get_close_matches(name.casefold(), known, 1)
    what = "aggregation, named window or table" if kept else "aggregation"
    return f"there is no {what} {name!r}", f"did you mean {known[close[0]]}? {there}" if close else there


def _column(name: str, asked: list[Aggregation]) -> tuple[str, str] | None:
    known = [TIMESTAMP, *dict.fromkeys(output.name for one in asked for output in one.outputs)]
    if not asked:
        return None
    close = get_close_matches(name, known, 1)
    return f"unknown column {name!r}", f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"


def _word(sql: str, word: str, aggregations: Mapping[str, Aggregation]) -> tuple[str, str] | None:
    first = re.match(r"\s*(\w+)", sql)
    if first is not None and first[1].casefold() in _CHANGING:
        return "a question changes nothing", "it is one SELECT, or from … select …"
    if first is not None and first[1].casefold() == word.casefold():
        close = get_close_matches(word.casefold(), _FIRST, 1)
        example = f"from {next(iter(aggregations), 'A')} within '2018-01-** **:**:**' per 'days' select *"
        return (
            f"a question does not begin with {word!r}",
            f"did you mean {close[0].upper()}?" if close else f"e.g. {example}",
        )
    if re.search(rf"\bper\s+'?{re.escape(word)}", sql, re.IGNORECASE) and "within" not in sql.casefold():
        return "WITHIN is missing", "NAME WITHIN '2018-01-** **:**:**' PER 'days'"
    return None
