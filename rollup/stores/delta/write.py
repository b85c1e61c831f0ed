"""Rows as files of a Delta table: sorted by time, cut at the periods it is partitioned by, encoded on all cores.

delta-rs' own writer looks at the partition of every row; here rows are sorted, so a period is a slice. The files are
written with Arrow and then named in one transaction: by `add_files`, or by `WrittenTable.append`.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
from deltalake.transaction import AddAction, RemoveAction

from rollup.aggregation.seams import in_order
from rollup.checkpoint.checksums import named
from rollup.core.calendar import Duration, bucket_end, bucket_start, to_local
from rollup.core.copies import keep
from rollup.core.objects import ObjectPath, at
from rollup.core.untyped import pc
from rollup.plan.aggregation import TIMESTAMP

PERIOD = "AGG_PERIOD"
PERIODS: Mapping[Duration, tuple[Duration, str]] = {
    Duration.SECONDS: (Duration.DAYS, "%Y-%m-%d"),
    Duration.MINUTES: (Duration.MONTHS, "%Y-%m"),
    Duration.HOURS: (Duration.YEARS, "%Y"),
}
"""The partition of the fine levels, in UTC: a day of seconds, a month of minutes, a year of hours."""


FILE_ROWS, _LEAST_ROWS, _GROUP_ROWS = 1024 * 1024, 256 * 1024, 128 * 1024
"""Rows of a file at most; rows below which a batch is not shared out to more cores; rows of a row group."""
_CODEC = "snappy"
"""Not lz4, although it is as quick: Spark 4.2's Parquet reader fails on dictionaries of more than 8 KiB in it when a
query filters by their column (apache/parquet-java#3478)."""
SORTED, SORTED_GROUP_ROWS = "sorted-", 32 * 1024
"""How the names of files begin that are sorted by keys, and the size of their row groups: one key reads one or two."""
_CLEANED = 64
"""Versions after which the log is looked through for files whose time is over."""
_CORES = os.cpu_count() or 2
_PUT_AT_ONCE = 8
"""Files at a time on their way to an object store, where each mostly waits for an answer."""
_pool = ThreadPoolExecutor(_CORES, thread_name_prefix="encode")
_puts = ThreadPoolExecutor(max(_CORES, _PUT_AT_ONCE), thread_name_prefix="put")


def write_files(path: Path, level: Duration | None, rows: pa.Table, keys: Sequence[str]) -> list[AddAction]:
    """Write rows as data files of the table at `path`. They belong to it once `add_files` has named them."""
    pieces = list(_pieces(in_order(rows), None if level is None else PERIODS.get(level)))
    return list(_at_once(path).map(lambda piece: _write(path, piece[0], piece[1], keys), pieces))


def write_sorted(path: Path, period: str | None, rows: pa.Table, keys: Sequence[str]) -> list[AddAction]:
    """Write rows of one period in the order they have, as files for `rollup.stores.delta.compact.swap`."""
    pieces = [rows.slice(start, FILE_ROWS) for start in range(0, rows.num_rows, FILE_ROWS)]
    return list(_at_once(path).map(lambda piece: _write(path, period, piece, keys, SORTED), pieces))


def _at_once(path: Path) -> ThreadPoolExecutor:
    return _puts if isinstance(path, ObjectPath) else _pool


def written_again(path: Path, file: str, rows: pa.Table, keys: Sequence[str]) -> AddAction:
    """Write what a file of the table at `path` becomes, in the same order and period."""
    old = at(file)
    begins = SORTED if old.name.startswith(SORTED) else "part-"
    action = _write(path, _period(old, path), rows, keys, begins)
    return AddAction(action.path, action.size, action.partition_values, action.modification_time, True, action.stats)


def removal(file: str, path: Path, size: int, changes: bool = True) -> RemoveAction:
    """What takes a file out of the table at `path`; `changes` is whether its rows go too."""
    period = _period(at(file), path)
    values: dict[str, str | None] = {} if period is None else {PERIOD: period}
    return RemoveAction(str(at(file).relative_to(path)), changes, int(time.time() * 1000), size, values)


def _period(file: Path, path: Path) -> str | None:
    """The period that the folder of a file says."""
    return None if file.parent == path else file.parent.name.partition("=")[2]


def add_files(
    table: DeltaTable, level: Duration | None, files: Sequence[AddAction | RemoveAction], properties: CommitProperties
) -> None:
    """Add written files to their table, and take others out, in one transaction, of which `table` does not know yet."""
    period = [PERIOD] if level in PERIODS else None
    # Else every transaction lists the whole log, to find what is over.
    after = PostCommitHookProperties(cleanup_expired_logs=cleaned_behind(table.version()))
    table.create_write_transaction(
        list(files),
        "append",
        table.schema(),
        partition_by=period,
        commit_properties=properties,
        post_commithook_properties=after,
    )


def cleaned_behind(version: int) -> bool:
    """Whether the transaction after a version also removes what is over in the log."""
    return version % _CLEANED == _CLEANED - 1


def _pieces(rows: pa.Table, period: tuple[Duration, str] | None) -> Iterator[tuple[str | None, pa.Table]]:
    """Slices each within one period, and small enough that every core has one to encode."""
    size = min(FILE_ROWS, max(_LEAST_ROWS, -(-rows.num_rows // _CORES)))
    for name, part in [(None, rows)] if period is None else _by_period(rows, *period):
        for start in range(0, part.num_rows, size):
            yield name, part.slice(start, size)


def _by_period(rows: pa.Table, width: Duration, form: str) -> Iterator[tuple[str, pa.Table]]:
    starts, place = rows[TIMESTAMP].to_numpy(), 0
    while place < len(starts):
        begin = bucket_start(int(starts[place]), width)
        stop = int(np.searchsorted(starts, bucket_end(begin, width), side="left"))
        yield to_local(begin, "+00:00").strftime(form), rows.slice(place, stop - place)
        place = stop


def _write(path: Path, period: str | None, rows: pa.Table, keys: Sequence[str], begins: str = "part-") -> AddAction:
    changed, content = begins != SORTED, pa.BufferOutputStream()
    import pyarrow.parquet as pq  # a question writes nothing and need not wait for it

    # Bounds of floats leave NaN out: a reader that goes by them drops NaN, or lets it pass any filter.
    bounded: Any = [field.name for field in rows.schema if not pa.types.is_floating(field.type)]

    pq.write_table(
        rows,
        content,
        compression=_CODEC,
        row_group_size=_GROUP_ROWS if changed else SORTED_GROUP_ROWS,
        write_statistics=bounded,
    )
    encoded = memoryview(content.getvalue())
    name = named(f"{begins}{uuid.uuid4().hex}.parquet", encoded)
    relative = name if period is None else f"{PERIOD}={period}/{name}"
    target = path / relative
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(encoded)
    keep(target, encoded)
    stats = {"numRecords": rows.num_rows, **_bounds(rows, [TIMESTAMP, *keys])}
    values = {} if period is None else {PERIOD: period}
    return AddAction(relative, len(encoded), values, int(time.time() * 1000), changed, json.dumps(stats))


def _bounds(rows: pa.Table, columns: Sequence[str]) -> dict[str, dict[str, object]]:
    """The statistics that readers choose files by."""
    low, high, nulls = dict[str, object](), dict[str, object](), dict[str, object]()
    for name in columns:
        kind = rows.schema.field(name).type
        nulls[name] = rows[name].null_count
        if pa.types.is_integer(kind) or pa.types.is_string(kind):
            found = pc.min_max(rows[name]).as_py()
            if found["min"] is not None and (not isinstance(found["min"], str) or len(found["max"]) <= 64):
                low[name], high[name] = found["min"], found["max"]
    return {"minValues": low, "maxValues": high, "nullCount": nulls}
