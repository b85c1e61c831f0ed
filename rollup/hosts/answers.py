"""Requests of a batch answered from the newest commit, and streams that leave: to files, to Kafka, to the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from rollup.aggregation.engine import Engine
from rollup.aggregation.requests import Requests
from rollup.conf import Conf
from rollup.errors import ConfigError, RollupError
from rollup.plan.dialects import to_sql
from rollup.program import Program
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
        pq.write_table(rows, draft)
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
    """JSON events to a topic, at least once: a batch that comes again is sent again."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        try:
            from confluent_kafka import Producer
        except ImportError:
            raise ConfigError(
                "a kafka sink needs the package confluent-kafka", hint="pip install confluent-kafka"
            ) from None
        self.topic: str = options["topic"]
        self.producer = Producer({"bootstrap.servers": options["servers"], "enable.idempotence": True})

    def write(self, rows: pa.Table, query: str, batch: int) -> None:
        for row in rows.to_pylist():
            self.producer.produce(self.topic, json.dumps(row, default=str).encode())
            self.producer.poll(0)
        self.producer.flush()

    def forget(self, query: str, batch: int) -> None:
        """What is sent stays sent."""


_SINKS: Mapping[str, tuple[type[Any], tuple[str, ...]]] = {
    "files": (FileSink, ("path",)),
    "console": (ConsoleSink, ()),
    "kafka": (KafkaSink, ("servers", "topic")),
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
        self.engine = Engine(threads=2)
        self.stores = stores
        self.sinks = {name: sink(name, options) for name, options in conf.sinks.items()}
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
