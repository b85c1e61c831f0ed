"""Every recorded case of every language, on every target that lives in this process.

This is the test that says what the product does: the answers come from the documents, the reference engines or a
ruling, never from us. A case that cannot pass is marked in gaps.py; here nothing is skipped. What needs a server is in
test_cases_on_servers.py.
"""

from __future__ import annotations

import pytest

from tests.conformance.compare import Case
from tests.conformance.gaps import GAPS
from tests.conformance.language import Language
from tests.conformance.languages import LANGUAGES
from tests.conformance.running import parametrize, take


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        parametrize(metafunc, lambda target: not target.marks)


def test_a_case_gives_the_recorded_answers(
    language: str, name: str, case: Case, target: str, own: bool, request: pytest.FixtureRequest
) -> None:
    take(language, name, case, target, own, request)


def test_every_mark_is_about_a_case_and_a_target_that_exist() -> None:
    assert set(GAPS) <= set(LANGUAGES)
    for language, marks in GAPS.items():
        assert set(marks) <= set(LANGUAGES[language].own)
        named = {target for mark in marks.values() for target in mark.targets or ()}
        assert named <= set(LANGUAGES[language].targets)


@pytest.mark.parametrize("of", LANGUAGES.values(), ids=LANGUAGES)
def test_every_language_has_cases_and_runs_them_somewhere(of: Language) -> None:
    assert of.own, f"no case under tests/conformance/{of.name}"
    assert of.targets


@pytest.mark.parametrize("of", LANGUAGES.values(), ids=LANGUAGES)
def test_the_samples_for_costly_targets_are_a_case_of_each_topic(of: Language) -> None:
    assert sorted(of.topic(of.own[name]) for name in of.samples) == sorted({of.topic(case) for case in of.own.values()})
