"""Whatever a record holds, it is counted or it is a dead letter with reason and position: for every source, to the end.

Records are drawn by chance and go through the function that Spark tasks run, so what counts is what the partial rows
count. A record that is an event beyond doubt must be one, with its values.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.columns import ColumnEngine
from rollup.core.packing import unpack
from rollup.hosts.spark.tasks.task import TaskSpec, run
from rollup.plan.aggregation import EVENTS
from rollup.program import Declaration, compile_app
from rollup.sources.registry import source
from tests.job import fuzz
from tests.profiles import examples

STREAM = compile_app(fuzz.APP).streams["S"]
_A_FILE = 25_000
Made = tuple[dict[str, Any], pa.Table, int, list[dict[str, Any] | None]]
"""Options, what Spark hands to the task, how many records there are, and in order the events beyond doubt or None."""


def as_json(folder: Path, chance: random.Random, count: int) -> Made:
    lines, wanted = _lines(chance, count)
    path = folder / "f.json"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return {"kind": "json", "path": str(folder)}, _file(path), count, wanted


def as_kafka(folder: Path, chance: random.Random, count: int) -> Made:
    lines, wanted = _lines(chance, count)
    batch = pa.table(
        {
            "value": pa.array(lines, pa.binary()),
            "timestamp": pa.array(
                [chance.choice([-1, 0, 10**12, 2 * 10**12, 10**15, 2**62]) for _ in lines], pa.int64()
            ),
            "kafka_partition": pa.array([n % 3 for n in range(count)], pa.int32()),
            "kafka_offset": pa.array(range(count), pa.int64()),
        }
    )
    return {"kind": "kafka", "servers": "-", "topic": "t"}, batch, count, wanted


def as_csv(folder: Path, chance: random.Random, count: int) -> Made:
    rows = [fuzz.record(chance) for _ in range(count)]
    path = folder / "f.csv"
    path.write_bytes(fuzz.csv_text(rows).encode())
    wanted = [row.values if row.sure and row.values["s"] != "\\N" else None for row in rows]
    return {"kind": "csv", "path": str(folder), "null": "\\N"}, _file(path), count, wanted


def as_parquet(folder: Path, chance: random.Random, count: int) -> Made:
    """Files of at most 25,000 records: which types their columns have is drawn for each."""
    paths = list[Path]()
    for at in range(0, count, _A_FILE):
        paths.append(folder / f"{at}.parquet")
        table = fuzz.arrow(chance, min(_A_FILE, count - at))
        pq.write_table(table, paths[-1], row_group_size=max(1, table.num_rows // 3))
    return {"kind": "parquet", "path": str(folder)}, pa.concat_tables(map(_file, paths)), count, []


def as_delta(folder: Path, chance: random.Random, count: int) -> Made:
    """Versions of one table have one schema; so there are as many tables as files elsewhere."""
    table = fuzz.arrow(chance, count, delta=True)
    write_deltalake(str(folder / "t"), table)
    log = folder / "t" / "_delta_log" / f"{0:020d}.json"
    return {"kind": "delta", "path": str(folder / "t")}, _file(log), count, []


SOURCES = [as_json, as_kafka, as_csv, as_parquet, as_delta]


def _lines(chance: random.Random, count: int) -> tuple[list[bytes], list[dict[str, Any] | None]]:
    lines, wanted = list[bytes](), list[dict[str, Any] | None]()
    for _ in range(count):
        if chance.random() < 0.15:
            lines.append(fuzz.garbage(chance))
            wanted.append(None)
        else:
            made = fuzz.record(chance)
            lines.append(fuzz.json_line(made, chance))
            wanted.append(made.values if made.sure else None)
    return lines, wanted


def _file(path: Path) -> pa.Table:
    return pa.table({"path": [str(path)], "modified": pa.array([1_514_764_800_000_000], pa.int64())})


def counted(options: dict[str, Any], batch: pa.Table) -> tuple[int, list[dict[str, Any]]]:
    """How many events the partial rows of a batch count, and its dead letters."""
    events, letters = 0, list[dict[str, Any]]()
    for result in run(TaskSpec(Declaration(fuzz.APP), "S", options), iter(batch.to_batches())):
        for row in result.to_pylist():
            if row["kind"] == "partials":
                events += sum(unpack(row["payload"])[EVENTS].to_pylist())
            elif row["kind"] == "dead":
                letters += unpack(row["payload"]).to_pylist()
    return events, letters


def check_letters(letters: Iterable[dict[str, Any]]) -> None:
    """Each has a reason and a position, and no position has two."""
    places = [letter["position"] for letter in letters]
    assert all(letter["reason"] and letter["stream"] == "S" for letter in letters)
    assert all(places) and len(set(places)) == len(places)


@pytest.mark.parametrize("make", SOURCES)
@examples(12)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60))
@pytest.mark.few(3)
def test_every_record_is_counted_or_a_letter(
    tmp_path_factory: pytest.TempPathFactory, make: Callable[..., Made], seed: int, count: int
) -> None:
    options, batch, records, _ = make(tmp_path_factory.mktemp("any"), random.Random(seed), count)
    events, letters = counted(options, batch)
    check_letters(letters)
    assert events + len(letters) == records


@pytest.mark.parametrize("make", [as_json, as_kafka, as_csv])
@examples(12)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60))
def test_what_is_an_event_beyond_doubt_is_one_with_its_values(
    tmp_path_factory: pytest.TempPathFactory, make: Callable[..., Made], seed: int, count: int
) -> None:
    options, batch, _, wanted = make(tmp_path_factory.mktemp("any"), random.Random(seed), count)
    engine = ColumnEngine(threads=1)
    (part,) = source(STREAM, options).parts(engine, batch)
    dead = {letter["position"] for letter in part.dead.to_pylist()}
    found = engine.run(f"SELECT * FROM {part.view}").to_pylist()
    sure = [values for values in wanted if values is not None]
    assert len(found) + len(dead) == count
    left = list(found)
    for values in sure:
        at = next((n for n, event in enumerate(left) if fuzz.same(event, values)), None)
        assert at is not None, values
        left.pop(at)


@examples(30)
@given(content=st.binary(max_size=300))
def test_no_bytes_at_all_make_a_csv_or_json_file_raise(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    for kind, head in (("csv", b"s,b,i,l,f,d,ts\n"), ("json", b"")):
        path = folder / f"f.{kind}"
        path.write_bytes(head + content)
        _, letters = counted({"kind": kind, "path": str(folder)}, _file(path))
        check_letters(letters)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("make", SOURCES)
def test_a_million_records_are_each_counted_or_a_letter(tmp_path: Path, make: Callable[..., Made]) -> None:
    events, dead, seconds, records = 0, 0, 0.0, 1_000_000
    share = _A_FILE if make is as_delta else records
    for at in range(0, records, share):
        (folder := tmp_path / str(at)).mkdir()
        options, batch, _, _ = make(folder, random.Random(7 + at), share)
        began = time.monotonic()
        counts, letters = counted(options, batch)
        seconds += time.monotonic() - began
        check_letters(letters)
        assert counts + len(letters) == share, at
        events, dead = events + counts, dead + len(letters)
    print(f"{make.__name__}: {events:,} events, {dead:,} letters, {seconds:.1f} s")
    assert events + dead == records
