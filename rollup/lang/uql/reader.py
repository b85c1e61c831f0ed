"""Grizzly UQL: the text of one query or of a chain of them, read into `rollup.lang.uql.tree`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args
from lark.tree import Meta

from rollup.core.errors import SyntaxProblem
from rollup.lang.reading import grammar_of, read
from rollup.lang.uql.tree import (
    Aggregation,
    Binary,
    Call,
    Expr,
    Item,
    Name,
    Number,
    Query,
    Session,
    Slice,
    Slide,
    Span,
    Star,
    Text,
    Time,
    Unary,
    Width,
)

MICROSECONDS = {
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}
"""The units of time by their singular."""
UNITS = ", ".join(f"{unit}s" for unit in MICROSECONDS)

_CLAUSES = "from, group by, where, window, based on, aggregate, where, append, where, to"
_SPAN = re.compile(r"\s*(\d+)\s*([A-Za-z]+)\s*")
_SPELLINGS = {"=": "==", "<>": "!=", "mod": "%"}


class _Clause(NamedTuple):
    """A clause that has been read, on its way into its query."""

    name: str
    value: Any
    line: int
    column: int


@cache
def _grammar() -> Lark:
    return grammar_of(Path(__file__).parent / "grammar.lark", maybe_placeholders=False)


def parse(text: str) -> tuple[Query, ...]:
    """The queries of a text, in the order in which they feed each other.

    Raises SyntaxProblem with the place and what is expected there.

    >>> query, = parse("from foo window slice 3 rows aggregate sum(x) as s append s to bar")
    >>> query.source.text, query.window.width.amount, query.target.text
    ('foo', 3, 'bar')
    """
    return read(text, _grammar(), _Reader(text), _refusal)


def span(text: str) -> int | None:
    """The microseconds of a text like `10 seconds`; None when it is no span."""
    found = _SPAN.fullmatch(text)
    factor = MICROSECONDS.get(_singular(found[2])) if found else None
    return int(found[1]) * factor if found and factor else None


def _singular(unit: str) -> str:
    return unit[:-1] if unit.endswith("s") else unit


def _refusal(text: str, problem: UnexpectedInput) -> SyntaxProblem:
    if isinstance(problem, UnexpectedToken):
        at_end = problem.token.type == "$END"
        found = "the end" if at_end else repr(str(problem.token))
        expected = set(problem.accepts or problem.expected)
    elif isinstance(problem, UnexpectedCharacters):
        at_end, found, expected = False, repr(text[problem.pos_in_stream or 0]), set(problem.allowed or ())
    else:
        at_end, found, expected = True, "the end", set[str]()
    line = text.count("\n") + 1 if at_end else problem.line
    column = len(text.rsplit("\n", 1)[-1]) + 1 if at_end else problem.column
    return SyntaxProblem(
        f"found {found}, expected {_expected(expected)}", line=line, column=column, hint=_hint(expected)
    )


_WORDS = {"NAME": "a name", "STRING": "a text", "INT": "a number", "SPAN": "a span", "COMPARE": "a comparison"}
_MARKS = {"LPAR": "'('", "RPAR": "')'", "COMMA": "','"}
_CLAUSE_WORDS = ("FROM", "GROUP", "WHERE", "WINDOW", "BASED", "AGGREGATE", "APPEND", "TO")


def _expected(expected: set[str]) -> str:
    """What may stand there: a name where one may stand (every word may be a name), else the words of clauses."""
    if "NAME" in expected:
        return " or ".join(_WORDS[kind] for kind in ("NAME", "INT", "STRING") if kind in expected)
    clauses = [word.lower() for word in _CLAUSE_WORDS if word in expected]
    others = sorted(_WORDS.get(word) or _MARKS.get(word) or word.lower() for word in expected - {"$END"})
    return " or ".join(clauses or others[:6]) or "the end"


def _hint(expected: set[str]) -> str | None:
    clause = any(word in expected for word in _CLAUSE_WORDS) and "NAME" not in expected
    return f"the order of clauses is {_CLAUSES}" if clause else None


def _place(meta: Meta) -> tuple[int, int]:
    return meta.line, meta.column


@v_args(meta=True)
class _Reader(Transformer[Token, Any]):
    """One method a grammar rule; each gets the rule's place and its children already read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def start(self, meta: Meta, queries: list[Query]) -> tuple[Query, ...]:
        return tuple(queries)

    # clauses

    def first_form(self, meta: Meta, clauses: list[Any]) -> Query:
        return _query(meta, clauses)

    def second_form(self, meta: Meta, clauses: list[Any]) -> Query:
        return _query(meta, [clauses[1], *_windowed(clauses[2:], clauses[0])])

    def from_(self, meta: Meta, parts: list[Any]) -> _Clause:
        return _Clause("from", parts[-1], *_place(meta))

    def group_by(self, meta: Meta, parts: list[Any]) -> _Clause:
        return _Clause("group by", tuple(part for part in parts if isinstance(part, Name)), *_place(meta))

    def where(self, meta: Meta, parts: list[Any]) -> _Clause:
        return _Clause("where", parts[-1], *_place(meta))

    def aggregate(self, meta: Meta, parts: list[Any]) -> _Clause:
        return _Clause("aggregate", tuple(p for p in parts if isinstance(p, Aggregation)), *_place(meta))

    def append(self, meta: Meta, parts: list[Any]) -> _Clause:
        return _Clause("append", tuple(p for p in parts if isinstance(p, Item)), *_place(meta))

    def to(self, meta: Meta, parts: list[Any]) -> _Clause:
        return _Clause("to", parts[-1], *_place(meta))

    def based_on(self, meta: Meta, parts: list[Any]) -> _Clause:
        return _Clause("based on", parts[-1], *_place(meta))

    # windows

    def window(self, meta: Meta, parts: list[Any]) -> _Clause:
        return _Clause("window", tuple(parts[1:]), *_place(meta))

    def every(self, meta: Meta, parts: list[Any]) -> _Clause:
        based = [part for part in parts if isinstance(part, _Clause)]
        width = next(part for part in parts if isinstance(part, Width))
        return _Clause("window", (Slice(*_place(meta), width), *based), *_place(meta))

    def slice(self, meta: Meta, parts: list[Any]) -> Slice:
        return Slice(*_place(meta), parts[1])

    def slide(self, meta: Meta, parts: list[Any]) -> Slide:
        width, advance = (part for part in parts if isinstance(part, Width))
        if advance.amount == 0:
            advance = Width(advance.line, advance.column, 0, width.unit)
        if width.unit != advance.unit:
            raise SyntaxProblem(
                "the width and the advance of a slide are both spans of time or both rows",
                line=advance.line,
                column=advance.column,
                hint="slide 10 seconds advance every 3 seconds, slide 4 rows advance every 2 rows",
            )
        return Slide(*_place(meta), _positive(width), advance)

    def session(self, meta: Meta, parts: list[Any]) -> Session:
        end = next((part for part in parts if isinstance(part, _Clause)), None)
        life = next((part for part in parts if isinstance(part, Width)), None)
        begin = next(part for part in parts if not isinstance(part, (Token, _Clause, Width)))
        if end is None and life is None:
            said, cure = "a session needs `end` or `expire after`", "expire after 30 minutes, or end when x > 0"
            raise SyntaxProblem(said, line=meta.line, column=meta.column, hint=cure)
        if life is not None and life.unit != "time":
            raise SyntaxProblem(
                "a session expires after a span of time", line=life.line, column=life.column, hint=UNITS
            )
        until, inclusive = (end.value[0], end.value[1]) if end is not None else (None, True)
        return Session(*_place(meta), begin, until, inclusive, life and _positive(life))

    def session_end(self, meta: Meta, parts: list[Any]) -> _Clause:
        inclusive = not any(isinstance(part, Token) and part.type == "EXCLUSIVE" for part in parts)
        condition = next(part for part in parts if not isinstance(part, Token))
        return _Clause("end", (condition, inclusive), *_place(meta))

    def life(self, meta: Meta, parts: list[Any]) -> Width:
        return parts[-1]

    def width(self, meta: Meta, parts: list[Any]) -> Width:
        token, unit = parts[0], str(parts[1]) if len(parts) > 1 else ""
        amount, kind = _amount(token, unit)
        if amount is None:
            words = str(token).strip('"') + (f" {unit}" if unit else "")
            hint = f"a whole number of {UNITS} or rows"
            raise SyntaxProblem(f"{words!r} is no width of a window", line=meta.line, column=meta.column, hint=hint)
        return Width(*_place(meta), amount, kind)

    # aggregates and columns

    def aggregation(self, meta: Meta, parts: list[Any]) -> Aggregation:
        parts = [part for part in parts if not isinstance(part, Token)]
        return Aggregation(*_place(meta), parts[0].text, tuple(parts[1:-1]), parts[-1])

    def argument(self, meta: Meta, parts: list[Any]) -> Expr | Star:
        return Star(*_place(meta)) if isinstance(parts[0], Token) else parts[0]

    def item(self, meta: Meta, parts: list[Any]) -> Item:
        alias = parts[-1].text if len(parts) > 1 else " ".join(self._text[meta.start_pos : meta.end_pos].split())
        return Item(*_place(meta), parts[0], alias)

    # expressions

    def name(self, meta: Meta, parts: list[Token]) -> Name:
        return Name(*_place(meta), str(parts[0]))

    def reference(self, meta: Meta, parts: list[Name]) -> Name:
        return parts[0]

    def binary(self, meta: Meta, parts: list[Any]) -> Binary:
        operator = str(parts[1])
        return Binary(parts[1].line, parts[1].column, _SPELLINGS.get(operator, operator), parts[0], parts[2])

    def negated(self, meta: Meta, parts: list[Any]) -> Unary:
        return Unary(*_place(meta), "not", parts[1])

    def minus(self, meta: Meta, parts: list[Any]) -> Expr:
        if isinstance(parts[1], Number):
            return Number(*_place(meta), -parts[1].value)
        return Unary(*_place(meta), "-", parts[1])

    def call(self, meta: Meta, parts: list[Any]) -> Call:
        return Call(*_place(meta), parts[0].text, tuple(parts[1:]))

    def integer(self, meta: Meta, parts: list[Token]) -> Number:
        return Number(*_place(meta), int(parts[0]))

    def float_(self, meta: Meta, parts: list[Token]) -> Number:
        return Number(*_place(meta), float(parts[0]))

    def span(self, meta: Meta, parts: list[Token]) -> Span:
        return Span(*_place(meta), span(str(parts[0])) or 0)

    def text(self, meta: Meta, parts: list[Token]) -> Text:
        return Text(*_place(meta), re.sub(r"\\(.)", r"\1", parts[0][1:-1]))

    def time(self, meta: Meta, parts: list[Token]) -> Time:
        return Time(*_place(meta), parts[0][1:-1])


def _amount(token: Token, unit: str) -> tuple[int | None, Any]:
    words = str(token).strip('"').split()
    if token.type == "INT" and int(token) == 0 and not unit:
        return 0, "time"
    if unit or token.type == "INT":
        return None, "time"
    if token.type == "ROWS" or (len(words) == 2 and words[1] in ("row", "rows")):
        found = re.match(r"\d+", "".join(words))
        return (int(found[0]) if found else None), "rows"
    return span(" ".join(word for word in words if word not in ("wall", "clock"))), "time"


def _positive(width: Width) -> Width:
    if width.amount == 0:
        said, cure = "a window needs a width above zero", "10 seconds, 20 rows"
        raise SyntaxProblem(said, line=width.line, column=width.column, hint=cure)
    return width


def _windowed(clauses: Sequence[_Clause], window: _Clause) -> list[_Clause]:
    """The clauses of the second form with its window where the first form has it: before the aggregates."""
    at = next(i for i, clause in enumerate(clauses) if clause.name == "aggregate")
    return [*clauses[:at], window, *clauses[at:]]


def _query(meta: Meta, clauses: Sequence[_Clause]) -> Query:
    named: dict[str, Any] = {}
    position = "from"
    for clause in _flat(clauses):
        position = "window" if clause.name == "window" else "aggregate" if clause.name == "aggregate" else position
        position = "append" if clause.name == "append" else position
        key = f"where after {position}" if clause.name == "where" else clause.name
        _check_order(clause, key, named)
        named[key] = clause.value
    shape = named["window"]
    if isinstance(shape, Slice):
        _positive(shape.width)
    return Query(
        *_place(meta),
        source=named["from"],
        group_by=named.get("group by", ()),
        rows_where=named.get("where after from"),
        window=shape,
        based_on=named.get("based on"),
        aggregates=named["aggregate"],
        windows_where=named.get("where after aggregate"),
        items=named["append"],
        output_where=named.get("where after append"),
        target=named["to"],
    )


def _flat(clauses: Sequence[_Clause]) -> list[_Clause]:
    """The clauses with those that stand inside the window's, each after it."""
    flat: list[_Clause] = []
    for clause in clauses:
        if clause.name == "window":
            shape, *rest = clause.value
            flat += [clause._replace(value=shape), *rest]
        else:
            flat.append(clause)
    return flat


def _check_order(clause: _Clause, key: str, named: dict[str, Any]) -> None:
    if key in named:
        problem = f"`{clause.name}` stands twice"
    elif clause.name == "group by" and "where after from" in named and "window" not in named:
        problem = "found group, expected window: group by stands before where"
    else:
        return
    hint = f"the order of clauses is {_CLAUSES}"
    raise SyntaxProblem(problem, line=clause.line, column=clause.column, hint=hint)


def names(node: Expr) -> list[Name]:
    """Every name in an expression, in the order of the text."""
    if isinstance(node, Name):
        return [node]
    if isinstance(node, Unary):
        return names(node.operand)
    if isinstance(node, Binary):
        return names(node.left) + names(node.right)
    return [name for part in node.arguments for name in names(part)] if isinstance(node, Call) else []
