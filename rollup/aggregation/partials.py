"""Events to partial rows: filter, read the time, cut the bucket, fold each group once.

A relation of events has the attributes of the stream and `__arrival` (int64, the source's order); for aggregations by
arrival time also `__received` (int64 ms). The same SQL runs in this process and inside Spark tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from rollup.aggregation.event_times import EVENTS_OF, EventTime, arrived, over
from rollup.aggregation.seams import in_order
from rollup.core import buckets
from rollup.core.columns import ColumnEngine
from rollup.core.dialects import to_sql, too_long
from rollup.core.untyped import pc
from rollup.plan.aggregation import EVENTS, TIMESTAMP, ZONE, Aggregation
from rollup.plan.expressions import ranked

FIRST, LAST, STEP = "__first", "__last", "__step"
BUCKET, BUCKET_ZONE = "__bucket", "__bucket_zone"
"""An event's bucket and zone, under names that no attribute may have; a partial row has them as AGG_TIMESTAMP and so on."""
_PLACES = (BUCKET, BUCKET_ZONE)


@dataclass(frozen=True)
class Partials:
    """How events of one stream become partial rows of one aggregation."""

    aggregation: Aggregation

    @cached_property
    def time(self) -> EventTime:
        """How it reads the time of its events."""
        found = self.aggregation
        time = arrived() if found.time is None else found.time
        computed = (*(key.expression for key in found.keys), *(value.prepare for value in found.values))
        made = tuple(each for each in computed if too_long(each))
        return EventTime(found.clock, time, found.zone, found.filter, assumed=found.own_zones, made=made)

    def schema(self) -> pa.Schema:
        """Of the rows that `fold` gives: a level's state columns and the first and last arrival of each group."""
        return self.aggregation.state_schema.append(pa.field(FIRST, pa.int64())).append(pa.field(LAST, pa.int64()))

    def fold(self, engine: ColumnEngine, events: str, zones: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """One row a group (bucket, zone, keys) of the events in the relation of that name, sorted by bucket.

        `zones` are those of its `time`, where they are known. Exact sums are longs where all of them fit, as nearly always,
        and wide otherwise; the cascade takes both.
        """
        with engine.tables(self.time.zones(engine, events) if zones is None else zones):
            rows = engine.run(self._sql("fold", events)).cast(self.schema())
        return in_order(self._narrow(rows))

    def _narrow(self, rows: pa.Table) -> pa.Table:
        narrow = self.aggregation.table_schema.append(rows.schema.field(FIRST)).append(rows.schema.field(LAST))
        try:
            return rows.cast(narrow)
        except pa.ArrowInvalid:
            return rows

    def fold_by_step(self, engine: ColumnEngine, events: str, steps: pa.Table, suspects: pa.Table) -> pa.Table:
        """As `fold`, for the suspects only and split by the step of the clock each event arrived in.

        `steps` has `__from` (arrival) and `__step`, sorted; `suspects` has AGG_TIMESTAMP and AGG_TIMEZONE, and where
        they are groups, not buckets, all keys.
        """
        names = [_suspected(number) for number in range(suspects.num_columns)]
        tables = {"__steps": steps, "__suspects": suspects.rename_columns(names)}
        with engine.tables({**self.time.zones(engine, events), **tables}):
            found = engine.run(self._sql("bucket step" if len(names) == len(_PLACES) else "step", events))
        return found.cast(self.schema().append(pa.field(STEP, pa.int64())))

    def hold_all(self, rows: pa.Table, events: int) -> bool:
        """Whether partial rows count so many events: then it refused none."""
        return self.aggregation.filter is None and (pc.sum(rows[EVENTS]).as_py() or 0) == events

    @property
    def sql(self) -> str:
        """The query of `fold`, over the relation `__events`."""
        return self._sql("fold", EVENTS_OF)

    # SQL, made once a plan and relation

    def _sql(self, which: str, events: str) -> str:
        known = self._made.get((which, events))
        if known is None:
            made = {
                "fold": self._folded,
                "step": self._stepped,
                "bucket step": self._bucket_stepped,
            }
            known = self._made[which, events] = to_sql(over(made[which](), events))
        return known

    @cached_property
    def _made(self) -> dict[tuple[str, str], str]:
        return {}

    def _folded(self) -> exp.Select:
        return self._grouped(self._timed)

    def _stepped(self) -> exp.Select:
        return self._bucket_stepped(exp.cast(key.expression.copy(), key.type.sql) for key in self.aggregation.keys)

    def _bucket_stepped(self, keys: Iterable[exp.Expr] = ()) -> exp.Select:
        """`keys` are what else than its place an event must share with a suspect."""
        timed = exp.select("*").from_(self._timed.subquery("__t"))
        own: list[exp.Expr] = [_of("__t", name) for name in _PLACES]
        same: list[exp.Expr] = [
            exp.EQ(this=place, expression=_of("__s", _suspected(number))) for number, place in enumerate(own)
        ]
        for number, key in enumerate(keys, len(own)):
            same.append(exp.NullSafeEQ(this=key, expression=_of("__s", _suspected(number))))  # a key may be null
        suspect = timed.join(exp.to_table("__suspects").as_("__s"), on=exp.and_(*same), join_type="semi")
        since = exp.GTE(this=_of("__t", "__arrival"), expression=_of("__k", "__from"))
        steps = exp.Join(this=exp.to_table("__steps").as_("__k"), method="ASOF", side="LEFT", on=since)
        stepped = exp.select("*").from_(suspect.subquery("__t"))
        stepped.append("joins", steps)
        return self._grouped(stepped, exp.column(STEP))

    @property
    def _timed(self) -> exp.Select:
        """Events with their bucket and zone; those whose time cannot be read are left out."""
        zone = exp.column("__zone") if self.aggregation.own_zones else exp.Literal.string(self.aggregation.zone)
        begin = buckets.start(exp.column("__ts"), self.aggregation.root, zone)
        query = exp.select("*", begin.as_(BUCKET), zone.as_(BUCKET_ZONE))
        return query.from_(self.time.read.subquery("__e")).where(self.time.valid)

    def _grouped(self, timed: exp.Select, *extra: exp.Column) -> exp.Select:
        aggregation = self.aggregation
        zone = exp.column(BUCKET_ZONE) if self.aggregation.own_zones else exp.Literal.string(aggregation.zone)
        place = [exp.column(BUCKET).as_(TIMESTAMP, quoted=True), zone.as_(ZONE, quoted=True)]
        keys = [exp.alias_(key.expression.copy(), key.name, quoted=True) for key in aggregation.keys]
        values = [exp.alias_(value.prepare.copy(), value.name, quoted=True) for value in aggregation.values]
        span = [exp.Min(this=exp.column("__arrival")).as_(FIRST), exp.Max(this=exp.column("__arrival")).as_(LAST)]
        names = [
            BUCKET,
            *([BUCKET_ZONE] if self.aggregation.own_zones else []),
        ]  # one zone for all need not be compared
        groups = [
            *map(exp.column, names),
            *(ranked(key.expression.copy(), key.type) for key in aggregation.keys),
            *extra,
        ]
        query = exp.select(*place, *keys, *values, *span, *(node.copy() for node in extra))
        return query.from_(timed.subquery("__t")).group_by(*groups)


def _of(table: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=table)


def _suspected(number: int) -> str:
    """A column of the suspects, under a name that no attribute may have."""
    return f"__suspect_{number}"
