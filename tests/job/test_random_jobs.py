"""Random small jobs give what a recomputation of the same records from scratch gives, in plain Python that has nothing of ours.

A job has a source of a kind, times as numbers or ISO texts, perhaps a declared zone, a policy for late events, records that
are none, a statement beside its aggregation, and is started several times with files that have come meanwhile. Files are made
in any order, several of them in one second, and a batch takes some of them.
"""

from __future__ import annotations

import csv
import gc
import json
import os
from collections import defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import rollup
from tests.job.jobs import Job, answers
from tests.job.model_spark import ModelSpark

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
ZONES = [None, "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Havana"]
STARTS = ["2026-03-28T20:00:00Z", "2026-03-08T04:30:00Z", "2026-10-24T21:00:00Z", "2026-11-01T03:00:00Z", "2018-01-05T00:00:00Z"]  # fmt: skip
LEVELS = ("seconds", "minutes", "hours", "days", "months")


@dataclass(frozen=True)
class Shape:
    """What a job is."""

    kind: str
    text: bool
    zone: str | None
    policy: str
    buffer: int
    most: int
    """Files of a batch."""
    alike: int
    """So many files of a run have one modification time."""
    epl: bool
    """The language of the statement."""
    runs: tuple[tuple[tuple[tuple[str, Any, Any], ...], ...], ...]
    """By run and file, records: a key, a value, a time as it stands in the source."""


def shape(seed: int) -> Shape:
    """A job of a number."""
    random = Random(seed)
    kind, zone = random.choice(["json", "csv", "parquet", "delta"]), random.choice(ZONES)
    text = zone is not None and random.random() < 0.5
    start = int(datetime.fromisoformat(random.choice(STARTS)).timestamp() * 1000)
    now, spread = start, random.choice([500, 5 * SECOND, 40 * MINUTE, 9 * HOUR])

    def record() -> tuple[str, Any, Any]:
        nonlocal now
        now += random.randrange(0, spread)
        at = now - (random.randrange(0, 3 * spread) if random.random() < 0.2 else 0)
        value: Any = random.choice([random.randrange(-5, 20), random.randrange(-5, 20), None])
        if kind in ("json", "csv") and random.random() < 0.05:
            value = random.choice([7.5, "x", "1,5"])
        if kind == "json" and random.random() < 0.1 and isinstance(value, int):
            value = random.choice([str(value), float(value)])
        when: Any = at
        if text:
            hours = random.choice([0, 1, -5, 5.5])
            when = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)).astimezone(timezone(timedelta(hours=hours))).isoformat(timespec="milliseconds")  # fmt: skip
        if random.random() < 0.03:
            when = None
        return random.choice("abc"), value, when

    runs = tuple(
        tuple(tuple(record() for _ in range(random.randrange(1, 12))) for _ in range(random.randrange(1, 4)))
        for _ in range(random.randrange(1, 4))
    )
    policy = random.choice(["correct", "merge", "drop"])
    order = random.randrange(1, 4), random.randrange(1, 4), random.random() < 0.5
    return Shape(kind, text, zone, policy, random.choice([0, 0, 2]), *order, runs)


# what is right


def taken(job: Shape) -> list[tuple[str, int | None, int]]:
    """The records that are events, in order of arrival: key, value, time in ms."""
    found = list[tuple[str, int | None, int]]()
    for run in job.runs:
        for key, value, when in (record for file in run for record in file):
            if when is None or value in (7.5, "x", "1,5"):
                continue
            if isinstance(when, str):
                when = round(
                    (datetime.fromisoformat(when) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1)
                )
            found.append((key, None if value is None else int(value), when))
    return found


def counted(job: Shape) -> list[tuple[str, int | None, int]]:
    """The events with the second that each counts in."""
    found, clock = list[tuple[str, int | None, int]](), None
    for key, value, at in taken(job):
        second = at // SECOND * SECOND
        clock = second if clock is None else max(clock, second)
        if second + (job.buffer + 1) * SECOND <= clock and job.policy != "correct":
            if job.policy == "drop":
                continue
            second = clock - job.buffer * SECOND
        found.append((key, value, second))
    return found


def _offset(at: int, zone: tzinfo | None) -> int:
    found = datetime.fromtimestamp(at / 1000, zone).utcoffset()
    assert found is not None
    return found // timedelta(milliseconds=1)


def bucket(at: int, level: str, zone: str | None) -> int:
    """The start of the bucket of an instant, ms."""
    if level == "seconds":
        return at // SECOND * SECOND
    local = datetime.fromtimestamp(at / 1000, UTC).astimezone(UTC if zone is None else ZoneInfo(zone))
    if level in ("minutes", "hours"):
        width, offset = (MINUTE if level == "minutes" else HOUR), int(local.utcoffset().total_seconds() * 1000)  # type: ignore[union-attr]
        begin = (at + offset) // width * width - offset
        if (offset - _offset(begin, local.tzinfo)) % width:  # a half hour was skipped or came twice since
            while _offset(begin, local.tzinfo) != offset:
                begin += MINUTE
        return begin
    day = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    start = day if level == "days" else day.replace(day=1)
    found = start.astimezone(UTC)
    if found.astimezone(start.tzinfo).replace(tzinfo=None) != start.replace(tzinfo=None):  # a midnight that is skipped
        found += timedelta(hours=1) if found.astimezone(start.tzinfo).date() < start.date() else timedelta()
    return int(found.timestamp() * 1000)


def right(job: Shape, level: str) -> list[tuple[Any, ...]]:
    """The rows of a level: bucket, key, sum, count of values, events."""
    rows = defaultdict[tuple[int, str], list[int | None]](list)
    for key, value, second in counted(job):
        rows[bucket(second, level, job.zone), key].append(value)
    made = list[tuple[Any, ...]]()
    for (start, key), values in rows.items():
        known = [value for value in values if value is not None]
        made.append((start, key, sum(known) if known else None, len(values), min(known, default=None)))
    return sorted(made, key=repr)


def told(job: Shape) -> list[tuple[str, int]]:
    """What the statement gives: for each event above 3 the sum of the last three such."""
    last, found = deque[int](maxlen=3), list[tuple[str, int]]()
    for key, value, _ in taken(job):
        if value is not None and value > 3:
            last.append(value)
            found.append((key, sum(last)))
    return found


# the job


def app(job: Shape) -> str:
    policies = {"correct": "@OutOfOrder('correct')", "drop": "@IgnoreEventsOlderThanBuffer('true')", "merge": ""}
    return (
        f"define stream S (k string, v long, ts {'string' if job.text else 'long'});\n"
        f"@BufferSize('{job.buffer}') {policies[job.policy]}\n"
        "define aggregation A from S select k, sum(v) as s, count() as n, min(v) as low group by k aggregate by ts every sec ... month;\n"
        "@sink(type='file', path='told') define stream Told (k string, s long);\n"
        + (
            "@lang('epl') { insert into Told select k, sum(v) as s from S(v > 3)#length(3); }\n"
            if job.epl
            else "from S[v > 3]#window.length(3) select k, sum(v) as s insert into Told;\n"
        )
    )


def write(file: Path, job: Shape, records: tuple[tuple[str, Any, Any], ...]) -> None:
    rows = [dict(zip(("k", "v", "ts"), record, strict=True)) for record in records]
    if job.kind == "json":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif job.kind == "csv":
        with file.open("w", newline="") as opened:
            csv.writer(opened).writerows([("k", "v", "ts"), *(row.values() for row in rows)])
    else:
        kinds = pa.schema([("k", pa.string()), ("v", pa.int32()), ("ts", pa.string() if job.text else pa.int64())])
        table = pa.Table.from_pylist(rows, schema=kinds)
        if job.kind == "delta":
            write_deltalake(str(file.parent), table, mode="append")
        else:
            pq.write_table(table, file)


def check(seed: int, folder: Path) -> None:
    """Run a job and compare."""
    job = shape(seed)
    (folder / "in").mkdir(parents=True)
    source = {"kind": job.kind, "path": "in", "max_files_per_batch": job.most}
    made = Job(folder, source, app=app(job), streams=("S",), top=f'zone = "{job.zone}"' if job.zone else "")
    number = 0
    for second, run in enumerate(job.runs):
        files = [(number + at, 1_700_000_000 + 10 * second + at // job.alike, each) for at, each in enumerate(run)]
        number += len(run)
        for at, modified, records in files if job.kind == "delta" else Random(seed).sample(files, len(files)):
            file = folder / "in" / f"{at:03}.{job.kind}"
            write(file, job, records)
            if job.kind == "delta":  # as a copy of the table may have them
                file = folder / "in" / "_delta_log" / f"{at:020}.json"
            os.utime(file, (1_700_000_000, 1_700_000_100 - at if job.kind == "delta" else modified))
        made.run(ModelSpark())  # type: ignore[arg-type]
    asker = rollup.open(made.path)
    for level in LEVELS:
        found = answers(asker, "AGG_TIMESTAMP, k, s, n, low", level, "A")
        assert found == right(job, level), (seed, level)
    files = sorted((folder / "told").rglob("*.parquet"))
    events = [(row["k"], row["s"]) for file in files for row in pq.read_table(file).to_pylist()]
    assert events == told(job), seed


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.few(4)
def test_a_random_job_is_its_recomputation(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path / "job")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("begin", range(1_000, 1_500, 50))
def test_many_random_jobs_are(begin: int, tmp_path: Path) -> None:
    for seed in range(begin, begin + 50):
        check(seed, tmp_path / str(seed))
        gc.unfreeze()  # each job freezes what it finds, as a worker does that has one app for ever: 50 MB a job
        gc.collect()
