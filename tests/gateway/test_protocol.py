"""The protocol message by message, as no driver would say it: pipelines, split packets, errors in the middle.

Drivers only send what they were written to send. What a gateway gets wrong is order: whose error is it, and is the
next answer still the next question's? A client of raw bytes asks exactly that.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
import time
from pathlib import Path

import psycopg
import pytest

from rollup.gateway.protocol import proxy, wire
from rollup.gateway.protocol.limits import Limits
from tests.gateway import toys
from tests.gateway.conftest import PASSWORD
from tests.gateway.toys import EXECUTE, FLUSH, SYNC, TERMINATE, Raw, Running, bind, kinds, parse, query
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture
def raw(gateway: Running):
    with Raw(gateway.port) as client:
        yield client


def values(messages: list[tuple[bytes, bytes]]) -> list[bytes]:
    """The first column of each DataRow."""
    return [body[6 : 6 + int.from_bytes(body[2:6], "big")] for kind, body in messages if kind == b"D"]


def the_error(messages: list[tuple[bytes, bytes]]) -> dict[str, bytes]:
    [body] = [body for kind, body in messages if kind == b"E"]
    return wire.fields(body)


def test_a_simple_query_is_rewritten(raw: Raw) -> None:
    raw.send(query("SELECT n FROM ANSWER"))
    assert values(raw.until(b"Z")) == [b"42"]


def test_our_words_in_other_peoples_sql_pass_untouched(raw: Raw) -> None:
    raw.send(query("select 'from answer' /* FROM -- */"))
    assert values(raw.until(b"Z")) == [b"from answer"]


def test_a_message_may_come_one_byte_at_a_time(raw: Raw) -> None:
    for byte in query("SELECT n FROM ANSWER"):
        raw.send(bytes([byte]))
    assert values(raw.until(b"Z")) == [b"42"]


def test_a_refused_simple_query_is_an_error_and_the_session_goes_on(raw: Raw) -> None:
    raw.send(query("SELECT\n  REFUSED FROM ANSWER"), query("select 1"))
    first, second = raw.until(b"Z"), raw.until(b"Z")
    error = the_error(first)
    assert kinds(first) == "EZ" and first[-1][1] == b"I"
    assert error["M"].decode() == "this is refused: ÄÖ€"
    assert (error["S"], error["C"], error["P"], error["H"]) == (b"ERROR", b"42601", b"10", b"say FROM ANSWER")
    assert values(second) == [b"1"]


def test_a_value_that_is_refused_has_its_own_sqlstate_and_a_bug_is_not_shown(raw: Raw) -> None:
    raw.send(query("SELECT UNKNOWN LEVEL FROM ANSWER"), query("SELECT BROKEN FROM ANSWER"))
    assert the_error(raw.until(b"Z"))["C"] == b"22023"
    broken = the_error(raw.until(b"Z"))
    assert broken["C"] == b"XX000" and b"a bug" not in broken["M"]


def test_a_refusal_aborts_the_transaction_as_the_servers_own_error_would(raw: Raw) -> None:
    raw.send(query("begin"), query("SELECT REFUSED FROM ANSWER"), query("select 1"), query("rollback"))
    assert [raw.until(b"Z")[-1][1] for _ in range(4)] == [b"T", b"E", b"E", b"I"]


def test_a_refused_parse_skips_to_the_sync_and_earlier_answers_come_first(raw: Raw) -> None:
    raw.send(
        parse("select 'one'"), bind(), EXECUTE,
        parse("SELECT REFUSED FROM ANSWER"), bind(), EXECUTE,
        parse("select 'three'"), bind(), EXECUTE, SYNC,
        parse("select 'four'"), bind(), EXECUTE, SYNC,
    )  # fmt: skip
    first, second = raw.until(b"Z"), raw.until(b"Z")
    assert kinds(first) == "12DCEZ" and values(first) == [b"one"]
    assert the_error(first)["C"] == b"42601"
    assert kinds(second) == "12DCZ" and values(second) == [b"four"]


def test_an_earlier_error_hides_the_refusal_behind_it(raw: Raw) -> None:
    raw.send(parse("select 1/0"), bind(), EXECUTE, parse("SELECT REFUSED FROM ANSWER"), bind(), EXECUTE, SYNC)
    raw.send(parse("SELECT n FROM ANSWER"), bind(), EXECUTE, SYNC)
    assert the_error(raw.until(b"Z"))["C"] == b"22012"
    assert values(raw.until(b"Z")) == [b"42"]


def test_a_refused_text_without_a_name_leaves_no_older_statement_to_run(raw: Raw) -> None:
    raw.send(parse("select 'old'"), SYNC, parse("SELECT REFUSED FROM ANSWER"), SYNC, bind(), EXECUTE, SYNC)
    raw.until(b"Z"), raw.until(b"Z")
    assert the_error(raw.until(b"Z"))["C"] == b"26000"


def test_flush_without_sync_answers(raw: Raw) -> None:
    raw.send(parse("SELECT n FROM ANSWER"), bind(), EXECUTE, FLUSH)
    assert values(raw.until(b"C")) == [b"42"]
    raw.send(SYNC)
    assert kinds(raw.until(b"Z")) == "Z"


def test_a_hundred_pipelined_questions_each_get_their_own_answer(raw: Raw) -> None:
    for turn in range(100):
        text = "SELECT REFUSED FROM ANSWER" if turn % 7 == 3 else f"SELECT n + {turn} FROM ANSWER"
        raw.send(*([query(text)] if turn % 2 else [parse(text), bind(), EXECUTE, SYNC]))
    for turn in range(100):
        answer = raw.until(b"Z")
        assert values(answer) == ([] if turn % 7 == 3 else [str(42 + turn).encode()])
        assert kinds(answer).count("E") == (turn % 7 == 3)


def test_several_statements_in_one_query_answer_one_after_the_other(raw: Raw) -> None:
    raw.send(query("select 1; SELECT n FROM ANSWER; select 3"))
    assert values(raw.until(b"Z")) == [b"1", b"42", b"3"]


def test_a_position_is_that_in_the_text_that_the_client_sent(raw: Raw) -> None:
    text = "SELECT n, nonsense FROM ANSWER"
    raw.send(query(text))
    assert the_error(raw.until(b"Z"))["P"] == str(text.index("nonsense") + 1).encode()
    raw.send(query("select nonsense"))
    assert the_error(raw.until(b"Z"))["P"] == b"8"


def test_the_hidden_text_never_reaches_the_client(raw: Raw) -> None:
    raw.send(query("SELECT REFUSED FROM ANSWER"))
    assert b"rollup_refused" not in b"".join(body for _, body in raw.until(b"Z"))


def test_a_query_over_the_limit_is_refused_and_the_session_goes_on(server) -> None:
    with Running(("127.0.0.1", server.port), limits=Limits(max_query_bytes=2000)) as gateway, Raw(gateway.port) as raw:
        raw.send(query("select 1 --" + "x" * 3_000_000), parse("select 2 --" + "x" * 3000), bind(), EXECUTE, SYNC)
        raw.send(query("SELECT n FROM ANSWER"))
        assert the_error(raw.until(b"Z"))["C"] == b"54000"
        assert the_error(raw.until(b"Z"))["C"] == b"54000"
        assert values(raw.until(b"Z")) == [b"42"]


def test_a_text_in_another_encoding_keeps_its_letters(raw: Raw) -> None:
    raw.send(query("set client_encoding to 'LATIN1'"))
    raw.until(b"Z")
    raw.send(wire.message(b"Q", "SELECT n || 'Ä' FROM ANSWER\0".encode("latin-1")), query("SELECT REFUSED FROM ANSWER"))
    assert values(raw.until(b"Z")) == ["42Ä".encode("latin-1")]
    assert the_error(raw.until(b"Z"))["M"] == "this is refused: ÄÖ?".encode("latin-1")


def test_copy_out_of_a_rewritten_query(raw: Raw) -> None:
    raw.send(query("COPY (SELECT n FROM ANSWER) TO STDOUT"))
    assert [body for kind, body in raw.until(b"Z") if kind == b"d"] == [b"42\n"]


def test_copy_in_passes_and_what_looks_like_our_words_in_it_is_data(raw: Raw) -> None:
    raw.send(query("set default_transaction_read_only = off"), query("create temp table t (x text)"))
    raw.until(b"Z"), raw.until(b"Z")
    raw.send(query("copy t from stdin"))
    raw.until(b"G")
    data = [wire.message(b"d", b"FROM ANSWER\n") for _ in range(1000)]
    raw.send(*data, wire.message(b"c", b""), query("select count(*) from t where x = 'FROM ' || 'ANS' || 'WER'"))
    assert kinds(raw.until(b"Z")) == "CZ"
    assert values(raw.until(b"Z")) == [b"1000"]


def test_a_client_that_closes_its_sending_half_still_gets_its_answer(raw: Raw) -> None:
    raw.send(query("SELECT n, pg_sleep(0.3) FROM ANSWER"))
    raw.socket.shutdown(socket.SHUT_WR)
    assert values(raw.until(b"Z")) == [b"42"]
    assert raw.read() == (b"", b"")


def test_terminate_ends_without_a_word(raw: Raw) -> None:
    raw.send(TERMINATE)
    assert raw.read() == (b"", b"")


def test_a_length_below_four_is_a_protocol_violation(raw: Raw) -> None:
    raw.send(b"Q\0\0\0\3")
    assert the_error(raw.until(b""))["C"] == b"08P01"


def test_a_statement_cannot_outlive_the_gateways_own_timeout(server) -> None:
    with Running(("127.0.0.1", server.port), limits=Limits(statement_timeout=0.5)) as gateway, Raw(gateway.port) as raw:
        raw.send(query("set statement_timeout = 0"), query("select pg_sleep(600)"), query("SELECT SLOW FROM ANSWER"))
        raw.until(b"Z")
        assert the_error(raw.until(b"Z"))["C"] == b"57014"
        assert the_error(raw.until(b"Z"))["C"] == b"57014"
        raw.send(query("select 1"))
        assert values(raw.until(b"Z")) == [b"1"]


@pytest.mark.parametrize(("before", "sqlstate"), [("select 1", b"57P05"), ("begin", b"25P03")])
def test_an_idle_session_is_ended_with_a_reason(server, before: str, sqlstate: bytes) -> None:
    limits = Limits(idle_timeout=0.3, idle_in_transaction_timeout=0.3)
    with Running(("127.0.0.1", server.port), limits=limits) as gateway, Raw(gateway.port) as raw:
        raw.send(query(before))
        raw.until(b"Z")
        assert the_error(raw.until(b""))["C"] == sqlstate


def test_a_client_that_does_not_read_its_answer_loses_its_place(server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "_GRACE", 1.0)
    with Running(("127.0.0.1", server.port), limits=Limits(statement_timeout=0.3)) as gateway, Raw(gateway.port) as raw:
        raw.send(query("select repeat('x', 1000000) from generate_series(1, 300)"))
        deadline = time.monotonic() + 60
        while gateway.gateway.connections and time.monotonic() < deadline:
            time.sleep(0.05)
        assert gateway.gateway.connections == 0


def test_a_server_that_lets_nobody_in_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        limits = Limits(startup_timeout=0.5)
        with Running(mute.getsockname(), limits=limits) as gateway, Raw(gateway.port, login=False) as raw:
            raw.send(wire.startup({b"user": b"trusting"}))
            assert the_error(raw.until(b""))["C"] == b"57014"
            with Raw(gateway.port, login=False) as silent:
                assert silent.read() == (b"", b"")


def test_encryption_is_refused_with_one_letter_and_the_session_may_go_on_in_the_open(gateway: Running) -> None:
    with Raw(gateway.port, login=False) as raw:
        for request in (wire.GSS_REQUEST, wire.SSL_REQUEST):
            raw.send(struct.pack(">II", 8, request))
            assert raw.socket.recv(1) == b"N"
        raw.send(wire.startup({b"user": b"trusting", b"database": b"served"}))
        assert kinds(raw.until(b"Z")).startswith("R")


def test_bytes_smuggled_in_before_tls_are_no_part_of_the_session(gateway: Running) -> None:
    with Raw(gateway.port, login=False) as raw:
        raw.send(struct.pack(">II", 8, wire.SSL_REQUEST), wire.startup({b"user": b"trusting"}))
        assert the_error(raw.until(b""))["C"] == b"08P01"


def test_no_channel_binding_is_offered_through_two_connections() -> None:
    offered = struct.pack(">I", 10) + b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"
    assert wire.without_channel_binding(offered) == struct.pack(">I", 10) + b"SCRAM-SHA-256\0\0"


def test_too_many_clients_get_a_clean_error_and_a_place_that_is_free_again_is_given(server) -> None:
    with Running(("127.0.0.1", server.port), max_connections=2) as gateway, Raw(gateway.port) as one:
        with Raw(gateway.port):
            refused = Raw(gateway.port, login=False)
            refused.send(wire.startup({b"user": b"trusting"}))
            error = the_error(refused.until(b""))
            assert (error["S"], error["C"]) == (b"FATAL", b"53300")
        deadline = time.monotonic() + 60
        while gateway.gateway.connections > 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        with Raw(gateway.port) as again:
            again.send(query("SELECT n FROM ANSWER"))
            assert values(again.until(b"Z")) == [b"42"]
        one.send(query("select 1"))
        assert values(one.until(b"Z")) == [b"1"]


def opened(port: int, source: str, *, begun: bool) -> socket.socket:
    """A connection that sends no password, or nothing at all."""
    made = socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(source, 0))
    if begun:
        made.sendall(wire.startup({b"user": b"reader", b"database": b"served"}))
    return made


@pytest.mark.parametrize("begun", [True, False])
def test_connections_without_a_password_keep_out_nobody_who_has_one(server, begun: bool) -> None:
    login = {"host": "127.0.0.1", "user": "reader", "password": PASSWORD, "dbname": "served", "connect_timeout": 10}
    with Running(("127.0.0.1", server.port), max_connections=2) as gateway, contextlib.ExitStack() as stack:
        patient = stack.enter_context(opened(gateway.port, "127.0.0.1", begun=True))
        assert patient.recv(1) == b"R"
        for _ in range(150):
            stack.enter_context(opened(gateway.port, "127.0.0.2", begun=begun))
        with psycopg.connect(port=gateway.port, **login) as connection:
            assert connection.execute("SELECT n FROM ANSWER").fetchone() == (42,)
        patient.settimeout(0.2)
        with pytest.raises(TimeoutError):  # those go who are many
            while patient.recv(4096):
                pass


def test_no_user_takes_the_seats_of_another_one_also_by_many_logins_at_once(server) -> None:
    users = {"trusting", "reader"}
    with (
        Running(("127.0.0.1", server.port), max_connections=4, users=users) as gateway,
        contextlib.ExitStack() as stack,
    ):
        many = [stack.enter_context(Raw(gateway.port, login=False)) for _ in range(12)]
        for one in many:
            one.send(wire.startup({b"user": b"trusting", b"database": b"served"}))
        let_in = 0
        for one in many:
            end = one.until(b"Z")[-1]
            if end[0] == b"Z":
                one.send(query("select 1"))
                let_in += one.until(b"Z")[-1][0] == b"Z"
        assert let_in == 3
        refused = stack.enter_context(Raw(gateway.port, login=False))
        refused.send(wire.startup({b"user": b"trusting", b"database": b"served"}))
        assert b"kept for others than trusting" in the_error(refused.until(b""))["M"]
        login = {"host": "127.0.0.1", "user": "reader", "password": PASSWORD, "dbname": "served"}
        with psycopg.connect(port=gateway.port, **login) as connection:
            assert connection.execute("SELECT n FROM ANSWER").fetchone() == (42,)


def test_a_cancel_with_a_key_of_no_session_costs_the_server_nothing(server) -> None:
    with (
        Running(("127.0.0.1", server.port)) as gateway,
        socket.create_server(("127.0.0.1", 0)) as counter,
        Raw(gateway.port) as one,
    ):
        gateway.gateway.backend = counter.getsockname()[:2]
        for key in (b"", b"\0" * 8, struct.pack(">II", 1, 2), b"x" * 32):
            with Raw(gateway.port, login=False) as stranger:
                stranger.send(struct.pack(">II", 8 + len(key), wire.CANCEL_REQUEST) + key)
                assert stranger.read() == (b"", b"")
        counter.settimeout(0.2)
        with pytest.raises(TimeoutError):
            counter.accept()
        gateway.gateway.backend = ("127.0.0.1", server.port)
        one.send(query("select 1"))
        assert values(one.until(b"Z")) == [b"1"]


def test_who_begins_and_sends_no_password_waits_as_with_a_wrong_one(server) -> None:
    with Running(("127.0.0.1", server.port)) as gateway:
        failures = gateway.gateway._failures  # pyright: ignore[reportPrivateUsage]
        for _ in range(3):
            with opened(gateway.port, "127.0.0.2", begun=True) as one:
                assert one.recv(1) == b"R"
        deadline = time.monotonic() + 60
        while failures.patience("127.0.0.2", "reader") < 0.4 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert failures.patience("127.0.0.2", "reader") == 0.4
        assert not failures.patience("127.0.0.1", "reader") and not failures.patience("127.0.0.2", "trusting")


def test_each_wrong_password_makes_the_next_try_of_that_user_wait_longer(server) -> None:
    with Running(("127.0.0.1", server.port)) as gateway:

        def tried(user: str, password: str) -> float:
            began = time.monotonic()
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(
                    host="127.0.0.1", port=gateway.port, user=user, password=password, dbname="served"
                ).close()
            return time.monotonic() - began

        failures = gateway.gateway._failures  # pyright: ignore[reportPrivateUsage]
        took = [tried("reader", "wrong") for _ in range(5)]
        assert all(seconds >= wait for seconds, wait in zip(took, (0, 0.1, 0.2, 0.4, 0.8), strict=True)), took
        assert not failures.patience("127.0.0.1", "trusting"), "nobody else waits"
        assert tried("reader", PASSWORD) >= 1.6
        assert not failures.patience("127.0.0.1", "reader"), "and nobody who has the right one"


@pytest.mark.parametrize(
    ("user", "database", "sqlstate"), [("writer", "served", b"28000"), ("trusting", "other", b"3D000")]
)
def test_only_named_users_and_the_served_database_get_through(
    server, user: str, database: str, sqlstate: bytes
) -> None:
    options = {"users": {"trusting", "reader"}, "database": "served"}
    with Running(("127.0.0.1", server.port), **options) as gateway, Raw(gateway.port, login=False) as raw:
        raw.send(wire.startup({b"user": user.encode(), b"database": database.encode()}))
        assert the_error(raw.until(b""))["C"] == sqlstate


def test_sessions_start_with_the_forced_settings_whatever_the_client_asks_for(gateway: Running) -> None:
    with Raw(gateway.port, login=False) as raw:
        raw.send(wire.startup({b"user": b"trusting", b"database": b"served", b"default_transaction_read_only": b"off",
                               b"options": b"-c default_transaction_read_only=off"}))  # fmt: skip
        raw.until(b"Z")
        raw.send(query("show default_transaction_read_only"))
        assert values(raw.until(b"Z")) == [b"on"]


@pytest.mark.parametrize(
    "packet",
    [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\4", b"\xff" * 64, struct.pack(">IHHI", 12, 2, 0, 0),
     struct.pack(">II", 9, 196608) + b"\0", struct.pack(">II", 14, 196608) + b"user\0x"],
)  # fmt: skip
def test_a_first_packet_that_is_none_gets_a_fatal_error(gateway: Running, packet: bytes) -> None:
    with Raw(gateway.port, login=False) as raw:
        raw.send(packet)
        assert the_error(raw.until(b""))["S"] == b"FATAL"


def test_a_query_before_the_password_never_reaches_the_rewriter(server) -> None:
    asked: list[str] = []

    async def rewrite(sql: str) -> str:
        asked.append(sql)
        return await toys.rewrite(sql)

    with Running(("127.0.0.1", server.port), rewrite=rewrite) as gateway, Raw(gateway.port, login=False) as raw:
        raw.send(wire.startup({b"user": b"reader", b"database": b"served"}), query("SELECT n FROM ANSWER"))
        raw.until(b"R")
        raw.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            raw.read()
        assert not asked


def test_a_query_sent_with_the_startup_packet_is_answered_once_the_server_let_the_client_in(gateway: Running) -> None:
    with Raw(gateway.port, login=False) as raw:
        raw.send(wire.startup({b"user": b"trusting", b"database": b"served"}), query("SELECT n FROM ANSWER"))
        raw.until(b"Z")
        assert values(raw.until(b"Z")) == [b"42"]


def test_the_bind_hook_sees_the_parameters_and_may_refuse_them(server) -> None:
    seen: list[tuple[str, list[wire.Parameter]]] = []

    async def hook(sql: str, parameters) -> None:
        seen.append((sql, list(parameters)))
        if parameters[0] == "no":
            raise toys.QueryError("no such level")

    sql = "SELECT n, $1::text FROM ANSWER"
    with Running(("127.0.0.1", server.port), bind=hook) as gateway, Raw(gateway.port) as raw:
        raw.send(parse(sql, "a"), bind("a", "days"), EXECUTE, bind("a", "no"), EXECUTE, SYNC)
        raw.send(bind("a", "ÄÖ"), EXECUTE, SYNC, parse("select $1::text", "b"), bind("b", "foreign"), EXECUTE, SYNC)
        first, second = raw.until(b"Z"), raw.until(b"Z")
        assert kinds(first) == "12DCEZ" and the_error(first)["C"] == b"22023"
        assert kinds(second) == "2DCZ" and kinds(raw.until(b"Z")) == "12DCZ"
    assert seen == [(sql, ["days"]), (sql, ["no"]), (sql, ["ÄÖ"])]


def test_closing_the_gateway_tells_its_clients(server) -> None:
    with Running(("127.0.0.1", server.port)) as gateway:
        raw = Raw(gateway.port)
    assert the_error(raw.until(b""))["C"] == b"57P01"


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def test_a_slow_reader_does_not_fill_the_gateways_memory(gateway: Running, server: PostgresServer) -> None:
    with Raw(gateway.port) as raw, psycopg.connect(server.dsn, autocommit=True) as admin:
        before = resident_mib()
        raw.send(query("select repeat('x', 1000000) from generate_series(1, 300)"))
        held, deadline = "select count(*) from pg_stat_activity where wait_event = 'ClientWrite'", time.monotonic() + 30
        while admin.execute(held).fetchone() == (0,):  # the gateway takes no more of the server, which waits for it
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert resident_mib() - before < 60, "MiB held for a client that reads nothing"
        assert len(values(raw.until(b"Z"))) == 300
