"""Tables of a configuration in SiddhiQL's statements: joins see what was there when the job started, killed or not."""

from __future__ import annotations

import csv
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

import rollup
from rollup.cli.main import cli as command
from rollup.core.errors import RollupError
from rollup.hosts.local import LocalHost
from rollup.plan import filled
from rollup.statements.committed.commits import FOLDER, Commits
from rollup.stores.databases import store_of
from rollup.stores.delta.store import DeltaStore

START = 1_514_764_800_000
FLIGHTS = "define stream Flights (plane string, seats int, ts long);\n"
APP = (
    FLIGHTS
    + """define stream Known (maker string, seats int, ts long);
from Flights left outer join planes on Flights.plane == planes.code
select planes.maker as maker, Flights.seats as seats, Flights.ts as ts insert into Known;
define stream Heavy (plane string, seats int, ts long);
from Flights[(planes.code == Flights.plane and planes.weight > 10) in planes] select plane, seats, ts insert into Heavy;
define aggregation ByMaker from Known select maker, sum(seats) as seats, count() as n
group by maker aggregate by ts every sec ... year;
define aggregation OfHeavy from Heavy select plane, count() as n group by plane aggregate by ts every sec ... year;
"""
)
Planes = Sequence[tuple[str, str | None, int]]
COLUMNS = ("code", "maker", "weight")


def as_csv(folder: Path, rows: Planes) -> str:
    with (folder / "planes.csv").open("w") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    return 'path = "planes.csv"'


def as_json(folder: Path, rows: Planes) -> str:
    lines = (json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in rows)
    (folder / "planes.json").write_text("\n".join(lines))
    return 'path = "planes.json"'


def _table(rows: Planes) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], names=list(COLUMNS))


def as_parquet(folder: Path, rows: Planes) -> str:
    pq.write_table(_table(rows), folder / "planes.parquet")
    return 'path = "planes.parquet"'


def as_delta(folder: Path, rows: Planes) -> str:
    deltalake.write_deltalake(str(folder / "planes"), _table(rows), mode="overwrite")
    return 'path = "planes"'


def in_database(folder: Path, rows: Planes) -> str:
    engine = sa.create_engine(f"sqlite:///{folder}/a.db")
    with engine.begin() as connection:
        connection.execute(sa.text("drop table if exists planes_there"))
        connection.execute(sa.text("create table planes_there (code text, maker text, weight integer)"))
        names: list[dict[str, Any]] = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        connection.execute(sa.text("insert into planes_there values (:code, :maker, :weight)"), names)
    engine.dispose()
    return 'table = "planes_there"'


def configured(folder: Path, said: str, app: str = APP, store: str = 'kind = "delta"\npath = "tables"') -> Path:
    (folder / "app.siddhi").write_text(app)
    path = folder / "rollup.toml"
    path.write_text(
        f'app = "app.siddhi"\ncheckpoint = "state"\n[store]\n{store}\n[tables.planes]\n{said}\n'
        '[sources.Flights]\nkind = "json"\npath = "in"\n'
    )
    return path


def started(path: Path) -> LocalHost:
    conf = rollup.load(path)
    commits = Commits(conf.tables / "_rollup" / FOLDER)
    if conf.store["kind"] == "sql":
        url = str(conf.store["url"])
        return LocalHost(conf.program(), lambda aggregation, engine: store_of(aggregation, engine, url), commits)
    return LocalHost(conf.program(), lambda aggregation, engine: DeltaStore(aggregation, engine, conf.tables), commits)


@pytest.mark.parametrize("put", [as_csv, as_json, as_parquet, as_delta, in_database])
def test_joins_see_the_rows_of_the_start_of_each_job(tmp_path: Path, put: Callable[[Path, Planes], str]) -> None:
    """Jobs come and go without a word, and the table changes while they run: the oracle joins in plain Python."""
    draw = random.Random(put.__name__)
    makers, heavy = Counter[str | None](), Counter[str]()
    store = (
        f'kind = "sql"\nurl = "sqlite:///{tmp_path}/a.db"' if put is in_database else 'kind = "delta"\npath = "tables"'
    )
    for job in range(3):
        planes = [(f"p{i}", draw.choice(["Airbus", "Boeing", "it's"]), draw.randrange(20)) for i in range(job, job + 6)]
        said = put(tmp_path, planes)
        host = started(configured(tmp_path, said, store=store))
        for batch in range(2):
            flights = [
                (f"p{draw.randrange(12)}", draw.randrange(300), START + draw.randrange(9) * 1000) for _ in range(8)
            ]
            host.send("Flights", flights)
            put(tmp_path, [("p1", "while it runs", 99), (f"p{batch}", "too late", 99)])
            for plane, seats, _ in flights:
                found = [each for each in planes if each[0] == plane]
                makers[found[0][1] if found else None] += seats
                heavy[plane] += any(weight > 10 for *_, weight in found)
    path = tmp_path / "rollup.toml"
    answer = rollup.query(path, "from ByMaker within '2018' per 'years' select maker, seats").to_pylist()
    assert {row["maker"]: row["seats"] for row in answer} == dict(makers)
    answer = rollup.query(path, "from OfHeavy within '2018' per 'years' select plane, n").to_pylist()
    assert {row["plane"]: row["n"] for row in answer} == +heavy


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("define table planes (code string);", "line 2, column 1: planes is a table.* is defined here too"),
        ("define stream planes (code string);", "line 2, column 1: .*defined here too"),
        ("from Flights select plane as code insert into planes;", "planes is a table.* is only read"),
        ("from Flights select plane as code update or insert into planes on planes.code == code;", "is only read"),
        ("from Flights delete planes on planes.code == plane;", "is only read"),
        ("from planes select code insert into T;", "never triggers.*join it with a stream"),
        ("from Flights join planes on plane == cod select plane insert into T;", "cod"),
        (
            "define aggregation A from planes select code, count() as n group by code aggregate every sec ... day;",
            "has no time by which it could be aggregated.*from S join planes",
        ),
        ("@lang('epl') { insert into T select f.plane from Flights as f, planes as p }", "SiddhiQL alone joins"),
        ("@lang('sql', into='T') { SELECT STREAM f.plane FROM Flights AS f JOIN planes AS p ON f.plane = p.code }", "SiddhiQL alone"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_cure(tmp_path: Path, statements: str, message: str) -> None:
    path = configured(tmp_path, as_csv(tmp_path, [("p1", "Airbus", 1)]), FLIGHTS + statements)
    with pytest.raises(RollupError, match=f"(?s){message}") as refused:
        rollup.load(path).program()
    assert refused.value.hint


@pytest.mark.parametrize(
    ("content", "types", "message"),
    [
        ("code,maker,weight\np1,A,many\n", 'types = { weight = "int" }', "cannot be read"),
        ("code,maker,weight\np1,A,1\np2,A,1\n", "", "has 2 rows, and statements join a table of 1 at most"),
        ("code,maker,weight\np1,A,1.25\n", 'types = { weight = "decimal(9, 2)" }', r"types = \{ weight = 'double' \}"),
    ],
)
def test_a_table_that_cannot_be_joined_is_refused_by_plan_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, types: str, message: str
) -> None:
    monkeypatch.setattr(filled, "MOST", 1)
    (tmp_path / "planes.csv").write_text(content)
    (tmp_path / "in").mkdir()
    path = configured(tmp_path, f'path = "planes.csv"\n{types}')
    with pytest.raises(RollupError, match=message):
        started(path).send("Flights", [("p1", 1, START)])
    done = CliRunner().invoke(command, ["plan", str(path)])
    assert re.search(message, str(done.exception))


def test_other_columns_are_another_text(tmp_path: Path) -> None:
    """A table with other columns is noticed at the start, as a changed text is."""
    path = configured(tmp_path, as_csv(tmp_path, [("p1", "Airbus", 1)]))
    started(path).send("Flights", [("p1", 1, START)])
    (tmp_path / "planes.csv").write_text("code,maker,weight,more\np1,A,1,2\n")
    with pytest.raises(RollupError, match="changed"):
        started(path).send("Flights", [("p1", 1, START)])


def test_questions_read_the_table_as_it_is(tmp_path: Path) -> None:
    path = configured(tmp_path, as_csv(tmp_path, [("p1", "Airbus", 1)]))
    started(path).send("Flights", [("p1", 1, START)])
    as_csv(tmp_path, [("p1", "Airbus", 7)])
    found: list[dict[str, Any]] = rollup.query(path, "select code, weight from planes").to_pylist()
    assert found == [{"code": "p1", "weight": 7}]
