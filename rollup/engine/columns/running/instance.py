"""A deployed statement over columns: to the row executor an instance like others, to a batch a core.

An event that comes alone (another statement inserted it, or somebody sends events one by one) is a batch of one row, so
where a statement runs never changes what it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rollup.core.packing import pack, unpack
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.evaluate import carried, field
from rollup.engine.columns.finishing import Finishing
from rollup.engine.columns.running.varying import Varying
from rollup.engine.index import Entry
from rollup.engine.row import Delta, Row
from rollup.engine.rows.inputs import entry_of
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.journal import Heard
from rollup.engine.rows.plans import Select, StreamInput, Target, no_narrowing
from rollup.engine.rows.runner import Delivery
from rollup.engine.state import State
from rollup.engine.timers import Order, Phase
from rollup.engine.types import RowType

if TYPE_CHECKING:
    from rollup.engine.rows.contexts.partitions import Partition


class Opening:
    """Hears of events in the place of a context: of partitions that begin or end its statements tell before others."""

    def __init__(self, instance: ColumnInstance, core: Core) -> None:
        self._instance, self._core = instance, core
        self.order: Order = (instance.context, *instance.order[:1])

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """An event."""
        instance = self._instance
        if not instance.alive:
            return
        (place,) = inputs
        batch = instance.batch(place, (row,))
        if not self._core.opens(instance.state, batch):
            return
        if not instance.roomy(batch):  # it has begun, be it that the event is refused
            instance.state = self._core.opened(instance.state, batch)
        tell_together([(each, each.opened(place, row)) for each in instance.beside if each.told is not row])


class ColumnInstance(Instance):
    """A statement at work; `reads`: the streams that it reads, with their types."""

    def __init__(
        self, name: str, plan: Select, core: Core, reads: Mapping[str, RowType], where: Partition, order: Order
    ) -> None:
        super().__init__(name, (), (), where, order)
        self.plan, self._streams = plan, tuple(reads)
        variables = self.environment.variables
        self._core = Varying(core, variables)
        context = core.context
        self._finishing = Finishing.of(plan.finish)
        self._kinds = [list(kinds.fields.values()) for kinds in reads.values()]
        self._types = [carried(kind) for kind in self._kinds[0]]
        self._context = None if context is None else self.component.contexts[context]
        """The context whose partitions it has by itself."""
        self.told: Row | None = None
        """The event that was heard in the place of the context."""
        self._later: Output | None = None
        """What that event brought which is told in the statement's own turn."""
        self.state = self.core.start(self.runner.now)
        if self._context is not None:
            self._context.elsewhere.append(self)

    @property
    def core(self) -> Core:
        """The core, with the values that variables have."""
        return self._core.now

    @property
    def context(self) -> int:
        """The place of its context among all."""
        return 0 if self._context is None else self._context.order

    def take(self, batch: Batch) -> Output:
        """A batch of the stream; its rows are the caller's to tell."""
        self.state, output = self.core.step(self.state, batch)
        return self._finished(output)

    def catch_up(self, begun: int, heard: Sequence[Heard]) -> None:
        """Take what the statement has heard on rows, before it listens itself: it is told already."""
        self.state = self.core.start(begun)
        for stream, some in groupby(heard, key=itemgetter(0)):
            _, rows, times = zip(*some, strict=True)
            batch = self.batch(self._streams.index(stream), rows, times)
            whole = self.roomy(batch)
            for part in [batch] if whole else [batch.part(place, place + 1) for place in range(batch.rows)]:
                self.take(part)
        if self.state.scalars["now"] < self.runner.now:
            self.take(Batch.nothing(self._types, self.runner.now))

    def _finished(self, output: Output) -> Output:
        return (output if self._finishing is None else self._finishing.finished(output)).delivered

    def roomy(self, batch: Batch) -> bool:
        """Whether no event of a batch can be refused; of a batch of another stream it is nothing that is refused."""
        return batch.stream not in self._streams or self.core.roomy(self.state, batch)

    # as an instance

    def listen(self) -> None:
        """Hear of single events."""
        for stream, entry in self._entries:
            self._listening.add(stream, entry)
        if self.core.begins_first:
            for place, stream in enumerate(self._streams):
                self._listening.add(stream, Entry(Opening(self, self.core), place))

    @cached_property
    def _entries(self) -> list[tuple[str, Entry]]:
        match self.plan.inputs:
            case (StreamInput(filter=filter),) if not self.core.hears_all:
                return [(self._streams[0], entry_of(filter, self, 0, self.environment, no_narrowing))]
            case _:
                return [(stream, Entry(self, place)) for place, stream in enumerate(self._streams)]

    def stop(self) -> None:
        """The statement ends, and its partitions with it."""
        super().stop()
        if self._context is not None:
            self._context.elsewhere.remove(self)

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """One event of the stream that the one input stands for."""
        if self.alive and row is not self.told:
            (place,) = inputs
            self.tell(self.take(self.batch(place, (row,))))
            self.ask_timers()
        elif self.alive and self._later is not None:
            later, self._later = self._later, None
            self.tell(later)

    def opened(self, place: int, row: Row) -> Output:
        """An event of a stream with which a partition may begin or end, before it comes to all others: what is to be told of it
        then.
        """
        output, self._later = self.take(self.batch(place, (row,))).in_turn
        self.told = row
        self.ask_timers()
        return output

    def batch(self, place: int, rows: Sequence[Row], times: Sequence[int] | None = None) -> Batch:
        """Events of one of the streams as a batch; of now, unless their instants are given."""
        values = zip(*(row.values for row in rows), strict=True)
        columns = [field(list(each), kind) for each, kind in zip(values, self._kinds[place], strict=True)]
        return Batch.of(columns, times or [self.runner.now], stream=self._streams[place])

    def fire(self, phase: Phase, now: int) -> None:
        """What is due; a jump of the clock may have made it late."""
        if self.alive:
            together = self.beside if phase is Phase.CONTEXT else [self]
            tell_together([(each, each.late(phase, now)) for each in together])

    def late(self, phase: Phase, now: int) -> Output:
        """What is due brings this."""
        self.state, output = self.core.late(self.state, phase, Batch.nothing(self._types, now))
        self.ask_timers()
        return self._finished(output)

    @property
    def beside(self) -> list[ColumnInstance]:
        """The statements whose partitions begin and end together: those of one context, in their order."""
        if self._context is None or not self.core.ends:
            return [self]
        alive = (each for each in self._context.elsewhere if isinstance(each, ColumnInstance) and each.alive)
        return sorted(alive, key=lambda each: each.order)

    def paths(self) -> Sequence[tuple[Any, ...]]:
        """Its partitions that never end, as the row executor tells them apart."""
        return self.core.paths(self.state)

    def handed_back(self) -> Any | None:
        """Its partitions that end, as the row executor has them."""
        return self.core.handed_back(self.state)

    def ask_timers(self) -> None:
        """Ask for the next instants."""
        for phase, due in self.core.dues(self.state).items():
            self.runner.timers.ask(self, phase, due)

    def rest(self) -> None:
        """Ask for nothing and hear of nothing while a batch is under way; `listen` ends it."""
        self.runner.timers.forget(self)
        self._listening.stop()

    def tell(self, output: Output) -> None:
        """Tell listeners, and insert."""
        made, target = self.plan.made, self.plan.target
        if target is not None:
            for _, _, new, old in output.shared(made, target.takes).deliveries():
                self._insert(target, [*new, *old])
        for at, _, new, old in output.shared(made, self.plan.emitted).deliveries():
            delta = Delta([Row(0, each) for each in new], [Row(0, each) for each in old], not (new or old))
            self.runner.deliveries.append(Delivery(self.name, at, delta))

    def _insert(self, target: Target, rows: Sequence[Sequence[Any]]) -> None:
        for values in rows:
            self.component.insert(target.name, self.partition, self.row(target.of(values)))

    # state

    def rows(self) -> list[Row]:
        """What the statement would show now."""
        found = self.core.contents(self.state)
        rows = found if self._finishing is None else map(self._finishing.of_rows, found)
        return [Row(0, values) for each in rows for values in each]

    def kept(self) -> Any:
        """The core's tables as Arrow streams."""
        tables = {name: pack(table) for name, table in self.state.tables.items()}
        return ["columns", dict(self.state.scalars), tables]

    def restore_kept(self, state: Any) -> None:
        """Go on."""
        _, scalars, tables, *_ = state
        self.state = State({name: unpack(table) for name, table in tables.items()}, scalars)
        # Programs take up their states now: those of other versions are refused.
        self.state, _ = self.core.step(self.state, Batch.nothing(self._types, scalars["now"]))


def tell_together(brought: Sequence[tuple[ColumnInstance, Output]]) -> None:
    """Tell what several statements have: of each partition all of them, then of the next."""
    if len(brought) == 1:
        ((instance, output),) = brought
        instance.tell(output)
        return
    for part in sorted({part for _, output in brought for part in output.parts}):
        for instance, output in brought:
            instance.tell(output.of_part(part))
