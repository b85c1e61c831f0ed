"""StreamCruncher in an app: one running query a block, whose rows go where `into` says.

Every stream has a column `rowtime`, the time of its events; events of one instant are one cycle, which is over when a
later one comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from rollup.core.errors import PlanError
from rollup.engine.rows.cycles.running import Batch
from rollup.engine.state import State
from rollup.lang.sections import Section
from rollup.lang.streamcruncher.kernel import Cruncher
from rollup.lang.streamcruncher.reader import read_query
from rollup.plan.types import Type
from rollup.statements.columns import ROWTIME
from rollup.statements.component import Described, Event, Names, Streams
from rollup.statements.rows import Emitted, OnRows
from rollup.statements.values import plain_row

_TYPES = {Type.STRING: "str", Type.OBJECT: "str"}


class StreamCruncher:
    """The language's entry; see `rollup.statements.component.Language`."""

    def names(self, section: Section) -> Names:
        """The streams under the partitions; what is written is only said by `into`."""
        return Names(frozenset(chain.stream for chain in read_query(section.placed).chains), frozenset())

    def compile(self, section: Section, streams: Streams, names: Names) -> CruncherBlock:
        """The query over the streams. Raises SyntaxProblem or PlanError with the place."""
        return CruncherBlock(section, streams, names)


@dataclass
class Running:
    """A kernel and what its query has given."""

    cruncher: Cruncher
    now: int
    found: list[Batch] = field(default_factory=list[Batch])


class CruncherBlock(OnRows[Running]):
    """A running query."""

    def __init__(self, section: Section, streams: Streams, names: Names) -> None:
        self._text = section.placed
        self._streams = {name: streams[name] for name in names.reads if name in streams}
        if section.into is None or section.into not in streams:
            raise PlanError(
                "where do the rows go?",
                hint="@lang('streamcruncher', into='T'), and define stream T with their columns",
            )
        self._target = streams[section.into]
        select = read_query(self._text).select
        count = len(select.named_selects) if isinstance(select, exp.Query) else 0
        if count != len(self._target.attributes):
            raise PlanError(f"the query selects {count} columns, {section.into} has {len(self._target.attributes)}")
        super().__init__(names.reads, {section.into: self._target})
        self.begun(0)

    @property
    def described(self) -> Described:
        return Described("rows", "one cycle an instant", "the rows of each partition")

    def begun(self, start: int) -> Running:
        running = Running(Cruncher(start), start)
        for name, stream in self._streams.items():
            columns = {column: _TYPES.get(kind, str(kind)) for column, kind in stream.attributes.items()}
            running.cruncher.define(name, {**columns, ROWTIME: "ts"}, ROWTIME)
        running.cruncher.register(self._text, running.found.append)
        return running

    def restored(self, state: State) -> Running:
        running = self.begun(int(state.scalars["begun"]))
        running.now = int(state.scalars["clock"])
        running.cruncher.restore([State(state.tables, state.scalars["query"])])
        return running

    def snapshot(self, running: Running) -> State:
        (state,) = running.cruncher.snapshot()
        return State(state.tables, {"begun": running.now, "clock": running.now, "query": dict(state.scalars)})

    def move(self, running: Running, to: int) -> None:
        if to > running.now:
            running.cruncher.advance(to - 1)
            running.now = to

    def send(self, running: Running, event: Event) -> None:
        running.cruncher.submit(event.stream, [(*event.values, running.now)], running.now)

    def taken(self, running: Running) -> Iterable[Emitted]:
        found, running.found[:] = list(running.found), []
        for batch in found:
            for row in batch.rows:
                yield batch.at, self._target.name, plain_row(row, self._target)
