"""The rows appended to an Iceberg table. Spark streams the numbers of its snapshots; a task reads the data files of each.

The order of arrival is that of the table's history, then of the files in a snapshot, then of the rows. A snapshot that
writes the same rows into other files adds nothing. One that changes or removes rows cannot be taken back from the buckets,
so it is a dead letter as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa

from rollup.core.catalogs import opened
from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, SourceError
from rollup.core.objects import is_object
from rollup.core.packages import needed_by
from rollup.plan.app import StreamDef
from rollup.sources.base import Part
from rollup.sources.content.damage import Unchanged
from rollup.sources.content.presence import check_names
from rollup.sources.file_log import Listed, named, planned
from rollup.sources.files import Files

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot
    from pyspark.sql import DataFrame

_ROWS = pa.schema([("path", pa.string()), ("modified", pa.int64()), ("place", pa.int64()), ("refused", pa.string())])
"""`place`: which file of the batch it is; `refused`: why nothing of a snapshot is taken, and its path is its name."""


class Iceberg(Files):
    """Options: `table` (`namespace.name`), `catalog` (its name, "default"), `uri`, `type` and `properties` of the catalog,
    `starting_snapshot`, `columns`, `optional`, `max_files_per_batch` (100, of snapshots)."""

    def __init__(self, stream: StreamDef, options: Mapping[str, Any]) -> None:
        self.name = str(options["table"])
        super().__init__(stream, {**options, "kind": "parquet", "path": self.name})
        self._table: Table | None = None

    @property
    def folder(self) -> History:
        """The snapshots of the table, each by its number."""
        return History(Path(self.name), self)

    @staticmethod
    def order(file: Listed) -> tuple[int, str]:
        """The same for all: the history of the table is the order, and the list and the log have it."""
        return 0, ""

    def check(self) -> None:
        """See `Source.check`."""
        check_names(self.stream, self.options)
        self.loaded()

    def begin(self) -> None:
        """Nothing is made: the table must be there."""

    def loaded(self) -> Table:
        """The table as it is now. Raises ConfigError where there is none, and SourceError where it cannot be read now."""
        where, catalog = f"[sources.{self.stream.name}]", self.options.get("catalog", "default")
        with needed_by(f"{where} of kind iceberg"):
            from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
        own = {key: self.options[key] for key in ("uri", "type") if key in self.options}
        given = {"init_catalog_tables": "false", **own, **self.options.get("properties", {})}
        database = str(given.get("uri", "")).partition("sqlite:///")[2]
        if database and not Path(database).exists():
            raise ConfigError(f"{where}: there is no catalog {database}", hint="it must be there when the job starts")
        try:
            if self._table is None:
                self._table = opened(catalog, given).load_table(self.name)
            else:
                self._table.refresh()
        except (NoSuchTableError, NoSuchNamespaceError):
            raise ConfigError(f"{where}: the catalog {catalog} has no table {self.name}") from None
        except Exception as problem:  # a catalog raises what its library does
            said = str(problem).partition("\n")[0]
            raise SourceError(f"{where}: cannot read the table {self.name}: {type(problem).__name__}: {said}") from None
        return self._table

    def planned(self, frame: DataFrame, checkpoint: Path, batch: int) -> pa.Table:
        """The data files of a batch's snapshots in their order. Raises SourceError when one is expired."""
        return self.data_files([file.path for file in planned(checkpoint, batch)], f"batch {batch} has it")

    def data_files(self, names: Sequence[str], why: str) -> pa.Table:
        """The data files of snapshots by their names in the log. Raises SourceError when one is expired."""
        table, rows = self.loaded(), list[dict[str, Any]]()
        for name in names:
            _, number = _parts(name)
            snapshot = table.snapshot_by_id(number)
            if snapshot is None:
                raise SourceError(f"snapshot {number} of {self.name} is expired, and {why}: it cannot be read any more")
            reason, paths = self._added(table, snapshot)
            for path in [name] if reason else paths:
                rows.append(
                    {"path": path, "modified": snapshot.timestamp_ms * 1000, "place": len(rows), "refused": reason}
                )
        return pa.Table.from_pylist(rows, schema=_ROWS)

    def expired(self, names: Collection[str]) -> list[str]:
        """Those of some snapshots, by their names in the log, that the table no longer has."""
        table = self.loaded()
        return [name for name in names if table.snapshot_by_id(_parts(name)[1]) is None]

    def _added(self, table: Table, snapshot: Snapshot) -> tuple[str, list[str]]:
        """Why nothing of a snapshot is taken, or the data files that it adds."""
        from pyiceberg.manifest import FileFormat, ManifestEntryStatus
        from pyiceberg.table.snapshots import Operation

        number = snapshot.snapshot_id
        operation = Operation.APPEND if snapshot.summary is None else snapshot.summary.operation
        if operation is Operation.REPLACE:
            return "", []
        if operation is not Operation.APPEND:
            return (
                f"snapshot {number} ({operation.value}) changes rows that were there; only appended rows are taken",
                [],
            )
        files = [
            entry.data_file
            for manifest in snapshot.manifests(table.io)
            if manifest.added_snapshot_id == number
            for entry in manifest.fetch_manifest_entry(table.io)
            if entry.status is ManifestEntryStatus.ADDED
        ]
        for file in files:
            if file.file_format is not FileFormat.PARQUET:
                return f"snapshot {number} adds a file of {file.file_format.value}; only Parquet is read", []
        return "", [_place(file.file_path) for file in files]

    def parts(self, engine: ColumnEngine, batch: pa.Table) -> Iterator[Part]:
        for row in batch.to_pylist():
            path, place = row["path"], row["place"]
            if row["refused"]:
                dead = self._dead(row["refused"], f"{self.name}:{_parts(path)[1]}")
                yield Part("__batch", self._nothing(engine), path, place, dead)
                continue
            with self._fetched([path]), nullcontext() if is_object(path) else Unchanged(path):
                yield replace(self._part(engine, path, row["modified"]), order=place)

    def _folders(self, path: str) -> dict[str, str | None]:
        """Files of Iceberg have all their columns."""
        return {}


@dataclass(frozen=True)
class History:
    """The snapshots that lead to the newest one of a table's main branch.

    The name of one has the number of the table, its own place among the table's snapshots, and its own number. So it is
    known when the table no longer has it.
    """

    path: Path
    source: Iceberg

    def new(self, known: Collection[str] = ()) -> Iterator[Listed]:
        """The snapshots that are not known, the newest first.

        Raises ConfigError where some between are expired, or what is known is no longer in the history.
        """
        table, first = self.source.loaded(), self.source.options.get("starting_snapshot")
        there = {snapshot.snapshot_id: snapshot for snapshot in table.snapshots()}
        number, found = table.metadata.current_snapshot_id, list[Listed]()
        while number in there:
            name = _name(table, there[number])
            if name in known:
                for each in there.values():
                    if _name(table, each) > name and _name(table, each) in known:
                        raise self._refused(
                            f"snapshot {each.snapshot_id} was read, and the table was taken back before it"
                        )
                break
            found.append(Listed(name, there[number].timestamp_ms, -1))
            if number == first:
                break
            number = there[number].parent_snapshot_id
        else:
            read = [name for name in known if name.startswith(_name(table))]
            if known and not (read and found):
                raise self._refused("what was read is no longer in its history")
            if found:
                self._refuse_gap(read, there, number, found[-1])
            if not known and first is not None:
                raise self._refused(f"no snapshot {first} is in its history")
        yield from found

    def _refuse_gap(self, read: Sequence[str], there: Collection[int], before: int | None, new: Listed) -> None:
        """Raise ConfigError unless nothing lies between what was read and the oldest new snapshot, whose parent is gone.

        Some programs let a snapshot forget its parent when that is expired. Then the places of both must follow each other.
        """
        place, oldest = _parts(new.path)
        last_place, last = _parts(max(read)) if read else (0, None)
        if any(_parts(name)[1] == before for name in read):
            return
        if before is not None or place != last_place + 1 or last in there:
            what = f"between {last}, which was read, and {oldest}" if read else f"before {oldest}"
            raise self._refused(f"snapshots {what} are expired, or the history is another one", oldest)

    def _refused(self, what: str, oldest: int | None = None) -> ConfigError:
        return ConfigError(
            f"[sources.{self.source.stream.name}], the table {self.source.name}: {what}",
            hint="bring the history back, or remove the checkpoint of the stream: tables and sinks pass over what they have"
            if oldest is None
            else f"`starting_snapshot = {oldest}` leaves out what was there before",
        )


def _name(table: Table, snapshot: Snapshot | None = None) -> str:
    """How the log names a snapshot; without one, how all names of the table's snapshots begin."""
    start = f"/{table.metadata.table_uuid}/"
    return start if snapshot is None else f"{start}{snapshot.sequence_number or 0:020d}-{snapshot.snapshot_id}"


def _parts(name: str) -> tuple[int, int]:
    """The place of a snapshot among those of its table, and its number, by its name."""
    place, _, number = Path(name).name.partition("-")
    return int(place), int(number)


def _place(path: str) -> str:
    """A data file as this package names it. Raises ConfigError for a place that it cannot read.

    >>> _place("file:///data/a%20b.parquet"), _place("s3a://bucket/a b.parquet"), _place("/data/a b.parquet")
    ('/data/a b.parquet', 's3://bucket/a b.parquet', '/data/a b.parquet')
    """
    scheme, found, rest = path.partition("://")
    if scheme in ("s3a", "s3n"):
        path = f"s3://{rest}"
    if is_object(path):
        return path
    if not found:
        return urlsplit(path).path if path.startswith("file:") else path
    if scheme == "file":
        return named(path)
    raise ConfigError(
        f"the data file {path} is in no place that can be read: a folder, s3://, az://, abfss:// or hdfs://"
    )
