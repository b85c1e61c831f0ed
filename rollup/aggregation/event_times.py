"""The time of an event: how it is read of a long or a text, when an event has none that can be, and why.

A record that is no event for one reader of a stream is none for all of them (`rollup.hosts.walk`). So what cannot be is
said here once, for aggregations and for statements: a time that is missing, that no calendar has, or that lies too far
ahead; and texts made of it that would be too long.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from sqlglot import exp

from rollup.core import buckets
from rollup.core.calendar import GMT, normal_zone, offset_ms, parse_timestamp
from rollup.core.columns import ColumnEngine
from rollup.core.dialects import TOO_LONG, to_sql, too_long
from rollup.core.errors import TimeError
from rollup.plan.options import Clock
from rollup.plan.reading import FIRST_YEAR, LAST_YEAR, Unreadable, read
from rollup.plan.types import Type

EVENTS_OF = "__events"
"""Stands for the relation of events in a tree."""
AT = "__at"
"""The column of the time of an event, ms since 1970, for whoever takes events one by one."""
_STAMP = (
    r"\s*(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?))?\s*"
    r"(Z|z|[+-]\d{2}(?::?\d{2})?|[A-Za-z]+(?:/[\w+-]+)+)?\s*"
)
_LATEST, _NOW = "rollup_latest", "rollup_now"
"""The variables of an engine that hold the latest time an event of a batch may have, and when the batch was planned."""
_MICROSECONDS, _NANOSECONDS = 1_000, 1_000_000
_PLAUSIBLE = (315_532_800_000, 4_102_444_800_000)
"""1980 to 2100: a number that is such a time in another unit is probably one."""
AHEAD = "the time lies further ahead than `[late] ahead` allows"
"""The reason of an event that another batch might take."""


@dataclass(frozen=True)
class EventTime:
    """How one reader of a stream reads the time of its events; `filter` are those it takes at all."""

    clock: Clock
    time: exp.Expr
    zone: str
    filter: exp.Expr | None = None
    assumed: bool = False
    """Whether nobody has declared that zone, and texts without one are read in it all the same."""
    made: tuple[exp.Expr, ...] = ()
    """What else the reader computes of an event, where it makes texts of it."""

    @property
    def zoned(self) -> bool:
        """Whether an event has a zone of its own."""
        return self.clock is Clock.STRING

    @property
    def read(self) -> exp.Select:
        """The events that pass the filter, with `__ts` and, for text, `__zone`."""
        if self.zoned:
            query = self._read_text()
        else:
            query = exp.select("*", exp.alias_(self.time.copy(), "__ts")).from_(EVENTS_OF)
        if self.filter is None:
            return query
        return query.where(
            exp.or_(self.filter.copy(), *too_long(self.filter))
        )  # an unsure one is refused, not left out

    @property
    def valid(self) -> exp.Expr:
        """Whether an event that is read is one: its time can be, and its texts are no longer than texts get."""
        return exp.and_(self._timely(exp.column("__ts")), exp.Not(this=self._long) if self.bounded else None)

    @property
    def bounded(self) -> bool:
        """Whether the reader makes texts that may be too long."""
        return bool(self._lengths)

    @property
    def _lengths(self) -> list[exp.Expr]:
        """Under which conditions its texts are too long, see `too_long`."""
        computed = [self.time, *([] if self.filter is None else [self.filter]), *self.made]
        return list(dict.fromkeys(each for tree in computed for each in too_long(tree)))

    @property
    def _long(self) -> exp.Expr:
        return exp.paren(exp.or_(*(each.copy() for each in self._lengths)))

    @staticmethod
    def _timely(time: exp.Expr) -> exp.Expr:
        latest = exp.func("COALESCE", _variable(_LATEST), exp.Literal.number(LAST_YEAR))
        return exp.Between(this=time, low=exp.Literal.number(FIRST_YEAR), high=latest)

    def zones(self, engine: ColumnEngine, events: str) -> dict[str, pa.Table]:
        """What `read` needs beside the events: the zones of their texts."""
        if not self.zoned:
            return {}
        query = exp.select(_raw_zone(self.time).as_("__raw")).distinct().from_(exp.to_table(events, quoted=True))
        return {"__zones": _zone_table(engine.run(query)["__raw"].to_pylist(), self.zone)}

    def offsets(self, engine: ColumnEngine, events: str, zones: Mapping[str, pa.Table]) -> set[bool]:
        """Whether texts of a relation have an offset (True) or none (False), where no zone is declared; `zones` are its own."""
        if not (self.zoned and self.assumed):
            return set()
        spelled = [row["__raw"] for row in zones["__zones"].to_pylist() if row["__zone"] is not None]
        found = {True} if any(spelled) else set[bool]()
        return found | {False} if "" in spelled and engine.run(over(self._unzoned, events)).num_rows else found

    @cached_property
    def _unzoned(self) -> exp.Select:
        """A row where a text is a timestamp that names no zone: the pattern of zones finds none in other texts either."""
        plain = buckets.build(
            "REGEXP_FULL_MATCH(:x, :p) AND REGEXP_EXTRACT(:x, :p, 3) = ''", x=self.time, p=exp.Literal.string(_STAMP)
        )
        return exp.select("1").from_(EVENTS_OF).where(plain).limit(1)

    def refused(self, engine: ColumnEngine, events: str, zones: Mapping[str, pa.Table]) -> pa.Table:
        """The events of a relation whose time cannot be: `__arrival` and `reason`."""
        with engine.tables(zones):
            return engine.run(over(self._refused, events))

    def timed(self, engine: ColumnEngine, events: str, made: str, zones: Mapping[str, pa.Table]) -> None:
        """Make a relation of the events of another, all of which it takes, with their time: `__at`."""
        if self.zoned:
            columns = exp.select("* EXCLUDE (__ts, __zone)", "__ts AS __at", dialect="duckdb")
            query, kind = (
                columns.from_(self.read.subquery("__e")),
                "TABLE",
            )  # a view would outlive the zones of its texts
        else:
            query, kind = exp.select("*", exp.alias_(self.time.copy(), AT)).from_(EVENTS_OF), "VIEW"
        with engine.tables(zones):
            engine.connection.execute(f"CREATE OR REPLACE TEMP {kind} {made} AS {to_sql(over(query, events))}")

    @cached_property
    def _refused(self) -> exp.Select:
        query = exp.select("__arrival", self._reason.as_("reason")).from_(self.read.subquery("__e"))
        return query.where(exp.Not(this=exp.func("COALESCE", self.valid, exp.false())))

    @property
    def _reason(self) -> exp.Expr:
        """Why a time cannot be, in words; a number that is a time in another unit is said to be one."""
        if self.zoned:
            unread = exp.If(this=exp.column("__ts").is_(exp.null()), true=exp.Literal.string(_NO_TIMESTAMP))
            reasons = [exp.If(this=self.time.copy().is_(exp.null()), true=exp.Literal.string(_NULL)), unread]
        else:
            reasons = [exp.If(this=exp.column("__ts").is_(exp.null()), true=exp.Literal.string(_NULL))]
        for unit, size in (("nanoseconds", _NANOSECONDS), ("microseconds", _MICROSECONDS)):
            low, high = (bound * size for bound in _PLAUSIBLE)
            inside = exp.Between(this=exp.column("__ts"), low=exp.Literal.number(low), high=exp.Literal.number(high))
            outside = exp.Not(this=_between(FIRST_YEAR, LAST_YEAR))
            reasons.append(exp.If(this=exp.and_(inside, outside), true=exp.Literal.string(_unit(unit, size))))
        reasons.append(exp.If(this=exp.Not(this=_between(FIRST_YEAR, LAST_YEAR)), true=exp.Literal.string(_BEYOND)))
        if self.bounded:
            reasons.insert(0, exp.If(this=self._long, true=exp.Literal.string(TOO_LONG)))
        return exp.Case(ifs=reasons, default=exp.Literal.string(AHEAD))

    def _read_text(self) -> exp.Select:
        """Text is taken apart by one pattern; its zone is looked up among those of the batch, normalised in Python."""
        # 'hh:mm:ss.fff' is 12 characters: more digits are cut off, not rounded, so none can move into the next second.
        wall = buckets.build(
            "EPOCH_MS(TRY_CAST(REPLACE(REGEXP_EXTRACT(:x, :p, 1) || ' ' || COALESCE(NULLIF(LEFT(REGEXP_EXTRACT(:x, :p, 2), 12), ''), '00:00'), ',', '.') AS TIMESTAMP))",
            x=self.time,
            p=exp.Literal.string(f"^{_STAMP}$"),
        )
        fixed = "__offset"
        instant = f"CASE WHEN {fixed} IS NOT NULL THEN __wall - {fixed} WHEN __zone IS NOT NULL THEN {to_sql(buckets.instant(exp.column('__wall'), exp.column('__zone')))} END"
        walls = exp.select("*", wall.as_("__wall"), _raw_zone(self.time).as_("__raw")).from_(EVENTS_OF)
        return (
            exp.select("* EXCLUDE (__raw, __wall, __offset)", f"{instant} AS __ts", dialect="duckdb")
            .from_(walls.subquery("w"))
            .join("__zones", using="__raw", join_type="left")
        )


_NULL = "the time is null"
_NO_TIMESTAMP = "the time is no timestamp"
_BEYOND = "the time is outside of the years 1 to 9999"


def _unit(unit: str, size: int) -> str:
    return f"{_BEYOND}: it is probably in {unit}, and times are milliseconds (select ts / {size}L as ts)"


def latest_of(ahead: int | None, newest: int) -> int | None:
    """The latest time that an event may have now: so far ahead of the clock of this machine, or of the newest time that is
    further; None for any."""
    return None if ahead is None else max(int(time.time() * 1000), newest) + ahead


def instant(value: Any, latest: int | None = None, zone: str = GMT) -> int:
    """The time of one record, ms: a whole number, a date, or a text as `EventTime` reads it. Raises TimeError with the reason
    that a job gives.

    >>> instant("1970-01-01T01:00:00.250+01:00"), instant("1500"), instant(2e3)
    (250, 1500, 2000)
    """
    if value is None:
        raise TimeError(_NULL)
    try:
        found = int(read(value, Type.LONG))
    except Unreadable:
        try:
            found, _ = parse_timestamp(str(value), zone)
        except TimeError:
            raise TimeError(_NO_TIMESTAMP) from None
    if not FIRST_YEAR <= found <= LAST_YEAR:
        units = (("nanoseconds", _NANOSECONDS), ("microseconds", _MICROSECONDS))
        likely = (_unit(*each) for each in units if _PLAUSIBLE[0] <= found // each[1] <= _PLAUSIBLE[1])
        raise TimeError(next(likely, _BEYOND))
    if latest is not None and found > latest:
        raise TimeError(AHEAD)
    return found


def over(query: exp.Select, events: str) -> exp.Select:
    """A query over `__events` as one over another relation."""
    query = query.copy()
    for table in query.find_all(exp.Table):
        if table.name == EVENTS_OF:
            table.set("this", exp.to_identifier(events, quoted=True))
    return query


def arrived() -> exp.Expr:
    """When an event arrived: at the time that its file or message has, and not after its batch was planned."""
    return exp.Anonymous(this="LEAST", expressions=[exp.column("__received"), _variable(_NOW)])


def set_clock(engine: ColumnEngine, latest: int | None, now: int | None) -> None:
    """From now on, the latest time that an event may have in an engine, and when its batch was planned (None: unknown)."""
    for name, value in ((_LATEST, latest), (_NOW, now)):
        engine.connection.execute(f"SET VARIABLE {name} = {'NULL' if value is None else int(value)}")


def letters_of(engine: ColumnEngine, events: str, refused: pa.Table, names: Iterable[str]) -> pa.Table:
    """Refused events with the record itself: `__arrival`, `reason`, and `raw`, the JSON of some attributes."""
    record = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=_quoted("__e", name)) for name in names
        ]
    )
    query = (
        exp.select("r.__arrival", "r.reason", exp.alias_(exp.func("TO_JSON", record), "raw"))
        .from_(exp.to_table("__refused").as_("r"))
        .join(exp.to_table(events, quoted=True).as_("__e"), using="__arrival")
        .order_by("__arrival")
    )
    return engine.run(query, __refused=refused)


def _quoted(table: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=table)


def _between(low: int, high: int) -> exp.Expr:
    return exp.Between(this=exp.column("__ts"), low=exp.Literal.number(low), high=exp.Literal.number(high))


def _variable(name: str) -> exp.Expr:
    return exp.Anonymous(this="GETVARIABLE", expressions=[exp.Literal.string(name)])


def _raw_zone(text: exp.Expr) -> exp.Expr:
    return buckets.build("REGEXP_EXTRACT(:x, :p, 3)", x=text, p=exp.Literal.string(f"^{_STAMP}$"))


def _zone_table(raw: list[str | None], default: str) -> pa.Table:
    """What each spelling of a zone in a batch stands for; unknown ones get null, and their events are refused."""
    rows: list[tuple[str | None, str | None, int | None]] = []
    for spelling in raw:
        try:
            name = normal_zone(spelling or default)
        except TimeError:
            name = None
        rows.append((spelling, name, None if name is None else offset_ms(name)))
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table(
        {
            "__raw": pa.array(columns[0], pa.string()),
            "__zone": pa.array(columns[1], pa.string()),
            "__offset": pa.array(columns[2], pa.int64()),
        }
    )
