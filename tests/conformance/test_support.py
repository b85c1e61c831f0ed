"""The support table is made from the conformance run, so it must say what the run says, whoever ran the cases.

That a result equals its mark is tested case by case (a marked case that passes fails its test); so the page is right
exactly if it is the page of the marks. What is left to show: no result is lost on its way to the page.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.features import cases, features
from tests.conformance.gaps import GAPS
from tests.conformance.languages import LANGUAGES
from tests.conformance.results import read
from tests.conformance.support import PAGE, by_marks, render

ROOT = Path(__file__).parents[2]


def test_the_support_page_says_what_a_run_of_the_marked_cases_gives() -> None:
    assert PAGE.read_text() == render(by_marks()), "run `python -m tests.conformance.support`"


def test_every_gap_and_every_topic_is_on_the_page() -> None:
    page = render(by_marks())
    assert all(f"`{case}`" in page for marks in GAPS.values() for case in marks)
    for language in LANGUAGES.values():
        assert set(language.topics) <= {language.topic(case) for case in language.own.values()}


def test_every_feature_of_the_documents_is_shown_by_a_case() -> None:
    listed = features()
    assert {name: len(each) for name, each in listed.items()} == {"uql": 28, "calcite": 36, "streamcruncher": 38}
    known = {name: cases(name) for name in listed}
    missing = [
        f"{name} {each.number}: {word}"
        for name, found in listed.items()
        for each in found
        for word, shown in each.shown(*known[name])
        if not shown
    ]
    assert not missing
    assert all(each.words for found in listed.values() for each in found)


def test_a_case_that_fails_without_a_mark_shows_on_the_page() -> None:
    results = _copy()
    results["siddhi"]["agg_nulls"]["memory"] = False
    page = render(results)
    assert "`agg_nulls` on memory: fails without a mark." in page
    assert page != render(by_marks())


def test_a_case_that_did_not_run_on_a_target_makes_no_page() -> None:
    results = _copy()
    del results["siddhi"]["agg_nulls"]["delta"]
    with pytest.raises(ValueError, match="'agg_nulls' of siddhi has no result on delta"):
        render(results)


def test_results_of_all_workers_reach_the_process_that_was_called(tmp_path: Path) -> None:
    """A run of six tests in two workers: every one of the six writes its outcome, and each worker ran some of them."""
    (tmp_path / "test_many.py").write_text(_SIX)
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "load", "-p", "no:cacheprovider", "."]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    found = read(tmp_path / "results.json")["toy"]
    assert {case: target["here"] for case, target in found.items() if case.startswith("case")} == {
        f"case{number}": number != 3 for number in range(6)
    }
    assert {worker for worker in found if worker.startswith("gw")} == {"gw0", "gw1"}


def test_what_ran_replaces_what_an_earlier_run_wrote_and_the_rest_stays(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"toy": {"case0": {"here": false, "there": true}, "old": {"here": true}}}')
    (tmp_path / "test_many.py").write_text(_SIX)
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "0", "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=120, check=True)
    found = read(tmp_path / "results.json")["toy"]
    assert (found["case0"], found["old"]) == ({"here": True, "there": True}, {"here": True})


def _copy() -> dict[str, dict[str, dict[str, bool]]]:
    return {language: {case: dict(found) for case, found in cases.items()} for language, cases in by_marks().items()}


_CONFTEST = """
from pathlib import Path
from tests.conformance.results import Collector

def pytest_configure(config):
    config.pluginmanager.register(Collector(Path("results.json")))
"""
_SIX = """
import os
import pytest
from tests.conformance.results import note

@pytest.mark.parametrize("number", range(6))
def test_one(number, request):
    note(request.node, "toy", f"case{number}", "here", number != 3)
    note(request.node, "toy", os.environ.get("PYTEST_XDIST_WORKER", "alone"), "here", True)
"""
