"""Calcite's expressions as DuckDB computes them: where a word of both means two things, ours is written out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from rollup.engine.flows.flow import Relational
from rollup.engine.sizes import sized
from rollup.lang.calcite.dialect import ADD, DIFFERENCE, INTERVAL_OF, UNITS
from rollup.lang.calcite.semantics import MONTHS, Kind, Kinds, interval, kind, refused
from rollup.lang.calcite.similar import similar

_NOW = (exp.CurrentTimestamp, exp.Localtimestamp, exp.Localtime, exp.CurrentTime, exp.CurrentDate)

_NARROWED = "a sum that is narrowed"


def duck(node: exp.Expr, of: Kinds, now: datetime | None = None) -> exp.Expr:
    """An expression as DuckDB computes it; `now` is what CURRENT_TIMESTAMP gives."""
    # A part's kind is that of what was written: told before anything inside it is replaced.
    sides = {id(part): _sides(part, of) for part in node.find_all(*_CHANGED)}
    translation = _Translation(sides, now or datetime.now())
    root = exp.Paren(this=node)
    for part in list(root.walk(bfs=False))[
        :0:-1
    ]:  # from the inside out, so that what is replaced has its own inside done
        new = translation.of(part)
        if new is not part:
            part.replace(new)
    return root.this.pop()


def narrowed(tree: exp.Expr) -> list[exp.Expr]:
    """The sums of whole numbers in a translated query, each with the cast that makes 64 bits of it."""
    return [part for part in tree.find_all(exp.TryCast) if _NARROWED in part.meta]


def strict(tree: exp.Query, only: int | None = None) -> exp.Query:
    """The query with an error where a sum, any or one of `narrowed`, is beyond 64 bits: nobody counts nulls in rows
    that are asked for once."""
    found: exp.Query = tree.copy()
    for place, part in enumerate(narrowed(found)):
        if only in (None, place):
            part.replace(exp.Cast(this=part.this, to=part.args["to"]))
    return found


def counting(tree: exp.Query, engine: Relational) -> exp.Query:
    """The query of a stream over tables: what of its sums is beyond 64 bits is null, and counted."""
    parts = narrowed(tree)
    if parts:
        engine.narrows()
    for part in parts:
        part.replace(exp.Anonymous(this="narrowed", expressions=[exp.cast(part.this, "HUGEINT", dialect="duckdb")]))
    return tree


def _sides(part: exp.Expr, of: Kinds) -> tuple[Kind, Kind]:
    """The kinds of a part's operands; of a function, of its first argument."""
    if isinstance(part, exp.Binary):
        return kind(part.left, of), kind(part.right, of)
    if isinstance(part, exp.Anonymous):
        return (kind(part.expressions[-1], of) if part.expressions else Kind.OTHER), Kind.OTHER
    argument = part.args.get("expression") if isinstance(part, exp.Extract) else part.this
    return (kind(argument, of) if isinstance(argument, exp.Expr) else Kind.OTHER), Kind.OTHER


_CHANGED = (
    exp.Div, exp.Add, exp.Sub, exp.Sum, exp.Cast, exp.Floor, exp.Ceil, exp.Extract, exp.DayOfWeek, exp.Anonymous,
)  # fmt: skip


@dataclass(frozen=True)
class _Translation:
    """One expression: the kinds of what stands in it, by identity, and the time."""

    sides: Mapping[int, tuple[Kind, Kind]]
    now: datetime

    def of(self, part: exp.Expr) -> exp.Expr:
        """What stands for a part, the part itself where DuckDB means the same."""
        left, right = self.sides.get(id(part), (Kind.OTHER, Kind.OTHER))
        match part:
            case exp.Interval():
                return _duck_interval(part)
            case exp.Floor() | exp.Ceil():
                return _rounded(part, left) if part.args.get("to") else part.this if left is Kind.WHOLE else part
            case exp.Anonymous():
                return _named(part, left)
            case exp.Div():
                return _division(part, left, right)
            case exp.Add() | exp.Sub():
                return _moved(part, left, right)
            case exp.Cast():
                return _cast(part, left)
            case exp.Extract():
                return _extracted(part)
            case exp.DayOfWeek():
                return _raised(part)
            case exp.SimilarTo() if not isinstance(part.parent, exp.Escape):
                return similar(part, None)
            case exp.Escape() if isinstance(part.this, exp.SimilarTo):
                return similar(part.this, part.expression)
            case exp.Pad() | exp.Repeat() | exp.Space() | exp.Replace() | exp.DPipe() | exp.Concat() | exp.ConcatWs():
                return sized(part)
            case _ if isinstance(part, _NOW):
                return self._now(part)
            case _:
                return self._sum(part)

    def _sum(self, part: exp.Expr) -> exp.Expr:
        """Beyond 64 bits a sum of whole numbers is null."""
        inner = part.this if isinstance(part, exp.Window) else part
        while isinstance(inner, exp.Filter):
            inner = inner.this
        whole = isinstance(inner, exp.Sum) and self.sides.get(id(inner), (Kind.OTHER,))[0] is Kind.WHOLE
        if not whole or isinstance(part.parent, (exp.Window, exp.Filter)):
            return part
        narrowed = exp.TryCast(this=part.copy(), to=exp.DataType.build("BIGINT"))
        narrowed.meta[_NARROWED] = True
        return narrowed

    def _now(self, part: exp.Expr) -> exp.Expr:
        stamp = _timestamp(self.now)
        if isinstance(part, exp.CurrentDate):
            return exp.cast(stamp, "DATE", dialect="duckdb")
        return (
            exp.cast(stamp, "TIME", dialect="duckdb") if isinstance(part, (exp.CurrentTime, exp.Localtime)) else stamp
        )


def _timestamp(value: datetime) -> exp.Expr:
    return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "TIMESTAMP", dialect="duckdb")


def _duck_interval(node: exp.Interval) -> exp.Expr:
    unit = node.args.get("unit")
    if isinstance(unit, exp.Var) and unit.name == "MICROSECOND":
        return node  # ours, and done
    if isinstance(unit, exp.IntervalSpan) and unit.this.name.upper() == "YEAR":
        return _years_and_months(node)
    name = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    if name in MONTHS:
        return exp.Interval(this=exp.Literal.string(str(int(node.this.name) * MONTHS[name])), unit=exp.var("MONTH"))
    return exp.Interval(this=exp.Literal.string(str(interval(node))), unit=exp.var("MICROSECOND"))


def _years_and_months(node: exp.Interval) -> exp.Expr:
    """'1-2' YEAR TO MONTH."""
    sign, parts = (-1 if node.this.name.startswith("-") else 1), node.this.name.lstrip("-").split("-")
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        raise refused(node, f"{node.this.name!r} is no interval of YEAR TO MONTH", "as in INTERVAL '1-2' YEAR TO MONTH")
    months = sign * (12 * int(parts[0]) + int(parts[1]))
    return exp.Interval(this=exp.Literal.string(str(months)), unit=exp.var("MONTH"))


def _division(node: exp.Div, left: Kind, right: Kind) -> exp.Expr:
    """Whole numbers are cut; by zero is an error of exact numbers, and infinite for doubles."""
    above, below = node.left.copy(), node.right.copy()
    if left is right is Kind.INTERVAL:
        parts = [exp.Anonymous(this="epoch", expressions=[side]) for side in (above, below)]
        return exp.Div(this=parts[0], expression=parts[1], typed=False, safe=False)
    if left is right is Kind.WHOLE:
        return exp.IntDiv(this=above, expression=below)
    if left.exact and right.exact and not (isinstance(below, exp.Literal) and float(below.name)):
        zero = exp.EQ(this=exp.paren(below.copy()), expression=exp.Literal.number(0))
        one, same = exp.Literal.number(1), exp.cast(below.copy(), "INTEGER", dialect="duckdb")
        below = exp.Case(ifs=[exp.If(this=zero, true=exp.IntDiv(this=one, expression=same))], default=below)
    return exp.Div(this=above, expression=below, typed=False, safe=False)


def _moved(node: exp.Add | exp.Sub, left: Kind, right: Kind) -> exp.Expr:
    """A date and an interval are a date; the distance of two dates is an interval."""
    if isinstance(node, exp.Sub) and left.moment and right.moment:
        stamps = [exp.cast(side.copy(), "TIMESTAMP", dialect="duckdb") for side in (node.left, node.right)]
        return exp.Sub(this=stamps[0], expression=stamps[1])
    if {left, right} == {Kind.DATE, Kind.INTERVAL}:
        return exp.cast(exp.paren(node.copy()), "DATE", dialect="duckdb")
    return node


def _cast(node: exp.Cast, source: Kind) -> exp.Expr:
    """Numbers are cut, not rounded; texts get the length of their type; truth is told in capitals."""
    to, value = node.to, node.this
    if source is Kind.BOOLEAN and to.is_type(*exp.DataType.TEXT_TYPES):
        value = exp.Upper(this=exp.cast(value.copy(), "VARCHAR", dialect="duckdb"))
    if to.is_type(*exp.DataType.TEXT_TYPES):
        return _sized(exp.Cast(this=value.copy(), to=exp.DataType.build("VARCHAR")), to)
    if source in (Kind.DECIMAL, Kind.FLOAT) and to.is_type(*exp.DataType.INTEGER_TYPES):
        return exp.Cast(this=exp.Trunc(this=value.copy()), to=to.copy())
    if source in (Kind.DECIMAL, Kind.FLOAT) and to.is_type(exp.DataType.Type.DECIMAL):
        scale = to.expressions[1].copy() if len(to.expressions) > 1 else exp.Literal.number(0)
        return exp.Cast(
            this=exp.Trunc(this=value.copy(), decimals=scale.this.copy() if scale.this else scale), to=to.copy()
        )
    return node


def _sized(text: exp.Expr, to: exp.DataType) -> exp.Expr:
    fixed = to.is_type(exp.DataType.Type.CHAR, exp.DataType.Type.NCHAR)
    if not to.expressions and not fixed:
        return text
    size = to.expressions[0].this.copy() if to.expressions else exp.Literal.number(1)
    if not fixed:
        return exp.Left(this=text, expression=size)
    return exp.Anonymous(this="rpad", expressions=[text, size, exp.Literal.string(" ")])


def _extracted(node: exp.Extract) -> exp.Expr:
    """Sunday is day 1 of the week; the seconds since 1970 are a whole number."""
    unit = node.name.upper()
    if unit in ("DOW", "DAYOFWEEK"):
        return _raised(node)
    return exp.cast(exp.Floor(this=node.copy()), "BIGINT", dialect="duckdb") if unit == "EPOCH" else node


def _raised(node: exp.Expr) -> exp.Expr:
    return exp.paren(exp.Add(this=node.copy(), expression=exp.Literal.number(1)))


def _named(node: exp.Anonymous, last: Kind) -> exp.Expr:
    if node.name == INTERVAL_OF:
        return node.expressions[0].copy()
    if node.name == DIFFERENCE:
        return _difference(*node.expressions)
    if node.name != ADD:
        return node
    unit, amount, start = (part.copy() for part in node.expressions)
    step = exp.Interval(this=exp.Literal.string(str(MONTHS.get(unit.name, 1))),
                        unit=exp.var("MONTH" if unit.name in MONTHS else unit.name))  # fmt: skip
    moved = exp.Add(this=start, expression=exp.Mul(this=exp.paren(amount), expression=step))
    days = last is Kind.DATE and unit.name in ("DAY", "WEEK", *MONTHS)
    return exp.cast(moved, "DATE", dialect="duckdb") if days else moved


def _difference(unit: exp.Expr, start: exp.Expr, end: exp.Expr) -> exp.Expr:
    """How many whole units lie between two times. A month is whole when its day of the month, and time, is reached."""
    if unit.name not in MONTHS:
        return exp.Anonymous(
            this="datesub", expressions=[exp.Literal.string(unit.name.lower()), start.copy(), end.copy()]
        )
    later = exp.GTE(this=end.copy(), expression=start.copy())
    back = exp.Neg(this=exp.paren(_months(end, start)))
    months = exp.Case(ifs=[exp.If(this=later, true=_months(start, end))], default=back)
    return exp.IntDiv(this=months, expression=exp.Literal.number(MONTHS[unit.name]))


def _months(start: exp.Expr, end: exp.Expr) -> exp.Expr:
    """Whole months from a time to a later one."""
    unit = exp.Literal.string("month")
    borders = exp.Anonymous(this="datediff", expressions=[unit, start.copy(), end.copy()])
    into = [
        exp.Sub(this=part.copy(), expression=exp.Anonymous(this="date_trunc", expressions=[unit.copy(), part.copy()]))
        for part in (start, end)
    ]
    short = exp.If(this=exp.LT(this=into[1], expression=into[0]), true=exp.Literal.number(1))
    return exp.Sub(this=borders, expression=exp.Case(ifs=[short], default=exp.Literal.number(0)))


def _rounded(node: exp.Floor | exp.Ceil, source: Kind) -> exp.Expr:
    """FLOOR and CEIL of a time to a unit; weeks begin on Sunday, and a boundary is its own CEIL."""
    unit = node.args["to"].name.upper()
    if unit not in UNITS:
        raise refused(node, f"{unit} is no unit of time", f"one of {', '.join(UNITS)}")
    value = node.this.copy()
    if source is Kind.CLOCK:
        return _rounded_clock(node, value, unit)
    value = exp.cast(value, "TIMESTAMP", dialect="duckdb")
    floor = _truncated(value, unit)
    if isinstance(node, exp.Ceil):
        step = exp.Interval(this=exp.Literal.string(str(MONTHS.get(unit, 7 if unit == "WEEK" else 1))),
                            unit=exp.var("MONTH" if unit in MONTHS else "DAY" if unit == "WEEK" else unit))  # fmt: skip
        above = exp.Add(this=floor.copy(), expression=step)
        exact = exp.If(this=exp.EQ(this=floor, expression=value.copy()), true=value.copy())
        floor = exp.Case(ifs=[exact], default=above)
    return exp.cast(floor, "DATE", dialect="duckdb") if source is Kind.DATE else floor


def _rounded_clock(node: exp.Floor | exp.Ceil, value: exp.Expr, unit: str) -> exp.Expr:
    """Of a time of day, by way of a day; what rounds up to midnight is 00:00:00."""
    day = exp.Add(this=exp.cast(exp.Literal.string("1970-01-01"), "DATE", dialect="duckdb"), expression=value)
    stamped = type(node)(this=day, to=exp.var(unit))
    return exp.cast(_rounded(stamped, Kind.STAMP), "TIME", dialect="duckdb")


def _truncated(value: exp.Expr, unit: str) -> exp.Expr:
    day = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("DAY"))
    if unit != "WEEK":
        return exp.Anonymous(this="date_trunc", expressions=[exp.Literal.string(unit.lower()), value.copy()])
    monday = exp.Anonymous(
        this="date_trunc", expressions=[exp.Literal.string("week"), exp.Add(this=value.copy(), expression=day)]
    )
    return exp.cast(exp.Sub(this=monday, expression=day.copy()), "TIMESTAMP", dialect="duckdb")
