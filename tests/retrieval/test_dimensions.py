"""Tables of a user's that questions join with aggregations: `[tables.…]` of a configuration."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from deltalake import write_deltalake
from typer.testing import CliRunner

import rollup
from rollup.ask import Asker
from rollup.cli.main import cli
from rollup.conf import load
from rollup.core.errors import ConfigError, QueryError, RollupError, SourceError
from tests.gateway.trades import KEEPING, configuration, host, trade

JOINED = (
    "select p.symbol, p.name, t.total from planes p join TradeAgg within '2018-01-** **:**:**' per 'years' t"
    " using (symbol) order by 1"
)
SOURCE = '[sources.Trades]\nkind = "json"\npath = "in"\ncreate = true\n'
ROWS = [{"symbol": "A", "name": "Alpha, Inc", "seats": 150}, {"symbol": "B", "name": 'B"eta', "seats": 12}]
CSV = 'symbol,name,seats\nA,"Alpha, Inc",150\nB,"B""eta",12\n'


def _csv(folder: Path) -> Path:
    (folder / "planes.csv").write_text(CSV)
    return folder / "planes.csv"


def _semicolons(folder: Path) -> Path:
    (folder / "planes.csv").write_text(CSV.replace(",", ";").replace("Alpha;", "Alpha,"))
    return folder / "planes.csv"


def _utf_16(folder: Path) -> Path:
    (folder / "planes.csv").write_text(CSV, encoding="utf-16")
    return folder / "planes.csv"


def _json(folder: Path) -> Path:
    (folder / "planes.json").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return folder / "planes.json"


def _parquet(folder: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "planes.parquet")
    return folder / "planes.parquet"


def _folder(folder: Path) -> Path:
    for row in ROWS:
        place = folder / "planes" / f"seats={row['seats']}"
        place.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist([{"symbol": row["symbol"], "name": row["name"]}]), place / "0.parquet")
    return folder / "planes"


def _delta(folder: Path) -> Path:
    write_deltalake(folder / "planes", pa.Table.from_pylist(ROWS[:1]))
    write_deltalake(folder / "planes", pa.Table.from_pylist(ROWS[1:]), mode="append")
    return folder / "planes"


def asked(folder: Path, table: str, name: str = "planes") -> Asker:
    """Two trades, and a table in the configuration."""
    conf = configuration(folder)
    host(conf).send("Trades", [trade("A", 1.0, 1), trade("B", 2.0, 2), trade("A", 3.0, 3)])
    conf.path.write_text(conf.path.read_text() + SOURCE + f"[tables.{name}]\n{table}\n")
    return rollup.open(conf.path)


@pytest.mark.parametrize("make", [_csv, _semicolons, _utf_16, _json, _parquet, _folder, _delta])
def test_a_file_a_folder_and_a_table_join_with_an_aggregation(make: Callable[[Path], Path], tmp_path: Path) -> None:
    ask = asked(tmp_path, f"path = {json.dumps(str(make(tmp_path).relative_to(tmp_path)))}")
    assert ask.query(JOINED).to_pylist() == [
        {"symbol": "A", "name": "Alpha, Inc", "total": 4.0},
        {"symbol": "B", "name": 'B"eta', "total": 2.0},
    ]
    assert ask.query("from planes on seats > 100 select symbol, seats").to_pylist() == [{"symbol": "A", "seats": 150}]


def test_what_has_changed_is_read_again(tmp_path: Path) -> None:
    ask = asked(tmp_path, f'path = "{_csv(tmp_path).name}"')
    count = "select count(*) as n from PLANES"
    assert ask.query(count)["n"].to_pylist() == [2]
    (tmp_path / "planes.csv").write_text(CSV + "C,Gamma,3\n")
    assert ask.query(count)["n"].to_pylist() == [3]
    (tmp_path / "planes.csv").unlink()
    with pytest.raises(ConfigError, match=r"\[tables.planes\].*planes.csv"):
        ask.query(count)


def test_a_delta_table_is_that_of_its_newest_version(tmp_path: Path) -> None:
    path = _delta(tmp_path)
    ask = asked(tmp_path, 'path = "planes"')
    assert ask.query("select count(*) as n from planes")["n"].to_pylist() == [2]
    write_deltalake(path, pa.Table.from_pylist(ROWS[:1]), mode="overwrite")
    assert ask.query("select name from planes")["name"].to_pylist() == ["Alpha, Inc"]


def test_types_are_those_of_the_file_or_those_that_are_said(tmp_path: Path) -> None:
    at = datetime(2018, 1, 1, 12, tzinfo=UTC)
    columns = {
        "small": pa.array([1], pa.int16()),
        "large": pa.array([2**64 - 1], pa.uint64()),
        "exact": pa.array([Decimal("1.10")]),
        "word": pa.array(["a"]).dictionary_encode(),
        "day": pa.array([date(2018, 1, 1)]),
        "at": pa.array([at]),
        "bare": pa.array([datetime(2018, 1, 1, 12)]),
        "many": pa.array([[1]]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    (found,) = asked(tmp_path, 'path = "t.parquet"').query("select * from planes").to_pylist()
    assert found == {
        "small": 1, "large": 2**64 - 1, "exact": Decimal("1.10"), "word": "a", "day": date(2018, 1, 1), "at": at, "bare": at,
    }  # fmt: skip
    (tmp_path / "u.csv").write_text("code,n,at\n007,1,2018-01-01 12:00:00\n")
    said = 'path = "u.csv"\ntypes = { n = "double", at = "timestamp" }'
    (found,) = asked(tmp_path, said).query("select * from planes").to_pylist()
    assert found == {"code": "007", "n": 1.0, "at": at}


def test_a_value_that_does_not_fit_is_refused_with_its_place(tmp_path: Path) -> None:
    _csv(tmp_path).write_text(CSV + "C,Gamma,many\n")
    with pytest.raises(
        SourceError, match=r"1 of its rows cannot be read, the first at \S*planes.csv:2: seats is not a int"
    ):
        asked(tmp_path, 'path = "planes.csv"\ntypes.seats = "int"').query("select * from planes")
    null = 'path = "planes.csv"\ntypes.seats = "int"\nnull = "many"'
    assert asked(tmp_path, null).query("select seats from planes")["seats"].to_pylist() == [150, 12, None]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "says not where the table is"),
        ('path = "a"\ntable = "b"', "says not where the table is, or twice"),
        ('table = "b"', "the store is no database"),
        ('path = "none.csv"', "planes.*none.csv"),
        ('path = "planes.csv"\ntypes.seat = "int"', "'seat', which is no column.*symbol, name, seats"),
        ('path = "planes.csv"\ntypes.seats = "whole"', "unknown type 'whole'"),
        ('paths = "planes.csv"', "unknown key `paths` .did you mean `path`"),
    ],
)
def test_a_wrong_table_is_refused_by_plan_and_by_a_question(table: str, said: str, tmp_path: Path) -> None:
    _csv(tmp_path)
    with pytest.raises(RollupError, match=said):
        asked(tmp_path, table).query("select * from planes")
    ran = CliRunner().invoke(cli, ["plan", str(tmp_path / "rollup.toml")])
    assert isinstance(ran.exception, RollupError) and re.search(said, str(ran.exception))


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_columns_that_differ_by_case_alone_are_refused(tmp_path: Path, ending: str) -> None:
    texts = {"csv": "symbol,Seats,seats\nA,1,2\n", "json": '{"symbol": "A", "Seats": 1, "seats": 2}\n'}
    (tmp_path / f"planes.{ending}").write_text(texts[ending])
    with pytest.raises(ConfigError, match="the columns Seats, seats differ by case alone"):
        asked(tmp_path, f'path = "planes.{ending}"').query("select * from planes")


def test_a_column_without_a_name_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "planes.csv").write_text("symbol,seats,\nA,1,\nB,2,\n")
    assert asked(tmp_path, 'path = "planes.csv"').query("select * from planes").to_pylist() == [
        {"symbol": "A", "seats": 1},
        {"symbol": "B", "seats": 2},
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tradeagg", r"\[tables\.tradeagg\] has the name of"),
        ("Trades", r"Trades is a table of the configuration, \[tables\.Trades\], and is defined here too"),
    ],
)
def test_a_name_that_is_taken_is_refused(name: str, said: str, tmp_path: Path) -> None:
    _csv(tmp_path)
    with pytest.raises(RollupError, match=said):
        asked(tmp_path, 'path = "planes.csv"', name).query("select 1")


def test_the_name_of_a_table_of_statements_is_refused(tmp_path: Path) -> None:
    _csv(tmp_path)
    conf = configuration(tmp_path, KEEPING)
    conf.path.write_text(conf.path.read_text() + '[tables.last]\npath = "planes.csv"\n')
    with pytest.raises(ConfigError, match="two tables have the name last"):
        rollup.open(conf.path).query("select 1")


def test_a_table_of_a_store_that_is_a_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rollup.db"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("create table aircraft (symbol text, seats integer, odd)"))
        connection.execute(sa.text("insert into aircraft values ('A', 150, 1), ('B', null, 'x')"))
    (tmp_path / "app.siddhi").write_text("define stream Trades (symbol string);")
    (tmp_path / "rollup.toml").write_text(
        f'app = "app.siddhi"\ncheckpoint = "c"\n[store]\nkind = "sql"\nurl = "{url}"\n[tables.planes]\ntable = "aircraft"\n'
    )
    ask = rollup.open(tmp_path / "rollup.toml")
    assert ask.query("from planes select symbol, seats, odd").to_pylist() == [
        {"symbol": "A", "seats": 150, "odd": "1"},
        {"symbol": "B", "seats": None, "odd": "x"},
    ]
    (tmp_path / "rollup.toml").write_text((tmp_path / "rollup.toml").read_text().replace("aircraft", "aircrafts"))
    with pytest.raises(ConfigError, match=r"the table aircrafts of sqlite"):
        rollup.open(tmp_path / "rollup.toml").query("from planes select symbol")


def test_a_join_in_siddhiql_is_refused_with_the_way(tmp_path: Path) -> None:
    _csv(tmp_path)
    ask = asked(tmp_path, 'path = "planes.csv"')
    for text in (
        "from planes as p left outer join TradeAgg as t on p.symbol == t.symbol within '2018' per 'days' select p.name",
        "from TradeAgg join planes on TradeAgg.symbol == planes.symbol within '2018' per 'days' select name",
    ):
        with pytest.raises(QueryError, match=r"line 1, column .*joins none .in SQL: SELECT"):
            ask.query(text)


def test_plan_names_it_and_its_columns(tmp_path: Path) -> None:
    _csv(tmp_path)
    conf = configuration(tmp_path)
    conf.path.write_text(conf.path.read_text() + SOURCE + '[tables.planes]\npath = "planes.csv"\n')
    ran = CliRunner().invoke(cli, ["plan", str(conf.path)], catch_exceptions=False)
    assert f"table planes from {tmp_path}/planes.csv: symbol string, name string, seats long" in ran.stdout


def test_a_question_that_names_none_reads_none(tmp_path: Path) -> None:
    ask = asked(tmp_path, 'path = "planes.csv"')
    assert not os.path.exists(tmp_path / "planes.csv")
    assert ask.query("select count(*) as n from TradeAgg within '2018-01-** **:**:**' per 'days'")["n"].to_pylist()
    assert load(ask.conf.path).dimensions
    with pytest.raises(QueryError, match="Unknown"):
        ask.query("select * from Unknown")
