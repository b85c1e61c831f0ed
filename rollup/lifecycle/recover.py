"""Commit records lost or damaged: what there is, going back to a whole commit, or rebuilding from the tables."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from rollup.checkpoint.records import RecordFolder
from rollup.conf import Conf
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError, SystemFault
from rollup.hosts.pipeline import Pipeline
from rollup.hosts.spark.recovery_points import RecoveryPoints
from rollup.lifecycle.book import Book, folder
from rollup.lifecycle.lease.places import held, lease_of
from rollup.lifecycle.remake import mend, remake
from rollup.lifecycle.replay.compare import readable
from rollup.plan.aggregation import Aggregation
from rollup.stores.base import FiledStore, Store
from rollup.stores.delta.missing import damage
from rollup.stores.registry import open_store


@dataclass(frozen=True)
class Found:
    """The commit records of an aggregation: the numbers that can be used and, for the others, why not."""

    whole: tuple[int, ...]
    damaged: Mapping[int, str]

    @property
    def healthy(self) -> bool:
        """Whether a job can start from the newest record."""
        return bool(self.whole) and not any(number > self.whole[-1] for number in self.damaged)


@dataclass(frozen=True)
class Recovered:
    """What a recovery did, for people to read."""

    aggregation: str
    lines: tuple[str, ...]


def look(commits: RecoveryPoints) -> Found:
    """Read every record and the open rows that it names. Raises SystemFault where the system refuses one now."""
    whole, damaged = list[int](), dict[int, str]()
    for number in commits.records.numbers():
        try:
            commits.whole(number)
            whole.append(number)
        except SystemFault:
            raise  # what cannot be read now is not damaged
        except StoreError as problem:
            damaged[number] = problem.message
    return Found(tuple(whole), damaged)


def recover(
    conf: Conf, aggregation: Aggregation, to_commit: int | None = None, rebuild: bool = False, named: bool = False
) -> Recovered:
    """Make an aggregation startable again.

    Without options, records and tables that are whole are left alone, and open rows are rebuilt from the finer tables
    only when there is no usable record. `rebuild` makes damaged tables anew, and a whole aggregation only when it is
    `named`, since that loses what is open at the finest level. `to_commit` goes back to an older record, and the next start of the job takes the
    streaming query's log back to it, so that what came after is taken again. Raises StoreError when a job is running
    or going back is not possible.
    """
    with held([lease_of(conf, aggregation, "recover")]):
        Book.of(conf, aggregation.name).page()  # refused by name when it is damaged
        store = open_store(conf, aggregation, ColumnEngine(threads=2))
        filed = store.filed
        if filed is None:
            return _database(conf, aggregation, store, to_commit, rebuild, named)
        records = RecordFolder(folder(conf, aggregation.name))
        records.retired()
        commits = RecoveryPoints(aggregation.name, filed.root, records, conf.checkpoint)
        found = look(commits)
        if to_commit is not None:
            return _go_back(conf, commits, found, to_commit)
        broken = damage(filed.root, aggregation.name, records.read(found.whole[-1])) if found.healthy else {}
        if broken:
            return _remade(conf, aggregation, filed, found.whole[-1], broken, rebuild)
        if found.healthy and not (rebuild and named):
            return Recovered(aggregation.name, _whole(aggregation, found.whole[-1], rebuild))
        if found.whole and not rebuild:
            newest, back = max(found.damaged), next(commits.possible(), None)
            command = f"rollup recover CONF --aggregation {aggregation.name} --to-commit {back}"
            cure = f"`{command}` loses nothing while Spark's checkpoint is there; "
            raise StoreError(
                f"commit {newest} of {aggregation.name} is damaged: {found.damaged[newest]}; "
                + ("there is none to go back to" if back is None else f"commit {back} is whole"),
                hint=f"{'' if back is None else cure}--rebuild uses the tables alone",
            )
        return _rebuild(conf, aggregation, records, found)


def _whole(aggregation: Aggregation, number: int, rebuild: bool) -> tuple[str, ...]:
    lines = [f"commit {number} is whole: nothing to recover"]
    if rebuild:
        lines.append(
            f"to rebuild it all the same, and lose what is open at {aggregation.root.plural}: "
            f"--rebuild --aggregation {aggregation.name}"
        )
    return tuple(lines)


def _remade(
    conf: Conf, aggregation: Aggregation, store: FiledStore, number: int, broken: Mapping[str, str], rebuild: bool
) -> Recovered:
    """Damaged tables made anew beside a record that is whole. Raises StoreError unless `rebuild` says to do it."""
    if not rebuild:
        raise StoreError(
            f"commit {number} of {aggregation.name} is whole, its tables are not: {'; '.join(broken.values())}",
            hint="bring them back, or --rebuild makes each anew from the next finer one; the finest keeps what it has, and a replay brings the rest",
        )
    lines = remake(store, Book.of(conf, aggregation.name).page(), broken)
    Book.of(conf, aggregation.name).note("recover", remade=lines, damaged=dict(broken))
    return Recovered(aggregation.name, tuple(lines))


def _database(
    conf: Conf, aggregation: Aggregation, store: Store, to_commit: int | None, rebuild: bool, named: bool
) -> Recovered:
    """A database keeps record and rows in one transaction, so there is nothing between whole and lost.

    Raises StoreError when the record is damaged or a table is gone, unless `rebuild` says to go by the tables alone.
    """
    if to_commit is not None:
        raise StoreError(
            f"a database keeps one commit of {aggregation.name}, the newest", hint="--rebuild uses the tables alone"
        )
    try:
        loaded = store.load()
    except StoreError as problem:
        if not rebuild:
            raise
        mended = _mended(conf, aggregation, store, problem)
        if mended is not None:
            return mended
        loaded = None
    if loaded is not None and not (rebuild and named):
        return Recovered(aggregation.name, _whole(aggregation, loaded.number, rebuild))
    if rebuild:
        store.forget()
    return _rebuild(conf, aggregation, RecordFolder(folder(conf, aggregation.name)), Found((), {}))


def _mended(conf: Conf, aggregation: Aggregation, store: Store, problem: StoreError) -> Recovered | None:
    """Beside what a database still has, what is gone made anew; None where only the tables of levels can be gone by.

    Raises the problem where it is of another kind.
    """
    salvaged = store.salvaged
    if salvaged is None:
        return None
    found = salvaged.salvage()
    if found.whole:
        raise problem
    page = Book.of(conf, aggregation.name)
    lines = mend(salvaged, page.page(), found)
    if lines is None:
        return None
    page.note("recover", remade=lines, damaged={"": problem.message})
    return Recovered(aggregation.name, tuple(lines))


def _go_back(conf: Conf, commits: RecoveryPoints, found: Found, number: int) -> Recovered:
    if number not in found.whole:
        possible = ", ".join(map(str, commits.possible())) or "none"
        raise StoreError(f"there is no whole commit {number}", hint=f"those to go back to: {possible}")
    lines = commits.check(number)
    gone = [n for n in commits.records.numbers() if n > number]
    _aside(commits.records, gone)
    Book.of(conf, commits.name).note("recover", to_commit=number, removed=gone)
    said = f"commit {number} is the newest now; {len(gone)} later ones were put aside"
    return Recovered(commits.name, (said, *lines))


def _aside(records: RecordFolder, numbers: list[int]) -> None:
    """Move records away; they are kept for whoever wants to look."""
    if not numbers:
        return
    place = records.folder / f"aside-{int(time.time() * 1000)}"
    place.mkdir()
    for number in numbers:
        path = records.path(number)
        path.rename(place / path.name)


def _rebuild(conf: Conf, aggregation: Aggregation, records: RecordFolder, found: Found) -> Recovered:
    _aside(records, records.numbers())
    engine = ColumnEngine(threads=2)
    store = open_store(conf, aggregation, engine)
    pipeline = Pipeline(aggregation, store, engine)
    pipeline.start()
    if pipeline.number == 0:
        return Recovered(aggregation.name, ("the tables are empty: the job starts from nothing",))
    lines = [_level(pipeline, level) for level in aggregation.levels]
    resume = pipeline.state.resume
    lines.append(
        f"lost: what was still open at {aggregation.root.plural}"
        + ("" if resume is None else f", that is events from {readable(resume)} on")
    )
    lines.append(
        "events that are sent again count from there on; earlier ones are known to be in the tables and are dropped"
    )
    lines.append(
        "with its checkpoint the stream goes on after its last batch: bring the lost ones back with `rollup replay` once newer "
        "ones have come"
    )
    Book.of(conf, aggregation.name).note("recover", rebuilt=lines, damaged=dict(found.damaged))
    return Recovered(aggregation.name, tuple(lines))


def _level(pipeline: Pipeline, level: Duration) -> str:
    aggregation = pipeline.aggregation
    if level is aggregation.root:
        return f"{level.plural}: {pipeline.store.snapshot().sizes()[level].rows} rows as they are"
    finer = aggregation.levels[aggregation.levels.index(level) - 1]
    rows, closed = pipeline.state.open[level].num_rows, pipeline.rebuilt.get(level, 0)
    return f"{level.plural}: {rows} open rows from {aggregation.table(finer)}; {closed} turned out to be closed"
