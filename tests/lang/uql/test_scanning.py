"""The compiled loop reads what the reader of every form reads, value for value, or gives up: random rows, and odd ones."""

from __future__ import annotations

import random
import threading
from io import BytesIO

import pyarrow as pa
import pytest

from rollup.lang.uql import run as running
from rollup.lang.uql import scanning
from rollup.lang.uql.catalog import Catalog, Table
from rollup.lang.uql.ingress import Ingress
from rollup.lang.uql.plan import plan
from rollup.lang.uql.scanning import Scanner

TYPES = {"g": "text", "x": "integer64", "n": "integer8", "f": "float64", "b": "boolean", "t": "timestamp"}
LAST = {"name": "z", "type": "integer64"}
GOOD = {
    "g": ["a", "", "b c", " d", "group-7", "a", "group-78", "group-789", "group-789-and-more", "group-789-and-less"],
    "x": ["1", "-0", "", "999999999999999999", "007"],
    "n": ["-128", "127", "0", ""],
    "f": ["1.5", "-0.25", "", "0.1", "123456789.125", "7", "5.", "0.0001"],
    "b": ["true", "false", "1", "0", "t", "f", ""],
    "t": ["2030-01-01T17:00:00.123-07:00", "1969-12-31 23:59:59Z", "2000-02-29T00:00:00.1234567Z", "", "0001-01-01T00:00:00+14:00"],
}  # fmt: skip
ODD = {
    "g": ['"q"', "é", "\x00x", "x\x00", 'a-longer-"one"', "a-longer-é", "7-bytes", "a\x7f"],
    "x": ["1 ", "0x10", "+5", "9223372036854775808", "1.0", "-", "1234567890123456789"],
    "n": ["128", "-129"],
    "f": ["1e5", "inf", "0.30000000000000004", ".5", "nan", "1234567890123456789", "-"],
    "b": ["yes", "tru", "TRUE", "falsy", "2"],
    "t": ["2030-02-30T00:00:00Z", "2030-01-01T17:00:00", "2030-01-01T24:00:00Z", "2030-01-01", "2030-01-01T17:00:00−07:00", "2030-01-01T17:00:00.Z", "0000-01-01T00:00:00Z", "2030-01-01T17:00Z", "2030-01-01T17:00:00+24:00", "2030-01-01T17:00:00+0700"],
}  # fmt: skip


def _table(names: str = "gxnfbt") -> Table:
    fields = [LAST if name == "z" else {"name": name, "type": TYPES[name]} for name in names]
    return Catalog.of({"schemas": [{"name": "foo", "fields": fields}]}).tables[0]


def _scanned(table: Table, piece: bytes) -> pa.Table | None:
    columns = Scanner(table.fields).scan(piece)
    return None if columns is None else pa.table(columns, names=[field.name for field in table.fields])


def _read(table: Table, piece: bytes) -> pa.Table:
    rows, bad = Ingress(table).read(piece)
    assert not bad
    return rows


def test_a_piece_has_room_for_its_rows_whatever_the_rows_before_were_like() -> None:
    table, chance = _table("gx"), random.Random(5)
    scanner = Scanner(table.fields)
    for size in (40, 1, 1, 60, 2, 3):
        piece = "".join(f"{'g' * size}|{chance.randrange(10)}\n" for _ in range(2000)).encode()
        for text in (piece, piece[:-1], piece[: len(piece) // 2 // (size + 3) * (size + 3)]):
            columns = scanner.scan(text)
            assert columns is not None
            assert pa.table(columns, names=["g", "x"]).to_pylist() == _read(table, text).to_pylist()


def test_random_plain_rows_are_read_as_the_reader_of_every_form_reads_them() -> None:
    chance, table = random.Random(3), _table()
    piece = "".join("|".join(chance.choice(GOOD[name]) for name in TYPES) + "\n" for _ in range(3000)).encode()
    for text in (piece, piece[:-1]):
        found = _scanned(table, text)
        assert found is not None
        assert found.to_pylist() == _read(table, text).to_pylist()


@pytest.mark.parametrize("name", TYPES)
def test_a_value_that_is_not_plain_makes_the_loop_give_up_or_is_read_the_same(name: str) -> None:
    table = _table(f"{name}z")
    for odd in ODD[name]:
        piece = f"{GOOD[name][0]}|1\n{odd}|2\n".encode()
        found = _scanned(table, piece)
        rows, bad = Ingress(table).read(piece)
        assert found is None or (not bad and found.to_pylist() == rows.to_pylist())


@pytest.mark.parametrize("odd", ["# note\na|1\n", "\na|1\n", "a|1\r\n", "a|1|2\n", "a\n", "a|1\n\n", "a|1\n|2|"])
def test_a_line_that_is_not_plain_makes_the_loop_give_up(odd: str) -> None:
    assert _scanned(_table("gx"), odd.encode()) is None


def test_more_texts_than_the_table_of_codes_has_are_read_all_the_same() -> None:
    piece = "".join(f"user-{number % 9000}\n" for number in range(20_000)).encode()
    found = _scanned(_table("g"), piece)
    assert found is not None
    assert found.column(0).to_pylist() == [f"user-{number % 9000}" for number in range(20_000)]


def _ran(text: bytes) -> tuple[list[str], str]:
    query = "from foo group by g window slice 10 rows aggregate count() as n, sum(x) as s append n, s to out"
    sink = BytesIO()
    catalog = Catalog.of({"schemas": [{"name": "foo", "fields": [{"name": n, "type": TYPES[n]} for n in "gx"]}]})
    said = [str(found) for found in running.run(plan(query, catalog), BytesIO(text), sink)]
    return sink.getvalue().decode().splitlines(), said[-1]


@pytest.mark.parametrize("room", [1, 4, 4096])
def test_a_run_gives_the_same_with_the_loop_and_without(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    chance = random.Random(5)
    rows = [f"g{chance.randrange(9)}|{chance.choice(['', str(chance.randrange(100))])}" for _ in range(60_000)]
    rows[40_000:40_000] = ['"quoted"|7', "bad|value", "# note"]
    text = "".join(f"{row}\n" for row in rows).encode()
    expected = _ran(text)
    monkeypatch.setattr(scanning, "LEAST", 1)
    monkeypatch.setattr(scanning, "ENOUGH", 1)
    monkeypatch.setattr(running, "_READ", 4096)
    monkeypatch.setattr(running, "_ROOM", room)
    used: list[int] = []
    scan = Scanner.scan
    monkeypatch.setattr(Scanner, "scan", lambda self, piece: used.append(1) or scan(self, piece))
    assert _ran(text) == expected
    assert used


class _Endless:
    """An input that does not end; its first row is bad."""

    begun = False

    def readinto1(self, buffer: memoryview, /) -> int:
        first, self.begun = not self.begun, True
        rows = b"bad\n" if first else b"1\n" * 1000
        buffer[: len(rows)] = rows
        return len(rows)


def test_a_run_that_nobody_asks_any_more_leaves_no_thread_behind() -> None:
    catalog = Catalog.of({"schemas": [{"name": "foo", "fields": [LAST]}]})
    query = "from foo window slice 2 rows aggregate count() as n append n to out"
    asked = running.run(plan(query, catalog), _Endless(), BytesIO())
    next(asked)
    mine = [thread for thread in threading.enumerate() if thread.name == "uql columns"]
    assert len(mine) == 1
    asked.close()  # type: ignore[attr-defined]
    mine[0].join(20)
    assert not mine[0].is_alive()
