"""Cases of StreamCruncher: rows are submitted at injected times, and each batch that a query gives is compared."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rollup.core.errors import RollupError
from rollup.engine.rows.cycles.running import Batch, Policy
from rollup.lang.streamcruncher.kernel import Cruncher
from tests.conformance.compare import Case, Mismatch, same_rows
from tests.conformance.language import Language, Target
from tests.conformance.uql.targets import reopened


def run_case(case: Case, restart: bool = False, columns: bool = False) -> int:
    """Run a case; `restart`: before every input the state goes to a new process; `columns`: rows come as tables, and what
    columns cover runs over them. Returns how many batches were compared."""
    found = list[Batch]()
    try:
        cruncher = _registered(case, found, columns)
    except RollupError as refusal:
        if not case.get("expected_error"):
            raise Mismatch(f"refused: {refusal}") from None
        if refusal.line is None or not refusal.hint:
            raise Mismatch(f"refused without a place or without a cure: {refusal}") from None
        return 1
    if case.get("expected_error"):
        raise Mismatch(f"accepted, though it must be refused: {case['message_like']}")
    for step in case["input"]:
        if restart:
            states = reopened(tuple(cruncher.snapshot()))
            cruncher, tables = _registered(case, found, columns), case["input"][: case["input"].index(step)]
            for earlier in tables:
                if "sql" in earlier:
                    cruncher.sql(earlier["sql"])
            cruncher.restore(states)
        _take(cruncher, step, columns)
    cruncher.finish()
    last = max([step["at_ms"] for step in case["input"]] + [batch["at_ms"] for batch in case.get("expected") or []])
    cruncher.advance(last)
    return _compare(case, found)


def _registered(case: Case, found: list[Batch], columns: bool) -> Cruncher:
    cruncher = Cruncher(columns=1 if columns else None)
    for stream in case["schema"]:
        fields = {column["name"]: column["type"] for column in stream["columns"]}
        cruncher.define(stream["name"], fields, stream["timestamp_column"])
    for statement in case.get("tables_sql", []):
        cruncher.sql(statement)
    weights, policy = dict[str, str](), None
    for setting in case.get("settings", []):
        word, name, *value = setting.split()
        if word == "weight":
            weights[name] = value[0]
        else:
            policy = Policy("fixed" if name == "FIXED" else "sooner", int(value[0]))
    cruncher.register(case["query"], found.append, weights, policy)
    return cruncher


def _take(cruncher: Cruncher, step: Case, columns: bool) -> None:
    if columns and step.get("rows"):
        stream, rows = step["stream"], step["rows"]
        kinds = cruncher.columns(stream)
        arrays = [
            pa.array(list(values), kind) for values, kind in zip(zip(*rows, strict=True), kinds.values(), strict=True)
        ]
        table = pa.table(arrays, names=list(kinds))
        cruncher.send({stream: table}, {stream: [step["at_ms"]] * len(rows)})
    elif "rows" in step:
        cruncher.submit(step["stream"], step["rows"], step["at_ms"])
    elif "sql" in step:
        cruncher.advance(step["at_ms"])
        cruncher.sql(step["sql"])


def _compare(case: Case, found: list[Batch]) -> int:
    if "expected_property" in case:
        return _drawn(case, found)
    wanted: list[Any] = case["expected"]
    ordered = case["order"] == "listed"
    if [batch.at for batch in found] != [batch["at_ms"] for batch in wanted]:
        raise Mismatch(f"wanted {_shown(wanted)}\nfound  {[(batch.at, batch.rows) for batch in found]}")
    for got, batch in zip(found, wanted, strict=True):
        if not same_rows(batch["rows"], [list(row) for row in got.rows], ordered):
            raise Mismatch(f"at {got.at}: wanted {batch['rows']}\nfound {got.rows}")
    return 1 + len(wanted)


def _shown(wanted: list[Any]) -> list[Any]:
    return [(batch["at_ms"], batch["rows"]) for batch in wanted]


def _drawn(case: Case, found: list[Batch]) -> int:
    """A window that chance fills: never too many, in order of arrival, and some but not all of what came."""
    came = {row[0] for step in case["input"] for row in step["rows"]}
    for batch in found:
        ids = [row[0] for row in batch.rows]
        if len(ids) > 3 or ids != sorted(ids) or not set(ids) <= came:
            raise Mismatch(f"{case['expected_property']}: {ids}")
    return len(found)


def _target(restart: bool, columns: bool = False) -> Target:
    def run(case: Case, request: pytest.FixtureRequest) -> int:
        return run_case(case, restart, columns)

    return Target(run)


STREAMCRUNCHER = Language(
    "streamcruncher",
    "StreamCruncher",
    {
        "rows": _target(False),
        "rows, a new process before every input": _target(True),
        "tables, over columns where they cover, a new process before every input": _target(True, True),
    },
    topic=lambda case: str(case["name"]).removeprefix("doc_").split("_")[0],
)
