"""Every recorded case of `define aggregation` and `within … per`, on every store.

This is the test that says what the product does: the answers come from the document, the reference engine or a ruling,
never from us. A case that cannot pass is marked in gaps.py; here nothing is skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conformance.compare import Case, Mismatch
from tests.conformance.conftest import Record
from tests.conformance.gaps import GAPS, gap
from tests.conformance.siddhi_runner import load, run_case
from tests.conformance.stores import STORES

OWN = load(Path(__file__).parent / "siddhi")
FURTHER = load(Path(os.environ["ROLLUP_CASES"]) / "siddhi") if "ROLLUP_CASES" in os.environ else []


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("case", [*OWN, *FURTHER], ids=lambda case: case["id"])
def test_a_case_gives_the_recorded_answers_on_a_store(
    case: Case, store: str, request: pytest.FixtureRequest, record: Record
) -> None:
    mark = gap(case["id"], store)
    failed: Mismatch | None = None
    try:
        compared = run_case(case, STORES[store].make(request), STORES[store].restart)
    except Mismatch as mismatch:
        failed, compared = mismatch, 1
    if case in OWN:
        record(case["id"], store, failed is None)
    if mark is not None:
        assert failed is not None, f"{case['id']} passes on {store}: take its mark out of gaps.py"
    elif failed is not None:
        raise failed
    assert compared > 0 or not case["steps"], "a case with steps compares something"


def test_every_mark_is_about_a_case_and_a_store_that_exist() -> None:
    assert set(GAPS) <= {case["id"] for case in OWN}
    assert {store for mark in GAPS.values() for store in mark.stores or ()} <= set(STORES)


def test_the_folder_holds_all_cases_and_each_has_an_answer() -> None:
    assert len(OWN) >= 156
    assert [case["id"] for case in OWN if case["expected"] is None] == []
