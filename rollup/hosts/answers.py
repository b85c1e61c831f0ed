"""Requests of a batch answered from the newest commit, and streams that leave to the sinks of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import structlog

from rollup.checkpoint.marks import Plans
from rollup.conf import Conf
from rollup.core.columns import ColumnEngine
from rollup.core.dialects import to_sql
from rollup.core.errors import RollupError
from rollup.core.json_line import json_line
from rollup.program import Program
from rollup.retrieval.requests import Requests
from rollup.sinks.base import Held, say_filled
from rollup.sinks.kinds import sink
from rollup.sources.base import DEAD
from rollup.stores.base import Store


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

    def process(self, events: Mapping[str, pa.Table], query: str, batch: int, plans: Plans) -> pa.Table:
        """Answer the requests among a batch's events and write streams that leave; the requests that were refused.

        How many rows an answer has depends on the tables as they are then, so what a sink has is known by the batch. Batches
        that are planned anew have other contents, and are a line of their own.
        """
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
        line = "-".join([query, *[str(name) for name, planned in plans if planned < batch][-1:]])
        for name, tables in leaving.items():
            if name in self.sinks and tables:
                self._write(name, pa.concat_tables(tables), line, batch, line == query)
        return pa.Table.from_pylist(dead, schema=DEAD)

    def _write(self, name: str, rows: pa.Table, line: str, batch: int, first: bool) -> None:
        to = self.sinks[name]
        held = to.held(line)
        if held is None and first:
            say_filled(to, name)
        if held is None or held.rows <= batch:
            to.write(rows, line, Held(batch + 1, None))

    def forget(self, query: str, batch: int) -> None:
        """Take back what left in the batches after one, which will be read again; say where that cannot be."""
        kept = [each.place for each in self.sinks.values() if not each.forget(query, batch + 1)]
        if kept:
            structlog.get_logger("rollup").warning(
                "batches come again cut in another way: these sinks may get rows of them a second time",
                sinks=kept,
                after_batch=batch,
            )

    def _answer(self, requests: Requests, events: pa.Table, dead: list[dict[str, Any]]) -> list[pa.Table]:
        answers: list[pa.Table] = []
        snapshot = self.stores[requests.aggregation.name].snapshot()
        with self.engine.use():
            inputs = self.engine.run(to_sql(requests.inputs()), events=events).to_pylist()
        for index, values in enumerate(inputs):
            if not values.pop("asks"):
                continue
            event = events.slice(index, 1)
            try:
                answers.append(snapshot.answer(requests.request(values), request=event))
            except RollupError as problem:
                raw = json_line(event.to_pylist()[0])
                dead.append({"stream": requests.stream.name, "reason": str(problem), "position": "", "raw": raw})
        return [answer for answer in answers if answer.num_rows]
