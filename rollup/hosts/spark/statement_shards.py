"""Statements whose keys fall apart run in Spark tasks, one a shard, where `statement_shards` of a configuration asks for it.

The driver divides the events of a batch and puts together what shards give; windows, matches and partitions are in the
shards' files, which the commit of the statements names.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import structlog

from rollup.conf import Conf
from rollup.engine.state import State
from rollup.hosts.spark.placement import Placing
from rollup.hosts.spark.tasks.statement_step import StepSpec, leave_events, step_of_shard, taken_in
from rollup.program import Declaration, Program
from rollup.statements.committed.commits import FILES
from rollup.statements.component import Taken
from rollup.statements.shards import Divided, Sharded
from rollup.stores.faults import point

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RESULT = "shard int, file string, given binary"
_FOLDER = "_statements"
"""In the exchange: the events of each shard."""


def in_shards(
    conf: Conf, program: Program, folder: Path, spark: Callable[[], SparkSession], next_: Callable[[], int]
) -> Program:
    """The program with those components in shards that can be divided; `next_` tells the number of the coming commit."""
    statements, shards = program.statements, conf.statement_shards
    if statements is None or shards is None:
        return program
    stops = conf.on_error == "stop"
    exchange, parts = Placing.of(conf).exchange / _FOLDER, list(statements.parts)
    shutil.rmtree(exchange, ignore_errors=True)
    exchange.mkdir(parents=True)
    for place, part in enumerate(parts):
        keys = part.component.described.keys
        if keys:
            run = _Job(conf.declaration(), part.name, place, folder, exchange, shards, spark, next_, stops)
            streams = {**program.streams, **part.component.writes}
            parts[place] = replace(part, component=Sharded.of(part.component, streams, shards, run))
        said = {"by": str(keys), "shards": shards} if keys else {"because": keys.reason}
        structlog.get_logger("rollup").info(
            "statements in shards" if keys else "statements in the driver", statements=part.name, **said
        )
    return replace(program, statements=replace(statements, parts=tuple(parts)))


@dataclass(frozen=True)
class _Job:
    """Runs the shards of a component in one Spark job a batch; its state are the names of their files."""

    app: Declaration
    name: str
    place: int
    folder: Path
    exchange: Path
    shards: int
    spark: Callable[[], SparkSession]
    next: Callable[[], int]
    stops: bool

    def __call__(self, state: State | None, batch: Divided) -> tuple[State, Sequence[Taken]]:
        events = leave_events(self.exchange, batch)
        files = () if state is None else tuple(state.scalars[FILES])
        spec = StepSpec(
            self.app, self.name, self.place, str(self.folder), self.shards, self.next(), events, files, self.stops
        )
        frame = self.spark().range(0, self.shards, 1, self.shards).mapInArrow(lambda rows: _tasks(spec, rows), _RESULT)
        found = sorted(frame.toArrow().to_pylist(), key=lambda row: row["shard"])
        Path(events).unlink(missing_ok=True)
        point("statements.shards")
        return State({}, {FILES: [row["file"] for row in found]}), [taken_in(row["given"]) for row in found]


def _tasks(spec: StepSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for shard in batch.column(0).to_pylist():
            number, file, given = step_of_shard(spec, shard)
            yield pa.record_batch(
                [pa.array([number], pa.int32()), pa.array([file]), pa.array([given], pa.binary())],
                names=["shard", "file", "given"],
            )
