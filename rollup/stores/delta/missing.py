"""What has happened to Delta tables: a folder deleted, a log cleaned up, data files vacuumed, bytes that are others.

Whoever makes rows of rows (compaction, repair, replay, change, recovery) asks first whether the files that it reads are
whole, so that a damaged value never gets into a file with a checksum of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rollup.checkpoint.checksums import verified
from rollup.checkpoint.records import Record, home, identity
from rollup.core.copies import all_near
from rollup.core.errors import LostCommitsError, NoCommitError, StoreError, SystemFault, not_done, refused_by_system
from rollup.core.objects import absent, at, holds_table
from rollup.plan.aggregation import Aggregation
from rollup.stores.delta.index import FileIndex
from rollup.stores.delta.standing import standing

HINT = (
    "bring it back, or `rollup recover CONF --rebuild` makes it anew from the next finer table"
    "; the finest keeps what it has, and a replay brings the rest"
)


def is_table(path: Path) -> bool:
    """Whether there is a Delta table. Raises SystemFault when the system refuses to say."""
    try:
        return holds_table(path)
    except OSError as problem:
        raise not_done(f"cannot look for the table {path}", problem) from None


def files_at(path: Path, version: int) -> tuple[FileIndex, pa.Schema]:
    """The files and the columns of a version of a table. Raises StoreError when it is gone, or has it no more; SystemFault
    when the system refuses it now."""
    try:
        table = DeltaTable(str(path), version=version)
        return FileIndex.of(table), pa.schema(table.schema().to_arrow())
    except (DeltaError, OSError) as problem:
        raise _unopened(path, version, problem) from None


def uncommitted(root: Path, aggregation: Aggregation) -> StoreError:
    """Why there is no commit of an aggregation: no job has made one yet, or the folder that says so has gone."""
    name = aggregation.name
    logs = [root / f"{name}_{level.table_suffix}" / "_delta_log" for level in aggregation.levels]
    versions = (int(each.stem) for log in logs for each in log.glob("[0-9]*.json") if each.stem.isdecimal())
    if not any(versions):  # the version 0 of a table is empty
        return NoCommitError(f"{name} has no commit yet in {root}", hint="start the job with `rollup run`")
    return LostCommitsError(
        f"the tables of {name} are in {root}, but {home(root, name)}, which says what of them is committed, has no commit",
        hint="bring it back; without it `rollup recover CONF --rebuild` goes by the tables alone, and loses what was open",
    )


def damage(root: Path, name: str, record: Record) -> dict[str, str]:
    """By suffix, what is wrong with the tables of aggregation `name` that a record pins; whole ones are left out.

    Raises SystemFault where the system refuses to say: that is no damage.
    """
    found: dict[str, str] = {}
    for suffix, version in record.versions.items():
        path = root / f"{name}_{suffix}"
        try:
            newest = standing(path, version)
            index = files_at(path, newest)[0]
            check_listed(path, record, suffix, newest, index)
            gone, bad = _gone(index.paths), damaged(index.paths)
        except SystemFault:
            raise
        except StoreError as problem:
            found[suffix] = problem.message
            continue
        if gone:
            found[suffix] = _without(path, gone)
        elif bad:
            found[suffix] = _damaged(bad)
    return found


def check_listed(path: Path, record: Record, suffix: str, version: int, index: FileIndex) -> None:
    """Raises StoreError when the log of a table lists other files at the version of a commit than the commit knows."""
    if version == record.versions[suffix] and record.sums.get(suffix, index.sum) != index.sum:
        raise StoreError(
            f"the log of the table {path} is damaged: what it lists at version {version} is not what commit "
            f"{record.number} knows of it",
            hint=HINT,
        )


def mistaken(root: Path, name: str, record: Record) -> set[str]:
    """The tables of aggregation `name`, by suffix, whose logs can be read and list what no commit has written."""
    found = set[str]()
    for suffix, version in record.versions.items():
        path = root / f"{name}_{suffix}"
        with suppress(StoreError):
            index = files_at(path, version)[0]
            found.add(suffix)
            check_listed(path, record, suffix, version, index)
            found.discard(suffix)
    return found


def damaged(files: Iterable[str]) -> list[str]:
    """The files, of those that are there, whose checksums are others than their names say."""
    listed = list(files)
    found = [(file, copy, identity(Path(copy))) for file, copy in zip(listed, fetched(listed), strict=True)]
    if len(found) < 2:
        return [file for file, copy, seen in found if not _whole(copy, seen)]
    with ThreadPoolExecutor(2, thread_name_prefix="checksum") as pool:
        whole = pool.map(lambda one: _whole(*one[1:]), found)
        return [file for (file, *_), fine in zip(found, whole, strict=True) if not fine]


@lru_cache(1 << 16)
def _whole(file: str, seen: tuple[int, ...]) -> bool:
    """Whether a file is what its name says, as long as it is the one that was `seen`; raises SystemFault."""
    try:
        if seen:
            verified(Path(file))
    except ValueError:
        return False
    except OSError as problem:
        raise not_done(f"cannot read {file}", problem) from None
    return True


def require_whole(files: Iterable[str]) -> None:
    """Raises StoreError when one of some files is damaged."""
    if bad := damaged(files):
        hint = "`rollup verify CONF` names all of them, --repair makes anew what whole rows can"
        raise StoreError(_damaged(bad), hint=hint)


def _damaged(bad: list[str]) -> str:
    more = "" if len(bad) == 1 else f", and {len(bad) - 1} more"
    return f"the file {bad[0]} is damaged: its checksum is another{more}"


def emptied(path: Path, version: int, aside: Path, keep: bool) -> None:
    """Move a damaged table aside; with `keep` it stays with what it has of a version, unless its log is beyond use."""
    if keep and is_table(path):
        try:
            table = DeltaTable(str(path))
            newest, index = FileIndex.of(table), files_at(path, standing(path, version))[0]
            for file in damaged({*newest.paths, *index.paths}):
                aside.mkdir(parents=True, exist_ok=True)
                at(file).rename(aside / at(file).name)
            there = set(newest.paths) - set(_gone(newest.paths))
            kept = set(index.paths) - set(_gone(index.paths))
            if table.version() != version and not (there and not kept):  # what another has changed is more than nothing
                table.restore(standing(path, version), ignore_missing_files=True)
            table.repair()
            return
        except (DeltaError, OSError) as problem:
            if refused := refused_by_system(f"cannot mend the table {path}", problem):
                raise refused from None
            # then it goes the way of the others
    if path.exists():
        aside.mkdir(parents=True, exist_ok=True)
        path.rename(aside / path.name)


def require(files: Iterable[str]) -> None:
    """Raises StoreError when one of some tables' files is not there, SystemFault when the system refuses to say."""
    if gone := _gone(files):
        raise StoreError(_without(at(gone[0]).parent, gone), hint=HINT)


@contextmanager
def reading(files: Callable[[], Iterable[str]]) -> Generator[None]:
    """Errors of DuckDB's that come from files of tables, in our words. Raises StoreError."""
    try:
        yield
    except duckdb.Error as problem:
        if type(problem) not in (duckdb.IOException, duckdb.InvalidInputException, duckdb.Error):
            raise
        if refused := refused_by_system("cannot read the tables", problem):
            raise refused from None
        found = list(files())
        try:
            require(found)
        except StoreError as missing:
            raise missing from None
        said = str(problem).splitlines()[0]
        if any(file in said for file in fetched(found)):
            raise StoreError(f"cannot read the tables: {said}") from None
        damaged = _unreadable(found) if type(problem) is duckdb.Error else None  # which names no file
        if damaged is not None:
            hint = "bring it back, or `rollup recover CONF` says what can be made anew"
            raise StoreError(f"the file {damaged} is damaged: {said}", hint=hint) from None
        raise  # of another file that a question names


def fetched(files: Sequence[str]) -> list[str]:
    """The same files where DuckDB reads them: those of an object store are copied here. Raises SystemFault."""
    try:
        return all_near(files)
    except OSError as problem:
        raise not_done(f"cannot read {problem.filename}", problem) from None


def _unreadable(files: Sequence[str]) -> str | None:
    """The first file that cannot be read as a whole."""
    for file, copy in zip(files, fetched(files), strict=True):
        try:
            with duckdb.connect() as own:
                own.read_parquet(copy).to_arrow_table()
        except duckdb.Error:
            return file
    return None


def _unopened(path: Path, version: int, problem: Exception) -> StoreError:
    if refused := refused_by_system(f"cannot open the table {path}", problem):
        return refused
    if not is_table(path):
        return StoreError(f"the table {path} is gone", hint=HINT)
    said = (str(problem).splitlines() or [""])[0]
    return StoreError(
        f"the table {path} has no version {version} any more, which the newest commit names: {said}", hint=HINT
    )


def _gone(files: Iterable[str]) -> list[str]:
    """Those that are not there. Raises SystemFault when a folder does not say."""
    try:
        return absent([at(file) for file in files])
    except OSError as problem:
        raise not_done(f"cannot look into {problem.filename}", problem) from None


def _without(path: Path, gone: list[str]) -> str:
    table = next((each for each in (path, *path.parents) if (each / "_delta_log").exists()), path)
    return f"the table {table} lacks {len(gone)} of its files, such as {Path(gone[0]).name}: another program has removed them"
