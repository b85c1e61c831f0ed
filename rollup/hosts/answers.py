"""Requests of a batch answered from the newest commit, and streams that leave: to files, to Kafka, to the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from rollup.checkpoint.records import write_durably
from rollup.conf import Conf
from rollup.core.columns import ColumnEngine
from rollup.core.dialects import to_sql
from rollup.core.errors import ConfigError, RollupError, StoreError
from rollup.program import Program
from rollup.retrieval.requests import Requests
from rollup.sources.base import DEAD
from rollup.stores.base import Store


class Sink(Protocol):
    """Takes the rows of a stream that leaves; a batch that comes again must not add rows twice where that can be helped."""

    def write(self, rows: pa.Table, query: str, batch: int) -> None:
        """Write the rows of one batch."""
        ...

    def forget(self, query: str, batch: int) -> None:
        """Take back the rows of batches after one, where that can be: they will come again, cut in other batches."""
        ...


class FileSink:
    """Parquet files in a folder, one a batch, named by it: a batch that comes again replaces its own file."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.folder = Path(options["path"])

    def write(self, rows: pa.Table, query: str, batch: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.folder / f".{query}-{batch:09d}"
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink)
        write_durably(draft, sink.getvalue().to_pybytes())
        draft.rename(self.folder / f"{query}-{batch:09d}.parquet")

    def forget(self, query: str, batch: int) -> None:
        for file in self.folder.glob(f"{query}-*.parquet"):
            if int(file.stem.removeprefix(f"{query}-")) > batch:
                file.unlink()


class ConsoleSink:
    """JSON lines on standard output."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.stream = sys.stdout

    def write(self, rows: pa.Table, query: str, batch: int) -> None:
        for row in rows.to_pylist():
            print(json.dumps(row, default=str), file=self.stream, flush=True)

    def forget(self, query: str, batch: int) -> None:
        """What is printed stays printed."""


class KafkaSink:
    """JSON events to a topic, at least once: a batch that comes again is sent again.

    A batch is done when the broker has acknowledged every row. Options: `servers`, `topic`, `timeout` (60, seconds that
    a row may take), `options` (of librdkafka).
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        try:
            from confluent_kafka import Producer
        except ImportError:
            raise ConfigError(
                "a kafka sink needs the package confluent-kafka", hint="pip install confluent-kafka"
            ) from None
        self.topic: str = options["topic"]
        self.servers: str = options["servers"]
        self._timeout = float(options.get("timeout", 60))
        settings = {"enable.idempotence": True, "message.timeout.ms": int(self._timeout * 1000)}
        self.producer: Any = Producer({**settings, **options.get("options", {}), "bootstrap.servers": self.servers})

    def write(self, rows: pa.Table, query: str, batch: int) -> None:
        """Raises StoreError when the broker has not acknowledged every row in time; the batch is then sent again."""
        failed = list[str]()

        def delivered(problem: Any, _: Any) -> None:
            if problem is not None:
                failed.append(problem.str())

        for row in rows.to_pylist():
            self._send(json.dumps(row, default=str).encode(), delivered, failed)
            if failed:
                break
        left = self.producer.flush(self._timeout + 5)
        if failed or left:
            self._give_up()
            raise StoreError(
                f"the broker at {self.servers} did not take the rows of batch {batch} for topic {self.topic}: "
                f"{failed[0] if failed else f'{left} of them not acknowledged'}",
                hint="the job's next start sends the batch again",
            )

    def _send(self, message: bytes, delivered: Callable[[Any, Any], None], failed: list[str]) -> None:
        from confluent_kafka import KafkaException

        while not failed:
            try:
                self.producer.produce(self.topic, message, on_delivery=delivered)
                self.producer.poll(0)
                return
            except BufferError:
                self.producer.poll(0.1)  # its queue is full: room comes with what is acknowledged
            except KafkaException as problem:
                failed.append(problem.args[0].str())

    def _give_up(self) -> None:
        """Nothing of a batch that failed is sent later, behind one that came after it."""
        self.producer.purge()
        self.producer.flush(1)

    def forget(self, query: str, batch: int) -> None:
        """What is sent stays sent."""


def _delta(options: Mapping[str, Any]) -> Sink:
    from rollup.sinks.delta import DeltaSink

    return DeltaSink(options)


def _sql(options: Mapping[str, Any]) -> Sink:
    from rollup.sinks.sql import SqlSink

    return SqlSink(options)


_SINKS: Mapping[str, tuple[Callable[[Mapping[str, Any]], Sink], tuple[str, ...]]] = {
    "files": (FileSink, ("path",)),
    "console": (ConsoleSink, ()),
    "kafka": (KafkaSink, ("servers", "topic")),
    "delta": (_delta, ("path",)),
    "postgres": (_sql, ("url", "table")),
}


def sink(name: str, options: Mapping[str, Any]) -> Sink:
    """The sink that options of a configuration describe. Raises ConfigError."""
    found = _SINKS.get(options.get("kind", ""))
    if found is None:
        raise ConfigError(f"[sinks.{name}]: unknown kind {options.get('kind')!r}", hint=f"one of {', '.join(_SINKS)}")
    for needed in found[1]:
        if needed not in options:
            raise ConfigError(f"[sinks.{name}] lacks `{needed}`")
    return found[0](options)


class Answers:
    """The joins of a program and the sinks of a configuration."""

    def __init__(self, conf: Conf, program: Program, stores: Mapping[str, Store]) -> None:
        self.engine = ColumnEngine(threads=2)
        self.stores = stores
        given = frozenset[str]() if program.statements is None else program.statements.streams.keys()
        self.sinks = {
            name: sink(name, {"name": name, **options}) for name, options in conf.sinks.items() if name not in given
        }
        self.requests = [
            Requests.of(join, program.streams[join.source.stream], program.aggregations[join.retrieval.aggregation])
            for join in program.joins
        ]

    def process(self, events: Mapping[str, pa.Table], query: str, batch: int) -> pa.Table:
        """Answer the requests among a batch's events and write streams that leave; the requests that were refused."""
        leaving: dict[str, list[pa.Table]] = {}
        for name, table in events.items():
            if name in self.sinks:
                leaving.setdefault(name, []).append(
                    table.sort_by("__arrival").drop_columns(["__arrival", "__received"])
                )
        dead: list[dict[str, Any]] = []
        for requests in self.requests:
            table = events.get(requests.stream.name)
            if table is not None and table.num_rows:
                found = self._answer(requests, table.sort_by("__arrival"), dead)
                leaving.setdefault(requests.join.target, []).extend(found)
        for name, tables in leaving.items():
            if name in self.sinks and tables:
                self.sinks[name].write(pa.concat_tables(tables), query, batch)
        return pa.Table.from_pylist(dead, schema=DEAD)

    def forget(self, query: str, batch: int) -> None:
        """Take back what left in the batches after one, which will be read again."""
        for each in self.sinks.values():
            each.forget(query, batch)

    def _answer(self, requests: Requests, events: pa.Table, dead: list[dict[str, Any]]) -> list[pa.Table]:
        answers: list[pa.Table] = []
        snapshot = self.stores[requests.aggregation.name].snapshot()
        for index, values in enumerate(self.engine.run(to_sql(requests.inputs()), events=events).to_pylist()):
            if not values.pop("asks"):
                continue
            event = events.slice(index, 1)
            try:
                answers.append(snapshot.answer(requests.request(values), request=event))
            except RollupError as problem:
                raw = json.dumps(event.to_pylist()[0], default=str)
                dead.append({"stream": requests.stream.name, "reason": str(problem), "position": "", "raw": raw})
        return [answer for answer in answers if answer.num_rows]
