"""A program of statements run in several ways over the same events, what the ways differ in, and the least that shows it.

Whether events come one by one or in batches, whether statements run on rows or over columns, and whether the engine is taken
out and restored in between must make no difference to what is told, down to the last bit and the order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from random import Random
from typing import Any

import pyarrow as pa

from rollup.core.errors import QueryError, RollupError
from rollup.live import Engine
from tests.live.comparing.grammar import STREAMS, contexts
from tests.rereading import reread

KINDS = {
    "symbol": pa.string(),
    "price": pa.float64(),
    "volume": pa.int32(),
    "big": pa.int64(),
    "flag": pa.bool_(),
    "ts": pa.int64(),
}


@dataclass(frozen=True)
class Step:
    """An event of a stream so long after the step before, or without one the clock alone. `cut`: a batch begins here;
    `restart`: before it the engine is taken out and restored.
    """

    gap: int
    stream: str = ""
    event: tuple[tuple[str, Any], ...] = ()
    cut: bool = False
    restart: bool = False


def steps(random: Random, count: int) -> list[Step]:
    """Random steps; instants are often the same, and values rarely different."""
    cuts, restarts, nulls = random.choice([0.05, 0.2, 0.6]), random.choice([0, 0.03]), random.choice([0, 0.1])
    gaps = random.choice([(0, 1, 2), (0, 0, 0, 1, 3, 10, 40), (5,), (0, 20, 300)])
    found = list[Step]()
    for _ in range(count):
        gap, cut, restart = random.choice(gaps), random.random() < cuts, random.random() < restarts
        if random.random() < 0.06:
            found.append(Step(gap, cut=cut, restart=restart))
            continue
        values = {
            "symbol": random.choice("aaabbc"),
            "price": random.choice([0.1, 0.2, 0.3, 45.0, 55.5, 60.0, 1e16, random.uniform(0, 100)]),
            "volume": random.choice([-1, 0, 1, 1, 2, 2, 3, 4]),
            "big": random.choice([0, 1, -7, 2**53 + 1, 2**62]),
            "flag": random.random() < 0.5,
        }
        event = tuple((name, None if random.random() < nulls else value) for name, value in values.items())
        found.append(Step(gap, random.choice("SSSSR"), event, cut, restart))
    return found


@dataclass(frozen=True)
class Way:
    """How a program is run: over columns from so many events on (None: never), one by one or not, restored or not."""

    name: str
    columns: int | None
    one_by_one: bool = False
    restarts: bool = True


WAYS = (
    Way("on rows, event by event", None, one_by_one=True, restarts=False),
    Way("on rows in batches", None),
    Way("over columns", 1),
    Way("over columns from four events on", 4, restarts=False),
)


def told(program: Sequence[str], course: Sequence[Step], way: Way) -> list[Any]:
    """All that is told of a course, with what the statements show where the clock goes alone; a refusal ends it."""
    engine, said = deployed(program, way.columns), list[Any]()
    for batch in _batches(course, way.one_by_one):
        if batch[0].restart and way.restarts:
            engine = Engine.restored(reread(engine.snapshot()), way.columns)
        problem = _taken(engine, batch, way.one_by_one)
        said += [(each.statement, each.at, _bits(each.new), _bits(each.old)) for each in engine.heard()]
        if problem is not None:
            return [*said, problem]
        if not batch[0].stream:
            said += [("shown", name, _shown(engine, name)) for name in _names(program)]
    return said


def _batches(course: Sequence[Step], one_by_one: bool) -> Iterator[list[Step]]:
    number = 0

    def batch(step: tuple[Step, str]) -> tuple[int, str]:
        nonlocal number
        number += one_by_one or step[0].cut or step[0].restart or not step[0].stream
        return number, step[0].stream

    return ([step for step, _ in steps] for _, steps in groupby(((each, each.stream) for each in course), batch))


def _taken(engine: Engine, batch: Sequence[Step], one_by_one: bool) -> str | None:
    """What is wrong with a batch, of which all before that has been taken."""
    now = engine.now
    times = [now := now + step.gap for step in batch]
    stream = batch[0].stream
    try:
        if not stream:
            engine.advance(times[0])
            return None
        rows = [{**dict(step.event), "ts": at} for step, at in zip(batch, times, strict=True)]
        if one_by_one:
            engine.advance(times[0])
            engine.send(stream, rows[0])
            return None
        schema = pa.schema(KINDS.items())
        engine.send(stream, pa.Table.from_pylist(rows, schema), at=times)
    except QueryError as problem:
        return str(problem)
    return None


def _names(program: Sequence[str]) -> list[str]:
    return [f"s{place}" for place in range(len(program))]


def deployed(program: Sequence[str], columns: int | None) -> Engine:
    """An engine with a program. Raises RollupError for one that cannot be deployed."""
    engine = Engine(columns=columns)
    engine.deploy(STREAMS + contexts(program))
    for name, text in zip(_names(program), program, strict=True):
        engine.deploy(text, name)
    return engine


def accepted(program: Sequence[str]) -> bool:
    """Whether a program can be deployed: the grammar knows less than the planner."""
    try:
        deployed(program, None)
    except RollupError:
        return False
    return True


def _shown(engine: Engine, name: str) -> Any:
    return sorted(map(_bits, engine.rows(name)), key=repr)


def _bits(value: Any) -> Any:
    """A value so that only the very same one is equal to it."""
    if isinstance(value, dict):
        return {name: _bits(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_bits(each) for each in value]
    if isinstance(value, float):
        return struct.pack("<d", value) if value == value else "nan"  # which has no sign
    return type(value).__name__, value


def difference(program: Sequence[str], course: Sequence[Step]) -> str | None:
    """The first way that tells something else than event by event on rows."""
    first, *others = WAYS if _covered(program) else WAYS[:2]
    expected = _outcome(program, course, first)
    return next((way.name for way in others if _outcome(program, course, way) != expected), None)


def _covered(program: Sequence[str]) -> bool:
    """Whether a statement of a program runs over columns."""
    return any(each.executor == "columns" for each in deployed(program, 1).plan())


def _outcome(program: Sequence[str], course: Sequence[Step], way: Way) -> list[Any]:
    try:
        return told(program, course, way)
    except Exception as problem:  # what breaks is not equal to what does not
        return [f"{type(problem).__name__}: {problem}"]


def least(program: Sequence[str], course: Sequence[Step], differs: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """As few steps as still differ: without pieces of them, then each as plain as it may be."""
    found, size = list(course), max(len(course) // 2, 1)
    while size:
        place = 0
        while place < len(found):
            fewer = found[:place] + found[place + size :]
            if fewer and differs(fewer):
                found = fewer
            else:
                place += size
        size //= 2
    for place, step in enumerate(found):
        for plainer in (replace(step, restart=False), replace(step, cut=False), replace(step, gap=0)):
            tried = [*found[:place], replace(found[place], **_changed(step, plainer)), *found[place + 1 :]]
            if tried != found and differs(tried):
                found = tried
    return found


def _changed(step: Step, plainer: Step) -> dict[str, Any]:
    return {
        name: getattr(plainer, name)
        for name in ("restart", "cut", "gap")
        if getattr(plainer, name) != getattr(step, name)
    }


def report(program: Sequence[str], course: Sequence[Step]) -> str:
    """What differs, in which way of running, and the least that shows it."""
    way = difference(program, course)
    few = least(program, course, lambda fewer: difference(program, fewer) == way)
    ways = [each for each in WAYS if each.name == way]
    expected, other = (_outcome(program, few, each) for each in (WAYS[0], *ways))
    first = next(
        (n for n, (a, b) in enumerate(zip(expected, other, strict=False)) if a != b), min(len(expected), len(other))
    )
    listed = "\n".join(f"  {each}" for each in few)
    apart = "\n".join(f"  {_read(each[first : first + 2])}" for each in (expected, other))
    return f"{'; '.join(program)}\ndiffers {way}\n{listed}\nfrom what is told at place {first} on:\n{apart}"


def _read(value: Any) -> Any:
    """What `_bits` made of values, legible."""
    if isinstance(value, bytes):
        return struct.unpack("<d", value)[0]
    if isinstance(value, dict):
        return {name: _read(each) for name, each in value.items()}
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        return value[1]
    return [_read(each) for each in value] if isinstance(value, list | tuple) else value
