"""SQL over aggregations, run for real: spellings, places and parameters, each against the plain question.

The rewriting itself is tested text by text in tests/lang; here the rewritten text has to give the right rows.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollup.ask import Asker
from rollup.cli.query import Format, show
from rollup.core.errors import RollupError
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from rollup.stores.databases import store_of
from rollup.stores.sql.snapshot import SqlSnapshot
from tests.retrieval.trades import DAY, START, app, asker

if TYPE_CHECKING:
    from tests.servers.postgres import PostgresServer

PLAIN = "from A within '2018-01-** **:**:**' per 'days' select AGG_TIMESTAMP, k, total order by AGG_TIMESTAMP, k"
SELECT = "select AGG_TIMESTAMP, k, total from {} order by 1, 2 nulls first"
SPELLINGS = [
    "A within '2018-01-** **:**:**' per 'days'",
    "a WITHIN '2018-01-** **:**:**' PER 'Day' AS x",
    "A('2018-01-** **:**:**', 'days')",
    '"A within 2018-01-** **:**:** per days"',
    "(select * from A within '2018-01-** **:**:**' per 'days' where total > -100) as s",
    f"A within {START}, '2018-02-01 00:00:00' per 'days'",
]


def rows(answer: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in answer.to_pylist()]


@pytest.mark.parametrize("source", SPELLINGS)
def test_every_spelling_gives_the_rows_of_the_plain_question(trades: Asker, source: str) -> None:
    expected = rows(trades.query(PLAIN))
    assert len(expected) == 4
    assert rows(trades.query(SELECT.format(source))) == expected


@pytest.mark.parametrize(
    ("source", "parameters"),
    [
        ("A within ? per ?", ["2018-01-** **:**:**", "days"]),
        ("A within $1, $2 per $3", [START, "2018-02-01 00:00:00", "days"]),
        ("A within $first, $last per 'days'", {"first": datetime(2018, 1, 1, tzinfo=UTC), "last": START + 31 * DAY}),
    ],
)
def test_bounds_and_level_may_be_parameters_beside_others(trades: Asker, source: str, parameters: Any) -> None:
    named = isinstance(parameters, dict)
    text = f"select k, total from {source} where k = {'$key' if named else '?' if '?' in source else '$4'} and total > {'$least' if named else '?' if '?' in source else '$5'}"
    given = {**parameters, "key": "a", "least": 9} if named else [*parameters, "a", 9]
    assert rows(trades.query(text, given)) == [("a", 10)]


def test_sources_stand_in_joins_ctes_and_subqueries_and_read_one_commit(trades: Asker) -> None:
    text = """with d as (select k, sum(n) as n from A within '2018-**-** **:**:**' per 'days' group by k)
        select d.k, d.n, y.n as yearly, (select max(total) from A('2018-**-** **:**:**', 'months') as m where m.k = d.k) as most
        from d join A within '2018-**-** **:**:**' per 'years' as y on y.k = d.k order by 1"""
    assert rows(trades.query(text)) == [("a", 6, 6, 19), ("b", 3, 3, 6)]


def test_named_columns_fill_and_auto_work_in_sql(trades: Asker) -> None:
    filled = f"select count(*), sum(n) from A within {START}, {START + 10 * DAY} per 'days' fill (zero, range)"
    assert rows(trades.query(filled)) == [(30, 7)]
    auto = "select AGG_PER, sum(n) from A within '2018-01-01 00:00:01', '2019-01-01 00:00:00' per 'auto' group by 1 order by 1"
    assert dict(rows(trades.query(auto)))["months"] == 3
    late = "select sum(AGG_LATE_MOVED) from A within '2018-**-** **:**:**' per 'years'"
    assert rows(trades.query(late)) == [(2,)]


def test_sql_without_our_tables_is_plain_sql_and_only_questions_are_asked(trades: Asker) -> None:
    assert rows(trades.query("select 1 + ? as x", [2])) == [(3,)]
    for text in ("create table x as select 1", "copy (select 1) to 'x.csv'", "select 1; select 2", "attach 'x'"):
        with pytest.raises(RollupError, match="one SELECT"):
            trades.query(text)


def test_a_variable_of_ours_is_no_table(trades: Asker) -> None:
    with pytest.raises(RollupError, match="there is no aggregation 'trades'"):
        trades.query("select * from trades")


def test_all_sources_of_a_statement_over_postgresql_read_one_commit(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, sent = postgres.new_database(), list[int]()
    (tmp_path / "app.siddhi").write_text(app())
    store = f'[store]\nkind = "sql"\nurl = "{url}"\n'
    (tmp_path / "conf.toml").write_text(f'app = "app.siddhi"\ncheckpoint = "checkpoint"\n{store}')
    host = LocalHost(compile_app(app()), lambda aggregation, engine: store_of(aggregation, engine, url))
    host.send("S", [("a", 1, START)])
    answer = SqlSnapshot.answer

    def and_then_commit(self: SqlSnapshot, *given: Any, **tables: Any) -> Any:
        found = answer(self, *given, **tables)
        if len(sent) < 1:
            sent.append(1)
            host.send("S", [("a", 1, START + DAY)])
        return found

    monkeypatch.setattr(SqlSnapshot, "answer", and_then_commit)
    source = "(select sum(n) from A within '2018-**-** **:**:**' per '{}')"
    text = f"select {source.format('years')}, {source.format('seconds')}, {source.format('days')}"
    asked = asker(tmp_path)
    assert rows(asked.query(text)) == [(1, 1, 1)]
    assert rows(asked.query(text)) == [(2, 2, 2)]


@pytest.mark.parametrize("form", list(Format))
def test_every_format_keeps_every_column_of_a_self_join(
    trades: Any, form: Format, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    year = "A within '2018-**-** **:**:**' per 'years'"
    answer = trades.query(f"select x.k, y.k, x.n, y.n from {year} x join {year} y on x.k = y.k where x.k = 'b'")
    assert answer.column_names == ["k", "k0", "n", "n0"]
    show(answer, form, "+00:00")
    printed = capfdbinary.readouterr().out
    assert all(name in printed for name in (b"k0", b"n0"))
