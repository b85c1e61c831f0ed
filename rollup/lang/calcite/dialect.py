"""Calcite's spelling of streaming SQL as a dialect of sqlglot: what Calcite's grammar has and standard SQL lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from rollup.core.errors import SyntaxProblem

STREAM = "STREAM"
INTERVAL_OF = "INTERVAL_OF"
ADD, DIFFERENCE = "TIMESTAMPADD", "TIMESTAMPDIFF"
UNITS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")


def _of_unit(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    """TIMESTAMPADD(unit, n, t) and TIMESTAMPDIFF(unit, t, u): the unit is a word, not a column."""
    unit = arguments[0].name.upper().removeprefix("SQL_TSI_") if arguments else ""
    if len(arguments) != 3 or unit not in UNITS:
        raise SyntaxProblem(f"{name} takes a unit and two values", hint=f"one of {', '.join(UNITS)}")
    return exp.Anonymous(this=name, expressions=[exp.var(unit), *arguments[1:]])


def _spans(first: str, last: str) -> bool:
    """Whether FIRST TO LAST are units of one interval, the greater one first."""
    units = (("YEAR", "MONTH"), ("DAY", "HOUR", "MINUTE", "SECOND"))
    return any(first.upper() in row and last.upper() in row[row.index(first.upper()) + 1 :] for row in units)


_WINDOWS = {
    "TUMBLE": "GROUP BY TUMBLE(rowtime, INTERVAL '1' HOUR), with TUMBLE_START and TUMBLE_END",
    "HOP": "GROUP BY HOP(rowtime, INTERVAL '1' HOUR, INTERVAL '3' HOUR), with HOP_START and HOP_END",
    "SESSION": "TUMBLE or HOP; a session that a gap or a row ends is UQL's `window session`",
    "CUMULATE": "HOP, or OVER (PARTITION BY FLOOR(rowtime TO HOUR) ORDER BY rowtime), a total that grows",
}
"""Windows that other engines have as functions of tables, and what says the same here."""
_PATTERN = "a pattern is EPL's: select .. from pattern [every a=A -> b=B(..) where timer:within(10 sec)]"


def _check_foreign(tokens: Sequence[Token]) -> None:
    """Refuse by name what the grammar would only stumble over. Raises SyntaxProblem."""
    words = [token.text.upper() for token in tokens]
    for i, token in enumerate(tokens):
        said, cure = "", ""
        if words[i : i + 2] == ["TABLE", "("] and words[i + 2 : i + 3] and words[i + 2] in _WINDOWS:
            said, cure = f"TABLE({words[i + 2]}(..)) is not part of streaming SQL", _WINDOWS[words[i + 2]]
        elif words[i : i + 2] == ["SESSION", "("]:
            said, cure = "SESSION windows are not part of streaming SQL", _WINDOWS["SESSION"]
        elif words[i : i + 2] == ["MATCH_RECOGNIZE", "("]:
            said, cure = "MATCH_RECOGNIZE is not part of streaming SQL", _PATTERN
        if said:
            raise SyntaxProblem(said, line=token.line, column=token.col - len(token.text) + 1, hint=cure)


def _first(arguments: Sequence[exp.Expr]) -> exp.Expr | None:
    """The argument of an aggregate; one that lacks it is refused when the text is read (reader.py)."""
    return arguments[0] if arguments else None


class CalciteParser(Parser):
    """SELECT STREAM, `(a - b) SECOND`, UPSERT and REPLACE, `OVER w (RANGE ..)`, PARTITION BY after ORDER BY."""

    FUNCTIONS = {
        **Parser.FUNCTIONS,
        ADD: lambda arguments: _of_unit(ADD, arguments),
        DIFFERENCE: lambda arguments: _of_unit(DIFFERENCE, arguments),
        "EVERY": lambda arguments: exp.LogicalAnd(this=_first(arguments)),
        "SOME": lambda arguments: exp.LogicalOr(this=_first(arguments)),
        "LISTAGG": lambda arguments: exp.GroupConcat(
            this=_first(arguments), separator=arguments[1] if len(arguments) > 1 else exp.Literal.string(",")
        ),
        "BIT_AND": lambda arguments: exp.BitwiseAndAgg(this=_first(arguments)),
        "BIT_OR": lambda arguments: exp.BitwiseOrAgg(this=_first(arguments)),
        "BIT_XOR": lambda arguments: exp.BitwiseXorAgg(this=_first(arguments)),
    }
    NO_PAREN_FUNCTIONS = {
        **Parser.NO_PAREN_FUNCTIONS,
        TokenType.LOCALTIME: exp.Localtime,
        TokenType.LOCALTIMESTAMP: exp.Localtimestamp,
    }

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        """The statements of a text. `OVER w (` is read as `OVER (w`, which means the same."""
        tokens = list(raw_tokens)
        _check_foreign(tokens)
        for i in range(len(tokens) - 2):
            over, name, paren = tokens[i : i + 3]
            if (
                over.token_type is TokenType.OVER
                and paren.token_type is TokenType.L_PAREN
                and name.token_type is TokenType.VAR
            ):
                tokens[i + 1], tokens[i + 2] = paren, name
        return super().parse(tokens, sql)

    def _parse_function_call(self, *given: Any, **named: Any) -> exp.Expr | None:
        begin = self._curr
        try:
            return super()._parse_function_call(*given, **named)
        except SyntaxProblem as problem:
            raise problem.at(begin.line, begin.col - len(begin.text) + 1) from None

    def _parse_hint(self) -> exp.Hint | None:
        following = self._next.token_type if self._next else None
        if following not in (None, TokenType.COMMA, TokenType.FROM, TokenType.ALIAS) and self._match_text_seq(STREAM):
            return exp.Hint(expressions=[exp.Var(this=STREAM)])
        return super()._parse_hint()

    def _parse_partition_and_order(self) -> tuple[list[exp.Expr], exp.Expr | None]:
        partition, order = super()._parse_partition_and_order()
        return (partition or self._parse_partition_by()), order

    def _parse_paren(self) -> exp.Expr | None:
        inner = super()._parse_paren()
        if isinstance(inner, exp.Paren) and self._curr and self._curr.text.upper() in UNITS:
            self._advance()
            return exp.Anonymous(this=INTERVAL_OF, expressions=[inner])
        return inner

    def _parse_interval_span(self, this: exp.Expr, parse_function_unit: bool = True) -> exp.Interval:
        """INTERVAL '2:17' HOUR TO MINUTE; but in FLOOR(t + INTERVAL '30' MINUTE TO HOUR) the TO is that of FLOOR."""
        begin = self._curr
        unit, to, last = (
            self._tokens[self._index + i] if self._index + i < self._tokens_size else None for i in range(3)
        )
        if begin and unit and to and last and to.text.upper() == "TO" and not _spans(unit.text, last.text):
            self._advance()
            return self.expression(exp.Interval(this=this, unit=exp.var(unit.text.upper())))
        return super()._parse_interval_span(this, parse_function_unit)

    def _parse_statement(self) -> exp.Expr | None:
        for word in ("UPSERT", "REPLACE"):
            if (
                self._curr
                and self._curr.text.upper() == word
                and self._next
                and self._next.token_type is TokenType.INTO
            ):
                self._advance()
                insert: Any = self._parse_insert()
                insert.set("alternative", "REPLACE")
                return insert
        return super()._parse_statement()


class Calcite(Dialect):
    """Names are compared without regard to case; they keep the case in which they are declared."""

    NULL_ORDERING = "nulls_are_large"
    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_INSENSITIVE
    Parser = CalciteParser
