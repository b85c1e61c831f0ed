"""A record means the same to everybody who takes it: the sources of a job, the local host, `rollup.Engine` and `rollup try`.

The table below says what each value is as each type, or that it is none; it is written by hand.
"""

from __future__ import annotations

import csv
import json
import math
import warnings
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from rollup.cli.languages.trials import CruncherTrial, SiddhiTrial
from rollup.cli.languages.try_ import _object
from rollup.core.columns import ColumnEngine
from rollup.core.errors import PlanError, QueryError
from rollup.hosts.local import LocalHost
from rollup.lang.fitting import UndeclaredField
from rollup.live import Engine
from rollup.program import compile_app
from rollup.sources.registry import source
from tests.cli.test_try import tried
from tests.job.jobs import Job
from tests.job.model_spark import ModelSpark

DEAD = object()
KINDS = ("int", "long", "float", "double", "string", "bool")
BIG = 9007199254740993
_ENGINE = ColumnEngine(threads=1)
TABLE: list[tuple[Any, ...]] = [
    # given, then as int, long, float, double, string, bool
    (None, None, None, None, None, None, None),
    (0, 0, 0, 0.0, 0.0, "0", False),
    (12, 12, 12, 12.0, 12.0, "12", DEAD),
    (-3, -3, -3, -3.0, -3.0, "-3", DEAD),
    (7.0, 7, 7, 7.0, 7.0, "7.0", DEAD),
    (7.5, DEAD, DEAD, 7.5, 7.5, "7.5", DEAD),
    (1e3, 1000, 1000, 1000.0, 1000.0, "1000.0", DEAD),
    (0.1, DEAD, DEAD, 0.10000000149011612, 0.1, "0.1", DEAD),
    (2**31, DEAD, 2**31, 2.0**31, 2.0**31, "2147483648", DEAD),
    (BIG, DEAD, BIG, 9007199254740992.0, 9007199254740992.0, str(BIG), DEAD),
    (2**63, DEAD, DEAD, 2.0**63, 2.0**63, str(2**63), DEAD),
    (True, DEAD, DEAD, DEAD, DEAD, "true", True),
    (False, DEAD, DEAD, DEAD, DEAD, "false", False),
    ("12", 12, 12, 12.0, 12.0, "12", DEAD),
    ("-0", 0, 0, -0.0, -0.0, "-0", DEAD),
    (" 12 ", 12, 12, 12.0, 12.0, " 12 ", DEAD),
    ("12.0", 12, 12, 12.0, 12.0, "12.0", DEAD),
    ("7.5", DEAD, DEAD, 7.5, 7.5, "7.5", DEAD),
    ("1e3", 1000, 1000, 1000.0, 1000.0, "1e3", DEAD),
    ("2147483648", DEAD, 2**31, 2.0**31, 2.0**31, "2147483648", DEAD),
    (str(2**63), DEAD, DEAD, 2.0**63, 2.0**63, str(2**63), DEAD),
    ("abc", DEAD, DEAD, DEAD, DEAD, "abc", DEAD),
    ("1,5", DEAD, DEAD, DEAD, DEAD, "1,5", DEAD),
    ("true", DEAD, DEAD, DEAD, DEAD, "true", True),
    ("FALSE", DEAD, DEAD, DEAD, DEAD, "FALSE", False),
    ("NaN", DEAD, DEAD, math.nan, math.nan, "NaN", DEAD),
    ("-Infinity", DEAD, DEAD, -math.inf, -math.inf, "-Infinity", DEAD),
    ("-1e39", DEAD, DEAD, DEAD, -1e39, "-1e39", DEAD),
    ("1e400", DEAD, DEAD, DEAD, DEAD, "1e400", DEAD),
    ("2018-01-05T00:00:00Z", DEAD, DEAD, DEAD, DEAD, "2018-01-05T00:00:00Z", DEAD),
    ([1], DEAD, DEAD, DEAD, DEAD, "[1]", DEAD),
    ({"a": 1}, DEAD, DEAD, DEAD, DEAD, '{"a":1}', DEAD),
]
CASES = [(kind, row[0], row[place]) for row in TABLE for place, kind in enumerate(KINDS, 1)]


def _of_source(kind: str, options: dict[str, Any], file: Path) -> Any:
    stream = compile_app(f"define stream S (x {kind}, n int); from S select x insert into T;").streams["S"]
    (part,) = source(stream, options).parts(_ENGINE, pa.table({"path": [str(file)], "modified": [1_000_000]}))
    rows = _ENGINE.run(f"FROM {part.view}").to_pylist()
    assert len(rows) + part.dead.num_rows == 1
    assert rows or part.dead["reason"].to_pylist() == [f"x is not a {kind}"]
    return rows[0]["x"] if rows else DEAD


def _json(kind: str, value: Any, folder: Path) -> Any:
    (folder / "a.json").write_text(json.dumps({"x": value, "n": 1, "more": [2]}))
    return _of_source(kind, {"kind": "json", "path": str(folder)}, folder / "a.json")


def _csv(kind: str, value: Any, folder: Path) -> Any:
    if value is not None and not isinstance(value, str):
        value = json.dumps(value, separators=(",", ":"))
    with (folder / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("x", "n", "more"), (value, 1, 2)])
    return _of_source(kind, {"kind": "csv", "path": str(folder)}, folder / "a.csv")


def _local(kind: str, value: Any, folder: Path) -> Any:
    host = LocalHost.of(f"define stream S (x {kind}, n int); from S select x, n insert into T;")
    host.send("S", [(value, 1)])
    assert len(host.dead) + sum(rows.num_rows for _, rows in host.emitted) == 1
    assert not host.dead or host.dead[0]["reason"] == f"x is not a {kind}"
    return DEAD if host.dead else host.emitted[0][1]["x"].to_pylist()[0]


def _engine(kind: str, value: Any, folder: Path) -> Any:
    engine = Engine()
    engine.deploy(f"create schema S(x {kind.replace('bool', 'boolean')}, n int); @name('q') select x from S;")
    try:
        engine.send("S", {"x": value, "n": 1, "more": [2]})
    except QueryError as problem:
        assert "S.x" in str(problem) and not engine.heard()
        return DEAD
    return engine.heard()[0].new[0]["x"]


def _siddhi(kind: str, value: Any, folder: Path) -> Any:
    trial = SiddhiTrial(f"define stream S (x {kind}, n int); from S select x insert into T;", "a", 0)
    return _tried(trial, value)


def _cruncher(kind: str, value: Any, folder: Path) -> Any:
    words = {"string": "str", "float": "float"}
    text = f"create stream S (x {words.get(kind, kind)}, n int, at ts) time at; create query q as select x from S (partition store last 1) as s where s.$row_status is new;"
    return _tried(CruncherTrial(text, "a", 0), value)


def _tried(trial: SiddhiTrial | CruncherTrial, value: Any) -> Any:
    try:
        trial.send("S", {"x": value, "n": 1, "more": [2]})
    except QueryError as problem:
        assert "S.x" in str(problem)
        return DEAD
    trial.finish()
    (told,) = trial.heard()
    return told.insert[0]["x"]


TAKERS: dict[str, Callable[[str, Any, Path], Any]] = {
    "json": _json,
    "csv": _csv,
    "the local host": _local,
    "rollup.Engine": _engine,
    "rollup try, SiddhiQL": _siddhi,
    "rollup try, StreamCruncher": _cruncher,
}


@pytest.mark.filterwarnings("ignore::rollup.lang.fitting.UndeclaredField")
@pytest.mark.parametrize(("written", "kind"), [("1e400", "double"), ("-1e400", "double"), ("1e39", "float")])
def test_a_number_of_json_beyond_its_type_is_none_and_no_infinity(tmp_path: Path, written: str, kind: str) -> None:
    (tmp_path / "a.json").write_text(f'{{"x": {written}, "n": 1}}')
    assert _of_source(kind, {"kind": "json", "path": str(tmp_path)}, tmp_path / "a.json") is DEAD
    row = _object(f'{{"x": {written}}}'.encode())
    for take in (_local, _engine, _siddhi, _cruncher):
        assert take(kind, row["x"], tmp_path) is DEAD


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.few(3)
def test_a_value_is_the_same_to_everybody(taker: str, tmp_path: Path) -> None:
    wrong = list[str]()
    for kind, given, expected in CASES:
        if taker == "rollup try, StreamCruncher" and kind == "bool":
            continue  # its streams have no truths
        found = TAKERS[taker](kind, given, tmp_path)
        if repr(found) != repr(expected):
            wrong.append(f"{given!r} as {kind}: {found!r}, not {expected!r}")
    assert not wrong


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        (datetime(2018, 1, 5, tzinfo=UTC), "long", 1515110400000),
        (datetime(2018, 1, 5, 0, 0, 0, 999), "long", 1515110400000),
        (datetime(1969, 12, 31, 23, 59, 59, 999_500), "long", -1),
        (date(2018, 1, 5), "long", 1515110400000),
        (np.datetime64("2018-01-05T00:00:00.123456789"), "long", 1515110400123),
        (np.int64(7), "int", 7),
        (np.float64(7.5), "long", DEAD),
        (np.float64(7.0), "long", 7),
        (np.bool_(True), "bool", True),
        (datetime(2018, 1, 5, tzinfo=UTC), "double", DEAD),
    ],
)
def test_a_value_of_a_program_is_read_as_a_parquet_file_has_it(
    given: Any, kind: str, expected: Any, tmp_path: Path
) -> None:
    column = pa.array([given]) if not isinstance(given, np.datetime64) else pa.array(np.array([given]))
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": column, "n": [1]}), file)
    takers: list[Callable[[str, Any, Path], Any]] = [_local, _engine, _siddhi]
    found = [take(kind, given, tmp_path) for take in takers]
    engine = Engine(columns=1)
    engine.deploy(f"create schema S(x {kind.replace('bool', 'boolean')}, n int); @name('q') select x from S;")
    try:
        engine.send("S", pq.read_table(file))
        found.append(engine.heard()[0].new[0]["x"])
    except QueryError:
        found.append(DEAD)
    assert found == [expected] * 4
    assert _of_source(kind, {"kind": "parquet", "path": str(tmp_path)}, file) == expected


WRITTEN = [
    "0", "-0.0", "1.5", "0.10", "1e2", "1.25e-1", "0.001", "-99999999.99", "100000000", "123.450000", "1.005", "12345678901234567.89",
    "12345678901234567890.123456789012345678", "0.000000000000000001", "1e-18", "0.0000000000000000001", "1e20", "2E1", "1E400",
    "0.30000000000000004", "18446744073709551617", "9007199254740993.01",
]  # fmt: skip


@pytest.mark.parametrize(("precision", "scale"), [(10, 2), (19, 2), (38, 18), (38, 0)])
def test_a_decimal_has_the_digits_that_are_written_or_is_none(precision: int, scale: int, tmp_path: Path) -> None:
    """By the digits of a text, never by those of the double beside it; numbers of JSON and texts alike."""
    kind, expected = f"decimal({precision}, {scale})", dict[int, str]()
    with localcontext(prec=500):
        for place, number in enumerate(map(Decimal, WRITTEN)):
            if abs(number) < Decimal(10) ** (precision - scale) and number == round(number, scale):
                expected[place] = f"{number:.{scale}f}".removeprefix("-" if not number else "+")
    stream = f"define stream S (x {kind}, n int);"

    def read(form: str, *lines: str) -> dict[int, str]:
        if lines:
            (tmp_path / "a").write_text("\n".join(lines))
        options = {"kind": form, "path": str(tmp_path)}
        batch = pa.table({"path": [str(tmp_path / "a")], "modified": [1_000_000]})
        (part,) = source(compile_app(stream + "from S select x insert into T;").streams["S"], options).parts(
            _ENGINE, batch
        )
        rows = _ENGINE.run(f"FROM {part.view}").to_pylist()
        assert len(rows) + part.dead.num_rows == len(WRITTEN)
        return {row["n"]: f"{row['x']:f}" for row in rows}

    def local(values: list[Any]) -> dict[int, str]:
        host = LocalHost.of(stream + "from S select x, n insert into T;")
        host.send("S", list(zip(values, range(len(values)), strict=True)))
        return {row["n"]: f"{row['x']:f}" for row in host.emitted[0][1].to_pylist()}

    before, behind = '{"s": "x1:2345678901234567.8,", "more": [12345678901234567.5, "\\"1.5"], ', ', "n": '
    texts = [f'{{"x": {text}, "n": {place}}}' for place, text in enumerate(WRITTEN)]
    assert read("json", *texts) == expected
    assert read("json", *(f'{before}"x": {t}{behind}{n}}}' for n, t in enumerate(WRITTEN))) == expected
    assert read("json", *(f'{before}"x": "{t}"{behind}{n}}}' for n, t in enumerate(WRITTEN))) == expected
    assert read("csv", "x,n", *(f"{text},{place}" for place, text in enumerate(WRITTEN))) == expected
    assert local(list(WRITTEN)) == expected
    assert local([Decimal(text) for text in WRITTEN]) == expected
    pq.write_table(pa.table({"x": WRITTEN, "n": range(len(WRITTEN))}), tmp_path / "a")
    assert read("parquet") == expected


TIMES: list[tuple[Any, Any, Any]] = [
    # given, then as timestamp and as date
    (None, None, None),
    ("2018-01-05", datetime(2018, 1, 5, tzinfo=UTC), date(2018, 1, 5)),
    ("2018-01-05T01:30:00.123456789+01:00", datetime(2018, 1, 5, 0, 30, 0, 123456, UTC), DEAD),
    (" 2018-01-05 00:30Z ", datetime(2018, 1, 5, 0, 30, tzinfo=UTC), DEAD),
    ("1969-12-31T23:59:59.999999", datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), DEAD),
    (1515110400123, datetime(2018, 1, 5, 0, 0, 0, 123000, UTC), DEAD),
    (-1, datetime(1969, 12, 31, 23, 59, 59, 999000, UTC), DEAD),
    ("1515110400123", datetime(2018, 1, 5, 0, 0, 0, 123000, UTC), DEAD),
    (1515110400000000000, DEAD, DEAD),
    (1.5, DEAD, DEAD),
    (True, DEAD, DEAD),
    ("2018-02-30", DEAD, DEAD),
    ("0000-01-05", DEAD, DEAD),
    ("9999-12-31T23:59:59-01:00", DEAD, DEAD),
    ("2018-01-05 00:00 Europe/Berlin", DEAD, DEAD),
    ("05.01.2018", DEAD, DEAD),
    ("infinity", DEAD, DEAD),
    ("epoch", DEAD, DEAD),
    ("noon", DEAD, DEAD),
]


@pytest.mark.parametrize("taker", ["json", "csv", "the local host"])
def test_a_time_of_a_record_is_the_same_to_everybody(taker: str, tmp_path: Path) -> None:
    wrong = list[str]()
    for given, *expected in TIMES:
        for kind, wanted in zip(("timestamp", "date"), expected, strict=True):
            found = TAKERS[taker](kind, given, tmp_path)
            if found != wanted or type(found) is not type(wanted):
                wrong.append(f"{given!r} as {kind}: {found!r}, not {wanted!r}")
    assert not wrong


LOCAL = {
    "2026-07-01T00:30:00": datetime(2026, 6, 30, 22, 30, tzinfo=UTC),
    "2026-01-01": datetime(2025, 12, 31, 23, tzinfo=UTC),
    "2026-03-29 02:30:00.000001": datetime(2026, 3, 29, 1, 30, 0, 1, UTC),
    "1960-01-01 00:00:00.000001": datetime(1959, 12, 31, 23, 0, 0, 1, UTC),
    "2026-07-01T00:30:00Z": datetime(2026, 7, 1, 0, 30, tzinfo=UTC),
    "2026-07-01T00:30:00-05": datetime(2026, 7, 1, 5, 30, tzinfo=UTC),
    "1515110400123": datetime(2018, 1, 5, 0, 0, 0, 123000, UTC),
}
"""What texts are where Europe/Berlin is the declared zone; 02:30 is skipped on 29 March, and is 03:30."""
_DAYS = "@OutOfOrder('correct') define aggregation A from D select count() as c aggregate by x every day;"


@pytest.mark.parametrize(
    ("on_stream", "on_aggregation", "declared"),
    [("", "", "Europe/Berlin"), ("@zone('Europe/Berlin') ", "", "Asia/Tokyo"), ("", "@zone('Europe/Berlin') ", None)],
    ids=["of the configuration", "of the stream", "of the aggregation"],
)
def test_a_time_without_an_offset_is_of_the_declared_zone(
    on_stream: str, on_aggregation: str, declared: str | None, tmp_path: Path
) -> None:
    text = (
        f"{on_stream}define stream S (x timestamp, n long); from S select x, n insert into D; {on_aggregation}{_DAYS}"
    )
    program = compile_app(text, declared)

    def read(form: str) -> list[datetime]:
        options = {"kind": form, "path": str(tmp_path)}
        batch = pa.table({"path": [str(tmp_path / "a")], "modified": [1_000_000]})
        (part,) = source(program.streams["S"], options).parts(_ENGINE, batch)
        return [row["x"] for row in _ENGINE.run(f"FROM {part.view} ORDER BY n").to_pylist()]

    wanted = list(LOCAL.values())
    (tmp_path / "a").write_text("\n".join(json.dumps({"x": given, "n": n}) for n, given in enumerate(LOCAL)))
    assert read("json") == wanted
    (tmp_path / "a").write_text("\n".join(["x,n", *(f"{given},{n}" for n, given in enumerate(LOCAL))]))
    assert read("csv") == wanted
    pq.write_table(pa.table({"x": list(LOCAL), "n": range(len(LOCAL))}), tmp_path / "a")
    assert read("parquet") == wanted
    host = LocalHost(program)
    host.send("S", [(given, n) for n, given in enumerate(LOCAL)])
    days = host.query(
        "from A within '1900-01-01 00:00:00', '2100-01-01 00:00:00' per 'days' select AGG_TIMESTAMP, c"
    ).to_pylist()
    cut = ZoneInfo("Europe/Berlin")
    assert {row["AGG_TIMESTAMP"]: row["c"] for row in days} == Counter(
        int(at.astimezone(cut).replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000) for at in wanted
    )


_PARQUET_TIMES = [
    (pa.array([-1500]).cast(pa.timestamp("ns")), "timestamp", datetime(1969, 12, 31, 23, 59, 59, 999998, UTC)),
    (
        pa.array([-2]).cast(pa.timestamp("us", "Europe/Berlin")),
        "timestamp",
        datetime(1969, 12, 31, 23, 59, 59, 999998, UTC),
    ),
    (pa.array([-1]).cast(pa.timestamp("ms")), "timestamp", datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
    (pa.array([-1], pa.int32()).cast(pa.date32()), "timestamp", datetime(1969, 12, 31, tzinfo=UTC)),
    (pa.array([-1], pa.int32()).cast(pa.date32()), "date", date(1969, 12, 31)),
    (pa.array([-1]).cast(pa.timestamp("us")), "date", DEAD),
    (pa.array(["1969-12-31 23:59:59.999998500"]), "timestamp", datetime(1969, 12, 31, 23, 59, 59, 999998, UTC)),
]


@pytest.mark.parametrize(("column", "kind", "expected"), _PARQUET_TIMES)
def test_a_time_of_a_parquet_file_is_a_time(column: pa.Array, kind: str, expected: Any, tmp_path: Path) -> None:
    """Shortly before 1970: what is finer than microseconds is cut, never rounded into the next year."""
    pq.write_table(pa.table({"x": column, "n": [1]}), tmp_path / "a.parquet")
    assert _of_source(kind, {"kind": "parquet", "path": str(tmp_path)}, tmp_path / "a.parquet") == expected


@pytest.mark.parametrize("stored", [pa.decimal128(12, 4), pa.decimal256(50, 3), pa.float64(), pa.int64(), pa.int8()])
def test_a_number_of_a_parquet_file_is_a_decimal_where_it_has_no_more_digits(
    stored: pa.DataType, tmp_path: Path
) -> None:
    options = {"kind": "parquet", "path": str(tmp_path)}
    for given, expected in (
        (Decimal("12"), Decimal("12.00")),
        (Decimal("0.5"), Decimal("0.50")),
        (Decimal("0.125"), DEAD),
    ):
        if pa.types.is_integer(stored) and given % 1:
            continue
        column = pa.array(
            [int(given) if pa.types.is_integer(stored) else float(given) if pa.types.is_floating(stored) else given],
            stored,
        )
        pq.write_table(pa.table({"x": column, "n": [1]}), tmp_path / "a.parquet")
        assert _of_source("decimal(10, 2)", options, tmp_path / "a.parquet") == expected


def test_a_field_that_is_not_declared_is_not_read_and_said_once() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        engine, trial = (
            Engine(),
            SiddhiTrial("define stream Seen2 (speed int); from Seen2 select speed insert into O;", "a", 0),
        )
        engine.deploy("create schema Seen1(speed int); @name('q') select speed from Seen1;")
        for number in range(3):
            engine.send("Seen1", {"speed": number, "spede": 5, "user": "u"})
            trial.send("Seen2", {"speed": number, "user": "u"})
        engine.send("Seen1", pa.table({"speed": [7], "user": ["u"]}))
    assert [row["speed"] for each in engine.heard() for row in each.new] == [0, 1, 2, 7]
    assert [row["speed"] for each in trial.heard() for row in each.insert] == [0, 1, 2]
    assert {each.category for each in said} == {UndeclaredField}
    assert [str(each.message) for each in said] == [
        "`Seen1` declares no `spede`, which is not read: did you mean `speed`?",
        "`Seen1` declares no `user`, which is not read: declared are speed",
        "`Seen2` declares no `user`, which is not read: declared are speed",
    ]


ISO, NANOSECONDS, FAR = "2018-01-05T01:00:00+01:00", 1515110400000000000, 4102444800000
APP = "define aggregation A from S select count() as n aggregate by ts every sec, min;"


@pytest.mark.parametrize("kind", ["string", "long"])
def test_a_time_is_the_same_to_everybody(kind: str, tmp_path: Path) -> None:
    """Text in ISO form, a time that cannot be, and one too far ahead: what a job says of each, the others say."""
    good: Any = ISO if kind == "string" else 1515110400000
    far: Any = "2100-01-01T00:00:00Z" if kind == "string" else FAR
    wrong = {"noon": "the time is no timestamp"} if kind == "string" else {NANOSECONDS: "probably in nanoseconds"}
    wrong |= {None: "the time is null", far: "the time lies further ahead than `[late] ahead` allows"}
    stream = f"define stream S (x int, ts {kind});"

    host = LocalHost(compile_app(stream + APP), ahead=86_400_000)
    host.send("S", [(1, good), *((2, given) for given in wrong)])
    assert len(host.dead) == len(wrong)
    assert all(reason in " ".join(row["reason"] for row in host.dead) for reason in wrong.values())
    asked = "from A within '2018-01-05' per 'seconds' select AGG_TIMESTAMP, n"
    assert host.query(asked).to_pylist() == [{"AGG_TIMESTAMP": 1515110400000, "n": 1}]

    engine = Engine()
    engine.deploy(f"create schema S(x int, ts {kind}); @name('q') select x, current_timestamp() as now from S;")
    for given, reason in wrong.items():
        with pytest.raises(QueryError, match="instants|" + reason.replace("[", r"\[")):
            engine.send("S", {"x": 2, "ts": given}, at="ts")
    engine.send("S", {"x": 1, "ts": good}, at="ts")
    with pytest.raises(QueryError, match="further ahead"):
        engine.send("S", [{"x": 3, "ts": good}, {"x": 4, "ts": far}], at="ts")
    assert [row for each in engine.heard() for row in each.new] == [
        {"x": x, "now": 1515110400000} for x in (1, 3)
    ]  # what came before the event that is refused was taken
    loose = Engine(ahead="any")
    loose.deploy(f"create schema S(x int, ts {kind}); @name('q') select x from S;")
    loose.send("S", {"x": 1, "ts": far}, at="ts")
    assert loose.now == FAR

    for name, text in (("a.siddhi", stream + "from S select x insert into O;"), ("b.siddhi", stream + APP + "from S select x insert into O;")):  # fmt: skip
        lines: list[object] = [{"x": 1, "ts": good}, *({"x": 2, "ts": given} for given in wrong)]
        printed, said, code = tried(tmp_path, name, text, lines, "--stream", "S", "--time", "ts")
        assert printed == [{"statement": "O", "at": 1515110400000, "insert": [{"x": 1}]}]
        assert code == 1 and all(reason in said for reason in wrong.values())


def test_instants_may_be_a_column_of_a_frame_or_of_arrow() -> None:
    import pandas as pd

    engine = Engine()
    engine.deploy("create schema S(x int); @name('q') select x from S;")
    frame = pd.DataFrame({"x": [1, 2], "ms": [5, 9]})
    engine.send("S", frame[["x"]], at=frame["ms"])
    engine.send("S", pa.table({"x": [3]}), at=pa.array([11]))
    engine.send("S", pa.table({"x": [4]}), at=pa.chunked_array([[12]]))
    assert engine.now == 12 and len(engine.heard()) == 4


_BARE = "2018-01-05T00:00:01"
_MEASURED = "define stream S (x int, ts string);"
_AGGREGATED = "define aggregation A from S select count() as n aggregate by ts every sec, min;"
_STATED = "@time('ts') define stream S (x int, ts string); from S#window.length(1) select x insert into O;"


def _job_says(app: str, times: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    (folder / "in").mkdir()
    for number, time in enumerate(times):  # a batch each
        (folder / "in" / f"{number}.json").write_text(json.dumps({"x": number, "ts": time}))
    source = {"kind": "json", "path": "in", "max_files_per_batch": 1}
    Job(folder, source, app=app, streams=("S",)).run(ModelSpark())  # type: ignore[arg-type]
    return capsys.readouterr().err


def _host_says(app: str, times: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    host = LocalHost.of(app)
    with warnings.catch_warnings(record=True) as said:
        for number, time in enumerate(times):
            host.send("S", [(number, time)])
    return "\n".join(str(each.message) for each in said)


def _engine_says(app: str, times: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    engine = Engine()
    engine.deploy("create schema S(x int, ts string); @name('q') select x from S;")
    with warnings.catch_warnings(record=True) as said:
        engine.send("S", [{"x": number, "ts": time} for number, time in enumerate(times)], at="ts")
    return "\n".join(str(each.message) for each in said)


def _trial_says(app: str, times: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    lines: list[object] = [{"x": number, "ts": time} for number, time in enumerate(times)]
    with warnings.catch_warnings(record=True) as said:
        tried(folder, "a.siddhi", app, lines, "--stream", "S")
    return "\n".join(str(each.message) for each in said)


@pytest.mark.parametrize(
    ("says", "app"),
    [
        (_job_says, _MEASURED + _AGGREGATED),
        (_job_says, _STATED),
        (_host_says, _MEASURED + _AGGREGATED),
        (_host_says, _STATED + "@lang('epl') { insert into E select x from S; }"),
        (_engine_says, ""),
        (_trial_says, _STATED),
        (_trial_says, _MEASURED + _AGGREGATED),
    ],
)
def test_times_without_an_offset_beside_those_with_one_are_said_once(
    says: Callable[..., str], app: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not where all are alike, nor where the zone of those without is declared."""
    mixed = ["2018-01-05T00:00:00Z", _BARE, "2018-01-05 00:00:02+00:00", "2018-01-05 00:00:03"]
    for number, (times, text, expected) in enumerate(
        [
            (mixed, app, 1),
            (["2018-01-05", _BARE], app, 0),
            (["2018-01-05T00:00:00Z", "2018-01-05T02:00:01+02:00"], app, 0),
            (mixed, "@zone('Europe/Berlin') " + app, 0 if app else 1),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        said = says(text, times, folder, capsys)
        assert said.count("some times have an offset and others have none") == expected, said
        assert said.count("Write Z or an offset behind each") == expected


def test_a_trial_reads_times_as_the_streams_declare_them(tmp_path: Path) -> None:
    """As a job does: at the attribute that `@time` names, in the zone of `@zone` where a text names none."""
    app = "@zone('Europe/Berlin') @time('ts') define stream S (ts string); from S select ts insert into O;"
    lines: list[object] = [{"ts": "2018-01-05T01:00:00"}, {"ts": "2018-01-05T00:00:01Z"}]
    for options in ((), ("--time", "ts")):
        printed, said, code = tried(tmp_path, "a.siddhi", app, lines, "--stream", "S", *options)
        assert [row["at"] for row in printed] == [1515110400000, 1515110401000]  # type: ignore[index, call-overload]
        assert (said, code) == ("", 0)
    with pytest.raises(PlanError, match="names 'st', which is no long or string of S"):
        tried(tmp_path, "a.siddhi", app.replace("'ts'", "'st'"), lines, "--stream", "S")


BEYOND = (1 << 53) + 1
_GREAT = "define stream Great{} (x {}, n int); from Great{}#window.length(1) select x insert into O;"


def _column_of(value: Any, beyond: pa.DataType) -> pa.Table:
    kind = pa.float64() if isinstance(value, float) else beyond if value >= 1 << 63 else pa.int64()
    return pa.table({"x": pa.array([value], kind), "n": [1]})


def _job_rounds(number: int, kind: str, value: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Of each kind of source, in the words of the run."""
    said = list[str]()
    for form in ("json", "csv", "parquet", "delta"):
        (there := folder / form / "in").mkdir(parents=True)
        if form == "json":
            (there / "a.json").write_text(json.dumps({"x": value, "n": 1}))
        elif form == "csv":
            (there / "a.csv").write_text(f"x,n\n{value},1\n")
        elif form == "parquet":
            pq.write_table(_column_of(value, pa.uint64()), there / "a.parquet")
        else:
            write_deltalake(str(there), _column_of(value, pa.decimal128(20, 0)))
        app, source = _GREAT.format(number, kind, number), {"kind": form, "path": "in"}
        Job(folder / form, source, app=app, streams=(f"Great{number}",)).run(ModelSpark())  # type: ignore[arg-type]
        said.append(capsys.readouterr().err)
    assert len({"has whole numbers beyond" in each for each in said}) == 1, said
    return said[0]


def _others_round(number: int, kind: str, value: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """`rollup.Engine`, a trial, and the local host: each in a stream of its own, since a field is said once."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for more, rows in (("E", {"x": value, "n": 1}), ("F", _column_of(value, pa.uint64()))):
            engine = Engine()
            name = f"Great{number}{more}"
            engine.deploy(f"create schema {name}(x {kind.partition('(')[0]}, n int); @name('q') select x from {name};")
            engine.send(name, rows)
        SiddhiTrial(_GREAT.format(f"{number}T", kind, f"{number}T"), "a", 0).send(
            f"Great{number}T", {"x": value, "n": 1}
        )
        LocalHost.of(f"define stream Great{number} (x {kind}, n int); from Great{number} select x insert into T;").send(
            f"Great{number}", [(value, 1)]
        )
    told = [str(each.message) for each in said]
    assert len(told) in (0, 4), told
    return told[-1] if told else ""


@pytest.mark.parametrize("rounds", [_job_rounds, _others_round])
def test_whole_numbers_beyond_those_of_a_type_are_said(
    rounds: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases: list[tuple[str, Any, str]] = [
        ("double", BEYOND, "beyond 2^53"),
        ("double", (1 << 64) - 1, "beyond 2^53"),
        ("double", BEYOND // 2, ""),
        ("long", BEYOND, ""),
        ("float", (1 << 24) + 1, "beyond 2^24"),
        ("float", (1 << 24) - 1, ""),
        ("double", 0.1, ""),
        ("double", 6.02e23, ""),
    ]
    for number, (kind, value, expected) in enumerate(cases):
        number += 100 * (rounds is _job_rounds)
        said = rounds(number, kind, value, tmp_path / str(number), capsys)
        if expected:
            assert (
                f"stream Great{number}: x is a {kind} and has whole numbers {expected}, of which a {kind} lacks" in said
            )
            assert "Declare x as long, or beyond 2^63 as decimal(20, 0), to keep them" in said
        else:
            assert "whole numbers" not in said


def test_a_parquet_column_of_the_type_itself_lost_nothing_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside one that is converted."""
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": [1e300], "n": pa.array([1], pa.int64())}), tmp_path / "in" / "a.parquet")
    job = Job(tmp_path, {"kind": "parquet", "path": "in"}, app=_GREAT.format(0, "double", 0), streams=("Great0",))
    job.run(ModelSpark())  # type: ignore[arg-type]
    assert "whole numbers" not in capsys.readouterr().err
