"""What the cases of EPL run on: event by event, events in random batches, a new process before every step; and both
together with every statement that columns cover over columns from its first event on.

Rules of comparison: per step and statement the insert rows of all deliveries together, likewise the remove rows, as
multisets; empty deliveries do not count; numbers to 1e-9; nothing between statements. Statements that the case calls
`unspecified` are left out, and null rows, which only the reference gives. A step or statement that the reference
refuses must be refused, and no other.
"""

from __future__ import annotations

import io
import json
import math
import random
import zlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rollup.core.errors import RollupError
from rollup.engine.state import State
from rollup.live import Engine
from tests.conformance.compare import Case, Mismatch
from tests.conformance.language import Language, Target

Out = dict[str, tuple[list[Any], list[Any]]]


class Run:
    """One case on one engine."""

    def __init__(self, case: Case, restart: bool, columns: int | None) -> None:
        micro = case.get("config", {}).get("time_unit") == "MICROSECONDS"
        self.case, self.columns = case, columns
        # A restart deploys each statement again: where there are many, not before every step.
        self.restarts_every = 1 + len(case["epl"]) // 20 if restart else 0
        self.steps = 0
        self.engine = Engine(case["start_ms"], "us" if micro else "ms", columns)
        self.refused: set[str] = set()
        for place, text in enumerate(case["schemas"]):
            self.engine.deploy(text, f"schema {place}")
        for statement in case["epl"]:
            self.deploy(statement)

    def deploy(self, statement: Case) -> None:
        """A statement; whether it was refused is known afterwards."""
        self.refused.discard(statement["name"])
        try:
            self.engine.deploy(statement["text"], statement["name"])
        except RollupError as problem:
            if not problem.message:
                raise Mismatch(f"{statement['name']} is refused without a word") from None
            self.refused.add(statement["name"])

    def step(self, step: Case) -> Case:
        """One step; what it gave, in the form of the recording."""
        self.steps += 1
        if self.restarts_every and self.steps % self.restarts_every == 0:
            self.engine = Engine.restored(reopened(self.engine.snapshot()), self.columns)
        given: Case = {}
        try:
            self._do(step, given)
        except RollupError as problem:
            given["error"] = str(problem)
        given["out"] = [
            {"statement": each.statement, "insert": plain(each.new), "remove": plain(each.old)}
            for each in self.engine.heard()
        ]
        return given

    def _do(self, step: Case, given: Case) -> None:
        engine = self.engine
        match step:
            case {"send": str() as stream}:
                engine.send(stream, step.get("data", {}))
            case {"send_all": str() as stream}:
                engine.send(stream, step["data"])
            case {"advance_to_ms": int() as to}:
                engine.jump(to)
            case {"advance_span_to_ms": int() as to}:
                engine.advance(to)
            case {"faf": str() as text}:
                given["faf_rows"] = plain(engine.query(text))
            case {"iterate": str() as statement}:
                given["rows"] = plain(engine.rows(statement))
            case {"deploy": statement}:
                self.deploy(statement)
            case {"undeploy": str() as name}:
                engine.undeploy(name)
            case {"partitions": _} | {"filters": _} | {"filter_count": _}:
                pass  # how the reference keeps its partitions and indexes
            case _:
                raise AssertionError(f"unknown step {step}")


def reopened(state: State) -> State:
    """A state as another process reads it back."""
    tables = {name: _reread(table) for name, table in state.tables.items()}
    return State(tables, json.loads(json.dumps(dict(state.scalars))))


def _reread(table: pa.Table) -> pa.Table:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def plain(value: Any) -> Any:
    """A value as the recordings write it."""
    if isinstance(value, dict):
        return {_key(name): plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _key(value: Any) -> str:
    """The key of a map as JSON has it."""
    return value if isinstance(value, str) else json.dumps(value)


def batched(steps: Sequence[Case], expected: Sequence[Case], seed: int) -> tuple[list[Case], list[Case]]:
    """The steps with neighbouring events of one stream sent together, cut at random, and what they give together."""
    chance = random.Random(seed)
    joined: list[Case] = []
    answers: list[Case] = []
    for step, answer in zip(steps, expected, strict=True):
        last = joined[-1] if joined else {}
        same = "send" in step and last.get("send_all") == step["send"] and "error" not in answer
        if same and chance.random() < 0.8:
            last["data"].append(step.get("data", {}))
            answers[-1]["out"] += answer["out"]
        elif "send" in step and "error" not in answer:
            joined.append({"send_all": step["send"], "data": [step.get("data", {})]})
            answers.append({"out": list(answer["out"])})
        else:
            joined.append(step)
            answers.append(answer)
    return joined, answers


def run_case(case: Case, batches: bool = False, restart: bool = False, columns: int | None = None) -> int:
    """Run a case; how many answers were compared. `columns`: from batches of so many events on, over columns."""
    run = Run(case, restart, columns)
    expected = case["expected"]
    wanted = {d["name"] for d in expected["deployed"] if "compile_error" in d or "deploy_error" in d}
    if run.refused != wanted:
        raise Mismatch(f"refused: {sorted(run.refused)}, should be {sorted(wanted)}")
    run.engine.heard()
    steps, answers = case["steps"], expected["steps"]
    if batches:
        steps, answers = batched(steps, answers, zlib.crc32(case["name"].encode()))
    unspecified = set(case.get("unspecified", ()))
    compared = len(case["epl"])  # each is accepted or refused as it must be
    for step, answer in zip(steps, answers, strict=True):
        given = run.step(step)
        compared += check(step, answer, given, unspecified)
        if "deploy" in step and ("compile_error" in answer["deployed"]) != (step["deploy"]["name"] in run.refused):
            raise Mismatch(f"{step}: {'accepted' if 'compile_error' in answer['deployed'] else 'refused'}")
    return compared


def check(step: Case, wanted: Case, given: Case, unspecified: set[str]) -> int:
    """Raise Mismatch where a step's answer differs; how many answers were compared."""
    what = json.dumps(step)[:160]
    if ("error" in wanted) != ("error" in given):
        raise Mismatch(f"{what}: refused {wanted.get('error')!r}, here {given.get('error')!r}")
    left, right = by_statement(wanted["out"]), by_statement(given["out"])
    compared = int("error" in wanted)
    for name in sorted({*left, *right} - unspecified):
        for side, one, other in zip(
            ("insert", "remove"), left.get(name, ([], [])), right.get(name, ([], [])), strict=True
        ):
            if not same_rows(one, other):
                raise Mismatch(f"{what}: {name} {side}\n  expected {one}\n  got      {other}")
            compared += 1
    for kind in ("rows", "faf_rows"):
        if kind in wanted and "error" not in wanted:
            if not same_rows(wanted[kind], given.get(kind) or []):
                raise Mismatch(f"{what}: {kind}\n  expected {wanted[kind]}\n  got      {given.get(kind)}")
            compared += 1
    return compared


def by_statement(deliveries: Sequence[Case]) -> Out:
    """The rows of a step by statement, those that come and those that leave."""
    found: Out = {}
    for each in deliveries:
        new, old = found.setdefault(each["statement"], ([], []))
        new += each.get("insert") or []
        old += each.get("remove") or []
    return found


def same_rows(wanted: Sequence[Any], given: Sequence[Any]) -> bool:
    """Whether rows are the same, as multisets; null rows do not count."""
    left = [row for row in given if row is not None]
    rows = [row for row in wanted if row is not None]
    if len(left) != len(rows):
        return False
    for row in rows:
        place = next((n for n, other in enumerate(left) if same(row, other)), None)
        if place is None:
            return False
        del left[place]
    return True


def same(a: Any, b: Any) -> bool:
    """Whether two values are the same: numbers nearly, rows by name, lists in order."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(a, dict) and isinstance(b, dict):
        return set(a) == set(b) and all(same(value, b[name]) for name, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(*pair) for pair in zip(a, b, strict=True))
    return a == b


def topic(case: Case) -> str:
    """The part of the language that a case is about, by the first word of its name."""
    return str(case["name"]).split("_")[0]


EPL = Language(
    "epl",
    "Esper EPL",
    {
        "event by event": Target(lambda case, request: run_case(case)),
        "random batches": Target(lambda case, request: run_case(case, batches=True)),
        "restarts": Target(lambda case, request: run_case(case, restart=True)),
        "columns": Target(lambda case, request: run_case(case, batches=True, restart=True, columns=1)),
    },
    topic=topic,
    topics={
        "agg": "Aggregation functions",
        "assign": "Assignments: types",
        "contained": "Contained events",
        "ctx": "Contexts",
        "doc": "Every statement of the document",
        "expr": "Expressions",
        "faf": "Requests with parameters and indexes",
        "join": "Joins",
        "filter": "Filters: types, nulls",
        "insert": "Insert: columns, types",
        "key": "Keys: arrays, what is no number",
        "nw": "Named windows",
        "out": "Output rates, timers late",
        "outspan": "Output rates, timers on time",
        "pat": "Patterns",
        "split": "Split streams",
        "stmt": "Statements: order, refusals",
        "stream": "Insert and remove stream, insert into",
        "subq": "Sub-queries",
        "tbl": "Tables",
        "var": "Variables",
        "win": "Windows",
    },
)
