"""Compaction: which data files of a table are put together, and how their rows lie in the new ones.

The job appends files as time goes by: many, and each with all keys. Here the rows of files of about one size are sorted by
coarse time, keys, time, and written in small row groups, so that a question for one key reads few of them. Files grow
by tiers, as in a log-structured merge tree: a row is written again only as often as the number of rows has digits,
and a full file never. Nothing here is visible to readers before a commit pins the version that came of it.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError
from rollup.core.identifiers import quoted
from rollup.plan.aggregation import TIMESTAMP
from rollup.stores.delta.missing import damaged
from rollup.stores.delta.session import parquet
from rollup.stores.delta.write import FILE_ROWS, PERIOD, PERIODS, SORTED, SORTED_GROUP_ROWS, add_files, write_sorted
from rollup.stores.faults import point

log = logging.getLogger(__name__)
_HOUR = 3_600_000
COARSE: Mapping[Duration, str] = {
    Duration.SECONDS: f'"{TIMESTAMP}" // {_HOUR}',
    Duration.MINUTES: f'"{TIMESTAMP}" // {24 * _HOUR}',
    Duration.HOURS: f'"{TIMESTAMP}" // {90 * 24 * _HOUR}',
    Duration.DAYS: f'"{TIMESTAMP}" // {365 * 24 * _HOUR}',
}
"""What rows are sorted by first. Wider makes one key over a long range cheaper, and all keys of a short one dearer."""

_JOB_ROWS, _JOB_BYTES = 2 * FILE_ROWS, 256 << 20  # what is held in memory at once
_ALONE = 2 * SORTED_GROUP_ROWS
"""A file in order of time with so many rows is sorted even when there is nothing to put it together with."""
_TIER = 1024
_COLD_TIER = 8 * _TIER
_FIRST_PACE = 400_000.0


@dataclass(frozen=True)
class DataFile:
    """One data file of a table; `path` is as its log has it, `low` the least AGG_TIMESTAMP in it."""

    path: str
    rows: int
    bytes: int
    period: str | None
    low: int

    @property
    def sorted(self) -> bool:
        """Whether a compaction has written it."""
        return self.path.rsplit("/", 1)[-1].startswith(SORTED)

    @property
    def raw(self) -> bool:
        """Whether it is in order of time and large enough to be sorted by itself."""
        return not self.sorted and self.rows >= _ALONE

    @property
    def done(self) -> bool:
        """Whether it stays as it is for good."""
        return self.sorted and self.rows >= FILE_ROWS // 2


Job = Sequence[DataFile]
"""Files of one period that are put together."""


def data_files(table: DeltaTable) -> list[DataFile]:
    """The data files of an open table. Those without statistics are left out: nothing says how many rows they have."""
    actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()
    names = ("path", "num_records", "size_bytes", f"partition.{PERIOD}", f"min.{TIMESTAMP}")
    columns = [
        actions[name].to_pylist() if name in actions.schema.names else [None] * actions.num_rows for name in names
    ]
    return [
        DataFile(path, rows, size, period, low)
        for path, rows, size, period, low in zip(*columns, strict=True)
        if rows is not None and low is not None
    ]


def jobs(files: Sequence[DataFile], few: int) -> list[Job]:
    """What there is to do, newest period first: `few` files of about one size are put together.

    In all periods but the newest, where not much is added any more, half as many are enough.

    >>> small = [DataFile(f"part-{i}.parquet", 100, 5_000, "2018-01-01", i) for i in range(9)]
    >>> [len(job) for job in jobs(small, 8)], jobs(small[:7], 8)
    ([9], [])
    >>> large = [DataFile("part-x.parquet", 1_000_000, 9_000_000, "2018-01-01", 0)]
    >>> [[file.path for file in job] for job in jobs([*small[:2], *large], 8)]
    [['part-x.parquet']]
    """
    periods: dict[str | None, list[DataFile]] = defaultdict(list)
    for file in files:
        if not file.done:
            periods[file.period].append(file)
    newest = max((file.period or "" for file in files), default="")
    found: list[Job] = []
    for period in sorted(periods, key=lambda name: name or "", reverse=True):
        hot = (period or "") == newest
        found += _in_period(periods[period], few if hot else max(2, few // 2), _TIER if hot else _COLD_TIER, few)
    return found


def _in_period(files: Sequence[DataFile], enough: int, least: int, step: int) -> Iterator[Job]:
    tiers: dict[int, list[DataFile]] = defaultdict(list)
    for file in files:
        if not file.raw:
            tiers[_tier(file.rows, least, step)].append(file)
    together, smaller = list[DataFile](), list[DataFile]()
    for tier in sorted(tiers):
        if len(tiers[tier]) >= enough:
            together += [*smaller, *tiers[tier]]
            smaller = []
        else:
            smaller += tiers[tier]
    yield from _cut([file for file in files if file.raw])
    yield from (job for job in _cut(together) if len(job) > 1)


def _tier(rows: int, least: int, step: int) -> int:
    tier = 0
    while rows >= least:
        tier, least = tier + 1, least * max(2, step)
    return tier


def _cut(files: Sequence[DataFile]) -> Iterator[Job]:
    """Files in order of time, in jobs that fit into memory."""
    job, rows, size = list[DataFile](), 0, 0
    for file in sorted(files, key=lambda file: file.low):
        if job and (rows + file.rows > _JOB_ROWS or size + file.bytes > _JOB_BYTES):
            yield job
            job, rows, size = [], 0, 0
        job.append(file)
        rows, size = rows + file.rows, size + file.bytes
    if job:
        yield job


@dataclass
class Compacted:
    """Files to be swapped (see `swap`): the new ones have the rows of the old; `left` when time was short for more."""

    old: list[DataFile] = field(default_factory=list[DataFile])
    new: list[AddAction] = field(default_factory=list[AddAction])
    left: bool = False


class Compactor:
    """Does jobs for as long as there is time. One a store."""

    def __init__(self, engine: ColumnEngine, keys: Sequence[str]) -> None:
        self._engine = engine
        self._keys = keys
        self._pace = _FIRST_PACE
        self._damaged: set[str] = set()

    def compact(self, table: DeltaTable, path: Path, level: Duration | None, few: int, until: float) -> Compacted:
        """Write new files for what there is to do in a table, until about `until` on the monotonic clock.

        `level` None is a table without keys and periods. The table itself is not changed.
        """
        done = Compacted()
        todo = jobs([file for file in data_files(table) if str(path / unquote(file.path)) not in self._damaged], few)
        for job in self._fitting(todo, until):
            point("maintain.compact")
            if bad := damaged(str(path / unquote(file.path)) for file in job):
                self._damaged.update(bad)
                log.warning("%s is damaged and stays as it is: `rollup verify` says more", ", ".join(bad))
                continue
            done.new += self._write(table, path, level, job)
            done.old += job
        done.left = len(done.old) < sum(map(len, todo))
        return done

    def _fitting(self, todo: Sequence[Job], until: float) -> Iterator[Job]:
        """The jobs, or as many files of each, that can be expected to be done at `until` on the monotonic clock.

        The least piece of work is given out even when it takes longer, since otherwise it would never be done.
        """
        none = True
        for job in todo:
            least = 1 if job[0].raw else 2
            count = len(job)
            while count > least and not self._fits(job[:count], until):
                count = max(least, count // 2)
            if none or self._fits(job[:count], until):
                none = False
                yield job[:count]

    def _fits(self, job: Job, until: float) -> bool:
        return sum(file.rows for file in job) <= self._pace * (until - time.monotonic())

    def _write(self, table: DeltaTable, path: Path, level: Duration | None, job: Job) -> list[AddAction]:
        """The rows of a job's files in new files. Raises StoreError when they are not as many as the log says."""
        keys = () if level is None else self._keys
        began, expected = time.monotonic(), sum(file.rows for file in job)
        files = [str(path / unquote(file.path)) for file in job]
        schema = pa.schema(table.schema().to_arrow())
        partitions = set(table.metadata().partition_columns)
        schema = pa.schema([field for field in schema if field.name not in partitions])
        order = [*(quoted(key) for key in keys), quoted(TIMESTAMP)]
        if level is not None and level in COARSE:
            order.insert(0, COARSE[level])
        names = ", ".join(quoted(name) for name in schema.names)
        sql = f"SELECT {names} FROM {parquet(files)} ORDER BY {', '.join(order)}"
        rows = self._engine.run(sql).cast(schema)
        if rows.num_rows != expected:
            raise StoreError(
                f"the files of {path} have {rows.num_rows} rows where its log says {expected}: {', '.join(files)}",
                hint="nothing was changed; `rollup verify` says what is wrong",
            )
        made = write_sorted(path, job[0].period if level in PERIODS else None, rows, keys)
        if expected >= _ALONE:
            self._pace = (self._pace + expected / max(time.monotonic() - began, 1e-3)) / 2
        return made


def swap(table: DeltaTable, level: Duration | None, old: Sequence[DataFile], new: Sequence[AddAction]) -> None:
    """Put new files in the place of old ones that had the same rows, in one transaction that changes no data."""
    now = int(time.time() * 1000)
    removed = [
        RemoveAction(file.path, False, now, file.bytes, {} if file.period is None else {PERIOD: file.period})
        for file in old
    ]
    add_files(table, level, [*new, *removed], CommitProperties(custom_metadata={"rollup": "compaction"}))
