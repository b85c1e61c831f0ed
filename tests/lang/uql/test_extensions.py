"""Aggregate functions that a catalog brings along: they run like the known ones, and what is wrong with them is said."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from rollup.core.errors import RollupError
from rollup.lang.uql.catalog import Catalog
from rollup.lang.uql.plan import plan
from rollup.lang.uql.run import run
from tests.conformance.uql.targets import pieces, run_case, whole

SPREAD = """
def start():
    return None

def enter(seen, x):
    return (x, x) if seen is None else (min(seen[0], x), max(seen[1], x))

def value(seen):
    return seen[1] - seen[0] if seen else None
"""
JOINED = "def start(): return ''\ndef enter(text, x): return text + x\ndef value(text): return text\n"
FIELDS = [{"name": "g", "type": "text"}, {"name": "x", "type": "integer64"}, {"name": "t", "type": "timestamp"}]
QUERY = (
    "from foo group by g window slice 10 seconds based on t aggregate spread(x) as s, joined(g) as j, max(x) as m "
    "where s > 0 append s, j, m to bar"
)


def _catalog(folder: Path, *functions: dict[str, str]) -> dict[str, Any]:
    return {
        "schemas": [{"name": "foo", "fields": FIELDS}],
        "functions": [{**function, "file": str(folder / function["file"])} for function in functions],
    }


@pytest.fixture
def catalog(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "spread.py").write_text(SPREAD)
    (tmp_path / "joined.py").write_text(JOINED)
    spread = {"name": "spread", "file": "spread.py", "type": "integer64"}
    return _catalog(tmp_path, spread, {"name": "joined", "file": "joined.py", "type": "text"})


@pytest.mark.parametrize("cuts", [whole, pieces(1), pieces(2), pieces(3)])
def test_they_run_beside_the_known_ones_however_the_rows_are_cut(catalog: dict[str, Any], cuts: Any) -> None:
    rows = [("a", "5", 1), ("b", "1", 2), ("a", "", 3), ("a", "9", 4), ("b", "1", 5), ("b", "4", 11), ("b", "-4", 19)]
    case = {
        "schema": catalog,
        "query": QUERY,
        "input_rows": [f"{g}|{x}|2030-01-01T17:00:{second:02d}Z" for g, x, second in rows],
        "expected": [["4", "aaa", "9", "a"], ["8", "bb", "4", "b"]],
        "order": "listed",
    }
    assert run_case(case, cuts, restart=True) > 0


def _refused(catalog: dict[str, Any], rows: bytes = b"a|1|2030-01-01T17:00:01Z\n") -> str:
    query = "from foo window slice 1 rows aggregate own(x) as s append s to bar"
    with pytest.raises(RollupError) as refusal:
        list(run(plan(query, Catalog.of(catalog)), io.BytesIO(rows), io.BytesIO()))
    return str(refusal.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_the_kind", "cannot be loaded: ModuleNotFoundError"),
        ("def start(): return 0", r"does not define enter, value (start(), enter(state, x), value(state))"),
        ("def start(): return 0\ndef enter(n, x): return n / 0\ndef value(n): return n", "own failed in enter: Zero"),
        ("def start(): return 0\ndef enter(n, x): return n\ndef value(n): return 'many'", "own gave what is no int64"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "own.py").write_text(text)
    assert said in _refused(_catalog(tmp_path, {"name": "own", "file": "own.py", "type": "integer64"}))


def test_a_function_of_the_catalog_needs_a_name_of_its_own_a_file_and_a_type(tmp_path: Path) -> None:
    assert "own" in _refused(_catalog(tmp_path, {"name": "own", "file": "gone.py"}))
    assert "sum of the catalog's functions is one already" in _refused(
        _catalog(tmp_path, {"name": "sum", "file": "s.py"})
    )
    assert "unknown type: number" in _refused(_catalog(tmp_path, {"name": "own", "file": "o.py", "type": "number"}))
    assert "own of the catalog's functions names no file" in _refused(
        {**_catalog(tmp_path), "functions": [{"name": "hll", "library": "hll.so"}, {"name": "own"}]}
    )


def test_the_file_stands_beside_the_catalog(tmp_path: Path) -> None:
    (tmp_path / "spread.py").write_text(SPREAD)
    function = '{"name": "spread", "file": "spread.py", "type": "integer64"}'
    fields = '[{"name": "x", "type": "integer64"}]'
    (tmp_path / "catalog.json").write_text(
        f'{{"schemas": [{{"name": "foo", "fields": {fields}}}], "functions": [{function}]}}'
    )
    sink = io.BytesIO()
    query = "from foo window slice 2 rows aggregate spread(x) as s append s to bar"
    list(run(plan(query, Catalog.read(tmp_path / "catalog.json")), io.BytesIO(b"1\n5\n"), sink))
    assert sink.getvalue() == b"4\n"
