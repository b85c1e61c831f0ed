"""What a job sees of Spark, without Spark: streaming queries over files with the log that Spark keeps of them.

It is for tests that end a job hundreds of times, where starting a JVM is all that would be measured. Plans, the log of
what is done and the log of files are written in Spark's order and in its format; tasks run in this process.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from rollup.sources import file_stream
from rollup.sources.new_files import NewFiles

_RUNNING = threading.Lock()
Tasks = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class ModelSpark:
    """A session: streams of file names, and jobs of some tasks."""

    def __init__(self) -> None:
        # No gateway, so no process of Java to be watched: the tasks run in this one.
        self.sparkContext = SimpleNamespace(
            master="local[2]", defaultParallelism=2, _gateway=None, parallelize=lambda given, tasks: Given(given)
        )

    def range(self, start: int, end: int, step: int, parts: int) -> Frame:
        """Numbers, a task each."""
        return Frame([pa.table({"id": [number]}) for number in range(start, end, step)])


@dataclass(frozen=True)
class Given:
    """Plain values, a task each."""

    values: list[Any]
    tasks: Callable[[Iterator[Any]], Iterator[Any]] = iter

    def mapPartitions(self, tasks: Callable[[Iterator[Any]], Iterator[Any]]) -> Given:
        """What is to be made of them."""
        return Given(self.values, tasks)

    def collect(self) -> list[Any]:
        """The results of all tasks, which share what this process has and so run one by one."""
        with _RUNNING:
            return [found for value in self.values for found in self.tasks(iter([value]))]


class Frame:
    """Rows by task; of a batch there are none, as its source says where they are."""

    def __init__(self, parts: list[pa.Table]) -> None:
        self.parts = parts
        self.sparkSession = ModelSpark()

    def mapInArrow(self, tasks: Tasks, schema: str) -> SimpleNamespace:
        """The results of all tasks."""
        found = [batch for part in self.parts for batch in tasks(iter(part.to_batches()))]
        return SimpleNamespace(toArrow=lambda: pa.Table.from_batches(found))


_streamed = file_stream.streamed


def _stream(spark: Any, files: NewFiles) -> Any:
    return _Options(files) if isinstance(spark, ModelSpark) else _streamed(spark, files)


file_stream.streamed = _stream


class _Options:
    """A stream that is being described: every call but the last notes something."""

    def __init__(self, files: NewFiles) -> None:
        self.files = files
        self.options: dict[str, Any] = {}
        self.once = False

    def option(self, name: str, value: object) -> _Options:
        self.options[name] = value
        return self

    def trigger(self, availableNow: bool = False, processingTime: str = "") -> _Options:
        self.once = availableNow
        return self

    def foreachBatch(self, action: Callable[[Any, int], None]) -> Query:
        return Query(self, action)

    @property
    def writeStream(self) -> _Options:
        return self

    def queryName(self, name: str) -> _Options:
        return self


class Query:
    """A streaming query in a thread, as Spark's MicroBatchExecution goes."""

    def __init__(self, stream: _Options, action: Callable[[Any, int], None]) -> None:
        self.stream = stream
        self.action = action
        self.folder = Path(stream.options["checkpointLocation"])
        self.name = self.folder.name
        self.problem: Exception | None = None
        self.id = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Query:
        """Take the log up, or begin one."""
        metadata = self.folder / "metadata"
        if not metadata.exists():
            self._write(metadata, json.dumps({"id": str(uuid.uuid4())}))
        self.id = json.loads(metadata.read_text())["id"]
        self._thread.start()
        return self

    @property
    def isActive(self) -> bool:
        """Whether it goes on."""
        return self._thread.is_alive()

    def exception(self) -> Exception | None:
        """What ended it."""
        return self.problem

    def stop(self) -> None:
        """End it between two batches."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            if self.stream.once:
                self.stream.files.close()
            planned, done = self._newest("offsets"), self._newest("commits")
            assert planned - done in (0, 1), f"Spark cannot go on from plan {planned} with {done} done"
            number = done + 1
            while not self._stop.is_set():
                if number > planned:
                    if not self._plan(number):
                        if self.stream.once:
                            return
                        self._stop.wait(0.05)
                        continue
                    planned = number
                self.action(Frame([]), number)
                self._write(self.folder / "commits" / str(number), "v1\n{}")
                number += 1
        except Exception as problem:
            self.problem = problem

    def _plan(self, number: int) -> bool:
        """Files that are new go to the log of the source first; a plan says up to which of its entries."""
        entry = self.stream.files.after(self._offset(number - 1))
        if entry == self._offset(number - 1):
            return False
        planned = {"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1000), "conf": {}}
        lines = ["v1", json.dumps(planned), json.dumps({"logOffset": entry})]
        self._write(self.folder / "offsets" / str(number), "\n".join(lines))
        return True

    def _offset(self, number: int) -> int:
        if number < 0:
            return -1
        return int(json.loads((self.folder / "offsets" / str(number)).read_text().splitlines()[-1])["logOffset"])

    def _newest(self, log: str) -> int:
        folder = self.folder / log
        return max((int(path.name) for path in folder.glob("[0-9]*")), default=-1)

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{time.monotonic_ns()}.tmp")
        draft.write_text(text)
        draft.rename(path)
