"""The words of a query, one after the other."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters

from rollup.core.errors import SyntaxProblem
from rollup.lang.reading import grammar_of


@cache
def _lexer() -> Lark:
    return grammar_of(Path(__file__).parent / "tokens.lark", lexer="basic")


class Cursor:
    """Where in the text the reader is."""

    def __init__(self, text: str) -> None:
        try:
            self.tokens = list(_lexer().lex(text))
        except UnexpectedCharacters as problem:
            raise SyntaxProblem(
                f"unexpected {text[problem.pos_in_stream]!r}", line=problem.line, column=problem.column
            ) from None
        self.at = 0
        self._end = (text.count("\n") + 1, len(text) - text.rfind("\n"))

    def peek(self, ahead: int = 0) -> str:
        """A token that comes, a word in small letters as the language's own are; '' behind the last."""
        text = self.said(ahead)
        return text.lower() if self.kind(ahead) in ("NAME", "STATUS") else text

    def said(self, ahead: int = 0) -> str:
        """The text of a token that comes as it stands there; '' behind the last."""
        place = self.at + ahead
        return str(self.tokens[place]) if place < len(self.tokens) else ""

    def word(self) -> str:
        """Take a token, a word in small letters."""
        found = self.peek()
        self.next()
        return found

    def kind(self, ahead: int = 0) -> str:
        """The kind of a token that comes."""
        place = self.at + ahead
        return self.tokens[place].type if place < len(self.tokens) else ""

    @property
    def place(self) -> tuple[int, int]:
        """Line and column of the next token."""
        if self.at >= len(self.tokens):
            return self._end
        token = self.tokens[self.at]
        return (token.line or 1, token.column or 1)

    def next(self) -> Token:
        """Take a token."""
        if self.at >= len(self.tokens):
            raise self.problem("more")
        self.at += 1
        return self.tokens[self.at - 1]

    def take(self, *words: str) -> bool:
        """Take these words if they come."""
        if all(self.peek(ahead) == word for ahead, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        """Take these words. Raises SyntaxProblem when others come."""
        for word in words:
            if not self.take(word):
                raise self.problem(f"`{word}`")

    def name(self, what: str) -> str:
        """Take a name."""
        if self.kind() not in ("NAME", "QUOTED"):
            raise self.problem(what)
        return str(self.next()).strip('"')

    def number(self, what: str) -> int:
        """Take a whole number."""
        if self.kind() != "NUMBER" or not self.peek().isdigit():
            raise self.problem(what)
        return int(self.next())

    def problem(self, expected: str) -> SyntaxProblem:
        """What comes is not what may come."""
        found = repr(self.said()) if self.said() else "the end of the query"
        line, column = self.place
        return SyntaxProblem(f"unexpected {found}", line=line, column=column, hint=f"expected {expected}")

    def refuse(self, message: str, hint: str | None = None) -> SyntaxProblem:
        """The error that points at the next token."""
        line, column = self.place
        return SyntaxProblem(message, line=line, column=column, hint=hint)
