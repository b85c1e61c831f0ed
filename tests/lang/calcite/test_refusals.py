"""What is refused when a query is prepared, and when a model is read: each with what would make it valid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rollup.core.errors import ConfigError, RollupError
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.session import Session

TABLES: dict[str, Any] = {
    "Orders": {
        "columns": {"rowtime": "TIMESTAMP", "productId": "INTEGER", "orderId": "INTEGER", "units": "INTEGER"},
        "monotonic": {"rowtime": "increasing"},
        "kind": "both",
    },
    "Shipments": {
        "columns": {"rowtime": "TIMESTAMP", "orderId": "INTEGER"},
        "monotonic": {"rowtime": "increasing"},
        "kind": "stream",
    },
    "Products": {"columns": {"rowtime": "TIMESTAMP", "productId": "INTEGER", "name": "VARCHAR", "unitPrice": "DOUBLE"}},
}
CASES = [
    case.split("\n=> ")
    for case in (Path(__file__).parent / "mistakes.txt").read_text().strip().split("\n\n")
    if not case.startswith("#")
]


@pytest.mark.parametrize(("query", "message"), CASES, ids=lambda text: text[:60])
def test_a_mistake_is_refused_when_the_query_is_prepared(query: str, message: str) -> None:
    with pytest.raises(RollupError) as refusal:
        Session(Model.of({"tables": TABLES})).prepare(query)
    assert message in str(refusal.value)
    assert refusal.value.line is not None, "where"
    assert refusal.value.hint, "what would make it valid"


def test_there_are_mistakes_to_try() -> None:
    assert len(CASES) >= 35


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "the model has no tables"),
        ({"tables": {"a": {}}}, "a has no columns"),
        ({"tables": {"a": {"columns": {"x": "NOPE"}}}}, "a.x: unknown type 'NOPE'"),
        (
            {"tables": {"a": {"columns": {"x": "INTEGER"}, "kind": "queue"}}},
            "a kind is 'queue' (one of stream, table, both)",
        ),
        ({"tables": {"a": {"columns": {"x": "INTEGER"}, "kinds": "stream"}}}, "a has an unknown key `kinds`"),
        ({"tables": {"a": {"columns": {"x": "INTEGER"}, "monotonic": {"x": "up"}}}}, "'up' is no way to move"),
        ({"tables": {"a": {"columns": {"x": "INTEGER"}, "monotonic": {"y": "increasing"}}}}, "a has no column 'y'"),
        ({"tables": {"a": {"columns": {"x": "INTEGER"}, "slack": "a while"}}}, "slack 'a while' is no span"),
    ],
)
def test_a_bad_model_is_refused_with_what_is_wrong(document: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Model.of(document)
    assert message in str(refusal.value)


def test_calcites_own_form_of_a_model_is_read() -> None:
    stream = {
        "name": "Orders",
        "stream": {"stream": True, "history": True},
        "columns": [{"name": "rowtime", "type": "TIMESTAMP"}],
    }
    table = {"name": "Products", "columns": [{"name": "productId", "type": "INTEGER"}]}
    model = Model.of({"version": "1.0", "schemas": [{"name": "SALES", "tables": [stream, table]}]})
    assert [(t.name, t.stream, t.table) for t in model.tables] == [("Orders", True, True), ("Products", False, True)]
