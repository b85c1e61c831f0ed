"""However a stream is cut, and cut again after a crash or a backup, each aggregation takes every input exactly once.

A model of Spark plans batches, notes them in a log of real files and forgets what is cut off; aggregations fall behind
each other as trailing commits, a backup of one table or of the checkpoint let them. What is tested is ours: which input
a commit says it holds, where a stream goes on, and what an aggregation that is ahead takes of a batch planned anew.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.checkpoint.inputs import held, rest, together
from rollup.checkpoint.marks import Mark, Unknown, after, ahead, lowered
from rollup.core.errors import StoreError
from rollup.hosts.spark.query_log import beyond, entries, remove
from rollup.hosts.spark.rewind import note_plans, place, plans_of
from tests.profiles import examples

Row = tuple[int, int]
"""A partition and an offset, or (0, the number of a file)."""


def as_files(rows: list[Row]) -> pa.Table:
    """Rows as a source of files gives them."""
    return pa.table({"path": pa.array([f"file:///in/{number}.json" for _, number in rows], pa.string())})


def as_offsets(rows: list[Row]) -> pa.Table:
    """Rows as Kafka gives them."""
    columns = {"kafka_partition": [p for p, _ in rows], "kafka_offset": [n for _, n in rows]}
    return pa.table({name: pa.array(found, pa.int64()) for name, found in columns.items()})


def as_numbers(rows: list[Row]) -> pa.Table:
    """Rows that a source has numbered itself."""
    return pa.table({"__arrival": pa.array([n for _, n in rows], pa.int64())})


Shape = Callable[[list[Row]], pa.Table]
KINDS: list[tuple[Shape, int]] = [(as_files, 1), (as_offsets, 3), (as_numbers, 1)]


class World:
    """A stream, Spark's log of it, and some aggregations, each with the states it could be brought back to."""

    def __init__(self, folder: Path, names: list[str], shape: Shape, partitions: int, length: int) -> None:
        self.folder = folder
        self.shape = shape
        self.names = itertools.count()
        self.rows = [[(p, n) for n in range(length)] for p in range(partitions)]
        self.history: dict[str, list[tuple[Mark, Counter[str]]]] = {name: [] for name in names}
        for log in ("offsets", "commits"):
            (folder / log).mkdir(parents=True)
        (folder / "metadata").write_text(json.dumps({"id": "q"}))

    def newest(self, log: str) -> int:
        """The last entry of a log."""
        return max((int(path.name) for path in entries(self.folder / log)), default=-1)

    def ends(self, number: int) -> list[int]:
        """Where a batch ends in each partition."""
        path = self.folder / "offsets" / str(number)
        return json.loads(path.read_text()) if path.exists() else [0] * len(self.rows)

    def batch(self, data: st.DataObject | None = None) -> None:
        """What Spark does: plan unless there is a plan, process, note that it is done. Without `data`, two a partition."""
        number = self.newest("commits") + 1
        before, plan = self.ends(number - 1), self.folder / "offsets" / str(number)
        if not plan.exists():
            most = [len(rows) - start for rows, start in zip(self.rows, before, strict=True)]
            taken = [min(left, 2) if data is None else data.draw(st.integers(0, min(left, 3))) for left in most]
            plan.write_text(json.dumps([start + count for start, count in zip(before, taken, strict=True)]))
        spans = zip(self.rows, before, self.ends(number), strict=True)
        self.process(number, [row for rows, start, end in spans for row in rows[start:end]])
        (self.folder / "commits" / str(number)).write_text("done")

    def process(self, number: int, rows: list[Row]) -> None:
        """What the driver does with a batch."""
        whole = self.shape(rows)
        for states in self.history.values():
            mark, had = states[-1] if states else (None, Counter[str]())
            if mark is not None and mark["batch"] >= number:
                continue
            found = rest(whole, ahead(mark, "q"))
            parts = [held(whole.slice(at, 2)) for at in range(0, whole.num_rows, 2)]  # two rows a task
            stored = json.loads(json.dumps(after(mark, "q", number, 0, together(parts), plans_of(self.folder))))
            states.append((stored, had + Counter(map(repr, found.to_pylist()))))

    def disturb(self, data: st.DataObject) -> None:
        """Each aggregation keeps some of its commits, and the log may be an older one."""
        for states in self.history.values():
            if states:
                del states[data.draw(st.integers(1, len(states))) :]
        if data.draw(st.booleans()):
            done = data.draw(st.integers(-1, self.newest("commits")))
            planned = min(self.newest("offsets"), done + data.draw(st.integers(0, 1)))
            for log, last in (("commits", done), ("offsets", planned)):
                remove(path for path in entries(self.folder / log) if int(path.name) > last)

    def restart(self, steps: int) -> None:
        """What a job does at its start, killed after so many steps of it."""
        marks = {name: states[-1][0] for name, states in self.history.items() if states}
        where = place("S", self.folder, marks)
        later = [] if where is None else beyond(self.folder, where.batch)
        if where is None or not (later or where.marks):
            return
        plans = [*plans_of(self.folder), (str(next(self.names)), where.planned)]
        for name, mark in list(where.marks.items())[:steps]:
            lower = json.loads(json.dumps({**mark, "plans": plans}))
            self.history[name].append((lower, self.history[name][-1][1]))
        if steps > len(where.marks):
            note_plans(self.folder, plans)
        remove(later[: max(0, steps - len(where.marks) - 1)])


@examples(100)
@given(st.data(), st.sampled_from(KINDS), st.integers(1, 4))
def test_every_input_is_taken_once_by_each_aggregation(
    data: st.DataObject, kind: tuple[Shape, int], aggregations: int
) -> None:
    with TemporaryDirectory() as folder:
        live(World(Path(folder), [f"A{n}" for n in range(aggregations)], *kind, length=8), data)


def live(world: World, data: st.DataObject) -> None:
    """Some lives of a job, each with an end that leaves things as they must not be, and one without."""
    for _ in range(data.draw(st.integers(1, 4))):
        for _ in range(data.draw(st.integers(1, 5))):
            world.batch(data)
        world.disturb(data)
        world.restart(data.draw(st.integers(0, 4)))
        world.restart(99)
    while world.ends(world.newest("commits")) != [len(rows) for rows in world.rows]:
        world.batch()
    everything = world.shape([row for rows in world.rows for row in rows])
    for name, states in world.history.items():
        assert states[-1][1] == Counter(map(repr, everything.to_pylist())), name


def test_an_aggregation_that_is_behind_or_says_no_input_but_needs_none_is_left_alone() -> None:
    plain: Mark = {"query": "q", "batch": 3, "arrivals": 5}
    assert lowered(plain, 3) is plain and ahead(plain, "q") == {}
    with pytest.raises(Unknown):
        lowered(plain, 2)


def test_a_mark_of_an_earlier_version_goes_on_and_says_from_when_it_knows(tmp_path: Path) -> None:
    mark = after({"query": "q", "batch": 3, "arrivals": 5}, "q", 4, 9, held(as_files([(0, 1)])))
    assert lowered(mark, 3)["input"]["ahead"]
    with pytest.raises(Unknown):
        lowered(mark, 2)


def test_what_one_query_has_ahead_is_nothing_to_another() -> None:
    mark = lowered(after(None, "q", 0, 9, held(as_offsets([(0, 1)]))), -1)
    assert ahead(mark, "q") and not ahead(mark, "r")


@pytest.mark.parametrize(("files", "least"), [(1, 64), (50, 20), (1000, 4)])
def test_names_are_kept_of_as_many_batches_as_a_commit_can_carry(files: int, least: int) -> None:
    mark: Mark | None = None
    for number in range(80):
        rows = [(0, number * files + n) for n in range(files)]
        mark = after(mark, "q", number, 0, held(as_files(rows)))
    assert mark is not None
    assert lowered(mark, 79 - least)["input"]["ahead"]
    with pytest.raises(Unknown):
        lowered(mark, 79 - 65)
    assert len(json.dumps(mark)) < 60_000


def test_a_start_that_would_have_to_guess_is_refused_with_what_to_do(tmp_path: Path) -> None:
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
        for number in range(6):
            (tmp_path / log / str(number)).write_text("v1")
    marks: dict[str, Any] = {name: {"query": "q", "batch": n, "arrivals": 0} for name, n in (("A", 1), ("B", 4))}
    with pytest.raises(
        StoreError, match=r"B ends with batch 4 of S, which goes on before it.*recover CONF --rebuild --aggregation B"
    ):
        place("S", tmp_path, marks)
