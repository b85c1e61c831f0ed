"""Sinks of statements: each knows how many rows of a line it has, and the next ones are added."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from deltalake import DeltaTable
from sqlalchemy.sql.compiler import SQLCompiler
from structlog.testing import capture_logs

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, StoreError
from rollup.hosts.statements.delivery import Delivery
from rollup.sinks.base import Held, Sink, Unfit
from rollup.sinks.console import ConsoleSink
from rollup.sinks.delta import DeltaSink
from rollup.sinks.files import FileSink
from rollup.sinks.kafka import KafkaSink
from rollup.sinks.sql import SqlSink
from rollup.statements.committed.commits import Saved
from rollup.statements.flow import RECEIVED
from rollup.stores.dead_letters import DeadLetters
from rollup.stores.sql.session import ConnectionLost
from tests.servers.postgres import NewUrl, PostgresServer, execute

ONE = pa.table({"k": ["a", "b"], "v": pa.array([1.5, None], pa.float64()), "n": pa.array([1, 2], pa.int32())})
TWO = pa.table({"k": ["c"], "v": pa.array([2.5], pa.float64()), "n": pa.array([3], pa.int32())})


def twice(sink: Sink) -> None:
    """As a job that was killed before it had noted the first write of each."""
    for held, rows in ((Held(2, 7), ONE), (Held(2, 7), ONE), (Held(3, 8), TWO), (Held(3, 8), TWO)):
        if sink.held("id") != held:
            sink.write(rows, "id", held)
    assert (sink.held("id"), sink.held("other")) == (Held(3, 8), None)


def test_a_delta_table_has_each_commit_once(tmp_path: Path) -> None:
    twice(DeltaSink({"path": str(tmp_path / "t"), "name": "S"}))
    assert DeltaSink({"path": str(tmp_path / "t"), "name": "S"}).held("id") == Held(3, 8)
    found = DeltaTable(str(tmp_path / "t")).to_pyarrow_table().sort_by("k")
    assert found.to_pylist() == [*ONE.to_pylist(), *TWO.to_pylist()]


CHANGES = (
    pa.table({'odd "k"': ["a", None, "b", "a"], "n": [1, 2, 3, 4]}),
    pa.table({'odd "k"': [None, "c", "a"], "n": [5, 6, None]}),
)
AFTER = [("a", None), ("b", 3), ("c", 6), (None, 5)]
"""Of each key the last row; a null is a key."""


def changed(sink: Sink) -> None:
    """The changes of a table, in two commits."""
    for held, rows in ((Held(4), CHANGES[0]), (Held(7), CHANGES[1])):
        sink.write(rows, "id", held)


def test_of_a_table_delta_and_a_database_have_the_last_row_of_each_key(tmp_path: Path) -> None:
    key = {"key": ('odd "k"',), "name": "T"}
    changed(DeltaSink({"path": str(tmp_path / "t"), **key}))
    found = [tuple(row.values()) for row in DeltaTable(str(tmp_path / "t")).to_pyarrow_table().to_pylist()]
    assert sorted(found, key=lambda row: str(row[0])) == [AFTER[3], *AFTER[:3]]  # "None" before "a"
    changed(SqlSink({"url": f"sqlite:///{tmp_path / 'out.db'}", "table": "t", **key}))
    with sqlite3.connect(tmp_path / "out.db") as database:
        rows = database.execute("select * from t order by 1 nulls last").fetchall()
    assert rows == AFTER


NAN, OTHER_NAN = math.nan, -math.nan
"""The same to everybody but to who compares their bits."""
KEYS = (
    pa.table({"k": ["a", "a", "a", "a", "b"], "d": [NAN, OTHER_NAN, 0.0, -0.0, NAN], "n": [1, 2, 3, 4, 5]}),
    pa.table({"k": ["a", "a", "b"], "d": [OTHER_NAN, 0.0, None], "n": [6, 7, 8]}),
    pa.table({"k": ["a", "b"], "d": [-0.0, OTHER_NAN], "n": [9, 10]}),
)
MERGED = [("a", "0.0", 9), ("a", "nan", 6), ("b", "None", 8), ("b", "nan", 10)]


def merged(sink: Sink) -> None:
    for number, rows in enumerate(KEYS, 1):
        sink.write(rows, "id", Held(5 * number))


def by_key(rows: Iterable[Sequence[Any]]) -> list[tuple[str, str, int]]:
    return sorted((k, str(d), n) for k, d, n in rows)


def test_of_a_double_in_a_key_there_is_one_zero_and_one_that_is_no_number_in_delta(tmp_path: Path) -> None:
    merged(DeltaSink({"path": str(tmp_path / "t"), "name": "T", "key": ("k", "d")}))
    found = DeltaTable(str(tmp_path / "t")).to_pyarrow_table().to_pylist()
    assert by_key(tuple(row.values()) for row in found) == MERGED


@pytest.mark.postgres
def test_of_a_double_in_a_key_there_is_one_zero_and_one_that_is_no_number_in_postgres(new_url: NewUrl) -> None:
    url = new_url()
    merged(SqlSink({"url": url, "table": "t", "name": "T", "key": ("k", "d")}))
    assert by_key(execute(url, "select k, d, n from t")) == MERGED  # type: ignore[arg-type]


def test_what_a_killed_job_left_of_a_file_is_removed_and_nothing_of_others(tmp_path: Path) -> None:
    mine, others = tmp_path / ".id-rows-000000000007.parquet.123", tmp_path / ".other-rows-000000000007.parquet.123"
    for draft in (mine, others):
        draft.write_text("half")
    FileSink({"path": str(tmp_path)}).write(ONE, "id", Held(8))
    assert not mine.exists() and others.exists()


def test_two_streams_may_share_a_delta_table(tmp_path: Path) -> None:
    for name in ("S", "T"):
        DeltaSink({"path": str(tmp_path / "t"), "name": name}).write(TWO, "id", Held(1))
    assert DeltaTable(str(tmp_path / "t")).to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize("key", [(), ("k",)])
def test_a_sink_that_writes_on_and_on_compiles_nothing_more(
    tmp_path: Path, key: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is compiled is kept: of tables that are made anew each time, the memory of a job grew with each commit."""
    compiled, real = list[str](), SQLCompiler.__init__

    def counted(self: SQLCompiler, *arguments: Any, **named: Any) -> None:
        real(self, *arguments, **named)
        compiled.append(str(self))

    monkeypatch.setattr(SQLCompiler, "__init__", counted)
    sink = SqlSink({"url": f"sqlite:///{tmp_path / 'out.db'}", "table": "t", "name": "S", "key": key})
    for number in range(1, 6):
        if number == 3:  # the first two insert the mark and change it
            assert any("INSERT INTO t" in each for each in compiled)
            compiled.clear()
        sink.write(TWO, "id", Held(number))
    assert compiled == []
    with sqlite3.connect(tmp_path / "out.db") as database:
        assert database.execute("select count(*), max(v) from t").fetchone() == (1 if key else 5, 2.5)


def test_a_table_of_a_database_has_each_commit_once(tmp_path: Path) -> None:
    options = {"url": f"sqlite:///{tmp_path / 'out.db'}", "table": 'odd "name"', "name": "S"}
    twice(SqlSink(options))
    assert SqlSink(options).held("id") == Held(3, 8)
    with sqlite3.connect(tmp_path / "out.db") as database:
        rows = database.execute('select k, v, n from "odd ""name""" order by k').fetchall()
    assert rows == [("a", 1.5, 1), ("b", None, 2), ("c", 2.5, 3)]


def test_a_folder_has_a_file_a_commit(tmp_path: Path) -> None:
    twice(FileSink({"path": str(tmp_path)}))
    files = sorted(tmp_path.glob("*.parquet"))
    assert [pq.read_table(file).to_pylist() for file in files] == [ONE.to_pylist(), TWO.to_pylist()]


@pytest.mark.parametrize("kind", ["delta", "files", "database"])
def test_rows_whose_sum_nobody_knows_are_counted_from_batch_to_batch(tmp_path: Path, kind: str) -> None:
    """As those of streams that no statement gives, and what follows a file that was written right before a kill."""
    url = f"sqlite:///{tmp_path / 'out.db'}"
    made: Sink = {
        "delta": lambda: DeltaSink({"path": str(tmp_path / "t"), "name": "S"}),
        "files": lambda: FileSink({"path": str(tmp_path / "t"), "name": "S"}),
        "database": lambda: SqlSink({"url": url, "table": "t", "name": "S"}),
    }[kind]()
    for count, rows in enumerate((ONE, TWO, ONE), start=1):
        made.write(rows, "id", Held(count, None))
        assert made.held("id") == Held(count, None)


@pytest.mark.parametrize("key", [(), ("k",)])
@pytest.mark.parametrize("kind", ["delta", "files", "database"])
def test_rows_that_are_there_before_those_of_a_stream_are_said_unless_a_key_makes_them_one(
    tmp_path: Path, kind: str, key: tuple[str, ...]
) -> None:
    """As those of a job that has lost its checkpoint and its records: the same events give them again."""
    options = {
        "url": f"sqlite:///{tmp_path / 'out.db'}",
        "table": "t",
        "path": str(tmp_path / "t"),
        "name": "S",
        "key": key,
    }
    made: Sink = {"delta": DeltaSink, "files": FileSink, "database": SqlSink}[kind](options)
    engine = ColumnEngine(threads=1)

    def said(line: str) -> list[str]:
        given = {"S": ONE.append_column(RECEIVED, pa.array([0, 0]))}
        saved = Saved(1, line, given=given, outputs={"S": Held(2, None)})
        with capture_logs() as logs:
            Delivery("S", made, None).bring(saved, engine)
        return [each["sink"] for each in logs if "has rows already" in each["event"]]

    assert said("one") == said("one") == []
    assert said("two") == ([] if key and kind != "files" else [made.place])
    assert said("two") == []


@pytest.mark.parametrize("where", ["a file", "a file/below it", "nothing may be made here", "n" * 300])
@pytest.mark.parametrize("kind", ["delta", "files", "postgres"])
def test_a_place_that_takes_no_rows_is_named_with_what_becomes_of_them(tmp_path: Path, kind: str, where: str) -> None:
    (tmp_path / "a file").write_text("mine")
    path = Path("/proc/none") if where.startswith("nothing") else tmp_path / where
    made: dict[str, Sink] = {
        "delta": DeltaSink({"path": str(path), "name": "S"}),
        "files": FileSink({"path": str(path)}),
        "postgres": SqlSink({"url": f"sqlite:///{path}", "table": "t", "name": "S"}),
    }
    with pytest.raises(StoreError) as caught:
        made[kind].write(ONE, "id", Held(1))
    said = str(caught.value)
    assert str(path) in said and "next start brings them again" in said
    assert "\x1b" not in said and "\n" not in said
    assert (tmp_path / "a file").read_text() == "mine"


def test_rows_that_standard_output_does_not_take_are_named() -> None:
    class Full(StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    sink = ConsoleSink({"name": "S"})
    sink.stream = Full()
    with pytest.raises(
        StoreError, match=r"^cannot print the rows of S on standard output: No space left on device \(the"
    ):
        sink.write(ONE, "id", Held(1))


def test_a_table_that_does_not_fit_is_named(tmp_path: Path) -> None:
    sink = DeltaSink({"path": str(tmp_path / "t"), "name": "S"})
    sink.write(ONE, "id", Held(1))
    with pytest.raises(StoreError, match="cannot append the rows of S to the table"):
        sink.write(pa.table({"other": [1]}), "id", Held(2))


@pytest.mark.postgres
def test_a_database_that_restarts_is_waited_for_and_has_each_commit_once(monkeypatch: pytest.MonkeyPatch) -> None:
    server = PostgresServer()
    try:
        server.start()
        sink = SqlSink({"url": server.dsn, "table": "t", "name": "S"})
        sink.write(ONE, "id", Held(2))
        server.kill9()
        server.restart()
        sink.write(TWO, "id", Held(3))  # over a connection that has gone with the old server
        server.kill9()
        with ThreadPoolExecutor(1) as apart, monkeypatch.context() as patch:
            away = Event()
            once = SqlSink._refusable

            def tried(*what: Any) -> Any:
                try:
                    return once(*what)
                except ConnectionLost:
                    away.set()
                    raise

            patch.setattr(SqlSink, "_refusable", tried)
            waiting = apart.submit(sink.write, TWO, "id", Held(4))
            met = away.wait(60)
            server.restart()
            waiting.result(120)
            assert met
        sink.write(TWO, "id", Held(4))
        assert execute(server.dsn, "select count(*) from t") == [(len(ONE) + 2 * len(TWO),)]
        server.kill9()
        monkeypatch.setattr("rollup.sinks.sql.PATIENCE", 0.1)
        with pytest.raises(
            StoreError, match=r"the rows of S for t of .*: the database does not answer: .*nothing was lost"
        ):
            sink.write(TWO, "id", Held(5))
    finally:
        server.remove()


@pytest.mark.postgres
def test_text_that_postgres_cannot_hold_is_written_as_the_store_writes_it(new_url: NewUrl) -> None:
    url = new_url()
    SqlSink({"url": url, "table": "t", "name": "S"}).write(pa.table({"k": ["a\0b", "c", None]}), "id", Held(3))
    assert execute(url, "select k from t") == [("a\x01\x01b",), ("c",), (None,)]


def test_what_a_database_refuses_by_words_of_a_server_that_is_away_is_refused_at_once(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as there:
        there.execute("create table t (a text)")
    sink = SqlSink({"url": f"sqlite:///{tmp_path / 'x.db'}", "table": "t", "name": "S"})
    with pytest.raises(StoreError, match=r"cannot insert the rows of S into t .*terminated_at"):
        sink.write(pa.table({"a": ["x"], "terminated_at": ["connection refused"]}), "id", Held(1))


CHECKED = "create table t (k varchar(10) not null unique, n integer check (n < 100))"
GIVEN = pa.table({"k": ["a", "b", None, "c", "a", "d"], "n": pa.array([1, 200, 3, None, 5, 6], pa.int64())})
TAKEN, OTHERS = [("a", 1), ("c", None), ("d", 6)], {3: "b", 4: None, 6: "a"}


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_rows_that_a_constraint_refuses_are_set_aside_and_the_others_arrive(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}" if kind == "sqlite" else request.getfixturevalue("new_url")()
    with sa.create_engine(url).begin() as there:
        there.execute(sa.text(CHECKED))
    sink, found = SqlSink({"url": url, "table": "t", "name": "S"}), list[Unfit]()
    with pytest.raises(StoreError, match="cannot insert the rows of S into t"):
        sink.write(GIVEN, "id", Held(7))
    assert sink.held("id") is None, "nothing of it is there"
    sink.aside = lambda line, rows, unfit: found.extend(unfit)
    for _ in range(2):
        sink.write(GIVEN, "id", Held(7))
    assert {each.number: each.row["k"] for each in found} == OTHERS
    assert all("constraint" in each.reason.lower() for each in found)
    with sa.create_engine(url).begin() as there:
        rows = there.execute(sa.text("select k, n from t order by k")).all()
    assert [tuple(row) for row in rows] == TAKEN and sink.held("id") == Held(7)


def test_a_fault_that_passes_sets_no_row_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}?timeout=0.1"
    sink, found = SqlSink({"url": url, "table": "t", "name": "S"}), list[Unfit]()
    sink.aside = lambda line, rows, unfit: found.extend(unfit)
    sink.write(ONE, "id", Held(2))
    other = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    other.execute("begin exclusive")
    with pytest.raises(StoreError, match="locked"):
        sink.write(TWO, "id", Held(3))
    other.close()
    sink.write(TWO, "id", Held(3))
    assert not found and sink.held("id") == Held(3)


def test_rows_set_aside_are_dead_letters_once_with_their_place(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    with sa.create_engine(url).begin() as there:
        there.execute(sa.text(CHECKED))
    letters, engine = DeadLetters(tmp_path), ColumnEngine(threads=1)
    saved = Saved(
        1, "line", given={"S": GIVEN.append_column(RECEIVED, pa.array(range(6)))}, outputs={"S": Held(6, None)}
    )
    for _ in range(2):  # killed between the letters and the rows, the whole comes again
        with sa.create_engine(url).begin() as there:
            there.execute(sa.text("delete from t"))
            if sa.inspect(there).has_table("rollup_sink_rows"):
                there.execute(sa.text("drop table rollup_sink_rows"))
        sink = SqlSink({"url": url, "table": "t", "name": "S"})
        Delivery("S", sink, None, letters.append).bring(saved, engine)
    rows = letters.read().to_pylist()
    assert {row["position"] for row in rows} == {"row 2", "row 3", "row 5"} and len(rows) == 3
    assert all(row["stream"] == "S" and "constraint" in row["reason"] and '"k"' in row["raw"] for row in rows)


def test_a_size_of_messages_that_is_none_is_refused_by_name() -> None:
    options = {"servers": "127.0.0.1:1", "topic": "t", "options": {"message.max.bytes": "1MB"}}
    with pytest.raises(ConfigError, match=r"`message\.max\.bytes` of the sink for topic t is '1MB'"):
        KafkaSink(options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"no.such": 1}, 'No such configuration property: "no.such"'),
        ({"linger.ms": 70_000}, "`message.timeout.ms` must be greater than `linger.ms`"),
        ({"acks": ["all"]}, "Invalid value for configuration property"),
    ],
)
def test_options_that_make_no_producer_are_refused_with_the_topic(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=r"^the options of the sink for topic t do not make a producer: ") as refused:
        KafkaSink({"servers": "127.0.0.1:1", "topic": "t", "options": options})
    assert said in str(refused.value)


@pytest.mark.parametrize("folder", ["t", "t ä b"])
def test_a_merge_does_not_copy_the_rows_of_a_damaged_file_into_a_new_one(tmp_path: Path, folder: str) -> None:
    def sink() -> DeltaSink:
        return DeltaSink({"path": str(tmp_path / folder), "name": "T", "key": ("k",)})

    rows = pa.table({"k": [f"key {n}" for n in range(100)], "v": list(range(100))})
    sink().write(rows, "id", Held(100))
    [file] = (tmp_path / folder).glob("*.parquet")
    whole = file.read_bytes()
    file.write_bytes(whole[:60] + bytes([whole[60] ^ 1]) + whole[61:])
    more = pa.table({"k": ["key 5"], "v": [500]})
    for _ in range(2):
        with pytest.raises(StoreError, match=f"the file {re.escape(str(file))} is damaged") as refused:
            sink().write(more, "id", Held(101))
        assert "from a copy" in str(refused.value.hint)
    file.write_bytes(whole)
    sink().write(more, "id", Held(101))
    found = DeltaTable(str(tmp_path / folder)).to_pyarrow_table().to_pylist()
    assert sorted((row["k"], row["v"]) for row in found) == sorted(
        (f"key {n}", 500 if n == 5 else n) for n in range(100)
    )
    assert not list(sink().damaged())
