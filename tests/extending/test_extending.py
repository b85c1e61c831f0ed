"""What a newcomer adds: one file and one line of registration each, and the pipeline takes it as one of its own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rollup.core.errors import RollupError, SourceError
from rollup.hosts.local import LocalHost
from rollup.hosts.spark.tasks.results import Kind, read
from rollup.hosts.spark.tasks.task import TaskSpec, run
from rollup.plan import aggregates, functions
from rollup.plan.aggregation import EVENTS
from rollup.program import compile_app
from rollup.sources import registry
from tests.extending.dice import Dice
from tests.extending.initial import INITIAL
from tests.extending.spread import SPREAD

_BY_KEY = """
define stream Throws (who string, points long, ts long);
define aggregation Games from Throws select {selected} group by {key} aggregate by ts every sec ... hour;
"""
_ROWS = [("ann", 5, 0), ("bob", 2, 0), ("ann", 1, 500), ("abe", 3, 61_000), ("ann", 6, 62_000)]


def _hourly(app: str, asked: str) -> list[dict[str, Any]]:
    host = LocalHost.of(app)
    for row in _ROWS:  # one event a batch: the answer is put together from partial rows of many
        host.send("Throws", [row])
    return host.query(f"from Games within '1970-01-01 **:**:**' per 'hours' select {asked} order by who").to_pylist()


def test_an_aggregate_is_one_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    app = _BY_KEY.format(selected="who, spread(points) as range, min(points) as least", key="who")
    with pytest.raises(RollupError, match="spread"):
        compile_app(app)
    monkeypatch.setitem(aggregates.AGGREGATES, "spread", SPREAD)  # type: ignore[arg-type]
    assert _hourly(app, "who, range, least") == [
        {"who": "abe", "range": 0, "least": 3},
        {"who": "ann", "range": 5, "least": 1},
        {"who": "bob", "range": 0, "least": 2},
    ]
    assert sum(name.startswith("AGG_MIN") for name in compile_app(app).aggregations["Games"].kinds) == 1


def test_a_function_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    app = (
        "define stream Sent (name string, points long, ts long);"
        "from Sent select initial(name) as who, points, ts insert into Throws;"
        + _BY_KEY.format(selected="who, sum(points) as total", key="who")
    )
    with pytest.raises(RollupError, match="initial"):
        compile_app(app)
    monkeypatch.setitem(functions.FUNCTIONS, "initial", INITIAL)  # type: ignore[arg-type]
    host = LocalHost.of(app)
    host.send("Sent", _ROWS)
    found = host.query("from Games within '1970-01-01 **:**:**' per 'hours' select who, total order by who").to_pylist()
    assert found == [{"who": "a", "total": 15}, {"who": "b", "total": 2}]


def test_a_source_is_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    app = _BY_KEY.format(selected="who, sum(points) as total", key="who")
    spec = TaskSpec(app, "+00:00", "Throws", {"kind": "dice", "sides": 2})
    batch = pa.RecordBatch.from_pydict({"__arrival": [0, 1], "throws": [4, 3]})
    with pytest.raises(RollupError, match="unknown kind 'dice'"):
        list(run(spec, iter([batch])))
    monkeypatch.setitem(registry.KINDS, "dice", Dice)  # type: ignore[arg-type]
    results = [result for found in run(spec, iter([batch])) for result in read(found)]
    (partials,) = (result.table() for result in results if result.kind is Kind.PARTIALS)
    assert sum(partials[EVENTS].to_pylist()) == 7
    (total,) = (name for name in partials.column_names if name.startswith("AGG_SUM"))
    assert sum(partials[total].to_pylist()) == (1 + 2 + 1 + 2) + (1 + 2 + 1)


def test_a_source_whose_rows_do_not_say_which_they_are_is_told_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.KINDS, "dice", Dice)  # type: ignore[arg-type]
    spec = TaskSpec(_BY_KEY.format(selected="who", key="who"), "+00:00", "Throws", {"kind": "dice"})
    with pytest.raises(SourceError, match=r"\(throws\) do not say which input they are .*`path` names a file"):
        list(run(spec, iter([pa.RecordBatch.from_pydict({"throws": [4]})])))
