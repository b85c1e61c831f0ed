"""Cases whose answers were worked out by hand from the documents and rulings: variations of what the recorded ones show.

One JSON line a case in `by_hand/<language>.jsonl`, in the form of the recorded cases; each runs in random pieces with a
new process between them. The `quick` ones (what was once wrong, and one of each kind) run always, all of them in `make crash`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.calcite.targets import run_case as calcite
from tests.conformance.compare import Case
from tests.conformance.streamcruncher.targets import run_case as streamcruncher
from tests.conformance.uql.targets import pieces
from tests.conformance.uql.targets import run_case as uql

RUN: dict[str, Callable[[Case], int]] = {
    "uql": lambda case: uql(case, pieces(2), restart=True),
    "calcite": lambda case: calcite(case, pieces(4), restart=True),
    "streamcruncher": lambda case: streamcruncher(case, restart=True, columns=True),
}
CASES = [
    pytest.param(language, case, id=f"{language}-{case['name']}", marks=() if case.get("quick") else pytest.mark.slow)
    for language in RUN
    for case in map(json.loads, (Path(__file__).parent / "by_hand" / f"{language}.jsonl").read_text().splitlines())
]


@pytest.mark.parametrize(("language", "case"), CASES)
def test_a_case_gives_what_was_worked_out(language: str, case: Case) -> None:
    assert RUN[language](case) > 0
