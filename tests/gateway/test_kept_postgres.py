"""Named windows and tables of an app's statements before a PostgreSQL store: tables in it with what the last commit left."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import psycopg2
import pytest
import sqlalchemy as sa

from rollup.conf import Conf
from rollup.gateway.rewriting.kept import BOOK, KeptTables
from rollup.gateway.servers.options import ServeOptions
from rollup.gateway.servers.serve import PostgresEndpoint
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from rollup.retrieval.tables import Tables
from rollup.statements.committed.commits import FOLDER, Commits
from rollup.statements.committed.kept import Kept
from rollup.stores.databases import store_of
from rollup.stores.sql.options import StoreOptions
from tests.gateway.trades import KEEPING, PASSWORD, Serving, before_postgres, folder, let_ann_read, trade
from tests.servers.postgres import PostgresServer, execute

pytestmark = pytest.mark.postgres
LAST = 'SELECT symbol, price FROM "Last" ORDER BY symbol'


@dataclass
class Place:
    """A job, the database of its store, and an endpoint before it."""

    conf: Conf
    dsn: str
    serving: Serving
    server: PostgresServer

    def job(self) -> LocalHost:
        """One that goes on where the last has ended."""
        commits = Commits(self.conf.tables / "_rollup" / FOLDER)
        return LocalHost(self.conf.program(), lambda each, engine: store_of(each, engine, self.dsn), commits)

    def login(self) -> dict[str, Any]:
        return dict(self.serving.login(dbname=self.serving.endpoint.database))

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(**self.login(), autocommit=True) as client:
            return client.execute(text.encode()).fetchall()


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with folder() as made, PostgresServer() as server:  # the roles' script takes rights from PUBLIC in every database
        dsn = server.new_database()
        conf = before_postgres(made, dsn, KEEPING)
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute('create table "Highest" (mine int)')
        let_ann_read(dsn)
        with Serving(conf) as serving:
            assert isinstance(serving.endpoint, PostgresEndpoint)
            found = Place(conf, dsn, serving, server)
            with pytest.raises(psycopg.Error, match="the statements have no commit yet"):
                found.rows(LAST)
            job = found.job()
            job.send("Trades", [trade("A", 1.0, 1), trade("B", 2.0, 2), trade("A", 3.0, 3)])
            job.send("Limits", [("A", 9.0)])
            yield found


def test_each_is_a_table_of_what_the_last_commit_left(place: Place) -> None:
    assert place.rows(LAST) == [("A", 3.0), ("B", 2.0)]
    assert place.rows('SELECT symbol, price FROM public."Recent"') == [("B", 2.0), ("A", 3.0)]
    assert place.rows('SELECT k, total FROM "Totals" ORDER BY k') == [("A", 4.0), ("B", 2.0)]
    assert place.rows('SELECT "it\'s", yes FROM "a ""b""#c" ORDER BY yes, 1') == [
        ("A", False),
        ("A", True),
        ("B", True),
    ]
    place.job().send("Trades", [trade("B", 7.0, 4)])
    assert place.rows(LAST) == [("A", 3.0), ("B", 7.0)]
    joined = """SELECT l.symbol, t.total FROM "Last" l JOIN TradeAgg WITHIN '2018-01-** **:**:**' PER 'years' t
                USING (symbol) JOIN "Totals" s ON s.k = l.symbol WHERE s.total = t.total ORDER BY 1"""
    assert place.rows(joined) == [("A", 4.0), ("B", 9.0)]


def test_clients_of_other_kinds_read_and_browse_them(place: Place) -> None:
    connection = psycopg2.connect(**place.login())
    with connection, connection.cursor() as cursor:
        cursor.execute('SELECT count(*) FROM "Last"')
        assert cursor.fetchone() == (2,)
    connection.close()
    given = place.login()
    url = sa.URL.create("postgresql+psycopg2", given["user"], PASSWORD, given["host"], given["port"], given["dbname"])
    engine = sa.create_engine(url)
    looked = sa.inspect(engine)
    assert {"Last", "Recent", "Sums", "Totals", 'a "b"#c', "TradeAgg_DAYS"} <= set(looked.get_table_names())
    assert [column["name"] for column in looked.get_columns("Last")] == ["symbol", "price", "n"]
    table = sa.Table("Last", sa.MetaData(), autoload_with=engine)
    with engine.connect() as client:
        assert client.execute(sa.select(table.c.symbol).order_by(table.c.symbol)).scalars().all() == ["A", "B"]
    engine.dispose()


def test_what_was_prepared_reads_the_newest_commit_too(place: Place) -> None:
    job = place.job()
    with psycopg.connect(**place.login(), autocommit=True) as client:
        client.execute(f"PREPARE s AS {LAST}".encode())
        for second in range(10, 16):
            job.send("Trades", [trade("B", float(second), second)])
            found = client.execute('SELECT price FROM "Last" WHERE symbol = %s', ("B",), prepare=True).fetchone()
            assert found == (float(second),)
            job.send("Trades", [trade("B", second + 0.5, second)])
            assert client.execute("EXECUTE s").fetchall()[1] == ("B", second + 0.5)


def test_a_prepared_question_fills_once_a_commit_and_nothing_is_locked_when_nothing_changed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(place.serving.endpoint, PostgresEndpoint)
    kept, filled, locked = place.serving.endpoint.kept, list[str](), list[bool]()
    fill, book = KeptTables._fill, KeptTables._book
    monkeypatch.setattr(kept, "_fill", lambda cursor, key, *more: (filled.append(key), fill(kept, cursor, key, *more)))
    monkeypatch.setattr(kept, "_book", lambda cursor, lock: (locked.append(lock), book(kept, cursor, lock))[1])
    place.rows(LAST)
    place.job().send("Trades", [trade("B", 7.0, 16)])
    with psycopg.connect(**place.login(), autocommit=True) as client:
        for again in range(3):
            filled.clear()
            locked.clear()
            assert client.execute('SELECT price FROM "Last" WHERE symbol = %s', ("B",), prepare=True).fetchall() == [
                (7.0,)
            ]
            assert filled.count("Last") == (again == 0)
            assert locked == ([False, True] if again == 0 else [False])


def test_a_commit_that_was_removed_by_hand_is_shown_no_more(place: Place) -> None:
    place.job().send("Trades", [trade("B", 8.0, 17)])
    before = place.rows(LAST)
    place.job().send("Trades", [trade("B", 9.0, 18)])
    assert place.rows(LAST) != before
    records = sorted((place.conf.tables / "_rollup" / FOLDER).glob("commit-*.json"))
    records[-1].unlink()
    assert place.rows(LAST) == before
    place.job().send("Trades", [trade("B", 10.0, 18)])  # another commit of that number
    assert place.rows(LAST)[1] == ("B", 10.0)
    records[-1].unlink()
    place.job().send("Trades", [trade("B", 11.0, 18)])
    assert place.rows(LAST)[1] == ("B", 11.0)


def test_execute_tells_why_a_table_that_it_reads_cannot_be_filled(place: Place) -> None:
    with Serving(place.conf, replace(ServeOptions.of(place.conf, passwords=False), row_limit=2)) as serving:
        few = Place(place.conf, place.dsn, serving, place.server)
        with (
            psycopg.connect(**few.login(), autocommit=True) as client,
            psycopg.connect(**few.login(), autocommit=True) as other,
        ):
            client.execute(f"PREPARE s AS {LAST}".encode())
            other.execute("PREPARE s AS SELECT 1")
            assert len(client.execute("EXECUTE s").fetchall()) == 2
            place.job().send("Trades", [trade("C", 1.0, 19)])
            with pytest.raises(psycopg.Error, match="Last holds 3 rows, and 2 may be read"):
                client.execute("EXECUTE s")
            few.rows(
                'SELECT count(*) FROM "epl block 2.TradeAgg"'
            )  # what can be filled goes on, and empties what cannot
            with pytest.raises(psycopg.Error, match="Last holds 3 rows, and 2 may be read"):
                client.execute("EXECUTE s")
            assert other.execute("EXECUTE s").fetchall() == [(1,)]
    assert len(place.rows(LAST)) == 3


def test_a_name_with_capitals_without_its_quotes_is_told_how_it_is_written(place: Place) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable, match="capitals") as caught:
        place.rows("SELECT * FROM Last")
    assert caught.value.diag.message_hint == 'SELECT … FROM "Last"'


def test_whoever_reads_in_one_transaction_sees_one_commit(place: Place) -> None:
    job = place.job()
    with psycopg.connect(**place.login()) as client:
        client.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before = client.execute(LAST.encode()).fetchall()
        job.send("Trades", [trade("A", 100.0, 20)])
        assert place.rows(LAST)[0] == ("A", 100.0)
        assert client.execute(LAST.encode()).fetchall() == before
        client.rollback()
        assert client.execute(LAST.encode()).fetchall()[0] == ("A", 100.0)


def test_a_server_that_was_killed_and_came_back_is_filled_on(place: Place) -> None:
    place.server.kill9()
    with pytest.raises(psycopg.OperationalError):
        place.rows(LAST)
    place.server.restart()
    place.job().send("Trades", [trade("B", 55.0, 20)])
    assert ("B", 55.0) in place.rows(LAST)


def test_a_table_of_that_name_that_is_there_is_left_alone(place: Place) -> None:
    assert place.rows('SELECT * FROM "Highest"') == []
    with psycopg.connect(place.dsn) as admin:
        assert admin.execute(f"select name from {BOOK} where name = 'Highest'".encode()).fetchall() == []
    with (
        psycopg.connect(**place.login(), autocommit=True) as client,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        client.execute("SET default_transaction_read_only = off")
        client.execute('DELETE FROM "Last"')


def test_more_rows_than_may_be_read_are_refused_and_the_others_are_read(place: Place) -> None:
    with Serving(place.conf, replace(ServeOptions.of(place.conf, passwords=False), row_limit=1)) as serving:
        assert isinstance(serving.endpoint, PostgresEndpoint)
        few = Place(place.conf, place.dsn, serving, place.server)
        place.job().send("Trades", [trade("A", 1.0, 21)])
        with pytest.raises(psycopg.Error, match=r"holds \d rows, and 1 may be read"):
            few.rows(LAST)
        assert few.rows('SELECT count(*) FROM "epl block 2.TradeAgg"') == [(0,)]
    assert place.rows(LAST)[0] == ("A", 1.0)


def test_statements_that_begin_anew_and_those_of_another_app(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    theirs = before_postgres(
        other, place.dsn, KEEPING.replace("TradeAgg from", "OtherAgg from").replace("TradeAgg#", "T2#")
    )
    with Serving(theirs) as serving:
        second = Place(theirs, place.dsn, serving, place.server)
        second.job().send("Trades", [trade("X", 1.0, 1)])
        assert second.rows(LAST) == [("X", 1.0)]
        with pytest.raises(psycopg.Error, match="statements of another app fill the table Last"):
            place.rows(LAST)
        with pytest.raises(psycopg.Error, match="statements of another app"):
            place.rows(LAST)  # as long as the other's rows are there
        shutil.rmtree(theirs.tables / "_rollup" / FOLDER)
        second.job().send("Trades", [trade("Y", 2.0, 1)])
        assert second.rows(LAST) == [("Y", 2.0)]


def test_a_text_reads_what_it_names_and_no_part_of_another_word(place: Place) -> None:
    assert isinstance(place.serving.endpoint, PostgresEndpoint)
    kept = place.serving.endpoint.kept
    assert kept is not None and kept.mentioned(LAST) == {"Last"}
    for text in ("SELECT 1 AS last_price", "SET client_encoding TO 'UTF8'", "SELECT Last FROM x", 'SELECT "Lasting"'):
        assert kept.mentioned(text) == set(), text
    assert "Last" in kept.mentioned('SELECT * FROM U&"L\\0061st"')


def test_a_table_of_statements_that_have_gone_goes(place: Place) -> None:
    dsn = place.server.new_database()
    store = StoreOptions.of(dsn)
    before = KeptTables(Tables([Kept(place.conf.tables, place.conf.program())]), store, 1000)
    before.prepare()
    before.refresh(LAST)
    bare = compile_app(
        "define stream S (k string); define stream T (k string); @lang('epl') { insert into T select k from S; }"
    )
    after = KeptTables(Tables([Kept(place.conf.tables, bare)]), store, 1000)
    after.prepare()
    assert execute(dsn, "select to_regclass('\"Last\"')") == [(None,)]
    assert execute(dsn, f"select count(*) from {BOOK} where name = 'Last'") == [(0,)]
    before.close()
    after.close()
