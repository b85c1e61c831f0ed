"""Streaming SQL over what is stored elsewhere: a Delta table as a stream's history, a job's aggregations as tables.

The expected rows are worked out by hand from the few that are written.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from rollup.cli.main import cli
from rollup.conf import load
from rollup.core.errors import ConfigError, PlanError, RollupError
from rollup.hosts.local import LocalHost
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.session import Session
from rollup.stores.delta.store import DeltaStore

DAY = datetime(2018, 1, 5, tzinfo=UTC)
ORDERS = [("08:30:00", 10, 3), ("09:12:21", 10, 10), ("09:27:44", 30, 2)]
APP = """define stream Trade (symbol string, price double, qty long, ts long);
define aggregation TradeAgg from Trade select symbol, avg(price) as mean, sum(qty) as total
group by symbol aggregate by ts every sec ... hour;
"""


def _at(text: str) -> datetime:
    hours, minutes, seconds = map(int, text.split(":"))
    return DAY.replace(hour=hours, minute=minutes, second=seconds)


@pytest.fixture
def model(tmp_path: Path) -> Model:
    rows = pa.table(
        {
            "rowtime": pa.array([_at(at) for at, _, _ in ORDERS], pa.timestamp("us", "UTC")),
            "productId": pa.array([product for _, product, _ in ORDERS], pa.int32()),
            "units": pa.array([units for _, _, units in ORDERS], pa.int64()),
        }
    )
    write_deltalake(str(tmp_path / "orders"), rows, partition_by=["productId"])
    (tmp_path / "model.toml").write_text(
        '[tables.Orders]\ndelta = "orders"\nkind = "both"\nmonotonic = { rowtime = "increasing" }\nhistory = "2 hours"\n'
        '[tables.Known]\ndelta = "orders"\ncolumns = { productId = "BIGINT" }\n'
    )
    return Model.read(tmp_path / "model.toml")


def _asked(session: Session, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in session.ask(session.prepare(query)).to_pylist()]


def test_a_query_without_stream_is_answered_from_delta(model: Model) -> None:
    session = Session(model, datetime(2018, 1, 5, 10))
    recent = "WHERE rowtime BETWEEN CURRENT_TIMESTAMP - INTERVAL '1' HOUR AND CURRENT_TIMESTAMP"
    query = f"SELECT productId, SUM(units) AS u FROM Orders {recent} GROUP BY productId ORDER BY 1"
    assert _asked(session, query) == [(10, 10), (30, 2)]
    hours = (
        "SELECT FLOOR(rowtime TO HOUR) AS h, COUNT(*) AS c FROM Orders WHERE rowtime >= TIMESTAMP '2018-01-05 08:00:00'"
    )
    assert _asked(session, f"{hours} GROUP BY FLOOR(rowtime TO HOUR) ORDER BY 1") == [
        (datetime(2018, 1, 5, 8), 1),
        (datetime(2018, 1, 5, 9), 2),
    ]
    with pytest.raises(PlanError, match="keeps its history since 2018-01-05 08:00:00 only"):
        session.prepare("SELECT COUNT(*) FROM Orders WHERE rowtime > TIMESTAMP '2018-01-05 07:00:00'")


def test_the_stream_has_only_what_arrives_and_may_be_joined_with_the_table(model: Model) -> None:
    session = Session(model)
    query = "SELECT STREAM o.productId, o.units FROM Orders AS o WHERE productId IN (SELECT productId FROM Known)"
    standing = session.prepare(query).standing
    assert standing is not None
    came = session.arrivals("Orders", [["2018-01-05 10:00:00", 30, 7], ["2018-01-05 10:01:00", 40, 8]], [0, 1])
    _, output, _ = standing.step(standing.start(), {"orders": came}, session.engine)
    assert output.column(1).to_pylist() == [7]


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM Known", "UPDATE Known SET productId = 1", "INSERT INTO Known SELECT STREAM productId FROM Orders"],
)
def test_what_is_stored_elsewhere_is_not_changed(statement: str, model: Model) -> None:
    with pytest.raises(PlanError, match="Known is stored elsewhere: it is read and not changed"):
        Session(model).prepare(statement)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"delta": "nowhere"}, "T: .*nowhere cannot be read as a Delta table"),
        ({"delta": "orders", "columns": {"name": "VARCHAR"}}, "T: its Delta table has no column 'name'"),
        ({"delta": "orders", "kind": "stream"}, "T: a Delta table is read as a table that is not temporal"),
        ({"delta": "orders", "temporal": True}, "T: a Delta table is read as a table that is not temporal"),
    ],
)
def test_a_delta_table_that_does_not_fit_is_refused(
    entry: dict[str, Any], message: str, model: Model, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        Model.of({"tables": {"T": entry}}, tmp_path)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "app.siddhi").write_text(APP)
    conf = tmp_path / "conf.toml"
    conf.write_text('app = "app.siddhi"\ncheckpoint = "state"\n[store]\nkind = "delta"\npath = "tables"\n')
    loaded = load(conf)
    start = int(DAY.timestamp() * 1000)
    host = LocalHost(loaded.program(), lambda aggregation, engine: DeltaStore(aggregation, engine, loaded.tables))
    sent = [("A", 100.0, 10, 0), ("A", 102.0, 20, 61_000), ("B", 50.0, 30, 62_000), ("A", 104.0, 40, 150_000)]
    host.send("Trade", [(symbol, price, qty, start + after) for symbol, price, qty, after in sent])
    return conf


def _sql(conf: Path, query: str, *words: str, events: str = "") -> list[list[Any]]:
    ran = CliRunner().invoke(cli, ["sql", "--conf", str(conf), *words, query], input=events)
    if isinstance(ran.exception, RollupError):
        raise ran.exception
    assert ran.exit_code == 0, ran.output
    return [list(json.loads(line).values()) for line in ran.stdout.splitlines()]


def test_an_aggregation_is_a_table_of_closed_and_open_buckets(job: Path) -> None:
    query = "SELECT AGG_TIMESTAMP, symbol, mean, total FROM TradeAgg_MINUTES ORDER BY AGG_TIMESTAMP, symbol"
    assert _sql(job, query) == [
        ["2018-01-05 00:00:00", "A", 100.0, 10],
        ["2018-01-05 00:01:00", "A", 102.0, 20],
        ["2018-01-05 00:01:00", "B", 50.0, 30],
        ["2018-01-05 00:02:00", "A", 104.0, 40],
    ]
    assert _sql(job, "SELECT SUM(total) AS t FROM TradeAgg_HOURS") == [[100]]
    with pytest.raises(PlanError, match=r"Cannot convert table 'TRADEAGG_HOURS' to a stream"):
        _sql(job, "SELECT STREAM * FROM TradeAgg_HOURS")


def test_a_stream_is_joined_with_an_aggregation_as_of_the_time_of_its_row(job: Path, tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text(
        '[tables.Quote]\ncolumns = { rowtime = "TIMESTAMP", symbol = "VARCHAR" }\nkind = "stream"\n'
        'monotonic = { rowtime = "increasing" }\n'
    )
    query = (
        "SELECT STREAM q.symbol, m.mean, m.AGG_TIMESTAMP FROM Quote AS q "
        "LEFT JOIN TradeAgg_MINUTES FOR SYSTEM_TIME AS OF q.rowtime AS m ON m.symbol = q.symbol"
    )
    quotes = [("00:00:59", "A"), ("00:01:00", "A"), ("00:02:10", "B"), ("00:02:59", "A"), ("00:03:00", "A")]
    events = "".join(json.dumps({"stream": "Quote", "row": [f"2018-01-05 {at}", who]}) + "\n" for at, who in quotes)
    found = _sql(job, query, "--schema", str(tmp_path / "model.toml"), events=events)
    assert found == [
        ["A", None, None],  # its first minute has not ended
        ["A", 100.0, "2018-01-05 00:00:00"],
        ["B", 50.0, "2018-01-05 00:01:00"],
        ["A", 102.0, "2018-01-05 00:01:00"],
        ["A", 104.0, "2018-01-05 00:02:00"],
    ]


def test_without_a_model_and_a_job_there_is_nothing_to_ask() -> None:
    ran = CliRunner().invoke(cli, ["sql", "SELECT 1"])
    assert isinstance(ran.exception, ConfigError) and "--schema MODEL, --conf CONF, or both" in str(ran.exception)
