"""Delta tables in a folder: one table a level, appended through delta-rs, and a commit record that pins them.

A commit appends the closed rows of each level, writes the open rows of the levels that changed, and then the record.
Whatever a killed writer left behind is not pinned by a record: `load` restores each table to its pinned version. A row
whose bucket was closed before (a correction) is appended as one more part; readers merge parts.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties
from deltalake.exceptions import DeltaError

from rollup.aggregation.engine import Engine
from rollup.aggregation.state import State
from rollup.calendar import Duration
from rollup.errors import FencedError, StoreError
from rollup.plan.aggregation import TIMESTAMP, ZONE, Aggregation
from rollup.stores.base import Commit, Loaded
from rollup.stores.delta_read import DeltaReader, DeltaSnapshot, FileIndex
from rollup.stores.delta_record import Record, RecordFolder
from rollup.stores.delta_write import PERIOD, PERIODS, append
from rollup.stores.faults import point

_LATE = "LATE"
_WRITER = WriterProperties(compression="LZ4_RAW", max_row_group_size=256 * 1024)


class DeltaStore:
    """One aggregation's tables below a folder; see the module."""

    compact_after = 48
    """Files appended to a table before they are put together."""
    vacuum_hours = 1
    """How long files of older versions stay for readers that still use them."""

    def __init__(self, aggregation: Aggregation, engine: Engine, root: Path | str) -> None:
        self.aggregation = aggregation
        self.engine = engine
        self.root = Path(root)
        self.records = RecordFolder(self.root / "_rollup" / aggregation.name)
        self._tables: dict[str, DeltaTable] = {}
        self._appended: dict[str, int] = {}
        self._last: Record | None = None
        self._open: Mapping[Duration, pa.Table] = {}
        self._reader: DeltaReader | None = None

    # writing

    def load(self) -> Loaded | None:
        """The newest commit; tables are created when they are missing and restored when a writer was killed."""
        fresh = self._open_tables()
        record = self.records.newest()
        if record is None:
            if not fresh:
                return None
            record = Record(0, self._versions(), {}, {})
            self.records.create()
            self.records.write(record)
        for name, version in record.versions.items():
            self._restore(name, version)
        self._last = record
        state = self._state(record)
        self._open = state.open
        return Loaded(record.number, state, record.source) if record.number else None

    def commit(self, commit: Commit) -> None:
        """Append, write open rows, make the record appear. Raises FencedError when another writer was here."""
        point("commit.begin")
        names: dict[str, str] = {} if self._last is None else dict(self._last.open)
        for level, rows in commit.closed.items():
            if rows.num_rows:
                self._append(level.table_suffix, level, rows, commit.number)
                point("commit.level")
        point("commit.levels")
        if commit.ledger is not None and commit.ledger.num_rows:
            numbered = commit.ledger.append_column("commit", pa.array([commit.number] * commit.ledger.num_rows, pa.int64()))
            self._append(_LATE, None, numbered, commit.number)
        point("commit.ledger")
        for level, rows in commit.state.open.items():
            if rows is not self._open.get(level) or level.table_suffix not in names:
                names[level.table_suffix] = f"open-{level.table_suffix}-{commit.number:012d}.arrow"
                self.records.write_rows(names[level.table_suffix], rows)
        point("commit.open")
        clocks = {level.table_suffix: clock for level, clock in commit.state.clocks.items()}
        record = Record(commit.number, self._versions(), names, clocks, commit.state.resume, dict(commit.source))
        self.records.write(record)
        point("commit.record")
        self._last, self._open = record, commit.state.open
        if commit.number % 16 == 0:
            self.records.tidy()

    def maintain(self, budget: float) -> dict[str, int]:
        """Put small files together and remove unused ones, for about `budget` seconds; what was done, by table.

        The next commit pins the new versions, so readers never see a table half way.
        """
        done: dict[str, int] = {}
        until = time.monotonic() + budget
        for name, table in self._tables.items():
            if self._appended.get(name, 0) < self.compact_after or time.monotonic() > until:
                continue
            point("maintain.compact")
            metrics = table.optimize.compact(target_size=128 * 1024 * 1024, writer_properties=_WRITER)
            table.vacuum(retention_hours=self.vacuum_hours, enforce_retention_duration=False, dry_run=False)
            done[name] = int(metrics["numFilesRemoved"])
            self._appended[name] = 0
        return done

    def forget(self) -> None:
        """Remove the commit records, so that only the tables survive."""
        self.records.clear()
        self._last, self._open = None, {}

    def drop(self) -> None:
        """Remove everything of this aggregation."""
        for name in (*(level.table_suffix for level in self.aggregation.levels), _LATE):
            shutil.rmtree(self._path(name), ignore_errors=True)
        shutil.rmtree(self.records.folder, ignore_errors=True)

    # reading

    def snapshot(self) -> DeltaSnapshot:
        """The newest commit, to read from."""
        if self._reader is None:
            self._reader = DeltaReader(self.aggregation, self.engine, self.root)
        return self._reader.snapshot()

    def newest(self, level: Duration) -> dict[str, int]:
        table = self._rows(level, None, [TIMESTAMP, ZONE]).group_by(ZONE).aggregate([(TIMESTAMP, "max")]).to_pydict()
        return dict(zip(table[ZONE], table[f"{TIMESTAMP}_max"], strict=True))

    def rows_after(self, level: Duration, start: int | None) -> pa.Table:
        return self._rows(level, start, list(self.aggregation.kinds)).cast(self.aggregation.table_schema)

    def _rows(self, level: Duration, start: int | None, columns: list[str]) -> pa.Table:
        if level.table_suffix not in self._tables:
            self._open_tables()
        files = FileIndex.of(self._tables[level.table_suffix]).between(start, None)
        if not files:
            return self.aggregation.table_schema.empty_table().select(columns)
        names = ", ".join(f'"{name}"' for name in columns)
        where = "" if start is None else f' WHERE "{TIMESTAMP}" > {start}'
        return self.engine.run(f"SELECT {names} FROM read_parquet($files){where}", {"files": files})

    # parts

    def _path(self, name: str) -> Path:
        return self.root / f"{self.aggregation.name}_{name}"

    def _open_tables(self) -> bool:
        """Open or create every table; whether all of them are new."""
        fresh = True
        for level in self.aggregation.levels:
            schema = self.aggregation.table_schema
            if level in PERIODS:
                schema = schema.append(pa.field(PERIOD, pa.string()))
            fresh &= self._open_table(level.table_suffix, schema, [PERIOD] if level in PERIODS else None)
        keys = [pa.field(key.name, key.type.arrow) for key in self.aggregation.keys]
        self._open_table(_LATE, pa.schema([(TIMESTAMP, pa.int64()), (ZONE, pa.string()), *keys, ("kind", pa.string()), ("events", pa.int64()), ("commit", pa.int64())]), None)
        return fresh

    def _open_table(self, name: str, schema: pa.Schema, partition: list[str] | None) -> bool:
        path = self._path(name)
        fresh = not DeltaTable.is_deltatable(str(path))
        try:
            if fresh:
                path.parent.mkdir(parents=True, exist_ok=True)
                DeltaTable.create(
                    str(path), schema, partition_by=partition, mode="ignore",
                    configuration={"delta.checkpointInterval": "100", "delta.logRetentionDuration": "interval 7 days"},
                )
            table = DeltaTable(str(path))
        except (DeltaError, OSError) as problem:
            raise StoreError(f"cannot open the table {path}: {problem}") from None
        self._check_columns(path, table, schema)
        self._tables[name] = table
        return fresh

    @staticmethod
    def _check_columns(path: Path, table: DeltaTable, schema: pa.Schema) -> None:
        stored = {field.name: str(field.type) for field in table.schema().fields}
        missing = [name for name in schema.names if name not in stored]
        foreign = [name for name in stored if name not in schema.names]
        if missing or foreign:
            what = "; ".join(f"{word} {', '.join(names)}" for word, names in (("lacks", missing), ("has foreign", foreign)) if names)
            raise StoreError(f"the table {path} {what}", hint="the declaration has changed: see docs/runbooks/change.md")

    def _versions(self) -> dict[str, int]:
        return {name: table.version() for name, table in self._tables.items()}

    def _restore(self, name: str, version: int) -> None:
        table = self._tables[name]
        if table.version() != version:
            table.restore(version)
            # From here on the record's version and the restored one have the same rows; the next commit pins the new.

    def _append(self, name: str, level: Duration | None, rows: pa.Table, number: int) -> None:
        """Append rows, refusing to build on a version that another writer made."""
        table = self._tables[name]
        before = table.version()
        properties = CommitProperties(app_transactions=[Transaction(f"rollup/{self.aggregation.name}", number)])
        try:
            append(table, self._path(name), level, rows, [key.name for key in self.aggregation.keys], properties)
        except (DeltaError, OSError) as problem:
            raise StoreError(f"cannot append to {self._path(name)}: {problem}") from None
        if table.version() != before + 1:
            raise FencedError(f"another writer appended to {self._path(name)}", hint="only one job may write an aggregation")
        self._appended[name] = self._appended.get(name, 0) + 1

    def _state(self, record: Record) -> State:
        empty = State.empty(self.aggregation)
        rows = {
            level: self.records.read_rows(record.open[level.table_suffix]) if level.table_suffix in record.open else empty.open[level]
            for level in self.aggregation.levels
        }
        clocks = {level: record.clocks.get(level.table_suffix) for level in self.aggregation.levels}
        return State(clocks, rows, record.resume)
