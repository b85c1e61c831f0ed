"""Runs a recorded case of `define aggregation` and `within … per` on a local host and compares step by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

from rollup.aggregation.cascade import narrowed
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import RollupError
from rollup.hosts.local import LocalHost, StoreFactory
from rollup.hosts.pipeline import Pipeline
from rollup.program import Program, compile_app
from tests.conformance.compare import Case, Mismatch, number
from tests.conformance.siddhi.compare import Rows, answers, check

NOW = 1_700_000_000_000
"""The injected wall clock at the start of a case, for aggregations by arrival time."""


Survives = Literal["all", "tables", "nothing"]
Restart = Callable[[Any, Survives, Callable[[], Any]], Any]
"""A store after the end of its process: from the old one, what survives, and a way to open a new one."""


def restart_in_memory(store: Any, survives: Survives, anew: Callable[[], Any]) -> Any:
    """A memory store has no other place to survive in than itself; without its last commit only the tables are left."""
    if survives == "tables":
        store.last = None
    return anew() if survives == "nothing" else store


class Runs(ABC):
    """What a case is run on: here the steps are told apart, how each is taken is the runner's."""

    def step(self, step: Case) -> Any:
        """What a step gives, in the form of the recorded answers."""
        self.begin()
        if "send" in step:
            return self.send(step["send"], [step["data"]])
        if "send_all" in step or "send_batch" in step:
            return self.send(step.get("send_all") or step["send_batch"], step["events"])
        if "sleep_ms" in step:
            return self.sleep(step["sleep_ms"])
        if "query" in step:
            return self.query(step["query"])
        if "restart" in step:
            return self.restart(step["restart"])
        if "dump_running" in step:
            return {"running": self.running(step["dump_running"])}
        wanted = str(step.get("dump_tables") or step.get("dump_table") or step.get("schema"))
        return {"tables": {name: rows for name, rows in self.tables().items() if name.startswith(wanted)}}

    @abstractmethod
    def begin(self) -> None:
        """Forget what earlier steps emitted."""

    @abstractmethod
    def send(self, stream: str, rows: list[list[Any]]) -> Any:
        """Events of a stream: `emitted`, and `error` with what was refused."""

    @abstractmethod
    def sleep(self, milliseconds: int) -> Any:
        """Time passes: `emitted`."""

    @abstractmethod
    def query(self, text: str) -> Any:
        """An on-demand query: `rows` or `error`."""

    @abstractmethod
    def restart(self, how: str) -> Any:
        """The process ends and begins anew; `snapshot`: with its state."""

    @abstractmethod
    def running(self, name: str) -> dict[str, Rows]:
        """The open rows of an aggregation, by level."""

    @abstractmethod
    def tables(self) -> dict[str, Rows]:
        """The rows of every table, by its name."""


@cache
def program(text: str) -> Program:
    """The program of an app; cases that share an app, and a case on several stores, share what is derived from it."""
    return compile_app(text)


class Run(Runs):
    """One case in progress: the host and what the case watches."""

    def __init__(self, case: Case, store: StoreFactory, restart: Restart) -> None:
        self.case = case
        self._store, self._again = store, restart
        self._ended: dict[str, tuple[Any, Survives]] = {}
        self.host = self._new_host()

    def _new_host(self) -> LocalHost:
        def keep(aggregation: Any, engine: ColumnEngine) -> Any:
            def anew() -> Any:
                return self._store(aggregation, engine)

            if aggregation.name not in self._ended:
                return anew()
            return self._again(*self._ended[aggregation.name], anew)

        host = LocalHost(program("\n".join(self.case["app"])), keep)
        host.now = NOW
        return host

    def begin(self) -> None:
        self.host.emitted.clear()

    def sleep(self, milliseconds: int) -> Any:
        self.host.tick(self.host.now + milliseconds)
        return self._watched()

    def send(self, stream: str, rows: list[list[Any]]) -> Any:
        before = len(self.host.dead)
        self.host.send(stream, [[number(value) for value in row] for row in rows])
        refused = self.host.dead[before:]
        return {**self._watched(), **({"error": refused} if refused else {})}

    def _watched(self) -> Any:
        found = [(stream, Rows.of(table)) for stream, table in self.host.emitted if stream in self.case["outputs"]]
        return {
            "emitted": [
                {"stream": stream, "data": row, "types": rows.types} for stream, rows in found for row in rows.rows
            ]
        }

    def query(self, text: str) -> Any:
        try:
            return {"rows": Rows.of(self.host.query(text))}
        except RollupError as problem:
            return {"error": str(problem)}

    def restart(self, how: str) -> Any:
        for name, store in self.host.stores.items():
            survives = self.host.program.aggregations[name].store.get("type") == "survives"
            self._ended[name] = store, "all" if how == "snapshot" else "tables" if survives else "nothing"
        self.host = self._new_host()
        return {}

    def tables(self) -> dict[str, Rows]:
        return {
            pipeline.aggregation.table(level): merged_table(pipeline, level)
            for pipeline in self.host.pipelines.values()
            for level in pipeline.aggregation.levels
        }

    def running(self, name: str) -> dict[str, Rows]:
        aggregation = self.host.program.aggregations[name]
        state = self.host.pipelines[name].state
        return {level.table_suffix: Rows.of(narrowed(aggregation, state.open[level])) for level in aggregation.levels}


def merged_table(pipeline: Pipeline, level: Duration) -> Rows:
    """A level's stored rows, the parts of a corrected row put together."""
    rows = pipeline.store.rows_after(level, None)
    identity = [rows[column] for column in pipeline.aggregation.identity]
    if len(set(zip(*(column.to_pylist() for column in identity), strict=True))) == rows.num_rows:
        return Rows.of(rows)
    wide = rows.cast(pipeline.aggregation.state_schema)
    merged = pipeline.cascade.merge(pipeline.engine, pipeline.aggregation.root, [wide])
    return Rows.of(narrowed(pipeline.aggregation, merged))


def run_case(case: Case, store: StoreFactory, restart: Restart = restart_in_memory) -> int:
    """Run a case on a store; the number of answers compared. Raises Mismatch."""
    if refused(case):
        return 1
    return compare_steps(case, Run(case, store, restart))


def refused(case: Case) -> bool:
    """Whether the case is about an app that must be refused, and it was. Raises Mismatch where it was not."""
    if "create_error" not in (case["expected"] or {}):
        return False
    try:
        compile_app("\n".join(case["app"]))
    except RollupError:
        return True
    raise Mismatch("the app should be refused")


def compare_steps(case: Case, run: Runs) -> int:
    """Take every step of a case on `run` and compare; the number of answers compared. Raises Mismatch."""
    recorded = (case["expected"] or {}).get("steps", [None] * len(case["steps"]))
    compared = 0 if case["steps"] or case["expected"] is None else accepted(run)
    for step, answer in zip(case["steps"], recorded, strict=True):
        check(answer, run.step(step), step, case)
        compared += answers(answer)
    return compared


def accepted(run: Runs) -> int:
    """The answer of a case without steps, that the app is accepted: its tables are there, and empty."""
    tables = run.tables()
    if not tables or any(table.rows for table in tables.values()):
        raise Mismatch(f"an app that is accepted has empty tables, not {tables}")
    return 1
