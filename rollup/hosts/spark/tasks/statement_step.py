"""A step of statements in shards, inside Spark tasks: each shard loads its state, takes its events, writes its state.

What a task writes means nothing until a commit names it, as with shards of the cascade. A worker keeps what it is
running; it goes on with it if the state that it is asked to go on from is the one it wrote.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from rollup.checkpoint.records import RecordFolder
from rollup.core.errors import StoreError
from rollup.core.objects import at
from rollup.engine.state import State, packed, unpacked
from rollup.hosts.exchange import batches_file
from rollup.program import Declaration
from rollup.statements.careful import careful_step
from rollup.statements.committed.commits import Saved, rows_of, saved_in
from rollup.statements.component import Component, Event, Refused, Taken, together
from rollup.statements.parts import in_parts
from rollup.statements.shards import Divided, events_of_shard

_EVENTS = pa.schema([("events", pa.large_binary())])
_KEPT: dict[tuple[str, str, int], tuple[str, Component, State]] = {}
"""By folder, component and shard: what this process has written last, and what runs there."""


@dataclass(frozen=True)
class StepSpec:
    """A step of a component: its app and name, and its place in it; `number` is that of the commit to come.

    `events` is a file with those of each shard, `states` are the files of the last commit in `folder`, none at the start;
    `stops`: an event with which it cannot compute is an error.
    """

    app: Declaration
    name: str
    place: int
    folder: str
    shards: int
    number: int
    events: str
    states: Sequence[str]
    stops: bool = False


def leave_events(folder: Path, batch: Divided) -> str:
    """Write a batch into a file of the folder: a record batch a shard, and one of what is told to all."""
    file = folder / f"{uuid.uuid4().hex}.arrow"
    with batches_file(file, _EVENTS) as writer:
        for blob in (*map(_packed, batch.own), _packed(batch.told)):
            writer.write_batch(pa.record_batch([pa.array([blob], pa.large_binary())], schema=_EVENTS))
    return str(file)


def step_of_shard(spec: StepSpec, shard: int) -> tuple[int, str, bytes]:
    """One shard of a step: its number, the file of its state, and what it gave, for `taken_in`. Raises StoreError."""
    file = spec.states[shard] if spec.states else ""
    component, state = _going_on(spec, shard, file)
    events = _events(spec.events, shard)

    def step(part: Sequence[Event]) -> Taken:
        nonlocal state
        state, taken = careful_step(component, state, part, spec.stops)
        return taken

    taken = together([found for _, found, _ in in_parts(events, step)])
    assert state is not None, "every shard is told of every batch"
    name = f"open-shard-{spec.place}-{shard}of{spec.shards}-{uuid.uuid4().hex[:8]}-{spec.number:012d}.arrow"
    name = RecordFolder(at(spec.folder)).write_rows(name, rows_of(Saved(states={spec.name: state})))
    _KEPT[spec.folder, spec.name, shard] = name, component, state
    return shard, name, _blob(taken)


def taken_in(blob: bytes) -> Taken:
    """What a shard gave."""
    given, refused, beyond = unpacked(blob)
    return Taken([_event(each) for each in given], [Refused(_event(each), reason) for each, reason in refused], beyond)


def _going_on(spec: StepSpec, shard: int, file: str) -> tuple[Component, State | None]:
    kept = _KEPT.pop((spec.folder, spec.name, shard), None)  # a step that fails leaves nothing behind
    if file and kept is not None and kept[0] == file:
        return kept[1], kept[2]
    component = copy(_component(spec.app, spec.name))
    return component, _state(spec, file) if file else None


def _state(spec: StepSpec, file: str) -> State:
    rows = RecordFolder(at(spec.folder)).read_rows(file)
    try:
        return saved_in(rows).states[spec.name]
    except (pa.ArrowException, ValueError, KeyError) as problem:
        raise StoreError(f"the state of statements in {spec.folder}/{file} cannot be read: {problem}") from None


@lru_cache(maxsize=16)
def _component(app: Declaration, name: str) -> Component:
    statements = app.program().statements
    assert statements is not None
    return next(part.component for part in statements.parts if part.name == name)


def _events(file: str, shard: int) -> list[Event]:
    with pa.OSFile(file) as source:
        batches = pa.ipc.open_file(source)
        own, told = (batches.get_batch(n).column(0)[0].as_py() for n in (shard, batches.num_record_batches - 1))
    return events_of_shard([_event(each) for each in unpacked(own)], [_event(each) for each in unpacked(told)])


def _event(each: Sequence[object]) -> Event:
    key, at, stream, values = each
    return Event(tuple(key), at, stream, tuple(values))  # type: ignore[arg-type]


def _packed(events: Sequence[Event]) -> bytes:
    return packed(list(map(_plain, events)))


def _blob(taken: Taken) -> bytes:
    refused = [[_plain(each.event), each.reason] for each in taken.refused]
    return packed([list(map(_plain, taken.events)), refused, taken.beyond])


def _plain(event: Event) -> list[object]:
    return [list(event.key), event.at, event.stream, list(event.values)]
