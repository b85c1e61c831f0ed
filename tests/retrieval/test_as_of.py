"""Questions as of an earlier commit: each answer is that of a job that had seen no more events."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

import rollup
from rollup.checkpoint.records import KEPT, RecordFolder, home
from rollup.cli.main import cli as command
from rollup.core.errors import QueryError, RollupError, StoreError
from rollup.hosts.local import LocalHost
from tests.gateway.trades import APP, Serving, at, configuration, folder, host

APP_CORRECTED = APP.replace("define aggregation", "@OutOfOrder('correct') define aggregation")
BATCHES = [
    [("A", 1.0, 1, at("2018-01-01T10:00:00")), ("B", 2.0, 1, at("2018-01-01T11:00:00"))],
    [("A", 4.0, 1, at("2018-01-02T10:00:00"))],
    [("A", 8.0, 1, at("2018-01-01T10:00:00")), ("B", 16.0, 1, at("2018-01-03T10:00:00"))],
    [("A", 32.0, 1, at("2018-02-03T10:00:00"))],
]
MADE = [at(f"2026-03-{day:02d}T12:00:00") for day in (1, 2, 3, 4, 5)]
"""When each commit was made, as its record's file says; the first one is that of the start, without events."""
FORMS = (
    "from TradeAgg within '2018' per 'days' {} select sum(total) as t, sum(trades) as n",
    "select sum(total)::double as t, sum(trades)::bigint as n from TradeAgg within '2018' per 'months' {} as x",
    "select sum(total)::double as t, sum(trades)::bigint as n from TradeAgg within '2018' per 'weeks' by () fill (zero) {}",
)


def _expected(commits: int) -> dict[str, Any]:
    seen = [event for batch in BATCHES[:commits] for event in batch]
    return {"t": sum(event[1] for event in seen), "n": len(seen)}


@pytest.fixture(scope="module")
def conf() -> Iterator[Any]:
    with folder() as made:
        conf = configuration(made, APP_CORRECTED)
        job = host(conf)
        for batch in BATCHES:
            job.send("Trades", batch)
        records = RecordFolder(home(conf.tables, "TradeAgg"))
        for number, instant in zip(records.numbers(), MADE, strict=True):
            os.utime(records.path(number), (instant / 1000,) * 2)
        yield conf


def _moments(commits: int) -> list[str]:
    later = datetime.fromtimestamp(MADE[commits] / 1000 + 3600, UTC)
    return [f"commit {commits}", f"{later:%Y-%m-%d %H:%M:%S}", f"{later:%Y-%m-%dT%H:%M:%S}Z"]


@pytest.mark.parametrize("commits", [1, 2, 3, 4])
@pytest.mark.parametrize("form", FORMS, ids=["siddhi", "sql", "merged"])
@pytest.mark.few(6)
def test_an_answer_is_that_of_the_events_until_then(conf: Any, form: str, commits: int) -> None:
    for said in _moments(commits):
        written = said if said.startswith("commit") else f"'{said}'"
        assert rollup.query(conf, form.format(f"as of {written}")).to_pylist() == [_expected(commits)]
        assert rollup.query(conf, form.format(""), as_of=said).to_pylist() == [_expected(commits)]
    assert rollup.query(conf, form.format("")).to_pylist() == [_expected(4)]


def test_one_statement_compares_two_commits(conf: Any) -> None:
    found = rollup.query(
        conf,
        "select n.total - o.total as grown from TradeAgg within '2018-01' per 'months' n join TradeAgg('2018-01', 'months', "
        "as_of => 'commit 1') o on n.symbol = o.symbol where n.symbol = 'A'",
    ).to_pylist()
    assert found == [{"grown": 12.0}]


def test_the_command_line_asks_as_of_a_commit(conf: Any) -> None:
    arguments = ["query", str(conf.path), FORMS[0].format(""), "--format", "json", "--as-of"]
    for said in ("2", _moments(2)[1]):
        done = CliRunner().invoke(command, [*arguments, said])
        assert json.loads(done.stdout) == _expected(2)


def test_explain_says_which_commit_is_read(conf: Any) -> None:
    rows = rollup.query(conf, "EXPLAIN from TradeAgg within '2018' per 'days' as of commit 2").to_pylist()
    assert {row["commit"] for row in rows} == {2}


def test_the_endpoint_asks_as_of_a_commit(conf: Any) -> None:
    spelled = (
        "select sum(total), sum(trades)::int from TradeAgg within '2018' per 'days' as of commit {0}",
        "select sum(total), sum(trades)::int from TradeAgg('2018', 'days', as_of => '{0}')",
        """select sum(total), sum(trades)::int from "TradeAgg within 2018-**-** **:**:** per days as of commit {0}" """,
    )
    with Serving(conf) as serving, psycopg.connect(**dict(serving.login()), autocommit=True) as client:
        for form in spelled:
            for commits in (3, 1, 4):
                for prepare in (False, True):
                    found = client.execute(form.format(commits).encode(), prepare=prepare).fetchone()
                    assert found == tuple(_expected(commits).values()), (form, commits, prepare)
        with pytest.raises(psycopg.Error, match=r"kept are 0 .*to 4"):
            client.execute("select * from TradeAgg within '2018' per 'days' as of commit 9")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("as of commit 9", r"no such commit: kept are 0 \(made at 2026-03-01 12:00:00 .*\) to 4"),
        ("as of '2026-02-01 00:00:00'", "no such commit: kept are 0"),
        ("as of 'yesterday'", "`as of` takes a commit or a time"),
        ("as of commit", "unexpected"),
        ("as of", "unexpected"),
    ],
)
def test_what_is_not_kept_is_refused_with_how_far_back_it_goes(conf: Any, said: str, message: str) -> None:
    with pytest.raises(RollupError, match=message):
        rollup.query(conf, FORMS[0].format(said))


def test_commits_beyond_those_kept_are_refused(tmp_path: Path) -> None:
    conf = configuration(tmp_path, APP_CORRECTED)
    job = host(conf)
    for number in range(KEPT + 3):
        job.send("Trades", [("A", 1.0, 1, at("2018-01-01T10:00:00") + number)])
    asked = "from TradeAgg within '2018' per 'days' as of commit {} select trades"
    numbers = RecordFolder(home(conf.tables, "TradeAgg")).numbers()
    assert rollup.query(conf, asked.format(numbers[0])).to_pylist() == [{"trades": numbers[0]}]
    with pytest.raises(StoreError, match=f"kept are {numbers[0]} "):
        rollup.query(conf, asked.format(numbers[0] - 1))


def test_a_store_that_changes_rows_in_place_refuses(conf: Any) -> None:
    with pytest.raises(StoreError, match=r"its newest commit alone.*Delta"):
        LocalHost(conf.program()).query("from TradeAgg within '2018' per 'days' as of commit 1")
    for text in ("select 1", "select * from DEAD_LETTERS"):
        with pytest.raises(QueryError, match="asks no aggregation"):
            rollup.query(conf, text, as_of=1)
