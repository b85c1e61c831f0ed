"""Delta tables in a folder: one table a level, appended through delta-rs, and a commit record that pins them.

A commit appends the closed rows of each level and writes the open rows of the levels that changed; then comes the record.
Whatever a killed writer left behind is not pinned by a record: `load` restores each table to its pinned version. A row
whose bucket was closed before (a correction) is appended as one more part; readers merge parts.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace as replace_fields
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

from rollup.aggregation.state import State
from rollup.checkpoint.records import Record, RecordFolder, home
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import FencedError, StoreError, refused_by_system
from rollup.core.identifiers import quoted
from rollup.core.lengths import milliseconds
from rollup.core.objects import ObjectPath, at, holds_table, remove_all
from rollup.plan.aggregation import COMMIT, TIMESTAMP, ZONE, Aggregation
from rollup.retrieval.as_of import AsOf
from rollup.stores.base import Commit, Filed, Loaded, Rewrite
from rollup.stores.delta.change import add_columns, replace
from rollup.stores.delta.compact import Compactor, swap
from rollup.stores.delta.missing import HINT, check_listed, emptied, fetched, is_table, mistaken, reading, require_whole
from rollup.stores.delta.read import DeltaReader, DeltaSnapshot, FileIndex
from rollup.stores.delta.schema import check_columns, conformed, ledger_table, level_table
from rollup.stores.delta.standing import drop_log, made_after, standing
from rollup.stores.delta.write import PERIOD, PERIODS, add_files, write_files
from rollup.stores.delta.written import WrittenTable
from rollup.stores.faults import point

log = logging.getLogger(__name__)
_LATE = "LATE"
_PROPERTIES: Mapping[str, str | None] = {
    "delta.checkpointInterval": "100",
    "delta.deletedFileRetentionDuration": "interval 7 days",
    "delta.autoOptimize.autoCompact": "false",
    "delta.autoOptimize.optimizeWrite": "false",
}
"""Other programs keep files for readers of older versions, and compact nothing by themselves."""
_TRIES = 5
_ACTS = 8
"""Acts at a time, of one commit."""
_HOUR = 3_600_000
_VACUUM_EVERY = 600.0

_AGAIN = "nothing of this batch is visible; it is taken again at the next start"
_FEATURE = "another program has given the table that feature; `ALTER TABLE … DROP FEATURE` takes it away again"


class DeltaStore:
    """One aggregation's tables below a folder; see the module."""

    salvaged = None

    compact_after = 8
    """Files of about one size before they are put together; see `rollup.stores.delta.compact`."""
    vacuum_hours = 1
    """How long files of older versions stay for readers that still use them."""
    keep_log = 7 * 24 * _HOUR
    """How long older commits and the logs of the tables stay, ms."""

    def __init__(self, aggregation: Aggregation, engine: ColumnEngine, root: Path | str) -> None:
        self.aggregation = aggregation
        self.engine = engine
        self.root = at(root)
        self.records = RecordFolder(home(self.root, aggregation.name))
        self._tables: dict[str, WrittenTable] = {}
        self._appended: dict[str, int] = {}
        self._last: Record | None = None
        self._open: Mapping[Duration, pa.Table] = {}
        self._reader: DeltaReader | None = None
        self._retired: dict[str, Mapping[str, pa.DataType]] = {}
        self._torn = False
        self._levels = {level.table_suffix: level for level in aggregation.levels}
        self._compactor = Compactor(engine, [key.name for key in aggregation.keys])
        self._compacted: set[str] = set()  # tables whose newest version lacks files of the pinned one
        self._turns: dict[str, float] = {}
        self._vacuumed: dict[str, float] = {}

    @property
    def filed(self) -> DeltaStore:
        """The store itself."""
        return self

    @property
    def apart(self) -> DeltaStore:
        """The store itself."""
        return self

    # writing

    def begin(self, commit: Commit) -> Callable[[], None]:
        """Nothing of a commit is done before it is made: that is what `commit` does."""
        return partial(self.commit, commit)

    def load(self, open_rows: bool = True) -> Loaded | None:
        """The newest commit; tables are created when they are missing and restored when a writer was killed.

        Without `open_rows` the state has none: a host that keeps them in shards reads them where they are needed.
        """
        record = self.records.newest()
        for name in () if record is None else record.versions:
            if not is_table(self._path(name)):
                raise StoreError(f"the table {self._path(name)} is gone", hint=HINT)
        if record is None:
            self.records.create()
        fresh = self._open_tables()
        if record is None:
            if not fresh:
                return None
            record = Record(0, self._versions(), {}, {})
            self.records.write(record)
        for name, version in record.versions.items():
            if self._tables[name].version == version:
                check_listed(self._path(name), record, name, version, self._tables[name].index)
            self._restore(name, version)
        self._last = record
        state = self._state(record, open_rows)
        self._open = state.open if open_rows else {}
        return Loaded(record.number, state, record.source) if record.number else None

    @property
    def last(self) -> Record | None:
        """The commit that the next one follows."""
        return self._last

    @property
    def retired(self) -> Mapping[str, Mapping[str, pa.DataType]]:
        """By table, the columns that rows written from outside must have null in."""
        return self._retired

    def commit(self, commit: Commit | Filed) -> None:
        """Append, write open rows, make the record appear. Raises FencedError when another writer was here.

        After any other error the commit may be tried again: what it has written so far is put aside first.
        """
        if self._torn and self._last is not None:
            for name, version in self._last.versions.items():
                self._tables[name].reread()
                self._restore(name, version)
        self._torn = True
        self._commit(commit)
        self._torn = False

    def _commit(self, commit: Commit | Filed) -> None:
        point("commit.begin")
        for level, rewrite in commit.rewrites.items():
            self._replace(level, rewrite, commit.number)
            point("commit.rewrite")
        names = self._write_rows(commit) if isinstance(commit, Commit) else self._name_files(commit)
        point("commit.open")
        clocks = {level.table_suffix: clock for level, clock in commit.state.clocks.items()}
        self._at_once(partial(getattr, table, "index") for table in self._tables.values())
        sums = {name: table.index.sum for name, table in self._tables.items()}
        record = Record(commit.number, self._versions(), names, clocks, commit.state.resume, dict(commit.source), sums)
        self.records.write(record)
        point("commit.record")
        self._compacted.clear()
        self._last, self._open = record, commit.state.open if isinstance(commit, Commit) else {}
        if commit.number % 16 == 0:
            self.records.tidy()

    def _name_files(self, commit: Filed) -> dict[str, str | list[str]]:
        """Add written files to their tables; the names of the files of open rows."""
        self._still_ours()
        self._enter(commit.added, commit.number)
        return {name: list(files) for name, files in commit.open.items()}

    def _write_rows(self, commit: Commit) -> dict[str, str | list[str]]:
        """Append to the tables and write the open rows of levels that changed; the names of their files."""
        names = {} if self._last is None else dict(self._last.open)
        added, keys = dict[str, Sequence[AddAction]](), [key.name for key in self.aggregation.keys]

        def close(name: str, level: Duration | None, rows: pa.Table) -> None:
            try:
                added[name] = write_files(self._path(name), level, self._with_retired(name, rows), keys)
            except OSError as problem:
                raise _unwritten(self._path(name), problem) from None

        def keep(level: Duration, rows: pa.Table) -> None:
            name = f"open-{level.table_suffix}-{commit.number:012d}.arrow"
            names[level.table_suffix] = self.records.write_rows(name, rows)

        acts: list[Callable[[], object]] = [self._still_ours]
        acts += [
            partial(close, level.table_suffix, level, rows) for level, rows in commit.closed.items() if rows.num_rows
        ]
        if commit.ledger is not None and commit.ledger.num_rows:
            numbers = pa.array([commit.number] * commit.ledger.num_rows, pa.int64())
            acts.append(partial(close, _LATE, None, commit.ledger.append_column(COMMIT, numbers)))
        acts += [
            partial(keep, level, rows)
            for level, rows in commit.state.open.items()
            if rows is not self._open.get(level) or level.table_suffix not in names
        ]
        self._at_once(acts)
        self._enter(added, commit.number)
        return names

    def _enter(self, added: Mapping[str, Sequence[AddAction]], number: int) -> None:
        """Let the tables have written files, refusing to build on a version that another writer made."""
        self._at_once(partial(self._append, name, files, number) for name, files in added.items())
        point("commit.levels")
        point("commit.ledger")

    def _at_once(self, acts: Iterable[Callable[[], object]]) -> None:
        """Acts that need nothing of one another: in an object store at the same time, as each mostly waits for answers."""
        if not isinstance(self.root, ObjectPath):
            for act in acts:
                act()
            return
        with ThreadPoolExecutor(_ACTS, thread_name_prefix="commit") as pool:
            begun = [pool.submit(act) for act in acts]
        for each in begun:
            each.result()

    def maintain(self, budget: float) -> dict[str, int]:
        """Put files together and remove unused ones, for about `budget` seconds; how many were put together, by table.

        The next commit pins the new versions, so readers never see a table half way. Until then a table is left alone:
        what its pinned version needs must not become old enough to be removed.
        """
        done: dict[str, int] = {}
        until = time.monotonic() + budget
        for name in sorted(self._tables, key=lambda name: self._turns.get(name, 0.0)):
            if name in self._compacted or self._appended.get(name, self.compact_after) < self.compact_after:
                continue
            if time.monotonic() >= until:
                break
            self._turns[name] = time.monotonic()
            self._vacuum(name, max(1, self.vacuum_hours))
            level = self._levels.get(name)
            found = self._compactor.compact(
                self._tables[name].table, self._path(name), level, self.compact_after, until
            )
            if found.old:
                point("maintain.compact.written")
                try:
                    self._change(name, partial(swap, level=level, old=found.old, new=found.new), 0)
                except FencedError:
                    raise
                except StoreError as problem:  # another program puts the same files together: ours can wait
                    log.warning("%s", problem.message)
                    continue
                self._compacted.add(name)
                point("maintain.compact.swapped")
                done[name] = len(found.old)
            if not found.left:
                self._appended[name] = 0
        return done

    def release(self, pin: Callable[[], object]) -> int:
        """Remove files, commits and logs that are needed by older commits only and whose time is over."""
        removed = 0
        for name, written in self._tables.items():
            if any(written.table.metadata().configuration.get(key) != value for key, value in self._log_kept.items()):
                self._change(name, lambda table: table.alter.set_table_properties(self._log_kept), 0)
            removed += self._vacuum(name, self.vacuum_hours, 0)
        if self._last is None or self._versions() != self._last.versions:
            pin()
        before = time.time() - self.keep_log / 1000
        self.records.tidy(before)
        try:
            kept = [self.records.read(number) for number in self.records.numbers()]
        except StoreError:  # an older one is damaged: what it needs is unknown
            return removed
        for name, written in self._tables.items():
            written.table.create_checkpoint()
            removed += drop_log(self._path(name), min(record.versions[name] for record in kept), before)
            self._tables[name] = WrittenTable(self._path(name))  # the open one reads the log it was opened by
        return removed

    @property
    def _log_kept(self) -> dict[str, str]:
        """How long the log is kept beside a running job: what the commit before needs stays in any case."""
        return {"delta.logRetentionDuration": f"interval {max(1, math.ceil(self.keep_log / _HOUR))} hours"}

    def _vacuum(self, name: str, hours: int, every: float = _VACUUM_EVERY) -> int:
        """Remove files that no version needs any more, now and then; how many."""
        now = time.monotonic()
        if now - self._vacuumed.get(name, -every) < every:
            return 0
        self._vacuumed[name] = now
        before = sum(1 for _ in self._path(name).rglob("*.parquet"))
        written = self._tables[name]
        written.table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
        if not self._changed(name, written.version):
            written.version = written.table.version()
        return before - sum(1 for _ in self._path(name).rglob("*.parquet"))

    def evolve(self, added: pa.Schema, retired: Collection[str]) -> None:
        """Add columns, null in all rows there are, in a commit of its own; `retired` ones stay in the tables.

        Killed half way it leaves only versions that no record pins; it is then simply done again.
        """
        self.records.retire(retired)
        record = self.records.newest()
        if record is None:
            return
        versions, names, sums = dict(record.versions), dict(record.open), dict(record.sums)
        keys = [key.name for key in self.aggregation.keys]
        for level in self.aggregation.levels:
            name = level.table_suffix
            table = DeltaTable(str(self._path(name)))
            pinned = standing(self._path(name), record.versions[name])
            if table.version() != pinned:
                table.restore(pinned)
            add_columns(self.engine, table, self._path(name), added, retired, keys)
            versions[name], sums[name] = table.version(), FileIndex.of(table).sum
            if name in names:
                rows = conformed(self.records.read_rows(record.open[name]), self.aggregation.state_schema)
                names[name] = self.records.write_rows(f"open-{name}-{record.number + 1:012d}.arrow", rows)
        self.records.write(replace_fields(record, number=record.number + 1, versions=versions, open=names, sums=sums))

    def forget(self) -> None:
        """Remove the commit records, so that only the tables survive."""
        self.records.clear()
        self._last, self._open = None, {}

    def remake(self, damaged: Collection[str], aside: Path) -> Loaded:
        """Take up at the newest commit although some tables are damaged: those are empty now, the old ones in `aside`.

        The finest level and the ledger keep the files that they still have, as nothing can make their rows anew.
        Nothing of it is visible before the next commit; killed before that, it is simply done again.
        """
        record = self.records.newest()
        assert record is not None
        mislisted = mistaken(self.root, self.aggregation.name, record)
        for name in damaged:
            keep = name in (self.aggregation.root.table_suffix, _LATE)
            emptied(self._path(name), record.versions[name], aside, keep=keep and name not in mislisted)
        self._open_tables()
        for name, version in record.versions.items():
            if name not in damaged:
                self._restore(name, version)
        self._last = record
        state = self._state(record, True)
        self._open = state.open
        return Loaded(record.number, state, record.source)

    def drop(self) -> None:
        """Remove everything of this aggregation."""
        for name in (*(level.table_suffix for level in self.aggregation.levels), _LATE):
            remove_all(self._path(name))
        remove_all(self.records.folder)

    # reading

    def snapshot(self) -> DeltaSnapshot:
        """The newest commit, to read from."""
        return self._reading.snapshot()

    def as_of(self, moment: AsOf) -> DeltaSnapshot:
        return self._reading.as_of(moment)

    @property
    def _reading(self) -> DeltaReader:
        if self._reader is None:
            self._reader = DeltaReader(self.aggregation, self.engine, self.root)
        return self._reader

    def newest(self, level: Duration) -> dict[str, int]:
        table = self._rows(level, None, [TIMESTAMP, ZONE]).group_by(ZONE).aggregate([(TIMESTAMP, "max")]).to_pydict()
        return dict(zip(table[ZONE], table[f"{TIMESTAMP}_max"], strict=True))

    def rows_after(self, level: Duration, start: int | None) -> pa.Table:
        return self._rows(level, start, list(self.aggregation.kinds)).cast(self.aggregation.table_schema)

    def _rows(self, level: Duration, start: int | None, columns: list[str]) -> pa.Table:
        if level.table_suffix not in self._tables:
            self._open_tables()
        files = self._tables[level.table_suffix].index.between(start, None)
        if not files:
            return self.aggregation.table_schema.empty_table().select(columns)
        names = ", ".join(map(quoted, columns))
        where = "" if start is None else f' WHERE "{TIMESTAMP}" > {start}'
        require_whole(files)
        with reading(lambda: files):
            return self.engine.run(f"SELECT {names} FROM read_parquet($files){where}", {"files": fetched(files)})

    # parts

    def _path(self, name: str) -> Path:
        return self.root / f"{self.aggregation.name}_{name}"

    def _open_tables(self) -> bool:
        """Open or create every table; whether all of them are new."""
        fresh = True
        for level in self.aggregation.levels:
            schema = level_table(self.aggregation, level)
            fresh &= self._open_table(level.table_suffix, schema, [PERIOD] if level in PERIODS else None)
        self._open_table(_LATE, ledger_table(self.aggregation), None)
        return fresh

    def _open_table(self, name: str, schema: pa.Schema, partition: list[str] | None) -> bool:
        path = self._path(name)
        try:
            fresh = not holds_table(path)
            if fresh:
                path.parent.mkdir(parents=True, exist_ok=True)
                DeltaTable.create(
                    str(path),
                    schema,
                    partition_by=partition,
                    mode="ignore",
                    configuration={**_PROPERTIES, **self._log_kept},
                )
            written = WrittenTable(path)
        except (DeltaError, OSError) as problem:
            what = f"cannot open the table {path}"
            raise refused_by_system(what, problem) or StoreError(f"{what}: {problem}", hint=HINT) from None
        self._retired[name] = check_columns(
            path, pa.schema(written.table.schema().to_arrow()), schema, self.records.retired()
        )
        self._tables[name] = written
        return fresh

    def _versions(self) -> dict[str, int]:
        return {name: table.version for name, table in self._tables.items()}

    def _restore(self, name: str, version: int) -> None:
        written = self._tables[name]
        self._compacted.discard(name)
        pinned, version = version, standing(self._path(name), version)
        if version > written.version:  # made since the table was opened
            written.reread()
        if written.version == version:
            return
        self._say_undone(name, pinned)
        try:
            written.table.restore(version)
            written.version = written.table.version()
        except (DeltaError, OSError) as problem:
            raise refused_by_system(f"cannot restore the table {self._path(name)}", problem) or StoreError(
                f"the table {self._path(name)} cannot be taken back to version {version}, which the newest commit names: "
                f"{problem}",
                hint="bring the table back, or `rollup recover CONF --rebuild`",
            ) from None
        # From here on the record's version and the restored one have the same rows; the next commit pins the new.

    def _append(self, name: str, files: Sequence[AddAction], number: int) -> None:
        if not self._tables[name].append(files, self._writer, number):
            level, properties = self._levels.get(name), self._properties(number)
            self._change(name, partial(add_files, level=level, files=files, properties=properties))
        self._appended[name] = self._appended.get(name, 0) + len(files)
        point("commit.level")

    def _replace(self, level: Duration, rewrite: Rewrite, number: int) -> None:
        """Put new rows in the place of a range."""
        name, keys = level.table_suffix, [key.name for key in self.aggregation.keys]
        full = Rewrite(rewrite.start, rewrite.end, self._with_retired(name, rewrite.rows))
        self._change(name, lambda table: replace(table, self._path(name), level, full, keys, self._properties(number)))

    def _change(self, name: str, action: Callable[[DeltaTable], object], versions: int = 1) -> None:
        """Let an action make at most so many new versions of a table, on top of the one this writer knows.

        A job that was paused while another took over may still append once when it wakes. As long as the newest record
        is ours, that version is put aside and the action tried again; when it is not, we are the one to stop.
        """
        written, path = self._tables[name], self._path(name)
        table, before, problem = written.table, written.version, Exception()
        for _ in range(_TRIES):
            self._still_ours()
            try:
                action(table)
                table.update_incremental()
                if table.version() - before <= versions or self._changed(name, before) <= versions:
                    written.version = table.version()
                    return
                problem = Exception("another writer is there")
            except (DeltaError, OSError) as error:
                problem = error
                table.update_incremental()
                if table.version() == before:
                    break
                if not self._changed(name, before):  # somebody has only put files together meanwhile
                    before = table.version()
                    continue
            self._still_ours()
            try:
                self._say_undone(name, before)
                table.restore(standing(path, before))
            except (DeltaError, OSError) as error:
                problem = error
                table.update_incremental()
                continue
            before = table.version()
        raise _unwritten(path, problem)

    def _changed(self, name: str, before: int) -> int:
        """How many versions after one have changed rows; those that other programs make of the same rows do not count."""
        return sum(made.changes for made in made_after(self._path(name), before))

    def _say_undone(self, name: str, version: int) -> None:
        """Say what another program has done to a table's rows, before it is undone: no commit holds it."""
        for made in made_after(self._path(name), version):
            if made.changes and not made.ours:
                log.warning(
                    "%s: version %d (%s) is of another program and is undone: only the job changes its tables",
                    self._path(name), made.version, made.operation,
                )  # fmt: skip

    def _still_ours(self) -> None:
        """Raise FencedError when another job has committed since this one did, StoreError when somebody has removed what it
        committed."""
        newest, name = max(self.records.numbers(), default=-1), self.aggregation.name
        last = -1 if self._last is None else self._last.number
        if newest < last:
            raise StoreError(
                f"commit {last} of {name} is gone from {self.records.folder}: somebody has removed it under the job",
                hint="bring it back, and start the job again",
            )
        if newest > last:
            raise FencedError(
                f"another job has made commit {newest} of {name}", hint="only one job may write an aggregation"
            )

    def _properties(self, number: int) -> CommitProperties:
        return CommitProperties(app_transactions=[Transaction(self._writer, number)])

    @property
    def _writer(self) -> str:
        """How the logs of the tables name this aggregation."""
        return f"rollup/{self.aggregation.name}"

    def _with_retired(self, name: str, rows: pa.Table) -> pa.Table:
        """Rows with null in the columns that the table keeps although they are no longer declared."""
        for column, kind in self._retired.get(name, {}).items():
            rows = rows.append_column(column, pa.nulls(rows.num_rows, kind))
        return rows

    def _state(self, record: Record, open_rows: bool) -> State:
        empty = State.empty(self.aggregation)
        rows = {
            level: self.records.read_rows(record.open[level.table_suffix])
            if open_rows and level.table_suffix in record.open
            else empty.open[level]
            for level in self.aggregation.levels
        }
        clocks = {level: record.clocks.get(level.table_suffix) for level in self.aggregation.levels}
        return State(clocks, rows, record.resume)


def _unwritten(path: Path, problem: Exception) -> StoreError:
    """The error of a table that cannot be written to."""
    what = f"cannot write to {path}"
    return refused_by_system(what, problem, _AGAIN) or StoreError(
        f"{what}: {problem}", hint=_FEATURE if "table features" in str(problem) else _AGAIN
    )


def delta_store(aggregation: Aggregation, engine: ColumnEngine, options: Mapping[str, Any]) -> DeltaStore:
    """The store that the options of a configuration describe: `path`, and how long what is over is kept."""
    made = DeltaStore(aggregation, engine, options["path"])
    if "keep_files" in options and (files := milliseconds(options["keep_files"])) is not None:
        made.vacuum_hours = math.ceil(files / _HOUR)
    if "keep_log" in options and (log := milliseconds(options["keep_log"])) is not None:
        made.keep_log = log
    return made
