"""An event whose time cannot be is no event for anybody: one dead letter that says why, in a job and on the local host."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rollup.hosts.local import LocalHost
from tests.job.jobs import Job, answers
from tests.job.model_spark import ModelSpark

START = 1_700_000_000_000
MINUTE, DAY = 60_000, 86_400_000
STREAM = "@time('ts') define stream B (kind string, id int, ts long);\n"
WAITING = """define stream Late (id int, at long);
from every t=B[kind=='o'] -> not B[kind=='s' and id == t.id] for 10 min
select t.id as id, eventTimestamp() as at insert into Late;
"""
COUNT = "define aggregation AB from B select count() as n aggregate by ts every sec ... year;\n"
SHIPPED = [("o", 1, START), ("s", 1, START + MINUTE), ("o", 2, START + 2 * MINUTE), ("s", 2, START + 3 * MINUTE)]
SHIPPED.append(("x", 0, START + 30 * MINUTE))
"""Every order is shipped in time, so nothing is late."""
IMPOSSIBLE = {
    "nanoseconds": (1_700_000_030_000_000_000, "outside of the years 1 to 9999: it is probably in nanoseconds"),
    "microseconds": (1_700_000_030_000_000, "outside of the years 1 to 9999: it is probably in microseconds"),
    "null": (None, "the time is null"),
    "before": (-(2**62), "outside of the years 1 to 9999"),
}


def job_over(folder: Path, app: str, rows: Sequence[dict[str, Any]], more: str = "", stream: str = "B") -> Job:
    """A job that has taken two files, one batch each."""
    (folder / "in").mkdir(parents=True)
    for place, part in enumerate((rows[:2], rows[2:])):
        (folder / "in" / f"{place}.json").write_text("".join(json.dumps(row) + "\n" for row in part))
    source = {"kind": "json", "path": "in", "max_files_per_batch": 1}
    job = Job(folder, source, app=app, streams=(stream,), more=more)
    job.run(ModelSpark())  # type: ignore[arg-type]
    return job


def rows_of(events: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Events as records."""
    return [dict(zip(("kind", "id", "ts"), event, strict=True)) for event in events]


@pytest.mark.parametrize("counted", [COUNT, ""])
@pytest.mark.parametrize("what", IMPOSSIBLE)
@pytest.mark.few(4)
def test_it_moves_no_clock_and_is_one_dead_letter(tmp_path: Path, what: str, counted: str) -> None:
    at, reason = IMPOSSIBLE[what]
    app, events = STREAM + WAITING + counted, [SHIPPED[0], ("x", 9, at), *SHIPPED[1:]]
    job = job_over(tmp_path, app, rows_of(events), '[sinks.Late]\nkind = "files"\npath = "out"')
    assert [pq.read_table(file).to_pylist() for file in (tmp_path / "out").glob("*.parquet")] == []
    assert not counted or answers(job.conf, "n", "years", "AB") == [(5,)]
    (letter,) = job.letters()
    assert reason in letter["reason"] and letter["stream"] == "B"
    assert json.loads(letter["raw"]) == {"kind": "x", "id": 9, "ts": at}
    assert letter["position"].endswith("0.json:1")

    host = LocalHost.of(app)
    host.send("B", events)
    assert [name for name, rows in host.emitted if rows.num_rows] == []
    assert [row["reason"] for row in host.dead] == [letter["reason"]]


def test_what_is_no_event_for_one_reader_is_none_for_the_others_nor_for_what_they_derive(tmp_path: Path) -> None:
    app = """define stream B (kind string, ts long, seen long);
    define aggregation Sent from B select count() as n aggregate by ts every sec ... year;
    define aggregation Seen from B select count() as n aggregate by seen every sec ... year;
    from B select kind, ts insert into C;
    define aggregation Derived from C select count() as n aggregate by ts every sec ... year;
    """
    rows = [{"kind": "a", "ts": START, "seen": START}, {"kind": "b", "ts": START, "seen": None}]
    rows += [{"kind": "c", "ts": None, "seen": START}, {"kind": "d", "ts": START, "seen": START + 1}]
    job = job_over(tmp_path, app, rows)
    assert {name: answers(job.conf, "n", "years", name) for name in ("Sent", "Seen", "Derived")} == {
        "Sent": [(2,)],
        "Seen": [(2,)],
        "Derived": [(2,)],
    }
    assert [json.loads(letter["raw"])["kind"] for letter in job.letters()] == ["b", "c"]


def test_a_filter_that_leaves_it_out_makes_it_no_dead_letter(tmp_path: Path) -> None:
    app = STREAM.replace("@time('ts') ", "") + COUNT.replace("from B", "from B[kind != 'x']")
    job = job_over(tmp_path, app, rows_of([SHIPPED[0], ("x", 9, None), *SHIPPED[1:]]))
    assert job.letters() == [] and answers(job.conf, "n", "years", "AB") == [(4,)]


@pytest.mark.parametrize(("late", "taken"), [("", 6), ('[late]\nahead = "any"', 7), ('[late]\nahead = "7 days"', 7)])
def test_a_time_far_ahead_of_the_clock_is_taken_only_where_that_is_said(tmp_path: Path, late: str, taken: int) -> None:
    now = int(time.time() * 1000)
    events = [*SHIPPED, ("x", 1, now + DAY // 2), ("x", 2, now + 3 * DAY)]
    job = job_over(tmp_path, STREAM + COUNT, rows_of(events), late)
    assert sum(n for (n,) in answers(job.conf, "n", "years", "AB")) == taken
    said = [letter["reason"] for letter in job.letters()]
    assert said == ["the time lies further ahead than `[late] ahead` allows"] * (7 - taken)


def test_data_that_goes_on_into_the_future_passes(tmp_path: Path) -> None:
    """The newest time that was taken counts where it is later than the clock."""
    now = int(time.time() * 1000)
    rows = rows_of([("x", n, now + n * DAY * 9 // 10) for n in (0, 1)] + [("x", 2, now + 18 * DAY // 10)])
    job = job_over(tmp_path, STREAM + COUNT, rows)
    assert job.letters() == []


def test_a_replay_takes_no_event_that_the_job_has_refused(tmp_path: Path) -> None:
    from rollup.lifecycle.replay.raw import RawSource

    job = job_over(tmp_path, STREAM + COUNT, rows_of([*SHIPPED, ("x", 2, int(time.time() * 1000) + 3 * DAY)]))
    program = job.conf.program()
    raw = RawSource(job.conf, program, program.aggregations["AB"], tmp_path / "in")
    folded = raw.fold(raw.pieces({}), {})
    assert sum(sum(table["AGG_EVENTS"].to_pylist()) for table in folded.partials) == 5


def test_a_distance_that_is_none_is_refused(tmp_path: Path) -> None:
    from rollup.core.errors import ConfigError

    (tmp_path / "in").mkdir()
    job = Job(
        tmp_path, {"kind": "json", "path": "in"}, app=STREAM + COUNT, streams=("B",), more='[late]\nahead = "far"'
    )
    with pytest.raises(ConfigError, match=r"\[late\]: ahead 'far' is no length of time"):
        job.conf.program()
