"""Requests of a batch answered from the newest commit, and streams that leave to the sinks of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from rollup.conf import Conf
from rollup.core.columns import ColumnEngine
from rollup.core.dialects import to_sql
from rollup.core.errors import RollupError
from rollup.core.json_line import json_line
from rollup.program import Program
from rollup.retrieval.requests import Requests
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
                raw = json_line(event.to_pylist()[0])
                dead.append({"stream": requests.stream.name, "reason": str(problem), "position": "", "raw": raw})
        return [answer for answer in answers if answer.num_rows]
