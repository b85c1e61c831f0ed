"""Catalogs, models and configurations of any shape: taken or refused in a sentence."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rollup.core.errors import RollupError
from rollup.lang.calcite.model import Model
from rollup.lang.uql.catalog import Catalog

CATALOG = {
    "name": "example",
    "schemas": [
        {
            "name": "foo",
            "format": "csv",
            "fields": [{"name": "x", "type": "integer16", "usage": "data"}, {"name": "t", "type": "timestamp"}],
        }
    ],
    "functions": [{"name": "spread", "file": "spread.py", "type": "float64"}],
}
MODEL = {
    "tables": {
        "Orders": {
            "columns": {"rowtime": "TIMESTAMP", "id": "INTEGER"},
            "kind": "both",
            "monotonic": {"rowtime": "increasing"},
            "slack": "5 seconds",
            "key": ["id"],
            "history": "1 hour",
        }
    }
}
CALCITE = {
    "version": "1.0",
    "schemas": [
        {
            "name": "s",
            "tables": [
                {
                    "name": "Orders",
                    "stream": {"stream": True, "history": True},
                    "operand": {"columns": {"rowtime": "TIMESTAMP"}, "key": ["rowtime"]},
                },
                {"name": "Other", "columns": [{"name": "a", "type": "INTEGER"}]},
            ],
        }
    ],
}
INSTEAD: list[Any] = [None, True, 5, -1, 1.5, "", "x", "é'\"", [], [None], [5], ["x"], [[]], {}, {"x": 5}, {"x": {}}]
FORMS: dict[str, tuple[Any, Callable[[Any], object]]] = {
    "catalog": (CATALOG, Catalog.of),
    "model": (MODEL, Model.of),
    "Calcite's model": (CALCITE, Model.of),
}


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _places(value[key], (*path, key))


def _with(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(document)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize("form", list(FORMS))
def test_a_document_is_taken_or_refused_whatever_stands_at_any_place(form: str) -> None:
    document, reader = FORMS[form]
    refused = 0
    for path in _places(document):
        for value in INSTEAD:
            try:
                reader(_with(document, path, value))
            except RollupError as problem:
                assert len(str(problem)) > 10, (path, value)
                refused += 1
            except Exception as problem:
                raise AssertionError(
                    f"{form} with {value!r} at {path}: {type(problem).__name__}: {problem}"
                ) from problem
    assert refused > 20


@pytest.mark.parametrize("form", list(FORMS))
def test_the_documents_themselves_are_taken(form: str) -> None:
    document, reader = FORMS[form]
    reader(document)
