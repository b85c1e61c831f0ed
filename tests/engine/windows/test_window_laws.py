"""The laws of every window, on random rows and jumps of the clock.

What came and has not left is the content; nothing leaves twice, and nothing that had not come; a window restored from
its snapshot at any moment goes on as if nothing had happened; `due` is never forgotten once it has passed.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.engine.aggregates.known import SUM
from rollup.engine.expressions import Call, Const, Field, Slot
from rollup.engine.folding import AggregateCall
from rollup.engine.operators import LESS, LESS_EQUAL
from rollup.engine.rows.runner import Runner
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.combined import Intersection, Union
from rollup.engine.rows.windows.counted import ArrivalBatch, FirstLength, KeepAll, Length, LengthBatch
from rollup.engine.rows.windows.expressed import AGGREGATES, CURRENT, Expressed, ExpressedBatch
from rollup.engine.rows.windows.external import ExternalTime, ExternalTimeBatch, ExternalTimeBatchTimeout, TimeOrder
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.ranked import Frequent, LossyFrequent, Ranked, Sorted
from rollup.engine.rows.windows.sessions import Session
from rollup.engine.rows.windows.timed import Delay, FirstTime, Time, TimeAccumulating, TimeBatch
from rollup.engine.state import Packer, Unpacker
from rollup.engine.types import BOOL, LONG
from tests.profiles import examples

KEY, TIME, VALUE = (Field(0, place, LONG) for place in range(3))
FEW = Call(LESS_EQUAL, (Slot(CURRENT, LONG), Const(3, LONG)), BOOL)
MANY = Call(LESS, (Const(2, LONG), Slot(CURRENT, LONG)), BOOL)
SMALL = Call(LESS, (Slot(AGGREGATES, LONG), Const(20, LONG)), BOOL)
SPECS: dict[str, WindowSpec] = {
    "length": Length(3),
    "length 0": Length(0),
    "keep all": KeepAll(),
    "first length": FirstLength(2),
    "length batch": LengthBatch(3),
    "length batch early": LengthBatch(3, early=True),
    "arrival batch": ArrivalBatch(),
    "time": Time(10),
    "time length": Time(10, 2),
    "delay": Delay(5),
    "time accumulating": TimeAccumulating(6),
    "first time": FirstTime(12),
    "time batch": TimeBatch(10),
    "time batch eager": TimeBatch(10, eager=True),
    "time batch origin": TimeBatch(10, origin=3),
    "time batch early": TimeBatch(10, each=True, early=True),
    "session": Session(6, (KEY,)),
    "external time": ExternalTime(TIME, 10),
    "external time batch": ExternalTimeBatch(TIME, 10),
    "time order": TimeOrder(TIME, 10),
    "unique": Unique((KEY,)),
    "first unique": Unique((KEY,), first=True),
    "sorted": Sorted(2, (VALUE, KEY), (True, False)),
    "sorted newest": Sorted(2, (VALUE,), (False,), "newest"),
    "ranked": Ranked((KEY,), 2, (VALUE,), (True,)),
    "external time batch timeout": ExternalTimeBatchTimeout(TIME, 10, None, 7),
    "frequent": Frequent(2, (KEY,)),
    "lossy frequent": LossyFrequent(0.5, 0.25, (KEY,)),
    "expression": Expressed(FEW),
    "expression sum": Expressed(SMALL, (AggregateCall(SUM, (VALUE,)),)),
    "expression batch": ExpressedBatch(MANY),
    "expression batch exclusive": ExpressedBatch(MANY, inclusive=False),
    "expression batch early": ExpressedBatch(MANY, early=True),
    "expression batch early exclusive": ExpressedBatch(MANY, inclusive=False, early=True),
    "grouped length": Grouped((KEY,), Length(2)),
    "grouped time": Grouped((KEY,), Time(7)),
    "intersection": Intersection((Length(3), Time(10))),
    "intersection unique": Intersection((Unique((KEY,)), Length(2))),
    "union": Union((Length(1), Time(10))),
}
BATCHES = {name for name in SPECS if "batch" in name and "early" not in name and name != "arrival batch"}
STEPS = st.lists(
    st.tuples(
        st.integers(0, 8), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(-9, 9)), max_size=3)
    ),
    max_size=14,
)


class Walk:
    """A window, what it let in and out, and a clock that fires what is due."""

    def __init__(self, spec: WindowSpec) -> None:
        self.spec, self.runner = spec, Runner()
        self.window = spec.build(self.runner)
        self.log: list[tuple[list[int], list[int]]] = []

    def step(self, wait: int, values: list[tuple[int, int, int]]) -> None:
        now = self.runner.environment.now + wait
        while self.window.due is not None and self.window.due <= now:
            self.runner.environment.now = max(self.runner.environment.now, self.window.due)
            before = self.window.due
            delta = self.window.fire(self.runner.environment.now)
            self.note(delta)
            again = self.window.due is not None and self.window.due <= before
            assert delta or not again, "a timer that let nothing out is due again at once"
        self.runner.environment.now = now
        if values:
            self.note(self.window.enter([self.runner.row(row) for row in values], now))

    def note(self, delta: Any) -> None:
        self.log.append(([row.id for row in delta.new], [row.id for row in delta.old]))

    def restart(self) -> None:
        packer = Packer()
        packer.node("window", self.window.snapshot())
        self.window = self.spec.build(self.runner)
        self.window.restore(Unpacker(packer.state({})).node("window"))


@pytest.mark.parametrize("name", [name for name in SPECS if name != "lossy frequent"])  # rows that did not come leave
@examples(15)
@given(steps=STEPS)
def test_what_came_and_has_not_left_is_the_content(name: str, steps: list[Any]) -> None:
    walk, inside = Walk(SPECS[name]), dict[int, None]()
    for step in steps:
        walk.log.clear()
        walk.step(*step)
        for new, old in walk.log:
            for id in new:
                assert id not in inside, "a row came twice"
                inside[id] = None
            for id in old:
                assert id in inside, "a row left that was not in"
                del inside[id]
        if name not in BATCHES and name not in ("delay", "frequent"):  # late rows, and rows another of its key replaced
            assert {row.id for row in walk.window.content()} == set(inside)


@pytest.mark.parametrize("name", SPECS)
@examples(15)
@given(steps=STEPS, data=st.data())
def test_a_window_restored_at_any_moment_goes_on_as_if_nothing_had_happened(name: str, steps: Any, data: Any) -> None:
    straight, broken = Walk(SPECS[name]), Walk(SPECS[name])
    at = data.draw(st.integers(0, max(0, len(steps) - 1)))
    for place, step in enumerate(steps):
        if place == at:
            broken.restart()
        straight.step(*step)
        broken.step(*step)
    assert straight.log == broken.log
