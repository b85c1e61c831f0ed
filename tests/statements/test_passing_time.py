"""Time goes on for statements where no event comes: a silence is told while it lasts, and is the same silence when a stream
comes again or somebody else goes on."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.hosts.statements.running import Running
from rollup.program import compile_app
from rollup.statements.committed.commits import Commits
from rollup.statements.component import Event
from tests.job.jobs import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = "@time('ts') define stream Beats (k string, ts long);\n"
QUIET = {
    "SiddhiQL": "from every e=Beats -> not Beats[k == e.k] for 5 sec select e.k as k insert into Quiet;",
    "EPL": "@lang('epl') { insert into Quiet select a.k as k from pattern [every a=Beats -> (timer:interval(5 sec) and not Beats(k = a.k))]; }",
}
WINDOWS = {
    "an output rate": "@lang('epl') { insert into Quiet select k as k from Beats output every 5 sec; }",
    "SQL": "@lang('sql', into='Quiet') { SELECT STREAM k FROM Beats GROUP BY TUMBLE(rowtime, INTERVAL '5' SECOND), k }",
    "UQL": "define stream Quiet (k string); @lang('uql') { from Beats group by k window slice 5 seconds aggregate count() as n append k to Quiet }",
    "StreamCruncher": "define stream Quiet (k string); @lang('streamcruncher', into='Quiet') { select k from Beats (partition store last 5 seconds) as w where w.$row_status is dead; }",
}


def running(text: str, folder: Path) -> tuple[Running, ColumnEngine]:
    engine = ColumnEngine(threads=1)
    found = Running(compile_app(STREAM + text), {}, Commits(folder))
    found.start(engine)
    return found, engine


def beat(place: int, k: str, at: int) -> Event:
    return Event((place, 0), at, "Beats", (k, at))


@pytest.mark.parametrize("text", [*QUIET.values(), *WINDOWS.values()], ids=[*QUIET, *WINDOWS])
def test_what_waits_is_told_by_time_alone(text: str, tmp_path: Path) -> None:
    found, engine = running(text, tmp_path / "c")
    found.advance(engine, [beat(0, "a", 100_000)], {})
    assert found.pass_time(engine, 104_000).streams["Quiet"].num_rows == 0
    assert found.number == 1, "a step of which nothing comes is no commit"
    assert found.pass_time(engine, 106_000).streams["Quiet"]["k"].to_pylist() == ["a"]
    assert found.number == 2
    standby, other = running(text, tmp_path / "c")
    assert [each.pass_time(own, 120_000).streams["Quiet"].num_rows for each, own in ((found, engine), (standby, other))] == [0, 0]  # fmt: skip


@pytest.mark.parametrize("text", [*QUIET.values(), *WINDOWS.values()], ids=[*QUIET, *WINDOWS])
def test_an_event_that_took_a_while_to_come_counts_at_the_clock_that_went_on_without_it(
    text: str, tmp_path: Path
) -> None:
    found, engine = running(text, tmp_path / "c")
    found.advance(engine, [beat(0, "a", 100_000)], {})
    found.pass_time(engine, 110_000)
    given = found.advance(engine, [beat(1, "b", 109_200), beat(2, "c", 109_900)], {})
    assert given.refused == ()
    told = [
        *given.streams["Quiet"]["k"].to_pylist(),
        *found.pass_time(engine, 116_000).streams["Quiet"]["k"].to_pylist(),
    ]
    assert sorted(told) == ["b", "c"]


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET)
@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_stream_that_comes_again_meets_the_same_silences(text: str, cut: int, tmp_path: Path) -> None:
    live, engine = running(text, tmp_path / "c")
    rows = list[dict[str, Any]]()
    events = [beat(0, "a", 100_000), beat(1, "b", 101_000), beat(2, "a", 103_000), beat(3, "c", 125_000), beat(4, "a", 126_000)]  # fmt: skip
    mark = {"query": "q", "batch": 0, "arrivals": 0}
    for batch, times in ((events[:3], (104_000, 107_000, 109_000, 120_000)), (events[3:], (140_000,))):
        rows += live.advance(engine, batch, {"Beats": mark}).streams["Quiet"].to_pylist()
        for at in times:
            rows += live.pass_time(engine, at).streams["Quiet"].to_pylist()
    assert [row["k"] for row in rows] == ["b", "a", "c", "a"]
    again, other = running(text, tmp_path / "c")
    again.restart("Beats")
    found = list[dict[str, Any]]()
    for begin in range(0, len(events), cut):
        found += again.advance(other, events[begin : begin + cut], {"Beats": mark}).streams["Quiet"].to_pylist()
    assert found == rows


def test_how_long_is_checked_before_anything_starts(tmp_path: Path) -> None:
    job = Job(tmp_path, {"kind": "json", "path": "in", "idle": "soon"}, app=STREAM + QUIET["EPL"], streams=("Beats",))
    with pytest.raises(ConfigError, match=r'\[sources.Beats\]: idle .soon. is no length of time.*"off"'):
        job.host(None)  # type: ignore[arg-type]


def test_a_job_tells_a_silence_while_it_lasts(tmp_path: Path, spark: SparkSession) -> None:
    app = STREAM + "@sink(type='file', path='quiet') define stream Quiet (k string);\n" + QUIET["SiddhiQL"].replace("5 sec", "2 sec")  # fmt: skip
    options = {"kind": "json", "path": "in", "idle": "1 second"}
    job = Job(tmp_path, options, app=app, streams=("Beats",), top='trigger = "1 second"')
    (tmp_path / "in").mkdir()
    began = time.time()
    (tmp_path / "in" / "a.json").write_text(json.dumps({"k": "a", "ts": int(began * 1000)}) + "\n")

    def told() -> list[str]:
        return [k for file in (tmp_path / "quiet").rglob("*.parquet") for k in pq.read_table(file)["k"].to_pylist()]

    job.run_until(spark, lambda: told() != [])
    assert told() == ["a"]
    job.run(spark)
    assert told() == ["a"]
