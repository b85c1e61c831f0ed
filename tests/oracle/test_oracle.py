"""The oracle itself against the recorded cases: a judge must be judged before it judges.

It reproduces every case that has steps (an app that must be refused has none to take), so what the property tests
compare with is the reference engine under our rulings, not a second opinion of ours.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conformance.compare import Case, Mismatch
from tests.conformance.gaps import GAPS
from tests.conformance.languages import LANGUAGES
from tests.conformance.siddhi.runner import compare_steps
from tests.oracle.cases import OracleRun

CASES = [case for case in LANGUAGES["siddhi"].own.values() if "create_error" not in case["expected"]]
MARKS = GAPS["siddhi"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_oracle_gives_the_recorded_answers(case: Case) -> None:
    contradicted = case["id"] in MARKS and MARKS[case["id"]].kind == "contradicts ruling"
    if contradicted and case["id"] != "per_values":  # the oracle has the levels' words alone, as the reference engine
        with pytest.raises(Mismatch):
            compare_steps(case, OracleRun(case))
    else:
        assert compare_steps(case, OracleRun(case)) > 0


def test_the_oracle_takes_only_the_parser_of_what_it_judges() -> None:
    allowed = {"rollup.core.errors", "rollup.lang.siddhi.apps", "rollup.plan.app"}
    imported = {
        name
        for path in Path(__file__).parent.glob("*.py")
        if path.name not in ("cases.py", "test_oracle.py")
        for name in _imports(path)
    }
    assert {name for name in imported if name.startswith("rollup")} == allowed


def _imports(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return whole | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
