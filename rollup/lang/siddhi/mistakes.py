"""What a SiddhiQL text that does not follow the grammar is told: the word, its place, and the cure.

The parser knows which tokens may come next. A reader wants to know what to write instead. So frequent mistakes are known
by their word, and a misspelt keyword by its likeness to one that may stand there. Only the rest is a list of what may
come.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import Any

from lark import Lark, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.exceptions import LarkError

from rollup.core.errors import SyntaxProblem

_NAMES = {
    "ID": "a name",
    "STRING": "a text",
    "$END": "the end",
    "INTEGER": "a whole number",
    "UNIT": "a unit of time such as `sec`",
    "LAST": "`last`",
    "AND": "`and`",
    "OR": "`or`",
}
_STARTS = {"ID", "STRING", "INTEGER", "LONG", "FLOAT", "DOUBLE", "TRUE", "FALSE", "NULL", "LPAR", "MINUS"}
_COMPARES = {"EQUALITY", "COMPARE", "LESS", "MORE", "IS", "IN", "NOT", "BETWEEN", "LIKE"}
_OPERATORS = {*_COMPARES, "PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "AND", "OR"}
_LISTED = 8
_ORDER = "the order is: from A [on …] within … per … [fill(…)] [select …] [group by …] [having …] [order by …] [limit …] [offset …]"
_LEVELS = "levels are sec ... year, or a list such as sec, min, hour"
_COMMENT = "a comment is -- to the end of the line, or /* … */"
_WORDS = {
    "where": "a condition stands in brackets after a stream, S[v > 1], and after `on` in a question, from A on v > 1 within …",
    "create": "streams and aggregations are made by `define stream` and `define aggregation`",
    "groupby": "write `group by`, two words",
    "orderby": "write `order by`, two words",
    "sort": "write `order by`",
    "into": "write `insert into T`",
    "output": "answers of an aggregation leave at once; a rate is of queries over streams",
    "to": f"a range has three dots; {_LEVELS}",
    "=": "write == to compare",
    "<>": "write != for unequal",
    "&": "write `and`",
    "|": "write `or`",
    "!": "write `not (…)`",
    "//": _COMMENT,
    "..": "a range of levels has three dots: sec ... year",
}
"""Words and signs of other languages, each with what stands for it here."""
_OF_STATEMENTS = ("every", "sort", "to", "#", "create", "output")
_SIGNS_OF_STATEMENTS = {
    "in": "`in` asks a table: (T.k == k) in T",
    "within": "`within` ends a pattern or a sequence, every e1=A -> e2=B within 5 sec; a join has the times of its windows, "
    "and one that asks an aggregation stands outside of partitions",
}
"""As `_WORDS`, where a statement has the word too; those of `_OF_STATEMENTS` are left to what may stand there."""
_CLAUSES = ("from", "on", "within", "per", "fill", "select", "group", "having", "order", "limit", "offset")


Cure = Callable[[str, str, str, Collection[str], Collection[str]], str | None]
"""What to write instead; None where nothing better is known than a list of what may stand there.

The arguments are the word that was found, the text before it, the text from it on, the names of the tokens that may
stand there, and the keywords among them.
"""


def explained(text: str, problem: UnexpectedInput, grammar: Lark) -> SyntaxProblem:
    """The user's message for what the parser met."""
    return told(text, problem, grammar, _cure)


def told(text: str, problem: UnexpectedInput, grammar: Lark, cure: Cure) -> SyntaxProblem:
    """A message for what a parser met: the word, its place, and its cure or else what may stand there."""
    place = _place(text, problem)
    found = _word(text, place)
    before = text[:place].rstrip()
    line, column = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
    if not found and (problem.line or 0) > 0:
        line, column = problem.line, problem.column  # of the last word, which lacks what follows it
    accepted = _accepted(problem)
    keywords = {
        each.pattern.value for each in grammar.terminals if each.name in accepted and each.pattern.type == "str"
    }
    hint = (
        _doubled(found, text[:place])
        or _of_another_script(text, place)
        or cure(found, before, text[place:], accepted, {word.lower() for word in keywords})
        or _expected(accepted, grammar)
    )
    shown = repr(found) if found else "end of the text"
    return SyntaxProblem(f"unexpected {shown}", line=line, column=column, hint=hint)


def _place(text: str, problem: UnexpectedInput) -> int:
    """The first character that does not fit; the end of the text when it ends too early."""
    if isinstance(problem, UnexpectedToken) and problem.token.type != "$END":
        return problem.token.start_pos or 0
    if isinstance(problem, UnexpectedCharacters):
        return problem.pos_in_stream or 0
    return len(text.rstrip()) if text.strip() else 0


def _word(text: str, place: int) -> str:
    found = re.match(r"'[^']*'|\"[^\"]*\"|\w+|//|<>|\.{2,3}|\S", text[place:])
    return found[0] if found else ""


def _accepted(problem: UnexpectedInput) -> set[str]:
    """Names of the tokens that may really come, not only those that some state of the parser would read."""
    parser: Any = getattr(problem, "interactive_parser", None)
    try:
        return set(parser.accepts())
    except (AttributeError, LarkError):
        return set(getattr(problem, "expected", None) or getattr(problem, "allowed", None) or ())


def cure_of_statement(
    found: str, before: str, rest: str, accepted: Collection[str], keywords: Collection[str]
) -> str | None:
    """Of a statement over windows and patterns, where more words have a meaning than in a declaration of rollups."""
    word, last = found.lower(), _last(before)
    return (
        _quoted(found, before)
        or _SIGNS_OF_STATEMENTS.get(word)
        or _unclosed(word, before, accepted)
        or (_known(word, last, rest) if word not in _OF_STATEMENTS else None)
        or _likeness(word, keywords)
    )


def _last(before: str) -> str:
    return (re.findall(r"\w+|\S", before) or [""])[-1].lower()


def _cure(found: str, before: str, rest: str, accepted: Collection[str], keywords: Collection[str]) -> str | None:
    word, last = found.lower(), _last(before)
    return (
        _quoted(found, before)
        or _unclosed(word, before, accepted)
        or _about_definition(before)
        or _known(word, last, rest)
        or _likeness(word, keywords)
        or _clause(word, before)
        or _shape(found, last, before, accepted)
    )


def _doubled(found: str, before: str) -> str | None:
    """Two quotes of SQL are no quote within a text here: they end it and begin another one."""
    if len(found) < 2 or found[0] not in "'\"" or not before.endswith(found[0]):
        return None
    if found[0] == "'":
        return 'a text with a single quote stands in double ones: "it\'s"'
    return "a text with a double quote stands in single ones: 'a \"b\"'"


def _of_another_script(text: str, place: int) -> str | None:
    """A name with letters that no bare name has."""
    begin = place - len(re.findall(r"\w*\Z", text[:place])[0])
    name = re.split(r"[\s!-/:-@\[-^`{-~]", text[begin:], maxsplit=1)[0]
    if text[place : place + 1].isascii() or not name.isidentifier():
        return None
    return f"a name with letters beyond a to z stands in backticks: `{name}`"


def _quoted(found: str, before: str) -> str | None:
    """A text that was never closed swallows the next one's opening quote."""
    if found in ("'", '"') or before.count("'") % 2 or before.count('"') % 2:
        return (
            f"the text that begins here has no closing {found}"
            if found in ("'", '"')
            else "a text before has no closing quote"
        )
    odd = re.search(r"'[^']*\b(within|per|select)\b[^']*'$", before, re.IGNORECASE)
    return f"the text {odd[0]!r} took in what follows it: a closing quote is missing" if odd else None


DEFINED = "stream", "table", "window", "trigger", "aggregation"
DEFINITIONS = ", ".join(f"`define {each}`" for each in DEFINED)


def _about_definition(before: str) -> str | None:
    """`define` and a word that defines nothing here."""
    found = re.search(r"\bdefine\s+(\w+)\s+\w+[^;]*$", before, re.IGNORECASE)
    if found is None or found[1].lower() in DEFINED:
        return None
    close = get_close_matches(found[1].lower(), DEFINED, 1, 0.7)
    if close:
        return f"did you mean `define {close[0]}`?"
    what = "`define function` is not supported" if found[1].lower() == "function" else f"nothing is called {found[1]}"
    return f"{what}; known are {DEFINITIONS}"


def _known(word: str, last: str, rest: str) -> str | None:
    if word == ">" and last == "<":
        return _WORDS["<>"]
    if word == "#":
        return (
            "a window cannot stand here: aggregations keep every level by themselves"
            if last.isidentifier() and "window" in rest
            else _COMMENT
        )
    if last == "every" and word.isdigit():
        return f"levels have no number: {_LEVELS}"
    if last == "insert":
        expires = word in ("all", "expired")
        return f"{'an answer of an aggregation does not expire: ' if expires else ''}write `insert into T`"
    if last in ("group", "order"):
        return f"write `{last} by`"
    if last == "aggregate":
        return "write `aggregate by <attribute> every …`"
    if word == "every":
        return "write `aggregate by <attribute> every …`, or `aggregate every …` for the time of arrival"
    return _WORDS.get(word)


def _likeness(word: str, keywords: Collection[str]) -> str | None:
    close = get_close_matches(word, keywords, 1, 0.7) if word.isidentifier() else []
    return f"did you mean `{close[0]}`?" if close and close[0] != word else None


def _clause(word: str, before: str) -> str | None:
    """A clause that comes too late, in a question or in a definition."""
    if word not in _CLAUSES:
        return None
    if "define" in before.lower().rsplit(";", 1)[-1]:
        return "the order is: define aggregation A from S[…] select … [group by …] aggregate by … every …"
    return "one question at a time" if word == "from" else _ORDER


def _shape(found: str, last: str, before: str, accepted: Collection[str]) -> str | None:
    """What is missing, from what may come instead."""
    if found == ";" and before.endswith(")") and re.search(r"@\w+\s*\([^;]*\)$", before):
        return "an annotation stands before what it is about, without a semicolon"
    if found == "-" and re.search(r"(define\s+\w+|from|into)\s+\w+$", before, re.IGNORECASE):
        return "a name with other signs than letters, digits and _ stands in backquotes: `My-Stream`"
    if found[:1].isdigit() and re.search(r"define\s+\w+$", before, re.IGNORECASE):
        return "a name begins with a letter, or stands in backquotes"
    if found[:1].isdigit() and re.search(r"@\w+\s*\($", before):
        return f"values of annotations are texts: '{found}'"
    if re.search(r"\bevery\s+\w+(\s*\.\.\.\s*\w+)?$", before, re.IGNORECASE) or (
        "EVERY" in accepted and len(accepted) == 1
    ):
        return _LEVELS
    if found == "," and re.search(r"\bwithin\b[^,]*,[^,]*$", before, re.IGNORECASE):
        return "`within` takes one pattern, or a start and an end"
    if found[:1] in "'\"" and re.search(r"\bwithin\s+('[^']*'|\"[^\"]*\")$", before, re.IGNORECASE):
        return "a comma stands between the start and the end of `within`"
    if "AS" in accepted and found.isidentifier() and last != "as":
        return f"a new name of a column stands after `as`: … as {found}"
    return None


def _unclosed(word: str, before: str, accepted: Collection[str]) -> str | None:
    """Brackets that do not fit, and attributes that are not written as they are."""
    if re.search(r"define\s+stream\s+\S+(\s*\([^)]*)?$", before, re.IGNORECASE) and word != "-":
        return "attributes are written (symbol string, price double)"
    if word == ")" and before.count("(") == before.count(")"):
        return "there is one ) too many"
    if word in _CLAUSES or word in ("as", "insert", "aggregate", "every", ";", ""):
        for opening, closing, name in (("(", ")", "RPAR"), ("[", "]", "RSQB")):
            if name in accepted and before.count(opening) > before.count(closing):
                return f"a closing {closing} is missing"
    return None


def _expected(accepted: Collection[str], grammar: Lark) -> str | None:
    """What may stand there, in words."""
    left, words = set(accepted), list[str]()
    if len(left & _STARTS) > 4:
        words, left = ["an expression"], left - _STARTS
    if len(left & _OPERATORS) > 4:
        words, left = [*words, "an operator"], left - _OPERATORS
    named = {each.name: each.pattern.value for each in grammar.terminals if each.pattern.type == "str"}
    words += sorted(_NAMES.get(name) or f"`{named[name]}`" for name in left if name in named or name in _NAMES)
    return f"expected {', '.join(words[:_LISTED])}{' …' if len(words) > _LISTED else ''}" if words else None
