"""Replay and verification from a Delta table as the raw source: on real tables, because what must hold is that a
version is read as the job read it, that statistics only ever spare what is not asked for, and that files which are gone
are never passed over in silence."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rollup.program import compile_app
from rollup.sources.delta import WITHIN, Delta
from tests.job.jobs import Job
from tests.lifecycle.conftest import trades
from tests.lifecycle.filejob import APP, MIDNIGHT
from tests.lifecycle.opened import Opened, commands, everything, spoil

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR, DAY = 3_600_000, 86_400_000
Cli = Callable[..., tuple[int, str]]
NAMES = ("symbol", "price", "quantity", "ts")
TYPES = (pa.string(), pa.float64(), pa.int64(), pa.int64())


def append(table: Path, events: list[tuple[str, float, int, int]]) -> None:
    """Add a version to the raw table."""
    columns = [pa.array([event[i] for event in events], kind) for i, kind in enumerate(TYPES)]
    write_deltalake(table, pa.table(columns, names=list(NAMES)), mode="append")


def versions(table: Path) -> list[tuple[Path, Path, int, int]]:
    """Of each version: its log file, its data file, and the lowest and highest time in it."""
    found = list[tuple[Path, Path, int, int]]()
    for log in sorted((table / "_delta_log").glob("*.json")):
        for action in map(json.loads, log.read_text().splitlines()):
            if "add" in action:
                stats = json.loads(action["add"]["stats"])
                data = table / action["add"]["path"]
                found.append((log, data, stats["minValues"]["ts"], stats["maxValues"]["ts"]))
    return found


@pytest.mark.slow
@pytest.mark.spark
def test_a_replay_from_a_delta_table_brings_back_what_the_job_wrote_and_reads_only_the_range(
    tmp_path: Path, spark: SparkSession, rollup: Cli
) -> None:
    table, events = tmp_path / "raw", sorted(trades(600, width=3 * DAY), key=lambda event: event[3])
    for at in range(0, 600, 100):
        append(table, events[at : at + 100])
    os.utime(versions(table)[0][0], (MIDNIGHT / 1000 - DAY, MIDNIGHT / 1000 - DAY))  # written long before the range
    job = Job(
        tmp_path, {"kind": "delta", "path": "raw"}, app=APP.format(annotations="@OutOfOrder('correct') ", extra="")
    )
    job.run(spark)
    before, conf = everything(job.path), job.path
    assert rollup("verify", conf, "--raw") == (
        0,
        f"TradeAgg, commit {Opened.of(conf).pipeline.number}: every level is right\n",
    )

    start = spoil(conf, MIDNIGHT + 30 * HOUR, MIDNIGHT + 40 * HOUR)
    code, output = rollup("verify", conf, "--raw", "--json")
    found = [json.loads(line) for line in output.splitlines()]
    assert code == 1 and {"seconds", "minutes"} <= {each["level"] for each in found}
    assert start in {each["start"] for each in found if each["level"] == "seconds"}
    # What the second day does not need may be gone: data of the third, and the oldest version with its log file.
    (first, _, _, _), *_, (_, last, low, _) = versions(table)
    assert low > MIDNIGHT + 2 * DAY
    last.rename(last.with_suffix(".away"))
    first.rename(first.with_suffix(".away"))
    said = list[str]()
    for command, expected in commands("replay.md", "table"):
        code, output = rollup(*(str(conf) if a == "table.toml" else a for a in command[1:]))
        assert code == expected, output
        said.append(output)
    assert "500 events of 5 files" in said[0]
    assert everything(conf) == before

    code, output = rollup("verify", conf, "--raw")
    assert code == 2 and "00.json is gone (the table's log is cleaned up" in output
    first.with_suffix(".away").rename(first)
    code, output = rollup("verify", conf, "--raw")
    assert code == 2 and "of version 5 is gone: the table was compacted and vacuumed" in output
    last.with_suffix(".away").rename(last)
    assert rollup("verify", conf, "--raw")[0] == 0


def test_a_bounded_read_asks_only_for_files_whose_statistics_meet_the_range(tmp_path: Path) -> None:
    stream = compile_app("define stream S (symbol string, ts long);").streams["S"]
    for hour in range(4):
        at = pa.array([MIDNIGHT + hour * 3_600_000, MIDNIGHT + hour * 3_600_000 + 1], pa.timestamp("ms", tz="UTC"))
        write_deltalake(tmp_path, pa.table({"symbol": ["A", "B"], "when": at}), mode="append")
    logs = sorted((tmp_path / "_delta_log").glob("*.json"))

    def needed(start: int, end: int, renamed: str = "when") -> list[int]:
        options = {"path": str(tmp_path), "kind": "delta", "columns": {"ts": renamed}, WITHIN: ("ts", start, end)}
        source = Delta(stream, options)
        return [number for number, log in enumerate(logs) if source.needs(log)]

    assert needed(MIDNIGHT, MIDNIGHT + 1) == [0]
    assert needed(MIDNIGHT + 2, MIDNIGHT + 3_600_000) == []
    assert needed(MIDNIGHT + 2, MIDNIGHT + 3_600_001) == [1]
    assert needed(MIDNIGHT + 3_600_001, MIDNIGHT + 7_200_001) == [1, 2]
    assert needed(MIDNIGHT, MIDNIGHT + 1, "symbol") == [0, 1, 2, 3], "what has no such statistics is read"
    assert DeltaTable(tmp_path).version() == 3
