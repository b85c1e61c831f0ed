"""One test a case and target, for the test files: those in this process, and those that need a server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.compare import Case, Mismatch
from tests.conformance.gaps import gap
from tests.conformance.language import Target
from tests.conformance.languages import LANGUAGES
from tests.conformance.results import note


def parametrize(metafunc: pytest.Metafunc, wanted: Callable[[Target], bool]) -> None:
    """Give a test function every case of every language on the wanted targets.

    Cases of one target stand together, so that a server is started for all of them at once.
    """
    found = [
        pytest.param(
            language.name,
            name,
            case,
            target,
            own,
            id=f"{language.name}-{target}-{name}" + ("" if own else "-further"),
            marks=[getattr(pytest.mark, mark) for mark in _marks(language.targets[target], own and name in samples)],
        )
        for language in LANGUAGES.values()
        for samples in [language.samples]
        for target in language.targets
        if wanted(language.targets[target])
        for own, cases in ((True, language.own), (False, language.further))
        for name, case in cases.items()
    ]
    metafunc.parametrize(("language", "name", "case", "target", "own"), found)


def _marks(target: Target, sample: bool) -> tuple[str, ...]:
    return target.marks if sample or not target.costly else (*target.marks, "slow")


def take(language: str, name: str, case: Case, target: str, own: bool, request: pytest.FixtureRequest) -> None:
    """Run a case on a target; note the outcome of the project's own cases for the support page.

    Fails when an answer differs and no mark of gaps.py says so, when a marked case passes, and when a case holds no
    answer at all.
    """
    failed: Mismatch | None = None
    compared = 0
    try:
        compared = LANGUAGES[language].targets[target].run(case, request)
    except Mismatch as mismatch:
        failed = mismatch
    passed = failed is None and compared > 0
    if own:
        note(request.node, language, name, target, passed)
    if gap(language, name, target) is not None:
        assert not passed, f"{name} passes on {target}: take its mark out of gaps.py"
    elif failed is not None:
        raise failed
    else:
        assert compared > 0, f"{name} holds no answer: nothing was compared, so nothing has passed"
