"""What a store must do, whatever it is made of. One store keeps one aggregation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from rollup.aggregation.recovery import Tables
from rollup.aggregation.state import State
from rollup.checkpoint.records import Record, RecordFolder
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError
from rollup.plan.aggregation import EVENTS, KIND, TIMESTAMP, ZONE, Aggregation
from rollup.retrieval.as_of import AsOf
from rollup.retrieval.questions import Ask, Question
from rollup.retrieval.since import Interval, Mark
from rollup.stores.salvage import Salvage


@dataclass(frozen=True)
class Rewrite:
    """New rows (`Aggregation.table_schema`) for all with start <= AGG_TIMESTAMP < end; None is no bound."""

    start: int | None
    end: int | None
    rows: pa.Table

    @property
    def removes(self) -> bool:
        """Whether it is retention: everything before `end` goes and nothing comes."""
        return self.start is None and self.end is not None and not self.rows.num_rows


@dataclass(frozen=True)
class Commit:
    """What one batch changes; it becomes visible whole or not at all.

    `number` counts commits of the aggregation from 1; `source` says what has been consumed, e.g. the id of the
    streaming query and its batch, so that a batch that comes again is known. `rewrites` are made before `closed` is
    added: replay, repair and retention change the past with them.
    """

    number: int
    state: State
    closed: Mapping[Duration, pa.Table]
    ledger: pa.Table | None = None
    source: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rewrites: Mapping[Duration, Rewrite] = field(default_factory=dict[Duration, Rewrite])


@dataclass(frozen=True)
class Filed:
    """A commit whose rows are in files already, written where they were made; else as `Commit`.

    `state` has the clocks; `added` are the data files of each table as its format names them, `open` the files of open
    rows, both by table.
    """

    number: int
    state: State
    added: Mapping[str, Sequence[Any]]
    open: Mapping[str, Sequence[str]]
    source: Mapping[str, Any]
    rewrites: Mapping[Duration, Rewrite] = field(default_factory=dict[Duration, Rewrite])


@dataclass(frozen=True)
class Size:
    """What a level's table takes: rows (parts of a corrected row count each) and bytes on disk."""

    rows: int
    bytes: int


@dataclass(frozen=True)
class Damaged:
    """A data file that is not what was written: its table, level (None: late events), and first and last bucket."""

    table: str
    level: Duration | None
    file: str
    low: int
    high: int

    def touches(self, span: tuple[int, int]) -> bool:
        """Whether a range can have rows of it."""
        return self.low < span[1] and span[0] <= self.high


@dataclass(frozen=True)
class Loaded:
    """The newest commit of a store."""

    number: int
    state: State
    source: Mapping[str, Any]


def before_added(column: str) -> int | None:
    """What rows from before have in a column added later: null, and in those that order values what never wins.

    >>> before_added("AGG_SUM_x"), before_added("AGG_LAST_ARRIVAL")
    (None, -9223372036854775807)
    """
    if column in ("AGG_LAST_EVENT_TIMESTAMP", "AGG_LAST_ARRIVAL"):
        return -(2**63) + 1
    return 2**63 - 1 if column in ("AGG_FIRST_EVENT_TIMESTAMP", "AGG_FIRST_ARRIVAL") else None


def ledger_schema(aggregation: Aggregation) -> pa.Schema:
    """Arrow schema of counted late events."""
    keys = [(key.name, key.type.arrow) for key in aggregation.keys]
    counted = [(KIND, pa.string()), (EVENTS, pa.int64())]
    return pa.schema([(TIMESTAMP, pa.int64()), (ZONE, pa.string()), *keys, *counted])


def newest_alone(aggregation: Aggregation) -> StoreError:
    """The refusal of an earlier commit by a store that changes its rows in place."""
    return StoreError(
        f"the store of {aggregation.name} has its newest commit alone",
        hint="questions `as of` an earlier one need a Delta store",
    )


class Snapshot(Protocol):
    """One consistent moment of a store: readers see every commit whole."""

    @property
    def number(self) -> int:
        """The number of the commit."""
        ...

    def answer(self, question: Question, **tables: pa.Table) -> pa.Table:
        """The rows that answer a question; `tables` are further relations its query reads (`request`)."""
        ...

    def loaded(self) -> Loaded:
        """The state and the source marks of this commit."""
        ...

    def rows(self, level: Duration, start: int | None = None, end: int | None = None) -> pa.Table:
        """Stored rows with start <= AGG_TIMESTAMP < end (`table_schema`); a corrected row may come in parts."""
        ...

    def ledger(self) -> pa.Table:
        """Every late event counted: AGG_TIMESTAMP of its own root bucket, AGG_TIMEZONE, keys, AGG_KIND, AGG_EVENTS."""
        ...

    def sizes(self) -> Mapping[Duration, Size]:
        """What each level's table takes."""
        ...

    def extent(self, level: Duration) -> tuple[int, int] | None:
        """The least and greatest AGG_TIMESTAMP of a level's stored rows; None when it has none."""
        ...

    def committed(self) -> float:
        """When this commit was made, seconds since the epoch."""
        ...

    def mark(self, commit: int | None = None) -> Mark | None:
        """The mark of this commit, or of an earlier one; None for one of which nothing is kept."""
        ...

    def changed(self, level: Duration, earlier: Snapshot | int) -> list[Interval] | None:
        """Where stored rows of a level may be others than in an earlier commit; None where nobody knows any more."""
        ...

    @property
    def in_files(self) -> FiledSnapshot | None:
        """The snapshot itself where its rows are files that other engines can read beside this one."""
        ...

    def close(self) -> None:
        """Let go of what it holds in a database; it is not asked again."""
        ...


class FiledSnapshot(Snapshot, Protocol):
    """A moment of a store whose rows lie in files."""

    @property
    def serial(self) -> int:
        """Another one for every snapshot of this process: two of one serial are the same moment."""
        ...

    @property
    def open(self) -> pa.Table:
        """All open rows, see `rollup.retrieval.questions.open_rows`."""
        ...

    def version(self, level: Duration) -> int:
        """The version of a level's table in this commit."""
        ...

    def files(self, level: Duration, start: int | None = None, end: int | None = None) -> list[str]:
        """The data files of a level that can hold rows of a range."""
        ...

    def all_files(self) -> list[str]:
        """The data files of every level."""
        ...

    def damaged(self) -> list[Damaged]:
        """The data files of every table whose checksums are others."""
        ...

    def unproven(self, level: Duration, start: int, end: int) -> list[str]:
        """The data files of a level that can hold rows of a range and have no checksum: nothing says they are whole."""
        ...

    def inlined(self, ask: Ask, tables: dict[str, pa.Table]) -> str:
        """The question as SQL without parameters for DuckDB; what else it reads is put into `tables`."""
        ...


class Store(Tables, Protocol):
    """The tables of one aggregation."""

    @property
    def apart(self) -> ApartStore | None:
        """The store itself where a job need not stand by for its commits."""
        ...

    @property
    def filed(self) -> FiledStore | None:
        """The store itself where its tables and records are files, which others than the store can write."""
        ...

    @property
    def salvaged(self) -> SalvagedStore | None:
        """The store itself where tables or records that are gone leave the others to be read and added to."""
        ...

    def load(self) -> Loaded | None:
        """The newest commit, with all leftovers of an unfinished one removed; None when there is none."""
        ...

    def commit(self, commit: Commit) -> None:
        """Make a commit visible. Raises FencedError when its number is taken."""
        ...

    def snapshot(self) -> Snapshot:
        """The newest commit, to read from."""
        ...

    def as_of(self, moment: AsOf) -> Snapshot:
        """An earlier commit. Raises StoreError where it is not kept, which says how far back the kept ones go."""
        ...

    def forget(self) -> None:
        """Remove commit records and open rows: only the levels' tables survive."""
        ...

    def evolve(self, added: pa.Schema, retired: Collection[str]) -> None:
        """Add columns, `before_added` in the rows there are, and keep `retired` columns of the tables."""
        ...

    def maintain(self, budget: float) -> dict[str, int]:
        """Put small files together for about `budget` seconds; how many, by table. The next commit makes it visible."""
        ...

    def release(self, pin: Callable[[], object]) -> int:
        """Remove what only older commits need and whose time is over; how many files. `pin` makes a commit.

        Nobody else may write meanwhile.
        """
        ...


class ApartStore(Store, Protocol):
    """A store whose commits are the work of another process, such as a database."""

    def begin(self, commit: Commit) -> Callable[[], None]:
        """Do what of a commit needs neither the store nor the commit before it; calling what is returned makes it."""
        ...


class SalvagedStore(Store, Protocol):
    """A store that says what there is although `load` raises, and then takes a commit that makes the rest anew."""

    aggregation: Aggregation
    engine: ColumnEngine

    def salvage(self) -> Salvage:
        """What there is. Tables that are gone count as empty, and the next commit makes them."""
        ...


class FiledStore(Store, Protocol):
    """A store of files: tasks write their rows themselves, and what is left of damaged tables is used again."""

    aggregation: Aggregation
    engine: ColumnEngine
    root: Path
    records: RecordFolder

    @property
    def last(self) -> Record | None:
        """The commit that the next one follows."""
        ...

    @property
    def retired(self) -> Mapping[str, Mapping[str, pa.DataType]]:
        """By table, the columns that rows written from outside must have null in."""
        ...

    def load(self, open_rows: bool = True) -> Loaded | None:
        """As `Store.load`; without `open_rows` the state has none."""
        ...

    def commit(self, commit: Commit | Filed) -> None:
        """As `Store.commit`, also of rows in files."""
        ...

    def remake(self, damaged: Collection[str], aside: Path) -> Loaded:
        """Take up at the newest commit although some tables are damaged: those are empty now, the old ones in `aside`."""
        ...
