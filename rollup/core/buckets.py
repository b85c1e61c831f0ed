"""Bucket arithmetic in SQL (DuckDB): what `rollup.core.calendar` says in Python, over columns.

Instants are BIGINT milliseconds since the epoch. A zone is either a literal known when the plan is made or a column of
normal zone names. SQL alone cuts by an offset that the plan knows; every other zone is one of `rollup.core.local_columns`.
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


def _shift(zone: exp.Expr) -> int | None:
    """The offset of a zone that is known when the plan is made and has always the same one."""
    return offset_ms(zone.name) if isinstance(zone, exp.Literal) else None


def instant(wall: exp.Expr, zone: exp.Expr) -> exp.Expr:
    """The instant at which the clocks of a zone show `wall` milliseconds."""
    shift = _shift(zone)
    if shift is not None:
        return build(":t - :o", t=wall, o=shift) if shift else wall.copy()
    return build("ZONE_INSTANT(:t, :z)", t=wall, z=zone)


_BEFORE_ALL = 86_400_000 * 1_000_000
"""Whole days, and so a multiple of every width, more than there are before 1970: `%` of a negative number is negative,
and a second one to make up for it is a tenth of what folding costs."""


def start(time: exp.Expr, level: Duration, zone: exp.Expr | None = None) -> exp.Expr:
    """Start of the bucket of `level` that holds an instant, cut in `zone` (GMT when left out)."""
    where = zone if zone is not None and level is not Duration.SECONDS else exp.Literal.string(GMT)
    shift, width = _shift(where), level.width_ms
    if shift is None:
        return build("ZONE_START(:t, :z, :n)", t=time, z=where, n=int(level))
    local = build(":t + :o", t=time, o=shift) if shift else time
    if width is not None:
        return build(":t - (:l + :d) % :w", t=time, l=local, w=width, d=_BEFORE_ALL)
    return instant(build(f"EPOCH_MS(DATE_TRUNC('{level.unit}', MAKE_TIMESTAMP(:l * 1000)))", l=local), where)


def end(begin: exp.Expr, level: Duration, zone: exp.Expr | None = None, count: int = 1) -> exp.Expr:
    """End of the bucket that starts at `begin`, or of the `count` buckets from there on."""
    where = zone if zone is not None else exp.Literal.string(GMT)
    shift, width = _shift(where), level.width_ms
    if width is not None and shift is not None:
        return build(":t + :w", t=begin, w=width * count)
    if shift is None:
        return build("ZONE_END(:t, :z, :n, :c)", t=begin, z=where, n=int(level), c=count)
    wall = build(
        f"EPOCH_MS(DATE_TRUNC('{level.unit}', MAKE_TIMESTAMP(:l * 1000)) + INTERVAL '{count}' {level.unit.upper()})",
        l=build(":t + :o", t=begin, o=shift) if shift else begin,
    )
    return instant(wall, where)
