"""The range that a query's WHERE leaves of a level's view: what its conditions on AGG_TIMESTAMP and AGG_TIME say.

The conditions stay in the query, so a range is right as long as it is not too small. Bounds that are no constants are
given as expressions, which the server computes with the parameters of the moment.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sqlglot import exp

from rollup.core.conditions import conjuncts
from rollup.lang.sql.within import Within
from rollup.plan.aggregation import TIME, TIMESTAMP

Bound = exp.Expr | int | None

_STEADY = (
    exp.Literal, exp.Parameter, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Paren, exp.Neg, exp.Add, exp.Sub,
    exp.Mul, exp.Interval, exp.Var, exp.StrToTime, exp.TimestampTrunc, exp.CurrentTimestamp, exp.CurrentDate,
    exp.Identifier, exp.UnixToTime,
)  # fmt: skip
_MIRROR: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
}


def time_bounds(within: Within) -> tuple[Bound, Bound]:
    """First millisecond and the one after the last that rows may have; None where nothing bounds them."""
    lows: list[exp.Expr | int] = []
    highs: list[exp.Expr | int] = []
    for kind, name, value in _comparisons(within):
        if issubclass(kind, (exp.GT, exp.GTE, exp.EQ)):
            lows.append(_instant(name, value, up=False))
        if issubclass(kind, exp.LT):
            highs.append(_instant(name, value, up=True))
        elif issubclass(kind, (exp.LTE, exp.EQ)):
            highs.append(_after(_instant(name, value, up=False)))
    return _joined(lows, "GREATEST"), _joined(highs, "LEAST")


def _comparisons(within: Within) -> Iterator[tuple[type[exp.Expr], str, exp.Expr]]:
    """Comparisons of the source's time with something steady, the time on the left.

    A comparison that WHERE demands rejects nulls, so it may go before any join.
    """
    select = within.parent_select
    where = select.args.get("where") if select else None
    if select is None or not isinstance(where, exp.Where):
        return
    alone = not select.args.get("joins") and not select.args.get("laterals")
    for part in conjuncts(where.this):
        for kind, left, right in _sides(part):
            if isinstance(left, exp.Column) and _ours(left, within, alone) and _steady(right):
                yield kind, left.name, right


def _sides(part: exp.Expr) -> Iterator[tuple[type[exp.Expr], exp.Expr, exp.Expr]]:
    if isinstance(part, exp.Between) and not part.args.get("symmetric"):
        yield exp.GTE, part.this, part.args["low"]
        yield exp.LTE, part.this, part.args["high"]
    mirror = _MIRROR.get(type(part))
    if mirror is not None:
        yield type(part), part.this, part.args["expression"]
        yield mirror, part.args["expression"], part.this


def is_time(node: exp.Expr, within: Within) -> bool:
    """Whether an expression is AGG_TIME of a source."""
    select = within.parent_select
    alone = select is not None and not select.args.get("joins") and not select.args.get("laterals")
    bare = node.unnest()
    return isinstance(bare, exp.Column) and bare.name == TIME and _ours(bare, within, alone)


def _ours(column: exp.Column, within: Within, alone: bool) -> bool:
    if column.name not in (TIMESTAMP, TIME) or column.args.get("db"):
        return False
    return column.table.casefold() == within.source_name.casefold() if column.table else alone


def _steady(node: exp.Expr) -> bool:
    """Whether a node has one value for the whole query."""
    return all(isinstance(each, _STEADY) for each in node.walk())


def _instant(name: str, value: exp.Expr, up: bool) -> exp.Expr | int:
    """The bound as a whole number of milliseconds, rounded up or down."""
    bare = value.unnest()
    if name == TIME:
        seconds = exp.Extract(this=exp.Var(this="epoch"), expression=exp.cast(value.copy(), "timestamptz"))
        return _rounded(exp.Mul(this=seconds, expression=exp.Literal.number(1000)), up)
    number = _number(bare.name, up) if isinstance(bare, exp.Literal) and not bare.is_string else None
    if number is not None:
        return number
    if isinstance(bare, (exp.Parameter, exp.Literal)):
        return exp.cast(bare.copy(), "bigint")  # what the comparison makes of it, too
    return _rounded(exp.cast(exp.paren(value.copy()), "numeric"), up)


def _rounded(node: exp.Expr, up: bool) -> exp.Expr:
    return exp.cast(exp.Anonymous(this="CEIL" if up else "FLOOR", expressions=[node]), "bigint")


def _after(bound: exp.Expr | int) -> exp.Expr | int:
    return bound + 1 if isinstance(bound, int) else exp.Add(this=bound, expression=exp.Literal.number(1))


def _number(text: str, up: bool) -> int | None:
    try:
        number = int(text) if text.isdigit() else (math.ceil if up else math.floor)(float(text))
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 2**62 else None


def _joined(bounds: list[exp.Expr | int], function: str) -> Bound:
    if not bounds:
        return None
    numbers = [each for each in bounds if isinstance(each, int)]
    if len(numbers) == len(bounds):
        return max(numbers) if function == "GREATEST" else min(numbers)
    nodes = [exp.Literal.number(each) if isinstance(each, int) else each for each in bounds]
    return exp.cast(exp.Anonymous(this=function, expressions=nodes), "bigint")
