"""The law of the house: however a sequence of events is cut into batches and tasks, the outputs are the same.

Two kinds of test on the same random input: cut against whole (finds what depends on a boundary), and both against the
event-at-a-time oracle (finds what is wrong everywhere alike). Values are whole numbers and powers of two, so equality
is exact but for means and second moments.
"""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rollup.lang.siddhi.apps import parse_query
from rollup.retrieval.questions import plan
from tests.aggregation.rig import SETUPS, Outputs, Rig, Row, Setup, conserved, events, oracle, oracle_outputs, rig, tell
from tests.oracle import local_time as time
from tests.profiles import examples

_INEXACT = ("AGG_MEAN_", "AGG_M2_", "sdev")


@st.composite
def sequences(draw: st.DrawFn) -> tuple[Setup, list[Row], list[int], list[int]]:
    """A setup, events, the places where batches are cut, and the task that folds each event."""
    setup = draw(st.sampled_from(SETUPS))
    rows = draw(events(setup))
    cuts = sorted(draw(st.sets(st.integers(1, len(rows)), max_size=4)) - {len(rows)})
    tasks = draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    return setup, rows, cuts, tasks


def run(run_on: Rig, rows: list[Row], cuts: list[int], tasks: list[int], first: int = 0) -> None:
    """Send events in batches that end at the cuts."""
    for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        run_on.send(rows[low:high], first + low, tasks[low:high])


def same_rows(found: dict[Any, dict[str, Any]], wanted: dict[Any, dict[str, Any]], what: str) -> None:
    """Equal rows; of `found`, only the columns that `wanted` has."""
    assert set(found) == set(wanted), what
    for identity, row in wanted.items():
        for name, value in row.items():
            other = found[identity][name]
            if name.startswith(_INEXACT) and value is not None and other is not None:
                assert math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-6), (what, identity, name)
            else:
                assert other == value, (what, identity, name, other, value)


def same(found: Outputs, wanted: Outputs) -> None:
    """Equal outputs, with the name of what differs."""
    for level in wanted.tables:
        same_rows(found.tables[level], wanted.tables[level], f"table {time.NAMES[level]}")
        same_rows(found.running[level], wanted.running[level], f"open rows {time.NAMES[level]}")
    assert found.clocks == wanted.clocks
    assert found.ledger == wanted.ledger
    assert found.resume == wanted.resume


@examples(9)
@given(sequences())
def test_cut_and_whole_and_oracle_agree(drawn: tuple[Setup, list[Row], list[int], list[int]]) -> None:
    setup, rows, cuts, tasks = drawn
    judge = oracle(setup)
    refused = tell(judge, rows, 0)
    run(rig(setup).fresh(), rows, [], [0] * len(rows))
    whole = rig(setup).outputs()
    same(whole, oracle_outputs(judge))
    run(rig(setup).fresh(), rows, cuts, tasks)
    parts = rig(setup).outputs()
    same(parts, whole)
    assert set(conserved(parts, len(rows) - refused).values()) == {0}


@examples(4)
@given(sequences(), st.data())
def test_a_rebuild_from_the_tables_alone_agrees_with_the_oracle(
    drawn: tuple[Setup, list[Row], list[int], list[int]], data: st.DataObject
) -> None:
    setup, rows, cuts, tasks = drawn
    again = data.draw(st.integers(0, len(rows)), label="events sent again after the rebuild, from the end")
    resent = rows[len(rows) - again :] + data.draw(events(setup, most=8), label="then these")
    judge, real = oracle(setup), rig(setup).fresh()
    tell(judge, rows, 0)
    judge.rebuild()
    run(real, rows, cuts, tasks)
    real.store.last = None
    real.pipeline.number = 0
    real.pipeline.state = type(real.pipeline.state).empty(real.aggregation)
    real.pipeline.start()
    same(real.outputs(), oracle_outputs(judge))
    tell(judge, resent, len(rows))
    run(real, resent, [len(resent) // 2] if len(resent) > 1 else [], [0, 1] * len(resent), len(rows))
    same(real.outputs(), oracle_outputs(judge))


@examples(4)
@given(sequences(), st.data())
def test_an_answer_is_stored_and_open_rows_once_each(
    drawn: tuple[Setup, list[Row], list[int], list[int]], data: st.DataObject
) -> None:
    setup, rows, cuts, tasks = drawn
    judge, real = oracle(setup), rig(setup).fresh()
    tell(judge, rows, 0)
    run(real, rows, cuts, tasks)
    level = data.draw(st.sampled_from(judge.levels))
    starts = sorted({row["AGG_TIMESTAMP"] for row in judge.buckets(level, -(10**14), 10**14)}) or [0]
    low = data.draw(st.sampled_from(starts)) + data.draw(st.sampled_from([0, 0, 1]))
    high = max(low + 1, data.draw(st.sampled_from(starts)) + data.draw(st.sampled_from([0, 1])))
    text = f"from A within {low}L, {high}L per '{time.NAMES[level].lower()}' select *"
    found = real.store.snapshot().answer(plan(parse_query(text), {"A": real.aggregation})).to_pylist()
    names = ("AGG_TIMESTAMP", "k", "g")
    wanted = {
        tuple(row[name] for name in names): {n: v for n, v in row.items() if n != "AGG_EVENTS"}
        for row in judge.buckets(level, low, high)
    }
    assert len(found) == len(wanted)
    same_rows({tuple(row[name] for name in names): row for row in found}, wanted, text)
