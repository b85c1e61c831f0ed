"""`rollup.Engine` beside Esper: `python -m benchmarks.engine [shape …]`.

Events are a symbol, a price and a volume, as the statements of `SHAPES` want them, one a millisecond. They reach
`Engine.send` as Arrow tables with plain texts, so encoding them is inside our time, and a listener takes the deliveries
as tables, so making the output is too.

* columns, rows: events a second through batches of 10,000, wall clock, after a warm-up: as the engine runs the
  statements by itself (`executor` says where), and with `Engine(columns=None)`, which stays on rows.
* a batch of 1, 100, 10,000 events: microseconds.
* first: milliseconds of the first batch (of each stream) in a new process, loops loaded from their cache or compiled
  into an empty one.
* Esper, where `ESPER_CLASSPATH` names its jars: one thread of `benchmarks/peers/EsperPeer.java`, in the same run, after
  at least 4 seconds in which Java compiles, and how many times its events a second ours are.

`--rows` measures rows alone beside Esper; `--index 1 100 10000` shows what an event costs beside so many statements
that it does not concern, `--memory` what 10,000 partitions, statements and partial matches hold.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.shapes import SCHEMA, SHAPES, Shape
from rollup.live import Arrived, Engine

BATCH = 10_000
SECONDS = float(os.environ.get("BENCH_SECONDS", "2"))
PEER = Path(__file__).parent / "peers" / "EsperPeer.java"


def deployed(shape: Shape, columns: int | None) -> tuple[Engine, list[int]]:
    """An engine with the statements, and the number of rows that its listener has had."""
    engine, had = Engine(columns=columns), [0]
    engine.deploy(SCHEMA)
    for number, statement in enumerate(shape.statements):
        engine.deploy(statement, f"s{number}")

    def count(arrived: Arrived) -> None:
        had[0] += arrived.rows.num_rows

    engine.listen_arrow(count)
    return engine, had


def events(keys: int, size: int, pool: int = 1 << 17) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Tables of events and their instants, without end: one event a millisecond."""
    random = np.random.default_rng(7)
    names = pa.array([f"K{i}" for i in range(keys)])
    symbols = names.take(pa.array(random.integers(0, keys, pool)))
    prices = pa.array(random.integers(0, 10_000, pool) / 100)
    volumes = pa.array(random.integers(0, 100, pool), pa.int32())
    table = pa.table({"symbol": symbols, "price": prices, "volume": volumes})
    at, place = 1, 0
    while True:
        if place + size > pool:
            place = 0
        yield table.slice(place, size), np.arange(at, at + size)
        at, place = at + size, place + size


def rate(shape: Shape, columns: int | None, size: int, seconds: float) -> float:
    """Events a second by the wall's clock, after a warm-up of a third of the time."""
    engine, _ = deployed(shape, columns)
    wall, n, begun = 0.0, 0, time.perf_counter()
    if columns is not None:
        table, at = next(events(shape.keys, 300))
        for stream in shape.streams:
            engine.send(stream, table, at=np.zeros_like(at))  # goes over to columns
    for stream, (table, at) in zip(cycle(shape.streams), events(shape.keys, size), strict=False):
        before = time.perf_counter()
        engine.send(stream, table, at=at)
        after = time.perf_counter()
        if after - begun > seconds / 3:
            wall, n = wall + after - before, n + size
        if after - begun > seconds * 4 / 3 and n > 0:
            return n / wall
    raise AssertionError


def first(name: str) -> float:
    """Milliseconds of the first batch in this process."""
    engine, _ = deployed(SHAPES[name], 1)
    table, at = next(events(SHAPES[name].keys, BATCH))
    before = time.perf_counter()
    for stream in SHAPES[name].streams:
        engine.send(stream, table, at=at)
    return (time.perf_counter() - before) * 1000


def first_elsewhere(name: str, cache: str | None) -> float:
    """The same in a new process, with the cache in that folder."""
    environment = {**os.environ, **({"ROLLUP_CACHE": cache} if cache else {})}
    command = [sys.executable, "-m", "benchmarks.engine", "--first", name]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


class Peer(NamedTuple):
    """Events a second of Esper: by the wall's clock, and a second of its thread's processor time."""

    wall: float
    processor: float


def esper(shape: Shape, classpath: str) -> Peer:
    """Events a second of Esper."""
    text = shape.text.replace("'K{i}'", "?:key:string")
    command = ["java", "-XX:+UseSerialGC", "-Xms1g", "-Xmx4g", "-cp", classpath, str(PEER), text]
    command += [str(shape.copies), str(shape.keys), str(max(4.0, SECONDS)), str(SECONDS), *shape.streams]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall, processor, _ = (float(part.split()[0]) for part in done.stdout.split(", "))
    return Peer(wall, processor)


def main(names: list[str]) -> None:
    """Measure some shapes, or all of them."""
    classpath = os.environ.get("ESPER_CLASSPATH")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(
        f"{'shape':17} {'executor':8} {'engine/s':>12} {'rows/s':>9} {'µs of 1':>8} {'100':>7} {'10,000':>8}", end=" "
    )
    print(f"{'first ms':>8} {'uncached':>8} {'Esper/s':>10} {'engine':>8} {'rows':>6} {'load':>5}")
    for name in names or list(SHAPES):
        shape = SHAPES[name]
        executors = [each.executor for each in deployed(shape, 1)[0].plan()]
        executor = "rows" if "rows" in executors else executors[0]
        over = None if executor == "rows" else 1
        hot = rate(shape, over, BATCH, SECONDS)
        sizes = [1e6 * size / rate(shape, over, size, SECONDS / 2) for size in (1, 100, BATCH)]
        rows = rate(shape, None, 1000, SECONDS) if over is not None else hot
        with tempfile.TemporaryDirectory() as empty:
            compiled = first_elsewhere(name, empty)
        loaded = first_elsewhere(name, None)
        line = f"{name:17} {executor:8} {hot:12,.0f} {rows:9,.0f} {sizes[0]:8.0f} {sizes[1]:7.0f} {sizes[2]:8.0f}"
        line += f" {loaded:8.0f} {compiled:8.0f}"
        if classpath is not None:
            theirs = esper(shape, classpath).wall
            line += f" {theirs:10,.0f} {hot / theirs:7.2f}x {rows / theirs:5.3f}x {os.getloadavg()[0]:5.1f}"
        print(line, flush=True)


def on_rows(names: list[str], classpath: str) -> None:
    """Events a second of some shapes, or of all, on rows and in Esper."""
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'shape':17} {'rows/s':>9} {'Esper/s':>10} {'rows':>7} {'load':>5}")
    for name in names or list(SHAPES):
        own, theirs = rate(SHAPES[name], None, BATCH, SECONDS), esper(SHAPES[name], classpath).wall
        print(f"{name:17} {own:9,.0f} {theirs:10,.0f} {own / theirs:6.3f}x {os.getloadavg()[0]:5.1f}", flush=True)


FILTERS = {
    "equal": "symbol = 'X{n}'",
    "range": "price > 1000 + {n}",
    "between": "price >= 1000 + {n} and price < 1001 + {n}",
    "or": "symbol = 'X{n}' or price > 1000 + {n}",
}


def index(counts: Sequence[int]) -> None:
    """Microseconds of an event beside statements that it does not concern; an engine gets more and more of them."""
    print(f"{'filters':8} {'statements':>10} {'µs an event':>12} {'deploy ms each':>15}")
    table, _ = next(events(100, 1000))
    for name, text in FILTERS.items():
        engine, there = Engine(columns=None), 0
        engine.deploy(SCHEMA)
        for many in sorted(counts):
            before = time.perf_counter()
            for begin in range(there, many, 1000):
                part = range(begin, min(begin + 1000, many))
                engine.deploy("; ".join(f"select * from S({text.format(n=n)})" for n in part), f"m{begin}")
            each = (time.perf_counter() - before) * 1000 / max(many - there, 1)
            there = max(there, many)
            engine.send("S", table)
            before = time.perf_counter()
            for _ in range(5):
                engine.send("S", table)
            print(f"{name:8} {many:10,} {(time.perf_counter() - before) * 200:12.1f} {each:15.2f}", flush=True)


HELD = {
    "partitions": SHAPES["context"],
    "statements": SHAPES["statements-10000"],
    "matches": Shape(
        "select * from pattern [every a=S(price>=0) -> b=S(symbol=a.symbol, price<0) where timer:within(1 hour)]", 100
    ),
}


def memory() -> None:
    """MiB that 10,000 of something hold, on rows and over columns: by how much a process of its own grows."""
    print(f"{'10,000 …':16} {'rows':>8} {'columns':>8}  MiB")
    for name in HELD:
        command = [sys.executable, "-m", "benchmarks.engine", "--held", name]
        found = [
            float(subprocess.run([*command, *more], capture_output=True, text=True, check=True).stdout)
            for more in ((), ("--columns",))
        ]
        print(f"{name:16} {found[0]:8.1f} {found[1]:8.1f}", flush=True)


def held(name: str, columns: int | None) -> float:
    """MiB by which this process grows. What is loaded once has been before; tracing would take minutes to deploy."""
    shape = HELD[name]
    warm, _ = deployed(Shape(shape.text, 10), columns)
    warm.send("S", next(events(10, 300))[0])
    gc.collect()
    before = _resident()
    engine, _ = deployed(shape, columns)
    names = pa.array([f"K{i}" for i in range(shape.keys)])
    codes = pa.array(np.arange(BATCH) % shape.keys)
    volumes = pa.array([1] * BATCH, pa.int32())
    engine.send("S", pa.table({"symbol": names.take(codes), "price": [1.0] * BATCH, "volume": volumes}))
    gc.collect()
    grown = _resident() - before
    del engine, warm
    return grown


def _resident() -> float:
    """MiB of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=f"all, or some of {', '.join(SHAPES)}")
    parser.add_argument("--index", type=int, nargs="+", metavar="STATEMENTS", help="what an event costs beside so many")
    parser.add_argument("--rows", action="store_true", help="on rows alone, beside Esper (ESPER_CLASSPATH)")
    parser.add_argument("--memory", action="store_true", help="what 10,000 contexts, statements, matches hold")
    parser.add_argument("--held", choices=HELD, help="MiB that 10,000 of these hold in this process")
    parser.add_argument("--columns", action="store_true", help="with --held: over columns")
    parser.add_argument("--first", metavar="SHAPE", help="milliseconds of the first batch of this process")
    given = parser.parse_args()
    unknown = [name for name in (*given.shapes, *([given.first] if given.first else [])) if name not in SHAPES]
    if unknown:
        parser.error(f"unknown shape {unknown[0]!r}: one of {', '.join(SHAPES)}")
    return given


if __name__ == "__main__":
    wanted = _arguments()
    if wanted.first:
        print(first(wanted.first))
    elif wanted.held:
        print(held(wanted.held, 1 if wanted.columns else None))
    elif wanted.rows:
        on_rows(wanted.shapes, os.environ["ESPER_CLASSPATH"])
    elif wanted.index:
        index(wanted.index)
    elif wanted.memory:
        memory()
    else:
        main(wanted.shapes)
