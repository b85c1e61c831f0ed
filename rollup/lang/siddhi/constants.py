"""The constants of a question, told without reading it: a form that is known is asked again with others in their places."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from lark.lexer import BasicLexer

from rollup.lang.siddhi.apps import siddhi_grammar
from rollup.plan.types import Type


class Constant(NamedTuple):
    """A constant where it stands in a text: its type, its text there, and its value where that is a text or whole."""

    type: Type
    text: str
    start: int
    end: int

    @property
    def value(self) -> str | int:
        """Of a text or a whole number."""
        if self.type is Type.STRING:
            return self.text[1:-1]
        return int(self.text[:-1] if self.text[-1] in "lL" else self.text)


_CONSTANTS = {"STRING": Type.STRING, "LONG": Type.LONG, "INTEGER": Type.INT, "FLOAT": Type.FLOAT, "DOUBLE": Type.DOUBLE}


def constants_of(text: str) -> list[Constant]:
    """The constants of a question, as the grammar's own lexer sees them. Nothing for a text that it cannot take apart.

    >>> [constant.text for constant in constants_of("from A on x > 5 within '2018-**-** **:**:**' per 'days'")]
    ['5', "'2018-**-** **:**:**'", "'days'"]
    """
    found, at = list[Constant](), 0
    for piece in _pieces().finditer(text):
        if piece.start() != at:
            return []
        at = piece.end()
        kind = _CONSTANTS.get(piece.lastgroup or "")
        if kind is not None:
            found.append(_constant(kind, piece))
    return found if at == len(text) else []


def _constant(kind: Type, piece: re.Match[str]) -> Constant:
    text = piece.group()
    if kind is Type.INT and int(text) >= 2**31:
        kind = Type.LONG
    return Constant(kind, text, piece.start(), piece.end())


@cache
def _pieces() -> re.Pattern[str]:
    """The grammar's terminals as its lexer tries them, in one pattern: the lexer itself takes 10 us for each piece,
    and a question whose form is known waits for nothing else. What is no constant needs no name."""
    lexer = BasicLexer(siddhi_grammar().lexer_conf)
    one_of = (
        f"(?{f'P<{terminal.name}>' if terminal.name in _CONSTANTS else ':'}{terminal.pattern.to_regexp()})"
        for terminal in lexer.terminals
    )
    return re.compile("|".join(one_of), lexer.g_regex_flags)
