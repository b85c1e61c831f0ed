"""Apps in SQL: the same definitions as those of SiddhiQL, and refusals that point at the word."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rollup.cli.main import cli
from rollup.core.errors import RollupError
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from tests.docs.markdown import blocks

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
STREAM = "create stream S (k varchar, v int, w double precision, c decimal(10, 2), ok boolean, t bigint, d date, ts timestamp)"
SIDDHI_STREAM = "define stream S (k string, v int, w double, c decimal(10, 2), ok bool, t long, d date, ts timestamp)"


@pytest.mark.parametrize(
    ("sql", "siddhi"),
    [
        ("create aggregation A as select k, avg(w), sum(v) as s from S group by k, rollup time ts every second to year",
         "define aggregation A from S select k, avg(w), sum(v) as s group by k aggregate by ts every sec ... year"),
        ("create aggregation A as select count(*) as n from S group by rollup time every minute, hour",
         "define aggregation A from S select count() as n aggregate every min, hour"),
        ('create aggregation "A b" as select sum(v * 2) as "the sum" from S where k <> \'it\'\'s\' and v = 3 '
         "group by rollup time t every hour to day",
         'define aggregation `A b` from S[k != "it\'s" and v == 3] select sum(v * 2) as `the sum` aggregate by t every hour ... day'),
        ("create aggregation A as select k, v + 1 as u, sum(w) as s from S group by k, v + 1, rollup time d every day to year "
         "with (lateness = '36 hours', late = 'correct', zone = 'Europe/Berlin')",
         "@BufferSize('2') @OutOfOrder('correct') @zone('Europe/Berlin') define aggregation A from S "
         "select k, v + 1 as u, sum(w) as s group by k, v + 1 aggregate by d every day ... year"),
        ("create aggregation A as select sum(v) as s from S group by rollup time t every second to hour "
         "with (retention = 'seconds 2 days, minutes 90 days', late = 'drop')",
         "@purge(@retentionPeriod(seconds='2 days', minutes='90 days')) @IgnoreEventsOlderThanBuffer('true') "
         "define aggregation A from S select sum(v) as s aggregate by t every sec ... hour"),
        ("create stream T as select k, w * 2 as w, t from S where ok; "
         "create aggregation A as select max(w) as m from T group by rollup time t every day",
         "from S[ok] select k, w * 2 as w, t insert into T; define aggregation A from T select max(w) as m aggregate by t every day"),
        ("create aggregation A as select sum(case when v > 2 then v else 0 end) as s, sum(case k when 'a' then 1 end) as u, "
         "count(distinct k) filter (where ok) as n from S where k in ('a', 'b') and v not between 1 and 3 or k not like 'x%' "
         "and k is not null group by rollup time t every day",
         "define aggregation A from S[(k == 'a' or k == 'b') and not (v >= 1 and v <= 3) or not (k like 'x%') and not (k is null)] "
         "select sum(ifThenElse(v > 2, v, 0)) as s, sum(ifThenElse(k == 'a', 1, null)) as u, "
         "distinctCount(ifThenElse(ok, k, null)) as n aggregate by t every day"),
    ],
)  # fmt: skip
def test_an_app_in_sql_is_that_of_siddhiql(sql: str, siddhi: str) -> None:
    ours, theirs = compile_app(f"{STREAM}; {sql};"), compile_app(f"{SIDDHI_STREAM}; {siddhi};")
    assert ours.streams == theirs.streams and ours.derivations == theirs.derivations
    for name, aggregation in theirs.aggregations.items():
        for field in aggregation.__dataclass_fields__:
            one, other = getattr(ours.aggregations[name], field), getattr(aggregation, field)
            if field == "purge" and other is not None:
                one, other = ([(each.name, each.values) for each in purge.nested] for purge in (one, other))
            assert one == other, field


def test_what_a_stream_says_stands_behind_it() -> None:
    program = compile_app(
        "create stream S (k string, v int, at string, primary key (k)) with (zone = 'Asia/Kolkata', time = 'at')"
    )
    assert program.zones == {"S": "Asia/Kolkata"} and program.times == {"S": "at"}
    assert program.streams["S"].table == ("k",)


TWO = (
    "create stream S (v int, t bigint);\ncreate aggregation A as select sum(v) as s from S group by rollup time t every"
)


@pytest.mark.parametrize(
    ("text", "word", "message"),
    [
        ("create table S (v int)", "table", "CREATE STREAM name (column type, …)"),
        ("create stream S (v varchar(20))", "varchar", "unknown type VARCHAR(20)"),
        ("create stream S (v int);\ndefine stream T (v int)", "define", "by CREATE STREAM and CREATE AGGREGATION"),
        ("create stream S (v int);\ninsert into T select stream v from S", "insert", "a file of their own"),
        ("create stream S (v int, t bigint) with (speed = '3')", "speed", "a stream has no option 'speed'"),
        (f"{TWO} second to year with (speed = '3')", "speed", "lateness = '10 seconds'"),
        (
            f"{TWO} second to year with (zone = 'Z', late = 'drop', zone = '+01:00')",
            "zone = '+",
            "zone stands here twice",
        ),
        (f"{TWO} year to second", "year", "starts after its end"),
        (f"{TWO} day, days", "days", "days stands here twice"),
        (f"{TWO} second with (lateness = 'all')", "lateness", "lateness is a length of time"),
        (f"{TWO} second with (lateness = 'soon')", "lateness", "soon"),
        (f"{TWO} second with (late = 'never')", "late =", "merge, drop, correct"),
        (f"{TWO.replace('sum(v)', 'sum(u)')} second", "u) as", "unknown attribute 'u'"),
        (f"{TWO.partition('group')[0].strip()};", ";", "ends with its time: GROUP BY symbol, ROLLUP"),
        (f"{TWO.partition('rollup')[0]} v having sum(v) > 1", "having", "stands in questions"),
    ],
)
def test_a_mistake_is_refused_where_it_stands(text: str, word: str, message: str) -> None:
    with pytest.raises(RollupError) as caught:
        compile_app(text)
    before = text[: text.rindex(word)]
    assert (caught.value.line, caught.value.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert message in str(caught.value)


def test_levels_that_are_left_out_are_put_together_from_finer_ones() -> None:
    host = LocalHost(compile_app(f"{TWO} second, month"))
    host.send("S", [(1, 0), (2, 3_600_000), (4, 86_400_000), (8, 40 * 86_400_000)])
    for per, expected in (("hours", [1, 2, 4, 8]), ("days", [3, 4, 8]), ("weeks", [7, 8]), ("months", [7, 8])):
        found = host.query(f"from A within '1969-01-01', '1971-01-01' per '{per}' select s")
        assert [row["s"] for row in found.to_pylist()] == expected
    with pytest.raises(RollupError, match="A is not aggregated per years"):
        host.query("from A within '1970' per 'years' select s")


def test_the_commands_take_the_app_of_the_page(tmp_path: Path) -> None:
    (app,) = [block for block in blocks(PAGE) if block.title == "trades.sql"]
    (tmp_path / "incoming").mkdir()
    (tmp_path / "trades.sql").write_text(app.text)
    (tmp_path / "trades.toml").write_text(
        'app = "trades.sql"\ncheckpoint = "state"\n[sources.trades]\nkind = "json"\npath = "incoming"\n'
        '[store]\nkind = "delta"\npath = "tables"\n'
    )
    shown = CliRunner().invoke(cli, ["plan", str(tmp_path / "trades.toml")])
    assert shown.exit_code == 0, shown.output
    assert "trades_by_symbol_YEARS" in shown.output and "stream dear from stream trades" in shown.output
