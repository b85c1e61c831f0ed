"""What a text that does not follow the grammar is told: the word, its place, what may stand there, the cure."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

from lark import Lark, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from rollup.core.errors import SyntaxProblem

UNSUPPORTED = {
    "match_recognize": "`match_recognize` is not supported; a pattern says the same: from pattern [every a=A -> b=B]",
    "dataflow": "`create dataflow` is not supported; sources and sinks stand in the app",
    "class": "`create class` is not supported; only expressions can be declared",
    "sql": "a join with a database by `sql:` is not supported; join a named window or a table",
    "method": "a join with a method by `method:` is not supported; join a named window or a table",
    "for": "`for` (grouped delivery) is not supported; every delivery has all rows",
    "measures": "`match_recognize` is not supported; a pattern says the same: from pattern [every a=A -> b=B]",
}
"""Words of the language that are refused by name, each with what to do instead."""
_NAMES = {
    "ID": "a name",
    "STRING": "a text",
    "INTEGER": "a number",
    "$END": "the end",
    "SELECTOR": "istream, rstream, irstream",
    "RATE": "all, first, last, snapshot",
    "UNIT": "a unit of time (sec, min, hours, days, …)",
    "QUANTIFIER": "any, some, all",
    "RELATION": "<, <=, >, >=",
    "NOT_EQUAL": "!=",
    "BITS": "&, |, ^",
    "RETAIN": "retain-union, retain-intersection",
    "PATTERN": "pattern [",
    "NOW": "@now",
    "INCLUSIVE": "@inclusive",
    "AND_WHEN": "and when terminated",
    "AND_DELETE": "and delete",
    "EVERY_DISTINCT": "every-distinct",
    "GROUPING_SETS": "grouping sets",
    "ROLLUP": "rollup(…)",
    "CUBE": "cube(…)",
    "PRIMARY_KEY": "primary key",
    "COMMA_CONTEXT": ", context …",
    "OLD_VIEW": ".win:…",
    "TIMER": "timer:…",
    "ARRAY": "[]",
    "SCHEMA_OPTION": "copyfrom, starttimestamp, endtimestamp",
    "IMPORTED": "a name",
}
_NUMBERS = {"LONG", "FLOAT", "DOUBLE", "HEX"}
_LISTED = 14


def explained(text: str, problem: UnexpectedInput, grammar: Lark) -> SyntaxProblem:
    """The user's message for what the parser met."""
    found, line, column, expected = _place(text, problem)
    word = found.lower()
    for word_there, at in ((word, column), _before(text, line, column)):
        if word_there in UNSUPPORTED:
            return SyntaxProblem(UNSUPPORTED[word_there], line=line, column=at)
    said = f"`{found}`" if found else "end of the text"
    allowed = _allowed(expected, grammar)
    close = get_close_matches(word, [name for name in allowed if name.isalpha()], 1, 0.7)
    if close and close[0] != word:
        return SyntaxProblem(f"unexpected {said}", line=line, column=column, hint=f"did you mean `{close[0]}`?")
    listed = ", ".join(allowed[:_LISTED]) + (" …" if len(allowed) > _LISTED else "")
    hint = f"here may stand: {listed}" if listed else None
    return SyntaxProblem(f"unexpected {said}", line=line, column=column, hint=hint)


def _before(text: str, line: int, column: int) -> tuple[str, int]:
    """The word before a place, and where it stands: a name may have been read where it is a word of the language."""
    found = re.search(r"(\w+)\W*$", text.split("\n")[line - 1][: column - 1])
    return (found[1].lower(), found.start() + 1) if found else ("", column)


def _place(text: str, problem: UnexpectedInput) -> tuple[str, int, int, Collection[str]]:
    if isinstance(problem, UnexpectedToken) and problem.token.type != "$END":
        token = problem.token
        accepted = problem.accepts or problem.expected
        return str(token), token.line or 1, token.column or 1, accepted
    if isinstance(problem, UnexpectedCharacters):
        return text[problem.pos_in_stream or 0], problem.line, problem.column, problem.allowed or ()
    accepted = (problem.accepts or problem.expected) if isinstance(problem, UnexpectedToken) else ()
    body = text.rstrip()
    return "", body.count("\n") + 1, len(body.rsplit("\n", 1)[-1]) + 1, accepted


def _allowed(expected: Collection[str], grammar: Lark) -> list[str]:
    """The terminals as a reader knows them, words before signs."""
    patterns = {terminal.name: terminal.pattern for terminal in grammar.terminals}
    words: set[str] = set()
    for name in set(expected) - _NUMBERS:
        if name in _NAMES:
            words.add(_NAMES[name])
        elif name in patterns and patterns[name].type == "str":
            words.add(patterns[name].value)
        elif name not in patterns:
            words.add(name.lower())
    return sorted(words, key=lambda word: (not word[0].isalpha(), word))
