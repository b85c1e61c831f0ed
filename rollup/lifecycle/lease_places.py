"""Where leases are kept: files beside Delta's commit records, rows of a table beside a database's."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from rollup.conf import Conf
from rollup.errors import StoreError
from rollup.lifecycle.book import folder
from rollup.lifecycle.lease import TIMEOUT, Lease
from rollup.plan.aggregation import Aggregation
from rollup.stores.delta_record import write_durably
from rollup.stores.registry import database


def lease_of(conf: Conf, aggregation: Aggregation, what: str, timeout: float = TIMEOUT) -> Lease:
    """The lease of an aggregation, where its store is."""
    options = database(conf, aggregation)
    if options is None:
        return Lease(Files(folder(conf, aggregation.name)), what, timeout)
    from rollup.stores.sql_lease import Rows

    return Lease(Rows(options, aggregation.name), what, timeout)


class Files:
    """Files `lease-<n>.json` made with `link`, which fails when the name exists; a heartbeat is the time of a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name

    def newest(self) -> int:
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return 0
        found = (name for name in names if name.startswith("lease-") and name.endswith(".json"))
        return max((int(name[6:-5]) for name in found), default=0)

    def read(self, number: int) -> tuple[str, float] | None:
        path = self._path(number)
        try:
            return path.read_text(), path.stat().st_mtime
        except OSError:
            return None

    def add(self, number: int, holder: str) -> bool:
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            draft = self._draft()
            write_durably(draft, holder.encode())
            try:
                os.link(draft, self._path(number))
            except FileExistsError:
                return False
            finally:
                draft.unlink(missing_ok=True)
        return True

    def beat(self, number: int) -> None:
        with self._writing():
            os.utime(self._path(number))

    def blank(self, number: int) -> None:
        with self._writing():
            draft = self._draft()
            draft.write_text("{}")
            draft.rename(self._path(number))

    def remove(self, number: int) -> None:
        self._path(number).unlink(missing_ok=True)

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except OSError as problem:
            raise StoreError(
                f"cannot write {self.folder}: {problem.strerror}", hint="the job needs to write there"
            ) from None

    def _draft(self) -> Path:
        return self.folder / f".lease.{os.getpid()}.{id(self)}"

    def _path(self, number: int) -> Path:
        return self.folder / f"lease-{number:06d}.json"
