"""The deployed statements of a component at work: partitions, stores, variables, contexts, and the state of them all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rollup.engine.index import FilterIndex
from rollup.engine.row import Delta, Row
from rollup.engine.rows.acting import (
    MergeInstance,
    OnSelectInstance,
    SetInstance,
    SplitInstance,
    StreamUpdateInstance,
)
from rollup.engine.rows.actions import (
    Merge,
    OnSelect,
    SetVariables,
    Split,
    StreamUpdate,
)
from rollup.engine.rows.contexts.levels import Context
from rollup.engine.rows.contexts.partitions import Partition
from rollup.engine.rows.contexts.runtime import ContextRuntime
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.plans import Select
from rollup.engine.rows.runner import Runner
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.stores.named import NamedWindow, Store, UniqueIndex, WindowStore
from rollup.engine.rows.stores.tables import Table, TableStore
from rollup.engine.rows.stores.variables import OwnVariable
from rollup.engine.state import Packer, State, Unpacker
from rollup.engine.timers import Order

Plan = Select | OnSelect | Merge | SetVariables | Split | StreamUpdate


@dataclass(frozen=True)
class Deployed:
    """A statement: its place among all, its context, the store that it created, and what it does."""

    order: int
    context: str | None
    store: str | None = None
    plan: Plan | None = None


class Component:
    """Statements that share routes, stores, variables and contexts.

    A statement lives in the root partition, or in every partition of its context. Names of statements are unique.
    """

    def __init__(self, start: int = 0, depth_first: bool = False) -> None:
        self.runner = Runner(start, depth_first)
        self.root = Partition(self)
        self.contexts: dict[str, ContextRuntime] = {}
        self._statements: dict[str, Deployed] = {}
        self.changed = 0
        """How often statements and unique indexes have begun or ended."""
        self._stores: dict[str, str | None] = {}
        self._tables: set[str] = set()
        self._entering: dict[str, FilterIndex] = {}
        self._indexes: dict[str, list[UniqueIndex]] = {}
        self._variables: dict[str, str] = {}
        self._orders = 0
        self._conditions: dict[int, Instance] = {}

    # deployment

    def deploy(self, name: str, plan: Plan, context: str | None = None, start: bool = True) -> None:
        """A statement begins."""
        self._place(name, lambda where, order: _instance(name, plan, where, order), context, start)
        self._statements[name] = Deployed(self._orders, context, plan=plan)

    def create_store(
        self, name: str, statement: str, spec: WindowStore | TableStore, context: str | None, start: bool = True
    ) -> None:
        """A named window or a table begins."""
        self._stores[name] = context
        if isinstance(spec, TableStore):
            self._tables.add(name)
        elif context is not None:
            self._entering[name] = FilterIndex()

        def build(where: Partition, order: Order) -> Instance:
            made: Store = (
                NamedWindow(name, statement, spec, where, order)
                if isinstance(spec, WindowStore)
                else Table(name, statement, spec, where, order)
            )
            made.unique += self._indexes.get(name, [])
            return made

        self._place(_key(name), build, context, start)
        self._statements[statement] = Deployed(self._orders, context, name)

    def create_index(self, store: str, index: UniqueIndex) -> None:
        """A unique index over a store. Raises QueryError when the store breaks it already."""
        self.changed += 1
        for found in self.every(store):
            found.unique.append(index)
            content = found.content()
            try:
                found.check(content, content)  # as if all came anew
            except Exception:
                found.unique.remove(index)
                raise
        self._indexes.setdefault(store, []).append(index)

    def drop_index(self, store: str, name: str) -> None:
        """An index is gone."""
        self.changed += 1
        self._indexes[store] = [index for index in self._indexes.get(store, []) if index.name != name]
        for found in self.every(store):
            found.unique = [index for index in found.unique if index.name != name]

    def create_context(self, context: Context) -> None:
        """A context that statements may use from now on."""
        self._orders += 1
        self.contexts[context.name] = ContextRuntime(context, self, self._orders)

    def context(self, name: str | None) -> Context | None:
        """A context as it was planned."""
        return None if name is None else self.contexts[name].context

    def drop_context(self, name: str) -> None:
        """A context that nothing uses is gone."""
        del self.contexts[name]

    def create_variable(
        self, name: str, statement: str, value: Any, context: str | None = None, start: bool = True
    ) -> None:
        """A variable with its first value; in a context every partition has its own."""
        self._variables[name] = statement
        if context is None:
            self.runner.environment.variables[name] = value
        else:
            self._place(
                statement, lambda where, order: OwnVariable(statement, name, value, where, order), context, start
            )

    def drop_variable(self, name: str) -> None:
        """A variable is gone."""
        self.undeploy(self._variables.pop(name))
        self.runner.environment.variables.pop(name, None)

    def undeploy(self, name: str) -> None:
        """A statement, or the store that it created, ends."""
        deployed = self._statements.pop(name, None)
        if deployed is None:
            return
        self.changed += 1
        key = name if deployed.store is None else _key(deployed.store)
        if deployed.store is not None:
            del self._stores[deployed.store]
            self._tables.discard(deployed.store)
            self._statements.pop(key, None)
            self._indexes.pop(deployed.store, None)
        if deployed.context is not None:
            self.contexts[deployed.context].detach(key)
        else:
            self.root.instances.pop(key).stop()
        if deployed.store is not None:
            self._entering.pop(deployed.store, None)

    @property
    def statements(self) -> Mapping[str, Deployed]:
        """The statements by name, stores among them."""
        return self._statements

    @staticmethod
    def is_store(name: str) -> bool:
        """Whether a name among the statements is that of a store."""
        return name.startswith(_STORE)

    def exchange(self, name: str, build: Callable[[Partition, Order], Instance], start: bool = True) -> None:
        """A statement goes on in one instance, which `build` makes of what it was; its partitions, if any, end unsaid."""
        deployed = self._statements[name]
        made = build(self.root, (deployed.order, 0))
        if deployed.context is not None:
            self.contexts[deployed.context].detach(name)
        else:
            self.root.instances[name].stop()
        self.root.instances[name] = made
        self._statements[name] = Deployed(deployed.order, None, plan=deployed.plan)
        if start:
            made.start()

    def _place(
        self, name: str, build: Callable[[Partition, Order], Instance], context: str | None, start: bool
    ) -> None:
        self._orders += 1
        self.changed += 1
        self._statements[name] = Deployed(self._orders, context)
        if start and self.runner.journal is not None:
            self.runner.journal.begin(name, context, self.runner.now)
        if context is not None:
            self.contexts[context].attach(name, build, self._orders, start)
            return
        made = self.root.instances[name] = build(self.root, (self._orders, 0))
        if start:
            self.runner.later(made.start)

    # stores

    def store(self, name: str, where: Partition) -> Store:
        """A store as a partition sees it: that of the partition where the store has its context."""
        partition = where if self._stores[name] is not None else self.root
        found = partition.instances[_key(name)]
        assert isinstance(found, Store)
        return found

    def every(self, name: str) -> list[Store]:
        """A store in all partitions."""
        return [found for each in self._partitions(self._stores[name]) if (found := _store(each, name)) is not None]

    @property
    def stores(self) -> Collection[str]:
        """The named windows and tables."""
        return self._stores.keys()

    def context_of(self, name: str) -> str | None:
        """The context of a store."""
        return self._stores[name]

    def _partitions(self, context: str | None) -> Iterable[Partition]:
        return [self.root] if context is None else list(self.contexts[context].partitions.values())

    def insert(self, target: str, where: Partition, row: Row) -> None:
        """A row goes into a table at once, into a stream or a window after what runs now.

        It comes into a window as an event: into that of every partition of the context which the event concerns.
        """
        if target not in self._stores:
            self.runner.route(target, row)
        elif target in self._tables:
            self.store(target, where).change([row])
        else:
            self.runner.insert(lambda: self._into_windows(target, row))

    def entering(self, window: str) -> FilterIndex | None:
        """Which windows of a context's partitions a row that comes in as an event is of; None of a window of no context."""
        return self._entering.get(window)

    def _into_windows(self, target: str, row: Row) -> None:
        index = self._entering.get(target)
        into = [self.store(target, self.root)] if index is None else [entry.receiver for entry in index.matches(row)]
        for window in into:
            if isinstance(window, NamedWindow):
                window.change((row,))
        if target in self.runner.indexes:  # patterns hear what is inserted, as the event that it is
            self.runner.route(target, row)

    # variables

    def assign(self, name: str, value: Any, where: Partition) -> None:
        """A variable as a partition sees it gets a value, be it the one that it has; outputs are not told yet."""
        shared = self.runner.environment.variables
        variables = shared if name in shared else where.variables
        if (journal := self.runner.journal) is not None and not journal.assigned:
            journal.assigned = True
            self.changed += 1
        before = variables[name]
        variables[name] = value
        rows = self.runner.row([value]), self.runner.row([before])
        self.runner.deliver(self._variables[name], Delta([rows[0]], [rows[1]]))

    def said_by(self, variable: str) -> str:
        """The statement that says that a variable has another value."""
        return self._variables[variable]

    def tell_variables(self, names: Collection[str], where: Partition) -> None:
        """Variables have been set: outputs may be due, those of other partitions by what all of them see."""
        shared = self.runner.environment.variables.keys() & names
        for instance in list(self._conditions.values()):
            instance.variables_set(names if instance.partition is where else shared)

    def hears_variables(self, instance: Instance, hears: bool) -> None:
        """Whether an instance is told when variables change."""
        if hears:
            self._conditions[id(instance)] = instance
        else:
            self._conditions.pop(id(instance), None)

    # what is there

    def rows(self, statement: str) -> list[Row]:
        """What a statement would show now, in all its partitions."""
        deployed = self._statements.get(statement)
        if deployed is None:
            return []
        key = statement if deployed.store is None else _key(deployed.store)
        return [row for each in self._partitions(deployed.context) for row in each.instances[key].rows()]

    # state

    def snapshot(self) -> State:
        """Everything that is needed to go on."""
        packer = Packer()
        for name, context in self.contexts.items():
            packer.node(f"context/{name}", context.snapshot())
        for partition in self._all():
            for name, instance in partition.instances.items():
                packer.node(f"{partition.path}/{name}", instance.snapshot())
        variables = dict(self.runner.environment.variables)
        packer.node("variables", variables)
        if self.runner.journal is not None:
            packer.node("journal", self.runner.journal.snapshot())
        return packer.state({"now": self.runner.now, "rows": self.runner.rows})

    def restore(self, state: State) -> None:
        """Go on from a snapshot of the same statements, which were deployed without being started."""
        unpacker = Unpacker(state)
        self.runner.environment.now = state.scalars["now"]
        self.runner.rows = state.scalars["rows"]
        self.runner.environment.variables.update(unpacker.node("variables"))
        if self.runner.journal is not None and "journal" in unpacker.paths():
            self.runner.journal.restore(unpacker.node("journal"))
        else:
            self.runner.journal = None
        for name, context in self.contexts.items():
            context.restore(unpacker.node(f"context/{name}"))
        for partition in self._all():
            for name, instance in partition.instances.items():
                instance.restore(unpacker.node(f"{partition.path}/{name}"))

    def _all(self) -> list[Partition]:
        inner = [each for context in self.contexts.values() for each in context.partitions.values()]
        return [self.root, *inner]


def _key(store: str) -> str:
    """The name under which a store's instances stand; no statement has it, whatever it is called."""
    return f"{_STORE}{store}"


_STORE = "\x1fstore "


def _store(partition: Partition, name: str) -> Store | None:
    found = partition.instances.get(_key(name))
    return found if isinstance(found, Store) else None


def _instance(name: str, plan: Plan, where: Partition, order: Order) -> Instance:
    match plan:
        case Select():
            return SelectInstance(name, plan, where, order)
        case OnSelect():
            return OnSelectInstance(name, plan, where, order)
        case Merge():
            return MergeInstance(name, plan, where, order)
        case SetVariables():
            return SetInstance(name, plan, where, order)
        case Split():
            return SplitInstance(name, plan, where, order)
        case StreamUpdate():
            return StreamUpdateInstance(name, plan, where, order)
