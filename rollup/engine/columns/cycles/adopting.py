"""What a running query that goes over to columns takes along, read from the snapshot of the row executor.

The slots of a group are the same declared slots in both executors, so sums go on bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cycles.alerts import Alerts
from rollup.engine.columns.cycles.clocked import Chained, CycleCore
from rollup.engine.columns.cycles.totals import Totals
from rollup.engine.columns.evaluate import arrow
from rollup.engine.columns.groups import Ints
from rollup.engine.row import Row
from rollup.engine.state import State, Unpacker
from rollup.engine.types import RowType


def adopted(core: CycleCore, kept: State, kinds: Mapping[str, RowType]) -> State:
    """The state of a core that goes on where a query of the row executor stands."""
    unpacker, now = Unpacker(kept), kept.scalars["now"]
    match core:
        case Totals():
            return _totals(core, unpacker.node("chain/0")[0], kinds[core.chain.stream], now)
        case Alerts():
            chains = [unpacker.node(f"chain/{place}")[0] for place in range(len(core.chains))]
            return _alerts(core, chains, unpacker.node("correlation"), kinds, now)
        case _:
            return core.start()


@dataclass(frozen=True)
class Held:
    """The rows of a chain's windows as they came: those that are in, then those that wait; the number of each one's window."""

    rows: list[Row]
    window: list[int]
    held: int
    times: tuple[Ints, Ints]

    @classmethod
    def of(cls, windows: Sequence[Any], chain: Chained, now: int) -> Held:
        """From what the windows kept. A row that came too old is told by an instant behind its time."""
        inside = [(row, number, row.id in own) for number, (_, (rows, _, own)) in enumerate(windows) for row in rows]
        waiting = [(row, number, False) for number, (_, (_, rows, _)) in enumerate(windows) for row in rows]
        inside.sort(key=lambda each: each[0].id)
        waiting.sort(key=lambda each: each[0].id)
        every = [*inside, *waiting]
        time = np.array([row.values[chain.time] for row, _, _ in every], np.int64)
        at = np.where([old for _, _, old in every], time + chain.span, time) if every else time
        at[len(inside) :] = now
        return cls([row for row, _, _ in every], [number for _, number, _ in every], len(inside), (at, time))

    def columns(self, kinds: RowType) -> list[pa.Array]:
        """The values of the rows."""
        types = enumerate(kinds.fields.values())
        return [pa.array([row.values[place] for row in self.rows], arrow(kind)) for place, kind in types]


def _totals(core: Totals, kept: Any, kinds: RowType, now: int) -> State:
    windows, _, groups, *_ = kept
    held, empty = Held.of(windows, core.chain, now), core.start()
    known = {key: (group, last, values) for key, group, last, values in groups}
    missing = (core.lines.fold.start(), None, None)
    found = [known.get(key, missing) for key, _ in windows]
    schema = empty.tables["groups"].schema
    columns: list[Any] = [[key[i] for key, _ in windows] for i in range(len(core.keys))]
    columns.append([len(rows) for _, (rows, _, _) in windows])
    columns.append(range(1, len(windows) + 1))
    columns.append([last is not None for _, last, _ in found])
    for call in range(len(core.lines.calls)):
        values = [None if values is None else values[call] for _, _, values in found]
        columns += [[value or 0 for value in values], [value is not None for value in values]]
    columns += core.lines.slots_in([group for group, _, _ in found])
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    given = core.lines.given(held.columns(kinds), len(held.rows))
    rows = [*held.times, np.array(held.window, np.int64), *given]
    tables = {
        "rows": pa.table([pa.array(each) for each in rows], schema=empty.tables["rows"].schema),
        "groups": pa.table(arrays, schema=schema),
    }
    return State(tables, {"held": held.held})


def _alerts(core: Alerts, chains: Sequence[Any], known: Any, kinds: Mapping[str, RowType], now: int) -> State:
    empty, tables, counts, places = core.start(), dict[str, pa.Table](), list[int](), list[dict[int, int]]()
    for place, (chain, (windows, *_)) in enumerate(zip(core.chains, chains, strict=True)):
        held = Held.of(windows, chain, now)
        values = held.columns(kinds[chain.stream])
        columns = [*map(pa.array, held.times), *(values[field.index] for field in core.kept[place])]
        tables[f"rows{place}"] = pa.table(columns, schema=empty.tables[f"rows{place}"].schema)
        counts.append(held.held)
        places.append({row.id: number for number, row in enumerate(held.rows)})
    rows = [{place: places[place][row.id] for place, row in inside} for _, inside, *_ in known]
    schema = empty.tables["known"].schema
    columns = [[identity for identity, *_ in known]]
    columns += [[sum(1 << f for f in each[bits]) for each in known] for bits in (2, 3, 4)]
    columns += [[row.get(place, -1) for row in rows] for place in range(len(core.chains))]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return State({**tables, "known": pa.table(arrays, schema=schema)}, {"held": counts})
