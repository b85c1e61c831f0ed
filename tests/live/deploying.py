"""Engines over columns and on rows with some of the statements, and what they say of events."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from rollup.live import Engine, Heard
from tests.live.statements import COVERED, SCHEMA
from tests.rereading import reread

UNCOVERED = {
    "seldom": "context C select symbol, count(*) as c from S#expr(median(price) < 60) output last every 15 msec",
    "seldom at once": "context C select symbol, count(*) as c from S#expr(median(price) < 60)",
    "seldom of lives": "context D select symbol, count(*) as c from S#expr(median(price) < 60)",
    "T at last": "select window(v).union(window(v)) as v from T#length(2)",
    "T into V": "insert into V select symbol, window(p) as m from T#length(3)",
    "last": "select rate(20 msec, filter: price > 0) as m, last(symbol) as v from S#length(2)",
    "rows at the ends": "select irstream max(symbol) as m, maxby(price).volume as v, first(*) as f from S#length(3)",
    "counted ever": "select irstream symbol, countever(*) as n from S#length(2) group by symbol",
    "removed": "select irstream symbol from S#length(1) where volume > -100 or current_timestamp < 0",
}

row = st.fixed_dictionaries(
    {
        "symbol": st.sampled_from(["a", "b", "c", None]),
        "price": st.one_of(st.none(), st.sampled_from([0.1, 0.2, 0.3, 1e16, 45.0, 55.5]), st.floats(0, 100)),
        "volume": st.one_of(st.none(), st.integers(-1, 5)),
    }
)

gaps = st.sampled_from([0, 0, 1, 3, 10, 40])

sends = st.tuples(
    st.sampled_from(["dicts", "table", "timed"]),
    st.sampled_from(["S", "S", "R"]),
    st.lists(st.tuples(gaps, row), max_size=8),
)

clocks = st.tuples(st.sampled_from(["advance", "jump"]), st.just(""), st.sampled_from([1, 5, 20, 100]))

others = st.sampled_from([("restart", "", None), ("rows", "", None)])

steps = st.lists(st.one_of(sends, sends, clocks, others, others), max_size=9)


def deployed(names: list[str], columns: int | None) -> Engine:
    engine = Engine(columns=columns)
    engine.deploy(SCHEMA)
    for name in names:
        engine.deploy({**COVERED, **UNCOVERED}[name], name)
    return engine


def run(engine: Engine, found: list[tuple[str, Any]], columns: int | None) -> list[Any]:
    said: list[Any] = []
    for what, stream, value in found:
        match what:
            case "deploy":
                engine.deploy(COVERED[value], value)
            case "dicts":
                engine.send(stream, [event for _, event in value])
            case "table" | "timed":
                table = pa.Table.from_pylist([event for _, event in value], TYPES)
                at = engine.now
                times = [at := at + gap for gap, _ in value]
                engine.send(stream, table, at=times if what == "timed" else None)
            case "advance":
                engine.advance(engine.now + value)
            case "jump":
                engine.jump(engine.now + value)
                said += sorted(engine.heard(), key=lambda each: each.statement)  # which one tells first is not said
            case "restart":
                said += engine.heard()
                if columns is not None:
                    engine = Engine.restored(reread(engine.snapshot()), columns)
            case _:
                for each in engine.plan():
                    found_rows = sorted(map(bits, engine.rows(each.statement)), key=repr)
                    said.append((each.statement, engine.now, found_rows))
        said += engine.heard()
    return [exact(each) for each in said]


TYPES = pa.schema([("symbol", pa.string()), ("price", pa.float64()), ("volume", pa.int32())])


def exact(each: Any) -> Any:
    return (each.statement, each.at, bits(each.new), bits(each.old)) if isinstance(each, Heard) else each


def bits(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: bits(each) for name, each in value.items()}
    if isinstance(value, list):
        return [bits(each) for each in value]
    return struct.pack("<d", value) if isinstance(value, float) else value


def some_events(n: int) -> pa.Table:
    return pa.table({"symbol": ["a", "b"] * n, "price": [60.0, 1.0] * n, "volume": pa.array([1, 2] * n, pa.int32())})


def send(engine: Engine, events: list[tuple[str, float, int]]) -> None:
    engine.send("S", [dict(zip(("symbol", "price", "volume"), each, strict=True)) for each in events])
