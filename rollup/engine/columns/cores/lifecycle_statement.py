"""A statement in a context whose partitions begin and end: the same statement without a context over the events that live
partitions take, with the number of the partition as one more field, by which its groups are.

State: `partitions`, those that live; and that of the other statement, of whose groups those of partitions that have ended go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.lifecycle import Lifecycle, LifecycleBatch
from rollup.engine.columns.cores.projecting import FilterProject, Made, accepted, projected
from rollup.engine.columns.evaluate import flags, passing
from rollup.engine.columns.groups import Ints, equals
from rollup.engine.columns.loops import block, loop
from rollup.engine.row import Row
from rollup.engine.rows.plans import Emitted, Filter
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.state import State
from rollup.engine.timers import Phase
from rollup.engine.types import RowType

_MOST = 1 << 22
"""So many partitions the clock begins in a batch, and so many times its events are in partitions, at most."""
_VALUES = """
def core(wanted, {slots}{results}):
    for n in range(len(wanted)):
        k = wanted[n]
{value}
"""


@dataclass(frozen=True)
class LifecycleStatement(Core):
    """`inner`: the other statement, over a stream of `type`, of the events that pass `filter`; `routed`: a partition takes
    those that have the key of the event that began it. The projection sees what its projection would, then the
    `properties` of the partition, of which fields of that event have numbers. `at_end`: shown is what a partition has when it
    ends, alone.
    """

    lives: Lifecycle
    filter: Filter
    routed: bool
    inner: FilterProject | Folded
    type: RowType
    projection: Projection
    properties: tuple[str | int, ...]
    emitted: Emitted
    at_end: bool
    shows: bool
    """Whether something is there to be shown of a partition that lives, which has no window."""

    hears_all: ClassVar[bool] = True
    ends: ClassVar[bool] = True

    def start(self, now: int) -> State:
        """The partitions that there are from the beginning."""
        first = self.lives.at_first(now)
        return self.state(self.inner.start(now), first, first.num_rows)

    @staticmethod
    def state(inner: State, partitions: pa.Table, number: int) -> State:
        """The state of the whole; `number`: that of the next partition."""
        return State.holding(
            {"core": inner}, {"now": inner.scalars["now"], "number": number}, {"partitions": partitions}
        )

    @property
    def one_group(self) -> bool:
        """Whether a partition is a group: then groups stand as the partitions do, those behind the last have no rows yet."""
        return isinstance(self.inner, Folded) and self.inner.kept

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The rows of each event partition by partition; or of each partition when it ends."""
        batch = self._clocked(state, batch)
        course, inner = self._course(state, batch), state.held()["core"]
        after, made = self.inner.made(inner, self.inner.taken(inner, self._wider(batch, course)))
        output = self._ended(after, course) if self.at_end else self._told(made, course)
        return self._after(state, self._without(after, course), course), output.numbered(course.numbers)

    def handed_back(self, state: State) -> Any:
        """The snapshot of a context in the row executor, with the partitions that live."""
        lives, number = self.lives, state.scalars["number"]
        children = list[Any]()
        for own, begun, due, *values in zip(
            *(each.to_pylist() for each in state.tables["partitions"].columns), strict=True
        ):
            properties: dict[str, Any] = {"name": lives.level, "id": own, "startTime": begun}
            if lives.tag is not None:
                properties[lives.tag] = Row(0, tuple(values))
            if lives.span:
                properties["endTime"] = due
            nested = {f"{lives.level}.{name}": value for name, value in properties.items()}
            key = tuple(values[place] for place in lives.distinct) if lives.distinct else own
            waits = [True, due if lives.span else None, None]
            children.append([key, own, {**properties, "name": lives.context, **nested}, waits, None])
        starts = [] if lives.start is None else [[lives.overlap or not children, None, None]]
        return [number, [number, starts, children]]

    def _after(self, state: State, inner: State, course: LifecycleBatch) -> State:
        """The state of the whole after a batch."""
        number = state.scalars["number"] + course.known.num_rows - state.tables["partitions"].num_rows
        return self.state(inner, course.left, number)

    def _named(self, known: pa.Table) -> Ints:
        """What partitions are told by in the other statement: their places where they are groups, else their numbers."""
        return np.arange(known.num_rows) if self.one_group else known.column("number").to_numpy()

    @staticmethod
    def _clocked(state: State, batch: Batch) -> Batch:
        """A batch whose events are not older than the clock."""
        now: int = state.scalars["now"]
        return replace(batch, times=np.maximum(batch.times, now), now=max(batch.now, now))

    def _course(self, state: State, batch: Batch) -> LifecycleBatch:
        """What becomes of the partitions in a batch."""
        number: int = state.scalars["number"]
        return self.lives.course(state.tables["partitions"], number, batch, self._takes(batch), self.routed)

    def _takes(self, batch: Batch) -> np.ndarray:
        """Which events the statement takes."""
        return flags(accepted(self.filter, None, batch.columns, batch.rows), batch.rows)

    @property
    def phase(self) -> Phase:
        """Partitions end before windows and outputs are looked at."""
        return Phase.CONTEXT

    @property
    def clock_brings(self) -> bool:
        """Whether it ends partitions, of which something is shown then."""
        return self.at_end and self.lives.span > 0

    def dues(self, state: State) -> dict[Phase, int | None]:
        """When the clock ends a partition next."""
        partitions = state.tables["partitions"]
        return {self.phase: partitions.column("due")[0].as_py() if self.lives.span and partitions.num_rows else None}

    def late(self, state: State, phase: Phase, nothing: Batch) -> tuple[State, Output]:
        """What the clock was to end before now ends now."""
        partitions = state.tables["partitions"]
        due = partitions.column("due").to_numpy()
        place = partitions.schema.get_field_index("due")
        ends = pa.array(np.where(due <= nothing.now, nothing.now, due))
        late = State({**state.tables, "partitions": partitions.set_column(place, "due", ends)}, state.scalars)
        return self.step(late, nothing)

    @property
    def context(self) -> str | None:
        """That of its partitions."""
        return self.lives.context

    @property
    def begins_first(self) -> bool:
        """Of partitions that begin or end its statements tell before others."""
        return True

    def _wider(self, batch: Batch, course: LifecycleBatch) -> Batch:
        """Each event as often as partitions take it, with what these are told by."""
        event, columns, times = course.event, batch.columns, batch.times
        if len(event) != batch.rows or not np.array_equal(event, np.arange(batch.rows)):
            places = pa.array(event)
            columns, times = tuple(column.take(places) for column in columns), times[event]
        return Batch((*columns, pa.array(self._named(course.known)[course.part])), times, batch.now, batch.stream)

    def _told(self, made: Made, course: LifecycleBatch) -> Output:
        """The rows of events; that with which a partition begins comes to it first."""
        event, part = course.event[made.places], course.part[made.places]
        early = course.came[part] == event
        return self._output(made.at, event, made.columns, part, course.known, early, made.sign).emitted(self.emitted)

    def _ended(self, after: State, course: LifecycleBatch) -> Output:
        """What partitions that end have; also of those that have nothing there is a delivery."""
        columns, place = self.values(after, course.known, course.over)
        part, at, by = (each[place] for each in (course.over, course.until, course.by))
        output = self._output(at, by, columns, part, course.known, np.ones(len(place), bool))
        return replace(output, ticks=(course.until, course.by, course.over, np.ones(len(course.over), bool)))

    def _output(
        self,
        at: Ints,
        event: Ints,
        columns: Sequence[pa.Array],
        part: Ints,
        known: pa.Table,
        early: np.ndarray,
        sign: np.ndarray | None = None,
    ) -> Output:
        seen = [*columns, *self.of_partitions(known, part)]
        found = Output(at, event, projected(self.projection, seen, len(at)), sign=sign, part=part, early=early)
        mask = passing(self.projection.having, seen, len(at))
        return found if mask is None else found.where(mask)

    def of_partitions(self, known: pa.Table, part: Ints) -> list[pa.Array]:
        """The properties of some partitions."""
        return [self._property(each, known, part) for each in self.properties]

    def _property(self, which: str | int, known: pa.Table, part: Ints) -> pa.Array:
        match which:
            case "name":
                return pa.repeat(self.lives.context, len(part))
            case "id":
                return pa.array(known.column("number").to_numpy()[part].astype(np.int32))
            case "startTime":
                return pa.array(known.column("begun").to_numpy()[part])
            case "endTime":  # also of one that a jump of the clock has ended late
                return pa.array(known.column("begun").to_numpy()[part] + self.lives.span)
            case _:
                return whole(known.column(f"field{which}")).take(pa.array(part))

    def contents(self, state: State) -> list[list[tuple[Any, ...]]]:
        """The rows of each partition that lives."""
        if not self.shows:
            return []
        known = state.tables["partitions"]
        columns, part = self.values(state.held()["core"], known, np.arange(known.num_rows))
        nothing = np.zeros(len(part), np.int64)
        shown = self._output(nothing, nothing, columns, part, known, np.ones(len(part), bool))
        return [[*new] for _, new, _ in shown.placed()]

    def roomy(self, state: State, batch: Batch) -> bool:
        """Whether what becomes of partitions in a batch can be held at once: those that the clock begins, one after the other,
        and the events, each as often as it is in one.
        """
        partitions, rows = state.tables["partitions"], batch.rows
        if self.lives.by_clock(partitions, batch.now) > _MOST:
            return False
        alone = not self.lives.overlap or (self.routed and self.lives.distinct)
        if alone or rows == 1 or rows * (partitions.num_rows + self.lives.by_events(batch)) <= _MOST:
            return True
        batch = self._clocked(state, batch)
        return self.lives.pairs(partitions, batch, self._takes(batch), self.routed) <= _MOST

    def values(self, inner: State, known: pa.Table, wanted: Ints) -> tuple[list[pa.Array], Ints]:
        """What the projection sees of what some partitions have, without their properties; and of each row which of those it
        is of.
        """
        assert isinstance(self.inner, Folded)
        groups, lines = inner.tables["groups"], self.inner.lines
        if self.one_group:  # of a partition without rows the group behind the last, which is as at the beginning
            found, place, keys = np.minimum(wanted, groups.num_rows), np.arange(len(wanted)), [pa.array(wanted)]
        else:
            place, found = equals(known.column("number").to_numpy()[wanted], _numbers(groups))
            keys = [each.take(pa.array(found)) for each in whole(groups.column("key")).flatten()]
        slots, room = lines.grown(groups.columns[1:], groups.num_rows + 1), lines.room(len(found))
        loop(self._text)(found, *slots, *room)
        return [*keys, *lines.results(room, len(found))], place

    @cached_property
    def _text(self) -> str:
        assert isinstance(self.inner, Folded)
        lines = self.inner.lines
        return _VALUES.format(value=block(lines.value(), 2), **lines.names)

    def _without(self, inner: State, course: LifecycleBatch) -> State:
        """The state without the groups of partitions that have ended."""
        if not isinstance(self.inner, Folded) or not len(course.over):
            return inner
        groups = inner.tables["groups"]
        if self.one_group:
            stay = np.ones(course.known.num_rows, bool)
            stay[course.over] = False
            groups = groups.filter(pa.array(stay[: groups.num_rows]))
            groups = groups.set_column(0, groups.schema.field(0), pa.array(np.arange(groups.num_rows)))
        else:
            groups = groups.filter(pa.array(~np.isin(_numbers(groups), course.numbers[course.over])))
        return State({**inner.tables, "groups": groups}, inner.scalars)


def _numbers(groups: pa.Table) -> Ints:
    """The number of the partition of each group."""
    key = whole(groups.column("key"))
    return (key.flatten()[0] if pa.types.is_struct(key.type) else key).to_numpy()
