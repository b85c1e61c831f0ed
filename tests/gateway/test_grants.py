"""What users may read: some aggregations and some rows of them, before both kinds of store, in every form of a question.

What each user should see is worked out of the raw events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest
from psycopg import sql
from psycopg.abc import Query

from rollup.conf import load
from rollup.core.errors import ConfigError
from rollup.gateway.servers.options import ServeOptions
from rollup.hosts.local import LocalHost
from rollup.stores.databases import store_of
from tests.gateway.trades import PASSWORD, ROLES, Serving, at, before_postgres, configuration, folder, host
from tests.servers.postgres import PostgresServer

APP = """
define stream Trades (symbol string, region string, price double, ts long);
@OutOfOrder('correct') define aggregation TradeAgg from Trades
select symbol, region, sum(price) as total, count() as n, distinctCount(symbol) as kinds
group by symbol, region aggregate by ts every sec ... year;
define aggregation HiddenAgg from Trades select symbol, max(price) as dearest group by symbol aggregate by ts every sec ... year;
@lang('epl') {
  create window HiddenLast#unique(symbol) as (symbol string, price double);
  insert into HiddenLast select symbol, price from Trades;
}
"""
EVENTS = [
    (symbol, region, float(day), at(f"2018-01-{day:02d}T12:00:00"))
    for day in range(1, 29)
    for symbol, region in (("A", "EU"), ("B", "EU"), ("A", "US"), ("AMERICAN", "US"), ("C", None))
]
LATE = [("A", "EU", 100.0, at("2018-01-02T00:00:00")), ("AMERICAN", "US", 1.0, at("2018-01-02T00:00:00"))]
ALL = [*EVENTS, *LATE]
OURS = [event for event in ALL if event[1] == "EU"]
USERS = """
ann = { SECRET, reads = ["TradeAgg"], where = "region = 'EU' or region = '{0}%s'" }
bob = { SECRET, reads = ["HiddenAgg", "HiddenLast"] }
eve = { SECRET }
"""


def _with_users(conf: Any, secret: str) -> Any:
    text = conf.path.read_text().split("[serve.users]")[0]
    conf.path.write_text(
        text + "[serve.users]" + USERS.replace("SECRET, ", secret).replace("{ SECRET }", f"{{ {secret.rstrip(', ')} }}")
    )
    return load(conf.path)


@pytest.fixture(scope="module", params=["delta", pytest.param("postgresql", marks=pytest.mark.postgres)])
def serving(request: pytest.FixtureRequest) -> Iterator[Serving]:
    with folder() as made:
        if request.param == "delta":
            conf = _with_users(configuration(made, APP), 'password_file = "secret", ')
            job = host(conf)
            for batch in (EVENTS, LATE):
                job.send("Trades", batch)
            with Serving(conf) as serving:
                yield serving
            return
        with PostgresServer() as server:
            dsn = server.new_database()
            conf = _with_users(before_postgres(made, dsn, APP.partition("@lang")[0]), "")
            conf.path.write_text(conf.path.read_text().replace(', "HiddenLast"', ""))
            conf = load(conf.path)
            job = LocalHost(conf.program(), lambda aggregation, engine: store_of(aggregation, engine, dsn))
            for batch in (EVENTS, LATE):
                job.send("Trades", batch)
            with psycopg.connect(dsn, autocommit=True) as admin:
                for user in ("ann", "bob", "eve"):
                    names = {"role": user, "database": dsn.rpartition("/")[2], "schema": "public", "owner": "rollup"}
                    parts = {key: sql.Identifier(value) for key, value in names.items()}
                    admin.execute(sql.SQL(ROLES.read_text()).format(password=sql.Literal(PASSWORD), **parts))
            with Serving(conf) as serving:
                yield serving


def _connected(serving: Serving, user: str) -> psycopg.Connection[Any]:
    return psycopg.connect(**dict(serving.login(user=user, dbname=serving.endpoint.database)), autocommit=True)


@pytest.fixture
def ann(serving: Serving) -> Iterator[psycopg.Connection[Any]]:
    with _connected(serving, "ann") as connection:
        yield connection


TOTAL, COUNT = sum(event[2] for event in OURS), len(OURS)
FORMS = {
    "within": "select sum(total), sum(n)::int from TradeAgg within '2018' per 'days'",
    "auto": "select sum(total), sum(n)::int from TradeAgg within '2018-01-** **:**:**' per 'auto'",
    "merged over all keys": "select sum(total), sum(n)::int from TradeAgg within '2018' per 'months by ()'",
    "weeks": "select sum(total), sum(n)::int from TradeAgg within '2018' per 'weeks'",
    "another zone": "select sum(total), sum(n)::int from TradeAgg within '2018' per 'days in Asia/Kolkata'",
    "filled": "select sum(total), sum(n)::int from TradeAgg within '2018-01' per 'days' fill (zero, range)",
    "call": "select sum(total), sum(n)::int from TradeAgg('2018-01-** **:**:**', 'hours')",
    "quoted name": """select sum(total), sum(n)::int from "TradeAgg within 2018-01-** **:**:** per days" """,
    "view of a level": """select sum(total), sum(n)::int from "TradeAgg_per_days" """,
    "view in a schema": """select sum(total), sum(n)::int from public."TradeAgg_per_seconds" """,
    "own condition": "select sum(total), sum(n)::int from TradeAgg within '2018' per 'years' where region is null or 1 = 1",
    "with": "with x as materialized (select * from TradeAgg within '2018' per 'days') select sum(total), sum(n)::int from x",
    "lateral": "select sum(total), sum(n)::int from (values ('2018-01-01 00:00:00', '2019-01-01 00:00:00')) r (a, b), "
    "lateral TradeAgg(r.a, r.b, 'days') t",
    "time bucket": """select sum(t), sum(c)::int from (select date_trunc('day', "AGG_TIME", 'UTC') d, sum(total) t, sum(n) c
        from "TradeAgg_per_days" group by 1) x""",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("prepared", [False, True], ids=["at once", "prepared"])
def test_no_form_of_a_question_shows_other_rows(ann: psycopg.Connection[Any], form: str, prepared: bool) -> None:
    assert ann.execute(cast(Query, FORMS[form]), prepare=prepared).fetchone() == (TOTAL, COUNT)


@pytest.mark.parametrize("source", ["within '2018' per 'days'", "within '2018' per 'months by ()'", None])
def test_late_events_of_other_rows_are_not_counted(serving: Serving, source: str | None) -> None:
    place = f"TradeAgg {source}" if source else '"TradeAgg_per_hours"'
    text = f'select sum("AGG_LATE_CORRECTED")::int, sum("AGG_EVENTS")::int from {place}'
    for user, mine in {"ann": lambda event: event[1] == "EU", "eve": lambda event: True}.items():
        with _connected(serving, user) as connection:
            found = connection.execute(cast(Query, text)).fetchone()
            assert found == (sum(map(mine, LATE)), sum(map(mine, ALL))), user


def test_cursors_copies_and_transactions_show_no_other_rows(ann: psycopg.Connection[Any]) -> None:
    asked = FORMS["within"]
    with ann.transaction():
        ann.execute(cast(Query, f"declare c cursor for {asked}"))
        assert ann.execute("fetch all from c").fetchone() == (TOTAL, COUNT)
    with ann.cursor().copy(cast(Query, f"copy ({asked}) to stdout")) as copied:
        assert b"".join(bytes(part) for part in copied) == f"{TOTAL:g}\t{COUNT}\n".encode()
    with ann.transaction():
        ann.execute("set transaction isolation level repeatable read")
        assert ann.execute(cast(Query, asked)).fetchone() == (TOTAL, COUNT)
    ann.execute(cast(Query, f"prepare p as {asked}"))
    assert ann.execute("execute p").fetchone() == (TOTAL, COUNT)


def test_a_subscription_shows_no_other_rows(serving: Serving, ann: psycopg.Connection[Any]) -> None:
    lines = list[bytes]()
    with (
        pytest.raises(psycopg.errors.QueryCanceled),
        ann.cursor().copy(b"COPY (SUBSCRIBE TradeAgg PER 'years') TO STDOUT") as copied,
    ):
        for line in copied:
            lines.append(bytes(line))
            if lines[-1].split(b"\t")[1] == b"commit":
                ann.cancel_safe()
    rows = [line.decode().split("\t") for line in lines if line.split(b"\t")[1] == b"row"]
    assert {row[4]: (float(row[6]), int(row[7])) for row in rows} == {
        key: (sum(e[2] for e in OURS if e[0] == key), sum(e[0] == key for e in OURS)) for key in ("A", "B")
    }
    with pytest.raises(psycopg.Error, match="is not defined") as refused:
        ann.execute(b"SUBSCRIBE HiddenAgg PER 'days'")
    assert "Hidden" not in str(refused.value.diag.message_hint)


def test_each_user_sees_the_rows_of_the_own_grant(serving: Serving) -> None:
    with _connected(serving, "eve") as eve:
        assert eve.execute(cast(Query, FORMS["within"])).fetchone() == (sum(e[2] for e in ALL), len(ALL))
        assert eve.execute("select count(*) from HiddenAgg within '2018' per 'years'").fetchone() == (4,)
    with _connected(serving, "bob") as bob:
        found = bob.execute("select symbol, dearest from HiddenAgg within '2018' per 'years' order by 1").fetchall()
        assert found == [(key, max(e[2] for e in ALL if e[0] == key)) for key in ("A", "AMERICAN", "B", "C")]
        with pytest.raises(psycopg.Error):
            bob.execute(cast(Query, FORMS["within"]))


HIDDEN = (
    "select * from HiddenAgg within '2018' per 'days'",
    "select * from HiddenAgg('2018', 'days')",
    """select * from "HiddenAgg within 2018 per days" """,
    """select * from "HiddenAgg_per_days" """,
    """select * from public."HiddenAgg_per_days" """,
    """explain select * from "HiddenAgg_per_days" """,
    """explain analyze select * from HiddenAgg within '2018' per 'days'""",
    """copy (select * from "HiddenAgg_per_days") to stdout""",
    """prepare p as select * from HiddenAgg within '2018' per 'days'""",
    """select * from "HiddenAgg_DAYS" """,
    """select * from pg_rollup."ask HiddenAgg"('{}', null, null, 'days')""",
    """select * from "HiddenLast" """,
)


@pytest.mark.parametrize("text", HIDDEN)
def test_what_is_not_granted_is_refused(serving: Serving, ann: psycopg.Connection[Any], text: str) -> None:
    with pytest.raises(psycopg.Error, match=r"does not exist|unknown aggregation|permission denied"):
        cursor = ann.execute(cast(Query, text))
        cursor.fetchall()
    with pytest.raises(psycopg.Error) as refused:
        ann.execute("select * from Tradeagg2 within '2018' per 'days'")
    assert "Hidden" not in str(refused.value)


def test_lists_of_names_have_what_is_granted_alone(serving: Serving, ann: psycopg.Connection[Any]) -> None:
    """No relation of any catalog has a word of what is hidden: neither a name nor a value."""
    if serving.endpoint.database != "rollup":
        pytest.skip("the catalog of a store's own server shows names to every role")
    query = """select c.oid::regclass::text from pg_class c where c.relkind in ('r', 'v', 'p', 'm')
        and has_table_privilege(c.oid, 'select')"""
    names = [row[0] for row in ann.execute(query).fetchall()]
    assert len(names) > 100
    for name in names:
        try:
            text = str(ann.execute(cast(Query, f"select t::text from {name} t")).fetchall())
        except psycopg.Error:
            continue
        assert "Hidden" not in text.replace(query, ""), name
        assert "AMERICAN" not in text, name


def test_nobody_reaches_the_database_of_another_grant(serving: Serving) -> None:
    for name in ("rollup_2", "rollup_3", "postgres"):
        with pytest.raises(psycopg.OperationalError, match="not served"):
            psycopg.connect(**dict(serving.login(user="ann", dbname=name)))


LEAKS = (
    """select symbol::int from "TradeAgg_per_days" """,
    """select count(*) from "TradeAgg_per_days" where symbol::int = 1""",
    """select count(*) from "TradeAgg_per_days" where 1 / (case when symbol = 'AMERICAN' then 0 else 1 end) = 1""",
    """select 1 from "TradeAgg_per_days" group by symbol having max(symbol)::json is not null""",
    """select symbol::timestamp from TradeAgg within '2018' per 'days' order by symbol""",
    """select n from (select *, symbol::inet from "TradeAgg_per_days") t where region is distinct from 'EU'""",
    """select 1 from TradeAgg within '2018' per 'days' t where (symbol || region)::uuid is not null""",
    """with t as materialized (select * from "TradeAgg_per_days") select symbol::xid from t""",
    """select (select symbol::money from "TradeAgg_per_days" where region = 'US' limit 1)""",
    """select format('%' || symbol, 1) from "TradeAgg_per_days" """,
    """select ('$.' || symbol || '[')::jsonpath from "TradeAgg_per_days" where total > 0""",
    """select to_regclass(symbol || '."')::text from "TradeAgg_per_days" """,
)
"""Questions whose error, or whether there is one, could tell a value of a row that is not granted."""


@pytest.mark.parametrize("text", LEAKS)
def test_no_error_tells_of_rows_that_are_not_granted(ann: psycopg.Connection[Any], text: str) -> None:
    try:
        told = str(ann.execute(cast(Query, text)).fetchall())
    except psycopg.Error as problem:
        told = f"{problem.sqlstate} {problem} {vars(problem.diag)}"
        assert problem.sqlstate != "22012", "a row that is not granted was looked at"
    assert "AMERICAN" not in told.replace(text, "").replace(text.strip(), "") and "US" not in told


def test_nobody_sees_what_others_ask(serving: Serving, ann: psycopg.Connection[Any]) -> None:
    with _connected(serving, "bob") as bob:
        bob.execute("set application_name = 'named by bob'")
        bob.execute("prepare kept as select 'a secret of bob'")
        with bob.transaction():
            bob.execute("declare c cursor for select 'a secret of bob'")
            texts = list[str]()
            for name in (
                "pg_stat_activity",
                "pg_locks",
                "pg_cursors",
                "pg_prepared_statements",
                "pg_stat_progress_copy",
            ):
                texts += [str(row) for row in ann.execute(cast(Query, f"select * from {name}")).fetchall()]
    assert not any("secret of bob" in each for each in texts)


@pytest.mark.postgres
def test_the_tables_of_a_store_show_no_other_rows(serving: Serving, ann: psycopg.Connection[Any]) -> None:
    if serving.endpoint.database == "rollup":
        pytest.skip("before Delta there are no such tables")
    for table in ("DAYS", "OPEN", "LATE"):
        found = ann.execute(cast(Query, f'select distinct region from "TradeAgg_{table}"')).fetchall()
        assert found in ([("EU",)], [])
    with pytest.raises(psycopg.Error, match="permission denied"):
        ann.execute('select * from "TradeAgg_COMMIT"')
    for text in (
        """select distinct region from "TradeAgg_DAYS" tablesample system (100)""",
        """select distinct region from only "TradeAgg_DAYS" where ctid is not null""",
        """select distinct t.region from "TradeAgg_DAYS" t right join "TradeAgg_DAYS" s on true""",
        """select distinct ((t)::text ~ 'EU') from "TradeAgg_DAYS" t""",
    ):
        assert ann.execute(cast(Query, text)).fetchall() in ([("EU",)], [(True,)])
    with ann.cursor().copy("""copy "TradeAgg_DAYS" (region) to stdout""") as copied:
        assert set(b"".join(bytes(part) for part in copied).split()) == {b"EU"}
    for view in ("pg_stats", "pg_stats_ext", "pg_stats_ext_exprs"):
        assert "AMERICAN" not in str(ann.execute(cast(Query, f"select t::text from {view} t")).fetchall())
    ann.execute("set row_security = off")
    with pytest.raises(psycopg.Error, match="row-level security"):
        ann.execute("select * from TradeAgg within '2018' per 'days'")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ('reads = ["TradAgg"]', r"reads 'TradAgg', which there is not.*did you mean TradeAgg"),
        ('reads = "TradeAgg"', "is no list of names"),
        ('reeds = ["TradeAgg"]', "unknown key `reeds`"),
        ('where = "price > 3"', "HiddenLast is no aggregation"),
        (
            'reads = ["TradeAgg"], where = "price > 3"',
            r"unknown attribute 'price'.*group keys of TradeAgg are symbol, region",
        ),
        ('reads = ["TradeAgg"], where = "region"', "must be a bool"),
        ('reads = ["TradeAgg"], where = "region = "', "unexpected"),
        ('reads = ["TradeAgg"], where = { HiddenAgg = "symbol = \'A\'" }', "no aggregation that the user reads"),
        ('reads = ["TradeAgg", "HiddenLast"], where = "region = \'EU\'"', "HiddenLast is no aggregation"),
        ('reads = ["TradeAgg"], where = 3', "is no condition"),
    ],
)
def test_a_grant_that_cannot_be_is_refused_with_its_place(said: str, message: str) -> None:
    with folder() as made:
        conf = configuration(made, APP)
        conf.path.write_text(conf.path.read_text().replace('"secret" }', f'"secret", {said} }}'))
        conf = load(conf.path)
        with pytest.raises(ConfigError, match=rf"\[serve.users\] ann.*{message}"):
            ServeOptions.of(conf).grants(conf, conf.program(), ["HiddenLast"])
