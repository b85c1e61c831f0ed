"""Verification finds what is wrong and replay puts it right: on real files and Delta tables, because both are about
rows that are on disk. The oracle is another job: one that never did anything wrong."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from rollup.ask import query
from rollup.checkpoint.inputs import held
from rollup.core.calendar import Duration
from rollup.core.errors import StoreError
from rollup.core.untyped import pc
from rollup.lifecycle.lease.places import lease_of
from rollup.lifecycle.maintenance.between_batches import REPLAY, Request, submit
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
@pytest.mark.few(1)
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
@pytest.mark.few(1)
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
@pytest.mark.few(1)
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


def test_a_range_that_late_events_were_merged_into_from_before_is_refused_with_the_one_it_needs(
    tmp_path: Path, rollup: Cli
) -> None:
    place = Place(tmp_path).write()
    start = [("A", 1.0, 1, MIDNIGHT + at * 1000) for at in range(60)]
    late = [("B", 1.0, 7, MIDNIGHT + 5_000), ("B", 1.0, 7, MIDNIGHT + 9_000)]
    rest = [("A", 1.0, 1, MIDNIGHT + at * 1000) for at in range(60, 200)]
    job = loaded(place, [*start, *late, *rest])
    before = everything(job)
    code, output = rollup("replay", place.conf.path, "--from", "2018-01-01 00:00:30", "--to", "2018-01-01 00:02:00")
    assert code == 2
    assert "merged 2 late events from before this range into it, the first of 2018-01-01 00:00:05" in output
    assert "choose one from 2018-01-01 00:00:05 on" in output
    with pytest.raises(StoreError, match="merged 2 late events"):
        request = Request(REPLAY, MIDNIGHT + 30_000, MIDNIGHT + 120_000)
        submit(place.conf, job.program, job.aggregation, request)
    assert everything(FileJob(place.conf)) == before, "nothing was lost"
    # Ranges that hold none of them, or their own buckets too, are taken.
    for low, high in (("00:01:30", "00:02:00"), ("00:00:05", "00:02:00")):
        code, output = rollup("replay", place.conf.path, "--from", f"2018-01-01 {low}", "--to", f"2018-01-01 {high}")
        assert code == 0, output
    assert rollup("verify", place.conf.path, "--raw", "--true-buckets")[0] == 0
    # Now that they are where they belong, the first range holds what is true and may be replayed.
    assert rollup("replay", place.conf.path, "--from", "2018-01-01 00:00:30", "--to", "2018-01-01 00:02:00")[0] == 0
    assert rollup("verify", place.conf.path, "--raw", "--true-buckets")[0] == 0


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.few(1)
def test_a_range_whose_late_events_were_merged_behind_it_is_refused_with_the_one_it_needs(
    tmp_path: Path, rollup: Cli, known: bool
) -> None:
    place = Place(tmp_path).write()
    start = [("A", 1.0, 1, MIDNIGHT + at * 1000) for at in range(60)]
    late = [("B", 1.0, 7, MIDNIGHT + 5_000), ("B", 1.0, 7, MIDNIGHT + 9_000)]
    rest = [("A", 1.0, 1, MIDNIGHT + at * 1000) for at in range(60, 200)]
    job = loaded(place, [*start, *late, *rest])
    before = everything(job)
    # Files from elsewhere are no record of what the job has decided: there only numbers tell.
    more = () if known else ("--source", str(tmp_path / "incoming"))

    def replay(low: str, high: str) -> tuple[int, str]:
        return rollup("replay", place.conf.path, "--from", f"2018-01-01 {low}", "--to", f"2018-01-01 {high}", *more)

    code, output = replay("00:00:00", "00:00:30")
    assert code == 2
    assert "merged 2 late events of this range into later buckets: they would count there and here" in output
    assert ("choose one up to 2018-01-01 00:01:00" if known else "choose a range that ends later") in output
    assert everything(FileJob(place.conf)) == before, "nothing counts twice"
    assert replay("00:00:10", "00:00:30")[0] == 0, "none of them is of this range"
    assert replay("00:00:00", "00:01:00")[0] == 0
    assert replay("00:00:00", "00:00:30")[0] == 0, "now that they are where they belong"
    assert rollup("verify", place.conf.path, "--raw", "--true-buckets")[0] == 0


def test_what_crossed_both_ends_names_both(tmp_path: Path, rollup: Cli) -> None:
    place = Place(tmp_path).write()
    first = [("A", 1.0, 1, MIDNIGHT + at * 1000) for at in range(30)]
    into = [("B", 1.0, 7, MIDNIGHT + 2_000)]  # into second 29
    second = [("A", 1.0, 1, MIDNIGHT + at * 1000) for at in range(30, 60)]
    out = [("C", 1.0, 7, MIDNIGHT + 25_000)]  # into second 59
    onward = [("D", 1.0, 7, MIDNIGHT + 40_000)]  # out of what is needed, also into second 59
    rest = [("A", 1.0, 1, MIDNIGHT + at * 1000) for at in range(60, 120)]
    after = [("E", 1.0, 7, MIDNIGHT + 59_000)]  # out of what is needed for those, into second 119
    loaded(place, [*first, *into, *second, *out, *onward, *rest, *after, ("A", 1.0, 1, MIDNIGHT + 130_000)], files=2)
    code, output = rollup("replay", place.conf.path, "--from", "2018-01-01 00:00:20", "--to", "2018-01-01 00:00:35")
    assert code == 2
    assert "choose one from 2018-01-01 00:00:02 on and up to 2018-01-01 00:02:00" in output
    code, output = rollup("replay", place.conf.path, "--from", "2018-01-01 00:00:02", "--to", "2018-01-01 00:02:00")
    assert code == 0, output
    assert rollup("verify", place.conf.path, "--raw", "--true-buckets")[0] == 0


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
    assert code == 0, output
    assert everything(FileJob(merged.conf)) == wanted


ZONES = ["", " +05:30", " -11:00"]


def zoned(tmp_path: Path, zone: str = "") -> list[tuple[int, str]]:
    """A file of events whose times are texts of several zones; for each its quantity and its time."""
    app = (
        (tmp_path / "app.siddhi")
        .read_text()
        .replace("aggregate by ts", "aggregate by at")
        .replace("ts long", "ts long, at string")
        .replace("define stream", f"@zone('{zone}') define stream" if zone else "define stream")
    )
    (tmp_path / "app.siddhi").write_text(app)
    names = ["symbol", "price", "quantity", "ts", "at"]
    drawn = random.Random(3)
    rows = [
        ("A", 1.0, i, 0, f"2018-0{1 + i // 60}-{1 + i % 28:02d} {drawn.randrange(24):02d}:30:00{ZONES[i % 3]}")
        for i in range(180)
    ]
    pq.write_table(
        pa.table([list(column) for column in zip(*rows, strict=True)], names=names),
        tmp_path / "incoming" / "part-00000.parquet",
    )
    return [(row[2], row[4]) for row in rows]


@EVERY_STORE
@pytest.mark.few(1)
def test_a_declared_zone_cuts_every_row_from_the_first_day_to_replay_and_verification(
    place: Place, tmp_path: Path, rollup: Cli
) -> None:
    berlin, wanted = ZoneInfo("Europe/Berlin"), dict[int, int]()
    for quantity, text in zoned(tmp_path, "Europe/Berlin"):
        at = datetime.fromisoformat(text.replace(" +", "+").replace(" -", "-"))
        local = (at if at.tzinfo else at.replace(tzinfo=berlin)).astimezone(berlin)
        day = int(local.replace(hour=0, minute=0).timestamp() * 1000)
        wanted[day] = wanted.get(day, 0) + quantity
    before = everything(FileJob(place.conf).run())
    days = "from TradeAgg within '2018-**-** **:**:**' per 'days' select AGG_TIMESTAMP, total, AGG_TIMEZONE"
    answer = query(place.conf, days.replace("2018-**-** **:**:**'", "2017-12-01 00:00:00', '2018-06-01 00:00:00'"))
    assert {row["AGG_TIMESTAMP"]: row["total"] for row in answer.to_pylist()} == wanted
    assert set(answer["AGG_TIMEZONE"].to_pylist()) == {"Europe/Berlin"}
    assert rollup("verify", place.conf.path, "--raw")[0] == 0
    assert rollup("replay", place.conf.path, "--from", "2018-01-20", "--to", "2018-02-11")[0] == 0
    assert rollup("verify", place.conf.path, "--raw")[0] == 0
    assert everything(FileJob(place.conf)) == before


@ON_POSTGRES
@pytest.mark.few(1)
def test_zones_of_rows_are_rebuilt_in_their_own_buckets(place: Place, tmp_path: Path, rollup: Cli) -> None:
    zoned(tmp_path)
    before = everything(FileJob(place.conf).run())
    assert rollup("verify", place.conf.path) == (0, "TradeAgg, commit 1: every level is right\n")
    assert rollup("replay", place.conf.path, "--from", "2018-01-20 03:00:00", "--to", "2018-02-11 17:00:00")[0] == 0
    assert rollup("verify", place.conf.path)[0] == 0
    assert everything(FileJob(place.conf)) == before


def test_a_replay_that_was_stopped_goes_on_where_it_was(place: Place) -> None:
    from rollup.core.columns import ColumnEngine
    from rollup.lifecycle.maintenance.between_batches import true_rows

    job = loaded(place, trades(600), files=12)
    request = Request(REPLAY, MIDNIGHT, MIDNIGHT + 3 * DAY)
    first = true_rows(place.conf, job.program, job.aggregation, ColumnEngine(), request)
    files = first.raw.pieces(job.pipeline.source)
    first.take(files[:5])
    again = true_rows(place.conf, job.program, job.aggregation, ColumnEngine(), request)
    assert len(again.done) == 5
    assert again.take(files) == 600 - sum(first.arrived.values())
    assert sum(again.rows()["AGG_EVENTS"].to_pylist()) == 600


@EVERY_STORE
@pytest.mark.few(1)
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


def test_a_replay_goes_on_behind_the_last_step_that_was_written_whole(place: Place) -> None:
    from rollup.lifecycle.maintenance.between_batches import true_rows

    job = loaded(place, trades(1000))
    request = Request(REPLAY, MIDNIGHT, MIDNIGHT + 3 * DAY)

    def rows() -> Any:
        return true_rows(place.conf, job.program, job.aggregation, job.engine, request)

    whole = rows()
    pieces = whole.left(job.pipeline.source)
    whole.take(pieces)
    log = whole.folder / "progress.jsonl"
    expected, lines = sorted(map(repr, whole.rows().to_pylist())), log.read_bytes().splitlines(keepends=True)
    assert rows().done == whole.done and rows().take(pieces) == 0, "all of it was kept"
    log.write_bytes(b"".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2])
    again = rows()
    assert len(again.done) < len(whole.done) and log.read_bytes() == b"".join(lines[:-1]), "the torn one is cut off"
    assert again.take(pieces) > 0 and again.events == whole.events
    assert sorted(map(repr, again.rows().to_pylist())) == expected
    assert all(len(line) < 2 * len(lines[0]) for line in lines), "a step has its own files alone"


def test_while_a_stream_catches_up_nothing_is_computed_from_what_its_log_names(place: Place, rollup: Cli) -> None:
    job = loaded(place, trades(300), files=3)
    before, mark = everything(job), job.pipeline.source["Trades"]
    last = held(pa.table({"path": [str(place.root / "incoming" / "part-00002.parquet")]}))["files"]
    # As a start leaves it that has gone back for another aggregation, see `rollup.checkpoint.marks`.
    behind = {**mark, "batch": 1, "input": {"since": 1, "files": [], "ahead": last}}
    job.pipeline.remark({"Trades": behind})
    for command in ("verify", "--raw"), ("replay", "--from", "2018-01-01", "--to", "2018-01-04"):
        code, output = rollup(command[0], place.conf.path, *command[1:])
        assert code == 2 and "holds events of Trades from behind batch 1" in output
    with pytest.raises(StoreError, match="not yet caught up"):
        job.chores.perform(Request(REPLAY, MIDNIGHT, MIDNIGHT + 3 * DAY))
    assert everything(FileJob(place.conf)) == before
    job.pipeline.remark({"Trades": mark})
    assert rollup("verify", place.conf.path, "--raw")[0] == 0


@pytest.mark.slow
def test_a_replay_makes_anew_what_it_kept_and_finds_damaged(place: Place) -> None:
    from rollup.lifecycle.maintenance.between_batches import true_rows

    job = loaded(place, trades(1000), files=40)  # three steps
    request = Request(REPLAY, MIDNIGHT, MIDNIGHT + 3 * DAY)

    def rows() -> Any:
        return true_rows(place.conf, job.program, job.aggregation, job.engine, request)

    whole = rows()
    pieces = whole.left(job.pipeline.source)
    whole.take(pieces)
    expected = sorted(map(repr, whole.rows().to_pylist()))
    second = next(whole.folder.glob("part-*-000001.arrow"))
    second.write_bytes(second.read_bytes()[:-40] + bytes(40))
    with pytest.raises(StoreError, match=r"part-.*-000001.arrow cannot be read: its checksum is another"):
        whole.rows()
    again = rows()
    assert len(again.done) == 16 and again.take(pieces) > 0
    assert sorted(map(repr, again.rows().to_pylist())) == expected
    log = whole.folder / "progress.jsonl"
    text = log.read_bytes()
    for at in random.Random(3).sample(range(len(text)), 60):  # a flipped bit is never another place to go on from
        log.write_bytes(text[:at] + bytes([text[at] ^ 4]) + text[at + 1 :])
        again = rows()
        assert again.done == whole.done[: len(again.done)] and len(again.parts) * 16 >= len(again.done)
        assert len(again.done) < len(whole.done)
