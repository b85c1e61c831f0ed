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
    r"statements are theirs alone.*\(VALUES",
    "SELECT STREAM s.k FROM S AS s JOIN Last AS t ON s.k = t.k": "there is no stream Last in the app",
    "SELECT STREAM k FROM s": "there is no stream s in the app (it is called S)",
    "SELECT STREAM k FROM Totals": "the levels of the aggregation are Totals_SECONDS, Totals_MINUTES, Totals_HOURS",
    "SELECT STREAM k FROM Totals_DAYS": "the levels of the aggregation are Totals_SECONDS, Totals_MINUTES, Totals_HOURS",
    "SELECT STREAM k FROM Outt": "is it Out?",
    "CREATE TABLE T (k VARCHAR)": "CREATE TABLE is not part of streaming SQL",
    "CREATE VIEW T AS SELECT STREAM k FROM S": "the block defines views and asks nothing (SELECT STREAM",
    "CREATE MATERIALIZED VIEW T AS SELECT STREAM k FROM S; SELECT STREAM k FROM S": "a materialized view is a table, and an app has streams",
    "UPSERT INTO T SELECT STREAM k FROM S": "UPSERT changes rows of a table, and an app has streams",
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
