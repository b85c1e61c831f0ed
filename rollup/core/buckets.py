"""Bucket arithmetic in SQL (DuckDB): what `rollup.core.calendar` says in Python, over columns.

Instants are BIGINT milliseconds since the epoch. A zone is either a literal known when the plan is made (then only the
branch it needs is printed) or a column of normal zone names.
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp, parse_one

from rollup.core.calendar import GMT, Duration, offset_ms


@lru_cache(maxsize=256)
def _template(sql: str) -> exp.Expr:
    return parse_one(sql, read="duckdb")


def build(sql: str, **parts: exp.Expr | int) -> exp.Expr:
    """An expression from a template whose `:name` places are filled with expressions or whole numbers.

    >>> build(":a + 1", a=exp.column("x")).sql()
    'x + 1'
    """
    nodes = {name: exp.convert(part) if isinstance(part, int) else part for name, part in parts.items()}
    return exp.replace_placeholders(
        _template(sql),  # it changes a copy
        **{
            name: exp.paren(node.copy()) if isinstance(node, exp.Binary) else node.copy()
            for name, node in nodes.items()
        },
    )


_OFFSET = (
    "CASE WHEN LEFT(:z, 1) = '-' THEN -1 ELSE 1 END"
    " * (CAST(SUBSTR(:z, 2, 2) AS BIGINT) * 3600000 + CAST(SUBSTR(:z, 5, 2) AS BIGINT) * 60000)"
)
_NAMED_LOCAL = "EPOCH_MS(TIMEZONE(:z, TIMEZONE('UTC', MAKE_TIMESTAMP(:t * 1000))))"
_LATER = "EPOCH_MS(TIMEZONE(:z, MAKE_TIMESTAMP(:t * 1000)))"
# What is repeated when summer time ends (an hour, on Lord Howe half of one) has two instants; the first is meant.
_EARLIER = " ".join(
    f"WHEN {_NAMED_LOCAL.replace(':t', f'({_LATER} - {shift})')} = :t THEN {_LATER} - {shift}"
    for shift in (3600000, 1800000)
)
_NAMED_INSTANT = f"CASE {_EARLIER} ELSE {_LATER} END"
_FIXED = "LEFT(:z, 1) IN ('+', '-')"


def local(instant: exp.Expr, zone: exp.Expr) -> exp.Expr:
    """Milliseconds of the wall clock in a zone at an instant."""
    if isinstance(zone, exp.Literal):
        shift = offset_ms(zone.name)
        if shift is not None:
            return build(":t + :o", t=instant, o=shift) if shift else instant.copy()
        return build(_NAMED_LOCAL, t=instant, z=zone)
    return build(f"CASE WHEN {_FIXED} THEN :t + ({_OFFSET}) ELSE {_NAMED_LOCAL} END", t=instant, z=zone)


def instant(wall: exp.Expr, zone: exp.Expr) -> exp.Expr:
    """The instant at which the clocks of a zone show `wall` milliseconds."""
    if isinstance(zone, exp.Literal):
        shift = offset_ms(zone.name)
        if shift is not None:
            return build(":t - :o", t=wall, o=shift) if shift else wall.copy()
        return build(_NAMED_INSTANT, t=wall, z=zone)
    return build(f"CASE WHEN {_FIXED} THEN :t - ({_OFFSET}) ELSE {_NAMED_INSTANT} END", t=wall, z=zone)


_BEFORE_ALL = 86_400_000 * 1_000_000
"""Whole days, and so a multiple of every width, more than there are before 1970: `%` of a negative number is negative,
and a second one to make up for it is a tenth of what folding costs."""


def start(time: exp.Expr, level: Duration, zone: exp.Expr | None = None) -> exp.Expr:
    """Start of the bucket of `level` that holds an instant, cut in `zone` (GMT when left out)."""
    where = zone if zone is not None else exp.Literal.string(GMT)
    width = level.width_ms
    if level is Duration.SECONDS:
        where = exp.Literal.string(GMT)
    if width is not None:
        return build(":t - (:l + :d) % :w", t=time, l=local(time, where), w=width, d=_BEFORE_ALL)
    wall = build(f"EPOCH_MS(DATE_TRUNC('{level.unit}', MAKE_TIMESTAMP(:l * 1000)))", l=local(time, where))
    return instant(wall, where)


def end(begin: exp.Expr, level: Duration, zone: exp.Expr | None = None, count: int = 1) -> exp.Expr:
    """End of the bucket that starts at `begin`, or of the `count` buckets from there on."""
    where = zone if zone is not None else exp.Literal.string(GMT)
    width = level.width_ms
    if width is not None:
        return build(":t + :w", t=begin, w=width * count)
    wall = build(
        f"EPOCH_MS(DATE_TRUNC('{level.unit}', MAKE_TIMESTAMP(:l * 1000)) + INTERVAL '{count}' {level.unit.upper()})",
        l=local(begin, where),
    )
    return instant(wall, where)
