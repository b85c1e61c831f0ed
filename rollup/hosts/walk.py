"""The way of events through an app: from the stream of a source to every stream that they reach, and there into partial
rows. Tasks of Spark and the local host walk the same way; they differ in where events come from and where rows go.

On the way each stream's events are judged once, by all who read it: what is no event for one of them is one dead letter,
is seen by nobody, and goes no further.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from rollup.aggregation.event_times import AT, EventTime, arrived, letters_of, set_clock
from rollup.aggregation.partials import Partials
from rollup.core.calendar import GMT, normal_zone
from rollup.core.columns import ColumnEngine
from rollup.core.dialects import too_long
from rollup.plan.aggregation import column
from rollup.plan.options import Clock
from rollup.plan.types import Type
from rollup.program import Derivation, Program, renumbered

_REFUSED = pa.schema([("__arrival", pa.int64()), ("reason", pa.string())])


@dataclass(frozen=True)
class Reached:
    """A stream that events reach: the relation of them, partial rows by aggregation, and those that are no events.

    The refused ones have `__arrival`, `reason` and `raw`. The relation has the time of each event, `__at`, where the
    program asks for it.
    """

    stream: str
    view: str
    folded: Mapping[str, pa.Table]
    refused: pa.Table | None = None
    offsets: frozenset[bool] = frozenset()
    """Whether times that are texts have an offset, or none, see `EventTime.offsets`."""


class _Zones(dict[EventTime, Mapping[str, pa.Table]]):
    """The zones of the texts of a relation, by who reads them, looked for once."""

    def __init__(self, engine: ColumnEngine, view: str) -> None:
        self._engine, self._view = engine, view

    def __missing__(self, time: EventTime) -> Mapping[str, pa.Table]:
        found = self[time] = time.zones(self._engine, self._view)
        return found


@dataclass(frozen=True)
class Walk:
    """A program's way over an engine, which keeps the views of the events that went it last."""

    program: Program
    engine: ColumnEngine

    @cached_property
    def partials(self) -> dict[str, Partials]:
        """How events become partial rows, by aggregation."""
        return {name: Partials(aggregation) for name, aggregation in self.program.aggregations.items()}

    def along(
        self,
        stream: str,
        relation: str,
        wanted: Collection[str] | None = None,
        events: int | None = None,
        latest: int | None = None,
        now: int | None = None,
    ) -> Iterator[Reached]:
        """Each stream that the events of a stream's relation reach, in order, with arrivals as `Program.numbered` has them.

        `wanted` are the aggregations to fold for, all of them when it is None; `events`, where it is known, is how many
        there are, `latest` the latest time that one may have, and `now` when the batch was planned. Names of relations are made here, so no user's name is one.
        """
        set_clock(self.engine, latest, now)
        scale, connection = self.program.scale(stream), self.engine.connection
        steps = self.program.numbered(stream)
        if scale > 1:
            connection.execute(f"CREATE OR REPLACE TEMP VIEW __sent AS {renumbered(relation, scale)}")
            relation = "__sent"
        reached = self._reached(stream, relation, 0, wanted, events)
        yield reached
        views, parts = {stream: reached.view}, dict[str, list[str]]()
        for number, step in enumerate(steps, 1):
            derivation, name = step.derivation, f"__derived_{number}"
            target = derivation.target
            inherits = target in self.program.clocked and target not in self._times
            made = derivation.statement(views[derivation.source], step.copies, scale, (AT,) if inherits else ())
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {made}")
            parts.setdefault(target, []).append(name)
            if any(later.derivation.target == target for later in steps[number:]):
                continue
            union = " UNION ALL ".join(f"SELECT * FROM {each}" for each in parts[target])
            connection.execute(f"CREATE OR REPLACE TEMP VIEW __all_{number} AS {union}")
            count = None if wanted == () else self.engine.count(f"SELECT COUNT(*) FROM __all_{number}")
            reached = self._reached(target, f"__all_{number}", number, wanted, count)
            yield reached
            views[target] = reached.view

    def rehearse(self, stream: str) -> None:
        """Go the way without an event, so that what is made once, as queries and what prints them, is there."""
        kinds = [(name, kind.arrow) for name, kind in self.program.streams[stream].attributes.items()]
        schema = pa.schema([*kinds, ("__arrival", pa.int64()), ("__received", pa.int64())])
        with self.engine.tables({"__rehearsal": schema.empty_table()}):
            for _ in self.along(stream, "__rehearsal"):
                pass

    def _reached(
        self, stream: str, view: str, number: int, wanted: Collection[str] | None, events: int | None
    ) -> Reached:
        mine = [name for name in self._reading(stream) if wanted is None or name in wanted]
        zones, given = _Zones(self.engine, view), view
        folded = {name: self.partials[name].fold(self.engine, view, zones[self.partials[name].time]) for name in mine}
        refused = self._judged(stream, view, folded, events, zones)
        letters = None
        if any(each.num_rows for each in refused.values()):
            dead = pa.concat_tables(refused.values()).group_by("__arrival", use_threads=False)
            dead = dead.aggregate([("reason", "first")]).rename_columns(_REFUSED.names)
            letters = letters_of(self.engine, view, dead, self.program.streams[stream].attributes)
            view = self._without(view, dead, number)
            for name in mine:
                if refused.get(self.partials[name].time, _REFUSED.empty_table()).num_rows < dead.num_rows:
                    folded[name] = self.partials[name].fold(self.engine, view, zones[self.partials[name].time])
        clocked = self._clocked(stream, view, number, zones)
        offsets = {each for time in zones for each in time.offsets(self.engine, given, zones[time])}
        return Reached(stream, clocked, folded, letters, frozenset(offsets))

    def _judged(
        self, stream: str, view: str, folded: Mapping[str, pa.Table], events: int | None, zones: _Zones
    ) -> dict[EventTime, pa.Table]:
        """What each reader of a stream refuses of its events, where partial rows do not show that it is nothing."""
        sure = set[EventTime]()
        if events is not None:
            sure = {
                self.partials[name].time for name, rows in folded.items() if self.partials[name].hold_all(rows, events)
            }
        readers = self._readers(stream)
        alone = len(self._all_readers) == 1 and not self._making(stream)
        if not folded and alone and not self.program.clocked:
            return {}  # a second look: the fold leaves out by itself what it refuses
        return {
            each: each.refused(self.engine, view, zones[each]).cast(_REFUSED) for each in readers if each not in sure
        }

    def _readers(self, stream: str) -> list[EventTime]:
        """How those who read a stream read the time of its events; one that statements read too is read for them."""
        found = [self.partials[name].time for name in self._reading(stream)]
        own = self._times.get(stream)
        clocked = [own] if own is not None and stream in self.program.clocked else []
        return list(dict.fromkeys([*found, *clocked, *self._making(stream)]))

    def _making(self, stream: str) -> list[EventTime]:
        """The readers of a stream that make other events of its own, at any time, where texts of those may be too long."""
        return [found for each in self.program.derivations if each.source == stream and (found := _maker(each)).bounded]

    @cached_property
    def _all_readers(self) -> list[EventTime]:
        return list(dict.fromkeys(reader for stream in self.program.streams for reader in self._readers(stream)))

    def _reading(self, stream: str) -> Iterable[str]:
        return [name for name, each in self.partials.items() if each.aggregation.stream == stream]

    @cached_property
    def _times(self) -> Mapping[str, EventTime]:
        """For statements, how the time of a stream's events is read that has one of its own."""
        clocks, streams = {Type.LONG: Clock.LONG, Type.STRING: Clock.STRING}, self.program.streams
        zones, default = self.program.zones, self.program.rollups.zone
        return {
            stream: EventTime(
                clocks[streams[stream].attributes[name]],
                column(name),
                normal_zone(zones.get(stream, default) or GMT),
                assumed=zones.get(stream, default) is None,
            )
            for stream, name in self.program.times.items()
            if stream in streams
        }

    def _without(self, view: str, dead: pa.Table, number: int) -> str:
        """A relation without some arrivals."""
        with self.engine.tables({"__refused": dead}):
            self.engine.connection.execute(
                f"CREATE OR REPLACE TEMP TABLE __dead_{number} AS SELECT __arrival FROM __refused"
            )
        rest = f"SELECT * FROM {view} ANTI JOIN __dead_{number} USING (__arrival)"
        self.engine.connection.execute(f"CREATE OR REPLACE TEMP VIEW __judged_{number} AS {rest}")
        return f"__judged_{number}"

    def _clocked(self, stream: str, view: str, number: int, zones: _Zones) -> str:
        """The relation of events with their time, where that is asked for: its own, that of its cause, or its arrival."""
        own, made = self._times.get(stream), f"__timed_{number}"
        if stream not in self.program.clocked or (own is None and number):
            return view
        time = own or _ARRIVED
        time.timed(self.engine, view, made, zones[time])
        return made


def _maker(derivation: Derivation) -> EventTime:
    where = derivation.query.args.get("where")
    filter = None if where is None else where.this
    made = tuple(each for each in derivation.query.expressions if too_long(each))
    return EventTime(Clock.LONG, exp.Literal.number(0), GMT, filter, made=made)


_ARRIVED = EventTime(Clock.ARRIVAL, arrived(), "")
