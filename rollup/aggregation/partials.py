"""Events to partial rows: filter, read the time, cut the bucket, fold each group once.

A relation of events has the attributes of the stream and `__arrival` (int64, the source's order); for aggregations by
arrival time also `__received` (int64 ms). The same SQL runs in this process and inside Spark tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from rollup.aggregation import buckets
from rollup.aggregation.engine import Engine
from rollup.calendar import normal_zone, offset_ms
from rollup.errors import TimeError
from rollup.plan.aggregation import EVENTS, TIMESTAMP, ZONE, Aggregation, Clock, column
from rollup.plan.dialects import to_sql
from rollup.untyped import pc

FIRST, LAST, STEP = "__first", "__last", "__step"
_STAMP = (
    r"\s*(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?))?\s*"
    r"(Z|z|[+-]\d{2}(?::?\d{2})?|[A-Za-z]+(?:/[\w+-]+)+)?\s*"
)
_YEARS = (-62135596800000, 253402300799999)
"""Years 1 to 9999: what every store and client can show."""


@dataclass(frozen=True)
class Partials:
    """How events of one stream become partial rows of one aggregation."""

    aggregation: Aggregation

    def schema(self) -> pa.Schema:
        """Of the rows that `fold` gives: a level's state columns and the first and last arrival of each group."""
        return self.aggregation.state_schema.append(pa.field(FIRST, pa.int64())).append(pa.field(LAST, pa.int64()))

    def fold(self, engine: Engine, events: str) -> pa.Table:
        """One row a group (bucket, zone, keys) of the events in the relation of that name, sorted by bucket.

        Exact sums are longs where all of them fit, as nearly always, and wide otherwise; the cascade takes both.
        """
        with engine.tables(self._zones(engine, events)):
            rows = engine.run(self._folded.replace("__events", events)).cast(self.schema())
        return self._narrow(rows)

    def _narrow(self, rows: pa.Table) -> pa.Table:
        narrow = self.aggregation.table_schema.append(rows.schema.field(FIRST)).append(rows.schema.field(LAST))
        try:
            return rows.cast(narrow)
        except pa.ArrowInvalid:
            return rows

    def fold_by_step(self, engine: Engine, events: str, steps: pa.Table, suspects: pa.Table) -> pa.Table:
        """As `fold`, for the suspect buckets only and split by the step of the clock each event arrived in.

        `steps` has `__from` (arrival) and `__step`, sorted; `suspects` has AGG_TIMESTAMP and AGG_TIMEZONE.
        """
        tables = {**self._zones(engine, events), "__steps": steps, "__suspects": suspects}
        with engine.tables(tables):
            found = engine.run(self._stepped.replace("__events", events))
        return found.cast(self.schema().append(pa.field(STEP, pa.int64())))

    def hold_all(self, rows: pa.Table, events: int) -> bool:
        """Whether partial rows count so many events: then none was refused, and `refused` need not look for any."""
        return self.aggregation.filter is None and (pc.sum(rows[EVENTS]).as_py() or 0) == events

    def refused(self, engine: Engine, events: str) -> pa.Table:
        """The events whose time cannot be read: `__arrival`, `reason` and `raw` (JSON of the event)."""
        with engine.tables(self._zones(engine, events)):
            return engine.run(self._refused.replace("__events", events))

    @property
    def sql(self) -> str:
        """The query of `fold`, over the relation `__events`."""
        return self._folded

    # SQL, made once a plan

    @cached_property
    def _folded(self) -> str:
        return to_sql(self._grouped(self._timed).order_by(column(TIMESTAMP)))

    @cached_property
    def _stepped(self) -> str:
        timed = exp.select("t.*", STEP).from_(self._timed.subquery("t"))
        timed = timed.join(
            "__suspects AS s", on=f't."{TIMESTAMP}" = s."{TIMESTAMP}" AND t."{ZONE}" = s."{ZONE}"', join_type="semi"
        )
        asof = to_sql(timed) + " ASOF LEFT JOIN __steps AS k ON t.__arrival >= k.__from"
        grouped = self._grouped(exp.select("*").from_("__asof"), exp.column(STEP))
        return f"WITH __asof AS ({asof}) {to_sql(grouped)}"

    @cached_property
    def _refused(self) -> str:
        valid = self._valid(exp.column("__ts"))
        reason = (
            "the time is null" if self.aggregation.clock is not Clock.STRING else "the time is null or no timestamp"
        )
        query = exp.select("__arrival", exp.Literal.string(reason).as_("reason"), "TO_JSON(e) AS raw").from_(
            self._read.subquery("e")
        )
        return to_sql(query.where(exp.Not(this=exp.func("COALESCE", valid, exp.false()))))

    @property
    def _timed(self) -> exp.Select:
        """Events with their bucket and zone; those whose time cannot be read are left out."""
        zone = exp.column("__zone") if self._zoned else exp.Literal.string(self.aggregation.zone)
        begin = buckets.start(exp.column("__ts"), self.aggregation.root, zone)
        query = exp.select("*", begin.as_(TIMESTAMP, quoted=True), zone.as_(ZONE, quoted=True))
        return query.from_(self._read.subquery("e")).where(self._valid(exp.column("__ts")))

    @property
    def _zoned(self) -> bool:
        return self.aggregation.clock is Clock.STRING

    @staticmethod
    def _valid(time: exp.Expr) -> exp.Expr:
        return exp.Between(this=time, low=exp.Literal.number(_YEARS[0]), high=exp.Literal.number(_YEARS[1]))

    @property
    def _read(self) -> exp.Select:
        """Events that pass the filter, with `__ts` and, for text, `__zone`."""
        aggregation = self.aggregation
        if aggregation.clock is Clock.STRING:
            query = self._read_text()
        else:
            time = exp.column("__received") if aggregation.time is None else aggregation.time
            query = exp.select("*", exp.alias_(time.copy(), "__ts")).from_("__events")
        return query if aggregation.filter is None else query.where(aggregation.filter.copy())

    def _read_text(self) -> exp.Select:
        """Text is taken apart by one pattern; its zone is looked up among those of the batch, normalised in Python."""
        text = self.aggregation.time
        assert text is not None
        # 'hh:mm:ss.fff' is 12 characters: more digits are cut off, not rounded, so none can move into the next second.
        wall = buckets.build(
            "EPOCH_MS(TRY_CAST(REPLACE(REGEXP_EXTRACT(:x, :p, 1) || ' ' || COALESCE(NULLIF(LEFT(REGEXP_EXTRACT(:x, :p, 2), 12), ''), '00:00'), ',', '.') AS TIMESTAMP))",
            x=text,
            p=exp.Literal.string(f"^{_STAMP}$"),
        )
        fixed = "__offset"
        instant = f"CASE WHEN {fixed} IS NOT NULL THEN __wall - {fixed} WHEN __zone IS NOT NULL THEN {to_sql(buckets.instant(exp.column('__wall'), exp.column('__zone')))} END"
        walls = exp.select("*", wall.as_("__wall"), _raw_zone(text).as_("__raw")).from_("__events")
        return (
            exp.select("* EXCLUDE (__raw, __wall, __offset)", f"{instant} AS __ts", dialect="duckdb")
            .from_(walls.subquery("w"))
            .join("__zones", using="__raw", join_type="left")
        )

    def _grouped(self, timed: exp.Select, *extra: exp.Column) -> exp.Select:
        aggregation = self.aggregation
        zone = column(ZONE) if self._zoned else exp.Literal.string(aggregation.zone).as_(ZONE, quoted=True)
        keys = [exp.alias_(key.expression.copy(), key.name, quoted=True) for key in aggregation.keys]
        values = [exp.alias_(value.prepare.copy(), value.name, quoted=True) for value in aggregation.values]
        span = [exp.Min(this=exp.column("__arrival")).as_(FIRST), exp.Max(this=exp.column("__arrival")).as_(LAST)]
        names = [column(TIMESTAMP), *([column(ZONE)] if self._zoned else [])]  # one zone for all need not be compared
        groups = [*names, *(key.expression.copy() for key in aggregation.keys), *extra]
        query = exp.select(column(TIMESTAMP), zone, *keys, *values, *span, *(node.copy() for node in extra))
        return query.from_(timed.subquery("t")).group_by(*groups)

    def _zones(self, engine: Engine, events: str) -> dict[str, pa.Table]:
        if not self._zoned:
            return {}
        assert self.aggregation.time is not None
        query = exp.select(_raw_zone(self.aggregation.time).as_("__raw")).distinct().from_(events)
        return {"__zones": _zone_table(engine.run(query)["__raw"].to_pylist(), self.aggregation.zone)}


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
