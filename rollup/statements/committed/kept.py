"""Named windows and tables of an app's statements, as a commit has left them, for whoever only reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from rollup.core.errors import NoCommitError, StoreError
from rollup.plan.app import StreamDef
from rollup.statements.committed.commits import Commits, Saved, fingerprint, homes
from rollup.statements.compiled import Part
from rollup.statements.component import Keeping, Streams
from rollup.statements.values import schema_of

if TYPE_CHECKING:
    from rollup.program import Program


class _Place(NamedTuple):
    """Where one is kept: the block, and the name that it has there."""

    part: Part
    component: Keeping
    name: str


class Kept:
    """All of them by the names under which they are read; their columns are known without a commit.

    `tables` is the folder of a configuration's tables, beside which statements commit.
    """

    def __init__(self, tables: Path, program: Program) -> None:
        self._commits = Commits.beside(tables)
        self._found = dict(_all(program))
        parts = program.statements.parts if program.statements is not None else ()
        self._texts = {part.name: fingerprint(part, program.streams) for part in parts}
        self._last: tuple[tuple[int, ...], Saved] = (), Saved()

    note = "rows that statements keep, as their last commit left them"

    @property
    def names(self) -> list[str]:
        """What may be read."""
        return list(self._found)

    @cached_property
    def tables(self) -> Streams:
        """The columns of each."""
        return {shown: StreamDef(shown, at.component.stores[at.name].attributes) for shown, at in self._found.items()}

    def stream(self, name: str) -> StreamDef:
        """The columns of one."""
        return self.tables[name]

    def of(self, part: str) -> list[str]:
        """The names of those of one component."""
        return [shown for shown, at in self._found.items() if at.part.name == part]

    def newest(self) -> int:
        """The number of the last commit. Raises NoCommitError."""
        numbers = self._commits.numbers()
        if not numbers:
            raise NoCommitError("the statements have no commit yet", hint="start the job with `rollup run`")
        return numbers[-1]

    def made(self, number: int) -> str:
        """Differs between a commit and another of its number, as where the newest was removed and made again."""
        return "-".join(map(str, self._commits.identity(number)))

    def line(self, number: int) -> str:
        """The id of the line of commits that a commit belongs to. Raises StoreError as `rows` does."""
        return self._read(number).id

    def rows(self, shown: str, number: int) -> pa.Table:
        """What one of them held after a commit. Raises StoreError when that cannot be read, or is there no more."""
        part, component, name = self._found[shown]
        saved = self._read(number)
        places = homes(saved, self._texts)
        if (state := saved.states.get(places.get(part.name, ""))) is not None:
            return component.stored(state, name)
        if part.name in saved.states and part.name not in places.values():
            raise StoreError(
                f"{part.name} has changed since the last commit of the statements, and {shown} is that of the old text",
                hint="`rollup run` says how to go on",
            )
        return schema_of(component.stores[name]).empty_table()

    def _read(self, number: int) -> Saved:
        try:
            identity = self._commits.identity(number)
            last, saved = self._last
            if not identity or last != identity:  # what is not there is told by reading it
                saved = self._commits.read(number)
                self._last = identity, saved
        except FileNotFoundError:
            raise StoreError(f"commit {number} of the statements is gone", hint="ask again") from None
        return saved


def _all(program: Program) -> Iterator[tuple[str, _Place]]:
    """Each with its place; of those that have one name, the first goes by it, and the others by their block's too."""
    taken = {name.casefold() for name in program.aggregations}
    shared = set[str]()
    for part in program.statements.parts if program.statements is not None else ():
        if not isinstance(part.component, Keeping):
            continue
        for name, stream in part.component.stores.items():
            if name in shared:
                continue  # a table that blocks of SQL share is the same in each
            shown = _free(name, part.name, taken)
            taken.add(shown.casefold())
            shared |= {name} if stream.table is not None else set()
            yield shown, _Place(part, part.component, name)


def _free(name: str, owner: str, taken: Collection[str]) -> str:
    return name if name.casefold() not in taken else f"{owner}.{name}"
