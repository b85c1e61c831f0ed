"""Arrival time is one clock that never goes back: what arrives is never late, whatever time its file has, however the job
ran (over a model of Spark), and whatever policy for late events the app has."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from rollup.cli.main import cli
from rollup.hosts.local import LocalHost
from tests.job.jobs import Job, answers
from tests.job.model_spark import ModelSpark

POLICIES = ["", "@IgnoreEventsOlderThanBuffer('true')\n", "@OutOfOrder('correct')\n", "@BufferSize('2')\n"]
STREAM = "define stream S (k string, ts long);\n"
AGGREGATION = "define aggregation A from S select k, count() as n group by k aggregate every sec ... min;\n"


def write(folder: Path, kind: str, name: str, at: float) -> None:
    """A file of two events, modified at an instant."""
    rows = [{"k": name, "ts": 1}, {"k": "all", "ts": 2}]
    file = folder / f"{name}.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif kind == "csv":
        file.write_text("k,ts\n" + "".join(f"{row['k']},{row['ts']}\n" for row in rows))
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(file, (at, at))


def look_at_the_clock(job: Job) -> None:
    """What a job does that waits for more."""
    host = job.host(ModelSpark())  # type: ignore[arg-type]
    for pipeline in host.pipelines.values():
        pipeline.start()
        pipeline.tick(int(time.time() * 1000), pipeline.source)
    for store in host._trailing.values():
        store.settle()
        store.close()


def refused(policy: str) -> bool:
    """Whether the app may not say that of an aggregation by time of arrival."""
    try:
        LocalHost.of(STREAM + policy + AGGREGATION)
    except Exception:
        return True
    return False


@pytest.mark.parametrize("policy", [each for each in POLICIES if not refused(each)])
@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
@pytest.mark.few(3)
def test_a_file_that_is_older_than_the_last_look_at_the_clock_is_not_late(
    tmp_path: Path, kind: str, policy: str
) -> None:
    (tmp_path / "in").mkdir()
    job = Job(tmp_path, {"kind": kind, "path": "in"}, app=STREAM + policy + AGGREGATION, streams=("S",))
    for number in range(4):
        write(tmp_path / "in", kind, f"f{number}", time.time() - 20 + number)
        job.run(ModelSpark())  # type: ignore[arg-type]
        look_at_the_clock(job)
    found: dict[str, int] = {}
    for key, n in answers(job.conf, "k, n", "seconds", "A"):
        found[key] = found.get(key, 0) + n
    assert found == {"all": 4, **{f"f{number}": 1 for number in range(4)}}


@pytest.mark.parametrize("policy", [each for each in POLICIES if not refused(each)])
def test_what_arrives_behind_a_clock_counts_in_its_newest_bucket(policy: str) -> None:
    host = LocalHost.of(STREAM + policy + AGGREGATION)
    host.now = 10_000
    host.send("S", [("a", 1)])
    host.tick(15_500)
    host.now = 12_000
    host.send("S", [("a", 2), ("b", 3)])
    host.now = 15_900
    host.send("S", [("a", 4)])
    rows = host.query("from A within 0L, 100000L per 'seconds' select AGG_TIMESTAMP, k, n").to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [(10_000, "a", 1), (15_000, "a", 2), (15_000, "b", 1)]
    (pipeline,) = host.pipelines.values()
    assert pipeline.state.clocks[pipeline.aggregation.root] == 15_000


def test_a_file_from_the_future_arrives_when_its_batch_is_planned(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", "json", "f", time.time() + 90_000)
    job = Job(tmp_path, {"kind": "json", "path": "in"}, app=STREAM + AGGREGATION, streams=("S",))
    job.run(ModelSpark())  # type: ignore[arg-type]
    (first, *_) = answers(job.conf, "AGG_TIMESTAMP, n", "seconds", "A")
    assert first[0] <= time.time() * 1000
    assert job.letters() == []


def test_what_statements_insert_is_counted_at_the_time_of_its_cause_and_closed_by_events_alone(tmp_path: Path) -> None:
    app = "@time('ts') " + STREAM + "define stream T (k string);\nfrom S#window.length(1) select k insert into T;\n"
    app += "define aggregation A from T select count() as n aggregate every sec ... min;\n"
    (tmp_path / "in").mkdir()
    job, start = Job(tmp_path, {"kind": "json", "path": "in"}, app=app, streams=("S",)), 1_700_000_040_000
    for place, at in enumerate((start, start + 1000, start + 1500)):
        (tmp_path / "in" / f"{place}.json").write_text(json.dumps({"k": "a", "ts": at}) + "\n")
        host = job.host(ModelSpark())  # type: ignore[arg-type]
        host.run(once=True)
        host._tick()
    assert answers(job.conf, "AGG_TIMESTAMP, n", "seconds", "A") == [(start, 1), (start + 1000, 2)]


def test_raw_events_are_compared_as_a_whole_and_a_part_of_them_is_not_computed_again(
    tmp_path: Path,
) -> None:
    """Files that came late count at the job's clock, and their own times say otherwise."""
    app = STREAM + "@IgnoreEventsOlderThanBuffer('true')\n"
    app += "define aggregation A from S select k, count() as n, min(ts) as least group by k aggregate every sec ... hour;\n"
    (tmp_path / "in").mkdir()
    job = Job(tmp_path, {"kind": "json", "path": "in"}, app=app, streams=("S",))
    for name, age in (("a", 100), ("b", 70), ("c", 3700), ("d", 0)):
        write(tmp_path / "in", "json", name, time.time() - age)
        job.run(ModelSpark())  # type: ignore[arg-type]
        look_at_the_clock(job)
    conf, now = str(job.path), time.time()
    low, start, end = (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}" for at in (0, now - 50, now + 50))

    def found(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, [*arguments])
        return done.exit_code, f"{done.output}{done.exception}"

    code, said = found("verify", conf, "--raw")
    assert code == 0, said
    assert "over all that the job has taken" in found("verify", conf, "--raw", "--from", start, "--to", end)[1]
    assert "a part of it cannot be computed again" in found("replay", conf, "--from", start, "--to", end)[1]
    code, said = found("replay", conf, "--from", low, "--to", end)
    assert code == 0, said
    assert sum(n for _, n in answers(job.conf, "AGG_TIMESTAMP, n", "seconds", "A")) == 8
    write(tmp_path / "in", "json", "b", now - 70)
    (tmp_path / "in" / "b.json").write_text("")
    assert found("verify", conf, "--raw")[0] == 1
