"""Collects the outcome of every case of a run in build/conformance.json, from which docs/support.md is made.

An outcome travels with its test's report, so it reaches the process that was called whichever worker ran the test.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

Results = Mapping[str, Mapping[str, Mapping[str, bool]]]
"""Whether a case passed: by language, by case, by target."""
RESULTS = Path(__file__).parents[2] / "build" / "conformance.json"
_PROPERTY = "conformance"


def note(node: pytest.Item, language: str, case: str, target: str, passed: bool) -> None:
    """Put an outcome into the report of the running test."""
    node.user_properties.append((_PROPERTY, [language, case, target, passed]))


def read(path: Path = RESULTS) -> dict[str, dict[str, dict[str, bool]]]:
    """What the runs so far gave; empty before the first."""
    return json.loads(path.read_text()) if path.exists() else {}


class Collector:
    """A pytest plugin for the process that was called; in a worker it does nothing."""

    def __init__(self, path: Path = RESULTS) -> None:
        self.path = path
        self.found: list[tuple[str, str, str, bool]] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take the outcome out of a report."""
        if report.when == "call":
            self.found.extend(tuple(value) for name, value in report.user_properties if name == _PROPERTY)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """What ran replaces what an earlier run wrote about the same case and target; the rest stays."""
        if not self.found or hasattr(session.config, "workerinput"):
            return
        known = read(self.path)
        for language, case, target, passed in self.found:
            known.setdefault(language, {}).setdefault(case, {})[target] = passed
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
