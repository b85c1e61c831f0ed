"""The tables of a Delta store as Iceberg tables: the same data files, listed once more in a catalog.

`listed` compares the files that an Iceberg table lists with those of a commit, and makes one snapshot of the difference. It keeps
nothing in mind: what was missed, or changed by another program, is put right by the next one. A snapshot has the number of
the commit (`rollup.commit`) and the digest of its files (`rollup.files`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.conversions import to_bytes
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record
from pyiceberg.types import LongType

from rollup.core.calendar import Duration
from rollup.core.objects import at
from rollup.plan.aggregation import TIMESTAMP, Aggregation
from rollup.stores.delta.index import NO_FILES, FileIndex
from rollup.stores.delta.read import DeltaReader
from rollup.stores.delta.write import PERIOD

COMMIT, FILES = "rollup.commit", "rollup.files"
_FOLDER = "_iceberg"
"""Where a table's metadata lies below it: Delta leaves names with this first sign alone."""
_PROPERTIES: Mapping[str, str] = {
    "commit.retry.num-retries": "0",  # a snapshot that is tried again on another's would list its files twice
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}
_KEPT = timedelta(hours=1)
"""How long a snapshot is kept at least; data files that only older commits need go after that time too."""
_EXPIRED = 32
"""Snapshots to expire at once."""


def listed(catalog: Catalog, namespace: Sequence[str], reader: DeltaReader) -> list[str]:
    """Let the Iceberg tables of an aggregation's levels list the files of its newest commit; the names of those that changed.

    Raises StoreError where there is no commit, and what the catalog raises: of two who do it at once, one is refused.
    """
    aggregation = reader.aggregation
    made = {level: _opened(catalog, namespace, aggregation, level) for level in aggregation.levels}
    # The commit is read behind the tables: what another one has listed by then is of no later commit.
    snapshot = reader.snapshot()
    changed = list[str]()
    for level in aggregation.levels:
        name = aggregation.table(level)
        index, schema = snapshot.index_of(level), reader.stored(level.table_suffix, snapshot.version(level))
        table = made[level] or _created(catalog, (*namespace, name), reader.root / name, schema)
        if _list(table, index, schema, snapshot.number):
            changed.append(name)
        _expire(table)
    return changed


def _opened(catalog: Catalog, namespace: Sequence[str], aggregation: Aggregation, level: Duration) -> Table | None:
    try:
        return catalog.load_table((*namespace, aggregation.table(level)))
    except NoSuchTableError:
        return None


def _created(catalog: Catalog, name: tuple[str, ...], path: Path, schema: pa.Schema) -> Table:
    """A table without files, partitioned as the Delta table is."""
    catalog.create_namespace_if_not_exists(name[:-1])
    properties = {**_PROPERTIES, TableProperties.WRITE_METADATA_PATH: f"{path}/{_FOLDER}"}
    with catalog.create_table_transaction(name, schema, location=str(path), properties=properties) as made:
        fields = made.table_metadata.schema()
        made.set_properties({TableProperties.DEFAULT_NAME_MAPPING: fields.name_mapping.model_dump_json()})
        if PERIOD in schema.names:
            with made.update_spec() as spec:
                spec.add_identity(PERIOD)
    return catalog.load_table(name)


def _list(table: Table, index: FileIndex, schema: pa.Schema, number: int) -> bool:
    """Make a snapshot that lists the files of an index; whether there was anything to change."""
    if not set(schema.names) <= set(table.schema().column_names):
        with table.update_schema() as columns:
            columns.union_by_name(schema)
    if _digest(table) == index.sum:
        return False
    there = {task.file.file_path: task.file for task in table.scan().plan_files()}
    wanted = set(index.paths)
    gone = [file for path, file in there.items() if path not in wanted]
    added = [i for i, path in enumerate(index.paths) if path not in there]
    said = {COMMIT: str(number), FILES: index.sum}
    with table.transaction() as change:
        update = change.update_snapshot(snapshot_properties=said)
        with update.overwrite() if gone else update.merge_append() as files:
            for file in gone:
                files.delete_data_file(file)
            for i in added:
                files.append_data_file(_file(table, index, i))
    return True


def _file(table: Table, index: FileIndex, i: int) -> DataFile:
    """A data file as Iceberg lists it, with the bounds of its times, which readers choose files by."""
    path = index.paths[i]
    time = table.schema().find_field(TIMESTAMP).field_id
    low, high = (to_bytes(LongType(), int(bound[i])) for bound in (index.low, index.high))
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(at(path).parent.name.partition("=")[2]) if table.spec().fields else Record(),
        record_count=int(index.rows[i]),
        file_size_in_bytes=int(index.bytes[i]),
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={time: low},
        upper_bounds={time: high},
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
        spec_id=table.spec().spec_id,
    )


def _digest(table: Table) -> str | None:
    """The digest of the files that a table lists, None where its newest snapshot is of another program."""
    current = table.current_snapshot()
    if current is None:
        return NO_FILES.sum
    return None if current.summary is None else current.summary.additional_properties.get(FILES)


def _expire(table: Table) -> None:
    """Remove snapshots whose time is over, with the files of metadata that only they have."""
    before, current = (datetime.now(UTC) - _KEPT).timestamp() * 1000, table.metadata.current_snapshot_id
    kept, over = list[Snapshot](), list[Snapshot]()
    for each in table.snapshots():
        (kept if each.timestamp_ms >= before or each.snapshot_id == current else over).append(each)
    if len(over) < _EXPIRED:
        return
    oldest = min(kept, key=lambda each: each.sequence_number or 0)
    # What the oldest that stays has not is in none of the later ones.
    still = {each.manifest_path for each in oldest.manifests(table.io)}
    unused = {each.manifest_path for snapshot in over for each in snapshot.manifests(table.io)} - still
    table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in over]).commit()
    for path in (*unused, *(each.manifest_list for each in over)):
        table.io.delete(path)
