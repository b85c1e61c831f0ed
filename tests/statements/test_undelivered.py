"""Rows that a sink has refused are in the last commit of the statements only: a batch of another stream must not take its
place before they are where they belong."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError
from rollup.hosts.statements.running import Running
from rollup.program import compile_app
from rollup.sinks.base import Held
from rollup.statements.committed.commits import Commits
from rollup.statements.component import Event

APP = """define stream S (k string, v double); define stream T (k string, v double);
from S#window.length(1) select k, v insert into Out;
from T#window.length(2) select k, sum(v) as v insert into Out;
"""


class Outlet:
    """Takes rows while it may, and knows nothing of those it has."""

    place, tells = "a place", False

    def __init__(self) -> None:
        self.open = True
        self.taken: list[tuple[int, list[tuple[str, float]]]] = []

    def held(self, line: str) -> None:
        pass

    def forget(self, line: str, rows: int) -> bool:
        return False

    def write(self, rows: pa.Table, line: str, held: Held) -> None:
        if not self.open:
            raise StoreError(f"no room for row {held.rows}")
        self.taken.append((held.rows, [tuple(row.values()) for row in rows.to_pylist()]))  # type: ignore[misc]


def running(folder: Path, outlet: Outlet, engine: ColumnEngine) -> Running:
    found = Running(compile_app(APP), {}, Commits(folder), {"Out": outlet})
    found.start(engine)
    return found


def send(to: Running, engine: ColumnEngine, stream: str, value: float) -> None:
    to.advance(engine, [Event((0, 0), 1000, stream, ("a", value))], {})


def test_what_a_sink_refused_goes_there_before_the_batch_of_another_stream(tmp_path: Path) -> None:
    outlet, engine = Outlet(), ColumnEngine(threads=1)
    job = running(tmp_path, outlet, engine)
    outlet.open = False
    with pytest.raises(StoreError, match="no room for row 1"):
        send(job, engine, "S", 1.0)
    for _ in range(2):
        with pytest.raises(StoreError, match="no room for row 1"):
            send(job, engine, "T", 2.0)
    assert job.number == 1, "and no commit comes in its place"
    outlet.open = True
    send(job, engine, "T", 3.0)
    assert outlet.taken == [(1, [("a", 1.0)]), (2, [("a", 3.0)])]


def test_a_start_that_a_sink_refuses_brings_the_rows_the_next_time(tmp_path: Path) -> None:
    outlet, engine = Outlet(), ColumnEngine(threads=1)
    job = running(tmp_path, outlet, engine)
    outlet.open = False
    with pytest.raises(StoreError):
        send(job, engine, "S", 1.0)
    with pytest.raises(StoreError, match="no room for row 1"):
        running(tmp_path, outlet, engine)
    outlet.open = True
    send(running(tmp_path, outlet, engine), engine, "T", 2.0)
    assert outlet.taken == [(1, [("a", 1.0)]), (2, [("a", 2.0)])]
