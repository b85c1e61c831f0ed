"""Contexts at work: the partitions of one, and the statements that run in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rollup.engine.rows.contexts.levels import Context
from rollup.engine.rows.contexts.nodes import Node
from rollup.engine.rows.contexts.partitions import Partition
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.plans import Narrow
from rollup.engine.timers import Order

if TYPE_CHECKING:
    from rollup.engine.rows.component import Component

Build = Callable[[Partition, Order], Instance]


class Elsewhere(Protocol):
    """A statement that has the partitions of a context by itself."""

    alive: bool

    def paths(self) -> Sequence[tuple[Any, ...]]:
        """Those that never end, as they began: of each the keys of all levels."""
        ...

    def handed_back(self) -> Any | None:
        """Those that end, as a snapshot of the context; None where they never do."""
        ...


class ContextRuntime:
    """A context and the statements that use it; partitions live while there is one."""

    def __init__(self, context: Context, component: Component, order: int) -> None:
        self.context, self.component, self.order = context, component, order
        self.statements: dict[str, tuple[Build, int]] = {}
        self.partitions: dict[int, Partition] = {}
        self._root: Node | None = None
        self.opening = False
        """Whether a partition is being opened: what begins within it is told of the event by the level that opens it."""
        self.next = 0
        self.elsewhere: list[Elsewhere] = []
        """The statements whose partitions live on without being here."""

    def attach(self, name: str, build: Build, order: int, start: bool = True) -> None:
        """A statement begins in every partition; the first one makes the context begin."""
        self.statements[name] = (build, order)
        if not start:
            return
        if self._root is None and not self._taken_up():
            self._begin()
        else:
            for partition in list(self.partitions.values()):
                self._instance(partition, name).start()

    def _taken_up(self) -> bool:
        """Go on with partitions that end and live elsewhere, if there are any."""
        state = next((each.handed_back() for each in self.elsewhere if each.alive), None)
        if state is not None:
            self.restore(state)
        return state is not None

    def _begin(self) -> None:
        """The first partitions; those that never end and live elsewhere go on as they were numbered."""
        self._root = self.node(0, {}, ())
        self._root.begin()
        for path in next((each.paths() for each in self.elsewhere if each.alive), ()):
            self._root.begun(path)

    def detach(self, name: str) -> None:
        """A statement ends in every partition; the last one takes the partitions with it."""
        del self.statements[name]
        for partition in self.partitions.values():
            found = partition.instances.pop(name, None)
            if found is not None:
                found.stop()
        if not self.statements and self._root is not None:
            self._root.quit()
            self._root, self.next = None, 0

    def node(self, depth: int, properties: dict[str, Any], narrowings: Sequence[Narrow]) -> Node:
        """A node of a level."""
        return Node(self, depth, properties, narrowings)

    def number(self) -> int:
        """The next partition's number."""
        self.next += 1
        return self.next - 1

    def open(self, number: int, properties: dict[str, Any], narrowings: Sequence[Narrow], start: bool) -> Partition:
        """A partition with all statements."""
        partition = Partition(self.component, self.context.name, number, properties, narrowings)
        self.partitions[number] = partition
        made = [self._instance(partition, name) for name in self.statements]
        if start:
            for instance in made:
                instance.start()
        return partition

    def close(self, partition: Partition, ending: bool) -> None:
        """A partition is over; `ending`: by itself, so statements say what they have to."""
        if ending:
            runner = self.component.runner
            told = len(runner.deliveries)
            for instance in partition.instances.values():
                instance.end()
            runner.note_early(told, (self.order, partition.number))
        for instance in reversed(partition.instances.values()):
            instance.stop()
        self.partitions.pop(partition.number, None)

    @property
    def keys(self) -> dict[int, Any]:
        """What tells each partition from the others, by its number: where the context has several levels, a key of each."""
        paths = {} if self._root is None else self._root.paths()
        alone = len(self.context.levels) == 1
        return {number: path[0] if alone else path for number, path in paths.items()}

    def _instance(self, partition: Partition, name: str) -> Instance:
        build, order = self.statements[name]
        partition.instances[name] = build(partition, (order, partition.number))
        return partition.instances[name]

    def snapshot(self) -> Any:
        """The nodes; instances are kept apart."""
        return [self.next, None if self._root is None else self._root.snapshot()]

    def restore(self, state: Any) -> None:
        """Nodes and partitions, whose instances are to be restored then."""
        self.next = state[0]
        if state[1] is not None:
            self._root = self.node(0, {}, ())
            self._root.restore(state[1])
