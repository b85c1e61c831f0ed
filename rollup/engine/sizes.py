"""How long a text may get: one event with a large number in it must not make a text that fills the memory."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from rollup.core.dialects import MOST_CHARACTERS, TOO_LONG
from rollup.core.errors import QueryError


def repeated(text: str, times: int) -> str:
    """A text so many times. Raises QueryError where it would be too long.

    >>> repeated("ab", 2)
    'abab'
    """
    return _short(len(text) * times, lambda: text * times)


def replaced(text: str, old: str, new: str) -> str:
    """A text with other parts in place of some. Raises QueryError where it would be too long.

    >>> replaced("a-b", "-", "+")
    'a+b'
    """
    grows = len(new) > len(old)
    return _short(text.count(old) * len(new) if grows else 0, lambda: text.replace(old, new))


def joined(*texts: str) -> str:
    """Texts one after the other. Raises QueryError where the whole would be too long.

    >>> joined("a", "b")
    'ab'
    """
    return _short(sum(map(len, texts)), lambda: "".join(texts))


def _short(length: int, made: Callable[[], str]) -> str:
    if length > MOST_CHARACTERS:
        raise QueryError(f"{TOO_LONG}: it would have {length:,}")
    return made()


def sized(part: exp.Expr) -> exp.Expr:
    """A call for DuckDB that is an error where its text would be too long; what makes no text longer is as it was.

    >>> from sqlglot import parse_one
    >>> sized(parse_one("REPEAT(k, 3)")).sql("duckdb")
    "REPEAT(k, CASE WHEN LENGTH(k) * CAST(3 AS INT128) > 16777216 THEN ERROR('a text of more than 16,777,216 characters') ELSE 3 END)"
    """
    if isinstance(part, exp.Pad):
        return _bounded(part, "expression", None)
    if isinstance(part, exp.Repeat):
        return _bounded(part, "times", part.this)
    if isinstance(part, exp.Space):
        return _bounded(part, "this", None)
    if isinstance(part, exp.Replace) and not isinstance(part.args.get("replacement"), exp.Literal | None):
        return _bounded(part, "replacement", part.this)
    return part


def _bounded(call: exp.Expr, name: str, of: exp.Expr | None) -> exp.Expr:
    """The call with a bound for one of its arguments: as a number, or as that of the characters for each of `of`."""
    given = call.args[name]
    number = _length(given) if isinstance(call, exp.Replace) else given.copy()
    size: exp.Expr = exp.cast(number, "HUGEINT", dialect="duckdb")
    if of is not None:
        size = exp.Mul(this=_length(of), expression=size)
    long = exp.GT(this=size, expression=exp.Literal.number(MOST_CHARACTERS))
    error = exp.Anonymous(this="ERROR", expressions=[exp.Literal.string(TOO_LONG)])
    found = call.copy()
    found.set(name, exp.Case(ifs=[exp.If(this=long, true=error)], default=given.copy()))
    return found


def _length(text: exp.Expr) -> exp.Expr:
    return exp.Length(this=text.copy())
