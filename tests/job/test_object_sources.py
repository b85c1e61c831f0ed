"""Files of a source in an object store: the same events, letters and order as of a folder with the same files."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from rollup.conf import load
from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, SourceError
from rollup.core.objects import at
from rollup.program import compile_app
from rollup.sources.delta import Delta
from rollup.sources.file_log import Listed, planned
from rollup.sources.files import Files
from rollup.sources.new_files import NewFiles
from rollup.sources.small_files import SMALL
from tests.job.jobs import Job, answers
from tests.servers.unsteady import Unsteady

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = compile_app("define stream S (k string, v long);").streams["S"]
LINES = [json.dumps({"k": f"k{i % 3}", "v": i}) for i in range(5)]
LARGE = "".join(json.dumps({"k": "large", "v": i}) + "\n" for i in range(SMALL // 10))


def parquet(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def made(folder: Path) -> None:
    """Files of every kind below a folder: small and large ones, packed, odd, damaged."""
    folder.mkdir()
    (folder / "a.json").write_text("\n".join([*LINES, "none", '{"k": "x", "v": "many"}']))
    (folder / "b #1%20.json").write_text("\n".join(LINES))
    (folder / "c.json.gz").write_bytes(gzip.compress("\n".join(LINES).encode()))
    (folder / "d.json").write_text(LARGE)
    (folder / "e.json.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    (folder / "_hidden.json").write_text("\n".join(LINES))
    (folder / "a.csv").write_text("k,v\nx,1\ny,many\nz,3\n")
    (folder / "b.csv").write_text("k,v\nx,1\n")
    (folder / "c.csv").write_text("")
    parquet(folder / "day=1" / "k=ü" / "a.parquet", v=[1, 2])
    parquet(folder / "b.parquet", k=["x"], v=[7])
    parquet(folder / "c.parquet", k=["x"], v=["many"])
    (folder / "d.parquet").write_bytes((folder / "b.parquet").read_bytes()[:-7])
    for path in folder.rglob("*.*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


def copied(folder: Path, bucket: str) -> str:
    """The same files as objects."""
    for path in folder.rglob("*"):
        if path.is_file():
            at(f"{bucket}/in/{path.relative_to(folder)}").write_bytes(path.read_bytes())
    return f"{bucket}/in"


def taken(where: str, kind: str) -> tuple[list[Any], list[Any]]:
    """What a source gives of all its files: events in order, and letters, with names as below its folder."""
    origin, engine = Files(STREAM, {"kind": kind, "path": where}), ColumnEngine(threads=1)
    origin.check()
    files = sorted(origin.folder.new(), key=lambda file: file.path)
    sizes = origin._sizes([at(file.path) for file in files])  # pyright: ignore[reportPrivateUsage]
    rows = {
        "path": [file.path for file in files],
        "modified": [0] * len(files),
        "place": [place if size <= SMALL else -1 for place, size in enumerate(sizes)],
    }
    events, letters = list[Any](), list[Any]()
    for part in origin.parts(engine, pa.table(rows)):
        events += [
            (part.origin.removeprefix(where), *row.values())
            for row in engine.run(f"SELECT k, v, __arrival FROM {part.view} ORDER BY ALL").to_pylist()
        ]
        letters += [(row["position"].removeprefix(where), row["reason"], row["raw"]) for row in part.dead.to_pylist()]
    return sorted(events, key=str), sorted(letters, key=str)


@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_objects_give_what_the_same_files_give(kind: str, tmp_path: Path, afar: str) -> None:
    made(tmp_path / "in")
    where = copied(tmp_path / "in", afar)
    events, letters = taken(where, kind)
    assert (events, letters) == taken(str(tmp_path / "in"), kind)
    assert len(events) > 2 and letters and not list(tmp_path.glob("**/*:*"))


def test_each_object_is_read_once_and_its_name_comes_back_from_the_log(tmp_path: Path, afar: str) -> None:
    for name in ("b#1 %.json", "deep/c.json", "x.csv", ".part.json", "_tmp/d.json"):
        at(f"{afar}/in/{name}").write_bytes(b"{}")
    origin = Files(STREAM, {"kind": "json", "path": f"{afar}/in"})
    found = NewFiles(origin.folder, origin.order, tmp_path, 10)
    first = found.after(-1)
    assert found.after(first) == first
    at(f"{afar}/in/a.json").write_bytes(b"{}")
    again = NewFiles(origin.folder, origin.order, tmp_path, 10)
    second = again.after(first)
    (tmp_path / "offsets").mkdir()
    for batch, entry in enumerate((first, second)):
        (tmp_path / "offsets" / str(batch)).write_text(json.dumps({"logOffset": entry}))

    def names(batch: int) -> list[str]:
        return [file.path.removeprefix(f"{afar}/in/") for file in planned(tmp_path, batch)]

    assert (names(0), names(1)) == (["b#1 %.json", "deep/c.json"], ["a.json"])
    moved: list[Listed] = planned(tmp_path, 1)
    assert moved[0].modified > 1_700_000_000_000


def test_a_store_that_is_away_fails_the_batch_and_the_start(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(f"{bucket}/in/a.json").write_bytes(b"{}")
    origin, batch = Files(STREAM, {"kind": "json", "path": f"{bucket}/in"}), {"path": [f"{bucket}/in/a.json"]}
    rows = pa.table({**batch, "modified": [0], "place": [-1]})
    with Unsteady(os.environ["AWS_ENDPOINT_URL"], forbid=True) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        with pytest.raises(ConfigError, match=r"cannot list s3://.*: the object store"):
            list(origin.folder.new())
        with pytest.raises(SourceError, match=r"cannot read s3://.*/in/a.json: the object store"):
            list(origin.parts(ColumnEngine(threads=1), rows))


def test_a_delta_table_of_objects_is_that_of_the_same_files(tmp_path: Path, afar: str) -> None:
    table = tmp_path / "in"
    for number in range(3):
        rows = pa.table({"k": ["a/ü x", "b"], "v": [number, number + 10], "day": [number, 1]})
        write_deltalake(str(table), rows, mode="append", partition_by=["k"])
    first = next(table.rglob("*.parquet"))
    first.write_bytes(first.read_bytes()[:-7])
    write_deltalake(str(table), pa.table({"k": ["c"], "v": [1], "day": [1]}), mode="overwrite")
    where = copied(table, afar)
    found = dict[str, Any]()
    for path in (where, str(table)):
        origin, engine = Delta(STREAM, {"kind": "delta", "path": path}), ColumnEngine(threads=1)
        origin.check()
        origin.begin()
        files = sorted(origin.folder.new(), key=origin.order)
        batch = pa.table({"path": [file.path for file in files], "modified": [0] * len(files)})
        found[path] = [
            (part.origin.removeprefix(path), part.order, engine.run(f"FROM {part.view}").to_pylist(), letter["reason"])
            for part in origin.parts(engine, batch)
            for letter in (part.dead.to_pylist() or [{"reason": ""}])
        ]
    assert found[where] == found[str(table)]
    assert sum(len(rows) for _, _, rows, _ in found[where]) == 5
    assert [reason[:9] for *_, reason in found[where] if reason] == ["the file ", "version 3"]


def test_what_stays_on_this_machine_is_refused_by_name(tmp_path: Path, afar: str) -> None:
    with pytest.raises(ConfigError, match=r"there is no folder .*://.*none"):
        Files(STREAM, {"kind": "json", "path": f"{afar}/none"}).check()
    job = Job(tmp_path, {"kind": "json", "path": "in"})
    text = job.path.read_text()
    job.path.write_text(text.replace('"checkpoint"', '"gs://bucket/checkpoint"'))
    with pytest.raises(ConfigError, match="gs:// is not read or written"):
        load(job.path)


@pytest.mark.spark
def test_a_job_over_objects_answers_as_one_over_files(
    tmp_path: Path, spark: SparkSession, afar: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in os.environ.items():
        if name.startswith("AWS_"):  # the session is older than the afar; a job's processes have what it has
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
    folders = {"near": str(tmp_path / "in"), "far": f"{afar}/in"}
    (tmp_path / "in").mkdir()
    jobs = dict[str, Job]()
    for name, path in folders.items():
        (tmp_path / name).mkdir()
        jobs[name] = Job(tmp_path / name, {"kind": "json", "path": path})
    for number in range(2):
        trades = [
            {"symbol": f"S{i % 3}", "price": i / 4, "quantity": i, "ts": 1_600_000_000_000 + (number * 300 + i) * 700}
            for i in range(300)
        ]
        text = "".join(json.dumps(trade) + "\n" for trade in trades) + "none\n"
        (tmp_path / "in" / f"{number}.json").write_text(text)
        at(f"{afar}/in/{number}.json").write_bytes(text.encode())
        for job in jobs.values():
            job.run(spark)
    for per in ("seconds", "years"):
        found = {name: answers(job.conf, "symbol, total, low, mean, events", per) for name, job in jobs.items()}
        assert found["near"] == found["far"] != []
    assert [each["position"] for each in jobs["far"].letters()] == [f"{afar}/in/{n}.json:300" for n in range(2)]
