"""Questions to named windows and tables of an app's statements: what the last commit left in them, asked as aggregations are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

import rollup
from rollup.ask import Asker, is_question
from rollup.cli.main import cli
from rollup.conf import Conf
from rollup.core.errors import NoCommitError, QueryError, RollupError, StoreError
from rollup.lifecycle.book import Book, Page
from tests.gateway.trades import KEEPING, configuration, host, trade

ALL = 'Highest, Recent, Last, Sums, a "b"#c, epl block 2.TradeAgg, Totals'
KNOWN = f"aggregations are TradeAgg; named windows and tables are {ALL}"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conf]:
    conf = configuration(tmp_path_factory.mktemp("kept"), KEEPING)
    job = host(conf)
    job.send("Trades", [trade("A", 1.0, 1), trade("B", 2.0, 2), trade("A", 3.0, 3)])
    job.send("Limits", [("A", 9.0)])
    yield conf


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("from Last select symbol, price order by symbol", [("A", 3.0), ("B", 2.0)]),
        ("FROM Last AS l ON l.price > 2.5 SELECT l.symbol", [("A",)]),
        ("from Highest on symbol == 'A' select price", [(9.0,)]),
        ("from Recent select sum(price) as s, count() as n", [(5.0, 2)]),
        ("from Totals select k, total order by total desc limit 1", [("A", 4.0)]),
        ('from `a "b"#c` select `it\'s`, yes limit 1', [("A", False)]),
        ("from `epl block 2.TradeAgg`", []),
        ("select symbol, price from Last where price > 2", [("A", 3.0)]),
        ("select count(*) from LAST", [(2,)]),
        ('select yes, "it\'s" from "a ""b""#c" order by yes, 2 limit 1', [(False, "A")]),
        ("select l.symbol, t.total from Last l join Totals t on t.k = l.symbol order by 1", [("A", 4.0), ("B", 2.0)]),
        (
            "select symbol, TradeAgg.total from TradeAgg within '2018-01-** **:**:**' per 'years' join Last using (symbol)"
            " join Totals on k = symbol where Totals.total = TradeAgg.total order by 1",
            [("A", 4.0), ("B", 2.0)],
        ),
        ("with Last as (select 1 as x) select x from Last", [(1,)]),
    ],
)
def test_each_is_asked_by_its_name_in_siddhiql_and_in_sql(asked: Conf, text: str, rows: list[tuple[Any, ...]]) -> None:
    assert [tuple(row.values()) for row in rollup.query(asked, text).to_pylist()] == rows


def test_parameters_are_those_of_the_sql(asked: Conf) -> None:
    assert rollup.query(asked, "select symbol from Last where price = ?", [2.0])["symbol"].to_pylist() == ["B"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("from Lst select *", f"line 1, column 6: there is no aggregation, named window or table 'Lst' (did you mean Last? {KNOWN})"),
        ("select 1 from nothing", f"line 1, column 15: there is no aggregation, named window or table 'nothing' ({KNOWN})"),
        ("from nothing", f"line 1, column 6: there is no aggregation, named window or table 'nothing' ({KNOWN})"),
        ("from tradeagg within '2018-**-** **:**:**' per 'days'", f"line 1, column 6: there is no aggregation, named window or table 'tradeagg' (did you mean TradeAgg? {KNOWN})"),
        ("from TradeAgg_DAYS select *", "line 1, column 6: TradeAgg_DAYS is a stored table, which lacks the buckets that are still open (TradeAgg WITHIN '2018-01-** **:**:**' PER 'days' has both)"),
        ("from Trades select *", f"line 1, column 6: Trades is a stream, of which no rows are kept (ask what keeps some: {KNOWN})"),
        ("select * from Seen", f"line 1, column 15: Seen is a stream, of which no rows are kept (ask what keeps some: {KNOWN})"),
        ("from r select *", f"line 1, column 6: there is no aggregation, named window or table 'r' ({KNOWN})"),
        ("/* r */ from r", f"line 1, column 14: there is no aggregation, named window or table 'r' ({KNOWN})"),
        ("from Last select x", "line 1, column 18: attribute 'x' is not known (known are Last.symbol, Last.price, Last.n)"),
        ("delete Last on price > 2", "line 1, column 8: a question changes nothing (it is one SELECT, or from … select …)"),
    ],
)  # fmt: skip
def test_a_name_that_cannot_be_asked_is_told_all_that_can(asked: Conf, text: str, said: str) -> None:
    with pytest.raises(RollupError) as caught:
        rollup.query(asked, text)
    assert str(caught.value) == said


@pytest.mark.long
def test_before_the_first_commit_and_after_a_change_of_the_text_it_is_said(asked: Conf, tmp_path: Any) -> None:
    fresh = configuration(tmp_path, KEEPING)
    for text in ("from Last select *", "select * from Last"):
        with pytest.raises(NoCommitError, match="rollup run"):
            rollup.query(fresh, text)
    host(fresh).send("Trades", [trade("A", 1.0, 1)])
    changed = configuration(tmp_path, KEEPING.replace("1 as n from Trades", "2 as n from Trades"))
    for text in ("from Last select *", "select * from Last"):
        with pytest.raises(StoreError, match="epl block has changed since the last commit"):
            rollup.query(changed, text)
    assert rollup.query(changed, "select price from Recent")["price"].to_pylist() == [1.0]


def test_the_command_line_asks_them_too_also_where_columns_were_added_later(asked: Conf) -> None:
    Book.of(asked, "TradeAgg").write(Page(valid={"total": 0}))
    for text in ("from Last select symbol order by symbol", "select symbol from Last order by symbol"):
        done = CliRunner().invoke(cli, ["query", str(asked.path), text, "--format", "csv"])
        assert (done.exit_code, done.stdout.split()) == (0, ["symbol", "A", "B"])


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("from Last within '2018-**-** **:**:**' per 'days' select symbol", "leave `within"),
        ("explain from Last select symbol", "ask without it"),
    ],
)
def test_what_only_an_aggregation_can_answer_is_said_of_a_named_window(asked: Conf, text: str, cure: str) -> None:
    with pytest.raises(QueryError, match=f"Last is a named window or table, whose rows are of no duration .*{cure}"):
        rollup.query(asked, text)


def test_the_plan_says_what_is_kept(asked: Conf) -> None:
    sources = "".join(f'[sources.{name}]\nkind = "json"\npath = "."\n' for name in ("Trades", "Limits"))
    planned = asked.path.with_name("planned.toml")
    planned.write_text(asked.path.read_text() + sources)
    said = CliRunner().invoke(cli, ["plan", str(planned)]).stdout
    assert "keeps Last, Sums: `rollup query` and `rollup serve` read what the last commit left" in said


def test_a_long_indent_before_a_question_costs_nothing() -> None:
    for space in (" " * 5000, "\n" * 5000, " -- x\n" * 500, "/* */ " * 500):
        assert (is_question(space + "select 1"), is_question(space + "from A")) == (False, True)


def test_a_commit_that_is_gone_is_said_by_one_who_has_read_none_before(asked: Conf) -> None:
    with pytest.raises(StoreError, match="commit 99 of the statements is gone"):
        Asker(asked).kept.rows("Last", 99)
