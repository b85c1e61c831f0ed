"""Recorded cases of EPL with named windows whose components go over to their programs: events in random batches, each batch
through the checked build of the program, with and without a restart before every step.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from rollup.engine import residence
from rollup.engine.programs.runtime import running
from rollup.live import Engine
from rollup.live.hearing import Arrived
from tests.conformance.compare import Case
from tests.conformance.epl.targets import Run, batched, check, plain, reopened

FOLDER = Path(__file__).parent.parent / "conformance" / "epl"
CASES: dict[str, Case] = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
WITH_WINDOWS = [
    name for name, case in CASES.items() if any("create window" in each["text"].lower() for each in case["epl"])
]
GO_OVER = {
    "nw_basic",
    "nw_faf",
    "nw_late_consumer",
    "nw_on_delete",
    "nw_on_update_order",
    "nw_select_delete",
    "nw_told_together",
    "nw_undeploy",
}
"""The cases whose statements have a program from the beginning, and go over to it."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residence, "_LEAST", 1)
    monkeypatch.setattr(running, "_COMPILED", 1)
    monkeypatch.setattr(residence, "_WORTH", 0)
    monkeypatch.setattr(running.Running, "waits", True)
    monkeypatch.setattr(running.Running, "best", "checked")


class RunOfTables(Run):
    """A case whose statements are heard as tables, so that their component may go over."""

    def __init__(self, case: Case) -> None:
        super().__init__(case, False, 1)
        self.went, self.told = False, list[Any]()
        self.engine.listen_arrow(self._arrived)

    def _arrived(self, each: Arrived) -> None:
        self.went |= self.engine._residence._running is not None  # pyright: ignore[reportPrivateUsage]
        for statement, sign, row in zip(
            *(part.to_pylist() for part in (each.statement, each.sign, each.rows)), strict=True
        ):
            self.told.append({"statement": statement, "insert" if sign > 0 else "remove": [plain(row)]})

    def restarted(self) -> None:
        self.engine = Engine.restored(reopened(self.engine.snapshot()), 1)
        self.engine.listen_arrow(self._arrived)


@pytest.mark.long
def test_the_recorded_cases_that_go_over_are_these() -> None:
    plans = {name: Run(CASES[name], False, 1).engine.plan() for name in WITH_WINDOWS}
    assert {name for name, plan in plans.items() if any(each.executor == "program" for each in plan)} == GO_OVER


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("name", sorted(GO_OVER))
def test_a_recorded_case_through_programs(name: str, restart: bool) -> None:
    run, case = RunOfTables(CASES[name]), CASES[name]
    steps, answers = batched(case["steps"], case["expected"]["steps"], zlib.crc32(name.encode()))
    for step, answer in zip(steps, answers, strict=True):
        if restart:
            run.restarted()
        run.told.clear()
        given = run.step(step)
        check(step, answer, {**given, "out": [*run.told]}, set(case.get("unspecified", ())))
    assert run.went
