"""A run whose records are dead says how many, why, what the likely cause is and which line cures it, and fails when all are.

The job is the real one over a model of Spark (`tests.job.model_spark`).
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from rollup.cli.main import cli
from rollup.core.errors import ConfigError
from rollup.hosts.reporting.dead_records import DeadRecords, TooManyDead, cause_of
from rollup.hosts.reporting.progress import Reporter
from rollup.hosts.spark.driver import SparkHost
from rollup.sources.base import DEAD
from tests.job.jobs import Job, answers
from tests.job.model_spark import ModelSpark

APP = """define stream S (k string, v double, ts long);
define aggregation A from S select k, sum(v) as total, count() as n group by k aggregate by ts every sec ... year;
"""
GOOD = '{"k": "a", "v": 1.5, "ts": 1700000000000}\n'


def job_of(folder: Path, content: str, kind: str = "json", more: str = "") -> Job:
    """A job over one file."""
    (folder / "in").mkdir(parents=True)
    (folder / "in" / f"f.{kind}").write_text(content)
    return Job(folder, {"kind": kind, "path": "in"}, app=APP, streams=("S",), more=more)


def ran(job: Job) -> Reporter:
    """What a run of the job has reported."""
    conf = job.conf
    reporter = Reporter(terminal=False, dead=DeadRecords(conf.sources, conf.fail_above))
    SparkHost(conf, ModelSpark(), reporter).run(once=True)  # type: ignore[arg-type]
    return reporter


@pytest.mark.parametrize(
    ("content", "kind", "reason", "cure"),
    [
        ('{"k": "a", "v": 1, "ts": "2024-01-01T10:00:00Z"}\n', "json", "ts is not a long", "`ts string` in the app"),
        (
            '{"k": "a", "v": "1,5", "ts": 1700000000000}\n',
            "json",
            "v is not a double",
            "decimal comma: `v string` in the app and `convert(str:replace(v, ',', '.'), 'double')`",
        ),
        (
            '{"k": "a", "v": "1.234,5", "ts": 1700000000000}\n',
            "json",
            "v is not a double",
            "decimal comma: `v string` in the app and `convert(str:replace(str:replace(v, '.', ''), ',', '.'), 'double')`",
        ),
        ('{"k": "a", "v": 1, "ts": 1700000000000000}\n', "json", "years 1 to 9999", "probably in microseconds"),
        ('{"k": "a", "v": 1, "ts": 1700000000000000000}\n', "json", "years 1 to 9999", "probably in nanoseconds"),
        ("k,v,ts\na,1,1700000000000\n", "json", "not a record", '`kind = "csv"`'),
        ("k;v;ts\na;1;1700000000000\n", "csv", "has no column", '`separator = ";"`'),
        ("key,v,tss\na,1,1700000000000\n", "csv", "has no column", '`columns = { ts = "tss" }`'),
        ('k,v,ts\na,"1,234.5",1700000000000\n', "csv", "v is not a double", "comma between thousands"),
        ('{\n "k": "a",\n "v": 1,\n "ts": 1700000000000\n}\n', "json", "not a record", "stands on several lines"),
    ],
)
def test_what_is_wrong_with_every_record_is_said_with_the_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, kind: str, reason: str, cure: str
) -> None:
    reporter = ran(job_of(tmp_path, content, kind))
    said = capsys.readouterr().err
    assert "(100.0 %) could not be used and are dead letters" in said and reason in said and cure in said
    assert "f." in said, "the place of the first"
    assert reporter.nothing_taken


def test_where_several_things_are_wrong_each_frequent_one_has_its_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    comma = '{"k": "a", "v": "1,5", "ts": 1700000000000}\n'
    iso = '{"k": "a", "v": 1, "ts": "2024-01-01T10:00:00Z"}\n'
    ran(job_of(tmp_path, GOOD + comma * 3 + iso * 3 + '{"k": "a", "v\n' * 3))
    said = capsys.readouterr().err
    assert "decimal comma" in said and "`ts string` in the app" in said


def test_the_prefix_of_a_schema_registry_is_named() -> None:
    row = {"stream": "S", "reason": "not a record", "position": "t:0:0", "raw": '\0\0\0\0*{"k": "a"}'}
    said = cause_of(pa.Table.from_pylist([row] * 10, schema=DEAD), {"kind": "kafka"})
    assert said is not None and "schema registry (byte 0 and the id 42)" in said


def test_json_in_utf_16_is_told_by_its_noughts() -> None:
    row = {"stream": "S", "reason": "not a record", "position": "f:0", "raw": '\ufffd\ufffd{\0"\0k\0'}
    said = cause_of(pa.Table.from_pylist([row] * 3, schema=DEAD), {"kind": "json"})
    cure = '`encoding = "utf-16"` in its table of the configuration'
    assert said == f"the files are probably written in UTF-16: {cure}"
    said = cause_of(pa.Table.from_pylist([row] * 3, schema=DEAD), {"kind": "kafka"})
    assert said == "the values are probably no UTF-8, which is read", "a topic has no such option"


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_texts_that_are_no_utf_8_are_said_with_the_option_that_reads_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    line = GOOD.replace('"a"', '"ä"') if kind == "json" else "ä,1.5,1700000000000\n"
    job = job_of(tmp_path, "" if kind == "json" else "k,v,ts\n", kind)
    (file,) = (tmp_path / "in").glob("*")
    file.write_bytes(file.read_bytes() + (line * 3).encode("cp1252"))
    ran(job)
    assert '`encoding = "cp1252"`' in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "bad"), [("json", "nonsense\n"), ("csv", "x,1\n")])
def test_a_run_that_takes_a_record_is_no_failed_one_and_ends_with_the_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, bad: str
) -> None:
    good = GOOD if kind == "json" else "k,v,ts\na,1.5,1700000000000\n"
    reporter = ran(job_of(tmp_path, good + bad * 3, kind))
    said = capsys.readouterr().err
    assert not reporter.nothing_taken
    assert said.count("stream S: 3 of 4 records (75.0 %) could not be used") == 1, "the summary"
    assert "warning: stream S: of batch 0, 3 of 4 records (75.0 %)" in said


def test_a_few_dead_letters_are_no_warning_but_the_end_says_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(job_of(tmp_path, GOOD * 200 + "nonsense\n"))
    said = capsys.readouterr().err
    assert "warning" not in said and "stream S: 1 of 201 records (0.5 %)" in said


@pytest.mark.parametrize(("most", "fails"), [("1 %", True), ("80 %", False)])
def test_a_run_with_more_than_it_may_have_fails_and_keeps_what_it_took(tmp_path: Path, most: str, fails: bool) -> None:
    job = job_of(tmp_path, GOOD + "nonsense\n", more=f'[dead_letters]\nfail_above = "{most}"')
    if fails:
        with pytest.raises(TooManyDead, match=r"1 of 2 records \(50.0 %\).*fail_above is 1 %"):
            ran(job)
    else:
        ran(job)
    assert answers(job.conf, "n", "years", "A") == [(1,)]


def test_a_share_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"fail_above"):
        _ = job_of(tmp_path, GOOD, more='[dead_letters]\nfail_above = "many"').conf


def test_the_command_lists_them_by_reason_and_exports_them(tmp_path: Path) -> None:
    job, run = job_of(tmp_path, GOOD + "nonsense\n" * 2 + '{"k": "b", "v": 1, "ts": null}\n'), CliRunner()
    ran(job)
    listed = run.invoke(cli, ["dead", str(job.path)])
    assert listed.exit_code == 1
    assert "not a record" in listed.output and "the time is null" in listed.output
    exported = run.invoke(cli, ["dead", str(job.path), "--json", "--reason", "null"])
    (letter,) = [json.loads(line) for line in exported.output.splitlines()]
    assert json.loads(letter["raw"]) == {"k": "b", "v": 1.0, "ts": None}
    none = run.invoke(cli, ["dead", str(job.path), "--stream", "Other"])
    assert "there is no stream 'Other'" in str(none.exception)
    none = run.invoke(cli, ["dead", str(job.path), "--reason", "other"])
    assert (none.exit_code, none.output) == (0, "no dead letters\n")


def test_a_message_without_a_value_has_a_reason_of_its_own_and_is_no_dead_file() -> None:
    from rollup.core.columns import ColumnEngine
    from rollup.lifecycle.status import _files
    from rollup.program import compile_app
    from rollup.sources.kafka import Kafka

    options = {"kind": "kafka", "servers": "s", "topic": "t"}
    source = Kafka(compile_app(APP).streams["S"], options)
    values = [None, GOOD.strip(), "", "nonsense"]
    rows = pa.table(
        {
            "value": pa.array([value if value is None else value.encode() for value in values], pa.binary()),
            "timestamp": pa.array([1] * 4, pa.int64()),
            "kafka_partition": pa.array([0] * 4, pa.int32()),
            "kafka_offset": pa.array(range(4), pa.int64()),
        }
    )
    (part,) = source.parts(ColumnEngine(), rows)
    found = {row["position"]: row["reason"] for row in part.dead.to_pylist()}
    assert found == {"t:0:0": "no value (a tombstone)", "t:0:2": "not a record", "t:0:3": "not a record"}
    assert _files(part.dead) == {}
    assert _files(pa.Table.from_pylist([{"stream": "S", "reason": "damaged", "position": "f", "raw": ""}])) == {
        "f": "damaged"
    }


def test_sql_reads_them_as_a_table_as_they_are_now(tmp_path: Path) -> None:
    import rollup

    job = job_of(tmp_path, GOOD)
    ran(job)
    asker, asked = (
        rollup.open(job.path),
        "select reason, count(*) as n from dead_letters group by reason order by reason",
    )
    assert asker.query(asked).to_pylist() == []
    (tmp_path / "in" / "g.json").write_text("nonsense\n" * 2 + '{"k": "b", "v": 1, "ts": null}\n')
    ran(job)
    expected = [{"reason": "not a record", "n": 2}, {"reason": "the time is null", "n": 1}]
    assert asker.query(asked).to_pylist() == expected
