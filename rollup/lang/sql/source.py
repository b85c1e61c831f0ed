"""One more table source for sqlglot: an aggregation, the bucket starts asked for, and the level.

Three spellings mean the same node, so that strict SQL parsers of BI tools can ask too:

    TradeAgg WITHIN bound[, bound] PER unit [OVER window] [BY (keys)] [IN ZONE zone] [FILL (word)]
        [AS OF commit] [[AS] alias]
    TradeAgg(bound[, bound], unit[, fill => 'word'][, as_of => 'commit']) [[AS] alias]
    "TradeAgg within bound[, bound] per unit [fill word] [as of commit]" [[AS] alias]

Here are the node they all become and the parser that builds it; `rollup.lang.sql.within` works on whole texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import ClassVar, NamedTuple

from sqlglot import exp
from sqlglot.expressions.core import Expression
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from rollup.core.errors import PlanError, RollupError, SyntaxProblem
from rollup.plan.likeness import near

_FILLS = ("null", "zero", "previous", "linear")
FILLS = (*_FILLS, *(f"{word} range" for word in _FILLS))
CLAUSE_HINT = "write NAME WITHIN bound[, bound] PER unit [OVER window] [BY (keys)] [IN ZONE zone] [FILL (word[, range])] [AS OF commit] [AS alias], each bound quoted, a number or a parameter"
CALL_HINT = "write NAME(bound, unit) or NAME(start, end, unit), and fill => 'word', as_of => 'commit 17' if wanted"
AS_OF_HINT = "AS OF COMMIT 17, or AS OF '2026-11-29 12:00:00'"
INLINE_HINT = 'write "NAME within bound[, bound] per unit", and fill word if wanted'
_FILL_HINT = "allowed: " + ", ".join(_FILLS)
_BOUND_STARTS = frozenset(
    {TokenType.STRING, TokenType.NUMBER, TokenType.PARAMETER, TokenType.PLACEHOLDER, TokenType.COLON, TokenType.MOD,
     TokenType.VAR, TokenType.IDENTIFIER, TokenType.NATIONAL_STRING, TokenType.HEREDOC_STRING}
)  # fmt: skip
_NOT_NAMES = frozenset({TokenType.STRING, TokenType.NUMBER, TokenType.NATIONAL_STRING, TokenType.HEREDOC_STRING})


class Within(Expression):
    """A table source: one aggregation, the bucket starts asked for, and the level.

    Args: `this` (a Table with the declared name), `start`, `end` (absent for one pattern), `per`, `fill` (a Var),
    `alias`, `lateral` (true if the text says so), `joins`. How it was spelled is not part of equality.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True, "start": True, "end": False, "per": True, "fill": False, "as_of": False,
        "alias": False, "lateral": False, "joins": False,
    }  # fmt: skip

    @property
    def aggregation(self) -> str:
        """The declared name of the aggregation."""
        return self.this.name

    @property
    def fill(self) -> str | None:
        """One of `FILLS`, or None when gaps stay gaps."""
        word = self.args.get("fill")
        return word.name if word else None

    @property
    def as_of(self) -> str | None:
        """The commit that is read, as `rollup.retrieval.as_of` reads it; None: the newest."""
        word = self.args.get("as_of")
        return word.name if word else None

    @property
    def source_name(self) -> str:
        """The name under which the query's columns refer to this source."""
        return self.alias or str(self.meta.get("name", self.aggregation))

    @property
    def span(self) -> tuple[int, int]:
        """First and one-past-last character of the source in the text, without its alias."""
        return self.meta["span"]

    @property
    def position(self) -> tuple[int, int]:
        """Line and column of the source in the text, both from 1."""
        return self.meta["position"]


class Names:
    """The known aggregations, looked up as SQL does: any case unless quoted.

    Those of `bare` are sources without a range, too: the views of levels.
    """

    def __init__(self, known: Collection[str], bare: Collection[str] = ()) -> None:
        self.known = sorted({*known, *bare})
        self.bare = frozenset(bare)

    def find(self, text: str, quoted: bool) -> str | None:
        if quoted or text in self.known:
            return text if text in self.known else None
        alike = [name for name in self.known if name.casefold() == text.casefold()]
        return alike[0] if len(alike) == 1 else None

    def of(self, token: Token) -> str | None:
        return self.find(token.text, token.token_type == TokenType.IDENTIFIER)

    def hint(self) -> str:
        """The names there are, as an error says them."""
        return "known: " + (", ".join(self.known) or "none")


class _Clause(NamedTuple):
    """What one spelling says, before its alias."""

    start: exp.Expr
    end: exp.Expr | None
    per: exp.Expr
    fill: str | None = None
    as_of: str | None = None


def position(sql: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of a place in a text.

    >>> position("a\\nbc", 3)
    (2, 2)
    """
    return sql.count("\n", 0, offset) + 1, offset - sql.rfind("\n", 0, offset)


def _type_at(tokens: Sequence[Token], index: int) -> TokenType | None:
    return tokens[index].token_type if 0 <= index < len(tokens) else None


def word_at(tokens: Sequence[Token], index: int) -> str:
    """The unquoted word (or sign) at the index in upper case; empty for literals and quoted names."""
    kind = _type_at(tokens, index)
    return "" if kind is None or kind in _NOT_NAMES or kind == TokenType.IDENTIFIER else tokens[index].text.upper()


def _is_name(token: Token) -> bool:
    if token.token_type == TokenType.IDENTIFIER:
        return True
    return token.token_type not in _NOT_NAMES and token.text.isidentifier()


def _bound_at(tokens: Sequence[Token], index: int) -> bool:
    return _type_at(tokens, index) in _BOUND_STARTS and word_at(tokens, index) != "GROUP"


def spelling_at(tokens: Sequence[Token], index: int, names: Names) -> str | None:
    """Which spelling begins with the name at `index`: 'clause', 'call', 'inline', 'alias first', 'bare' or none of ours."""
    token = tokens[index]
    if not _is_name(token):
        return None
    quoted = token.token_type == TokenType.IDENTIFIER
    if quoted and _inline_name(token.text, names):
        return "inline"
    known = names.of(token)
    if word_at(tokens, index + 1) == "WITHIN" and (known or _bound_at(tokens, index + 2)):
        return "clause"
    if known and _type_at(tokens, index + 1) == TokenType.L_PAREN:
        return "call"
    after = index + 1 + (_type_at(tokens, index + 1) == TokenType.ALIAS)
    if known and word_at(tokens, after + 1) == "WITHIN" and _bound_at(tokens, after + 2):
        return "alias first"
    return "bare" if known in names.bare and _type_at(tokens, index + 1) != TokenType.DOT else None


def _inline_name(text: str, names: Names) -> str | None:
    words = text.split(maxsplit=2)
    return names.find(words[0], False) if len(words) > 1 and words[1].casefold() == "within" else None


def _inline_literal(text: str) -> exp.Expr:
    bare = text.strip().strip("'")
    number = bare == text.strip() and bare.removeprefix("-").isdecimal()
    return exp.Literal.number(bare) if number else exp.Literal.string(bare)


def _inline_clause(text: str) -> _Clause:
    """Reads what a quoted name says after its `within`; raises without a position."""
    words = text.split()[2:]
    pers = [i for i, word in enumerate(words) if word.casefold() == "per"]
    if not pers:
        raise SyntaxProblem("PER is missing in the quoted name", hint=INLINE_HINT)
    bounds = [part.strip() for part in " ".join(words[: pers[-1]]).split(",")]
    if len(bounds) > 2 or not all(bounds):
        raise SyntaxProblem("WITHIN needs one or two bounds in the quoted name", hint=INLINE_HINT)
    rest, *earlier = re.split(r"\bas\s+of\b", " ".join(words[pers[-1] + 1 :]), maxsplit=1, flags=re.IGNORECASE)
    unit, *tail = re.split(r"\bfill\b", rest, maxsplit=1, flags=re.IGNORECASE)
    tail = [re.sub("[(),]", " ", each) for each in tail]
    if not unit.strip() or (tail and len(tail[0].split()) not in (1, 2)):
        raise SyntaxProblem("PER needs one unit in the quoted name", hint=INLINE_HINT)
    start, *end = map(_inline_literal, bounds)
    per = exp.Literal.string(unit.strip().strip("'"))
    fill = _fill_word(" ".join(tail[0].split())) if tail else None
    return _Clause(start, end[0] if end else None, per, fill, earlier[0].strip().strip("'") if earlier else None)


def _fill_word(text: str) -> str:
    if text.casefold() not in FILLS:
        raise SyntaxProblem(f"unknown fill word '{text}'", hint=_FILL_HINT)
    return text.casefold()


class WithinParser(Parser):
    """sqlglot's parser with our table source; mixed in before the parser of a base dialect."""

    MODIFIABLES = (*Parser.MODIFIABLES, Within)  # so that joins may follow in parentheses

    names: Names

    def here(self) -> int:
        """Offset in the text of the token that is looked at, or the end of the text."""
        return self._curr.start if self._index < self._tokens_size else len(self.sql)

    def _refuse(self, message: str, hint: str, offset: int | None = None) -> SyntaxProblem:
        line, column = position(self.sql, self.here() if offset is None else offset)
        return SyntaxProblem(message, line=line, column=column, hint=hint)

    def _warn_unsupported(self) -> None:
        # sqlglot would log the user's text and keep the rest as an unread string, with our sources lost in it.
        self.raise_error("a statement that is no query")

    def _found(self) -> str:
        return f"'{self._curr.text}'" if self._index < self._tokens_size else "the end of the query"

    def _parse_table(
        self,
        schema: bool = False,
        joins: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
        parse_bracket: bool = False,
        is_db_reference: bool = False,
        parse_partition: bool = False,
        consume_pipe: bool = False,
    ) -> exp.Expr | None:
        source = None if schema or is_db_reference else self._parse_within(alias_tokens)
        if source is None:
            return super()._parse_table(
                schema, joins, alias_tokens, parse_bracket, is_db_reference, parse_partition, consume_pipe
            )
        for join in self._parse_joins(alias_tokens=alias_tokens) if joins else ():
            source.append("joins", join)
        return source

    def _parse_placeholder(self) -> exp.Expr | None:
        start = self.here()
        placeholder = super()._parse_placeholder()
        if placeholder is not None:
            placeholder.meta["text"] = self.sql[start : self._prev.end + 1]
        return placeholder

    def _name_parts(self, index: int) -> list[Token]:
        """The tokens of a possibly qualified name that begins at `index`."""
        parts: list[Token] = []
        while index < len(self._tokens) and _is_name(self._tokens[index]):
            parts.append(self._tokens[index])
            if _type_at(self._tokens, index + 1) != TokenType.DOT:
                break
            index += 2
        return parts

    def _parse_within(self, alias_tokens: Collection[TokenType] | None) -> Within | None:
        first = self._curr
        lateral = first.token_type == TokenType.LATERAL
        parts = self._name_parts(self._index + lateral)
        last = self._index + lateral + 2 * len(parts) - 2
        spelling = spelling_at(self._tokens, last, self.names) if parts else None
        if spelling is None or last >= len(self._tokens):
            return None
        if spelling == "alias first":
            raise self._refuse("the alias stands before WITHIN", CLAUSE_HINT, parts[-1].start)
        self._advance(last + 1 - self._index)
        name = self._declared_name(parts[-1], spelling)
        clause = self._parse_spelling(spelling, parts[-1])
        within = self._node(name, parts, clause, first.start)
        within.meta["spelling"] = spelling
        if lateral:
            within.set("lateral", True)
        within.set("alias", self._parse_table_alias(alias_tokens=alias_tokens or self.TABLE_ALIAS_TOKENS))
        return within

    def _declared_name(self, token: Token, spelling: str) -> str:
        inline = spelling == "inline"
        name = _inline_name(token.text, self.names) if inline else self.names.of(token)
        if name is None:
            line, column = position(self.sql, token.start)
            close = near(token.text, self.names.known)
            hint = f"did you mean {close}? {self.names.hint()}" if close else self.names.hint()
            raise PlanError(f"unknown aggregation '{token.text}'", line=line, column=column, hint=hint)
        return name

    def _node(self, name: str, parts: list[Token], clause: _Clause, first: int) -> Within:
        *qualifiers, last = parts
        db, catalog = ([_identifier(part) for part in reversed(qualifiers)] + [None, None])[:2]
        table = exp.Table(this=exp.to_identifier(name, quoted=True), db=db, catalog=catalog)
        within = Within(this=table, start=clause.start, end=clause.end, per=clause.per)
        if clause.fill:
            within.set("fill", exp.Var(this=clause.fill))
        if clause.as_of:
            within.set("as_of", exp.Literal.string(clause.as_of))
        label = self.sql[last.start : last.end + 1]
        within.meta.update(span=(first, self._prev.end + 1), position=position(self.sql, first))
        within.meta.update(name=last.text, label=label)
        return within

    def _parse_spelling(self, spelling: str, name: Token) -> _Clause:
        if spelling == "clause":
            return self._parse_clause()
        if spelling == "call":
            return self._parse_call(name)
        if spelling == "bare":
            return _Clause(exp.Null(), None, exp.Null())
        try:
            return _inline_clause(name.text)
        except RollupError as error:
            raise error.at(*position(self.sql, name.start)) from None

    def _parse_clause(self) -> _Clause:
        self._match_text_seq("WITHIN")
        start = self._parse_bound()
        end = self._parse_bound() if self._match(TokenType.COMMA) else None
        if not self._match_text_seq("PER"):
            raise self._refuse(f"PER is missing: found {self._found()} after the bounds of WITHIN", CLAUSE_HINT)
        per = self._said_more(self._parse_operand("PER needs a unit"))
        fill = None
        if word_at(self._tokens, self._index) == "FILL" and self._next.token_type == TokenType.L_PAREN:
            self._advance(2)
            fill = self._parse_fill_word(and_range=True)
            self._match_r_paren()
        return _Clause(start, end, per, fill, self._parse_as_of())

    def _parse_as_of(self) -> str | None:
        if not self._match_text_seq("AS", "OF"):
            return None
        commit = self._match_text_seq("COMMIT")
        operand = self._parse_operand("AS OF needs a commit or a time", AS_OF_HINT)
        if not isinstance(operand, exp.Literal) or operand.is_string == bool(commit):
            raise self._refuse("AS OF takes a commit or a time as a text", AS_OF_HINT)
        return f"commit {operand.name}" if commit else operand.name

    def _said_more(self, per: exp.Expr) -> exp.Expr:
        """What PER takes, with what OVER, BY and IN ZONE say as parts of its text."""
        given, words = [per], list[str]()
        if self._match_text_seq("OVER"):
            given.append(self._parse_operand("OVER needs a window"))
            words.append(f"over {given[-1].name}")
        if self._match_text_seq("BY"):
            keys = self._parse_wrapped(lambda: self._parse_csv(self._parse_id_var))
            words.append(f"by ({', '.join(f'`{key.name}`' for key in keys if key)})")
        if self._match_text_seq("IN", "ZONE"):
            given.append(self._parse_operand("IN ZONE needs a zone"))
            words.append(f"in {given[-1].name}")
        if not words:
            return per
        if not all(isinstance(each, exp.Literal) and each.is_string for each in given):
            raise self._refuse("PER, OVER and IN ZONE take texts here", "PER 'days' IN ZONE 'Asia/Kolkata'")
        return exp.Literal.string(" ".join((per.name, *words)))

    def _parse_bound(self) -> exp.Expr:
        # A column may be called per, too: then a comma, a dot or the keyword itself follows.
        column = self._next.token_type in (TokenType.COMMA, TokenType.DOT)
        if word_at(self._tokens, self._index) == "PER" and not column and self._next.text.upper() != "PER":
            raise self._refuse("WITHIN has no bounds", CLAUSE_HINT)
        last = word_at(self._tokens, self._index) == "LAST" and self._next.token_type == TokenType.STRING
        self._advance(1 if last else 0)
        bound = self._parse_operand("WITHIN has no bounds")
        return exp.Literal.string(f"last {bound.name}") if last else bound

    def _parse_operand(self, missing: str, hint: str = CLAUSE_HINT) -> exp.Expr:
        at = self.here()
        found = self._found()
        operand = self._parse_bitwise()
        if operand is None or isinstance(operand, (exp.Tuple, exp.Star)):
            raise self._refuse(f"{missing}: found {found}", hint, at)
        return operand

    def _parse_fill_word(self, and_range: bool = False) -> str:
        at, text = self.here(), self._curr.text
        self._advance()
        if and_range and self._match(TokenType.COMMA):
            text = f"{text} {self._curr.text}"
            self._advance()
        try:
            return _fill_word(text)
        except RollupError as error:
            raise error.at(*position(self.sql, at)) from None

    def _parse_call(self, name: Token) -> _Clause:
        given: list[exp.Expr] = []
        named = dict[str, str]()
        self._advance()
        while not self._match(TokenType.R_PAREN):
            if self._next.token_type in (TokenType.FARROW, TokenType.COLON_EQ):
                named.update([self._parse_named()])
            else:
                given.append(self._parse_operand("an argument is missing", CALL_HINT))
            if not self._match(TokenType.COMMA) and self._curr.token_type != TokenType.R_PAREN:
                raise self._refuse(f"expected , or ) but found {self._found()}", CALL_HINT)
        if len(given) not in (2, 3):
            message = f"{name.text} takes two or three arguments, not {len(given)}"
            raise self._refuse(message, CALL_HINT, name.start)
        return _Clause(
            given[0], given[1] if len(given) == 3 else None, given[-1], named.get("fill"), named.get("as_of")
        )

    def _parse_named(self) -> tuple[str, str]:
        name = self._curr.text.casefold()
        if name not in ("fill", "as_of"):
            raise self._refuse(f"unknown argument name '{self._curr.text}'", CALL_HINT)
        self._advance(2)
        if name == "fill":
            return name, self._parse_fill_word()
        said = self._parse_operand("as_of needs a commit or a time", CALL_HINT)
        if not isinstance(said, exp.Literal):
            raise self._refuse("as_of takes a constant", CALL_HINT)
        return name, said.name


def _identifier(token: Token) -> exp.Identifier:
    return exp.to_identifier(token.text, quoted=token.token_type == TokenType.IDENTIFIER)
