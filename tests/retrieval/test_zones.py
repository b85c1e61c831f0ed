"""Texts without a zone are in the zone of the configuration: in `within`, whatever its form and whoever computes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rollup.ask_sql import SqlAsker
from rollup.cli.query import Format, show
from rollup.core.calendar import Duration, bucket_start, parse_timestamp
from rollup.gateway.rewriting.loaded import asked_range
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from rollup.stores.delta.store import DeltaStore
from rollup.stores.memory import MemoryStore

KOLKATA = "Asia/Kolkata"
APP = """define stream S (v int, ts long); define stream Ask (p string);
define aggregation A from S select sum(v) as s aggregate by ts every hour ... year;
from Ask as b join A as a within b.p per 'months' select a.s insert into Out;"""
MONTHS = [parse_timestamp(f"2013-{month:02d}-01 00:00:00 +05:30")[0] for month in (2, 3, 4, 5)]
MARCH = {"AGG_TIMESTAMP": MONTHS[1], "s": 3}


@pytest.fixture(params=["memory", "delta"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> LocalHost:
    """One event in the first hour of each of four months, as clocks in Kolkata have them."""
    make: Any = MemoryStore if request.param == "memory" else lambda a, engine: DeltaStore(a, engine, tmp_path)
    made = LocalHost(compile_app(APP, KOLKATA), make)
    made.send("S", [(n, at) for n, at in zip((2, 3, 4, 5), MONTHS, strict=True)])
    return made


@pytest.mark.parametrize(
    "within",
    [
        "'2013-03-** **:**:**'",
        "'2013-03-01 00:00:00', '2013-04-01 00:00:00'",
        "'2013-03-01 00:00:00', '2013-03-31 18:30:00 Z'",
        "'2013-03-** **:**:** +05:30'",
        f"{MONTHS[1]}L, '2013-03-31'",
    ],
)
def test_patterns_and_bounds_are_read_in_the_configurations_zone(host: LocalHost, within: str) -> None:
    assert host.query(f"from A within {within} per 'months' select *").to_pylist() == [MARCH]
    sql = within.replace("L,", ",")
    ask = SqlAsker(host.engine, host.program.aggregations, lambda name: host.stores[name].snapshot())
    assert ask.query(f"select * from A within {sql} per 'months'").to_pylist() == [MARCH]


def test_a_pattern_that_names_a_zone_is_read_in_that_one(host: LocalHost) -> None:
    found = host.query("from A within '2013-03-** **:**:** Z' per 'months' select s").to_pylist()
    assert found == [{"s": 4}], "the month that begins in March of Greenwich is Kolkata's April"


def test_a_joins_pattern_is_read_in_it_too(host: LocalHost) -> None:
    host.send("Ask", [("2013-03-** **:**:**",)])
    assert [table.to_pylist() for _, table in host.emitted] == [[{"s": 3}]]


def test_the_endpoint_reads_it_in_it_too(host: LocalHost) -> None:
    found = asked_range(host.program.aggregations["A"], {}, ("2013-03-** **:**:**", None, "months"))
    assert found == (MONTHS[1], MONTHS[2], "months")


def test_a_printed_table_says_the_zone_of_its_times(host: LocalHost, capsys: pytest.CaptureFixture[str]) -> None:
    show(host.query("from A within '2013-03-** **:**:**' per 'months' select *"), Format.TABLE, KOLKATA)
    printed = " ".join(capsys.readouterr().out.split())
    assert "2013-03-01 00:00:00" in printed and f"times in {KOLKATA}" in printed
    assert bucket_start(MONTHS[1], Duration.MONTHS, KOLKATA) == MONTHS[1]
