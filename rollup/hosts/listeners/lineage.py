"""OpenLineage events of a command and of its batches, through the project's own client.

A command is a run of the job `APP.COMMAND`: START, and COMPLETE, FAIL or ABORT. A batch with events is a run of
`APP.STREAM` below it, emitted when its commits are made. A thread sends the events in order, and tries again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from queue import Queue
from threading import Thread

import pyarrow as pa
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState, set_producer
from openlineage.client.facet_v2 import (
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    schema_dataset,
)
from openlineage.client.uuid import generate_new_uuid

from rollup.conf import Conf
from rollup.hosts.listeners import datasets
from rollup.hosts.listeners.datasets import Dataset
from rollup.hosts.reporting.report import BatchReport
from rollup.program import Program

log = logging.getLogger("openlineage.rollup")

_SECONDS = 3.0
"""How long the end of a command waits for events that are on their way."""
_TRIES = {"total": 2, "connect": 2, "read": 2}
_MOST = 1_000
"""Events that wait to be sent: a server that is slow for long loses what comes then."""
_READ_ONLY = ("verify",)
_FROM_SOURCES = ("run", "replay")


class Lineage:
    """The events of one command, sent to a server that takes OpenLineage (Marquez, DataHub, …)."""

    def __init__(self, conf: Conf, program: Program, command: str) -> None:
        set_producer(f"urn:rollup:{version('rollup')}")
        key = conf.telemetry.get("lineage_key_env")
        auth = {} if key is None else {"auth": {"type": "api_key", "apiKey": os.environ[key]}}
        self.address = conf.telemetry["lineage"]
        transport = {"type": "http", "url": self.address, "retry": _TRIES, **auth}
        logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)  # else a line for each try
        self._client = OpenLineageClient(config={"transport": transport})
        self._waiting = Queue[RunEvent | None](_MOST)
        self._sender = Thread(target=self._send, name="lineage", daemon=True)
        self._sender.start()
        self._conf, self._program = conf, program
        self._namespace = conf.telemetry.get("namespace", "rollup")
        self._kind = "STREAMING" if command == "run" else "BATCH"
        self._job, self._run = self._named(command), Run(str(generate_new_uuid()))
        tables = datasets.levels(conf, program)
        read = datasets.sources(conf) if command in _FROM_SOURCES else tables
        written = () if command in _READ_ONLY else (*tables, *(datasets.sinks(conf) if command == "run" else ()))
        self._inputs, self._outputs = [InputDataset(*each) for each in read], [OutputDataset(*each) for each in written]

    def begin(self, at: float) -> None:
        """The event of the command's begin."""
        self._emit(RunState.START, at)

    def end(self, at: float, problem: BaseException | None) -> None:
        """The event of its end; then wait a moment for what is on its way."""
        state = RunState.COMPLETE
        if problem is not None:
            state = RunState.ABORT if isinstance(problem, KeyboardInterrupt) else RunState.FAIL
            self._run.facets = {"errorMessage": error_message_run.ErrorMessageRunFacet(str(problem), "python")}
        self._emit(state, at)
        self._waiting.put_nowait(None)
        self._sender.join(_SECONDS)
        if self._sender.is_alive():
            log.warning("the command ended before the last events were sent")

    def batch(self, report: BatchReport) -> None:
        """The events of a batch: how many records were read, and the rows that each level has got."""
        parent = parent_run.ParentRunFacet(
            parent_run.Run(self._run.runId), parent_run.Job(self._namespace, self._job.name)
        )
        run, job = Run(str(generate_new_uuid()), {"parent": parent}), self._named(report.stream)
        counted = {
            "inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rowCount=report.events)
        }
        read = [InputDataset(*each, inputFacets={**counted}) for each in datasets.source(self._conf, report.stream)]
        written = [
            _output(datasets.of_level(self._conf, report.pipelines[name].aggregation, level), rows)
            for name, advance in report.advances.items()
            for level, rows in advance.closed.rows.items()
        ]
        for state, at in ((RunState.START, report.began), (RunState.COMPLETE, report.ended)):
            self._waiting.put_nowait(_event(state, at, run, job, read, written))

    def _emit(self, state: RunState, at: float) -> None:
        self._waiting.put_nowait(_event(state, at, self._run, self._job, self._inputs, self._outputs))

    def _send(self) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                self._client.emit(event)
            except Exception as problem:  # of whatever kind, the next event may pass
                log.warning("%s: %s", type(problem).__name__, problem)

    def _named(self, last: str) -> Job:
        kind = job_type_job.JobTypeJobFacet(self._kind, "ROLLUP", "JOB")
        return Job(self._namespace, f"{Path(self._conf.app).stem}.{last}", {"jobType": kind})


def _output(dataset: Dataset, rows: pa.Table) -> OutputDataset:
    fields = [schema_dataset.SchemaDatasetFacetFields(field.name, str(field.type)) for field in rows.schema]
    counted = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows.num_rows)
    return OutputDataset(
        *dataset,
        facets={"schema": schema_dataset.SchemaDatasetFacet(fields)},
        outputFacets={"outputStatistics": counted},
    )


def _event(
    state: RunState, at: float, run: Run, job: Job, read: Sequence[InputDataset], written: Sequence[OutputDataset]
) -> RunEvent:
    when = datetime.fromtimestamp(at, UTC).isoformat()
    return RunEvent(eventTime=when, run=run, job=job, eventType=state, inputs=[*read], outputs=[*written])
