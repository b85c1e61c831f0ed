"""Verification finds what is wrong and replay puts it right: on real files and Delta tables, because both are about
rows that are on disk. The oracle is another job: one that never did anything wrong."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from rollup.calendar import Duration
from rollup.errors import StoreError
from rollup.lifecycle.chores import REPLAY, Request, submit
from rollup.lifecycle.lease_places import lease_of
from rollup.stores.base import Rewrite
from tests.lifecycle.conftest import EVERY_STORE, ON_POSTGRES, NewStore, trades
from tests.lifecycle.filejob import MIDNIGHT, FileJob, Place

HOUR, DAY = 3_600_000, 86_400_000
Cli = Callable[..., tuple[int, str]]


def loaded(place: Place, events: list[tuple[str, float, int, int]], files: int = 6) -> FileJob:
    """A job that has taken events from some files."""
    size = -(-len(events) // files)
    for at in range(0, len(events), size):
        place.add(*events[at : at + size])
    return FileJob(place.conf).run()


def everything(job: FileJob) -> dict[str, list[tuple[object, ...]]]:
    """What every level answers, stored and open rows of it and of all finer levels merged; doubles rounded.

    Clocks may differ between two ways to the same rows: what one has open at a finer level the other has passed on.
    """
    snapshot, found = job.store.snapshot(), dict[str, list[tuple[object, ...]]]()
    for level in job.aggregation.levels:
        opened = [
            rows.cast(job.aggregation.state_schema)
            for finer, rows in snapshot.loaded().state.open.items()
            if finer <= level
        ]
        parts = [snapshot.rows(level).cast(job.aggregation.state_schema), *opened]
        merged = job.pipeline.cascade.merge(job.engine, level, parts)
        found[level.name] = sorted(
            (tuple(round(v, 6) if isinstance(v, float) else v for v in row.values()) for row in merged.to_pylist()),
            key=str,
        )
    return found


def damage(job: FileJob, level: Duration) -> int:
    """Make a stored row of a level wrong, as a foreign hand would; the start of its bucket."""
    rows = job.store.snapshot().rows(level)
    start = rows["AGG_TIMESTAMP"][rows.num_rows // 2].as_py()
    bucket = job.store.snapshot().rows(level, start, start + 1)
    index = rows.schema.get_field_index("AGG_SUM_quantity")
    wrong = bucket.slice(0, 1)
    wrong = wrong.set_column(index, rows.schema.field(index), pc.add(wrong["AGG_SUM_quantity"], 1))
    job.pipeline.rewrite({level: Rewrite(start, start + 1, pa.concat_tables([wrong, bucket.slice(1)]))})
    return int(start)


def test_a_healthy_store_verifies_against_itself_and_against_the_raw_files(place: Place, rollup: Cli) -> None:
    loaded(place, trades(2000))
    assert rollup("verify", place.conf.path) == (0, "TradeAgg, commit 6: every level is right\n")
    assert rollup("verify", place.conf.path, "--raw")[0] == 0
    assert (
        rollup(
            "verify", place.conf.path, "--raw", "--true-buckets", "--from", "2018-01-01 10:00:00", "--to", "2018-01-02"
        )[0]
        == 0
    )


@pytest.mark.parametrize(
    ("new_store", "level"),
    [
        ("delta", Duration.MINUTES),
        ("delta", Duration.HOURS),
        pytest.param("postgres", Duration.DAYS, marks=pytest.mark.postgres),
        ("sqlite", Duration.MINUTES),
    ],
    indirect=["new_store"],
)
def test_a_wrong_parent_is_found_named_and_repaired(place: Place, rollup: Cli, level: Duration) -> None:
    job = loaded(place, trades(1500))
    before = everything(job)
    start = damage(job, level)
    code, output = rollup("verify", place.conf.path, "--json")
    first = json.loads(output.splitlines()[0])
    assert code == 1 and first["level"] == level.plural and first["start"] == start
    assert first["column"] == "AGG_SUM_quantity" and first["stored"] == first["expected"] + 1
    code, output = rollup("verify", place.conf.path, "--repair")
    assert code == 1 and "repair is commit" in output
    assert rollup("verify", place.conf.path)[0] == 0
    assert everything(FileJob(place.conf)) == before


def test_a_missing_row_is_a_difference_of_a_row(place: Place, rollup: Cli) -> None:
    job = loaded(place, trades(800))
    start = job.store.snapshot().rows(Duration.HOURS)["AGG_TIMESTAMP"][5].as_py()
    job.pipeline.rewrite({Duration.HOURS: Rewrite(start, start + 1, job.aggregation.table_schema.empty_table())})
    code, output = rollup("verify", place.conf.path, "--json")
    hours = [row for row in map(json.loads, output.splitlines()) if row["level"] == "hours"]
    assert code == 1 and {(row["column"], row["stored"]) for row in hours} == {("(row)", "missing")}


@EVERY_STORE
def test_a_wrong_finest_row_is_only_seen_in_the_raw_files_and_put_right_by_replay(place: Place, rollup: Cli) -> None:
    job = loaded(place, trades(1200))
    before = everything(job)
    damage(job, Duration.SECONDS)
    code, output = rollup("verify", place.conf.path, "--raw", "--json")
    assert code == 1 and {"seconds", "minutes"} <= {json.loads(line)["level"] for line in output.splitlines()}
    code, output = rollup("replay", place.conf.path, "--from", "2018-01-01", "--to", "2018-01-04", "--dry-run")
    assert code == 0 and "AGG_SUM_quantity" in output
    assert rollup("verify", place.conf.path, "--raw")[0] == 1, "a dry run must change nothing"
    assert rollup("replay", place.conf.path, "--from", "2018-01-01", "--to", "2018-01-04")[0] == 0
    assert rollup("verify", place.conf.path, "--raw")[0] == 0
    assert everything(FileJob(place.conf)) == before


@pytest.mark.parametrize(
    ("new_store", "seed"),
    [
        ("delta", 0),
        ("delta", 1),
        ("delta", 2),
        pytest.param("postgres", 1, marks=pytest.mark.postgres),
        ("sqlite", 2),
    ],
    indirect=["new_store"],
)
def test_replaying_any_range_of_a_right_store_changes_nothing(place: Place, rollup: Cli, seed: int) -> None:
    job = loaded(place, trades(900, seed, width=70 * DAY))
    before = everything(job)
    drawn = random.Random(seed)
    start = MIDNIGHT + drawn.randrange(60 * DAY) // 1000 * 1000
    end = start + drawn.choice([1000, 61_000, 5 * HOUR, 3 * DAY, 40 * DAY])
    submit(place.conf, job.program, job.aggregation, Request(REPLAY, start, end))
    after = FileJob(place.conf)
    assert everything(after) == before
    for day in (400, 401, 800):  # what was open closes right, too
        place.add(("A", 1.0, 5, MIDNIGHT + day * DAY))
    after.run()
    assert rollup("verify", place.conf.path, "--raw") == (
        0,
        f"TradeAgg, commit {after.pipeline.number}: every level is right\n",
    )


def test_a_replay_of_everything_puts_merged_late_events_into_their_own_buckets(tmp_path: Path, rollup: Cli) -> None:
    events = trades(1000)
    (tmp_path / "merge").mkdir()
    (tmp_path / "correct").mkdir()
    merged, corrected = (
        Place(tmp_path / "merge").write(),
        Place(tmp_path / "correct", "@OutOfOrder('correct') ").write(),
    )
    job, wanted = loaded(merged, events), everything(loaded(corrected, events))
    assert everything(job) != wanted
    assert rollup("verify", merged.conf.path, "--raw")[0] == 0, "moved by the app's policy is right"
    code, output = rollup("replay", merged.conf.path, "--from", "2018-01-01", "--to", "2018-01-04")
    assert code == 0 and "late events up to this range were merged" in output
    assert everything(FileJob(merged.conf)) == wanted


@ON_POSTGRES
def test_zones_of_rows_are_rebuilt_in_their_own_buckets(place: Place, tmp_path: Path, rollup: Cli) -> None:
    app = (
        (tmp_path / "app.siddhi")
        .read_text()
        .replace("aggregate by ts", "aggregate by at")
        .replace("ts long", "ts long, at string")
    )
    (tmp_path / "app.siddhi").write_text(app)
    zones = ["", " +05:30", " -11:00"]
    names = ["symbol", "price", "quantity", "ts", "at"]
    drawn = random.Random(3)
    rows = [
        ("A", 1.0, i, 0, f"2018-0{1 + i // 60}-{1 + i % 28:02d} {drawn.randrange(24):02d}:30:00{zones[i % 3]}")
        for i in range(180)
    ]
    pa.parquet.write_table(
        pa.table([list(column) for column in zip(*rows, strict=True)], names=names),
        tmp_path / "incoming" / "part-00000.parquet",
    )
    before = everything(FileJob(place.conf).run())
    assert rollup("verify", place.conf.path) == (0, "TradeAgg, commit 1: every level is right\n")
    assert rollup("replay", place.conf.path, "--from", "2018-01-20 03:00:00", "--to", "2018-02-11 17:00:00")[0] == 0
    assert rollup("verify", place.conf.path)[0] == 0
    assert everything(FileJob(place.conf)) == before


def test_a_replay_that_was_stopped_goes_on_where_it_was(place: Place) -> None:
    from rollup.aggregation.engine import Engine
    from rollup.lifecycle.chores import true_rows

    job = loaded(place, trades(600), files=12)
    request = Request(REPLAY, MIDNIGHT, MIDNIGHT + 3 * DAY)
    first = true_rows(place.conf, job.program, job.aggregation, Engine(), request)
    files = first.raw.pieces(job.pipeline.source)
    first.take(files[:5])
    again = true_rows(place.conf, job.program, job.aggregation, Engine(), request)
    assert len(again.done) == 5
    assert again.take(files) == 600 - sum(first.arrived.values())
    assert sum(again.rows()["AGG_EVENTS"].to_pylist()) == 600


@EVERY_STORE
def test_a_live_job_completes_a_replay_with_what_it_has_taken_meanwhile(place: Place, new_store: NewStore) -> None:
    events = trades(1000)
    job = loaded(place, events[:800])
    damage(job, Duration.SECONDS)
    lease = lease_of(place.conf, job.aggregation, "run")
    assert lease.take()
    answers: list[str] = []
    asking = threading.Thread(
        target=lambda: answers.append(
            submit(
                place.conf,
                job.program,
                job.aggregation,
                Request(REPLAY, MIDNIGHT, MIDNIGHT + 3 * DAY),
                said=lambda _: None,
            )
        )
    )
    asking.start()
    place.add(*events[800:])
    until = time.monotonic() + 60
    while not job.chores.waiting:
        assert asking.is_alive() and time.monotonic() < until, answers
        time.sleep(0.02)
    job.run()
    done = job.chores.run()
    asking.join(20)
    lease.release()
    assert answers == done and "replay is commit" in done[0]
    fresh = Place(place.root / "fresh", "@OutOfOrder('correct') ", store=new_store())
    fresh.root.mkdir()
    assert everything(job) == everything(loaded(fresh.write(), events))


def test_files_that_the_job_has_not_taken_do_not_count_in_a_replay(place: Place) -> None:
    job = loaded(place, trades(300))
    before = everything(job)
    place.add(("A", 1.0, 7, MIDNIGHT + HOUR))
    submit(place.conf, job.program, job.aggregation, Request(REPLAY, MIDNIGHT, MIDNIGHT + DAY))
    assert everything(FileJob(place.conf)) == before


def test_a_raw_file_that_is_gone_is_named(place: Place, rollup: Cli) -> None:
    loaded(place, trades(300))
    (place.root / "incoming" / "part-00001.parquet").unlink()
    code, output = rollup("replay", place.conf.path, "--from", "2018-01-01", "--to", "2018-01-02")
    assert code == 2 and "part-00001.parquet is gone" in output


def test_a_killed_replay_leaves_the_store_as_it_was(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    job = loaded(place, trades(500))
    before, versions = everything(job), dict(job.store.snapshot().record.versions)

    def fail(*_: object) -> None:
        raise StoreError("killed here")

    monkeypatch.setattr(job.store.records, "write", fail)
    with pytest.raises(StoreError, match="killed here"):
        job.chores.perform(Request(REPLAY, MIDNIGHT, MIDNIGHT + DAY))
    assert DeltaTable(str(place.root / "tables" / "TradeAgg_SECONDS")).version() > versions["SECONDS"]
    monkeypatch.undo()
    assert everything(FileJob(place.conf)) == before
