"""What is said of late events: by a batch, at the end of a run, and by `status`, about events that really were late."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from rollup.cli.lifecycle.shared import chosen
from rollup.cli.lifecycle.status import _lines, _show  # pyright: ignore[reportPrivateUsage]
from rollup.hosts.local import LocalHost
from rollup.hosts.pipeline import Advance
from rollup.hosts.reporting.late_events import AGAIN, CURE, LateEvents
from rollup.hosts.reporting.progress import Reporter
from rollup.hosts.reporting.report import BatchReport
from rollup.lifecycle.status import newest
from rollup.lifecycle.status import status as status_of
from rollup.sources.base import DEAD
from rollup.stores.dead_letters import DeadLetters
from tests.retrieval.trades import HOUR, START, app, delta_host

Event = tuple[str, int, int]


class Told(LocalHost):
    """A host that also reports its batches, as the job on Spark does."""

    def batch(self, number: int, events: Sequence[Event]) -> BatchReport:
        """The report of a batch of the stream S."""
        pipeline, made = self.pipelines["A"], list[Advance]()
        step = pipeline.commit
        pipeline.commit = lambda *given: made.append(step(*given)) or made[-1]  # type: ignore[method-assign]
        try:
            self.send("S", events)
        finally:
            pipeline.commit = step  # type: ignore[method-assign]
        return BatchReport("S", number, len(events), 0, 1, DEAD.empty_table(), {"A": made[0]}, self.pipelines)


def rising(count: int) -> list[Event]:
    """Events in order, a second apart."""
    return [("k", 1, START + 1000 * i) for i in range(count)]


def late(count: int, behind: int = HOUR) -> list[Event]:
    """Events that come long after a newer one, which is first."""
    return [("k", 1, START + 2 * behind), *[("k", 1, START + behind)] * count]


def test_a_batch_with_more_than_one_late_event_in_a_hundred_is_warned_about_and_one_with_fewer_is_not() -> None:
    told, host = LateEvents({"S": "csv"}), Told.of(app())
    assert told.observe(host.batch(0, rising(300))) == []
    assert (
        told.observe(host.batch(1, [*rising(300)[:1], *[("k", 1, START + 400_000 + 1000 * i) for i in range(150)]]))
        == []
    )
    (warning,) = told.observe(host.batch(2, late(30)))
    assert "A: of batch 2, 30 of 31 events (96.8 %) were late" in warning
    assert "merged into later buckets" in warning and "by up to 60 minutes" in warning
    assert "the files are probably not sorted by time" in warning
    assert '[late] policy = "correct"' in warning and 'lateness = "60 minutes"` in [sources.S]' in warning


@pytest.mark.parametrize("policy", ["merge", "drop"])
def test_how_late_an_event_is_is_known_when_it_comes_and_not_at_the_end_of_its_batch(policy: str) -> None:
    told, host = LateEvents({"S": "csv"}), Told.of(app(policy))
    day = [("k", 1, START + HOUR * hour) for hour in range(24)]
    (warning,) = told.observe(host.batch(0, [*day[:2], ("k", 1, START + HOUR - 600_000), *day[2:]]))
    assert "by up to 10 minutes" in warning and 'lateness = "10 minutes"` in [sources.S]' in warning


@pytest.mark.parametrize(
    ("policy", "says"),
    [("merge", "merged into later buckets"), ("drop", "dropped and count nowhere"), ("correct", None)],
)
def test_what_was_done_with_late_events_is_said_and_corrected_ones_are_where_they_belong(
    policy: str, says: str | None
) -> None:
    told, host = LateEvents(), Told.of(app(policy))
    warnings = told.observe(host.batch(0, late(20)))
    assert [says in warning for warning in warnings if says] == ([True] if says else [])
    assert len(told.summary()) == (1 if says else 0)


def test_an_aggregation_is_warned_about_at_most_once_in_ten_minutes() -> None:
    now = [0.0]
    told, host = LateEvents(now=lambda: now[0]), Told.of(app())
    said = 0
    for number in range(5):
        said += len(told.observe(host.batch(number, late(10))))
        assert said == 1
    now[0] += AGAIN
    assert len(told.observe(host.batch(5, late(10)))) == 1


def test_a_run_ends_with_its_late_events_in_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    reporter, host = Reporter(terminal=False), Told.of(app())
    reporter.batch(host.batch(0, rising(9)))
    reporter.batch(host.batch(1, late(10)))
    capsys.readouterr()
    reporter.close()
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("rollup: A: 10 of 20 events (50.0 %) were late and were merged into later buckets")
    assert '[late] policy = "correct"' in last


@pytest.mark.parametrize(("policy", "kind"), [("merge", "moved"), ("drop", "dropped"), ("correct", "corrected")])
def test_status_says_how_many_events_are_late_of_how_many_and_by_which_policy(
    tmp_path: Path, policy: str, kind: str
) -> None:
    delta_host(tmp_path, app(policy)).send("S", [*rising(30), *late(10)])
    (one,) = chosen(tmp_path / "conf.toml", None)
    lines = _lines(status_of(one.conf, one.aggregation, newest(one.store)))
    assert f"late events 10 {kind} of 41 (policy {policy})" in lines[2]
    assert any("24.4 % of the events are not in their own buckets" in line for line in lines) == (policy != "correct")


def test_status_names_the_files_that_could_not_be_read(tmp_path: Path) -> None:
    delta_host(tmp_path, app()).send("S", rising(3))
    rows = [
        ["S", "S"],
        ["no Parquet file", "v is no number"],
        ["/in/broken.parquet", "/in/x.json:3"],
        ["", '{"v": "a"}'],
    ]
    (one,) = chosen(tmp_path / "conf.toml", None)
    DeadLetters(one.conf.tables).append(pa.table(rows, schema=DEAD), "query", 1)
    lines = _lines(status_of(one.conf, one.aggregation, newest(one.store)))
    assert [line for line in lines if "dead file" in line] == ["dead file /in/broken.parquet: no Parquet file"]
    assert any("dead letters 2" in line for line in lines)


def test_what_status_prints_of_late_events_has_the_whole_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    delta_host(tmp_path, app("merge")).send("S", [*rising(30), *late(10)])
    (one,) = chosen(tmp_path / "conf.toml", None)
    _show(status_of(one.conf, one.aggregation, newest(one.store)))
    assert CURE in capsys.readouterr().out
