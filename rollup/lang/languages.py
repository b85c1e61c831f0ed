"""The languages that an app's statements may be written in, each one line: a new one is its folder here, its module in
`rollup/statements/`, and that line. What takes apps apart, reads files beside them and compiles them goes by this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SIDDHIQL = "siddhiql"
"""The language of the app itself; all others stand in blocks, or in files beside it."""


@dataclass(frozen=True)
class Written:
    """How a text of a language is found in an app, or by the name of its file.

    `entry` is the module and the class of its `rollup.statements.component.Language`, imported when an app has such a
    text. `comment` is the pattern of a comment up to the end of its line, and `endings` are those of file names.
    """

    entry: str
    comment: str = r"--[^\n]*"
    endings: tuple[str, ...] = ()


LANGUAGES: dict[str, Written] = {
    SIDDHIQL: Written("rollup.statements.siddhiql:SiddhiQl"),
    "epl": Written("rollup.statements.epl:Epl", r"//[^\n]*", (".epl",)),
    "sql": Written("rollup.statements.sql:Sql", endings=(".sql",)),
    "uql": Written("rollup.statements.uql:Uql", r"//[^\n]*", (".uql",)),
    "streamcruncher": Written(
        "rollup.statements.streamcruncher:StreamCruncher", endings=(".cruncher", ".streamcruncher")
    ),
}


def in_blocks() -> tuple[str, ...]:
    """The languages that a block may be written in."""
    return tuple(name for name in LANGUAGES if name != SIDDHIQL)


def by_ending() -> Mapping[str, str]:
    """The language of a file beside an app, by the ending of its name.

    >>> by_ending()[".epl"]
    'epl'
    """
    return {ending: name for name, language in LANGUAGES.items() for ending in language.endings}
