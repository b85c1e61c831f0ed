"""Runs a recorded case of `define aggregation` and `within … per` on a host, and compares step by step.

How steps compare is written in tests/conformance/README.md; the order of rows counts only under `order by`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rollup.calendar import Duration
from rollup.errors import RollupError
from rollup.hosts.local import LocalHost, StoreFactory
from rollup.plan.program import compile_app

Case = dict[str, Any]
NOW = 1_700_000_000_000
"""The injected wall clock at the start of a case, for aggregations by arrival time."""


class Mismatch(AssertionError):
    """A step whose answer differs from the recorded one."""


class Run:
    """One case in progress: the host and what the case watches."""

    def __init__(self, case: Case, store: StoreFactory) -> None:
        self.case = case
        self._store = store
        self._kept: dict[str, Any] = {}
        self.host = self._new_host()

    def _new_host(self) -> LocalHost:
        def keep(aggregation: Any, engine: Any) -> Any:
            kept = self._kept.get(aggregation.name)
            return kept if kept is not None else self._store(aggregation, engine)

        host = LocalHost(compile_app("\n".join(self.case["app"])), keep)
        host.now = NOW
        return host

    def step(self, step: Case) -> Any:
        """What the step gives, in the form of the recorded answers."""
        self.host.emitted.clear()
        if "send" in step:
            return self._send(step["send"], [step["data"]])
        if "send_all" in step or "send_batch" in step:
            return self._send(step.get("send_all") or step["send_batch"], step["events"])
        if "sleep_ms" in step:
            self.host.tick(self.host.now + step["sleep_ms"])
            return self._watched()
        if "query" in step:
            return self._query(step["query"])
        if "restart" in step:
            return self._restart(step["restart"])
        return self._dump(step)

    def _send(self, stream: str, rows: list[list[Any]]) -> Any:
        before = len(self.host.dead)
        self.host.send(stream, [[_number(value) for value in row] for row in rows])
        refused = self.host.dead[before:]
        return {**self._watched(), **({"error": refused} if refused else {})}

    def _watched(self) -> Any:
        rows = [
            {"stream": stream, "data": list(row.values())}
            for stream, table in self.host.emitted
            if stream in self.case["outputs"]
            for row in table.to_pylist()
        ]
        return {"emitted": rows}

    def _query(self, text: str) -> Any:
        try:
            found = self.host.query(text)
        except RollupError as problem:
            return {"error": str(problem)}
        return {"rows": [list(row.values()) for row in found.to_pylist()], "columns": found.schema.names}

    def _restart(self, how: str) -> Any:
        for name, store in self.host.stores.items():
            survives = self.host.program.aggregations[name].store.get("type") == "survives"
            if how == "snapshot":
                self._kept[name] = store
            elif survives:
                forget(store)
                self._kept[name] = store
        self.host = self._new_host()
        return {}

    def _dump(self, step: Case) -> Any:
        if "dump_running" in step:
            return {"running": self._running(step["dump_running"])}
        wanted = step.get("dump_tables") or step.get("dump_table") or step.get("schema")
        tables: dict[str, pa.Table] = {}
        for name, aggregation in self.host.program.aggregations.items():
            for level in aggregation.levels:
                if aggregation.table(level).startswith(str(wanted)):
                    tables[aggregation.table(level)] = merged_table(self.host, name, level)
        return {"tables": tables}

    def _running(self, name: str) -> Any:
        aggregation = self.host.program.aggregations[name]
        state = self.host.pipelines[name].state
        return {level.table_suffix: state.open[level] for level in aggregation.levels}


def forget(store: Any) -> None:
    """Only the tables of a store survive: its commit record is gone."""
    store.last = None


def merged_table(host: LocalHost, name: str, level: Duration) -> pa.Table:
    """A level's stored rows, the parts of a corrected row put together."""
    pipeline, store = host.pipelines[name], host.stores[name]
    rows = store.rows_after(level, None).cast(pipeline.aggregation.state_schema)
    return pipeline.cascade.merge(host.engine, pipeline.aggregation.root, [rows])


def _number(value: Any) -> Any:
    special = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    return special.get(value, value) if isinstance(value, str) else value


def check(expected: Any, got: Any, step: Case, case: Case) -> None:
    """Raise Mismatch unless a step's answer is the recorded one."""
    if expected is None or expected.get("unspecified"):
        return
    if "columns" in expected and "dump_table" in step:
        expected = {"tables": {step["dump_table"]: expected}}
    if "error" in expected:
        if "error" not in got:
            raise Mismatch(f"{step} should be refused, got {got}")
        return
    if "error" in got and "query" in step:
        raise Mismatch(f"{step} was refused: {got['error']}")
    if expected.get("null_result"):
        if got["rows"]:
            raise Mismatch(f"{step} should have no rows, got {got['rows']}")
    elif "rows" in expected:
        _same_rows(expected["rows"], got["rows"], "order by" in step.get("query", ""), step)
    elif "emitted" in expected:
        _same_emitted(expected["emitted"], got["emitted"], case, step)
    elif "tables" in expected:
        for name, table in expected["tables"].items():
            _same_table(name, [c.split(":")[0] for c in table["columns"]], table["rows"], got["tables"], step)
    elif "running" in expected:
        _same_running(expected["running"], got["running"], case, step)


def _same_emitted(expected: list[Any], got: list[Any], case: Case, step: Case) -> None:
    ordered = any("order by" in line for line in case["app"])
    for stream in {row["stream"] for row in [*expected, *got]}:
        wanted, found = ([row["data"] for row in rows if row["stream"] == stream] for rows in (expected, got))
        _same_rows(wanted, found, ordered, step)


def _same_table(name: str, columns: list[str], rows: list[Any], tables: dict[str, pa.Table], step: Case) -> None:
    if name not in tables:
        raise Mismatch(f"{step}: no table {name}, only {sorted(tables)}")
    _same_rows(rows, _select(tables[name], columns, f"{step}: {name}"), False, step, name)


def _select(table: pa.Table, columns: list[str], what: str) -> list[list[Any]]:
    """Columns by name; the reference's AGG_COUNT also stands for our AGG_COUNT_x, equal where there are no nulls."""
    chosen = list[pa.ChunkedArray]()
    for name in columns:
        ours = name if name in table.schema.names else next((c for c in table.schema.names if c.startswith(f"{name}_") and name == "AGG_COUNT"), None)
        if ours is None:
            raise Mismatch(f"{what}: no column {name} among {table.schema.names}")
        chosen.append(table[ours])
    return [list(row) for row in zip(*(column.to_pylist() for column in chosen), strict=True)] if chosen else []


def _same_running(expected: dict[str, Any], got: dict[str, pa.Table], case: Case, step: Case) -> None:
    for level, rows in expected.items():
        columns = _running_columns(case, level, got[level])
        _same_rows(rows, _select(got[level], columns, f"{step}: {level}"), False, step, level)


def _running_columns(case: Case, level: str, table: pa.Table) -> list[str]:
    """The reference's columns of a row, in its order: as the case's dumped tables have them."""
    for answer in (case["expected"] or {}).get("steps", []):
        for name, dumped in ((answer or {}).get("tables") or {}).items():
            if name.endswith(level):
                return [c.split(":")[0] for c in dumped["columns"]]
    hidden = ("AGG_EVENTS", "AGG_LAST_EVENT_TIMESTAMP", "AGG_LAST_ARRIVAL")
    return [c for c in table.schema.names if c not in hidden]


def _same_rows(expected: list[Any], got: list[Any], ordered: bool, step: Case, what: str = "") -> None:
    wanted, found = [[_plain(v) for v in row] for row in expected], [[_plain(v) for v in row] for row in got]
    if not ordered:
        wanted, found = sorted(wanted, key=_key), sorted(found, key=_key)
    if len(wanted) != len(found) or not all(map(_same_row, wanted, found)):
        raise Mismatch(f"{what} {json.dumps(step)[:200]}\n  expected {wanted}\n  got      {found}")


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value)
    return _number(value)


def _key(row: Iterable[Any]) -> list[tuple[str, Any]]:
    return [("null", "") if v is None else ("number", float(v)) if isinstance(v, (int, float)) else ("text", str(v)) for v in row]


def _same_row(wanted: list[Any], found: list[Any]) -> bool:
    return len(wanted) == len(found) and all(map(_same, wanted, found))


def _same(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, float) or isinstance(found, float):
        if wanted is None or found is None:
            return wanted is found
        if math.isnan(wanted) or math.isnan(found):
            return math.isnan(wanted) and math.isnan(found)
        return math.isclose(wanted, found, rel_tol=1e-12, abs_tol=1e-12) or wanted == found
    return wanted == found


def run_case(case: Case, store: StoreFactory, wrap: Callable[[Any], Any] = lambda x: x) -> int:
    """Run a case; the number of steps compared. Raises Mismatch, or Refused when only one of us refuses the app."""
    expected = case["expected"] or {}
    if "create_error" in expected:
        try:
            compile_app("\n".join(case["app"]))
        except RollupError:
            return 1
        raise Mismatch("the app should be refused")
    run = Run(case, store)
    answers = expected.get("steps", [None] * len(case["steps"]))
    compared = 0
    for step, answer in zip(case["steps"], answers, strict=True):
        got = run.step(step)
        check(answer, got, step, case)
        compared += answer is not None
    return compared


def load(folder: Path) -> list[Case]:
    """Every case of a folder, by name."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
