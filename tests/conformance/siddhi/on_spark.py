"""The cases on the real Spark host, in Spark's one session: a job a case, its streams as JSON files, its tables on Delta.

A step's events are one file, so one micro-batch. What a step reads (answers, tables, open rows) is opened anew, as
another process sees it, and streams that leave are files.
"""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rollup
from rollup.aggregation.cascade import narrowed
from rollup.core.columns import ColumnEngine
from rollup.core.errors import RollupError
from rollup.hosts.pipeline import Pipeline
from rollup.hosts.reporting.progress import Reporter
from rollup.hosts.reporting.report import BatchReport
from rollup.hosts.spark.driver import SparkHost
from rollup.program import Program
from rollup.stores.delta.store import DeltaStore
from rollup.stores.registry import open_store
from tests.conformance.compare import Case, Mismatch
from tests.conformance.siddhi.compare import Rows
from tests.conformance.siddhi.runner import Runs, compare_steps, merged_table, program
from tests.job.jobs import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATIENCE = 120.0
"""Seconds for a batch, of which an ordinary one takes half a second."""
_SURVIVES = re.compile(r"@store\(type='survives'\)")
"""In the recordings this is a store that outlives its process, which a folder of tables does; no job has it by that name."""


class _Told(Reporter):
    """Hands every report on."""

    def __init__(self, hand: Callable[[BatchReport], None]) -> None:
        super().__init__(terminal=False)
        self._hand = hand

    def batch(self, report: BatchReport) -> None:
        super().batch(report)
        self._hand(report)


class _Living:
    """A host that runs in a thread until `end`; it has taken up, or rebuilt, what was left before anybody reads."""

    def __init__(self, job: Job, spark: SparkSession) -> None:
        self._reports = Queue[BatchReport | BaseException]()
        self._host = SparkHost(job.conf, spark, _Told(self._reports.put))
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        while not self._host._started.wait(0.05):  # pyright: ignore[reportPrivateUsage]
            if not self._thread.is_alive():
                self.batch()  # raises what ended it

    def _work(self) -> None:
        try:
            self._host.run()
        except BaseException as problem:
            self._reports.put(problem)

    def batch(self) -> BatchReport:
        """The next batch that is done. Raises what ended the host instead."""
        try:
            found = self._reports.get(timeout=_PATIENCE)
        except Empty:
            raise Mismatch(f"no batch within {_PATIENCE} s") from None
        if isinstance(found, BaseException):
            raise found
        return found

    def end(self) -> None:
        """Between two batches. Raises what went wrong after the last one."""
        self._host.stop()
        self._thread.join()
        left = [self._reports.get() for _ in range(self._reports.qsize())]
        for each in left:
            raise each if isinstance(each, BaseException) else Mismatch(f"a batch that nobody sent: {each}")


class SparkRun(Runs):
    """One case in progress: its job, the host while it lives, and what has been sent and read."""

    def __init__(self, case: Case, folder: Path, spark: SparkSession) -> None:
        self.case, self.folder, self.spark = case, folder, spark
        self.program: Program = program("\n".join(case["app"]))
        self._sent = 0
        self._batches: dict[str, int] = {}
        """The newest batch of each stream."""
        self._read = set[Path]()
        self._reopened: dict[str, Pipeline] | None = None
        self.host = self._begin()

    def _begin(self) -> _Living:
        self._reopened = None
        return _Living(self._job, self.spark)

    @cached_property
    def _job(self) -> Job:
        inputs = self.program.inputs
        sources = [{"kind": "json", "path": f"in/{name}", "create": True} for name in inputs]
        sinks = [
            f'[sinks.{name}]\nkind = "files"\npath = "out/{name}"'
            for name in self.case["outputs"]
            if name not in inputs
        ]
        return Job(
            self.folder,
            *sources,
            app=_SURVIVES.sub("", "\n".join(self.case["app"])),
            streams=tuple(inputs),
            top='trigger = "0 seconds"',
            more="\n\n".join([*sinks, '[late]\nahead = "any"']),  # the real engine takes times of any year
        )

    def begin(self) -> None:
        """What earlier steps emitted has been read."""

    def send(self, stream: str, rows: list[list[Any]]) -> Any:
        names = list(self.program.streams[stream].attributes)
        folder = self.folder / "in" / stream
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{self._sent:06d}"
        draft.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
        draft.rename(folder / f"{self._sent:06d}.json")  # hidden until it is whole
        self._sent += 1
        report = self.host.batch()
        if self._batches.get(report.stream) == report.number:
            report = self.host.batch()  # after a restart Spark sends again the batch whose end it had not noted
        self._batches[report.stream] = report.number
        self._reopened = None
        if not report.events <= len(rows) <= report.events + report.dead:  # a request that is refused is both
            raise Mismatch(f"{len(rows)} events were sent, a batch took {report.events} and refused {report.dead}")
        return {"emitted": self._emitted(), **({"error": self._job.letters()} if report.dead else {})}

    def _emitted(self) -> list[Any]:
        found = list[Any]()
        for stream in self.case["outputs"]:
            for file in sorted(set((self.folder / "out" / stream).glob("*.parquet")) - self._read):
                self._read.add(file)
                rows = Rows.of(pq.read_table(file))
                found.extend({"stream": stream, "data": row, "types": rows.types} for row in rows.rows)
        return found

    def sleep(self, milliseconds: int) -> Any:
        raise AssertionError("a job's clock is the wall's, which no case can move")

    def query(self, text: str) -> Any:
        try:
            return {"rows": Rows.of(rollup.query(self._job.conf, text))}
        except RollupError as problem:
            return {"error": str(problem)}

    def restart(self, how: str) -> Any:
        self.end()
        if how != "snapshot":
            self._forget()
        self.host = self._begin()
        return {}

    def _forget(self) -> None:
        """Only tables that survive are left: neither commits nor checkpoint, and of the sources what is still to come."""
        for pipeline in self._opened.values():
            assert isinstance(pipeline.store, DeltaStore)
            survives = self.program.aggregations[pipeline.aggregation.name].store.get("type") == "survives"
            (pipeline.store.forget if survives else pipeline.store.drop)()
        self._batches.clear()
        for name in ("checkpoint", "in"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    @property
    def _opened(self) -> dict[str, Pipeline]:
        """What another process takes up: the newest commits."""
        if self._reopened is None:
            self._reopened = self._open()
        return self._reopened

    def _open(self) -> dict[str, Pipeline]:
        engine, conf = ColumnEngine(threads=1), self._job.conf
        opened = {
            name: Pipeline(aggregation, open_store(conf, aggregation, engine), engine)
            for name, aggregation in conf.program().aggregations.items()
        }
        for pipeline in opened.values():
            pipeline.start()
        return opened

    def running(self, name: str) -> dict[str, Rows]:
        pipeline = self._opened[name]
        return {
            level.table_suffix: Rows.of(narrowed(pipeline.aggregation, pipeline.state.open[level]))
            for level in pipeline.aggregation.levels
        }

    def tables(self) -> dict[str, Rows]:
        return {
            pipeline.aggregation.table(level): merged_table(pipeline, level)
            for pipeline in self._opened.values()
            for level in pipeline.aggregation.levels
        }

    def end(self) -> None:
        """The process ends."""
        self.host.end()


def run_on_spark(case: Case, request: pytest.FixtureRequest) -> int:
    """Run a case as a job on the session of the tests; the number of answers compared. Raises Mismatch."""
    folder: Path = request.getfixturevalue("tmp_path")
    if "create_error" in (case["expected"] or {}):
        return _refused(case, folder)
    run = SparkRun(case, folder, request.getfixturevalue("spark"))
    try:
        return compare_steps(case, run)
    finally:
        run.end()


def _refused(case: Case, folder: Path) -> int:
    """A job refuses an app where it reads it, before it looks at sources and tables."""
    try:
        Job(folder, app="\n".join(case["app"]), streams=()).conf.program()
    except RollupError:
        return 1
    raise Mismatch("the app should be refused")
