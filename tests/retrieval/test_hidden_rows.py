"""Rows that a grant hides change no answer: two jobs that differ in hidden rows alone answer every question alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rollup
from rollup.ask import Asker
from rollup.core.errors import RollupError
from rollup.grants import Grant
from rollup.lifecycle.completeness import remarks
from tests.retrieval.trades import DAY, HOUR, START, STORES, app, host_of

VISIBLE = [[("a", at, START + at * DAY) for at in range(20)], [("a", 1, START + 90 * DAY)], [("a", 5, START + DAY)]]
HIDDEN = [
    [(key, 1, START + at * HOUR) for key in ("b", None) for at in range(-4000, 400, 100)],
    [("b", 7, START + 80 * DAY)],
    [("b", 7, START + 3 * DAY), ("c", 1, START - 300 * DAY)],
]
RANGE = "within '2017-01-01 00:00:00', '2019-01-01 00:00:00'"
QUESTIONS = [
    f"from A {RANGE} per 'days' select AGG_TIMESTAMP, k, total, AGG_LATE_CORRECTED, AGG_REVISION, AGG_FINAL",
    f"from A {RANGE} per 'auto' select *",
    f"from A {RANGE} per 'weeks' select AGG_TIMESTAMP, merge(mean) as m group by AGG_TIMESTAMP",
    f"from A {RANGE} per 'months' select AGG_TIMESTAMP, k, total, previous(total) as p",
    f"from A {RANGE} per 'days' over '7 days' select AGG_TIMESTAMP, k, total",
    f"from A {RANGE} per 'days' fill zero select *",
    f"select max(AGG_TIMESTAMP) as t, count(*) as c, sum(n) as n from A {RANGE} per 'hours'",
    "from A within '2017' per 'days' select *",
    "select * from A within '2017' per 'days' where k = 'b'",
    f"explain from A {RANGE} per 'days' select *",
    "explain from A within '2017' per 'days' select *",
]


@pytest.mark.parametrize("kind", STORES)
def test_no_answer_remark_or_error_depends_on_hidden_rows(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    told: dict[bool, dict[str, Any]] = {True: {}, False: {}}
    for hidden, found in told.items():
        folder = tmp_path / str(hidden)
        folder.mkdir()
        host = host_of(request, folder, app("correct", 0), kind=kind)
        for visible, others in zip(VISIBLE, HIDDEN, strict=True):
            host.send("S", visible + others * hidden)
        asker = Asker(rollup.load(folder / "conf.toml"), grant=Grant(("A",), (("A", "k = 'a'"),)))
        for text in QUESTIONS:
            try:
                answer = asker.query(text)
                found[text] = _rows(answer), remarks(asker, text, answer)
            except RollupError as problem:
                found[text] = str(problem)
    assert told[True] == told[False]
    sums = told[True][QUESTIONS[6]][0]
    assert sums == [{"t": START + 90 * DAY, "c": 21, "n": 22}]


def _rows(answer: pa.Table) -> list[dict[str, Any]]:
    """An answer. Of EXPLAIN the sum of the rows: which of them are closed already depends on all events."""
    if "files_read" not in answer.column_names:
        return answer.to_pylist()
    return answer.group_by(["start", "end", "commit", "version", "files_read"]).aggregate([("rows", "sum")]).to_pylist()
