"""Statements over a window of each partition apart, which has it to itself: one loop goes through the partitions, the rows of
each behind one another, and through the window of each as if there were no other. Their changes come in one order.

State: as of a window that lets rows out in any order; `apart`, the partitions whose windows hold or note something: number,
when a row comes or leaves next by itself, notes, the slots of what a condition asks of the content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.apart_windows import notes_of, parts_apart
from rollup.engine.columns.cores.batches import TIMER, Batch
from rollup.engine.columns.cores.changes import Step
from rollup.engine.columns.cores.conditions import Condition
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.moving import Going, Moves, Moving, Told, over_parts, staying
from rollup.engine.columns.cores.moving_loop import NEVER, Parts
from rollup.engine.columns.evaluate import plain
from rollup.engine.columns.groups import Ints, spans
from rollup.engine.columns.loops import block, loop
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.state import State
from rollup.engine.types import RowType

_TEMPLATE = """
def core(begins, olds, insides, until, since, times, notes, dues, {given}{asked}kept, entering, leaving, at, event, come, gone, part):
    n, e, l = 0, 0, 0
{begin}
    for q in range(len(olds)):
        b, f = begins[q], begins[q + 1]
{numbered}
        m, c, g, dues[q] = window(
            olds[q], until[q], since, times[b:f], insides[q], {own}{own_asked}kept[b:f], entering[e:], leaving[l:], at[n:], event[n:],
            come[n:], gone[n:])
        for j in range(n, n + m):
            come[j], gone[j], part[j] = come[j] + e, gone[j] + l, q
        for j in range(e, e + c):
            entering[j] += b
        for j in range(l, l + g):
            leaving[j] += b
        n, e, l = n + m, e + c, l + g
    return n, e, l
"""
_BEGIN = "owner{p}, known{p}, own{p} = np.full(room{p}, -1, np.int64), np.zeros(room{p}, np.int64), np.zeros(len(times), np.int64)"
_BEGIN_EVER = "ever{p} = np.zeros(room{p}, np.int64)"
_NUMBERED = """
count{p} = 0
for j in range(b, f):
    number = mark{p}[j]
    if owner{p}[number] != q:
        owner{p}[number], known{p}[number], count{p} = q, count{p}, count{p} + 1
    own{p}[j] = known{p}[number]
"""
"""The rows of a partition by numbers that begin anew in each."""
_NUMBERED_EVER = """
count{p} = 0
for j in range(b, f):
    number = mark{p}[j]
    if owner{p}[number] != q:
        owner{p}[number], ever{p}[count{p}], count{p} = q, number, count{p} + 1
ever{p}[:count{p}].sort()
for j in range(count{p}):
    known{p}[ever{p}[j]] = j
for j in range(b, f):
    own{p}[j] = known{p}[mark{p}[j]]
"""
"""The same, in the order in which keys came ever."""
_OWN = {
    "mark": "own{p}[b:f]",
    "room": "count{p}",
    "rank": "rank{p}[b:f]",
    "placed": "placed{p}[b + q:f + q + 1]",
    "held": "held{p}[q]",
    "leaves": "leaves{p}[b:f]",
    "stamps": "stamps{p}[b:f]",
    "note": "notes[q]",
}


def text_of(parts: Parts) -> tuple[str, str]:
    """The text of the loop, and what stands before it."""
    named = [(name, p) for p, part in enumerate(parts.parts) for name in part.names]
    marked = [p for p, part in enumerate(parts.parts) if part.keys]
    numbered = _NUMBERED_EVER if parts.each_apart else _NUMBERED
    beginning = [_BEGIN, *([_BEGIN_EVER] if parts.each_apart else [])]
    asked = {} if parts.condition is None else parts.condition.parameters
    window = parts.text().replace("def core(", "@compiled\ndef window(", 1)
    text = _TEMPLATE.format(
        given="".join(f"{name}{p}, " for name, p in named if name != "note"),
        begin=block([line.format(p=p) for p in marked for line in beginning], 1),
        numbered=block([line for p in marked for line in numbered.strip().format(p=p).splitlines()], 2),
        own="".join(f"{_OWN.get(name, name + '{p}').format(p=p)}, " for name, p in named),
        asked="".join(f"{name}, " for name in asked),
        own_asked="".join(f"{name}{own}, " for name, own in asked.items()),
    )
    return text, f"{parts.before}{window}\n\n"


@dataclass(frozen=True)
class Partings:
    """The rows of a step as those of partitions, one behind the other: their `order`; the `numbers` of the partitions, where
    the rows of each begin, how many of them were held, and how many of these had come.
    """

    order: Ints
    numbers: Ints
    begins: Ints
    olds: Ints
    insides: Ints

    @classmethod
    def of(cls, of_rows: Ints, step: Step, known: Ints) -> Partings:
        """Of rows of partitions with those numbers, beside others that are `known`."""
        order = np.argsort(of_rows, kind="stable")
        numbers = np.union1d(known, of_rows)
        begins = np.searchsorted(of_rows[order], np.append(numbers, NEVER))
        places = np.searchsorted(numbers, of_rows[: step.held])
        olds, insides = (np.bincount(places[:end], minlength=len(numbers)) for end in (step.held, step.old))
        return cls(order, numbers, begins, olds, insides)

    @cached_property
    def places(self) -> Ints:
        """Where each row stands in the order."""
        found = np.empty(len(self.order), np.int64)
        found[self.order] = np.arange(len(self.order))
        return found

    def given(self, told: Told, placed: Sequence[Ints]) -> list[int | np.ndarray]:
        """The parameters of the loop that are of a part, with the rows in this order; those that are `placed` so."""
        found: list[int | np.ndarray] = [number for _, number in told.part.numbers]
        found += [told.numbers[self.order], told.room] if told.part.keys else []
        found += [told.rank[self.order], *placed] if told.part.by else []
        found += [told.leaves[self.order]] if told.part.stamp else []
        return [*found, *([told.stamps[self.order]] if told.part.time else [])]

    def placed(self, told: Told) -> tuple[Ints, Ints]:
        """The places of the rows that are in order, partition by partition, with room for one more in each; and how many."""
        places = self.places[told.placed[: told.held]]
        parts = np.searchsorted(self.begins, places, "right") - 1
        found = np.zeros(len(self.order) + len(self.numbers), np.int64)
        held = np.bincount(parts, minlength=len(self.numbers))
        found[spans(self._rooms, held)] = places - self.begins[parts]
        return found, held

    @property
    def _rooms(self) -> Ints:
        """Where the room of each partition for places begins."""
        return self.begins[:-1] + np.arange(len(self.numbers))

    def put_back(self, told: Told, placed: Ints, having: np.ndarray) -> None:
        """The places after the loop, of those rows in this order that the part is `having`, among all rows again."""
        counts = np.concatenate([[0], np.cumsum(having)])
        held = counts[self.begins[1:]] - counts[self.begins[:-1]]
        found = placed[spans(self._rooms, held)] + np.repeat(self.begins[:-1], held)
        told.placed[: len(found)] = self.order[found]


@dataclass(frozen=True, kw_only=True)
class Apart(Moving):
    """`parts` are those of the window of one partition, whose number is the last field. The window ends with the partition, of
    which `Living` tells.
    """

    @cached_property
    def _through_all(self) -> tuple[str, str]:
        return text_of(self.parts)

    @property
    def _notes(self) -> tuple[int, ...]:
        return self.parts.parts[0].lines.notes

    @property
    def _asks(self) -> Condition | None:
        return self.parts.condition

    def start(self, now: int) -> State:
        """No partition."""
        state, nothing = super().start(now), np.empty(0, np.int64)
        apart = self.noting(nothing, nothing, np.empty((0, len(self._notes)), np.int64), self._slots(0))
        return State({**state.tables, "apart": apart}, state.scalars)

    def _slots(self, count: int) -> list[np.ndarray]:
        """The slots of the condition for so many partitions, as they begin."""
        return [] if self._asks is None else [np.zeros(count, slot.dtype) for slot in self._asks.lines.slots]

    def noting(self, numbers: Ints, dues: Ints, notes: np.ndarray, slots: Sequence[np.ndarray]) -> pa.Table:
        """The table of what partitions note."""
        names = ["number", "due", *(f"note{i}" for i in range(len(self._notes)))]
        names += [f"slot{i}" for i in range(len(slots))]
        return pa.table([numbers, dues, *notes.T, *slots], names=names)

    @property
    def behind_outputs(self) -> bool:
        """Whether what the clock lets out at an instant comes after outputs of that instant: so it is where each key of a partition
        has a window, which is made after the clock of the outputs.
        """
        return self.parts.each_apart

    @property
    def dates(self) -> bool:
        """Whether it matters when a partition has begun."""
        return self.parts.parts[0].open is not None

    def begun(self, state: State, numbers: Ints, at: Ints) -> State:
        """The state in which partitions with those numbers have begun, and when, where their windows note that."""
        span = self.parts.parts[0].open
        if span is None or not len(numbers):
            return state
        ends = np.minimum(at, NEVER - span) + span
        fresh = self.noting(numbers, np.full(len(numbers), NEVER), ends[:, None], ())
        return State({**state.tables, "apart": pa.concat_tables([state.tables["apart"], fresh])}, state.scalars)

    def without(self, state: State, over: Ints, places: int | None) -> tuple[State, Ints]:
        """The state without the partitions that are `over`, which have no further part in it, and the new number of each group; where
        the numbers of partitions are the `places` of so many, those behind them move up.
        """
        content, groups, noted = (state.tables[name] for name in ("content", "groups", "apart"))
        parts, keys = content.column(content.num_columns - 1).to_numpy(), whole(groups.column("key"))
        own = keys.flatten()[0] if pa.types.is_struct(keys.type) else keys
        stays = ~np.isin(parts, over)
        groups_stay = ~np.isin(own.to_numpy(), over) if self.keys else np.ones(groups.num_rows, bool)
        partitions_stay = ~np.isin(noted.column("number").to_numpy(), over)
        numbers = np.cumsum(groups_stay) - 1
        named = {"group": numbers[content.column("group").to_numpy()[stays]]}
        content, groups, noted = (
            table.filter(pa.array(mask))
            for table, mask in ((content, stays), (groups, groups_stay), (noted, partitions_stay))
        )
        beside = {
            name: state.tables[name].filter(pa.array(stays)) for name in ("parts", "leaves") if name in state.tables
        }
        if self.parts.each_apart:
            ever = state.tables["keys"]
            beside["keys"] = ever.filter(pa.array(~np.isin(ever.column("key0").to_numpy(), over)))
        if places is not None:
            lives = np.ones(places, bool)
            lives[over] = False
            moved = np.cumsum(lives) - 1
            named[content.column_names[-1]] = moved[parts[stays]]
            groups = _with(groups, {"key": np.arange(groups.num_rows)})
            noted = _with(noted, {"number": moved[noted.column("number").to_numpy()]})
            if self.parts.each_apart:
                beside["keys"] = _with(beside["keys"], {"key0": moved[beside["keys"].column("key0").to_numpy()]})
        due = int(noted.column("due").to_numpy().min(initial=NEVER))
        scalars = {
            **state.scalars,
            "come": int(stays[: state.scalars["come"]].sum()),
            "due": None if due == NEVER else due,
        }
        tables = {"content": _with(content, named), "groups": groups, "apart": noted}
        return State({**state.tables, **beside, **tables}, scalars), numbers

    @property
    def of_one(self) -> WindowSpec:
        """The window of one partition."""
        assert isinstance(self.window, Grouped)
        return self.window.inner

    def noted(self, notes: Mapping[int, Mapping[str, Any]]) -> dict[str, pa.Table]:
        """The table of what partitions with those numbers note, as the windows of the row executor tell it; none is due yet."""
        numbers = np.array(sorted(notes), np.int64)
        found = [notes_of(self.of_one, self._notes, notes[number]) for number in numbers.tolist()]
        values = np.array(found, np.int64).reshape(len(numbers), len(self._notes))
        slots = list[np.ndarray]()
        if self._asks is not None:
            lines, asked = self._asks.lines, [notes[number]["group"] for number in numbers.tolist()]
            typed = zip(lines.slots_in(asked), lines.slots, strict=True)
            slots = [np.array(values, slot.dtype) for values, slot in typed]
        return {"apart": self.noting(numbers, np.full(len(numbers), NEVER), values, slots)}

    def dues(self, state: State) -> tuple[Ints, Ints]:
        """The numbers of the partitions whose windows hold or note something, and when the clock lets something out of each next,
        NEVER where it does not.
        """
        apart = state.tables["apart"]
        return apart.column("number").to_numpy(), apart.column("due").to_numpy()

    def dated_notes(self, state: State) -> pa.Table:
        """The table of the partitions of a state, with when something is due in each."""
        nothing = Batch.nothing([column.type for column in state.tables["content"].columns[2:]], state.scalars["now"])
        return self.made(state, self.taken(state, nothing))[0].tables["apart"]

    def _in_order(self, rank: np.ndarray, step: Step) -> np.ndarray:
        return np.column_stack([self._of_rows(step), rank])

    @staticmethod
    def _of_rows(step: Step) -> Ints:
        """The number of the partition of each row."""
        return plain(step.fields[-1]).to_numpy(zero_copy_only=False)

    def _moves(
        self, state: State, step: Step, kept: np.ndarray, going: Going, told: Sequence[Told]
    ) -> tuple[Moves, int | None, Mapping[str, pa.Table]]:
        known = state.tables["apart"]
        parted = Partings.of(self._of_rows(step), step, known.column("number").to_numpy())
        total, count = len(step.times), len(parted.numbers)
        old = np.searchsorted(parted.numbers, known.column("number").to_numpy())
        before, notes = np.full(count, NEVER), np.tile(np.array(self._notes, np.int64), (count, 1))
        before[old] = known.column("due").to_numpy()
        for place in range(len(self._notes)):
            notes[old, place] = known.column(f"note{place}").to_numpy()
        slots = self._slots(count)
        for place, slot in enumerate(slots):
            slot[old] = known.column(f"slot{place}").to_numpy(zero_copy_only=False)
        entering, leaving = np.empty(total, np.int64), np.empty((len(self.parts.parts) + 1) * total, np.int64)
        at, event, come, gone, part = (np.empty(2 * total + count, np.int64) for _ in range(5))
        placed = [parted.placed(each) if each.part.by else () for each in told]
        given = [each for one, places in zip(told, placed, strict=True) for each in parted.given(one, places)]
        given += [] if self._asks is None else [*self._asks.given(step.fields, parted.order), *slots]
        bits, dues, (text, helpers) = kept[parted.order], np.empty(count, np.int64), self._through_all
        n, comes, leaves = loop(text, helpers)(
            parted.begins, parted.olds, parted.insides, _until(parted.numbers, step.taken.now, going), going.since,
            step.times[parted.order], notes, dues, *given, bits, entering, leaving, at, event, come, gone, part,
        )  # fmt: skip
        kept[parted.order] = bits
        for p, (each, places) in enumerate(zip(told, placed, strict=True)):
            if places:
                parted.put_back(each, places[0], (bits >> p & 1) > 0)
        changes = [each[:n] for each in (at, event, come, gone, part)]
        late = np.where(before < going.since, before, NEVER)
        moves = _in_turn(parted, step, late, changes, entering[:comes], leaving[:leaves], kept)
        moves = replace(moves, turn=() if self.parts.together == "any" else told[0].turn)
        stays = slice(None) if self._notes or slots else np.isin(parted.numbers, self._of_rows(step)[moves.staying])
        noted = self.noting(parted.numbers[stays], dues[stays], notes[stays], [slot[stays] for slot in slots])
        due = int(dues.min(initial=NEVER))
        return moves, None if due == NEVER else due, {"apart": noted}


def _with(table: pa.Table, columns: Mapping[str, Ints]) -> pa.Table:
    """A table with other values in some of its columns."""
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))
    return table


def _until(numbers: Ints, now: int, going: Going) -> Ints:
    """Until when partitions with those numbers go on."""
    found, (over, until) = np.full(len(numbers), now), going.ends
    there = np.isin(numbers, over)
    found[there] = until[np.searchsorted(over, numbers[there])]
    return found


def _in_turn(
    parted: Partings, step: Step, late: Ints, changes: Sequence[Ints], entering: Ints, leaving: Ints, kept: np.ndarray
) -> Moves:
    """The changes of all partitions in one order: by their instants, what the clock brings first, partition by partition; of
    what comes `late` first that which was due first.
    """
    at, event, come, gone, part = changes
    clock = event < 0
    rows = parted.begins[part] + parted.olds[part] + np.maximum(event, 0)
    arrivals = np.where(clock, TIMER, parted.order[np.minimum(rows, len(parted.order) - 1)] - step.held)
    turn = np.where(clock, np.minimum(at, late[part]), arrivals)
    order = np.lexsort((part, turn, ~clock, at))
    listed = list[Ints]()
    ends = list[Ints]()
    for each, until in ((entering, come), (leaving, gone)):
        counts = np.diff(until, prepend=0)[order]
        listed.append(parted.order[each[spans((until - np.diff(until, prepend=0))[order], counts)]])
        ends.append(np.cumsum(counts))
    stays = staying(step.old, kept, listed[0])
    return Moves(at[order], arrivals[order], ends[0], ends[1], listed[0], listed[1], *stays)


def apart(plan: Select, type: RowType) -> Apart | str:
    """The core of a statement over windows of partitions, `Grouped` by their numbers, or the first reason against it."""
    input = plan.inputs[0]
    assert isinstance(input, StreamInput) and isinstance(input.window, Grouped)
    parts = parts_apart(input.window.inner, input.window.key[0])
    if parts is None:
        return f"the window {input.window.inner.__class__.__name__} in a context"
    return over_parts(plan, type, parts, Apart)
