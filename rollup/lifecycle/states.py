"""What a job goes on from beside its aggregations, and whether it could: the statements, their sinks, the checkpoint.

`recover`, `status` and `verify` ask all of them; what one of them cannot be taken up from is said by each command, in the
words in which the job refuses to start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from rollup.conf import Conf
from rollup.core.errors import not_done
from rollup.hosts.spark.log_sums import LogSums
from rollup.hosts.spark.ownership import owner_of
from rollup.hosts.statements.outlets import outlets_of
from rollup.lifecycle.lease.places import held, leases_of
from rollup.program import Program
from rollup.sinks.base import Held, Sink, Summed
from rollup.statements.committed.commits import Commits, Saved, changed, fingerprint
from rollup.stores.dead_letters import DeadLetters


class Examined(Protocol):
    """Something that has state."""

    def examine(self) -> str | None:
        """What it has, in a line; None where there is nothing to tell. Raises RollupError where no job could go on from it."""
        ...


@dataclass
class Statements:
    """The newest commit of the statements, with every file that it names; `saved` once it was found to be whole."""

    commits: Commits
    saved: Saved | None = None

    def examine(self) -> str | None:
        self.saved = self.commits.whole()
        return "statements: no commit yet" if self.saved is None else f"statements: commit {self.saved.number} is whole"


@dataclass(frozen=True)
class Outlet:
    """A sink: whether it can be asked, and how far it is behind."""

    stream: str
    sink: Sink
    saved: Saved

    def examine(self) -> str | None:
        if not self.sink.tells:
            return None
        held, given = self.sink.held(self.saved.id), self.saved.outputs.get(self.stream, Held(0)).rows
        has = 0 if held is None else held.rows
        since = self.saved.sinks.get(self.stream, ("", 0))[1]
        behind = (
            "" if has >= given or since >= given else "; the next start brings what it lacks, or says that it is gone"
        )
        return f"sink of {self.stream}: {self.sink.place} has {has} of {given} rows{behind}"


@dataclass(frozen=True)
class Checkpoint:
    """What Spark and we have written into the checkpoint."""

    conf: Conf
    program: Program

    def examine(self) -> str | None:
        owner_of(self.conf.checkpoint)
        for stream in self.program.inputs:
            LogSums(self.conf.checkpoint / stream).verify()
        return None


def states(conf: Conf, program: Program) -> Iterator[Examined]:
    """All of a configuration, each to be examined before the next is asked for: which rows sinks should have is known where
    the statements' commit can be read."""
    yield Checkpoint(conf, program)
    if program.statements is not None:
        statements = Statements(Commits.beside(conf.tables))
        yield statements
        if statements.saved is not None:
            for stream, sink in outlets_of(conf, program).items():
                yield Outlet(stream, sink, statements.saved)


def damaged(conf: Conf, program: Program) -> Iterator[tuple[str, str]]:
    """Files of sinks and of dead letters that are no longer as they were written, each behind what it is of."""
    places: dict[str, Summed] = {"DEAD_LETTERS": DeadLetters(conf.tables)}
    if program.statements is not None:
        sinks = outlets_of(conf, program).items()
        places |= {f"the sink of {stream}": sink for stream, sink in sinks if isinstance(sink, Summed)}
    for name, place in places.items():
        try:
            yield from ((name, file) for file in place.damaged())
        except OSError as problem:
            raise not_done(f"cannot read the files of {name}", problem) from None


def changed_statements(conf: Conf, program: Program, accept: bool) -> list[str]:
    """The components of statements whose text is another than that of their state. With `accept` they begin anew, the others
    keep what they have. Raises StoreError when a job is at work."""
    commits = Commits.beside(conf.tables)
    saved = commits.whole() if program.statements is not None else None
    if saved is None or program.statements is None:
        return []
    names = changed(saved, {part.name: fingerprint(part, program.streams) for part in program.statements.parts})
    if names and accept:
        with held(leases_of(conf, program, "change")):
            commits.begin_anew(saved, names)
    return names
