"""Recorded cases of streaming SQL, UQL and StreamCruncher as blocks of an app, in random batches on the local host."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from rollup.hosts.local import LocalHost
from tests.conformance.languages import LANGUAGES as CASES
from tests.statements.recorded import COLUMNS, FEED, LANGUAGES, Told, app, feed


def told(language: str) -> list[Told]:
    """The cases of a language that an app has words for."""
    return [each for case in CASES[language].own.values() if (each := LANGUAGES[language](case)) is not None]


def cut(rows: list[Any], seed: int) -> list[list[Any]]:
    """Rows in random pieces."""
    chance, pieces = random.Random(seed), list[list[Any]]()
    while rows:
        size = chance.choice([1, 5, 60, 200, 400])
        pieces.append(rows[:size])
        rows = rows[size:]
    return pieces


@pytest.mark.parametrize(("language", "least"), [("uql", 60), ("calcite", 30), ("streamcruncher", 80)])
def test_recorded_cases_answer_in_an_app(language: str, least: int) -> None:
    cases = told(language)
    assert len(cases) >= least
    host = LocalHost.of(app(cases))
    for piece in cut(feed(cases), 1):
        host.send(FEED, [[row.get(name) for name in COLUMNS] for row in piece])
    given = {case.out: [table for name, table in host.emitted if name == case.out] for case in cases}
    _compare(cases, given)


def _compare(cases: list[Told], given: Mapping[str, Sequence[pa.Table]]) -> None:
    wrong = list[str]()
    for case in cases:
        try:
            case.compare([list(row.values()) for table in given[case.out] for row in table.to_pylist()])
        except AssertionError as difference:
            wrong.append(str(difference))
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong)
