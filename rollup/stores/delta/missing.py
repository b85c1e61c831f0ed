"""What others have taken away from Delta tables: a folder deleted, a log cleaned up, data files vacuumed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rollup.checkpoint.records import Record, home
from rollup.core.errors import LostCommitsError, NoCommitError, StoreError, SystemFault, refused_by_system
from rollup.plan.aggregation import Aggregation
from rollup.stores.delta.index import FileIndex
from rollup.stores.delta.standing import standing

HINT = "bring it back, or `rollup recover CONF --rebuild` makes it anew from the next finer table"


def is_table(path: Path) -> bool:
    """Whether there is a Delta table. Raises SystemFault when the system refuses to say."""
    try:
        return DeltaTable.is_deltatable(str(path))
    except OSError as problem:
        what = f"cannot look for the table {path}"
        raise refused_by_system(what, problem) or StoreError(f"{what}: {problem}") from None


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
            gone = _gone(files_at(path, standing(path, version))[0].paths)
        except SystemFault:
            raise
        except StoreError as problem:
            found[suffix] = problem.message
            continue
        if gone:
            found[suffix] = _without(path, gone)
    return found


def emptied(path: Path, version: int, aside: Path, keep: bool) -> None:
    """Move a damaged table aside; with `keep` it stays with what it has of a version, unless its log is beyond use."""
    if keep and is_table(path):
        try:
            table = DeltaTable(str(path))
            newest = FileIndex.of(table)
            there = set(newest.paths) - set(_gone(newest.paths))
            index = files_at(path, standing(path, version))[0]
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
        raise StoreError(_without(Path(gone[0]).parent, gone), hint=HINT)


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
        if any(file in said for file in found):
            raise StoreError(f"cannot read the tables: {said}") from None
        damaged = _unreadable(found) if type(problem) is duckdb.Error else None  # which names no file
        if damaged is not None:
            hint = "bring it back, or `rollup recover CONF` says what can be made anew"
            raise StoreError(f"the file {damaged} is damaged: {said}", hint=hint) from None
        raise  # of another file that a question names


def _unreadable(files: Iterable[str]) -> str | None:
    """The first file that cannot be read as a whole."""
    for file in files:
        try:
            with duckdb.connect() as own:
                own.read_parquet(file).to_arrow_table()
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
        return [file for file in files if not Path(file).exists()]
    except OSError as problem:
        what = f"cannot look into {problem.filename}"
        raise refused_by_system(what, problem) or StoreError(f"{what}: {problem.strerror}") from None


def _without(path: Path, gone: list[str]) -> str:
    table = next((each for each in (path, *path.parents) if (each / "_delta_log").exists()), path)
    return f"the table {table} lacks {len(gone)} of its files, such as {Path(gone[0]).name}: another program has removed them"
