"""Named windows and tables of an app's statements, as a commit has left them, for whoever only reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa

from rollup.conf import Conf
from rollup.core.errors import NoCommitError, StoreError
from rollup.hosts.statements.commits import FOLDER, Commits, Saved
from rollup.plan.app import StreamDef
from rollup.program import Program
from rollup.statements.component import Keeping, Streams
from rollup.statements.values import schema_of


class Kept:
    """All of them by the names under which they are read; their columns are known without a commit."""

    def __init__(self, conf: Conf, program: Program) -> None:
        self._commits = Commits(conf.tables / "_rollup" / FOLDER)
        self._found = {shown: (owner, name, part) for shown, owner, name, part in _all(program)}
        self._saved = Saved()

    @property
    def tables(self) -> Streams:
        """What may be read."""
        return {shown: StreamDef(shown, part.stores[name].attributes) for shown, (_, name, part) in self._found.items()}

    def newest(self) -> int:
        """The number of the last commit. Raises NoCommitError."""
        numbers = self._commits.numbers()
        if not numbers:
            raise NoCommitError("the statements have no commit yet", hint="start the job with `rollup run`")
        return numbers[-1]

    def rows(self, shown: str, number: int) -> pa.Table:
        """What one of them held after a commit. Raises StoreError when that cannot be read, or is there no more."""
        owner, name, part = self._found[shown]
        state = self._read(number).states.get(owner)
        if state is None:
            return schema_of(part.stores[name]).empty_table()
        return part.stored(state, name)

    def _read(self, number: int) -> Saved:
        saved = self._saved
        if saved.number == number:
            return saved
        try:
            saved = self._commits.read(number)
        except FileNotFoundError:
            raise StoreError(f"commit {number} of the statements is gone", hint="ask again") from None
        self._saved = saved
        return saved


def _all(program: Program) -> Iterator[tuple[str, str, str, Keeping]]:
    """Each with its component; of those that have one name, the first goes by it, and the others by their block's too."""
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
            yield shown, part.name, name, part.component


def _free(name: str, owner: str, taken: Collection[str]) -> str:
    return name if name.casefold() not in taken else f"{owner}.{name}"
