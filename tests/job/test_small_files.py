"""Small files that are read together give what they give one by one: the same events in the same order, the same
letters with the same places, of whatever content; and ten thousand of them are read in seconds."""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.columns import ColumnEngine
from rollup.core.errors import SourceError
from rollup.core.packing import unpack
from rollup.hosts.spark.tasks.task import TaskSpec, run
from rollup.plan.aggregation import EVENTS
from rollup.program import Declaration, compile_app
from rollup.sources.base import Part
from rollup.sources.registry import source
from rollup.sources.small_files import SMALL, dealt, runs
from tests.job import fuzz
from tests.job.jobs import TRADES as APP
from tests.job.test_files import written
from tests.job.test_sources import of
from tests.profiles import examples

STREAM = compile_app(fuzz.APP).streams["S"]
KINDS = ("json", "csv", "parquet")


def listed(files: list[Path], together: bool) -> pa.Table:
    """Files as the driver hands them to a task, in the order of the batch."""
    places = range(len(files)) if together else [-1] * len(files)
    return pa.table(
        {"path": [str(file) for file in files], "modified": [at * 1000 for at in range(len(files))], "place": places}
    )


def random_file(kind: str, path: Path, chance: random.Random) -> Path:
    count = chance.choice((0, 1, 3, 9))
    if kind == "parquet":
        table = fuzz.arrow(chance, count)
        exact = pa.schema([(name, kind.arrow) for name, kind in STREAM.attributes.items()])
        rows = [fuzz.good(chance) for _ in range(count)]
        table = pa.Table.from_pylist(rows, schema=exact) if chance.random() < 0.8 else table
        pq.write_table(table, path)
    elif kind == "csv":
        text = fuzz.csv_text([fuzz.record(chance) for _ in range(count)])
        path.write_text(text + chance.choice(("", "", "1,2\n", '"open\n', "\n\n")))
    else:
        lines = [fuzz.json_line(fuzz.record(chance), chance) for _ in range(count)]
        path.write_bytes(b"\n".join([*lines, *(fuzz.garbage(chance) for _ in range(chance.choice((0, 0, 1))))]))
    return path


def found(origin: Any, batch: pa.Table) -> tuple[list[Any], list[Any], set[Any], int]:
    """The events in their order with their places, the letters, what attributes were seen, and how many parts."""
    engine, events, letters, seen, parts = ColumnEngine(threads=1), list[Any](), list[Any](), set[Any](), 0
    for part in origin.parts(engine, batch):
        rows = engine.run(f"SELECT * EXCLUDE (__arrival) FROM {part.view} ORDER BY __arrival").to_pylist()
        events += [{name: repr(value) for name, value in row.items()} for row in rows]
        letters += part.dead.to_pylist()
        seen |= {(row["attribute"], row["has"]) for row in (part.looked.to_pylist() if part.looked else [])}
        parts += 1
        numbers = engine.run(f"SELECT __arrival FROM {part.view}")["__arrival"].to_pylist()
        assert len(set(numbers)) == len(numbers) and all(0 <= number < part.rows for number in numbers)
        if part.places:
            placed = engine.run(f"SELECT __arrival, __position FROM {part.places}").to_pylist()
            assert set(numbers) <= {row["__arrival"] for row in placed}
    return events, sorted(letters, key=repr), {name for name, has in seen if has}, parts


@pytest.mark.parametrize("kind", KINDS)
@examples(6)
@given(seed=st.integers(0, 2**32), count=st.integers(2, 8))
def test_small_files_read_together_are_those_read_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, kind: str, seed: int, count: int
) -> None:
    folder, chance = tmp_path_factory.mktemp("small"), random.Random(seed)
    files = [random_file(kind, folder / f"{at}.{kind}", chance) for at in range(count)]
    origin = source(
        STREAM,
        {"kind": kind, "path": str(folder), "null": "\\N"} if kind == "csv" else {"kind": kind, "path": str(folder)},
    )
    assert found(origin, listed(files, True))[:3] == found(origin, listed(files, False))[:3]


def nothing_odd(file: Path) -> None: ...


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def packed(file: Path) -> None:
    file.write_bytes(gzip.compress(file.read_bytes()))


def other_bytes(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00" * 9)


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("odd", [nothing_odd, cut, packed, other_bytes, empty])
@pytest.mark.parametrize("kind", KINDS)
def test_one_odd_file_among_them_costs_no_other_its_events(
    tmp_path: Path, kind: str, odd: Callable[[Path], None]
) -> None:
    files = [written(tmp_path, kind, f"n{at}") for at in range(5)]
    odd(files[2])
    whole = found(of(kind, tmp_path), listed(files, True))
    assert whole[:3] == found(of(kind, tmp_path), listed(files, False))[:3]
    assert {event["symbol"] for event in whole[0]} >= {repr(f"n{at}") for at in (0, 1, 3, 4)}
    assert (whole[3] == 1) or odd is not nothing_odd


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_written_while_it_is_read_with_others_is_an_error(tmp_path: Path, kind: str) -> None:
    files = [written(tmp_path, kind, f"n{at}") for at in range(3)]
    parts = of(kind, tmp_path).parts(ColumnEngine(), listed(files, True))
    assert next(parts).rows == 3
    with files[1].open("ab") as more:
        more.write(b"\n")
    with pytest.raises(SourceError, match=f"{files[1]} was written while it was read"):
        next(parts)


def test_a_column_of_a_folder_is_that_of_each_file(tmp_path: Path) -> None:
    files = list[Path]()
    for at in range(3):
        (tmp_path / f"symbol=s{at}").mkdir()
        files.append(tmp_path / f"symbol=s{at}" / "a.parquet")
        pq.write_table(pa.table({"price": [1.5], "quantity": [at], "ts": [1000]}), files[-1])
    events = found(of("parquet", tmp_path), listed(files, True))[0]
    assert [event["symbol"] for event in events] == ["'s0'", "'s1'", "'s2'"]


def test_a_task_puts_together_only_what_follows_one_another_in_the_batch(tmp_path: Path) -> None:
    batch = pa.table({"path": list("abcdef"), "modified": [0] * 6, "place": [3, 4, -1, 5, 7, 8]})
    assert [[row["path"] for row in run] for run in runs(batch)] == [["a", "b"], ["c"], ["d"], ["e", "f"]]
    assert [len(run) for run in runs(batch.drop_columns("place"))] == [1] * 6
    files = [written(tmp_path, "json", name) for name in "abc"]
    parts: list[Part] = list(of("json", tmp_path).parts(ColumnEngine(), listed(files, True)))
    assert [(part.rows, part.order, part.origin) for part in parts] == [(3, 0, str(files[0]))]


@given(st.lists(st.sampled_from([0, 5, SMALL, SMALL + 1, 10 * SMALL]), max_size=30), st.integers(1, 5))
def test_every_file_of_a_batch_is_dealt_once(sizes: list[int], tasks: int) -> None:
    shares = dealt(sizes, tasks)
    assert sorted(at for at, _ in shares) == list(range(len(sizes)))
    assert all(place == (at if sizes[at] <= SMALL else -1) for at, place in shares)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_small_files_take_a_few_milliseconds_of_a_core_each(tmp_path: Path, kind: str) -> None:
    """Processor time, which no other process changes: one by one they take 15 to 36 ms each."""
    files = [written(tmp_path, kind, f"n{at:05d}") for at in range(10_000)]
    spec = TaskSpec(Declaration(APP), "Trades", {"kind": kind, "path": str(tmp_path)})
    warm, events = listed(files[:2], True), 0
    assert counts(spec, warm) == 2
    began = time.process_time()
    for at in range(0, 10_000, 100):
        events += counts(spec, listed(files[at : at + 100], True))
    assert events == 10_000
    assert time.process_time() - began < 60, "6 ms each"


def counts(spec: TaskSpec, batch: pa.Table) -> int:
    """How many events the partial rows of a batch count."""
    rows = [row for result in run(spec, iter(batch.to_batches())) for row in result.to_pylist()]
    return sum(sum(unpack(row["payload"])[EVENTS].to_pylist()) for row in rows if row["kind"] == "partials")
