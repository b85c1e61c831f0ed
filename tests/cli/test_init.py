"""`rollup init` on data as strangers have it: what it writes runs as it is, and counts and adds up right."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner, Result

import rollup
from rollup.cli.main import cli
from rollup.conf import load
from rollup.hosts.reporting.progress import Reporter
from rollup.hosts.spark.driver import SparkHost
from rollup.sources import looking
from rollup.sources.looking import look
from tests.job.model_spark import ModelSpark
from tests.job.test_avro import framed, record_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.kafka import KafkaBroker
    from tests.servers.registry import SchemaRegistry

START = datetime(2026, 3, 1, 8, 30, tzinfo=UTC)
TIMES = [START + timedelta(hours=7 * n) for n in range(60)]
PLACES = ["Nord", "Süd"]
TOTAL = {"Nord": sum(range(0, 60, 2)), "Süd": sum(range(1, 60, 2))}


def _euros(n: int) -> str:
    return f"1.000.{n:03},00 €"


def _epoch(factor: int, parts: str = "") -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        lines = [
            json.dumps(
                {
                    "ts": float(f"{int(at.timestamp())}{parts}") if parts else int(at.timestamp()) * factor,
                    "shop": {"place": PLACES[n % 2]},
                    "n": n,
                    "tags": ["x"],
                }
            )
            for n, at in enumerate(TIMES)
        ]
        (folder / "data.jsonl").write_text("\n".join(lines) + "\n")
        return folder / "data.jsonl"

    return write


def _csv(pattern: str, separator: str = ",", **how: Any) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        zone = timezone(timedelta(minutes=how.get("offset", 0)))
        rows = [
            separator.join((at.astimezone(zone).strftime(pattern), PLACES[n % 2], how.get("number", str)(n)))
            + how.get("behind", "")
            for n, at in enumerate(TIMES)
        ]
        rows += how.get("more", ())
        head = [] if how.get("headless") else [separator.join(how.get("names", ("Datum", "place", "n")))]
        text = how.get("end", "\n").join([*how.get("above", ()), *head, *rows, ""])
        content = text.encode(how.get("encoding", "utf-8"))
        file = folder / how.get("file", "data.csv")
        file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
        return file

    return write


def _table() -> pa.Table:
    return pa.table(
        {
            "happened": pa.array(TIMES, pa.timestamp("ns", "UTC")),
            "place": pa.array([PLACES[n % 2] for n in range(60)]).dictionary_encode(),
            "n": pa.array([Decimal(n) for n in range(60)], pa.decimal128(12, 2)),
        }
    )


def _parquet(folder: Path) -> Path:
    (folder / "data" / "deep").mkdir(parents=True)
    for name, rows in (("a.parquet", _table().slice(0, 30)), ("deep/b.parquet", _table().slice(30))):
        pq.write_table(rows, folder / "data" / name)
    return folder / "data"


def _delta(folder: Path) -> Path:
    write_deltalake(folder / "data", _table())
    return folder / "data"


DATA: Mapping[str, tuple[Callable[[Path], Path], str, str]] = {
    "seconds": (_epoch(1), "shop_place", "n"),
    "microseconds": (_epoch(1_000_000), "shop_place", "n"),
    "german": (
        _csv("%d.%m.%Y %H:%M", ";", number=lambda n: f"1.000.{n:03},00", encoding="utf-8-sig", end="\r\n"),
        "place",
        "n",
    ),
    "german, €": (_csv("%d.%m.%Y %H:%M", ";", number=_euros, encoding="cp1252"), "place", "n"),
    "german, UTF-16": (_csv("%d.%m.%Y %H:%M", "\t", number=_euros, encoding="utf-16", end="\r\n"), "place", "n"),
    "dollars": (
        _csv("%m/%d/%Y,%I:%M %p", names=("Day", "Time", "place", "n"), number=lambda n: f'"$1,000,{n:03}"'),
        "place",
        "n",
    ),
    "parts of seconds": (_epoch(1, ".999"), "shop_place", "n"),
    "german, ISO": (_csv("%Y-%m-%dT%H:%M:%S", ";", number=lambda n: f"1.000.{n:03},00"), "place", "n"),
    "day and clock": (_csv("%d.%m.%Y;%H:%M", ";", names=("Datum", "Uhrzeit", "place", "n")), "place", "n"),
    "american": (_csv("%m/%d/%Y %I:%M %p", "\t", file="data.tsv"), "place", "n"),
    "iso, packed": (_csv("%Y-%m-%dT%H:%M:%S+00:00", file="data.csv.gz"), "place", "n"),
    "ISO, local": (_csv("%Y-%m-%dT%H:%M:%S%z", offset=300), "place", "n"),
    "ISO, basic, offset": (_csv("%Y%m%dT%H%M%S%z", offset=90), "place", "n"),
    "remarks above": (
        _csv("%Y-%m-%d %H:%M:%S", above=["# exported 2026-03-05, by shop", "# it's 5\" wide", ""]),
        "place",
        "n",
    ),
    "german, Excel": (
        _csv("%d.%m.%Y %H:%M", ";", number=_euros, encoding="utf-8-sig", end="\r\n", above=["sep=;"]),
        "place",
        "n",
    ),
    "a title": (_csv("%Y-%m-%d %H:%M:%S", above=["Report of shops,,", "", ",,"]), "place", "n"),
    "other scripts": (_csv("%Y-%m-%d %H:%M:%S", names=("время", '"место, где"', "列")), "`место_где`", "列"),
    "first line again": (_csv("%Y-%m-%d %H:%M:%S", more=["Datum,place,n"]), "place", "n"),
    "no time": (_csv("%Y-%m-%d %H:%M:%S", more=["2026-02-30 00:00:00,Nord,1", "-,Nord,1"]), "place", "n"),
    "names alike": (
        _csv("%Y-%m-%d %H:%M:%S", names=("Datum", "place", "n", "n", "N", ""), behind=",7,8,"),
        "place",
        "n",
    ),
    "no values": (
        _csv(
            "%Y-%m-%d %H:%M:%S",
            names=("Datum", "place", "n", "x", "y"),
            behind=",1.5,1",
            more=["2026-03-01,Nord,,-,N/A", "2026-03-01,Nord,,NaN,"],
        ),
        "place",
        "n",
    ),
    "no header": (_csv("%Y-%m-%d %H:%M:%S", "|", headless=True, file="data.txt"), "c2", "c3"),
    "spaces": (_csv("%Y-%m-%d %H:%M:%S", " , "), "place", "n"),
    "odd names": (_csv("%Y-%m-%d %H:%M:%S", names=("order by", "select", "N*/ {n}")), "`select`", "N_n"),
    "parquet": (_parquet, "place", "n"),
    "delta": (_delta, "place", "n"),
}


def invoked(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


def test_what_init_writes_runs_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    _runs("seconds", spark, tmp_path)


@pytest.mark.parametrize("data", DATA)
def test_what_init_writes_runs_as_it_is(tmp_path: Path, data: str) -> None:
    _runs(data, ModelSpark(), tmp_path)


def _runs(data: str, spark: Any, tmp_path: Path) -> None:
    write, key, number = DATA[data]
    made = write(tmp_path)
    done = invoked("init", str(made), "--into", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    conf = load(tmp_path / "out" / "data.toml")
    SparkHost(conf, spark, Reporter(terminal=False)).run(once=True)
    question = f"from DataAgg within '2026' per 'years' select {key} as k, `sum_{number}` as total, events"
    found = {row["k"]: (row["total"], row["events"]) for row in rollup.query(conf.path, question).to_pylist()}
    more = 30 * 1_000_000 if data.startswith(("german", "dollars")) else 0
    extra = {"Nord": 2} if data == "no values" else {}
    assert found == {place: (total + more, 30 + extra.get(place, 0)) for place, total in TOTAL.items()}
    weeks = rollup.query(conf.path, "select sum(events) as n from DataAgg within '2026' per 'weeks'").to_pylist()
    assert weeks == [{"n": sum(events for _, events in found.values())}]
    first = rollup.query(conf.path, "from DataAgg within '2026-03-01' per 'days' select merge(events) as n").to_pylist()
    zone = timezone(timedelta(hours=5)) if data == "ISO, local" else UTC
    begun = sum(at.astimezone(zone).date() == START.date() for at in TIMES)
    assert first == [{"n": begun + extra.get("Nord", 0)}]


@pytest.mark.parametrize(
    ("pattern", "width"),
    [
        ("%Y%m%dT%H%M%SZ", 1),
        ("%Y%m%d%H%M%S", 1),
        ("%d/%b/%Y:%H:%M:%S +0000", 1),
        ("%a, %d %b %Y %H:%M:%S GMT", 1),
        ("%a %b %e %H:%M:%S %Y", 1),
        ("%G-W%V-%u", 86_400),
        ("%Y-%j", 86_400),
    ],
)
def test_times_of_other_programs_are_known(tmp_path: Path, pattern: str, width: int) -> None:
    time = look(str(_csv(pattern, "|")(tmp_path))).time
    assert time is not None and time.instants == [int(at.timestamp()) // width * width * 1000 for at in TIMES]


@pytest.mark.parametrize(
    ("texts", "zone"),
    [
        (["2026-03-01T10:00:00Z", "2026-03-02"], 'zone = "+00:00"'),
        (["2026-03-01T10:00:00+0530"], 'zone = "+05:30"'),
        (["2026-03-01 10:00:00 Asia/Kolkata"], 'zone = "Asia/Kolkata"'),
        (["2026-03-01T10:00:00+01:00", "2026-04-01T10:00:00+02:00"], 'zone = "UTC"   # CHECK THIS'),
        (["1770000000"], 'zone = "+00:00"'),
    ],
)
def test_the_zone_that_all_times_have_cuts_the_days(tmp_path: Path, texts: list[str], zone: str) -> None:
    (tmp_path / "d.csv").write_text("at,n\n" + "".join(f"{text},1\n" for text in texts))
    assert invoked("init", str(tmp_path / "d.csv"), "--into", str(tmp_path / "out")).exit_code == 0
    assert zone in (tmp_path / "out" / "d.toml").read_text()


def test_times_with_offsets_count_in_the_days_of_the_zone(tmp_path: Path) -> None:
    made = _csv("%Y%m%dT%H%M%S%z", offset=-480)(tmp_path)
    assert invoked("init", str(made), "--into", str(tmp_path / "out"), "--zone", "Asia/Tokyo").exit_code == 0
    conf = load(tmp_path / "out" / "data.toml")
    SparkHost(conf, ModelSpark(), Reporter(terminal=False)).run(once=True)
    found = rollup.query(conf.path, "from DataAgg within '2026-03-02' per 'days' select merge(events) as n").to_pylist()
    tokyo = timezone(timedelta(hours=9))
    assert found == [{"n": sum(at.astimezone(tokyo).date() == date(2026, 3, 2) for at in TIMES)}]


@pytest.mark.parametrize("data", ["seconds", "german", "german, ISO", "american", "odd names", "parquet"])
def test_an_app_in_sql_says_the_same(tmp_path: Path, data: str) -> None:
    made = DATA[data][0](tmp_path)
    for words in ((), ("--sql",)):
        done = invoked("init", str(made), "--into", str(tmp_path / ("sql" if words else "siddhi")), *words)
        assert done.exit_code == 0, done.output
    assert (tmp_path / "sql" / "data.sql").read_text().startswith("--")
    ours, theirs = (load(tmp_path / form / "data.toml").program() for form in ("sql", "siddhi"))
    assert ours.streams == theirs.streams and ours.derivations == theirs.derivations
    one, other = ours.aggregations["DataAgg"], theirs.aggregations["DataAgg"]
    assert (one.keys, one.values, one.outputs, one.levels) == (other.keys, other.values, other.outputs, other.levels)
    assert (one.time, one.policy, one.zone) == (other.time, other.policy, other.zone)


def test_what_is_guessed_is_said(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(
        "date,place,code,amount,who\n"
        + "".join(
            f"0{n % 9 + 1}/0{n % 8 + 1}/2026,x{n % 2},00{n % 3},{'NA' if n == 3 else n},c{n}\n" for n in range(20)
        )
    )
    said = invoked("describe", str(tmp_path / "d.csv")).stdout
    for part in (
        "20 records",
        "'MM/dd/yyyy' and 'dd/MM/yyyy' both fit",
        "null ['', 'NA']",
        "Disorder: at most",
    ):
        assert part in " ".join(said.split())
    assert invoked("init", str(tmp_path / "d.csv"), "--into", str(tmp_path), "--name", "sale").exit_code == 0
    app, conf = (tmp_path / "sale.siddhi").read_text(), (tmp_path / "sale.toml").read_text()
    assert "CHECK THIS" in app and "every day ... year" in app and "@OutOfOrder('correct')" in app
    assert "code string" in app and "distinctCount(who) as different_who" in app
    assert 'null = ["", "NA"]' in conf and 'zone = "+00:00"' in conf
    again = invoked("init", str(tmp_path / "d.csv"), "--into", str(tmp_path), "--name", "sale")
    assert "exists" in str(again.exception) and "--name" in str(again.exception)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["2026-03-01 10:00:00"] * 18 + ["2026-02-30", "x"], "No time is 2026-02-30, x: 2 records without one"),
        (["2026-03-01 10:00:00"] * 17 + ["2026-02-30", "x", "y"], "at: 2026-02-30 is in no form that is known"),
        (["2026-03-01 10:00:00 CEST"], "2026-03-01 10:00:00 CEST is in no form that is known; write an offset"),
        (["1720000000", "1720000000000"], "its numbers are of several units, milliseconds and seconds"),
        (["1720000000"] * 20 + ["7"], "No time is 7: 1 records without one"),
        ([""], "at: it has no value"),
    ],
)
def test_a_time_that_is_none_is_named(tmp_path: Path, texts: list[str], says: str) -> None:
    (tmp_path / "d.csv").write_text("at,place\n" + "".join(f"{text},x{n}\n" for n, text in enumerate(texts)))
    assert says in invoked("describe", str(tmp_path / "d.csv")).stdout
    done = invoked("init", str(tmp_path / "d.csv"), "--into", str(tmp_path / "out"))
    assert says in (str(done.exception) if done.exit_code else (tmp_path / "out" / "d.siddhi").read_text())


def test_what_a_folder_has_beside_is_named(tmp_path: Path) -> None:
    for name in ("a.csv", "d.csv"):
        (tmp_path / name).write_text("at,n\n2026-03-01,1\n")
    (tmp_path / "b.json").write_text('{"at": 1}\n')
    (tmp_path / "c.zip").write_bytes(b"PK\3\4")
    assert "b.json, c.zip were not looked at" in invoked("describe", str(tmp_path)).stdout


def test_of_two_members_of_one_name_the_first_is_shown(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text('{"at": 1770000000000, "n": 1, "n": 2}\n')
    (column,) = (each for each in look(str(tmp_path / "d.json")).columns if each.name == "n")
    assert column.examples == ["1"]


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("price", ["12.5", "3", "1199.99"], "decimal(18, 2)"),
        ("tax_paid", [0.125, 2.5, 7], "decimal(18, 3)"),
        ("x", ["12.50", "3.00", "0.99"], "decimal(18, 2)"),
        ("x", [Decimal("1.2500"), Decimal(3)], "decimal(18, 4)"),
        ("x", [Decimal("123456789012345.2500")], "decimal(28, 4)"),
        ("ratio", ["0.25", "0.5"], "double"),
        ("x", [12.5, 3.25], "double"),
        ("cost", ["0.123456", "1.5"], "double"),
        ("price", ["12.5", "NaN"], "double"),
        ("price", [1, 2], "long"),
        ("price", ["1.234,50", "0,99"], "decimal(18, 2)"),
        ("ratio", ["0,25", "0,5"], "double"),
        ("x", ["$1,234.50", "($0.99)", "-$7.00"], "decimal(18, 2)"),
        ("price", ["1'234.50 £", "2.50 £"], "string"),
        ("x", ["1 234,50 €", "0,99 €"], "decimal(18, 2)"),
        ("x", ["12%", "7 %"], "long"),
        ("x", ["1,234,567", "12"], "long"),
        ("x", ["1,000", "1,039"], "long"),
        ("x", ["1,000 €", "1,039 €"], "double"),
        ("x", ["0171 234567", "0171 123456"], "string"),
        ("x", ["+49 171 234", "+49 171 235"], "string"),
        ("x", ["2.0.1", "1.10.12"], "string"),
        ("x", [2**60, 1], "long"),
        ("x", ["1e2", "7E3"], "long"),
        ("x", ["0x1f", "0x0"], "long"),
        ("x", ["99999999999999999999", "5"], "decimal(28, 0)"),
        ("x", [2**64 - 1, -1], "decimal(28, 0)"),
        ("x", ["9" * 34, "1"], "decimal(38, 0)"),
        ("x", ["9" * 40, "1"], "string"),
    ],
)
def test_money_is_a_decimal(tmp_path: Path, name: str, values: list[Any], kind: str) -> None:
    (made,) = (each for each in look(_written(tmp_path, name, values)).columns if each.name == name)
    assert made.type == kind


def _written(folder: Path, name: str, values: list[Any]) -> str:
    if isinstance(values[0], Decimal):
        scale = max(-int(value.as_tuple().exponent) for value in values)
        pq.write_table(
            pa.table({"n": [1] * len(values), name: pa.array(values, pa.decimal128(30, scale))}), folder / "d.parquet"
        )
        return str(folder / "d.parquet")
    lines = [json.dumps({"n": 1, name: value}) for value in values]
    (folder / "d.json").write_text("\n".join(lines))
    return str(folder / "d.json")


def test_a_number_too_long_to_be_added_up_is_in_no_sum(tmp_path: Path) -> None:
    lines = [json.dumps({"ts": 1_770_000_000_000 + n, "big": 10**30 + n, "n": n}) for n in range(9)]
    (tmp_path / "x.json").write_text("\n".join(lines))
    assert invoked("init", str(tmp_path / "x.json"), "--into", str(tmp_path / "out")).exit_code == 0
    app = (tmp_path / "out" / "x.siddhi").read_text()
    assert "big decimal(38, 0)" in app and "sum(n)" in app and "sum(big)" not in app


def test_a_hostile_name_is_a_name(tmp_path: Path) -> None:
    names = ["ts", 'a"b', "it's\n*/ drop", "-- x", "\x1b[31m", "Ünï", 'A"B']
    lists = {"l\nst\x1b[31m": [1]}
    lines = [json.dumps(dict.fromkeys(names, n % 3) | {"ts": 1_770_000_000_000 + n} | lists) for n in range(10)]
    (tmp_path / "x.json").write_text("\n".join(lines))
    assert "\x1b" not in invoked("describe", str(tmp_path / "x.json")).stdout
    done = invoked("init", str(tmp_path / "x.json"), "--into", str(tmp_path / "out"))
    assert done.exit_code == 0, done.exception
    attributes = load(tmp_path / "out" / "x.toml").program().streams["X"].attributes
    assert len(attributes) == len(names) and len({each.lower() for each in attributes}) == len(names)
    app = (tmp_path / "out" / "x.siddhi").read_text()
    assert "\x1b" not in app and "\n-- l�st�[31m holds lists or objects, which no attribute takes.\n" in app


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("n.csv", b"place,n\nx,1\n", "no column of"),
        ("n.json", b'[{"ts": 1}]\n', "one object a line"),
        ("n.pdf", b"%PDF", "ends in .csv, .json or .parquet"),
        ("n.parquet", b"PAR1 no", "cannot be read as Parquet"),
        ("n.csv", b"", "no record"),
        ("n.csv", b"at,n\r2026-03-01,1\r", "end in CR alone"),
        ("n.csv", b"\x1f\x8b\x08", "packed by gzip; names that end in .gz"),
        ("n.json", b"PK\3\4", "a zip archive"),
        ("n.csv", b"# all shops\n2026-03-01,x,1\n2026-03-02,x,1\n", "take it away: tail -n +2"),
        ("n.log", b'at=1770000000 n=1\nat=1770000001 n="a b"\n', "its lines have one field each"),
    ],
)
def test_what_cannot_be_looked_at_is_said_with_a_cure(tmp_path: Path, file: str, content: bytes, says: str) -> None:
    (tmp_path / file).write_bytes(content)
    done = invoked("init", str(tmp_path / file), "--into", str(tmp_path / "out"))
    assert done.exit_code and says in str(done.exception) and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("postgresql://ann:secret@host/db", "a table of a database (postgresql://…) cannot be looked at"),
        ("s3://bucket/folder", "s3://… cannot be looked at: only files of this machine and topics are"),
    ],
)
def test_data_elsewhere_is_refused_with_a_cure_and_no_password(data: str, says: str) -> None:
    said = str(invoked("init", data).exception)
    assert says in said and "secret" not in said


def test_a_record_without_a_time_says_nothing_of_types(tmp_path: Path) -> None:
    """A line of units below the header and one of totals at the end are dead letters, and their columns stay numbers."""
    lines = [f"2026-03-01 10:{minute:02}:00,k{minute % 2},{minute}" for minute in range(40)]
    (tmp_path / "d.csv").write_text("\n".join(["time,k,v", "-,-,EUR", *lines, "TOTAL,,780"]) + "\n")
    seen = look(str(tmp_path / "d.csv"))
    assert [str(each.type) for each in seen.columns] == ["string", "string", "long"] and "null" not in seen.options
    assert seen.time is not None and list(seen.time.odd) == ["-", "TOTAL"]


@pytest.mark.parametrize(("separator", "total"), [(",", 2_039), (";", 2)])
def test_a_comma_that_may_be_either_is_read_as_the_file_suggests_and_said(
    tmp_path: Path, separator: str, total: int
) -> None:
    rows = [["at", "v"], ["2026-03-01", '"1,000"'], ["2026-03-02", '"1,039"']]
    (tmp_path / "d.csv").write_text("".join(separator.join(row) + "\n" for row in rows))
    (made,) = (each for each in look(str(tmp_path / "d.csv")).columns if each.name == "v")
    numbers = []
    for text in ("1,000", "1,039"):
        for sign, by in made.signs:
            text = text.replace(sign, by)
        numbers.append(float(text))
    assert int(sum(numbers)) == total and "CHECK THIS" in made.remarks[-1]


def test_names_can_be_read_and_say_whose_they_are(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("Zeit,Größe,größe,город\n2026-03-01,1,2,x\n2026-03-02,1,2,y\n")
    assert invoked("init", str(tmp_path / "d.csv"), "--into", str(tmp_path / "out")).exit_code == 0
    conf = load(tmp_path / "out" / "d.toml")
    named = {"Groesse": "Größe", "groesse_2": "größe"}
    attributes = conf.program().streams["D"].attributes
    assert conf.sources["D"]["columns"] == named and {*named, "город"} < {*attributes}


def test_lines_above_a_header_are_said_once(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("# exported\n\nat,k,n\n2026-03-01,x,1\n2026-03-02,x,1\n")
    said = "the header of d.csv is line 3: 2 lines above it, as '# exported', are no records"
    assert invoked("describe", str(tmp_path / "d.csv")).output.count(said) == 1
    assert invoked("init", str(tmp_path / "d.csv"), "--into", str(tmp_path / "out")).exit_code == 0
    assert (tmp_path / "out" / "d.siddhi").read_text().count(said) == 1


def test_tables_do_not_stand_among_the_data(tmp_path: Path) -> None:
    folder = _parquet(tmp_path)
    assert "--into" in str(invoked("init", str(folder), "--into", str(folder / "deep")).exception)
    assert "there is no" in str(invoked("init", str(tmp_path / "nothing")).exception)
    assert "has no files that end in" in str(invoked("describe", str(Path(__file__).parent)).exception)


@pytest.mark.kafka
def test_a_topic_is_looked_at_and_read(
    spark: SparkSession, kafka: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.new_topic()
    kafka.produce(topic, [json.dumps({"ts": 1_770_000_000_000 + n, "k": "ab"[n % 2], "v": n}) for n in range(20)])
    data = f"kafka://{kafka.bootstrap}/{topic}"
    assert "kafka, 20 records" in invoked("describe", data).stdout
    done = invoked("init", data, "--into", str(tmp_path), "--name", "data")
    assert done.exit_code == 0, done.exception
    SparkHost(load(tmp_path / "data.toml"), spark, Reporter(terminal=False)).run(once=True)
    ask = "from DataAgg within '2026' per 'years' select k, sum_v order by k"
    assert rollup.query(tmp_path / "data.toml", ask).to_pylist() == [{"k": "a", "sum_v": 90}, {"k": "b", "sum_v": 100}]
    assert "no topic" in str(invoked("describe", f"kafka://{kafka.bootstrap}/nothing-here").exception)
    monkeypatch.setattr(looking, "_PATIENCE", 0.5)
    assert "cannot be read" in str(invoked("describe", "kafka://127.0.0.1:9/x").exception)


@pytest.mark.kafka
@pytest.mark.slow
def test_a_topic_in_avro_is_looked_at_and_read(
    spark: SparkSession, kafka: KafkaBroker, registry: SchemaRegistry, tmp_path: Path
) -> None:
    money = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    time = {"type": "long", "logicalType": "timestamp-millis"}
    paid = record_of({"name": "amount", "type": money}, name="Paid")
    schema = record_of({"name": "k", "type": "string"}, {"name": "paid", "type": paid}, {"name": "at", "type": time})
    number, topic, when = registry.register(schema), kafka.new_topic(), datetime(2026, 2, 1, tzinfo=UTC)
    rows = [
        {"k": "ab"[n % 2], "paid": {"amount": Decimal(n) / 4}, "at": when + timedelta(seconds=n)} for n in range(20)
    ]
    kafka.produce(topic, [framed(number, schema, row) for row in rows])
    data = f"kafka://{kafka.bootstrap}/{topic}"
    assert "--registry" in str(invoked("describe", data).exception.hint)
    assert "kafka, 20 records" in invoked("describe", data, "--registry", registry.url).stdout
    done = invoked("init", data, "--into", str(tmp_path), "--name", "data", "--registry", registry.url)
    assert done.exit_code == 0, done.exception
    SparkHost(load(tmp_path / "data.toml"), spark, Reporter(terminal=False)).run(once=True)
    ask = "from DataAgg within '2026' per 'years' select k, events, sum_paid_amount order by k"
    assert rollup.query(tmp_path / "data.toml", ask).to_pylist() == [
        {"k": "a", "events": 10, "sum_paid_amount": Decimal("22.50")},
        {"k": "b", "events": 10, "sum_paid_amount": Decimal("25.00")},
    ]
