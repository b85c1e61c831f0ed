"""What a statement delivers by its core, and what it delivers by the row executor, for random events."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.finishing import Finishing
from rollup.engine.columns.planning import core_of
from rollup.engine.row import Row
from rollup.engine.rows.component import Component
from rollup.engine.types import RowType
from rollup.lang.epl.deployer import Deployer
from tests.rereading import reread

SCHEMA = "create schema S(symbol string, price double, volume int, flag boolean, id long)"

KINDS = [pa.string(), pa.float64(), pa.int32(), pa.bool_(), pa.int64()]

CONTEXT = """
create context C partition by symbol from S;
create context K partition by symbol, volume from S(price > 0);
create context G group by price < 30 as low, group by price >= 20 and price < 70 as middle, group by volume > 1 as high from S;
create context H coalesce by consistent_hash_crc32(symbol) from S granularity 2;
create context P coalesce by hash_code(volume) from S(id > 0) granularity 3 preallocate;
create context N context A partition by symbol from S(id > 0), context B group by price < 50 as low, group by volume > 1 as much
from S(price > 2);
create context M context A partition by symbol from S, context B partition by volume, flag from S(price > 2);
create context L context A coalesce by hash_code(volume) from S granularity 2, context B partition by symbol from S(id > 0),
context D coalesce by hash_code(id) from S(price > 2) granularity 3 preallocate;
create context O context A group by price < 50 as low, group by volume > 1 as much from S, context B coalesce by hash_code(id)
from S granularity 2 preallocate, context D group by flag as yes, group by not flag as no from S(price > 2);
create context Q context A group by price < 50 as low, group by price >= 50 as high from S, context B partition by symbol from S;
create context R context A partition by symbol from S, context B start @now end after 1 sec;
create context Y start @now end after 25 msec;
create context V start @now end S(volume = 1);
create context E start S(price > 40) end after 30 msec;
create context B start S(flag) as s end S(symbol = s.symbol, volume > 1);
create context I initiated by S(price > 50) as s terminated after 40 msec;
create context D initiated by distinct(symbol) S(volume >= 0) as s terminated after 30 msec;
create context T initiated by S(price > 20) as s terminated by S(symbol = s.symbol, volume < 2);
create context U initiated by distinct(symbol, id) S as s terminated by S(symbol = s.symbol, id = s.id, flag);
create context W initiated by S(volume > 3) as s;
create context X initiated by S(volume > 3) as s terminated after s.volume sec;
create context Z start S(price > 40) end after 9223372036854775 sec
"""

Event = tuple[int, tuple[Any, ...]]

prices = st.one_of(st.none(), st.sampled_from([0.1, 0.2, 0.3, 1e16, -0.0, 0.0, 45.0, 55.5]), st.floats(0, 100))

values = st.tuples(
    st.sampled_from(["a", "b", "c", None, "ü"]),
    prices,
    st.one_of(st.none(), st.integers(-1, 5), st.just(2**31 - 1)),
    st.one_of(st.none(), st.booleans()),
    st.one_of(st.none(), st.integers(0, 3)),
)

gaps = st.sampled_from([0, 0, 1, 1, 3, 10, 30, 120])

steps = st.lists(st.tuples(gaps, values), max_size=40)

cuts = st.lists(st.integers(0, 40), max_size=6)


@cache
def lowered(text: str) -> tuple[Any, Any, RowType]:
    """The plan of a statement, the context it may use, and its stream's type."""
    seen: list[Any] = []
    component = Component()
    deployer = Deployer(component)
    deployer.deploy(SCHEMA)
    deployer.deploy(CONTEXT)
    deploy = component.deploy

    def kept(name: str, plan: Any, context: str | None = None, start: bool = True) -> None:
        seen.append(plan)
        deploy(name, plan, context, start)

    component.deploy = kept  # type: ignore[method-assign]
    deployer.deploy(text, "statement")
    context = component.contexts[text.split()[1]].context if text.startswith("context") else None
    return seen[0], context, deployer.catalog.types["S"]


def core(text: str) -> Core:
    """The core that covers a statement."""
    plan, context, stream = lowered(text)
    found = core_of(plan, {"S": stream}, context)
    assert not isinstance(found, str), f"{text}: {found}"
    return found


def by_rows(text: str, events: list[Event], end: int) -> list[Any]:
    """What the row executor delivers."""
    plan, context, _ = lowered(text)
    component = Component()
    if context is not None:
        component.create_context(context)
    component.deploy("statement", plan, None if context is None else context.name)
    for at, row in events:
        component.runner.advance_span(at)
        component.runner.send("S", row)
    component.runner.advance_span(end)
    return [
        (each.at, sign, tuple(bits(value) for value in row.values))
        for each in component.runner.deliveries
        for sign, rows in ((1, each.delta.new), (-1, each.delta.old))
        for row in rows
    ]


def by_columns(text: str, events: list[Event], end: int, batches: list[int], keep: bool) -> list[Any]:
    """What the core delivers; the batches end at these places, and a snapshot goes through a file between them."""
    found = core(text)
    finishing = Finishing.of(lowered(text)[0].finish)
    state, out = found.start(0), []
    for begin, stop in spans(batches, len(events)):
        part = events[begin:stop]
        last = stop == len(events)
        columns = [pa.array([row[i] for _, row in part], kind) for i, kind in enumerate(KINDS)]
        batch = Batch.of(columns, [at for at, _ in part], end if last else None, "S")
        if keep:
            state, found = reread(state), core(text)
        state, output = found.step(state, batch)
        output = (output if finishing is None else finishing.finished(output)).delivered
        out += [
            (at, sign, tuple(map(bits, row)))
            for at, _, new, old in output.deliveries()
            for sign, rows in ((1, new), (-1, old))
            for row in rows
        ]
    return out


def spans(batches: list[int], n: int) -> Iterator[tuple[int, int]]:
    places = sorted({0, *(min(place, n) for place in batches), n})
    yield from pairwise(places) if n else [(0, 0)]


def bits(value: Any) -> Any:
    """A value that equals only itself, to the last bit of a double."""
    if isinstance(value, Row):
        return tuple(bits(each) for each in value.values)
    if isinstance(value, dict):
        return tuple(bits(each) for each in value.values())
    if isinstance(value, list):
        return tuple(map(bits, value))
    return struct.pack("<d", value) if isinstance(value, float) else value


def timed(found: list[tuple[int, tuple[Any, ...]]]) -> list[Event]:
    """Events at their instants."""
    at, out = 0, list[Event]()
    for gap, row in found:
        at += gap
        out.append((at, row))
    return out
