"""A column that no record of a batch has is a name that is spelled wrong: the job says so, it does not count nulls.

What the parts of a batch have is found by the half of a source that runs in a task, over real files and messages; one
run of the real job proves that nothing of such a batch is kept, and that listing the column is the cure.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.hosts.reporting.absent import Absent
from rollup.hosts.spark.watching.failures import cause
from rollup.sources.base import Source
from rollup.sources.content.presence import HAS, absent, looked
from tests.job.jobs import Job, answers
from tests.job.test_sources import GOOD, NAMES, delta, drained, lines, log, messages, of, parquet, read, topic, values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def lacking(origin: Source, *batches: pa.Table) -> dict[str, str]:
    """What no part of a batch has, of the shares that tasks take of it."""
    parts = [part for batch in batches for part in origin.parts(ColumnEngine(threads=1), batch)]
    found = absent(part.looked for part in parts if part.looked is not None)
    return {name: place.partition(HAS)[0] for name, place in found.items()}


def files(*paths: Path) -> pa.Table:
    return pa.Table.from_pylist([{"path": str(path), "modified": 0} for path in paths])


NESTED = {**GOOD, "http": {"status": 200, "note": None}}


@pytest.mark.parametrize(
    ("where", "there"),
    [
        ("http.status", True),
        ("$.http.status", True),
        ("http.note", True),
        ("http.statsu", False),
        ("$.http.statsu", False),
        ("Http.status", False),
        ("x'\"); DROP", False),
    ],
)
def test_a_json_member_is_there_when_one_record_has_it_null_or_not(tmp_path: Path, where: str, there: bool) -> None:
    columns = {"quantity": where}
    wanted = {} if there else {"quantity": ":1"}
    file = lines(tmp_path / "a b'ü.json", "{bad", json.dumps(NESTED), json.dumps(GOOD))
    found = lacking(of("json", tmp_path, columns=columns), files(file))
    assert found == {name: f"{file}{place}" for name, place in wanted.items()}
    rows = messages((5, 3, 7, "{bad"), (5, 3, 8, json.dumps(NESTED)), (6, 3, 9, json.dumps(GOOD)))
    found = lacking(topic(columns=columns), rows)
    assert found == ({} if there else {"quantity": "t:3:8"})


def test_a_member_of_another_name_is_suggested(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.json", json.dumps({"symbol": "a", "Prices": 1.5, "quantity": 1, "ts": 1}))
    (part,) = of("json", tmp_path).parts(ColumnEngine(threads=1), files(file))
    assert part.looked is not None
    (said,) = Absent("S", {}).observe([part.looked])
    assert f"the first one is {file}:0, which has symbol, Prices, quantity, ts" in said
    assert '`columns = { price = "Prices" }` in [sources.S] names another member' in said


def test_a_value_that_does_not_fit_is_there_and_what_is_no_record_says_nothing(tmp_path: Path) -> None:
    wrong = lines(tmp_path / "a.json", json.dumps(GOOD | {"price": "dear"}))
    assert lacking(of("json", tmp_path, columns={"price": "price"}), files(wrong)) == {}
    none = lines(tmp_path / "b.json", "{bad", "3", "[]")
    assert lacking(of("json", tmp_path, columns={"price": "cost"}), files(none)) == {}
    assert lacking(topic(columns={"price": "cost"}), messages((1, 0, 0, None))) == {}


def test_a_column_that_one_part_of_a_batch_has_is_there(tmp_path: Path) -> None:
    one, other = lines(tmp_path / "a.json", '{"ts": 1}'), lines(tmp_path / "b.json", json.dumps(GOOD))
    origin = of("json", tmp_path)
    assert sorted(lacking(origin, files(one))) == ["price", "quantity", "symbol"]
    assert lacking(origin, files(one), files(other)) == lacking(origin, files(one, other)) == {}
    assert lacking(of("json", tmp_path, optional=["price", "quantity", "symbol"]), files(one)) == {}


def bad_csv(folder: Path) -> Path:
    return lines(folder / "a.csv", ",".join(NAMES), "a,1.5,3,1000")


def bad_parquet(folder: Path) -> Path:
    return parquet(folder / "a.parquet")


@pytest.mark.parametrize(("kind", "write"), [("csv", bad_csv), ("parquet", bad_parquet)])
def test_a_file_of_columns_lacks_a_mapped_one_or_has_null_for_it_when_it_may(
    tmp_path: Path, kind: str, write: Callable[[Path], Path]
) -> None:
    file = write(tmp_path)
    assert lacking(of(kind, tmp_path, columns={"price": "cost"}), files(file)) == {"price": str(file)}
    assert lacking(of(kind, tmp_path, columns={"price": "price"}), files(file)) == {}
    may = of(kind, tmp_path, columns={"price": "cost"}, optional=["price"])
    assert lacking(may, files(file)) == {}
    events, dead = read(may, file)
    assert (values(events)[0], dead) == (("a", None, 3, 1000), [])


def test_a_delta_table_lacks_a_mapped_column_too(tmp_path: Path) -> None:
    table = tmp_path / "t"
    delta(table, ("a", 1.0, 3, 1))
    assert list(lacking(of("delta", table, columns={"price": "cost"}), log(table, 0))) == ["price"]
    events, dead = drained(of("delta", table, columns={"price": "cost"}, optional=["price"]), log(table, 0))
    assert (values(events), dead) == ([("a", None, 3, 1)], [])


def test_an_empty_file_says_nothing_of_columns(tmp_path: Path) -> None:
    empty = tmp_path / "a.csv"
    empty.write_text("")
    assert lacking(of("csv", tmp_path, columns={"price": "cost"}), files(empty)) == {}


@pytest.mark.parametrize("key", ["columns", "optional"])
@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "kafka", "delta"])
def test_what_is_no_attribute_of_the_stream_is_refused_by_every_source(tmp_path: Path, kind: str, key: str) -> None:
    options: dict[str, Any] = {key: {"cost": "price"} if key == "columns" else ["cost"]}
    with pytest.raises(ConfigError, match=rf"{key} names cost, which is no attribute .*symbol, price, quantity, ts"):
        (topic(**options) if kind == "kafka" else of(kind, tmp_path, **options)).check()


@pytest.mark.parametrize("path", ["$.a[", "$.a[*]", "$.*", "$..a"])
def test_a_path_that_is_none_or_of_many_values_is_refused_before_anything_is_read(tmp_path: Path, path: str) -> None:
    for origin in (of("json", tmp_path, columns={"price": path}), topic(columns={"price": path})):
        with pytest.raises(ConfigError, match=r"for price, which is no path of one value.*http\.status"):
            origin.check()


def table(**has: bool) -> list[pa.Table]:
    return [looked(has, "t:0:7")]


def test_a_mapped_column_that_has_been_there_is_missed_with_a_warning_once_and_any_other_too() -> None:
    told = Absent("Trades", {"columns": {"price": "cost"}})
    assert told.observe(table(price=True, ts=True)) == []
    (said,) = told.observe(table(price=False, ts=True))
    assert all(word in said for word in ("'cost'", "price", "[sources.Trades]", "t:0:7", 'optional = ["price"]'))
    assert told.observe(table(price=False, ts=True)) == []
    (said,) = told.observe(table(price=True, ts=False))
    assert "'ts'" in said
    with pytest.raises(ConfigError, match="no record of the batch has 'cost'"):
        Absent("Trades", {"columns": {"price": "cost"}}).observe(table(price=False))


@pytest.mark.spark
def test_a_job_stops_at_a_mapped_column_that_no_record_has_keeps_nothing_and_goes_on_when_it_may_be_missing(
    tmp_path: Path, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    file = lines(incoming / "a.json", "{bad", json.dumps(GOOD))
    source = {"kind": "json", "path": "incoming", "columns": {"price": "http.cost"}}
    job = Job(tmp_path, source)
    with pytest.raises(Exception, match="http") as stopped:
        job.run(spark)
    said = cause(stopped.value)
    assert isinstance(said, ConfigError)
    assert all(word in str(said) for word in ("'http.cost'", "price", "[sources.Trades]", f"{file}:1", "optional"))
    assert job.letters() == [] and answers(job.conf, "symbol") == []
    capfd.readouterr()
    job = Job(tmp_path, source | {"optional": ["price"]})
    job.run(spark)
    assert answers(job.conf, "symbol, total, mean") == [("a", 3, None)]
    assert [letter["position"] for letter in job.letters()] == [f"{file}:0"]
    assert "http.cost" not in capfd.readouterr().err
