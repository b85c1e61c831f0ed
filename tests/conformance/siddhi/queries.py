"""Cases of SiddhiQL's queries (windows, patterns, sequences, joins, tables, partitions, rates) on the engine.

Rows of a stream compare in order, and a step for which nothing was recorded must emit nothing: with sums and matches, a
row too many is as wrong as one that is missing.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from rollup.core.errors import RollupError
from rollup.engine.state import State
from rollup.lang.siddhi.statements.app import SiddhiApp
from tests.conformance.compare import Case, Mismatch, number, same_rows
from tests.conformance.language import Language, Target
from tests.conformance.uql.targets import reopened


def run_case(case: Case, restart: bool = False) -> int:
    """Run a case; `restart`: before every step the state goes to a new process. Returns how many steps were compared."""
    expected = case["expected"]
    try:
        app = SiddhiApp("\n".join(case["app"]))
    except RollupError as refusal:
        if not expected.get("create_error"):
            raise Mismatch(f"refused: {refusal}") from None
        if refusal.line is None:
            raise Mismatch(f"the refusal names no place: {refusal}") from None
        return 1
    if expected.get("create_error"):
        raise Mismatch(f"accepted, though it must be refused: {expected['create_error']}")
    app.taken()  # what a trigger emits at the start was not recorded with a step
    for step, answer in zip(case["steps"], expected["steps"], strict=True):
        if restart:
            app = _restarted(case, app)
        _check(case, step, answer, _taken(app, step))
    return len(case["steps"])


def _restarted(case: Case, app: SiddhiApp) -> SiddhiApp:
    states: tuple[State, ...] = reopened((app.snapshot(),))
    app = SiddhiApp("\n".join(case["app"]))
    app.taken()
    app.restore(states[0])
    return app


def _taken(app: SiddhiApp, step: Case) -> Any:
    try:
        if "query" in step:
            return app.query(step["query"])
        if "sleep_ms" in step:
            app.advance(app.now + step["sleep_ms"])
        else:
            stream = step.get("send") or step["send_batch"]
            rows = [[number(value) for value in row] for row in step.get("events") or [step["data"]]]
            app.send(stream, rows, step.get("at_ms"))
    except RollupError as refusal:
        return refusal
    return app.taken()


def _check(case: Case, step: Case, answer: Any, got: Any) -> None:
    what = json.dumps(step)[:200]
    if isinstance(answer, dict) and "error" in answer:
        if not isinstance(got, RollupError):
            raise Mismatch(f"{what} should be refused")
    elif isinstance(got, RollupError):
        raise Mismatch(f"{what} was refused: {got}")
    elif isinstance(got, pa.Table):
        rows = [list(row.values()) for row in got.to_pylist()]
        names = [column.split(":")[0] for column in answer.get("columns", got.column_names)]
        if names != got.column_names:
            raise Mismatch(f"{what}: columns {got.column_names} instead of {names}")
        _same(answer.get("rows", []), rows, what, "order by" in step["query"])
    else:
        _emitted(case, (answer or {}).get("emitted", []), got, what)


def _emitted(case: Case, expected: list[Any], got: Any, what: str) -> None:
    watched = case["outputs"]
    for stream in watched:
        wanted = [row["data"] for row in expected if row["stream"] == stream]
        _same(wanted, [list(row.values) for row in got if row.stream == stream], f"{what} {stream}", True)


def _same(wanted: list[Any], got: list[Any], what: str, ordered: bool) -> None:
    if not same_rows(wanted, got, ordered):
        raise Mismatch(f"{what}\n  expected {wanted}\n  got      {got}")


def _target(restart: bool) -> Target:
    def run(case: Case, request: pytest.FixtureRequest) -> int:
        return run_case(case, restart)

    return Target(run)


QUERIES = Language(
    "siddhi-cep",
    "SiddhiQL: windows, patterns, sequences, joins, tables, partitions, output rates",
    {"rows": _target(False), "rows, a new process before every step": _target(True)},
    topic=lambda case: str(case.get("topic") or case["id"]).split("_")[0],
)
