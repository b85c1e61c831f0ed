"""Texts without a zone are in the zone of the configuration: in `within`, whatever its form and whoever computes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rollup.ask_sql import SqlAsker
from rollup.cli.query import Format, show
from rollup.conf import load
from rollup.core.calendar import Duration, bucket_start, parse_timestamp
from rollup.core.errors import ConfigError, PlanError
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


TEXTS = """{stream}define stream S (v int, t string); from S select v, t insert into T;
{aggregation}define aggregation A from T select sum(v) as s aggregate by t every hour ... year;"""
MARCH_IN_BERLIN = [(1, "2026-03-01T00:30:00+01:00"), (2, "2026-03-31T10:00:00+02:00"), (4, "2026-02-28T23:30:00Z")]


def sums(host: LocalHost, what: str = "s", per: str = "months") -> list[dict[str, Any]]:
    return host.query(f"from A within '2026-**-** **:**:**' per '{per}' select {what} order by {what}").to_pylist()


@pytest.mark.parametrize(
    ("zone", "stream", "aggregation"),
    [
        ("Europe/Berlin", "", ""),
        (None, "@zone('Europe/Berlin') ", ""),
        (None, "", "@zone('Europe/Berlin') "),
        ("+05:30", "@zone('-08:00') ", "@zone('Europe/Berlin') "),
        ("+05:30", "@zone('Europe/Berlin') ", ""),
    ],
)
def test_a_declared_zone_cuts_the_rows_of_every_offset_and_the_nearest_declaration_wins(
    zone: str | None, stream: str, aggregation: str
) -> None:
    host = LocalHost(compile_app(TEXTS.format(stream=stream, aggregation=aggregation), zone), MemoryStore)
    host.send("S", MARCH_IN_BERLIN)
    assert sums(host) == [{"s": 7}], "all three are March in Berlin"
    assert sums(host, "AGG_TIMEZONE") == [{"AGG_TIMEZONE": "Europe/Berlin"}]
    assert len(host.query("from A within '2026-**-** **:**:**' per 'auto' select AGG_PER")) == 1, "it has one zone"


def test_rows_of_their_own_zones_meet_where_they_begin_together_and_are_apart_by_their_zone() -> None:
    host = LocalHost(compile_app(TEXTS.format(stream="", aggregation="")), MemoryStore)
    host.send("S", [(1, "2026-03-01T05:00:00+01:00"), (2, "2026-03-01T04:00:00+00:00")])
    assert sums(host, per="hours") == [{"s": 3}]
    by_zone = "from A within '2026-**-** **:**:**' per 'hours' select AGG_TIMEZONE, s, AGG_LATE_MOVED order by s"
    assert [tuple(row.values()) for row in host.query(by_zone).to_pylist()] == [("+01:00", 1, 0), ("+00:00", 2, 0)]
    ask = SqlAsker(host.engine, host.program.aggregations, lambda name: host.stores[name].snapshot())
    found = ask.query("select AGG_TIMEZONE, s from A within '2026-**-** **:**:**' per 'hours' order by s")
    assert [tuple(row.values()) for row in found.to_pylist()] == [("+01:00", 1), ("+00:00", 2)]


@pytest.mark.parametrize(
    ("app", "said"),
    [
        (TEXTS.format(stream="@zone('Mars/Olympus') ", aggregation=""), "@zone: unknown zone 'Mars/Olympus'"),
        (TEXTS.format(stream="", aggregation="@zone('+25:00') "), "@zone: impossible offset '+25:00'"),
        (TEXTS.format(stream="", aggregation="@zone('Z') @zone('Z') "), "@zone stands here twice"),
        (TEXTS.format(stream="@zone('Z') @zone('Z') ", aggregation=""), "S has two @zone"),
        (
            "@zone('Z') define stream S (t string); @zone('+01:00') define stream R (t string); "
            "from S select t insert into T; from R select t insert into T;"
            "define aggregation A from T select count() as n aggregate by t every day;",
            "T is fed by streams of the zones +00:00 and +01:00",
        ),
    ],
)
def test_what_is_no_zone_is_refused_where_it_stands(app: str, said: str) -> None:
    with pytest.raises(PlanError, match=re.escape(said)) as refused:
        compile_app(app)
    assert refused.value.line is not None


def test_a_configurations_zone_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text('app = "a"\ncheckpoint = "c"\nzone = "Mars"\n[store]\nkind = "delta"\npath = "t"')
    with pytest.raises(ConfigError, match="zone is 'Mars'"):
        load(path)
