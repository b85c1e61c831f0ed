"""The step of a batch in shards: a shard has the keys of one hash, with their partial rows and their open rows.

What is decided over all keys (where the clocks step, which buckets need a second look, which levels close) depends only
on buckets and zones. So the driver runs admission and cascade over the `skeleton`, the same aggregation without keys,
and every shard runs the same two functions over its own rows with those decisions given. Nothing here needs Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc

from rollup.aggregation.admission import Admitted, Refold, apply, judge
from rollup.aggregation.cascade import Cascade, Clocks
from rollup.aggregation.partials import FIRST, LAST, STEP
from rollup.aggregation.state import State
from rollup.checkpoint.records import RecordFolder, home
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError
from rollup.core.identifiers import quoted
from rollup.core.objects import at
from rollup.core.untyped import pc
from rollup.hosts.exchange import batches_file
from rollup.plan.aggregation import COMMIT, EVENTS, TIMESTAMP, ZONE, Aggregation
from rollup.program import Declaration
from rollup.stores.base import ledger_schema
from rollup.stores.delta.write import write_files

LATE = "LATE"
_ARRIVALS = ("__arrival", FIRST, LAST, "AGG_LAST_ARRIVAL", "AGG_FIRST_ARRIVAL")


@dataclass(frozen=True)
class Split:
    """Partial rows of one part, in a file of one record batch a shard. `summary` has the same groups without keys.

    `base` is what arrivals in the file still lack to be numbered over the whole batch; the summary's lack as much.
    """

    file: str
    summary: pa.Table
    rows: int
    base: int = 0


@dataclass(frozen=True)
class ShardSpec:
    """What the shards of a batch have in common.

    `clocks` and `resume` are those before the batch, `after` the clocks after it; `parts` are the partial rows and
    `again` those of the second look. `opened` names the files of open rows of each level in `folder`/_rollup.
    """

    app: Declaration
    name: str
    folder: str
    shards: int
    fingerprint: str
    number: int
    clocks: Clocks
    resume: int | None
    after: Clocks
    parts: Sequence[Split]
    again: Sequence[Split]
    opened: Mapping[Duration, Sequence[str]]
    retired: Mapping[str, Mapping[str, pa.DataType]] = field(default_factory=dict[str, Mapping[str, pa.DataType]])


@dataclass(frozen=True)
class ShardResult:
    """What a shard has written: files to add to each table; its file of open rows at each level, and how many."""

    shard: int
    added: Mapping[str, list[list[Any]]]
    open: Mapping[str, str]
    counted: Mapping[str, int]
    overflows: int


def skeleton(aggregation: Aggregation) -> Aggregation:
    """The aggregation without keys: its rows are the buckets that any key has, with their events."""
    events = tuple(value for value in aggregation.values if value.name == EVENTS)
    return replace(aggregation, keys=(), values=events, outputs=())


def fingerprint(engine: ColumnEngine) -> str:
    """Which hash function the engine has; open rows that were split by another one are split anew."""
    probe = "SELECT CAST(HASH(CAST(1 AS BIGINT), 'rollup', CAST(0.5 AS DOUBLE)) % 4294967296 AS BIGINT)"
    return f"{engine.count(probe):08x}"


def split(engine: ColumnEngine, aggregation: Aggregation, table: pa.Table, folder: Path | str, shards: int) -> Split:
    """Write partial rows into a file of the folder, one record batch a shard, in their order."""
    file = Path(folder) / f"{uuid.uuid4().hex}.arrow"
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with batches_file(file, table.schema, options) as writer:
        for rows in _by_shard(engine, aggregation, table, shards):
            writer.write_batch(_one_batch(rows))
    return Split(str(file), summary(engine, table), table.num_rows)


def summary(engine: ColumnEngine, table: pa.Table) -> pa.Table:
    """Partial rows without keys: what the skeleton's admission decides by."""
    step = [STEP] if STEP in table.schema.names else []
    groups = ", ".join([TIMESTAMP, ZONE, *step])
    totals = f"CAST(SUM({EVENTS}) AS BIGINT) AS {EVENTS}, MIN({FIRST}) AS {FIRST}, MAX({LAST}) AS {LAST}"
    narrow = table.select([TIMESTAMP, ZONE, EVENTS, FIRST, LAST, *step])
    found = engine.run(f"SELECT {groups}, {totals} FROM rows GROUP BY {groups} ORDER BY {groups}", rows=narrow)
    return found.select([TIMESTAMP, ZONE, EVENTS, FIRST, LAST, *step]).cast(narrow.schema)


def shifted(table: pa.Table, base: int) -> pa.Table:
    """Partial rows, or events, whose arrivals count from `base` instead of 0."""
    if base == 0:
        return table
    for name in _ARRIVALS:
        index = table.schema.get_field_index(name)
        if index >= 0:
            table = table.set_column(index, name, pc.add(table[name], base))
    return table


def run_shard(engine: ColumnEngine, cascade: Cascade, spec: ShardSpec, shard: int) -> ShardResult:
    """One shard of a batch: load, admit, cascade, write. What it writes means nothing until a commit names it."""
    if fingerprint(engine) != spec.fingerprint:
        raise StoreError(
            "an executor splits keys in another way than the driver", hint="install the same duckdb on all machines"
        )
    records = RecordFolder(home(at(spec.folder), spec.name))
    before = State(
        spec.clocks,
        {level: _opened(engine, cascade.aggregation, records, spec, level, shard) for level in spec.opened},
        spec.resume,
    )
    admitted = _admitted(engine, cascade.aggregation, spec, shard)
    state, closed = cascade.step(engine, before, admitted, spec.after)
    added = {
        level.table_suffix: _add(cascade.aggregation, spec, level, rows)
        for level, rows in closed.rows.items()
        if rows.num_rows
    }
    if admitted.ledger.num_rows:
        numbered = admitted.ledger.append_column(COMMIT, pa.array([spec.number] * admitted.ledger.num_rows, pa.int64()))
        added[LATE] = _add(cascade.aggregation, spec, None, numbered)
    names = {
        level.table_suffix: _keep(records, spec, level, shard, before.open[level], rows)
        for level, rows in state.open.items()
    }
    return ShardResult(
        shard, added, names, {level.table_suffix: count for level, count in state.open_rows.items()}, closed.overflows
    )


def open_skeleton(aggregation: Aggregation, records: RecordFolder, names: Sequence[str]) -> tuple[pa.Table, int]:
    """The buckets of a level's open rows, as rows of the skeleton, and how many they are; little is held at a time."""
    schema = skeleton(aggregation).state_schema
    found, count = schema.empty_table(), 0
    for rows in (rows for name in names for rows in records.batches(name, schema.names)):
        count += rows.num_rows
        both = pa.concat_tables([found, pa.Table.from_batches([rows]).cast(schema)])
        grouped = both.group_by([TIMESTAMP, ZONE]).aggregate([(EVENTS, "sum")])
        found = grouped.select([TIMESTAMP, ZONE, f"{EVENTS}_sum"]).rename_columns(schema.names).cast(schema)
    return found.sort_by(TIMESTAMP), count


def _admitted(engine: ColumnEngine, aggregation: Aggregation, spec: ShardSpec, shard: int) -> Admitted:
    if not spec.parts:
        return Admitted([], spec.after[aggregation.root], ledger_schema(aggregation).empty_table())
    state = replace(State.empty(aggregation), clocks=spec.clocks, resume=spec.resume)
    decided = judge(engine, aggregation, state, [shifted(part.summary, part.base) for part in spec.parts])
    again: Refold = lambda _, __: [_read(part, shard) for part in spec.again]  # noqa: E731
    return apply(decided, [_read(part, shard) for part in spec.parts], again)


def _read(part: Split, shard: int) -> pa.Table:
    with pa.OSFile(part.file) as source:
        return shifted(pa.Table.from_batches([pa.ipc.open_file(source).get_batch(shard)]), part.base)


def _opened(
    engine: ColumnEngine, aggregation: Aggregation, records: RecordFolder, spec: ShardSpec, level: Duration, shard: int
) -> pa.Table:
    """A shard's open rows: one file, or its share of files that were split otherwise or not at all."""
    names = spec.opened[level]
    if _fits(spec, names):
        return records.read_rows(names[shard]).cast(aggregation.state_schema)
    rows = [aggregation.state_schema.empty_table()]
    for batch in (batch for name in names for batch in records.batches(name)):
        table = pa.Table.from_batches([batch]).cast(aggregation.state_schema)
        rows.append(table.filter(pa.array(_shard_of(engine, aggregation, table, spec.shards) == shard)))
    return pa.concat_tables(rows)


def _fits(spec: ShardSpec, names: Sequence[str]) -> bool:
    return len(names) == spec.shards and all(
        f"-{spec.fingerprint}-{index}of{spec.shards}-" in name for index, name in enumerate(names)
    )


def _keep(records: RecordFolder, spec: ShardSpec, level: Duration, shard: int, before: pa.Table, rows: pa.Table) -> str:
    """The name of the file of a shard's open rows: the old one when nothing has changed."""
    if rows is before and _fits(spec, spec.opened[level]):
        return spec.opened[level][shard]
    # A task that is tried again may still run: each try writes a file of its own.
    layout, attempt = f"{spec.fingerprint}-{shard}of{spec.shards}", uuid.uuid4().hex[:8]
    name = f"open-{level.table_suffix}-{layout}-{attempt}-{spec.number:012d}.arrow"
    return records.write_rows(name, rows)


def _add(aggregation: Aggregation, spec: ShardSpec, level: Duration | None, rows: pa.Table) -> list[list[Any]]:
    name = LATE if level is None else level.table_suffix
    for column, kind in spec.retired.get(name, {}).items():
        rows = rows.append_column(column, pa.nulls(rows.num_rows, kind))
    path = at(spec.folder) / f"{aggregation.name}_{name}"
    actions = write_files(path, level, rows, [key.name for key in aggregation.keys])
    return [[a.path, a.size, a.partition_values, a.modification_time, a.stats] for a in actions]


def _shard_of(engine: ColumnEngine, aggregation: Aggregation, table: pa.Table, shards: int) -> npt.NDArray[np.uint16]:
    if not aggregation.keys or shards == 1:
        return np.zeros(table.num_rows, np.uint16)
    names = ", ".join(quoted(key.name) for key in aggregation.keys)
    keys = table.select([key.name for key in aggregation.keys])
    return engine.run(f"SELECT CAST(HASH({names}) % {shards} AS USMALLINT) AS shard FROM keys", keys=keys)[
        "shard"
    ].to_numpy()


def _by_shard(engine: ColumnEngine, aggregation: Aggregation, table: pa.Table, shards: int) -> Iterator[pa.Table]:
    shard = _shard_of(engine, aggregation, table, shards)
    order = np.argsort(shard, kind="stable")
    ends = np.searchsorted(shard[order], np.arange(shards + 1)).tolist()
    sorted_rows = table.combine_chunks().take(pa.array(order))
    for begin, end in pairwise(ends):
        yield sorted_rows.slice(begin, end - begin)


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    batches = rows.combine_chunks().to_batches()
    return (
        batches[0]
        if batches
        else pa.RecordBatch.from_arrays([pa.array([], kind) for kind in rows.schema.types], schema=rows.schema)
    )
