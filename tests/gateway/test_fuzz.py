"""Random bytes, random SQL and random order: no crash, no hang, and every answer belongs to its question.

Examples show what was thought of. Here each question carries a number nobody else uses, so that an answer which slips
to the next question, or to another client, is seen. ROLLUP_FUZZ sets how many questions are asked (default 3000).
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.gateway.protocol import forbidden as guard
from rollup.gateway.protocol import wire
from rollup.gateway.protocol.refusal import Refusal, found
from rollup.gateway.protocol.wire import Message, Splitter, message
from tests.gateway.toys import EXECUTE, SYNC, Raw, Running, bind, parse, query
from tests.profiles import examples

COUNT = int(os.environ.get("ROLLUP_FUZZ", "3000"))
CLIENTS = 8
PIECES = [
    *[
        "select",
        "'",
        '"',
        "$$",
        "/*",
        "*/",
        "--",
        ";",
        "\n",
        "\\",
        "(",
        ")",
        ",",
        "$1",
        "x",
        "é",
        "€",
        "😀",
        "E'",
        "U&'",
    ],
    *["ANSWER", "FROM ANSWER", "REFUSED", "UNKNOWN LEVEL", "BROKEN", "::", "null", "\t", "begin", "commit", "rollback"],
    *["savepoint s", "set client_encoding = 'LATIN1'", "copy (select 1) to stdout", "copy days from stdin", "1"],
    *["listen x", "deallocate all", "discard all"],
]

frames = st.lists(st.tuples(st.sampled_from(b"QPBCESHdDcfXpZ"), st.binary(max_size=60)), max_size=12)


@examples(300)
@given(frames, st.lists(st.integers(1, 40), max_size=60), st.integers(20, 70), st.booleans())
def test_however_the_bytes_are_cut_the_splitter_loses_and_moves_nothing(sent, cuts, limit: int, drop: bool) -> None:
    data = b"".join(message(bytes([kind]), body) for kind, body in sent)
    splitter, pieces, at = Splitter(b"QPZ", limit=limit, drop_long=drop), [], 0
    for cut in [*cuts, len(data)]:
        pieces += splitter.feed(data[at : at + cut])
        at += cut
    long = [kind in b"QPZ" and len(body) + 5 > limit for kind, body in sent]
    whole = [message(bytes([kind]), body) for kind, body in sent]
    kept = [each[:5] if drop and is_long else each for each, is_long in zip(whole, long, strict=True)]
    assert b"".join(each if isinstance(each, bytes) else each.raw for each in pieces) == b"".join(kept)
    looked_at = [each.raw for each in pieces if isinstance(each, Message) and each.whole]
    assert looked_at == [
        each for each, is_long, (kind, _) in zip(whole, long, sent, strict=True) if kind in b"QPZ" and not is_long
    ]
    assert splitter.at_boundary


@examples(300)
@given(st.binary(max_size=200))
def test_readers_of_messages_refuse_nonsense_by_name(data: bytes) -> None:
    for read in (lambda: wire.bind(data, "utf-8"), lambda: wire.startup_parameters(data)):
        try:
            read()
        except wire.ProtocolViolation as problem:
            assert problem.message
    assert isinstance(wire.fields(data), dict)


@examples(200)
@given(st.text(max_size=200), st.none() | st.text(max_size=50), st.none() | st.integers(1, 10**6))
def test_a_refusal_survives_the_way_through_the_servers_message(text: str, hint: str | None, position) -> None:
    refusal = Refusal(text, "22023", position, hint)
    body = b'SERROR\0C42601\0Msyntax error at or near "' + refusal.as_sql("secret") + b'"\0P1\0\0'
    assert found(body, "secret") == refusal and found(body, "other") is None


@examples(300)
@given(
    st.sampled_from(["ALTER", "alter"]),
    st.lists(st.sampled_from([" ", "\n", "\t", "/* x */", "/* /* */ */", "-- y\n"]), min_size=1, max_size=5),
    st.sampled_from(["role", "USER", "Group"]),
)
def test_no_gap_the_server_skips_hides_a_role_change(verb: str, gap: list[str], thing: str) -> None:
    assert guard.forbidden(f"select 1;{verb}{''.join(gap)}{thing} x".encode())


def _noise(chance: random.Random) -> str:
    return " ".join(chance.choice(PIECES) for _ in range(chance.randint(1, 8))).replace("\0", "")


def _messages(chance: random.Random) -> bytes:
    """One unit that ends with exactly one Sync or Query, well framed, senseless otherwise."""
    match chance.randint(0, 4):
        case 0 | 1:
            return query(_noise(chance))
        case 2:
            return parse(_noise(chance)) + bind("", "x" * chance.randint(0, 9)) + EXECUTE + SYNC
        case 3:
            kinds = [chance.choice([b"B", b"D", b"E", b"C", b"H", b"P", b"d"]) for _ in range(3)]
            bodies = [bytes(chance.randrange(256) for _ in range(chance.randint(0, 20))) for _ in kinds]
            return b"".join(map(message, kinds, bodies)) + SYNC
        case _:
            return parse("SELECT REFUSED FROM ANSWER") + parse(_noise(chance)) + bind() + EXECUTE + SYNC


async def _ask(reader: asyncio.StreamReader, tag: int, token: bytes) -> bool:
    """Reads to this question's ReadyForQuery; the rows in between may carry its tag only. False at the end."""
    seen = False
    while True:
        try:
            kind, size = struct.unpack(">cI", await reader.readexactly(5))
            body = await reader.readexactly(size - 4)
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        assert b"rollup_refused" not in body or kind == b"N", "the hidden text leaked"
        if kind == b"D":
            tags = re.findall(rb"tag-(\d+)-(\w+)-", body)
            assert all(number == b"%d" % tag and mark == token for number, mark in tags), (tag, body)
            seen = seen or bool(tags)
        if kind == b"Z" and seen:
            return True


async def _client(port: int, number: int, seed: int, count: int) -> int:
    """Asks tagged questions with noise between them; logs in again when the noise ended the session. Counts answers."""
    chance, asked, answered, token = random.Random(seed), 0, 0, b"c%d" % number
    reader = writer = None
    while asked < count:
        if writer is None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(wire.startup({b"user": b"trusting", b"database": b"served"}))
        noise = b"".join(_messages(chance) for _ in range(chance.randint(0, 3)))
        end = message(b"f", b"x\0") + query("rollback") + SYNC  # out of COPY, out of the transaction
        tagged = f"SELECT 'tag-{asked}-{token.decode()}-' || n FROM ANSWER"
        question = query(tagged) if chance.random() < 0.5 else parse(tagged) + bind() + EXECUTE + SYNC
        data = noise + end + question
        for start in range(0, len(data), step := chance.choice([7, 100, 10_000])):
            writer.write(data[start : start + step])
            if step == 7:
                await asyncio.sleep(0)
        async with asyncio.timeout(30):
            alive = await _ask(reader, asked, token)
        asked += 1
        answered += alive
        if not alive:
            writer.close()
            writer = None
    if writer is not None:
        writer.close()
    return answered


@pytest.mark.postgres
@pytest.mark.timeout(36000)
def test_every_client_gets_its_own_answers_whatever_is_between(gateway: Running) -> None:
    async def all_clients() -> list[int]:
        each = COUNT // CLIENTS
        return await asyncio.gather(*(_client(gateway.port, n, 1000 + n, each) for n in range(CLIENTS)))

    # The noise may end a session, as the server itself does when a message makes no sense; most must go on.
    assert sum(asyncio.run(all_clients())) > 0.6 * COUNT


@pytest.mark.postgres
def test_random_bytes_at_any_time_leave_the_gateway_serving(gateway: Running) -> None:
    chance = random.Random(7)
    for turn in range(max(40, COUNT // 50)):
        try:
            with Raw(gateway.port, login=turn % 2 == 0) as raw:
                raw.send(bytes(chance.randrange(256) for _ in range(chance.randint(1, 300))))
        except ConnectionError:
            continue
    with Raw(gateway.port) as raw:
        raw.send(query("SELECT n FROM ANSWER"))
        assert any(kind == b"D" for kind, _ in raw.until(b"Z"))
