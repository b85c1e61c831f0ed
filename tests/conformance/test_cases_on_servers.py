"""Every recorded case of every language, on the targets that need a server: see test_cases.py."""

from __future__ import annotations

import pytest

from tests.conformance.compare import Case
from tests.conformance.running import parametrize, take


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, lambda target: bool(target.marks))


@pytest.mark.few(16)
def test_a_case_gives_the_recorded_answers(
    language: str, name: str, case: Case, target: str, own: bool, request: pytest.FixtureRequest
) -> None:
    take(language, name, case, target, own, request)
