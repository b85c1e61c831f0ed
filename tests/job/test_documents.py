"""JSON objects are read as if each attribute were taken out of its document by a path of its own, whatever they hold.

That plain reading stands here as SQL that is slow and easy to see through. The reading of the sources parses a document
once, and skips the exact way where it may: both must give the same events, bit for bit, and the same dead letters.
"""

from __future__ import annotations

import json
import math
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.columns import ColumnEngine
from rollup.plan.app import StreamDef
from rollup.plan.reading import cast
from rollup.program import compile_app
from rollup.sources import files, kafka
from rollup.sources.base import Source
from rollup.sources.content import by_loop, scanning
from rollup.sources.content.by_loop import SCANNED, Records, events, scanned_rows
from rollup.sources.content.documents import OK, Documents, _broken, plain, read_documents
from rollup.sources.content.records import json_paths, text, view
from rollup.sources.content.scanning import scanner_of
from rollup.sources.topics.messages import MESSAGES
from tests.profiles import examples

_ENGINE = ColumnEngine(threads=1)
_AGGREGATION = "define aggregation A from S select count() as n aggregate every sec ... year;"
ALL = "s string, d double, l long, i int, b bool, f float"
STREAMS = {kinds: compile_app(f"define stream S ({kinds}); {_AGGREGATION}", "+00:00").streams["S"] for kinds in (ALL, "s string", "d double, l long", "s string, i int", "s string, d double, l long, i int, b bool")}  # fmt: skip
RENAMED: list[dict[str, str]] = [{}, {}, {"s": "x.y", "l": "i"}, {"s": "$.a[0]"}, {"d": "l"}]


@pytest.fixture(scope="module", autouse=True)
def _loop_reads_on() -> Iterator[None]:
    """However few records are plain, the loop reads them and DuckDB the others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_loop, "_STRANGE", 1)
        yield


NUMBERS = st.one_of(
    st.integers(-5, 5).map(str),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from([2**31 - 1, 2**31, -(2**31) - 1, 2**53 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64]).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.builds("{}e{}{}".format, st.integers(-99, 99), st.sampled_from(["", "+", "-"]), st.integers(0, 400)),
    st.sampled_from(
        ["-0", "-0.0", "1.0", "1.50", "1.0000000000000000000001", "NaN", "-Infinity", "2E-6", "3E25", "1e16"]
    ),
)
TEXTS = st.one_of(
    NUMBERS,
    st.text(max_size=8).map(lambda value: json.dumps(value)[1:-1]),
    st.sampled_from(
        ["", "true", "false", " 7 ", "\\u0031", "\\u002b-3", "+-3", "0e80516", "5E-60002", "1_000", "0x10", "1e5-x"]
    ),
).map('"{}"'.format)
VALUES = st.recursive(
    st.one_of(NUMBERS, TEXTS, st.sampled_from(["true", "false", "null"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda found: f"[{','.join(found)}]"),
        st.lists(st.tuples(st.sampled_from("sdliy"), inner), max_size=3).map(lambda found: _object(found)),
    ),
    max_leaves=4,
)
FITTING = {
    "s": st.one_of(TEXTS, NUMBERS),
    "d": NUMBERS,
    "l": st.integers(-(2**63), 2**63 - 1).map(str),
    "i": st.integers(-300, 2**31).map(str),
    "b": st.sampled_from(["true", "false"]),
    "f": NUMBERS,
    "x.y": TEXTS,
    "x": VALUES,
    "a": VALUES,
}


def _object(members: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f'"{name}":{value}' for name, value in members) + "}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    """An object whose members mostly fit, in any order, some twice; or what is left of one; or no object."""
    names = draw(st.lists(st.sampled_from(["s", "d", "l", "i", "b", "f", "S", "x.y", "x", "a"]), max_size=9))
    whole = draw(st.booleans())
    members = [(name, draw(FITTING[name] if whole and name in FITTING else VALUES)) for name in ["d", "l", "i", "s", *names]]  # fmt: skip
    found = _object(members[draw(st.integers(0, 4)) :])
    return draw(
        st.one_of(
            st.just(found),
            st.just(found),
            st.sampled_from(
                [f" {found}\n", f"{found}{found}", f"{found},", f"[{found}]", f"\ufeff{found}", "", "null"]
            ),
            st.integers(0, len(found)).map(lambda end: found[:end]),
            VALUES,
        )
    )


def plainly(stream: StreamDef, renamed: dict[str, str]) -> tuple[int, pa.Table]:
    """The reading that all others must equal: a path expression for each use of an attribute."""
    whole = "readable AND CASE WHEN json_valid(raw) THEN json_type(raw) = 'OBJECT' ELSE false END"
    readers: dict[str, tuple[str, str]] = {}
    for name, kind in stream.attributes.items():
        found = [
            f"json_extract_string(CASE WHEN ok THEN raw END, {text(path)})"
            for path in json_paths(renamed.get(name, name))
        ]
        value = f"COALESCE({', '.join(found)}, NULL)"
        readers[name] = (cast(value, kind), f"{value} IS NOT NULL")
    return view(_ENGINE, stream, f"(SELECT *, {whole} AS ok FROM l)", readers, "raw", "ok", "'t:' || __arrival")


def seen(found: tuple[int, pa.Table]) -> Any:
    """How many records there were, the events bit for bit, and the dead letters in their order."""
    events = _ENGINE.run("SELECT * FROM __batch ORDER BY __arrival")
    letters = sorted(found[1].to_pylist(), key=lambda letter: int(letter["position"][2:]))
    return found[0], events.schema, [[_exact(v) for v in row.values()] for row in events.to_pylist()], letters


def _exact(value: Any) -> Any:
    return (math.copysign(1, value), repr(value)) if isinstance(value, float) else value


@examples(15)
@given(
    st.lists(documents(), min_size=1, max_size=40), st.sampled_from(list(STREAMS)), st.sampled_from(RENAMED), st.data()
)
def test_a_document_is_read_as_if_each_attribute_were_taken_out_alone(
    found: list[str], kinds: str, renamed: dict[str, str], data: st.DataObject
) -> None:
    stream = STREAMS[kinds]
    renamed = {name: path for name, path in renamed.items() if name in stream.attributes}
    readable = [data.draw(st.integers(0, 20)) > 0 for _ in found]
    numbers = list(range(len(found)))
    near = plain(pa.chunked_array([found]))
    lines = {
        "raw": found,
        "readable": readable,
        "plain": [near] * len(found),
        "__arrival": numbers,
        "__received": numbers,
    }

    def read(reading: Documents) -> Any:
        return seen(view(_ENGINE, stream, reading.relation("l"), reading.readers(), "raw", OK, "'t:' || __arrival"))

    with _ENGINE.tables({"l": pa.table(lines)}):
        wanted = seen(plainly(stream, renamed))
        for quick in (True, False):
            assert read(Documents(stream, renamed, quick)) == wanted
        _broken.clear()
        assert read_documents(stream, renamed, read) == wanted
    if (scanner := scanner_of(stream, renamed)) is not None:
        assert read_by_loop(stream, renamed, scanned_rows(pa.table(lines), scanner)) == wanted


def read_by_loop(stream: StreamDef, renamed: dict[str, str], found: Records) -> Any:
    """What the compiled loop and then DuckDB read, also where few records are left to the loop."""
    taken = events(_ENGINE, stream, renamed, found, SCANNED, "raw", "'t:' || __arrival")
    assert taken is not None
    return seen(taken)


PLAIN = "s string, d double, l long, i int, b bool"
BYTES = st.sampled_from(
    [*'{}[]",:0123456789.-+eE\\ \t\n\rtfnsdlib', "\x00", "\x7f", "é", "\U0001f600", "null", "true", '""', "00"]
)


@st.composite
def nearly_plain(draw: st.DrawFn) -> str:
    """A document as programs write them, in which something may have been put in, taken out or changed."""
    values = {"s": st.text("ab é", max_size=15).map(json.dumps), "b": st.sampled_from(["true", "false"]), "l": st.integers(-(10**18), 10**18).map(str)}  # fmt: skip
    values |= {"i": st.integers(-(2**31), 2**31).map(str), "d": st.decimals(-(10**9), 10**9, places=6, allow_nan=False).map(str), "x": st.sampled_from(["1", '"y"', "null", "-0.5"])}  # fmt: skip
    names = draw(st.permutations([*"sdlib", "x"]))[draw(st.integers(0, 3)) :]
    space = draw(st.sampled_from(["", "", " "]))
    members = [f'"{name}":{space}{draw(st.one_of(values[name], st.just("null")))}' for name in names]
    found = f"{{{f',{space}'.join(members)}}}"
    begin = draw(st.integers(0, len(found)))
    end = draw(st.integers(begin, min(len(found), begin + 2)))
    return found[:begin] + draw(BYTES) + found[end:] if draw(st.integers(0, 2)) == 0 else found


@examples(75)
@given(st.lists(nearly_plain(), min_size=1, max_size=30))
def test_what_the_compiled_loop_takes_for_plain_is_read_exactly(found: list[str]) -> None:
    stream, numbers = STREAMS[PLAIN], list(range(len(found)))
    lines = pa.table({"raw": found, "readable": [True] * len(found), "plain": [False] * len(found), "__arrival": numbers, "__received": numbers})  # fmt: skip
    scanner = scanner_of(stream, {})
    assert scanner is not None
    scanned = scanned_rows(lines, scanner)
    with _ENGINE.tables({"l": lines}):
        assert read_by_loop(stream, {}, scanned) == seen(plainly(stream, {}))


@examples(15)
@given(st.lists(st.one_of(nearly_plain(), documents()).map(str.encode), max_size=30), st.data())
def test_a_file_is_the_same_events_and_letters_by_the_loop_and_without_it(
    found: list[bytes], data: st.DataObject
) -> None:
    stream, ends = STREAMS[PLAIN], st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b" \n", b"\xff\n", b""])
    content = b"".join(
        [data.draw(st.sampled_from([b"", b"\xef\xbb\xbf"])), *(line + data.draw(ends) for line in found)]
    )
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "f.json"
        path.write_bytes(content)
        patch.setattr(by_loop, "_PIECE", data.draw(st.sampled_from([16, 300, 1 << 20])))
        patch.setattr(by_loop, "_HELD", data.draw(st.sampled_from([0, 1 << 20])))
        listed = pa.table({"path": [str(path)], "modified": [7000], "place": [-1]})
        same_both_ways(patch, files, files.Files(stream, {"kind": "json", "path": folder}), listed)


@examples(20)
@given(st.lists(st.one_of(nearly_plain(), documents()), min_size=1, max_size=30), st.data())
def test_messages_are_the_same_events_and_letters_by_the_loop_and_without_it(
    found: list[str], data: st.DataObject
) -> None:
    values = [
        data.draw(st.sampled_from([text.encode(), text.encode(), None, text.encode() + b"\xff"])) for text in found
    ]
    numbers = range(len(found))
    columns = [pa.array(values, pa.binary()), pa.array(numbers, pa.int64()), pa.array([0] * len(found), pa.int32()), pa.array(numbers, pa.int64())]  # fmt: skip
    origin = kafka.Kafka(STREAMS[PLAIN], {"kind": "kafka", "servers": "none:1", "topic": "t"})
    with pytest.MonkeyPatch.context() as patch:
        same_both_ways(patch, kafka, origin, pa.table(columns, schema=MESSAGES))


def same_both_ways(patch: pytest.MonkeyPatch, module: Any, origin: Source, batch: pa.Table) -> None:
    """Hold that a source gives the same parts of a batch by the loop and without it."""
    both = list[Any]()
    for scanner in (None, scanner_of(STREAMS[PLAIN], {})):
        patch.setattr(module, "scanner_for", lambda *_, own=scanner: own)
        (part,) = origin.parts(_ENGINE, batch)
        events = _ENGINE.run("SELECT * FROM __batch ORDER BY __arrival")
        rows = [[_exact(value) for value in row.values()] for row in events.to_pylist()]
        places = _ENGINE.run("SELECT * FROM __places ORDER BY ALL").to_pylist()
        both.append((part.rows, events.schema, rows, sorted(map(repr, part.dead.to_pylist())), part.looked, places))
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("document", "quick"),
    [
        ('{"s": "k1", "d": 12.5, "l": 9, "i": 3, "b": true, "f": 1.5}', True),
        ('{"d": 0, "l": 0, "i": 1}', True),
        ('{"d": 12.5, "l": 9007199254740993, "i": 3}', False),
        ('{"d": true, "l": 9, "i": 3}', False),
        ('{"s": 1e25, "d": 2, "l": 9, "i": 3}', False),
        ('{"d": 12.5, "l": 9.5, "i": 3}', False),
        ('{"d": 12.5, "l": "0e80516", "i": 3}', False),
    ],
)
def test_usual_documents_are_read_the_quick_way_and_odd_ones_are_not(document: str, quick: bool) -> None:
    table = pa.table({"raw": [document], "readable": [True], "plain": [True], "__arrival": [0], "__received": [0]})
    found = _ENGINE.run(f"SELECT __quick FROM {Documents(STREAMS[ALL], {}).relation('l')}", l=table)
    assert found["__quick"].to_pylist() == [quick]


@pytest.mark.parametrize("wrong", ['{"d": 1', '{"d": 1}{"d": 2}', "odd", '{"d": 1,}', '{"d": 1} x', "\ufeff{}"])
def test_what_duckdb_takes_for_json_without_being_asked_is_json(wrong: str) -> None:
    """Or a document would be an event in one process, and a dead letter in another that had met a broken one before."""
    stream, taken = STREAMS["d double, l long"], list[bool]()
    lines = {"raw": [wrong], "readable": [True], "plain": [True], "__arrival": [0], "__received": [0]}

    def read(reading: Documents) -> Any:
        taken.append(reading.asking)
        return seen(view(_ENGINE, stream, reading.relation("l"), reading.readers(), "raw", OK, "'t:' || __arrival"))

    _broken.clear()
    with _ENGINE.tables({"l": pa.table(lines)}):
        assert read_documents(stream, {}, read) == read(Documents(stream, {}))
        assert taken[0] is False
        taken.clear()
        read_documents(stream, {}, read)
    assert not _broken or taken == [True], "a stream with broken records is asked at once"


def test_the_loop_is_loaded_when_enough_has_been_read_and_nothing_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ENOUGH": 100, "_read": 0, "_loaded": threading.Event()}.items():
        monkeypatch.setattr(scanning, name, value)
    assert not scanning.ready(99)
    scanning.ready(1)
    assert scanning._loaded.wait(120)
    assert scanning.ready(0)


def test_a_stream_of_which_many_records_are_not_plain_is_left_to_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in ((by_loop, "_STRANGE", 8), (by_loop, "_strange", set[str]()), (scanning, "_loaded", threading.Event())):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    scanning._loaded.set()
    stream, plain, odd = STREAMS[PLAIN], '{"d": 1.5}', '{"d": 1.5e0}'
    for share, wanted in (([plain] * 8 + [odd], True), ([plain] * 6 + [odd], False)):
        scanner = by_loop.scanner_for(stream, {}, 1)
        assert scanner is not None
        numbers = list(range(len(share)))
        table = pa.table({"raw": share, "readable": [True] * len(share), "plain": [True] * len(share), "__arrival": numbers, "__received": numbers})  # fmt: skip
        found = scanned_rows(table, scanner)
        assert (events(_ENGINE, stream, {}, found, SCANNED, "raw", "'t:' || __arrival") is not None) is wanted
    assert by_loop.scanner_for(stream, {}, 1) is None
