"""What Calcite's expressions mean: their kinds, and how they move with a column that moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from sqlglot import exp

from rollup.core.errors import PlanError
from rollup.engine.flows.flow import Monotone
from rollup.lang.calcite.dialect import ADD, DIFFERENCE, INTERVAL_OF

MICROSECONDS = {
    "SECOND": 10**6,
    "MINUTE": 60 * 10**6,
    "HOUR": 3600 * 10**6,
    "DAY": 86400 * 10**6,
    "WEEK": 7 * 86400 * 10**6,
}
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
WINDOW_FUNCTIONS = ("TUMBLE", "HOP")
AUXILIARY = ("TUMBLE_START", "TUMBLE_END", "HOP_START", "HOP_END")

_TIMES = (*AUXILIARY, *WINDOW_FUNCTIONS, "MAKE_TIMESTAMP")


class Kind(StrEnum):
    """What a value is, as far as arithmetic must know."""

    WHOLE = "whole"
    DECIMAL = "decimal"
    FLOAT = "float"
    INTERVAL = "interval"
    STAMP = "stamp"
    DATE = "date"
    CLOCK = "clock"
    BOOLEAN = "boolean"
    TEXT = "text"
    OTHER = "other"

    @property
    def exact(self) -> bool:
        """Whether it is a number without a rounding of its own."""
        return self in (Kind.WHOLE, Kind.DECIMAL)

    @property
    def numeric(self) -> bool:
        """Whether it is a number."""
        return self.exact or self is Kind.FLOAT

    @property
    def moment(self) -> bool:
        """Whether it is a day, or a time on one."""
        return self in (Kind.STAMP, Kind.DATE)


_KINDS = (
    (("INTERVAL",), Kind.INTERVAL),
    (("INT", "BIGINT", "SMALLINT", "TINYINT", "HUGEINT"), Kind.WHOLE),
    (("DECIMAL", "NUMERIC"), Kind.DECIMAL),
    (("DOUBLE", "FLOAT", "REAL"), Kind.FLOAT),
    (("TIMESTAMP",), Kind.STAMP),
    (("TIME",), Kind.CLOCK),
    (("DATE",), Kind.DATE),
    (("BOOL",), Kind.BOOLEAN),
    (("TEXT", "VARCHAR", "CHAR", "STRING"), Kind.TEXT),
)
_ALWAYS: tuple[tuple[tuple[type[exp.Expr], ...], Kind], ...] = (
    ((exp.Count, exp.Extract, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.Length, exp.StrPosition, exp.Ascii,
      exp.Year, exp.Quarter, exp.Month, exp.Week, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.Hour, exp.Minute,
      exp.Second, exp.Grouping, exp.GroupingId, exp.RegrCount), Kind.WHOLE),
    ((exp.Avg, exp.Exp, exp.Sqrt, exp.Ln, exp.Log, exp.Cbrt, exp.Median, exp.Pow, exp.Stddev, exp.StddevPop, exp.StddevSamp,
      exp.Variance, exp.VariancePop, exp.CovarPop, exp.CovarSamp, exp.Corr, exp.RegrSxx, exp.RegrSyy, exp.PercentRank,
      exp.CumeDist, exp.Rand, exp.Sin, exp.Cos, exp.Tan, exp.Cot, exp.Asin, exp.Acos, exp.Atan, exp.Atan2, exp.Degrees,
      exp.Radians), Kind.FLOAT),
    ((exp.CurrentTimestamp, exp.Localtimestamp), Kind.STAMP),
    ((exp.CurrentTime, exp.Localtime), Kind.CLOCK),
    ((exp.CurrentDate,), Kind.DATE),
    ((exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.Initcap, exp.Overlay, exp.Replace, exp.GroupConcat), Kind.TEXT),
)  # fmt: skip
_OF_FIRST = (
    exp.Paren, exp.Neg, exp.Max, exp.Min, exp.Window, exp.Filter, exp.Abs, exp.Sign, exp.Sum, exp.Floor, exp.Ceil,
    exp.Round, exp.Trunc, exp.Nullif, exp.AnyValue, exp.Mode, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag,
    exp.Lead, exp.IgnoreNulls, exp.RespectNulls, exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg,
)  # fmt: skip
"""What has the kind of its first argument."""

Kinds = Callable[[exp.Column], Kind]
"""The kind of a column."""
Moves = Callable[[exp.Column], Monotone | None]
"""How a column moves."""


def kind_of_type(name: str) -> Kind:
    """The kind of a DuckDB type."""
    upper = name.upper()
    return next((found for begins, found in _KINDS if upper.startswith(begins)), Kind.OTHER)


def kind(node: exp.Expr, of: Kinds) -> Kind:
    """The kind of an expression."""
    match node:
        case exp.Column():
            return of(node)
        case _ if isinstance(node, _OF_FIRST):
            return kind(node.this, of)
        case exp.Distinct():
            return kind(node.expressions[0], of)
        case exp.Interval():
            return Kind.INTERVAL
        case exp.Literal():
            return Kind.TEXT if node.is_string else Kind.WHOLE if node.is_int else _literal_kind(node)
        case exp.Cast():
            return kind_of_type(node.to.sql("duckdb"))
        case exp.Subquery() | exp.Select():
            return kind(node.selects[0].unalias(), of) if len(node.selects) == 1 else Kind.OTHER
        case exp.Coalesce() | exp.Case():
            return _widest([kind(part, of) for part in branches(node)])
        case exp.Anonymous():
            return _named_kind(node, of)
        case exp.Binary():
            return _binary_kind(node, of)
        case exp.Boolean() | exp.Predicate() | exp.Not() | exp.LogicalAnd() | exp.LogicalOr():
            return Kind.BOOLEAN
        case _:
            return next((found for kinds, found in _ALWAYS if isinstance(node, kinds)), Kind.OTHER)


def _literal_kind(node: exp.Literal) -> Kind:
    return Kind.FLOAT if "e" in node.name.lower() else Kind.DECIMAL


def branches(node: exp.Coalesce | exp.Case) -> list[exp.Expr]:
    """What may be its value."""
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    default = node.args.get("default")
    return [*(part.args["true"] for part in node.args["ifs"]), *([default] if default is not None else [])]


def _widest(kinds: Sequence[Kind]) -> Kind:
    """The kind that holds all of several; what cannot be told, as a null, is left out."""
    known = [found for found in kinds if found is not Kind.OTHER]
    if known and all(found.numeric for found in known):
        return next(found for found in (Kind.FLOAT, Kind.DECIMAL, Kind.WHOLE) if found in known)
    return known[0] if len(set(known)) == 1 else Kind.OTHER


def _named_kind(node: exp.Anonymous, of: Kinds) -> Kind:
    name = node.name.upper()
    if name == ADD:
        unit, _, start = node.expressions
        whole_days = unit.name in ("DAY", "WEEK", *MONTHS)
        return Kind.DATE if kind(start, of) is Kind.DATE and whole_days else Kind.STAMP
    return Kind.INTERVAL if name == INTERVAL_OF else Kind.WHOLE if name == DIFFERENCE else (
        Kind.STAMP if name in _TIMES else Kind.OTHER)  # fmt: skip


def _binary_kind(node: exp.Binary, of: Kinds) -> Kind:
    if isinstance(node, (exp.Predicate, exp.Connector)):
        return Kind.BOOLEAN
    if isinstance(node, exp.DPipe):
        return Kind.TEXT
    left, right = kind(node.left, of), kind(node.right, of)
    if isinstance(node, exp.Sub) and left.moment and right.moment:
        return Kind.INTERVAL
    if isinstance(node, (exp.Add, exp.Sub)):
        moment = next((found for found in (left, right) if found.moment or found is Kind.CLOCK), None)
        if moment is not None:
            return moment
    if isinstance(node, exp.Div) and left is right is Kind.INTERVAL:
        return Kind.FLOAT
    if Kind.INTERVAL in (left, right):
        return Kind.INTERVAL
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)):
        return _widest([left, right]) if left.numeric and right.numeric else Kind.OTHER
    return Kind.OTHER


# how an expression moves

_SAME, _FLIPPED = 1, -1


def moves(node: exp.Expr, of: Moves) -> Monotone | None:
    """How an expression moves when its columns do; None when it moves as it likes. A constant moves either way."""
    way = _way(node, of)
    strict = isinstance(node, exp.Column) and (of(node) or Monotone()).strict
    return None if way is None or way == 0 else Monotone(way > 0, strict)


def _way(node: exp.Expr, of: Moves) -> int | None:
    """1 rises, -1 falls, 0 stands still, None unknown."""
    match node:
        case exp.Column():
            found = of(node)
            return None if found is None else 1 if found.rising else -1
        case exp.Literal() | exp.Interval() | exp.CurrentTimestamp() | exp.Null() | exp.Boolean():
            return 0
        case exp.Paren() | exp.Cast():
            return _way(node.this, of)
        case exp.Floor() | exp.Ceil() | exp.Year():
            return _way(node.this, of)
        case exp.Extract():
            return _way(node.expression, of) if node.name.upper() in ("YEAR", "EPOCH") else _still(node.expression, of)
        case exp.Neg():
            return _flip(_way(node.this, of))
        case exp.Anonymous() if node.name == ADD:
            return _way(node.expressions[2], of) if _way(node.expressions[1], of) == 0 else None
        case exp.Anonymous():
            return (
                _way(node.expressions[0], of) if node.name in (INTERVAL_OF, "make_timestamp") else _all_still(node, of)
            )
        case exp.Add():
            return _sum(_way(node.left, of), _way(node.right, of))
        case exp.Sub():
            return _difference(node, of)
        case exp.Mul() | exp.Div():
            return _product(node, of)
        case _:
            return _all_still(node, of)


def _all_still(node: exp.Expr, of: Moves) -> int | None:
    columns = list(node.find_all(exp.Column))
    return 0 if not columns and not node.find(exp.AggFunc, exp.Window) else None


def _still(node: exp.Expr, of: Moves) -> int | None:
    return 0 if _way(node, of) == 0 else None


def _flip(way: int | None) -> int | None:
    return None if way is None else -way


def _sum(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    return left or right if left == 0 or right == 0 or left == right else None


def _difference(node: exp.Sub, of: Moves) -> int | None:
    left, right = _way(node.left, of), _way(node.right, of)
    return _sum(left, _flip(right)) if 0 in (left, right) else None


def _product(node: exp.Mul | exp.Div, of: Moves) -> int | None:
    left, right = _way(node.left, of), _way(node.right, of)
    if left == 0 and right == 0:
        return 0
    value = constant(node.right)
    if right == 0 and value is not None:
        return None if left is None else 0 if value == 0 else left if value > 0 else -left
    value = constant(node.left)
    if left == 0 and value is not None and isinstance(node, exp.Mul):
        return None if right is None else 0 if value == 0 else right if value > 0 else -right
    return None


def constant(node: exp.Expr) -> float | None:
    """The number that an expression without columns is; None when it is none."""
    match node:
        case exp.Paren():
            return constant(node.this)
        case exp.Neg():
            value = constant(node.this)
            return None if value is None else -value
        case exp.Literal() if not node.is_string:
            return float(node.this)
        case exp.Interval():
            return interval(node)
        case _:
            return None


# constants


def interval(node: exp.Expr) -> int:
    """The microseconds of an interval of days and less. Raises PlanError for months and for what is no interval."""
    if not isinstance(node, exp.Interval):
        raise refused(node, f"{node.sql()} is no interval", "as in INTERVAL '1' HOUR")
    unit = node.args.get("unit")
    text = node.this.name if isinstance(node.this, exp.Expr) else str(node.this)
    if isinstance(unit, exp.IntervalSpan):
        return _compound(node, text, unit.this.name.upper(), unit.expression.name.upper())
    size = MICROSECONDS.get(str(unit.name if unit else "").upper().removesuffix("S"))
    try:
        return round(float(text) * size) if size else _no_interval(node)
    except ValueError:
        return _no_interval(node)


def _no_interval(node: exp.Expr) -> int:
    raise refused(node, f"{node.sql()} has no fixed length", f"units are {', '.join(MICROSECONDS)}")


def _compound(node: exp.Expr, text: str, first: str, last: str) -> int:
    """'2:17' HOUR TO MINUTE, '1 02:00' DAY TO MINUTE."""
    order = ["DAY", "HOUR", "MINUTE", "SECOND"]
    if first not in order or last not in order:
        _no_interval(node)
    units = order[order.index(first) : order.index(last) + 1]
    sign = -1 if text.startswith("-") else 1
    parts = text.lstrip("-").replace(" ", ":").split(":")
    if len(parts) != len(units):
        raise refused(node, f"{text!r} is no interval of {first} TO {last}", "as INTERVAL '2:17' HOUR TO MINUTE")
    return sign * sum(round(float(part) * MICROSECONDS[unit]) for part, unit in zip(parts, units, strict=True))


def time_of_day(node: exp.Expr) -> int:
    """The microseconds of TIME '0:12' since midnight; seconds and a leading zero may be left out."""
    text = node.this.name if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) else ""
    parts = text.split(":")
    if not 2 <= len(parts) <= 3 or not all(part.replace(".", "", 1).isdigit() for part in parts):
        raise refused(node, f"{node.sql()} is no time of day", "as in TIME '0:12' or TIME '00:12:00'")
    return sum(
        round(float(part) * MICROSECONDS[unit]) for part, unit in zip(parts, ("HOUR", "MINUTE", "SECOND"), strict=False)
    )


def refused(node: exp.Expr | None, message: str, hint: str | None = None) -> PlanError:
    """A refusal at the place of a node, where the parser has noted it."""
    meta: Mapping[str, int] = {}
    for part in node.walk() if node is not None else ():
        if part.meta.get("line"):
            meta = part.meta
            break
    column = meta.get("col")
    if column is not None:  # the parser notes where a word ends
        column -= meta.get("end", 0) - meta.get("start", 0)
    return PlanError(message, line=meta.get("line"), column=column, hint=hint)
