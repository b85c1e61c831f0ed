"""Collects the outcome of every case of a run in build/conformance.json, from which docs/support.md is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Record = Callable[[str, str, bool], None]
RESULTS = Path(__file__).parents[2] / "build" / "conformance.json"
_outcomes: dict[str, dict[str, bool]] = {}


@pytest.fixture(scope="session")
def outcomes() -> dict[str, dict[str, bool]]:
    """By case and store, whether the case passed; filled while the run goes on."""
    return _outcomes


@pytest.fixture(scope="session")
def record(outcomes: dict[str, dict[str, bool]]) -> Record:
    """Notes the outcome of a case on a store."""

    def note(case: str, store: str, passed: bool) -> None:
        outcomes.setdefault(case, {})[store] = passed

    return note


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What ran replaces what an earlier run wrote about the same case and store; the rest stays."""
    if not _outcomes:
        return
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.parent.mkdir(exist_ok=True)
    both = {case: {**known.get(case, {}), **_outcomes.get(case, {})} for case in {*known, *_outcomes}}
    RESULTS.write_text(json.dumps(both, indent=1, sort_keys=True) + "\n")
