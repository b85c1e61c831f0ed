"""Where leases are kept: files beside Delta's commit records, rows of a table beside a database's."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rollup.conf import Conf
from rollup.core.errors import ConfigError, StoreError
from rollup.core.objects import create, is_object, names_in, renew, replace_durably
from rollup.lifecycle.book import folder
from rollup.lifecycle.lease.holding import TIMEOUT, Lease
from rollup.plan.aggregation import Aggregation
from rollup.program import Program
from rollup.statements.committed.commits import Commits
from rollup.stores.registry import database

LEAST_AFAR = 6.0
"""Seconds without a sign of life that a job in an object store is given at least: such a store says times in whole seconds."""
_LEASE = re.compile(r"lease-(\d+)\.json")


def lease_of(conf: Conf, aggregation: Aggregation, what: str, timeout: float = TIMEOUT) -> Lease:
    """The lease of an aggregation, where its store is."""
    options = database(conf, aggregation)
    if options is None:
        return _in_files(folder(conf, aggregation.name), what, timeout)
    from rollup.stores.sql.lease import Rows

    return Lease(Rows(options, aggregation.name), what, timeout)


def lease_of_statements(conf: Conf, what: str, timeout: float = TIMEOUT) -> Lease:
    """That of the statements of an app, which are written by whoever has the leases of its aggregations, if it has any."""
    return _in_files(Commits.beside(conf.tables).folder, what, timeout)


def _in_files(folder: Path, what: str, timeout: float) -> Lease:
    """A lease in a folder. Raises ConfigError where its holder could not show in time that it lives."""
    if timeout < LEAST_AFAR and is_object(str(folder)):
        raise ConfigError(
            f"a takeover after {timeout:g} s, with a lease in {folder}",
            hint=f"{LEAST_AFAR:g} seconds or more: an object store says times in whole seconds",
        )
    return Lease(Files(folder), what, timeout)


def leases_of(conf: Conf, program: Program, what: str, timeout: float = TIMEOUT) -> list[Lease]:
    """The leases that a job takes."""
    named = program.aggregations
    if not named and program.statements is not None:
        return [lease_of_statements(conf, what, timeout)]
    return [lease_of(conf, named[name], what, timeout) for name in sorted(named)]


@contextmanager
def held(leases: Iterable[Lease], hint: str = "stop it first") -> Generator[None]:
    """Holds leases for the length of a `with`. Raises StoreError when somebody else has one of them."""
    with ExitStack() as taken:
        for lease in leases:
            if not lease.take():
                raise StoreError(f"{lease.holder()} is at work", hint=hint)
            taken.callback(lease.release)
        yield


class Files:
    """Files `lease-<n>.json`, each of which can be made once; a heartbeat is the time of a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name

    def newest(self) -> int:
        try:
            found = names_in(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except OSError as problem:
            raise self._unreadable(self.folder, problem) from None
        return max((int(lease[1]) for name in found if (lease := _LEASE.fullmatch(name))), default=0)

    def read(self, number: int) -> tuple[str, float] | None:
        path = self._path(number)
        try:
            return path.read_text(errors="replace"), path.stat().st_mtime
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise self._unreadable(path, problem) from None

    def add(self, number: int, holder: str) -> bool:
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                create(self._path(number), holder.encode())
            except FileExistsError:
                return False
        return True

    def beat(self, number: int) -> None:
        with self._writing():
            renew(self._path(number))

    def blank(self, number: int) -> None:
        with self._writing():
            replace_durably(self._path(number), b"{}")

    def remove(self, number: int) -> None:
        with self._writing():
            self._path(number).unlink(missing_ok=True)

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except OSError as problem:
            raise StoreError(
                f"cannot write {self.folder}: {problem.strerror}", hint="the job needs to write there"
            ) from None

    def _unreadable(self, path: Path, problem: OSError) -> StoreError:
        return StoreError(
            f"cannot read {path}: {problem.strerror}", hint="without it nobody knows whether a job is at work"
        )

    def _path(self, number: int) -> Path:
        return self.folder / f"lease-{number:06d}.json"
