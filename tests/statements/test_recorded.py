"""Recorded cases of streaming SQL, UQL and StreamCruncher in apps: in random batches, with a new process in between.

On the local host all of them; on Spark the same app is a job, with a restart of the host in the middle.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rollup.hosts.local import LocalHost
from tests.conformance.languages import LANGUAGES as CASES
from tests.job.jobs import Job
from tests.statements.recorded import COLUMNS, FEED, LANGUAGES, Told, app, feed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def told(language: str) -> list[Told]:
    """The cases of a language that an app has words for."""
    return [each for case in CASES[language].own.values() if (each := LANGUAGES[language](case)) is not None]


def cut(rows: list[Any], seed: int) -> list[list[Any]]:
    """Rows in random pieces."""
    chance, pieces = random.Random(seed), list[list[Any]]()
    while rows:
        size = chance.choice([1, 5, 60, 200, 400])
        pieces.append(rows[:size])
        rows = rows[size:]
    return pieces


@pytest.mark.parametrize(("language", "least"), [("uql", 60), ("calcite", 30), ("streamcruncher", 80)])
@pytest.mark.few(1)
def test_recorded_cases_answer_in_an_app(language: str, least: int) -> None:
    cases = told(language)
    assert len(cases) >= least
    host = LocalHost.of(app(cases))
    for piece in cut(feed(cases), 1):
        host.send(FEED, [[row.get(name) for name in COLUMNS] for row in piece])
    given = {case.out: [table for name, table in host.emitted if name == case.out] for case in cases}
    _compare(cases, given)


def _compare(cases: list[Told], given: Mapping[str, Sequence[pa.Table]]) -> None:
    wrong = list[str]()
    for case in cases:
        try:
            case.compare([list(row.values()) for table in given[case.out] for row in table.to_pylist()])
        except AssertionError as difference:
            wrong.append(str(difference))
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong)


def _on_spark(cases: list[Told], folder: Path, spark: SparkSession, batches: int) -> None:
    """The app as a job over JSON files, one a batch; in the middle it ends, and another one goes on."""
    sinks = "\n\n".join(f'[sinks.{case.out}]\nkind = "files"\npath = "out/{case.out}"' for case in cases)
    source = {"kind": "json", "path": "in", "max_files_per_batch": 1}
    (folder / "in").mkdir()
    job, rows = (
        Job(folder, source, app=app(cases), streams=(FEED,), more=f'[late]\nahead = "any"\n\n{sinks}'),
        feed(cases),
    )
    borders = sorted(random.Random(2).sample(range(1, len(rows)), batches - 1))
    pieces = [rows[begin:end] for begin, end in pairwise([0, *borders, len(rows)])]
    for runs in (range(batches // 2), range(batches // 2, batches)):
        for number in runs:
            file = folder / "in" / f"{number:03}.json"
            file.write_text("".join(json.dumps(row) + "\n" for row in pieces[number]))
            os.utime(file, (1_600_000_000 + number,) * 2)
        job.run(spark)
    found = {case.out: sorted((folder / "out" / case.out).glob("*.parquet")) for case in cases}
    _compare(cases, {out: [pq.read_table(file) for file in files] for out, files in found.items()})


@pytest.mark.spark
def test_some_recorded_cases_answer_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    _on_spark([case for language in LANGUAGES for case in told(language)[::20]], tmp_path, spark, batches=4)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_all_recorded_cases_answer_on_spark(language: str, tmp_path: Path, spark: SparkSession) -> None:
    _on_spark(told(language), tmp_path, spark, batches=8)
