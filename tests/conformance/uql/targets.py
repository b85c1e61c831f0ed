"""What the cases of UQL run on: the input as one batch, row by row, and in random pieces with a new process in between."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from rollup.core.errors import RollupError
from rollup.engine.state import State
from rollup.lang.uql.catalog import Catalog
from rollup.lang.uql.chain import Chain, States
from rollup.lang.uql.egress import lines
from rollup.lang.uql.ingress import Ingress
from rollup.lang.uql.plan import plan
from tests.conformance.compare import Case, Mismatch
from tests.conformance.language import Language, Target

Cuts = Callable[[int], Iterator[int]]
"""The sizes of the pieces in which so many rows are handed over."""


def reopened(states: States) -> States:
    """The states as another process reads them back: Arrow's own form for tables, JSON for numbers."""
    return tuple(
        State(
            {name: _reread(table) for name, table in state.tables.items()}, json.loads(json.dumps(dict(state.scalars)))
        )
        for state in states
    )


def _reread(table: pa.Table) -> pa.Table:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def whole(rows: int) -> Iterator[int]:
    """All rows at once."""
    yield rows


def single(rows: int) -> Iterator[int]:
    """Row by row."""
    yield from [1] * rows


def pieces(seed: int) -> Cuts:
    """Random pieces, small ones mostly."""

    def cut(rows: int) -> Iterator[int]:
        chance = random.Random(seed)
        while rows > 0:
            size = min(rows, chance.choice([1, 1, 2, 3, 5, 8, 100]))
            rows -= size
            yield size

    return cut


def run_case(case: Case, cuts: Cuts, restart: bool = False) -> int:
    """Run a case with its input cut in a way; `restart`: every piece goes to a new process. Returns what was compared."""
    try:
        plans = plan(case["query"], Catalog.of(case["schema"]))
    except RollupError as refusal:
        if not case.get("expected_error"):
            raise Mismatch(f"refused: {refusal}") from None
        if refusal.line is None:
            raise Mismatch(f"the refusal names no place: {refusal}") from None
        return 1
    if case.get("expected_error"):
        raise Mismatch(f"accepted, though it must be refused: {case['message_like']}")
    chain, ingress = Chain(plans), Ingress(plans[0].table, plans[0].texts)
    states, text, refused = chain.start(), b"", list[int]()
    at, times = 0, [ms * 1000 for ms in case.get("input_times_ms", [0] * len(case["input_rows"]))]
    for size in cuts(len(case["input_rows"])):
        rows, bad = ingress.read("".join(f"{row}\n" for row in case["input_rows"][at : at + size]).encode())
        refused += [row.line - 1 for row in bad]
        states, output = chain.step(states, rows, _arrivals(times[at : at + size], rows.num_rows))
        text += lines(output, plans[-1].outputs)
        at += size
        states = reopened(states) if restart else states
    text += lines(chain.finish(states, times[-1] if times else 0)[1], plans[-1].outputs)
    return _compare(case, text, refused)


def _arrivals(times: list[int], rows: int) -> int | list[int]:
    return times if len(times) == rows else times[0]


def _compare(case: Case, text: bytes, refused: list[int]) -> int:
    found = list(csv.reader(io.StringIO(text.decode(), newline=""), delimiter="|"))
    wanted = [[str(value) for value in row] for row in case["expected"]]
    if case["order"] != "listed":  # rows of one close are a set: which rows those are the output does not say
        found, wanted = sorted(found), sorted(wanted)
    same = len(found) == len(wanted) and all(_row(case, *pair) for pair in zip(wanted, found, strict=True))
    if not same:
        raise Mismatch(f"wanted {wanted}\nfound  {found}")
    if "refused_rows" in case and refused != [row["row"] for row in case["refused_rows"]]:
        raise Mismatch(f"rows set aside: wanted {case['refused_rows']}, found {refused}")
    return 1 + len(case.get("refused_rows", ()))


def _row(case: Case, wanted: list[str], found: list[str]) -> bool:
    tolerance: dict[str, Any] = case.get("tolerance", {})
    if "column" in tolerance:
        place = tolerance["column"]
        near = abs(float(wanted[place]) - float(found[place])) <= tolerance["relative"] * float(wanted[place])
        return near and [*wanted[:place], *wanted[place + 1 :]] == [*found[:place], *found[place + 1 :]]
    return wanted == found


def _target(cuts: Cuts, restart: bool = False) -> Target:
    def run(case: Case, request: pytest.FixtureRequest) -> int:
        return run_case(case, cuts, restart)

    return Target(run)


def topic(case: Case) -> str:
    """The part of the language that a case is about, by the words of its name."""
    words = {"slide": "slide", "session": "session", "agg": "aggregates", "where": "conditions", "group": "groups"}
    words |= {"slice": "slice", "every": "slice", "live": "wall clock", "err": "refusals", "unknown": "refusals"}
    return next((words[word] for word in case["name"].split("_") if word in words), "text, catalog, numbers")


UQL = Language(
    "uql",
    "Grizzly UQL",
    {
        "one batch": _target(whole),
        "row by row": _target(single),
        "random batches": _target(pieces(1)),
        "restarts": _target(pieces(2), restart=True),
    },
    topic=topic,
)
