"""After the loss of a checkpoint statements begin anew, and their marks with them: those of streams that have had nothing
since, too, or nobody could tell after going back to that commit what they lack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rollup.checkpoint.marks import none
from rollup.core.columns import ColumnEngine
from rollup.hosts.spark.statements import JobStatements
from rollup.statements.committed.commits import Commits
from tests.job.jobs import Job

APP = """define stream S (v double);
define stream T (v double);
@lang('epl') { insert into Sums select sum(v) as total from S; insert into Counts select count(*) as n from T; }
"""


def batch(of: JobStatements, stream: str, query: str, number: int, ids: dict[str, str]) -> None:
    def untouched(source: Any) -> dict[str, Any]:
        return {other: none(id, -1) for other, id in ids.items() if other not in source}

    rows = pa.table({"v": [1.0], "__arrival": pa.array([0], pa.int64()), "__at": pa.array([0], pa.int64())})
    of.batch(
        stream, query, number, {stream: [rows]}, {"offsets": {"0": number + 1}}, (), 0, {}, untouched, lambda _: ()
    )


def test_the_first_commit_after_it_has_a_mark_of_every_stream(tmp_path: Path) -> None:
    sources = [{"kind": "parquet", "path": name} for name in ("in_s", "in_t")]
    job = Job(tmp_path, *sources, app=APP, streams=("S", "T"))

    def spark() -> Any:
        pytest.fail("nothing of this is run by Spark")

    statements = JobStatements(job.conf, job.conf.program(), {}, ColumnEngine(), spark)
    statements.running.start(ColumnEngine())
    before, after = {"S": "s0", "T": "t0"}, {"S": "s1", "T": "t1"}
    batch(statements, "S", "s0", 0, before)
    batch(statements, "T", "t0", 0, before)
    batch(statements, "S", "s1", 0, after)
    marks = Commits.beside(job.conf.tables).newest().source
    assert {stream: mark["query"] for stream, mark in marks.items()} == after
