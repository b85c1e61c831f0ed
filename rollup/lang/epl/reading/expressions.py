"""Expressions: one method a rule of the grammar, each given its place and its children already read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lark import Token, Transformer, v_args
from lark.tree import Meta

from rollup.core.errors import SyntaxProblem
from rollup.engine.operators import single
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree.node import Enclosed, Position

Parts = list[Any]
_UNITS: dict[str, ex.Unit] = {"min": "minute", "sec": "second", "msec": "millisecond", "usec": "microsecond"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def place(meta: Meta) -> Position:
    """Where a rule begins in the text."""
    return Position() if getattr(meta, "empty", True) else Position(meta.line, meta.column)


def nodes(parts: Parts) -> tuple[Any, ...]:
    """What is there of a list that may be empty."""
    return tuple(part for part in parts if part is not None and not isinstance(part, Token))


def has(parts: Parts, kind: str) -> bool:
    """Whether a keyword stands among the children."""
    return any(isinstance(part, Token) and part.type == kind for part in parts)


def token(parts: Parts, kind: str) -> str | None:
    """The keyword of a kind in lower case, None when it is not there."""
    return next((str(part).lower() for part in parts if isinstance(part, Token) and part.type == kind), None)


class ReadExpressions(Transformer[Token, Any]):
    """The grammar's part "expressions", and names."""

    def name(self, meta: Meta, parts: Parts) -> str:
        return str(parts[0]).strip("`")

    def names(self, meta: Meta, parts: Parts) -> tuple[str, ...]:
        return tuple(parts)

    def dotted(self, meta: Meta, parts: Parts) -> str:
        return ".".join(parts)

    # constants

    def string(self, meta: Meta, parts: Parts) -> ex.Constant:
        return ex.Constant(_unescaped(str(parts[0])[1:-1]), "string", at=place(meta))

    def integer(self, meta: Meta, parts: Parts) -> ex.Constant:
        return _whole(int(parts[0]), meta)

    def hex(self, meta: Meta, parts: Parts) -> ex.Constant:
        return _whole(int(parts[0], 16), meta)

    def long(self, meta: Meta, parts: Parts) -> ex.Constant:
        return ex.Constant(int(parts[0][:-1]), "long", at=place(meta))

    def float_(self, meta: Meta, parts: Parts) -> ex.Constant:
        return ex.Constant(single(float(parts[0][:-1])), "float", at=place(meta))

    def double(self, meta: Meta, parts: Parts) -> ex.Constant:
        return ex.Constant(float(parts[0].rstrip("dD")), "double", at=place(meta))

    def true(self, meta: Meta, parts: Parts) -> ex.Constant:
        return ex.Constant(True, "boolean", at=place(meta))

    def false(self, meta: Meta, parts: Parts) -> ex.Constant:
        return ex.Constant(False, "boolean", at=place(meta))

    def null(self, meta: Meta, parts: Parts) -> ex.Constant:
        return ex.Constant(None, "null", at=place(meta))

    def negative_constant(self, meta: Meta, parts: Parts) -> ex.Constant:
        value = parts[-1]
        return ex.Constant(-value.value, value.kind, at=place(meta))

    # operators

    def or_(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Logical("or", parts[0], parts[1], at=place(meta))

    def and_(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Logical("and", parts[0], parts[1], at=place(meta))

    def not_(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Not(nodes(parts)[0], at=place(meta))

    def arithmetic(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Arithmetic(str(parts[1]), parts[0], parts[2], at=place(meta))

    def concatenate(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Arithmetic("||", parts[0], parts[1], at=place(meta))

    def sign(self, meta: Meta, parts: Parts) -> ex.Expression:
        sign, operand = parts
        if isinstance(operand.at, Enclosed) or isinstance(operand, (ex.Case, ex.Array, ex.New, ex.Exists)):
            hint = "0 - (…), or the sign inside the parentheses"
            raise problem_at(f"`{sign}` before what is no value", meta, hint)
        if sign.type == "PLUS" and not isinstance(operand, ex.Constant):
            hint = "leave it out"
            raise problem_at("`+` before what is no number", meta, hint)
        return operand if sign.type == "PLUS" else ex.Sign(operand, at=place(meta))

    def compare(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Comparison(_operator(parts[1]), parts[0], parts[2], at=place(meta))

    def is_(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Comparison("is", parts[0], parts[1], at=place(meta))

    def is_not(self, meta: Meta, parts: Parts) -> ex.Expression:
        left, right = nodes(parts)
        return ex.Comparison("is not", left, right, at=place(meta))

    def quantified(self, meta: Meta, parts: Parts) -> ex.Expression:
        left, items = parts[0], nodes(parts[3:])
        return ex.Quantified(_operator(parts[1]), left, str(parts[2]).lower() == "all", items, at=place(meta))

    def quantified_query(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Quantified(_operator(parts[1]), parts[0], str(parts[2]).lower() == "all", parts[3], at=place(meta))

    def in_list(self, meta: Meta, parts: Parts) -> ex.Expression:
        value, *items = nodes(parts)
        return ex.In(value, tuple(items), has(parts, "NOT"), at=place(meta))

    def in_query(self, meta: Meta, parts: Parts) -> ex.Expression:
        value, query = nodes(parts)
        return ex.InQuery(value, query, has(parts, "NOT"), at=place(meta))

    def in_range(self, meta: Meta, parts: Parts) -> ex.Expression:
        value, low, high = nodes(parts)
        closed = has(parts, "LSQB"), has(parts, "RSQB")
        return ex.Between(value, low, high, has(parts, "NOT"), *closed, at=place(meta))

    def between(self, meta: Meta, parts: Parts) -> ex.Expression:
        value, low, high = nodes(parts)
        return ex.Between(value, low, high, has(parts, "NOT"), at=place(meta))

    def like(self, meta: Meta, parts: Parts) -> ex.Expression:
        value, pattern, *escape = nodes(parts)
        return ex.Like(
            value, pattern, escape[0] if escape else None, has(parts, "REGEXP"), has(parts, "NOT"), at=place(meta)
        )

    # names, calls, values in brackets

    def reference(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Reference(parts[0], at=place(meta))

    def member(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Member(parts[0], parts[1], at=place(meta))

    def index(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Index(parts[0], tuple(parts[1:]), at=place(meta))

    def call(self, meta: Meta, parts: Parts) -> ex.Call:
        return ex.Call(parts[0], parts[1], at=place(meta))

    def distinct_call(self, meta: Meta, parts: Parts) -> ex.Call:
        return ex.Call(parts[0], parts[2], distinct=True, at=place(meta))

    def primary_call(self, meta: Meta, parts: Parts) -> ex.Call:
        return parts[0]

    def method(self, meta: Meta, parts: Parts) -> ex.Call:
        return ex.Call(parts[1], parts[2], parts[0], at=place(meta))

    def parenthesised(self, meta: Meta, parts: Parts) -> ex.Expression:
        return replace(parts[0], at=Enclosed(*parts[0].at))

    def subquery(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Subquery(parts[0], at=place(meta))

    def exists(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Exists(parts[0], at=place(meta))

    def exists_value(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.ExistsValue(parts[0], at=place(meta))

    def when_then(self, meta: Meta, parts: Parts) -> tuple[ex.Expression, ex.Expression]:
        return parts[0], parts[1]

    def case(self, meta: Meta, parts: Parts) -> ex.Expression:
        branches = tuple(part for part in parts if isinstance(part, tuple))
        return ex.Case(parts[0], branches, parts[-1], at=place(meta))

    def new_field(self, meta: Meta, parts: Parts) -> tuple[str, ex.Expression]:
        return parts[0], parts[1] or ex.Reference(parts[0], at=place(meta))

    def new(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.New(tuple(parts), at=place(meta))

    def array(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Array(nodes(parts), at=place(meta))

    def parameter(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Parameter(parts[0], parts[1].name if parts[1] else None, at=place(meta))

    def typed_parameter(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Parameter(None, parts[0].name, at=place(meta))

    # arguments

    def arguments(self, meta: Meta, parts: Parts) -> tuple[ex.Expression, ...]:
        return nodes(parts)

    def star(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Star(at=place(meta))

    def stream_star_argument(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.StreamStar(stream_name(parts[0]), at=place(meta))

    def sorted_argument(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Sorted(parts[0], has(parts, "DESC"), at=place(meta))

    def named(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Named(parts[0].lower(), parts[1], at=place(meta))

    def group(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.Group(tuple(parts), at=place(meta))

    def lambda_(self, meta: Meta, parts: Parts) -> ex.Expression:
        *parameters, body = parts
        return ex.Lambda(tuple(parameters), body, at=place(meta))

    def period(self, meta: Meta, parts: Parts) -> ex.Period:
        units = [str(part).lower().rstrip("s") for part in parts[1::2]]
        pairs: Any = zip(parts[::2], (_UNITS.get(unit, unit) for unit in units), strict=True)
        return ex.Period(tuple(pairs), at=place(meta))

    # crontabs

    def crontab(self, meta: Meta, parts: Parts) -> ex.Crontab:
        if not 5 <= len(parts) <= 7:
            hint = "minute, hour, day of month, month, day of week [, second [, time zone]]"
            raise problem_at(f"a crontab has five to seven fields, not {len(parts)}", meta, hint)
        return ex.Crontab(tuple(parts), at=place(meta))

    def cron_any(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.CronAny(at=place(meta))

    def cron_step(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.CronStep(nodes(parts)[0], at=place(meta))

    def cron_range(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.CronRange(parts[0], parts[1], at=place(meta))

    def cron_list(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.CronList(tuple(parts), at=place(meta))

    def cron_last(self, meta: Meta, parts: Parts) -> ex.Expression:
        day = nodes(parts)
        return ex.CronLast(day[0] if day else None, at=place(meta))

    def cron_last_weekday(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.CronWeekday(at=place(meta))

    def cron_weekday(self, meta: Meta, parts: Parts) -> ex.Expression:
        return ex.CronWeekday(parts[0], at=place(meta))


def problem_at(message: str, meta: Meta, hint: str) -> SyntaxProblem:
    """What is wrong where a rule begins, and the cure."""
    at = place(meta)
    return SyntaxProblem(message, line=at.line, column=at.column, hint=hint)


def stream_name(of: ex.Expression) -> str:
    """The stream before `.*`; raises SyntaxProblem for anything but a name."""
    if not isinstance(of, ex.Reference):
        raise SyntaxProblem(
            "`.*` needs the name of a stream before it", line=of.at.line, column=of.at.column, hint="a.*"
        )
    return of.name


def _whole(value: int, meta: Meta) -> ex.Constant:
    return ex.Constant(value, "int" if value < 2**31 else "long", at=place(meta))


def _operator(sign: Token) -> str:
    return "!=" if sign == "<>" else str(sign)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    signs = iter(text)
    for sign in signs:
        if sign != "\\":
            out.append(sign)
            continue
        escaped = next(signs)
        if escaped == "u":
            escaped = chr(int("".join(next(signs) for _ in range(4)), 16))
        out.append(_ESCAPES.get(escaped, escaped))
    return "".join(out)


v_args(meta=True)(ReadExpressions)  # in place: as a decorator it would hide the type of the class
