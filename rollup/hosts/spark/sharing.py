"""A batch as the driver has it, and the one Spark job in which tasks make results of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from rollup.core.packing import pack, unpack
from rollup.hosts.spark.tasks.results import RESULT, RESULT_SCHEMA, Result, read
from rollup.hosts.spark.tasks.task import TaskSpec, results, run

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame


class Given(Protocol):
    """A batch that tasks can be given."""

    def results(self, spec: TaskSpec) -> list[Result]:
        """The results of all tasks, in no order."""
        ...


@dataclass(frozen=True)
class Rows:
    """A batch whose rows Spark has: they reach the tasks through the JVM."""

    frame: DataFrame

    def results(self, spec: TaskSpec) -> list[Result]:
        """See `Given.results`."""
        return read(self.frame.mapInArrow(lambda batches: run(spec, batches), RESULT).toArrow().cast(RESULT_SCHEMA))


@dataclass(frozen=True)
class Places:
    """A batch of which the driver knows where its events are, such as files: some rows, dealt to tasks in equal slices.

    The job has no columns for Spark, so nothing of it is analysed, optimised or compiled: that took the JVM longer than
    the tasks of a small batch, and in a new process a second.
    """

    context: SparkContext
    table: pa.Table

    def results(self, spec: TaskSpec) -> list[Result]:
        """See `Given.results`."""
        shares = [pack(own) for own in slices(self.table, self.context.defaultParallelism)]
        if not shares:
            return []
        return self.context.parallelize(shares, len(shares)).mapPartitions(lambda own: _results(spec, own)).collect()


def slices(table: pa.Table, tasks: int) -> list[pa.Table]:
    """A table in so many slices, of sizes that differ by one row at most; fewer where it has fewer rows.

    >>> [own["n"].to_pylist() for own in slices(pa.table({"n": [1, 2, 3, 4, 5]}), 2)]
    [[1, 2], [3, 4, 5]]
    """
    rows = table.num_rows
    tasks = min(tasks, rows)
    cuts = [task * rows // tasks for task in range(tasks + 1)] if tasks else []
    return [table.slice(begin, end - begin) for begin, end in pairwise(cuts)]


def batch_of(frame: DataFrame, planned: DataFrame | pa.Table) -> Given:
    """A batch of a stream as its source has planned it."""
    return Places(frame.sparkSession.sparkContext, planned) if isinstance(planned, pa.Table) else Rows(planned)


def _results(spec: TaskSpec, shares: Iterable[bytes]) -> Iterator[Result]:
    for share in shares:
        yield from results(spec, unpack(share))
