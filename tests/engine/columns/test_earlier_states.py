"""States of earlier versions: what they lack is known."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.rates.rated import Rated
from rollup.engine.state import State
from tests.engine.columns.delivering import KINDS, core

EVENTS = [(at, ("ab"[at % 2], float(at), at % 3, True, at)) for at in range(1, 24)]


def batches() -> Iterator[Batch]:
    """The events, four at a time."""
    for begin in range(0, len(EVENTS), 4):
        part = EVENTS[begin : begin + 4]
        columns = [pa.array([row[i] for _, row in part], kind) for i, kind in enumerate(KINDS)]
        yield Batch.of(columns, [at for at, _ in part], stream="S")


@pytest.mark.parametrize(
    "text",
    [
        "select sum(price) as s from S#firstunique(id) output every 3 events",
        "select symbol, price, avg(price) as a from S#ext_timed(id, 5 msec) group by symbol output every 4 msec",
    ],
)
def test_outputs_go_on_from_a_state_that_does_not_say_of_which_stream_it_is(text: str) -> None:
    found = core(text)
    assert isinstance(found, Rated)
    shown: list[list[State]] = [[], []]
    for way, settled in enumerate(shown):
        state = found.start(0)
        for batch in batches():
            if way:
                state = State(state.tables, {name: value for name, value in state.scalars.items() if name != "stream"})
            state, _ = found.step(state, batch)
            settled.append(found.settled(state))
    assert [each.tables for each in shown[0]] == [each.tables for each in shown[1]]
    assert any(table.num_rows for table in shown[0][-1].tables.values())
