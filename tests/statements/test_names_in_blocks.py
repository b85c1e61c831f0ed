"""What a block of an app may name: anything else is refused at its place, with what does the same."""

from __future__ import annotations

import re

import pytest

from rollup.core.errors import PlanError
from rollup.hosts.local import LocalHost
from rollup.program import compile_app

STREAMS = """@time('ts') define stream S (k string, v double, ts long);
define aggregation Totals from S select k, sum(v) as total group by k aggregate by ts every sec ... hour;
define stream Out (k string);
@lang('epl') { create table Known (k string primary key, w double); create window Last#keepall as (k string, w double); }
"""
REFUSED = {
    "SELECT STREAM s.k FROM S AS s JOIN Known AS t ON s.k = t.k": "there is no stream Known in the app .*tables and windows of other "
    r"languages are theirs alone.*\(VALUES",
    "SELECT STREAM s.k FROM S AS s JOIN Last AS t ON s.k = t.k": "there is no stream Last in the app",
    "SELECT STREAM k FROM s": "there is no stream s in the app (it is called S)",
    "SELECT STREAM k FROM Totals": "the levels of the aggregation are Totals_SECONDS, Totals_MINUTES, Totals_HOURS",
    "SELECT STREAM k FROM Totals_DAYS": "the levels of the aggregation are Totals_SECONDS, Totals_MINUTES, Totals_HOURS",
    "SELECT STREAM k FROM Outt": "is it Out?",
    "CREATE TABLE T (k VARCHAR)": "CREATE TABLE is not part of streaming SQL",
    "CREATE VIEW T AS SELECT STREAM k FROM S": "the block defines views and asks nothing (SELECT STREAM",
    "CREATE MATERIALIZED VIEW T AS SELECT k FROM S": "the block defines views and asks nothing (SELECT STREAM",
}


def _pattern(message: str) -> str:
    return message if ".*" in message else re.escape(message)


@pytest.mark.parametrize("query", REFUSED)
def test_a_block_of_sql_is_refused_where_it_names_what_an_app_does_not_have(query: str) -> None:
    with pytest.raises(PlanError, match=f"line 5, column [0-9]+: .*{_pattern(REFUSED[query])}"):
        compile_app(f"{STREAMS}@lang('sql', into='Rows') {{ {query} }}")


@pytest.mark.parametrize(
    "block",
    [
        "@lang('sql') { INSERT INTO Out SELECT STREAM k FROM S; INSERT INTO Rows SELECT STREAM k FROM Out; }",
        "@lang('sql', into='Out') { SELECT STREAM k FROM Out }",
        "@lang('uql') { from Out group by k window slice 2 rows aggregate count() as n append k to Out }",
        "@lang('streamcruncher', into='Out') { select k from Out (partition store last 2) as w where w.$row_status is new; }",
    ],
)
def test_a_block_that_would_get_nothing_of_what_it_inserts_is_refused(block: str) -> None:
    with pytest.raises(PlanError, match=r"line 5, column .*Out is read and inserted into by one block"):
        compile_app(STREAMS + block)


def test_what_the_refusals_name_instead_gives_rows() -> None:
    host = LocalHost.of(
        STREAMS
        + """@lang('sql', into='Out') { SELECT STREAM k FROM S WHERE v > 1 }
        @lang('sql', into='Rows') { SELECT STREAM o.k, t.w FROM Out AS o JOIN (VALUES ('a', 7), ('b', 8)) AS t (k, w) ON o.k = t.k }"""
    )
    host.send("S", [("a", 1.0, 1), ("b", 2.0, 2), ("c", 2.0, 3), ("a", 3.0, 4)])
    rows = [tuple(row.values()) for name, table in host.emitted if name == "Rows" for row in table.to_pylist()]
    assert rows == [("b", 8), ("a", 7)]


KINDS = {"int": "n", "long": "l", "float": "f", "double": "v", "string": "k", "bool": "b"}


@pytest.mark.parametrize("wanted", KINDS)
@pytest.mark.parametrize("given", KINDS)
def test_a_select_of_streamcruncher_is_refused_where_its_target_does_not_hold_what_it_gives(
    given: str, wanted: str
) -> None:
    order = ["int", "long", "float", "double"]
    wider = given in order and wanted in order and order.index(given) <= order.index(wanted)
    wider |= {given, wanted} == {"int", "long"}  # the reference calls a count an int
    text = (
        f"@time('ts') define stream S ({', '.join(f'{name} {kind}' for kind, name in KINDS.items())}, ts long);\n"
        f"define stream T (x {wanted});\n"
        f"@lang('streamcruncher', into='T') {{ select {KINDS[given]} from S (partition store last 2) as w "
        "where w.$row_status is new; }"
    )
    if wider or wanted in (given, "string"):
        host = LocalHost.of(text)
        host.send("S", [(1, 2, 0.5, 1.5, "a", True, 1000), (3, 4, 2.5, 3.5, "b", False, 2000)])
        assert [table.num_rows for _, table in host.emitted] == [1]
    else:
        cure = rf"define x {given}, or select cast\({KINDS[given]} as"
        with pytest.raises(PlanError, match=rf"line 3.*column {KINDS[given]} is {given}, x of T is {wanted} \({cure}"):
            compile_app(text)


def test_a_whole_number_that_an_int_does_not_hold_is_null_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    host = LocalHost.of(
        "@time('ts') define stream S (l long, ts long);\ndefine stream T (x int, y long);\n"
        "@lang('streamcruncher', into='T') { select l, l + 1 as y from S (partition store last 1) as w "
        "where w.$row_status is new; }"
    )
    host.send("S", [(2**31 - 1, 1000), (2**31, 2000), (-(2**31), 3000), (0, 4000)])
    rows = [tuple(row.values()) for _, table in host.emitted for row in table.to_pylist()]
    assert rows == [(2**31 - 1, 2**31), (None, 2**31 + 1), (-(2**31), 1 - 2**31)]
    assert "whole numbers that do not fit are null" in capsys.readouterr().out
