"""A block of EPL over batches: large ones go over columns as a whole, and give what its events give one by one.

Events of a stream that is not read stand between, some come late, some are refused, and the state is read back between.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest

from rollup.engine.state import State
from rollup.lang.sections import Section
from rollup.plan.app import StreamDef
from rollup.plan.types import Type
from rollup.statements.component import Event
from rollup.statements.epl import Epl, EplBlock

TEXT = """
@name('big') select k, v * 2 as w from S(v > 90);
@name('sums') select k, sum(v) as s, count(*) as n from S#length(50) group by k having count(*) > 4;
@name('pairs') select a.v as x, b.v as y from S(v < 5)#time(30) as a, S(v > 95)#time(30) as b where a.k = b.k;
@name('rising') select a.k as k from pattern [every a=S(v > 80) -> b=S(k = a.k, v < 20) where timer:within(10)];
@name('last') select sum(v) as s from S#time(5) output last every 2 sec;
create table Seen(k string primary key, n int);
create unique index OfN on Seen(n);
on S(v > 99) as s merge Seen as t where t.k = s.k when not matched then insert select s.k as k, s.n as n;
insert into Big select k, v from S(v > 99);
"""
STREAMS = {
    "S": StreamDef("S", {"k": Type.STRING, "v": Type.DOUBLE, "n": Type.INT}),
    "Other": StreamDef("Other", {"k": Type.STRING}),
}


def _block() -> EplBlock:
    section = Section("epl", TEXT)
    return Epl().compile(section, STREAMS, Epl().names(section))


def _events(n: int) -> list[Event]:
    random_, at, found = random.Random(11), 1_000_000, list[Event]()
    for number in range(n):
        at += random_.choice([0, 0, 1, 3, 7]) * 100
        if number % 401 == 400:
            found.append(Event((number, 0), at, "Other", ("x",)))
        else:
            values = (random_.choice(["a", "b", "c", None]), random_.randint(0, 1000) / 10, random_.randint(0, 2))
            found.append(Event((number, 0), at - random_.choice([0, 0, 0, 500]), "S", values))
    return found


@cache
def _one_by_one() -> tuple[list[Event], list[Any]]:
    return _given([1], False)


def _given(sizes: list[int], restart: bool) -> tuple[list[Event], list[Any]]:
    block, state, events = _block(), None, _events(900)
    given, refused, begin = list[Event](), list[Any](), 0
    while begin < len(events):
        size = sizes[begin % len(sizes)]
        state, taken = block.step(state, events[begin : begin + size])
        begin += size
        given += taken.events
        refused += taken.refused
        if restart and state is not None:
            block, state = _block(), State(dict(state.tables), dict(state.scalars))
    return given, refused


@pytest.mark.parametrize("sizes", [[900], [300, 1, 700, 13]], ids=["one", "some"])
def test_a_block_gives_the_same_however_its_events_are_cut(sizes: list[int]) -> None:
    one_by_one, refused = _one_by_one()
    assert {event.stream for event in one_by_one} == {"big", "sums", "pairs", "rising", "last", "Big"}
    assert refused
    assert _given(sizes, len(sizes) > 1) == (one_by_one, refused)


def test_plan_says_of_each_statement_where_it_runs() -> None:
    described = _block().described
    assert described.executor == "columns and rows"
    assert described.remarks[0] == "statement big: over columns"
    assert described.remarks[4] == "statement last: over columns"
    assert any("on rows (the statement Merge)" in each for each in described.remarks)
