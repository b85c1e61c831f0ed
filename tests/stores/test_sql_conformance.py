"""The recorded cases on the SQL stores. They are the widest test there is of types, nulls, restarts and questions, and
here they go through real tables: all of them through PostgreSQL, and those about values and restarts through SQLite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollup.stores.postgres import SqlStore, store_of
from tests.conformance.gaps import GAPS
from tests.conformance.siddhi_runner import Survives, load, run_case
from tests.stores.conftest import NewUrl

CASES = [case for case in load(Path(__file__).parents[1] / "conformance" / "siddhi") if case["id"] not in GAPS]
VALUES = [
    case for case in CASES if case["id"].startswith(("agg_", "recover", "join")) or "OutOfOrder" in str(case["app"])
]


def restart(store: SqlStore, survives: Survives, anew: Callable[[], Any]) -> Any:
    """The process ends; what is in the database is opened again."""
    if survives == "tables":
        store.forget()
    if survives == "nothing":
        store.drop()
    return anew()


@pytest.mark.postgres
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_case_gives_the_recorded_answers_in_postgresql(case: Any, new_url: NewUrl) -> None:
    url = new_url()
    assert run_case(case, lambda a, e: store_of(a, e, url), restart) > 0 or not case["steps"]


@pytest.mark.parametrize("case", VALUES, ids=lambda case: case["id"])
def test_a_case_gives_the_recorded_answers_in_sqlite(case: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/case.db"
    assert run_case(case, lambda a, e: store_of(a, e, url), restart) > 0 or not case["steps"]


def test_there_are_enough_cases_to_mean_something() -> None:
    assert len(CASES) >= 150
    assert len(VALUES) >= 30
