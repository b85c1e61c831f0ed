"""`fill(null|zero|previous|linear)`: rows for the buckets that have none, for every group key.

A key's gaps lie between its first and its last bucket in the range; with `fill(…, range)` in the whole range. The buckets come as the relation `grid`, made by the calendar: months have their lengths, some days 23 hours.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rollup.core.calendar import Duration, bucket_end, bucket_start
from rollup.core.dialects import Instant
from rollup.core.errors import QueryError
from rollup.plan.aggregation import TIME, TIMESTAMP, Aggregation, Key, Output, column
from rollup.plan.types import Type
from rollup.retrieval.answer import EXTRA, key_column

RANGE = " range"
_WORDS = ("null", "zero", "previous", "linear")
FILLS = (*_WORDS, *(word + RANGE for word in _WORDS))
MOST = 1_000_000
_GAP = "AGG_GAP"


def grid(aggregation: Aggregation, level: Duration, start: int, end: int) -> list[int]:
    """All bucket starts of a range, in the zone of the aggregation. Raises QueryError when they are too many."""
    if level.width_ms is not None and (end - start) // level.width_ms > MOST:
        raise QueryError(f"`fill` over more than {MOST:,} {level.plural}", hint="a shorter range or a coarser level")
    at, starts = bucket_start(start, level, aggregation.zone), list[int]()
    while at < end:
        if at >= start:
            starts.append(at)
        at = bucket_end(at, level, aggregation.zone)
    return starts


def filled(
    rows: exp.Select,
    keys_of_all: Sequence[Key],
    of: Sequence[Key],
    outputs: Sequence[Output],
    extras: Sequence[str],
    word: str,
) -> exp.Select:
    """The rows and those of the gaps of each group key; `rows` has AGG_TIMESTAMP, outputs, extras and the keys.

    What shows one of `keys_of_all` that is not in `of` is null in every row.
    """
    keys, whole = [key_column(index) for index in range(len(of))], word.endswith(RANGE)
    word = word.removesuffix(RANGE)
    of_key = {name: column(key.name) for name, key in zip(keys, of, strict=True)}
    shown = {output.name: name for output in outputs for name, key in of_key.items() if output.final == key}
    kinds = {output.name: output.type for output in outputs if output.name not in shown} | {
        name: EXTRA[name] for name in extras if name != TIME
    }
    kept = [exp.alias_(_of("p", name), output, quoted=True) for output, name in shown.items()]
    if TIME in extras:
        kept.append(exp.alias_(Instant(this=_of("p", TIMESTAMP)), TIME, quoted=True))
    gaps = [exp.alias_(_of("b", name), name, quoted=True) for name in kinds]
    absent = exp.alias_(exp.Is(this=_of("b", TIMESTAMP), expression=exp.Null()), _GAP, quoted=True)
    joined = exp.select(_of("p", TIMESTAMP), *(_of("p", name) for name in keys), *kept, *gaps, absent)
    joined = (
        joined.from_(_places(keys, whole).subquery("p"))
        .join("b", on=_same(keys), join_type="left")
        .with_("b", as_=rows)
    )
    lost = {column(key.name) for key in keys_of_all if key not in of}
    always = {output.name for output in outputs if output.final in lost}
    # Counts of events and of late events are zero in a gap or unknown, never those of a neighbour.
    words = {name: "null" if name in always or (name in extras and word != "zero") else word for name in kinds}
    return _chosen(
        joined, keys, [each.alias for each in kept], {name: (kind, words[name]) for name, kind in kinds.items()}
    )


def _of(table: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=table)


def _places(keys: Sequence[str], whole: bool) -> exp.Union:
    """The buckets of the grid for every key, and the buckets that are there although the grid has none of them."""
    ends = {"AGG_LOW": exp.Min(this=column(TIMESTAMP)), "AGG_HIGH": exp.Max(this=column(TIMESTAMP))}
    span = exp.select(*(column(name) for name in keys), *(exp.alias_(e, n, quoted=True) for n, e in ends.items()))
    each = span.from_("b").group_by(*(column(name) for name in keys)) if keys else span.from_("b")
    # Without keys there is one span, which is null where there is no row: then there are no gaps either.
    within = exp.Between(this=_of("g", TIMESTAMP), low=_of("k", "AGG_LOW"), high=_of("k", "AGG_HIGH"))
    grid = exp.select(_of("g", TIMESTAMP), *(_of("k", name) for name in keys)).from_("grid AS g")
    there = exp.Not(this=exp.Is(this=_of("k", "AGG_LOW"), expression=exp.Null()))
    grid = grid.join(each.subquery("k"), on=there if whole else within)
    return exp.union(grid, exp.select(column(TIMESTAMP), *(column(name) for name in keys)).from_("b"))


def _same(keys: Sequence[str]) -> exp.Expr:
    times = exp.EQ(this=_of("p", TIMESTAMP), expression=_of("b", TIMESTAMP))
    return exp.and_(times, *(exp.NullSafeEQ(this=_of("p", name), expression=_of("b", name)) for name in keys))


def _chosen(
    joined: exp.Select, keys: Sequence[str], shown: Sequence[str], wanted: dict[str, tuple[Type, str]]
) -> exp.Select:
    """What each column has in a gap. Rows between two values share a running count, which finds both values."""
    reached = [
        exp.alias_(_over(exp.Count(this=column(name)), keys, down), f"AGG_{way}_{index}", quoted=True)
        for index, (name, (kind, word)) in enumerate(wanted.items())
        for way, down in (("BEFORE", False), ("AFTER", True))
        if word == "previous" or (word == "linear" and kind.numeric)
    ]
    counted = exp.select("*", *reached).from_(joined.subquery("j")) if reached else joined
    values = [
        exp.alias_(_value(name, index, kind, word, keys), name, quoted=True)
        for index, (name, (kind, word)) in enumerate(wanted.items())
    ]
    places = [TIMESTAMP, *shown, *keys]
    return exp.select(*(column(name) for name in places), *values).from_(counted.subquery("c"))


def _value(name: str, index: int, kind: Type, word: str, keys: Sequence[str]) -> exp.Expr:
    if word == "zero" and kind.numeric:
        new: exp.Expr = exp.cast(exp.Literal.number(0), kind.sql)
    elif word == "previous":
        new = _first(column(name), [*keys, f"AGG_BEFORE_{index}"], False)
    elif word == "linear" and kind.numeric:
        new = _line(name, index, kind, keys)
    else:
        return column(name)
    return exp.Case(ifs=[exp.If(this=column(_GAP), true=new)], default=column(name))


def _line(name: str, index: int, kind: Type, keys: Sequence[str]) -> exp.Expr:
    """The straight line between the values before and after, by time; null outside them."""
    there = exp.Case(
        ifs=[exp.If(this=exp.Not(this=exp.Is(this=column(name), expression=exp.Null())), true=column(TIMESTAMP))]
    )
    before, after = [*keys, f"AGG_BEFORE_{index}"], [*keys, f"AGG_AFTER_{index}"]
    double = Type.DOUBLE.sql
    y0, y1 = (exp.cast(_first(column(name), groups, down), double) for groups, down in ((before, False), (after, True)))
    x0, x1 = (_first(there, groups, down) for groups, down in ((before, False), (after, True)))
    passed = exp.cast(exp.paren(exp.Sub(this=column(TIMESTAMP), expression=x0)), double)
    whole = exp.cast(exp.paren(exp.Sub(this=x1, expression=x0.copy())), double)
    rise = exp.Mul(
        this=exp.paren(exp.Sub(this=y1, expression=y0)),
        expression=exp.Div(this=passed, expression=whole, typed=True, safe=True),
    )
    value: exp.Expr = exp.Add(this=y0.copy(), expression=rise)
    if kind.integral:  # not ROUND: for halves every engine has a rule of its own
        value = exp.Floor(this=exp.Add(this=value, expression=exp.Literal.number("0.5")))
    return exp.cast(exp.paren(value), kind.sql)


def _first(value: exp.Expr, groups: Sequence[str], down: bool) -> exp.Expr:
    return _over(exp.FirstValue(this=value), groups, down)


def _over(function: exp.Expr, groups: Sequence[str], down: bool) -> exp.Window:
    ordered = exp.Order(expressions=[exp.Ordered(this=column(TIMESTAMP), desc=down, nulls_first=not down)])
    parts = [column(name) for name in groups]
    return exp.Window(this=function.copy(), partition_by=parts, order=ordered)
