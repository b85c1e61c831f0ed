"""The level that a query's own buckets need: `time_bucket('15 minutes', "AGG_TIME")`, `date_trunc`, Grafana's `$__timeGroup`.

The view of an aggregation's name has its coarsest level. Where the query around it cuts `AGG_TIME` into buckets, it is read
per the coarsest level of which each row lies in one of them, so that the query's own GROUP BY adds the rows up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from sqlglot import exp

from rollup.core.calendar import Duration, normal_zone, to_local
from rollup.core.errors import QueryError, TimeError
from rollup.gateway.rewriting.bounds import is_time
from rollup.lang.sql.within import Within
from rollup.plan.aggregation import Aggregation

UTC = "+00:00"
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_CALENDAR = {"day": Duration.DAYS, "week": Duration.DAYS, "month": Duration.MONTHS, "quarter": Duration.MONTHS,
             "year": Duration.YEARS, "decade": Duration.YEARS, "century": Duration.YEARS}  # fmt: skip
_SHORT = {
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
    "mon": "month",
    "y": "year",
}
_WIDTH = re.compile(r"\s*(\d+)(?:\.0*)?\s*([a-z]+?)s?\s*", re.IGNORECASE)
_HOUR_MS, _HALF_YEAR_MS, _UNTIL_MS = 3_600_000, 15_778_800_000, 2_208_988_800_000
_HINT = "a width such as '15 minutes', or a level's view, as \"{}_per_days\""

_NAMED = "name the zone of the buckets, as in date_trunc('day', \"AGG_TIME\", 'Europe/Berlin')"
_POSIX = re.compile(r"<[+-]\d\d(?::?(\d\d))?>.*", re.ASCII)


@dataclass(frozen=True)
class Bucket:
    """How a query cuts time: into `count` of a unit by the clocks of a zone, None where it is that of the session.

    `shifted`: from an origin that may be any minute.
    """

    count: int
    unit: str
    zone: str | None
    shifted: bool = False

    @property
    def text(self) -> str:
        """As a question says it."""
        return f"{self.count} {self.unit}{'s' if self.count > 1 else ''}"

    def holds(self, level: Duration, own: str | None, whole: bool) -> bool:
        """Whether each row of a level, cut in the zone `own`, lies in one bucket; `whole`: the session's clocks are whole
        hours from UTC."""
        seconds = _SECONDS.get(self.unit)
        if level <= Duration.MINUTES:
            return seconds is None or self.count * seconds * 1000 % (level.width_ms or 1) == 0
        if self.shifted or (self.unit in ("second", "minute") and self.count * _SECONDS[self.unit] % 3600):
            return False
        if level is Duration.HOURS:
            return own is not None and whole_hours(own) and (whole if self.zone is None else whole_hours(self.zone))
        return self.zone is not None and self.zone == own and self.unit in _CALENDAR and level <= _CALENDAR[self.unit]


def level_of(aggregation: Aggregation, found: Sequence[Bucket], whole: bool) -> Duration:
    """The coarsest level that some buckets are put together of, in a session whose clocks are `whole` hours from UTC.

    Raises QueryError where there is none.
    """
    own = None if aggregation.own_zones else normal_zone(aggregation.zone)
    for level in reversed(aggregation.levels):
        if all(bucket.holds(level, own, whole) for bucket in found):
            return level
    finest = aggregation.root.plural
    raise QueryError(
        f"{min(found, key=lambda each: each.count).text} cannot be put together: the finest level of {aggregation.name} is {finest}",
        hint=_NAMED if any(each.zone is None for each in found) else _HINT.format(aggregation.name),
    )


def buckets_of(aggregation: Aggregation, within: Within) -> list[Bucket]:
    """The buckets that the query around a source cuts its time into. Raises QueryError for what is no width or zone."""
    select = within.parent_select
    nodes = [] if select is None else [node for node in select.walk() if node.find_ancestor(exp.Select) is select]
    return [found for node in nodes if (found := _bucket(node, aggregation, within)) is not None]


def _bucket(node: exp.Expr, aggregation: Aggregation, within: Within) -> Bucket | None:
    match node:
        case exp.Anonymous() if node.name.lower() == "time_bucket" and len(node.expressions) > 1:
            width, at, *rest = node.expressions
            if is_time(at.unnest(), within):
                zone = _zone(rest[0], aggregation) if rest else UTC
                return replace(_width(width, zone, aggregation), shifted=len(rest) > 1)
        case exp.DateBin() if is_time(node.expression, within):
            return replace(_width(node.this, UTC, aggregation), shifted=True)
        case exp.TimestampTrunc():
            at, zone = node.this.unnest(), node.args.get("zone")
            if isinstance(at, exp.AtTimeZone):
                at, zone = at.this.unnest(), at.args["zone"]
            if is_time(at, within):
                unit = node.text("unit").lower()
                known = unit in _SECONDS or unit in _CALENDAR
                return Bucket(1, unit if known else "second", None if zone is None else _zone(zone, aggregation))
        case exp.Mul(this=exp.Floor(), expression=exp.Literal()):
            return _of_epoch(node.this.this, node.expression, within)
        case _:
            pass
    return None


def _of_epoch(part: exp.Expr, width: exp.Expr, within: Within) -> Bucket | None:
    """`floor(extract(epoch from t) / 300) * 300`: Grafana's `$__timeGroup`."""
    bare = part.unnest()
    if not isinstance(bare, exp.Div) or bare.expression.unnest() != width or not width.name.isdigit():
        return None
    epoch = bare.this.unnest()
    ours = isinstance(epoch, exp.Extract) and epoch.name.lower() == "epoch" and is_time(epoch.expression, within)
    return Bucket(int(width.name), "second", UTC) if ours and int(width.name) else None


def _width(node: exp.Expr, zone: str, aggregation: Aggregation) -> Bucket:
    """The width of a bucket. Raises QueryError for one that is no constant, since it decides what is read."""
    bare = node.unnest()
    bare = bare.this if isinstance(bare, exp.Cast) else bare
    text = f"{bare.name} {bare.text('unit')}" if isinstance(bare, exp.Interval) else bare.name
    found = _WIDTH.fullmatch(text) if isinstance(bare, (exp.Interval, exp.Literal)) else None
    unit = None if found is None else _SHORT.get(found[2].lower(), found[2].lower())
    if found is None or int(found[1]) == 0 or unit is None or not (unit in _SECONDS or unit in _CALENDAR):
        raise QueryError(f"{node.sql(dialect='postgres')} is no width of a bucket", hint=_HINT.format(aggregation.name))
    return Bucket(int(found[1]), unit, zone)


def _zone(node: exp.Expr, aggregation: Aggregation) -> str:
    bare = node.unnest()
    try:
        if isinstance(bare, exp.Literal) and bare.is_string:
            return normal_zone(bare.name)
    except TimeError:
        pass
    raise QueryError(f"{node.sql(dialect='postgres')} is no zone", hint=_HINT.format(aggregation.name))


@cache
def whole_hours(zone: str) -> bool:
    """Whether the clocks of a zone, from 1970 to 2040, are whole hours from UTC.

    >>> whole_hours("Europe/Berlin"), whole_hours("Asia/Kolkata"), whole_hours("+05:30")
    (True, False, False)
    """
    offsets = (to_local(at, zone).utcoffset() for at in range(0, _UNTIL_MS, _HALF_YEAR_MS))
    return all(each is not None and each.total_seconds() * 1000 % _HOUR_MS == 0 for each in offsets)


def in_whole_hours(zone: str) -> bool:
    """Whether a session's clocks are whole hours from UTC, by the name that a server of PostgreSQL says; not where it is
    not known.

    >>> in_whole_hours("GMT"), in_whole_hours("<+05:30>-05:30"), in_whole_hours("<+02>-02"), in_whole_hours("")
    (True, False, True, False)
    """
    if (posix := _POSIX.fullmatch(zone)) is not None:
        return not int(posix[1] or 0)
    try:
        return whole_hours(normal_zone(zone))
    except TimeError:
        return False
