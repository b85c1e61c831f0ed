"""How long a text may get: one event with a large number in it must not make a text that fills the memory."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from rollup.core.dialects import MOST_CHARACTERS, TOO_LONG
from rollup.core.errors import QueryError
from rollup.engine.room import BEYOND, LONG, counts


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
    counts(length)
    return made()


def bounded(tree: exp.Expr) -> exp.Expr:
    """A tree of DuckDB's in which each call is `sized`, also within another one."""
    root = exp.Paren(this=tree.copy())
    for part in list(root.walk(bfs=False))[:0:-1]:  # from the inside out, so that what is replaced is done inside
        if (new := sized(part)) is not part:
            part.replace(new)
    return root.this.pop()


def sized(part: exp.Expr) -> exp.Expr:
    """A call for DuckDB that is an error where its text would be too long, and counts it where it is long, see
    `rollup.engine.room.Counter`; what makes no text longer is as it was.

    >>> from sqlglot import parse_one
    >>> sized(parse_one("REPEAT(k, 3)")).sql("duckdb")
    "REPEAT(k, CASE WHEN LENGTH(k) * CAST(3 AS INT128) > 16777216 THEN ERROR('a text of more than 16,777,216 characters') \
WHEN LENGTH(k) * CAST(3 AS INT128) > 16384 THEN CASE WHEN BEYOND_ROOM(LENGTH(k) * CAST(3 AS INT128)) THEN NULL ELSE 3 END \
ELSE 3 END)"
    >>> sized(parse_one("k || '-'")).sql("duckdb")
    "k || '-'"
    """
    if isinstance(part, exp.DPipe | exp.Concat | exp.ConcatWs):
        return part if isinstance(part.parent, exp.DPipe) else _whole(part)
    if isinstance(part, exp.Pad):
        return _bounded(part, "expression")
    if isinstance(part, exp.Repeat):
        return _bounded(part, "times", "this")
    if isinstance(part, exp.Space):
        return _bounded(part, "this")
    if isinstance(part, exp.Replace) and not isinstance(part.args.get("replacement"), exp.Literal | None):
        return _bounded(part, "replacement", "this")
    return part


def _whole(call: exp.Expr) -> exp.Expr:
    """Parts one after the other, with a bound where two of them are no constants."""
    parts = list(call.flatten()) if isinstance(call, exp.DPipe) else call.expressions
    if sum(not isinstance(part, exp.Literal) for part in parts) < 2:
        return call
    return _once(call, _checked(_length(_OF), _OF))


def _bounded(call: exp.Expr, name: str, of: str = "") -> exp.Expr:
    """The call with a bound for one of its arguments: as a number, or as that of the characters for each of `of`."""
    found, given = call.copy(), {key: part for key, part in call.args.items() if isinstance(part, exp.Expr)}
    simple = all(isinstance(part, exp.Column | exp.Literal) for part in given.values())
    for key in () if simple else given:
        found.set(key, exp.Dot(this=_OF.copy(), expression=exp.to_identifier(key)))
    number = _length(found.args[name]) if isinstance(call, exp.Replace) else found.args[name].copy()
    size: exp.Expr = exp.cast(number, "HUGEINT", dialect="duckdb")
    if of:
        size = exp.Mul(this=_length(found.args[of]), expression=size)
    found.set(name, _checked(size, found.args[name]))
    if simple:
        return found
    fields = [exp.PropertyEQ(this=exp.to_identifier(key), expression=part.copy()) for key, part in given.items()]
    return _once(exp.Struct(expressions=fields), found)


_OF = exp.to_identifier("of")


def _once(value: exp.Expr, result: exp.Expr) -> exp.Expr:
    """A result of a value, which is called `of` there: calls within calls would double each time it is written."""
    each = exp.Lambda(this=result, expressions=[_OF.copy()])
    return exp.Bracket(
        this=exp.Transform(this=exp.Array(expressions=[value.copy()]), expression=each),
        expressions=[exp.Literal.number(0)],
    )


def _checked(size: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A value where a text of this size may be made."""
    error = exp.Anonymous(this="ERROR", expressions=[exp.Literal.string(TOO_LONG)])
    beyond = exp.Anonymous(this=BEYOND.upper(), expressions=[size.copy()])
    counted = exp.Case(ifs=[exp.If(this=beyond, true=exp.Null())], default=value.copy())
    return exp.Case(ifs=[_above(size, MOST_CHARACTERS, error), _above(size, LONG, counted)], default=value.copy())


def _above(size: exp.Expr, bound: int, then: exp.Expr) -> exp.If:
    return exp.If(this=exp.GT(this=size.copy(), expression=exp.Literal.number(bound)), true=then)


def _length(text: exp.Expr) -> exp.Expr:
    return exp.Length(this=text.copy())
