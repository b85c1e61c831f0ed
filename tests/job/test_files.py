"""Files as they come: odd names, odd lines, any length. Whatever a file holds, each record is an event or a letter.

The half of a source that runs in a task, over real files; `test_faults` has what the system does to them.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rollup.core.errors import ConfigError, SourceError
from rollup.sources.registry import source
from tests.job.jobs import Job
from tests.job.test_sources import GOOD, NAMES, STREAM, drained, lines, messages, of, parquet, read, topic, values

ODD_NAMES = [
    "a%41",
    "b#c",
    "q?x",
    "n\nl",
    "g[1]",
    "g1",
    "st*ar",
    "c:12:30",
    "back\\slash",
    "it's",
    "ünï",
    "{a,b}",
    "~",
    "$x",
    "\u2028",
    "\x85",
]


def written(folder: Path, kind: str, name: str) -> Path:
    """A file of one trade whose symbol is the file's name."""
    path = folder / f"{name}.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"symbol": [name], "price": [1.5], "quantity": [3], "ts": [1000]}), path)
    elif kind == "csv":
        quoted = name.replace('"', '""')
        path.write_text(f'symbol,price,quantity,ts\n"{quoted}",1.5,3,1000\n')
    else:
        path.write_text(json.dumps(GOOD | {"symbol": name}) + "\n")
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_name_is_a_name(tmp_path: Path, kind: str) -> None:
    files = [written(tmp_path, kind, name) for name in ODD_NAMES]
    for file, name in zip(files, ODD_NAMES, strict=True):
        events, dead = read(of(kind, tmp_path), file)
        assert (values(events), dead) == ([(name, 1.5, 3, 1000)], [])


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_folder_that_looks_like_a_partition_does_not_change_what_a_file_says(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "symbol=other"
    folder.mkdir()
    events, dead = read(of(kind, tmp_path), written(folder, kind, "own"))
    assert ([event["symbol"] for event in events], dead) == (["own"], [])


def test_a_parquet_column_that_only_folders_name_is_read_from_them(tmp_path: Path) -> None:
    folder = tmp_path / "symbol=a%2Fb" / "quantity=7"
    folder.mkdir(parents=True)
    events, dead = read(of("parquet", tmp_path), parquet(folder / "f.parquet", symbol=None, quantity=None))
    assert ([(event["symbol"], event["quantity"]) for event in events], dead) == ([("a/b", 7)] * 2, [])


# Lines


@pytest.mark.parametrize("megabytes", [1, 2, 3, 33, 70])
def test_a_json_line_of_any_length_is_an_event(tmp_path: Path, megabytes: int) -> None:
    long = "x" * (megabytes << 20)
    file = lines(tmp_path / "f.json", json.dumps(GOOD), json.dumps(GOOD | {"symbol": long}), json.dumps(GOOD))
    events, dead = read(of("json", tmp_path), file)
    assert [len(event["symbol"]) for event in events] == [1, len(long), 1]
    assert dead == []


@pytest.mark.parametrize("megabytes", [3, 33])
def test_a_broken_line_of_any_length_is_one_letter_with_a_reason(tmp_path: Path, megabytes: int) -> None:
    long = "x" * (megabytes << 20)
    for kind, head, good, bad in (
        ("json", [], json.dumps(GOOD), long),
        ("csv", [",".join(NAMES)], "a,1.5,3,1000", long),
    ):
        file = lines(tmp_path / f"f.{kind}", *head, good, bad, good)
        events, dead = read(of(kind, tmp_path), file)
        assert [event["symbol"] for event in events] == ["a", "a"]
        assert [bool(letter["reason"]) for letter in dead] == [True]


def test_a_csv_field_of_any_length_is_read(tmp_path: Path) -> None:
    long = "x" * (40 << 20)
    events, dead = read(
        of("csv", tmp_path), lines(tmp_path / "f.csv", ",".join(NAMES), f"{long},1.5,3,1000", "b,1,1,1")
    )
    assert ([len(event["symbol"]) for event in events], dead) == ([len(long), 1], [])


ODD_JSON = b'{"symbol": "a"}\r\n\n  \n\xef\xbb\xbf{"symbol": "bom"}\n{"symbol": "b"}\r{"symbol": "c"}\n\x1f{"symbol": "d"}\n{"symbol": "e\\u0000f"}\n\x00\n{"symbol": "last"}'


def test_odd_ends_of_lines_and_signs_concern_their_own_line_alone(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_bytes(b"\xef\xbb\xbf" + ODD_JSON)
    events, dead = read(of("json", tmp_path), file)
    assert [event["symbol"] for event in events] == ["a", "e\0f", "last"]
    assert [letter["position"] for letter in dead] == [f"{file}:{number}" for number in (1, 2, 3, 5)]
    packed = tmp_path / "f.json.gz"
    packed.write_bytes(gzip.compress(ODD_JSON[:16]) + gzip.compress(ODD_JSON[16:]))
    assert [event["symbol"] for event in read(of("json", tmp_path), packed)[0]] == ["a", "e\0f", "last"]


ODD_CSV = [
    (b"a,1,1,1\rb,2,2,2\nc,3,3,3\r\nd,4,4,4\n", ["c", "d"], 1),
    (b'a,1,1,1\n"b,2,2,2\nc,3,3,3\n', ["a", "c"], 1),
    (b'a,1,1,1\nb"b,2,2,2\nc,3,3,3\n', None, None),
    (b"\n\na,1,1,1\n\r\n\nb,2,2,2", ["a", "b"], 0),
    (b"a,1,1,1\n\xff,2,2,2\nc,3,3,3\n", ["a", "c"], 1),
    (b'"x\n\ny",1,1,1\n', ["x\n\ny"], 0),
    (b"\x00,1,1,1\nb,2,2,2\n", ["\x00", "b"], 0),
]


@pytest.mark.parametrize(("content", "symbols", "letters"), ODD_CSV)
def test_an_odd_csv_record_concerns_itself_alone(
    tmp_path: Path, content: bytes, symbols: list[str] | None, letters: int | None
) -> None:
    file = tmp_path / "f.csv"
    file.write_bytes(b"symbol,price,quantity,ts\n" + content)
    events, dead = read(of("csv", tmp_path), file)
    if symbols is None:
        assert len(events) + len(dead) == 3
        return
    assert [event["symbol"] for event in events] == symbols
    assert len(dead) == letters
    assert all(letter["reason"] for letter in dead)


@pytest.mark.parametrize(
    ("null", "field", "wanted"),
    [("", "", None), ("", '""', None), ("\\N", "", ""), ("\\N", '""', ""), ("\\N", "\\N", None), ("NULL", "", "")],
)
def test_one_text_stands_for_null_and_no_other(tmp_path: Path, null: str, field: str, wanted: str | None) -> None:
    file = lines(tmp_path / "f.csv", ",".join(NAMES), f"{field},1.5,3,1000", "b,1,1,1")
    events, dead = read(of("csv", tmp_path, null=null), file)
    assert ([event["symbol"] for event in events], dead) == ([wanted, "b"], [])


def test_an_empty_number_is_a_letter_where_another_text_stands_for_null(tmp_path: Path) -> None:
    file = lines(tmp_path / "f.csv", ",".join(NAMES), "a,,3,1000", "b,\\N,1,1")
    events, dead = read(of("csv", tmp_path, null="\\N"), file)
    assert [event["price"] for event in events] == [None]
    assert [letter["reason"] for letter in dead] == ["price is not a double"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_header_that_names_a_column_of_an_attribute_twice_makes_the_file_a_letter(tmp_path: Path, count: int) -> None:
    files = [lines(tmp_path / f"{n}.csv", "symbol,symbol,price,quantity,ts", "a,z,1.5,3,1000") for n in range(count)]
    events, dead = read(of("csv", tmp_path), *files)
    reason = "the file has two columns symbol: `columns` may name symbol and symbol:1"
    assert not events and [letter["reason"] for letter in dead] == [reason] * count
    other = lines(tmp_path / "other.csv", "x,symbol,x,price,quantity,ts", "0,a,0,1.5,3,1000")
    assert values(read(of("csv", tmp_path), other)[0]) == [("a", 1.5, 3, 1000)]


_OTHER = 'the file is no UTF-8; `encoding = "{}"` in its table of the configuration may be what it is'


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty; its first line names the columns"),
        ("symbol,price,quantity,ts\na,1.5,3,1000\n".encode("utf-16"), _OTHER.format("utf-16")),
        ("symbol,price €,quantity,ts\na,1.5,3,1000\n".encode("cp1252"), _OTHER.format("cp1252")),
    ],
)
def test_a_file_without_names_of_columns_says_why(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "f.csv"
    file.write_bytes(content)
    assert [letter["reason"] for letter in read(of("csv", tmp_path), file)[1]] == [reason]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "cp1252", "latin-1", "shift_jis", "utf-8-sig"])
@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_texts_in_another_encoding_are_the_same_events(tmp_path: Path, encoding: str, kind: str, ending: str) -> None:
    words = ["a", "表示" if encoding in ("utf-16", "utf-16-be", "shift_jis") else "Köln £"]
    head = ["symbol,price,quantity,ts"] if kind == "csv" else []
    rows = [f"{w},1.5,3,1000" if kind == "csv" else json.dumps(GOOD | {"symbol": w}, ensure_ascii=False) for w in words]
    content = "".join(f"{line}\r\n" for line in [*head, *rows]).encode(encoding)
    files = [tmp_path / f"{n}.{kind}{ending}" for n in range(2)]
    for file in files:
        file.write_bytes(gzip.compress(content) if ending else content)
    events, dead = read(of(kind, tmp_path, encoding=encoding), *files)
    assert ([event[0] for event in values(events)], dead) == (words * 2, [])


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_bytes_that_are_none_of_an_encoding_cost_their_own_line(tmp_path: Path, kind: str) -> None:
    good, bad = (f"{w},1.5,3,1000" if kind == "csv" else json.dumps(GOOD | {"symbol": w}) for w in ("a", "@"))
    head = "symbol,price,quantity,ts\n" if kind == "csv" else ""
    file = tmp_path / f"a.{kind}"
    file.write_bytes(f"{head}{good}\n{bad}\n{good}\n".encode().replace(b"@", b"\x81"))
    events, dead = read(of(kind, tmp_path, encoding="cp1252"), file)
    assert ([event[0] for event in values(events)], len(dead)) == (["a", "a"], 1)


# Damage and faults


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("how", [{}, {"encoding": "latin-1"}], ids=["utf-8", "latin-1"])
def test_a_packed_file_that_is_cut_off_is_one_letter_and_none_of_it_counts(
    tmp_path: Path, kind: str, how: dict[str, str]
) -> None:
    head = b"symbol,price,quantity,ts\n" if kind == "csv" else b""
    row = b"a,1,1,1\n" if kind == "csv" else json.dumps(GOOD).encode() + b"\n"
    bad, good = tmp_path / f"a.{kind}.gz", tmp_path / f"b.{kind}.gz"
    content = gzip.compress(head + row * 10_000 + bytes(range(256)) * 100)
    bad.write_bytes(content[: len(content) // 2])
    good.write_bytes(gzip.compress(head + row))
    events, dead = read(of(kind, tmp_path, **how), bad, good)
    assert len(events) == 1
    assert [letter["position"] for letter in dead] == [str(bad)]
    assert dead[0]["reason"].startswith("the file cannot be read: ")


def nothing_there(path: Path) -> None:
    path.unlink()


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_circle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


@pytest.mark.parametrize("fault", [nothing_there, a_folder, a_circle])
@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_what_the_system_refuses_is_an_error_that_names_the_file_and_no_letter(
    tmp_path: Path, kind: str, fault: Any
) -> None:
    file = written(tmp_path, kind, "a")
    row = {"path": str(file), "modified": 0}
    fault(file)
    from rollup.core.columns import ColumnEngine

    with pytest.raises(SourceError, match=f"cannot read {file}: "):
        list(of(kind, tmp_path).parts(ColumnEngine(), pa.Table.from_pylist([row])))


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_too_little_memory_is_an_error_that_names_the_file_and_no_letter(tmp_path: Path, kind: str) -> None:
    from rollup.core.columns import ColumnEngine

    file, engine = written(tmp_path, kind, "a"), ColumnEngine(threads=1)
    engine.connection.execute("SET memory_limit = '100KB'; SET max_temp_directory_size = '0KB'")
    batch = pa.Table.from_pylist([{"path": str(file), "modified": 0}])
    with pytest.raises(SourceError, match=rf"cannot read {file}: Out of Memory Error"):
        list(of(kind, tmp_path).parts(engine, batch))


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_file_that_is_written_while_it_is_read_is_an_error(tmp_path: Path, kind: str) -> None:
    from rollup.core.columns import ColumnEngine

    file = written(tmp_path, kind, "a")
    parts = of(kind, tmp_path).parts(ColumnEngine(), pa.Table.from_pylist([{"path": str(file), "modified": 0}]))
    next(parts)
    with file.open("ab") as more:
        more.write(b"\n")
    with pytest.raises(SourceError, match=r"was written while it was read \(write a file aside and rename it"):
        next(parts)


def test_a_folder_that_is_not_there_is_refused_unless_it_is_to_be_made_which_a_look_does_not(tmp_path: Path) -> None:
    options = {"kind": "json", "path": str(tmp_path / "in")}
    with pytest.raises(ConfigError, match=r"there is no folder .*in \(`create = true`"):
        source(STREAM, options).check()
    source(STREAM, options | {"create": True}).check()
    assert not (tmp_path / "in").exists()


# What a configuration says


@pytest.mark.parametrize(
    ("path", "wanted"),
    [("http.status", [7, 9, None, 5]), ("$.http.status", [None, 9, None, 5]), ("$.http['status']", None)],
)
def test_a_nested_value_is_reached_by_dots_and_a_member_of_that_very_name_comes_first(
    tmp_path: Path, path: str, wanted: list[int | None] | None
) -> None:
    texts = ['{"http.status": 7}', '{"http": {"status": 9}}', '{"http": 3}', '{"http": {"status": 5, "x": {}}}']
    file, options = lines(tmp_path / "f.json", *texts), {"columns": {"quantity": path}}
    if wanted is None:
        with pytest.raises(ConfigError, match="which is no path"):
            of("json", tmp_path, **options).check()
        return
    of("json", tmp_path, **options).check()
    events, dead = read(of("json", tmp_path, **options), file)
    assert ([event["quantity"] for event in events], dead) == (wanted, [])
    events, dead = drained(topic(**options), messages(*((1, 0, n, text) for n, text in enumerate(texts))))
    assert ([event["quantity"] for event in events], dead) == (wanted, [])


def test_a_column_for_an_attribute_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="columns names prize, which is no attribute"):
        of("json", tmp_path, columns={"prize": "p"}).check()


@pytest.mark.parametrize("path", ["s3:///in", "gs://name/in", "gs://b", "file:///in"])
def test_an_address_is_refused_and_makes_no_folder_of_that_name(tmp_path: Path, path: str) -> None:
    job = Job(tmp_path, {"kind": "json", "path": path, "create": True})
    scheme = path.split(":")[0]
    said = (
        "the name of a bucket or host after s3://"
        if scheme == "s3"
        else f"or s3://bucket/…, az://container/…, hdfs://host:port/…; {scheme}:// is not read or written"
    )
    with pytest.raises(ConfigError, match=said):
        job.conf  # noqa: B018
    assert sorted(found.name for found in tmp_path.iterdir()) == ["app.siddhi", "job.toml"]
