"""`every (…)` around what has no `every` in it: a try is under way, and another begins when it is a match or cannot become one.
In a partition of its own each has one try at a time.

State: the tries that have events, each with its stage, when the stages before were over, and the events that it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.projecting import accepted
from rollup.engine.columns.cores.renewing_loop import Stage, source
from rollup.engine.columns.evaluate import Columns, carried, evaluate, flags, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import Expr
from rollup.engine.rows.plans import Filter
from rollup.engine.state import State
from rollup.engine.types import RowType


@dataclass(frozen=True)
class Slot:
    """An event of a match: that of a tag, or the `nth` of those that it has; its stream, and its type."""

    tag: int
    nth: int | None
    stream: str
    type: RowType


@dataclass(frozen=True)
class _Coming:
    """The events of a batch that a filter may take: their fields by stream, when they came, their places in the batch, which
    partition each is of, and which of them pass each filter.
    """

    columns: Mapping[str, Columns]
    came: Ints
    places: Ints
    part: Ints
    masks: np.ndarray


@dataclass(frozen=True)
class Renewing(Core):
    """The stages of a try, the events of it that are shown or asked for later, and the streams that it reads.

    `columns` and `test` see the fields of these events, null where there is none; without `columns` the result is the events.
    `part`: which field of an event is the number of its partition.
    """

    stages: tuple[Stage, ...]
    slots: tuple[Slot, ...]
    reads: Mapping[str, RowType]
    columns: tuple[Expr, ...] | None = None
    test: Expr | None = None
    part: int | None = None

    @property
    def types(self) -> tuple[RowType, ...]:
        """Those of the events."""
        return tuple(each.type for each in self.slots)

    @property
    def events(self) -> list[tuple[int, int | None]]:
        """By which tags the events are, and the how manieth of them."""
        return [(each.tag, each.nth) for each in self.slots]

    @cached_property
    def _filters(self) -> list[Filter]:
        return [taking.filter for stage in self.stages for taking in stage.takings]

    @cached_property
    def _streams(self) -> set[str]:
        return {each.stream for each in self._filters}

    @cached_property
    def _numbers(self) -> list[Ints]:
        """The spans after which a try is given up, and how many events stages take."""
        spans = [guard.span for stage in self.stages for guard in stage.guards]
        counts = ([stage.low for stage in self.stages], [stage.high for stage in self.stages])
        return [np.array(each, np.int64) for each in (spans, *counts)]

    @cached_property
    def schema(self) -> pa.Schema:
        """A try: its partition, where it stands, and its events."""
        ended = [f"ended{number}" for number in range(len(self.stages) - 1)]
        fields: list[tuple[str, pa.DataType]] = [(name, pa.int64()) for name in ("part", "stage", "got", *ended)]
        for number, slot in enumerate(self.slots):
            fields.append((f"bound{number}", pa.bool_()))
            kinds = enumerate(slot.type.fields.values())
            fields += [(f"event{number} field{place}", carried(kind)) for place, kind in kinds]
        return pa.schema(fields)

    def start(self, now: int) -> State:
        """No try has any event."""
        return self.state(self.schema.empty_table(), now)

    @staticmethod
    def state(tries: pa.Table, now: int) -> State:
        """The state where these are under way."""
        return State({"tries": tries}, {"now": now})

    @property
    def matches(self) -> bool:
        """It is a pattern."""
        return True

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The matches that the batch's events complete."""
        before: int = state.scalars["now"]
        tries, now, coming = state.tables["tries"], max(before, batch.now), self._coming(before, batch)
        fields = [self._fields(number, tries, coming) for number in range(len(self.slots))]
        number, rows = tries.column("part").to_numpy(), len(coming.came)
        parts = 1 + int(max(number.max(initial=0), coming.part.max(initial=0)))
        stage, got = (_spread(tries.column(name).to_numpy(), number, parts) for name in ("stage", "got"))
        ended = self._of_tries([f"ended{place}" for place in range(len(self.stages) - 1)], tries, parts)
        bound = self._of_tries([f"bound{place}" for place in range(len(self.slots))], tries, parts)
        bound *= _spread(np.arange(1, 1 + tries.num_rows), number, parts)[:, None]
        at, found = np.empty(rows, np.int64), np.empty((rows, len(self.slots)), np.int64)
        base, given = 1 + tries.num_rows, self._given(fields, coming)
        arrays = (coming.part, coming.came, base, stage, got, ended, bound, coming.masks, *self._numbers, *given)
        matches = loop(self._source)(*arrays, at, found)
        goes_on = np.flatnonzero((stage > 0) | (got > 0))
        left = self._tries(goes_on, stage, got, ended, bound, fields)
        at, found = at[:matches], found[:matches]
        return self.state(left, now), self._output(fields, found, coming.came[at], coming.places[at])

    @cached_property
    def _source(self) -> str:
        return source(self.stages)

    def _coming(self, before: int, batch: Batch) -> _Coming:
        masks = [self._mask(each, batch) for each in self._filters]
        places = np.flatnonzero(np.logical_or.reduce(masks))  # other events change nothing
        taken = pa.array(places)
        columns = [plain(each if len(places) == batch.rows else each.take(taken)) for each in batch.columns]
        part = np.zeros(len(places), np.int64) if self.part is None else columns[self.part].to_numpy().astype(np.int64)
        came = np.maximum(batch.times[places], before)
        stream = batch.stream if len(self._streams) > 1 else next(iter(self._streams))
        return _Coming({stream: columns}, came, places, part, np.array([mask[places] for mask in masks]))

    def _mask(self, filter: Filter, batch: Batch) -> np.ndarray:
        """Which events pass; those of one stream need not say that they are of it."""
        if batch.stream != filter.stream and len(self._streams) > 1:
            return np.zeros(batch.rows, bool)
        return flags(accepted(filter, None, batch.columns, batch.rows), batch.rows)

    @staticmethod
    def _of_tries(names: Sequence[str], tries: pa.Table, parts: int) -> np.ndarray:
        """What columns say of the tries, by partition."""
        found = np.zeros((parts, len(names)), np.int64)
        number = tries.column("part").to_numpy()
        for place, name in enumerate(names):
            found[number, place] = tries.column(name).to_numpy()
        return found

    def _fields(self, number: int, tries: pa.Table, coming: _Coming) -> list[pa.Array]:
        """The fields of the events that may be at a slot: of none, those that are there, and those that come."""
        slot, found = self.slots[number], list[pa.Array]()
        came = coming.columns.get(slot.stream)
        for place, kind in enumerate(slot.type.fields.values()):
            held = whole(tries.column(f"event{number} field{place}"))
            found.append(
                pa.concat_arrays([pa.nulls(1, carried(kind)), held, *(() if came is None else (came[place],))])
            )
        return found

    def _given(self, fields: Sequence[Sequence[pa.Array]], coming: _Coming) -> list[np.ndarray]:
        """Both sides of what filters compare."""
        found = list[np.ndarray]()
        for stage in self.stages:
            for taking in stage.takings:
                columns, rows = coming.columns.get(taking.filter.stream), len(coming.came)
                for slot, compared in taking.compared:
                    before = fields[slot]
                    if columns is None:  # no event of the batch passes
                        found += compared.given(before, len(before[0]), self._nothing(taking.filter.stream), 0)
                    else:
                        found += compared.given(before, len(before[0]), columns, rows)
        return found

    def _nothing(self, stream: str) -> Columns:
        return [pa.array([], carried(kind)) for kind in self.reads[stream].fields.values()]

    def _tries(
        self, parts: Ints, stage: Ints, got: Ints, ended: np.ndarray, bound: np.ndarray, fields: Sequence[Columns]
    ) -> pa.Table:
        """The tries of some partitions, with the events that they have."""
        columns: list[pa.Array] = [pa.array(each) for each in (parts, stage[parts], got[parts], *ended[parts].T)]
        for number, each in enumerate(fields):
            places = bound[parts, number]
            columns += [pa.array(places > 0), *_taken(each, places)]
        return pa.table(columns, schema=self.schema)

    def _output(self, fields: Sequence[Columns], found: np.ndarray, at: Ints, event: Ints) -> Output:
        """The matches, each of the fields of its events."""
        events = [_taken(each, found[:, number]) for number, each in enumerate(fields)]
        seen = [column for each in events for column in each]
        if self.columns is None:
            shown = [
                pa.StructArray.from_arrays(each, list(slot.type.fields), mask=pa.array(found[:, number] == 0))
                for number, (slot, each) in enumerate(zip(self.slots, events, strict=True))
            ]
        else:
            shown = [evaluate(each, seen, len(at)) for each in self.columns]
        mask, output = passing(self.test, seen, len(at)), Output(at, event, tuple(shown))
        return output if mask is None else output.where(mask)


def _spread(values: np.ndarray, number: Ints, parts: int) -> Ints:
    """Values by partition, 0 of those that have none."""
    found = np.zeros(parts, np.int64)
    found[number] = values
    return found


def _taken(columns: Columns, places: Ints) -> list[pa.Array]:
    return [column.take(pa.array(places)) for column in columns]
