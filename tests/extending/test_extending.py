"""What a newcomer adds: one file and one line of registration each, and the pipeline takes it as one of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rollup.ask import Asker
from rollup.conf import load
from rollup.core.errors import ConfigError, PlanError, RollupError, SourceError, SyntaxProblem
from rollup.core.options import Provider, folder, whole
from rollup.hosts.local import LocalHost
from rollup.hosts.spark.tasks.results import Kind, read
from rollup.hosts.spark.tasks.task import TaskSpec, run
from rollup.lang.languages import LANGUAGES, Written
from rollup.plan import aggregates, functions
from rollup.plan.aggregation import EVENTS
from rollup.program import Declaration, compile_app
from rollup.sources import kinds as sources
from rollup.stores import kinds as stores
from rollup.stores.registry import open_store
from tests.extending.initial import INITIAL
from tests.extending.spread import SPREAD

DICE = Provider("tests.extending.dice:Dice", {"sides": whole(2)})
SHELF = Provider("tests.extending.shelf:Shelf", {"path": folder}, ("path",))
ECHO = Written("tests.extending.echo:Echo", r"#[^\n]*", (".echo",))
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


def test_an_aggregate_is_one_declaration_for_rollups_and_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    app = _BY_KEY.format(selected="who, spread(points) as range, min(points) as least", key="who")
    window = "from Throws#window.length(2) select spread(points) as range insert into Ranges;"
    with pytest.raises(RollupError, match="spread"):
        compile_app(app)
    monkeypatch.setitem(aggregates.AGGREGATES, "spread", SPREAD)  # type: ignore[arg-type]
    assert _hourly(app, "who, range, least") == [
        {"who": "abe", "range": 0, "least": 3},
        {"who": "ann", "range": 5, "least": 1},
        {"who": "bob", "range": 0, "least": 2},
    ]
    assert sum(name.startswith("AGG_MIN") for name in compile_app(app).aggregations["Games"].kinds) == 1
    host = LocalHost.of(app + window)
    host.send("Throws", _ROWS)
    assert [row["range"] for name, rows in host.emitted if name == "Ranges" for row in rows.to_pylist()] == [
        *(0, 3, 1, 2, 3)
    ]


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
    spec = TaskSpec(Declaration(app), "Throws", {"kind": "dice", "sides": 2})
    batch = pa.RecordBatch.from_pydict({"__arrival": [0, 1], "throws": [4, 3]})
    with pytest.raises(RollupError, match="unknown kind 'dice'"):
        list(run(spec, iter([batch])))
    monkeypatch.setitem(sources.KINDS, "dice", DICE)
    results = [result for found in run(spec, iter([batch])) for result in read(found)]
    (partials,) = (result.table() for result in results if result.kind is Kind.PARTIALS)
    assert sum(partials[EVENTS].to_pylist()) == 7
    (total,) = (name for name in partials.column_names if name.startswith("AGG_SUM"))
    assert sum(partials[total].to_pylist()) == (1 + 2 + 1 + 2) + (1 + 2 + 1)


def test_a_source_whose_rows_do_not_say_which_they_are_is_told_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sources.KINDS, "dice", DICE)
    spec = TaskSpec(Declaration(_BY_KEY.format(selected="who", key="who")), "Throws", {"kind": "dice"})
    with pytest.raises(SourceError, match=r"\(throws\) do not say which input they are .*`path` names a file"):
        list(run(spec, iter([pa.RecordBatch.from_pydict({"throws": [4]})])))


def test_a_source_is_configured_as_ours_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "app.siddhi").write_text(_BY_KEY.format(selected="who", key="who"))
    text = (
        'app = "app.siddhi"\ncheckpoint = "c"\n[store]\nkind = "delta"\npath = "t"\n[sources.Throws]\nkind = "dice"\n'
    )
    (tmp_path / "rollup.toml").write_text(f"{text}sides = 1\n")
    with pytest.raises(ConfigError, match="unknown kind 'dice'"):
        load(tmp_path / "rollup.toml")
    monkeypatch.setitem(sources.KINDS, "dice", DICE)
    with pytest.raises(ConfigError, match=r"sides is 1 \(a whole number from 2\)"):
        load(tmp_path / "rollup.toml")


def test_a_store_is_one_class(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "app.siddhi").write_text(_BY_KEY.format(selected="who, sum(points) as total", key="who"))
    text = (
        'app = "app.siddhi"\ncheckpoint = "c"\n[sources.Throws]\nkind = "rate"\n[store]\nkind = "shelf"\npath = "t"\n'
    )
    (tmp_path / "rollup.toml").write_text(text)
    with pytest.raises(ConfigError, match="unknown kind 'shelf'"):
        load(tmp_path / "rollup.toml")
    monkeypatch.setitem(stores.KINDS, "shelf", SHELF)
    conf = load(tmp_path / "rollup.toml")
    for rows in _ROWS[:3], _ROWS[3:]:  # a process each: the second takes up what the first has committed
        host = LocalHost(conf.program(), lambda aggregation, engine: open_store(conf, aggregation, engine))
        host.send("Throws", rows)
    asked = "from Games within '1970-01-01 **:**:**' per '{}' select AGG_TIMESTAMP, who, total order by who"
    hours = Asker(conf).query(asked.format("hours")).to_pylist()
    assert [(row["who"], row["total"]) for row in hours] == [("abe", 3), ("ann", 12), ("bob", 2)]
    minutes = Asker(conf).query(asked.format("minutes")).to_pylist()
    assert sorted((row["AGG_TIMESTAMP"], row["who"], row["total"]) for row in minutes) == [
        (0, "ann", 6),
        (0, "bob", 2),
        (60_000, "abe", 3),
        (60_000, "ann", 6),
    ]


_ECHOED = """
define stream Sent (who string, points long, ts long); define stream Throws (who string, points long, ts long);
@lang('echo') { Sent 2 Throws # every second one, and a brace in a comment: }
}
define aggregation Games from Throws select who, sum(points) as total group by who aggregate by ts every sec ... hour;
"""


def test_a_language_is_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlanError, match=r"unknown language 'echo' \(one of epl, sql, uql, streamcruncher"):
        compile_app(_ECHOED)
    monkeypatch.setitem(LANGUAGES, "echo", ECHO)
    with pytest.raises(SyntaxProblem, match="three words are wanted") as found:
        compile_app(_ECHOED.replace("Sent 2 Throws", "Sent Throws"))
    assert found.value.line == 3
    host = LocalHost.of(_ECHOED)
    for rows in _ROWS[:3], _ROWS[3:]:  # its count goes on from batch to batch
        host.send("Sent", rows)
    sent = [row["who"] for name, rows in host.emitted if name == "Throws" for row in rows.to_pylist()]
    assert sent == ["bob", "abe"]
