"""The one Spark job of a batch, and what its tasks give, put in order and numbered over the batch."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rollup.checkpoint.inputs import Input, together
from rollup.hosts.spark.numbering import Numbering
from rollup.hosts.spark.patience import patiently
from rollup.hosts.spark.placement import shift
from rollup.hosts.spark.sharing import Given
from rollup.hosts.spark.tasks.kept import Kept
from rollup.hosts.spark.tasks.results import KeptFiles, Kind, Result
from rollup.hosts.spark.tasks.shard_step import Split, shifted
from rollup.hosts.spark.tasks.task import TaskSpec, by_offset
from rollup.hosts.spark.watching.watchdog import Watchdog
from rollup.program import Program
from rollup.sources.base import DEAD

Asked = Callable[[], list[Result]]
"""Waits for the results of tasks that have been begun."""


@dataclass(frozen=True)
class Collected:
    """What the tasks of a batch gave, in order of arrival; `rows` are those that statements read."""

    spec: TaskSpec
    numbering: Numbering
    partials: Mapping[str, list[pa.Table | Split]]
    dead: pa.Table
    forwarded: Mapping[str, pa.Table]
    rows: Mapping[str, list[pa.Table]]
    held: Input
    looked: list[pa.Table]
    offsets: Mapping[str, set[bool]]
    """By stream, what its times as texts have, see `rollup.aggregation.offsets`."""
    kept: KeptFiles | None = None
    lost: int = 0
    """How many of the numbered records are no events."""

    def bounds(self, name: str, known: int) -> tuple[int, int]:
        """As `Numbering.bounds`, of the partial rows of an aggregation."""
        return self.numbering.bounds(self._summaries(name), known)

    def too_wide(self, name: str, known: int) -> bool:
        """As `Numbering.too_wide`, of the partial rows of an aggregation."""
        return self.numbering.too_wide(self._summaries(name), known)

    def _summaries(self, name: str) -> list[pa.Table]:
        return [part.summary if isinstance(part, Split) else part for part in self.partials.get(name, [])]


class Tasks:
    """The tasks of a job's batches; `known` tells for an aggregation the arrival that comes next of a stream."""

    def __init__(
        self,
        program: Program,
        kept: Kept,
        watchdog: Watchdog,
        stop: threading.Event,
        known: Callable[[str, str], int],
    ) -> None:
        self._program, self._kept = program, kept
        self._watchdog, self._stop, self._known = watchdog, stop, known

    def results(self, batch: Given, spec: TaskSpec) -> list[Result]:
        """Run them over a batch. Raises SourceError when that fails time and again."""

        def ask() -> list[Result]:
            with self._watchdog.asking(f"stream {spec.stream}: a batch"):
                return batch.results(spec)

        return patiently(ask, self._stop, spec.stream)

    def collect(self, batch: Given, spec: TaskSpec, asked: Asked | None = None) -> Collected:
        """What they give, perhaps `asked` for already; once more where arrivals are too far apart to be numbered by time."""
        found = self._collected(spec, self.results(batch, spec) if asked is None else asked())
        if any(found.too_wide(name, self._known(name, spec.stream)) for name in found.partials):
            spec = by_offset(spec)
            return self._collected(spec, self.results(batch, spec))
        return found

    def _collected(self, spec: TaskSpec, results: list[Result]) -> Collected:
        numbering = Numbering.of(results, self._program.scale(spec.stream))
        bases, order = numbering.bases, numbering.order
        results.sort(key=lambda result: order.get(result.origin, -1))
        partials, forwarded, rows = (
            dict[str, list[pa.Table | Split]](),
            dict[str, list[pa.Table]](),
            dict[str, list[pa.Table]](),
        )
        for result in results:
            match result.kind:
                case Kind.PARTIALS:
                    part = shift(result.partials(), bases[result.origin])
                    partials.setdefault(result.name, []).append(part)
                case Kind.ROWS | Kind.EVENTS:
                    found = rows if result.kind is Kind.ROWS else forwarded
                    found.setdefault(result.name, []).append(shifted(result.table(), bases[result.origin]))
                case _:
                    pass
        return Collected(
            spec,
            numbering,
            partials,
            pa.concat_tables([DEAD.empty_table(), *(each.cast(DEAD) for each in _tables(results, Kind.DEAD))]),
            {name: pa.concat_tables(tables) for name, tables in forwarded.items()},
            rows,
            together(_inputs(results)),
            _tables(results, Kind.LOOKED),
            _offsets(results),
            self._kept.files(results),
            sum(table["records"][0].as_py() for table in _tables(results, Kind.LOST)),
        )


def _tables(results: Sequence[Result], kind: Kind) -> list[pa.Table]:
    return [result.table() for result in results if result.kind is kind]


def _offsets(results: Sequence[Result]) -> Mapping[str, set[bool]]:
    found = defaultdict[str, set[bool]](set)
    for result in results:
        if result.kind is Kind.OFFSETS:
            found[result.name].update(result.table()["offset"].to_pylist())
    return found


def _inputs(results: Sequence[Result]) -> list[Any]:
    return [json.loads(result.payload or b"") for result in results if result.kind is Kind.INPUT]
