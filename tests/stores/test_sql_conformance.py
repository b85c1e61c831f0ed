"""The recorded cases on the SQL stores. They are the widest test there is of types, nulls, restarts and questions, and
here they go through real tables: all of them through PostgreSQL, and those about values and restarts through SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rollup.aggregation.engine import Engine
from rollup.plan.aggregation import Aggregation
from rollup.stores.sql import SqlStore, store_of
from tests.conformance.gaps import GAPS
from tests.conformance.siddhi_runner import load, run_case
from tests.stores.conftest import NewUrl

CASES = [case for case in load(Path(__file__).parents[1] / "conformance" / "siddhi") if case["id"] not in GAPS]
VALUES = [case for case in CASES if case["id"].startswith(("agg_", "recover", "join")) or "OutOfOrder" in str(case["app"])]


def forget(store: SqlStore) -> None:
    """Only the tables survive."""
    store.forget()


@pytest.mark.postgres
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_case_gives_the_recorded_answers_in_postgresql(case: Any, new_url: NewUrl) -> None:
    def make(aggregation: Aggregation, engine: Engine) -> SqlStore:
        return store_of(aggregation, engine, new_url())

    assert run_case(case, make, forget) > 0 or not case["steps"]


@pytest.mark.parametrize("case", VALUES, ids=lambda case: case["id"])
def test_a_case_gives_the_recorded_answers_in_sqlite(case: Any, tmp_path: Path) -> None:
    made: list[SqlStore] = []

    def make(aggregation: Aggregation, engine: Engine) -> SqlStore:
        made.append(store_of(aggregation, engine, f"sqlite:///{tmp_path}/{len(made)}.db"))
        return made[-1]

    assert run_case(case, make, forget) > 0 or not case["steps"]


def test_there_are_enough_cases_to_mean_something() -> None:
    assert len(CASES) >= 150
    assert len(VALUES) >= 30
