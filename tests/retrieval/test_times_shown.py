"""AGG_TIME, and how the command line writes times: in the configuration's zone, with offsets, or as milliseconds."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from typer.testing import CliRunner

import rollup
from rollup.cli.main import cli
from rollup.core.columns import ColumnEngine
from rollup.stores.registry import open_store
from tests.job.jobs import Job
from tests.retrieval.trades import HOUR, STORES, app, delta_host, stored_in

BERLIN = ZoneInfo("Europe/Berlin")
FIRST = round(datetime(2018, 3, 24, tzinfo=BERLIN).timestamp() * 1000)
EVENTS = [("a", 1, FIRST + hour * HOUR) for hour in range(71) if not 30 <= hour < 60]
"""Three days; the second has 23 hours. Nothing comes from 6 in the morning of the second to 13 on the third."""
DAYS = Counter(datetime.fromtimestamp(ts / 1000, BERLIN).strftime("%Y-%m-%d") for _, _, ts in EVENTS)
WITHIN = "within '2018-03'"


@pytest.fixture(params=STORES)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return stored_in(request, tmp_path, app(), EVENTS, zone="Europe/Berlin")


def shown(conf: Path, *words: str) -> str:
    done = CliRunner().invoke(cli, ["query", str(conf), *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_it_is_the_start_of_the_bucket_as_a_time_in_every_form_of_a_question(stored: Path) -> None:
    asker = rollup.open(stored)
    for text in (
        f"from A {WITHIN} per 'days' select AGG_TIMESTAMP, AGG_TIME, n",
        f"SELECT AGG_TIMESTAMP, AGG_TIME, n FROM A {WITHIN} PER 'days'",
        f"from A {WITHIN} per 'days' fill(zero, range) select AGG_TIMESTAMP, AGG_TIME, n",
        f"from A {WITHIN} per 'weeks in UTC' select AGG_TIMESTAMP, AGG_TIME, n",
    ):
        rows = asker.query(text).to_pylist()
        assert rows, text
        assert all(row["AGG_TIME"] == datetime.fromtimestamp(row["AGG_TIMESTAMP"] / 1000, UTC) for row in rows), text
    assert asker.query(f"from A {WITHIN} per 'days' select max(AGG_TIME) as last").to_pylist() == [
        {"last": datetime(2018, 3, 26, tzinfo=BERLIN)}
    ]


def test_sql_cuts_and_reads_times_in_the_zone_of_the_configuration(stored: Path) -> None:
    text = f"""SELECT strftime(date_trunc('day', AGG_TIME), '%Y-%m-%d') AS d, sum(n) AS n, min(extract(hour FROM AGG_TIME)) AS h
        FROM A {WITHIN} PER 'hours' GROUP BY d ORDER BY d"""
    rows = rollup.open(stored).query(text).to_pylist()
    assert {row["d"]: int(row["n"]) for row in rows} == DAYS
    assert [row["h"] for row in rows] == [0, 0, 13]


def test_json_and_csv_have_iso_times_and_with_epoch_milliseconds(stored: Path) -> None:
    question = f"from A {WITHIN} per 'days' select AGG_TIMESTAMP, AGG_TIME, n"
    wanted = [f"{day}T00:00:00+0{1 if day < '2018-03-26' else 2}:00" for day in sorted(DAYS)]
    rows = [json.loads(line) for line in shown(stored, question, "--format", "json").splitlines()]
    assert [(row["AGG_TIMESTAMP"], row["AGG_TIME"]) for row in rows] == [(each, each) for each in wanted]
    lines = shown(stored, question, "--format", "csv").splitlines()
    assert lines == ["AGG_TIMESTAMP,AGG_TIME,n", *(f"{w},{w},{DAYS[w[:10]]}" for w in wanted)]
    numbers = [round(datetime.fromisoformat(each).timestamp() * 1000) for each in wanted]
    rows = [json.loads(line) for line in shown(stored, question, "--format", "json", "--epoch").splitlines()]
    assert [(row["AGG_TIMESTAMP"], row["AGG_TIME"]) for row in rows] == [(each, each) for each in numbers]
    table = shown(stored, question, "--epoch")
    assert all(f" {number} │ {number} " in table for number in numbers) and "times in" not in table
    assert "3 rows, times in Europe/Berlin" in shown(stored, question)


def test_without_a_zone_in_the_configuration_times_are_those_of_the_aggregations(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app().replace("define aggregation", "@zone('Europe/Berlin') define aggregation"))
    host.send("S", EVENTS)
    question = f"from A {WITHIN} per 'days' select AGG_TIMESTAMP, n"
    first = json.loads(shown(tmp_path / "conf.toml", question, "--format", "json").splitlines()[0])
    assert first == {"AGG_TIMESTAMP": "2018-03-24T00:00:00+01:00", "n": 24}


def test_a_sum_of_whole_numbers_in_json_is_a_number(stored: Path) -> None:
    lines = shown(stored, f"select sum(n) as n from A {WITHIN} per 'days'", "--format", "json").splitlines()
    assert [json.loads(line) for line in lines] == [{"n": len(EVENTS)}]


@pytest.mark.parametrize(
    "url", ["sqlite:///in/tables.db", "jdbc:sqlite:in/tables.db", "sqlite+pysqlite:///in/tables.db"]
)
@pytest.mark.parametrize("where", ["[store]", "@store"])
def test_a_database_that_is_a_file_is_beside_the_configuration_wherever_a_command_runs(
    tmp_path: Path, where: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    declared = f"@store(type='rdbms', jdbc.url='{url}')\ndefine aggregation"
    text, store = (app(), f'kind = "sql"\nurl = "{url}"')
    if where == "@store":
        text, store = text.replace("define aggregation", declared), 'kind = "delta"\npath = "tables"'
    job = Job(tmp_path, {"kind": "json", "path": "in"}, app=text, streams=("S",), store=store)
    monkeypatch.chdir("/")
    open_store(job.conf, job.conf.program().aggregations["A"], ColumnEngine()).load()
    assert (tmp_path / "in" / "tables.db").exists()


def test_the_times_of_both_sides_of_a_join_are_shown_alike(stored: Path) -> None:
    side = f"A {WITHIN} per 'days'"
    text = f"select * from {side} a join {side} b on a.k = b.k and a.AGG_TIMESTAMP = b.AGG_TIMESTAMP"
    rows = [json.loads(line) for line in shown(stored, text, "--format", "json").splitlines()]
    assert rows and all(row["AGG_TIMESTAMP"] == row["AGG_TIMESTAMP0"] for row in rows)
