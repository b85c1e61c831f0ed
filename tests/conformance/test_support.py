"""The support table is made from the conformance run, so it must say what the run says."""

from __future__ import annotations

from tests.conformance.gaps import GAPS
from tests.conformance.stores import STORES
from tests.conformance.support import CASES, PAGE, TOPICS, by_marks, load, render

ALL = load(CASES)


def test_the_support_page_says_what_a_run_of_the_marked_cases_gives() -> None:
    assert PAGE.read_text() == render(ALL, by_marks(ALL, list(STORES))), "run `python -m tests.conformance.support`"


def test_the_run_so_far_agrees_with_the_marks(outcomes: dict[str, dict[str, bool]]) -> None:
    marked = by_marks(ALL, list(STORES))
    ran = {(case, store): passed for case, found in outcomes.items() for store, passed in found.items()}
    assert ran == {(case, store): marked[case][store] for case, store in ran}


def test_every_gap_and_every_topic_is_on_the_page() -> None:
    page = render(ALL, by_marks(ALL, list(STORES)))
    assert all(f"`{case}`" in page for case in GAPS)
    assert {case["topic"] for case in ALL} == set(TOPICS)


def test_a_case_that_fails_without_a_mark_shows_on_the_page() -> None:
    results = {case: dict(found) for case, found in by_marks(ALL, ["memory"]).items()}
    results["agg_nulls"]["memory"] = False
    page = render(ALL, results)
    assert "`agg_nulls` on memory: fails without a mark." in page
    assert page != render(ALL, by_marks(ALL, ["memory"]))
