"""Where in a text something is wrong that was found elsewhere: an open quote, or what DuckDB says of SQL made from it."""

from __future__ import annotations

import itertools
import re

_OPENING = re.compile(r"--|/\*|'|\"")
_CLOSED = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", re.DOTALL)
_LINE = re.compile(r"^LINE \d+: ")
_WORD = re.compile(r"\w+")
_AROUND = (80, 40, 20, 12, 6, 3)


def open_quote(sql: str) -> int | None:
    """The offset of the first quote or comment that does not end.

    >>> open_quote("select 'it''s' -- don't"), open_quote("select 1, 'abc")
    (None, 10)
    """
    at = 0
    while (opening := _OPENING.search(sql, at)) is not None:
        closed = _CLOSED.match(sql, opening.start())
        if closed is None:
            return opening.start()
        at = closed.end()
    return None


def marked(message: str) -> tuple[str, str] | None:
    """What stands before and after the place that a message of DuckDB marks with `^` below a line of SQL.

    >>> marked("Parser Error: …\\n\\nLINE 1: ...select k,, n from x\\n                    ^")
    ('select k,', ', n from x')
    """
    lines = message.splitlines()
    for line, below in itertools.pairwise(lines):
        head = _LINE.match(line)
        if head is not None and below.strip().startswith("^"):
            text, column = line[head.end() :], below.index("^") - head.end()
            return text[:column].removeprefix("..."), text[column:].removesuffix("...")
    return None


def offset_in(sql: str, message: str) -> int | None:
    """The offset in `sql` of the place that DuckDB marks in SQL which has other text for some parts of it.

    None when there is no such place, or it is in those other parts, or cannot be told from other places.

    >>> offset_in("select k,, n from A", "Parser Error: …\\n\\nLINE 1: select k,, n from (select 1\\n                 ^")
    9
    """
    found = marked(message)
    if found is None:
        return None
    before, after = found
    for size in _AROUND:
        for left, right in ((before[-size:], after[:size]), ("", after[:size]), (before[-size:], "")):
            if len(left + right) >= min(size, 6) and sql.count(left + right) == 1:
                return sql.index(left + right) + len(left)
    word = _WORD.match(after)
    places = [] if word is None else [each.start() for each in re.finditer(rf"\b{re.escape(word.group())}\b", sql)]
    return places[0] if len(places) == 1 else None
