"""What a client of `rollup serve` must not be able to do, and what a wrong configuration is told.

The attacks are those on any server behind the gateway (`test_attacks`), made on what the private server holds; each
first switches read-only off, as an attacker would, so only rights that were never given count.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rollup.core.errors import ConfigError
from rollup.gateway.servers.options import ServeOptions
from tests.gateway.test_attacks import DENIED
from tests.gateway.trades import JANUARY, PASSWORD, Serving, configuration, events, folder, host

pytestmark = pytest.mark.postgres
NOT_HERE = {
    "read another schema",
    "read somebody's large object",
    "export a large object",
    "write somebody's large object",
    "become the writer",
}
MORE = {
    "write loaded rows": "insert into {slice} select * from {slice}",
    "empty loaded rows": "truncate {slice}",
    "drop loaded rows": "drop table {slice}",
    "lock loaded rows": "lock table {slice} in access exclusive mode",
    "replace a function": "create or replace function pg_rollup.wait(jsonb) returns jsonb language sql as 'select 1'",
    "ask in the server's name": "select pg_rollup.wait('{{}}'::jsonb)",
    "replace a view": 'create or replace view public."TradeAgg_per_days" as select 1',
    "make a table inside": "create table pg_rollup.mine (x int)",
    "read the password": "select pg_read_file('../password')",
    "become the owner": "set role rollup_owner",
    "read replies": "select pg_ls_dir('../mail')",
}


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    with folder() as made:
        conf = configuration(made)
        host(conf).send("Trades", events("2018-01"))
        with Serving(conf) as running:
            yield running


@pytest.fixture(scope="module")
def attacker(serving: Serving) -> Iterator[psycopg.Connection]:
    with psycopg.connect(**serving.login(), autocommit=True) as connection:
        connection.execute("set default_transaction_read_only = off")
        connection.execute(f"SELECT count(*) FROM TradeAgg WITHIN {JANUARY} PER 'days'")
        yield connection


@pytest.mark.parametrize("what", [*sorted(set(DENIED) - NOT_HERE), *MORE])
def test_a_client_cannot(attacker: psycopg.Connection, what: str) -> None:
    found = attacker.execute("select relname from pg_class where relname ~ '^slice_'").fetchone()
    assert found
    attack = (
        MORE[what].format(slice=f"pg_rollup.{found[0]}")
        if what in MORE
        else DENIED[what].replace("rollups.days", 'public."TradeAgg_per_days"').replace("rollups.", "public.")
    )
    attack = attack.replace("reader", "ann")
    with pytest.raises(psycopg.Error) as caught:
        attacker.execute(f"begin read write; {attack}; commit" if what != "change the server" else attack)
    attacker.execute("rollback")
    # 42809 and 55000: a view of a function is nothing to write, lock or analyse; 22023: no such role in this server.
    assert caught.value.sqlstate in ("42501", "55000", "42809", "0A000", "22023"), (
        f"refused for another reason: {caught.value}"
    )


def test_after_the_attacks_everything_answers_as_before(attacker: psycopg.Connection) -> None:
    assert attacker.execute(f"SELECT sum(total) FROM TradeAgg WITHIN {JANUARY} PER 'days' t").fetchone() == (3654.0,)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"user": "rollup"}, "not permitted to log in"),
        ({"user": "rollup_owner"}, "not permitted to log in"),
        ({"password": "wrong"}, "password authentication failed"),
        ({"dbname": "postgres"}, "is not served here"),
        ({"dbname": "template1"}, "is not served here"),
    ],
)
def test_only_named_users_with_their_password_enter_the_one_database(
    serving: Serving, changed: dict[str, str], message: str
) -> None:
    with pytest.raises(psycopg.OperationalError, match=message):
        psycopg.connect(**serving.login(**changed))


def test_names_and_values_with_quotes_stay_names_and_values() -> None:
    app = (
        "define stream S (k string, v double, ts long); define aggregation Odd from S"
        " select k, sum(v) as total, max(v) as high group by k aggregate by ts every sec ... year;"
    )
    values = [
        "it's",
        'a"b',
        "back\\slash",
        "$1",
        "{brace}",
        "%s",
        "ÄÖ€🙂",
        "nul\0",
        "one\1",
        "line\nbreak",
        ",",
        "",
        "\\.",
    ]
    with folder() as made:
        conf = configuration(made, app)
        host(conf).send("S", [(value, float(index), 0) for index, value in enumerate(values)])
        with Serving(conf) as serving, psycopg.connect(**serving.login(), autocommit=True) as client:
            source = "Odd WITHIN '1970-**-** **:**:**' PER 'years'"
            seen = client.execute(f"SELECT k, total FROM {source} ORDER BY total").fetchall()
            assert seen == [(value.replace("\0", "\ufffd"), float(index)) for index, value in enumerate(values)]
            with psycopg.ClientCursor(client) as cursor:  # literals in the text, which are pushed down
                for index, value in enumerate(values):
                    if "\0" not in value:
                        assert cursor.execute(f"SELECT total FROM {source} WHERE k = %s", (value,)).fetchall() == [
                            (float(index),)
                        ]
                        assert client.execute(f"SELECT total FROM {source} WHERE k = %s", (value,)).fetchall() == [
                            (float(index),)
                        ]


@pytest.mark.parametrize(
    ("serve", "message"),
    [
        ("prot = 5", "unknown key `prot`"),
        ("port = 'x'", "port is 'x'"),
        ("row_limit = 0", "row_limit is 0"),
        ("tls_cert = 'a.pem'", "belong together"),
        ("tls_cert = 'a.pem'\ntls_key = 'b.pem'", "cannot be used"),
    ],
)
def test_a_wrong_setting_is_named(serve: str, message: str) -> None:
    with folder() as made, pytest.raises(ConfigError, match=message):
        options = ServeOptions.of(configuration(made, serve=serve))
        options.context()


@pytest.mark.parametrize(
    ("users", "message"),
    [
        ("", "names nobody"),
        ('ann = "secret"', "is 'secret', which is no table"),
        ('ann = { password_env = "ROLLUP_NOT_SET" }', "is empty or not set"),
        ('ann = { password_file = "nowhere" }', "cannot read"),
        ('rollup = { password_file = "secret" }', "server's own"),
    ],
)
def test_a_user_without_a_usable_password_is_named(users: str, message: str) -> None:
    with folder() as made:
        conf = configuration(made)
        conf.path.write_text(conf.path.read_text().split("[serve.users]")[0] + f"[serve.users]\n{users}\n")
        from rollup.conf import load

        with pytest.raises(ConfigError, match=message):
            ServeOptions.of(load(conf.path))


def test_the_command_serves_until_it_is_told_to_stop(capfd: Any) -> None:
    with folder() as made:
        conf = configuration(made)
        host(conf).send("Trades", events("2018-01"))
        command = [sys.executable, "-m", "rollup.cli.main", "serve", str(conf.path)]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as running:
            assert running.stdout is not None
            line = running.stdout.readline()
            assert "listening on 127.0.0.1:" in line and "users ann" in line, line
            port = int(line.split("127.0.0.1:")[1].split(",")[0])
            login = {"host": "127.0.0.1", "port": port, "user": "ann", "password": PASSWORD, "dbname": "rollup"}
            client = psycopg.connect(**login)
            assert client.execute(f"SELECT sum(total) FROM TradeAgg WITHIN {JANUARY} PER 'days' t").fetchone() == (
                3654.0,
            )
            running.terminate()
            rest = running.stdout.read()
            with pytest.raises(psycopg.errors.AdminShutdown):
                client.execute("SELECT 1")
            assert running.wait(60) == 0
            assert "Traceback" not in rest, rest
