"""A window kind costs one file of at most 40 lines and one line of registration: both modes, snapshots, timers, groups, the
remove stream and the state between the modes come with it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rollup.engine.programs.lowering.components import Program, lowered
from rollup.engine.programs.lowering.windows import WINDOWS, with_constants
from rollup.engine.programs.runtime.running import Running
from rollup.engine.rows.component import Component
from rollup.engine.rows.plans import Select, StreamInput
from tests.engine.programs.test_statements import MODES, batches, delivered, engine_of, sent
from tests.extending.emptying import Emptying, EmptyingWindow

SIZE, SPAN = 4, 25


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    """A statement over the window."""
    monkeypatch.setitem(WINDOWS, Emptying, with_constants(EmptyingWindow, "size", "span"))
    engine: Any = engine_of("select irstream symbol, price from S#keepall")
    plan = engine._component.statements["s"].plan
    assert isinstance(plan, Select)
    (source,) = plan.inputs
    assert isinstance(source, StreamInput)
    component = Component()
    component.deploy("s", replace(plan, inputs=(replace(source, window=Emptying(SIZE, SPAN)),)))
    made = lowered(component, engine._deployer.catalog.types.get)
    assert isinstance(made, Program), str(made)
    return made


def model(events: list[tuple[int, Any]], until: int) -> list[Any]:
    """Each row that comes (1) or leaves (-1), with its instant: event by event, in a plain list."""
    held, last, said = list[Any](), 0, list[Any]()
    for at, row in [*events, (until, None)]:
        if held and last + SPAN <= at:
            said += [(last + SPAN, -1, each) for each in held]
            held.clear()
        if row is None:
            break
        said.append((at, 1, row))  # in a delivery what comes stands before what leaves
        if len(held) == SIZE:
            said += [(at, -1, each) for each in held]
            held.clear()
        held.append(row)
        last = at
    return said


def test_the_file_of_a_window_kind_is_short() -> None:
    assert len(Path(__file__).with_name("emptying.py").read_text().splitlines()) <= 40


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(3))
def test_a_window_kind_works_in_every_mode_however_events_are_cut(program: Program, mode: Any, seed: int) -> None:
    running, said, events = Running(program, mode), list[Any](), list[Any]()

    def take(found: Any) -> None:
        for at, new, old in found.get("s", ()):
            said.extend([(at, 1, row) for row in new] + [(at, -1, row) for row in old])

    for number, (table, at) in enumerate(batches(seed)):
        columns = table.select(["symbol", "price"]).to_pydict()
        events += zip(at, zip(columns["symbol"], columns["price"], strict=True), strict=True)
        take(sent(running, table, at))
        running = running.moved(MODES[(number + seed) % 3])
    running.advance(at[-1] + 1000)
    take(delivered(running))
    assert said == model(events, at[-1] + 1000)


def test_a_bounded_window_kind_holds_no_more_after_many_events(program: Program) -> None:
    running = Running(program, "checked")
    n = 200_000
    table = pa.table({"symbol": ["a"] * n, "price": [1.0] * n, "volume": pa.array([1] * n, pa.int32())})
    sent(running, table, list(range(n)))
    assert running.live <= 2 * SIZE + 2
    assert running.save()["Row_stream0"].num_rows <= SIZE
