"""Where the state of a component is: with its instances on rows, or with its program.

A component goes over to its program once as many events have come as make up for carrying its state over and back; large
batches then have it compiled, by a thread. Whoever wants anything but a batch of events gives the state back to the rows
first. The state passes through the interpreted mode, whose rows and groups are objects of Python as those of the rows are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from rollup.core.descriptions import descendants
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.running.placing import Placed
from rollup.engine.expressions import Field
from rollup.engine.folding import AggregateCall, Fold
from rollup.engine.programs.lowering.components import Program, TypeOf, lowered
from rollup.engine.programs.lowering.unsupported import Unsupported
from rollup.engine.programs.runtime.running import Running
from rollup.engine.reals import orderable, ordered_value
from rollup.engine.row import Delta, Row
from rollup.engine.rows.component import Component, Deployed
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.plans import Select, StreamInput, Subquery
from rollup.engine.rows.runner import Delivery
from rollup.engine.rows.running import Running as RunningRows
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.stores.named import NamedWindow
from rollup.engine.rows.windows.base import Window, WindowSpec
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Unique
from rollup.engine.rows.windows.timed import Time
from rollup.engine.types import DOUBLE

_LEAST = 8
"""Smaller batches go to the rows, unless the state is with the program already."""
_WORTH = 4
"""So many events for each row of the state gain more than it costs to carry the state over and back."""
_MOST = 50
"""So many statements are one program: machine code takes time in proportion to its text."""
_WINDOWS = KeepAll | Length | Unique | Time


@dataclass(frozen=True)
class Emitted:
    """What a statement made of a batch, row by row: the instants, the numbers of the deliveries, the signs (1 comes, -1
    leaves), and the columns. `order`: the statement's number."""

    statement: str
    order: int
    at: Ints
    place: Ints
    sign: Ints
    columns: Sequence[pa.Array]

    @staticmethod
    def of(statement: str, order: int, output: Sequence[pa.Array]) -> Emitted:
        """A program's output; in each delivery rows that come stand before those that leave."""
        at, place, sign = (each.to_numpy() for each in output[:3])
        columns = output[3:]
        if len(sign) and bool((sign < 0).any()):
            turns = np.lexsort((-sign, place))
            at, place, sign = at[turns], place[turns], sign[turns]
            columns = [each.take(pa.array(turns)) for each in columns]
        return Emitted(statement, order, at, place, sign, columns)

    def deliveries(self) -> Iterator[tuple[tuple[int, int], Delivery]]:
        """The same as deliveries, each with its place among those of all statements."""
        rows = [Row(0, each) for each in zip(*(column.to_pylist() for column in self.columns), strict=True)]
        begins = np.flatnonzero(np.diff(self.place, prepend=-1)).tolist()
        came = np.add.reduceat(self.sign > 0, begins).tolist() if begins else []
        for begin, end, new in zip(begins, [*begins[1:], len(rows)], came, strict=True):
            delta = Delta(rows[begin : begin + new], rows[begin + new : end])
            yield (int(self.place[begin]), self.order), Delivery(self.statement, int(self.at[begin]), delta)


class OtherExecutor(Protocol):
    """Another executor that may run the statements."""

    def placed(self) -> Sequence[Placed]:
        """Where each statement runs."""
        ...

    def gone_over(self) -> Sequence[str]:
        """The statements whose state is there."""
        ...


class _Kept(NamedTuple):
    """A window: the name of its operator, its plan, the window, and whose it is."""

    name: str
    spec: WindowSpec
    window: Window
    owner: Instance


class Residence:
    """A component and its program. `least` None: it never goes over. `other`: what runs statements without a program."""

    def __init__(self, component: Component, type_of: TypeOf, least: int | None, other: OtherExecutor) -> None:
        self._component, self._type_of, self._least, self._other = component, type_of, least, other
        self._program: Program | Unsupported | None = None
        self._changed = -1
        self._running: Running | None = None
        self._events = 0
        """How many events have come since the state was given back."""
        self._enough: int | None = None
        """How many make up for carrying the state that there was then; None: not counted yet."""

    def forget(self) -> None:
        """Statements begin or end: the state is with the rows, and the program is no longer theirs."""
        self.hand_back()
        self._program = self._enough = None

    @property
    def program(self) -> Program | Unsupported:
        """The program of the component, or why it has none."""
        changed = self._component.changed  # also when columns no longer take what they could
        if self._program is None or (isinstance(self._program, Unsupported) and self._changed != changed):
            self._changed = changed
            self._program = self._against() or lowered(self._component, self._type_of)
        return self._program

    @property
    def goes_over(self) -> bool:
        """Whether the component goes over to its program, unless statements have gone elsewhere."""
        return self._least is not None and isinstance(self.program, Program) and not self._other.gone_over()

    def takes(self, stream: str, events: int) -> bool:
        """Whether a batch of so many events of a stream goes to the program."""
        if self._least is None or (self._running is None and events < _LEAST):
            return False
        program = self.program
        if not self.goes_over or not isinstance(program, Program) or stream not in program.streams:
            return False
        if self._running is None:
            if self._enough is None:
                self._enough = _WORTH * sum(sum(1 for _ in kept.window.content()) for kept in self._kept())
            self._events += events
            return self._events >= self._enough
        return True

    def send(self, stream: str, columns: Sequence[pa.Array], times: Ints) -> list[Emitted]:
        """A batch of a stream, each event at its instant; what statements make of it."""
        running = self._running = (self._running or self._go_over()).fit(len(times))
        running.send(stream, columns, pa.array(times))
        runner = self._component.runner
        runner.environment.now = max(runner.now, int(times[-1]))
        runner.rows += len(times)
        known = self._component.statements
        return [
            Emitted.of(name, known[name].order if name in known else 0, each) for name, each in running.taken().items()
        ]

    def _kept(self) -> Iterator[_Kept]:
        """The windows of stores and of statements."""
        for name, deployed in self._component.statements.items():
            plan = deployed.plan
            if deployed.store is not None and not self._component.is_store(name):
                store = self._component.store(deployed.store, self._component.root)
                assert isinstance(store, NamedWindow)
                yield _Kept(f"store{deployed.order}_window", store.spec.window, store.window, store)
            elif isinstance(plan, Select):
                instance = self._component.root.instances[name]
                for number, state in enumerate(instance.inputs):
                    source, own = state.spec, number >= len(plan.inputs)
                    name = f"own{deployed.order}_{number}_window" if own else f"window{deployed.order}"
                    if isinstance(source, StreamInput) and source.window is not None and state.window is not None:
                        yield _Kept(name, source.window, state.window, instance)

    def _groups(self) -> Iterator[tuple[str, SelectInstance, Sequence[AggregateCall]]]:
        """The statements that keep aggregates, by the names of their operators, with the calls."""
        for order, plan, instance in self._selects():
            if plan.grouping or plan.levels:
                calls = plan.grouping.calls if plan.grouping is not None else plan.levels[0].calls
                yield f"select{order}", instance, calls

    def _kept_up(self) -> Iterator[tuple[str, RunningRows, Sequence[AggregateCall]]]:
        """The aggregates that sub-queries keep up, by the names of their groups, with the calls."""
        for order, plan, instance in self._selects():
            for number, lookup in enumerate(plan.lookups):
                running = instance.running(lookup.input) if isinstance(lookup, Subquery) else None
                if isinstance(lookup, Subquery) and running is not None:
                    yield f"ask{order}_{number}", running, lookup.calls

    def _selects(self) -> Iterator[tuple[int, Select, SelectInstance]]:
        """The selects, with their numbers and instances."""
        for name, deployed in self._component.statements.items():
            plan, instance = deployed.plan, self._component.root.instances.get(name)
            if isinstance(plan, Select) and isinstance(instance, SelectInstance):
                yield deployed.order, plan, instance

    # from rows to the program

    def _go_over(self) -> Running:
        """The program goes on where the rows stand; their timers rest."""
        program, runner = self.program, self._component.runner
        assert isinstance(program, Program)
        runner.journal = None
        made = self._running = Running(program, "interpreted", runner.now)
        space, known = made.functions, dict[int, tuple[Any, ...]]()
        for name, field in program.variables.items():
            made.set(field, runner.environment.variables[name])
        for kept in self._kept():
            self._fill(space, kept, known)
            runner.timers.forget(kept.owner)
        for name, instance, calls in self._groups():
            state = instance.kind.snapshot()
            for key, values, rows in (state if instance.plan.total else state[0])[0]:
                if instance.plan.total:
                    made.set(f"{name}_group", group := space[f"{name}_new_group"]())
                elif rows > 0:
                    group = space[f"Group_{name}"](*key)
                    made.get(f"{name}_groups")[key[0] if len(key) == 1 else key or 0] = group
                    group.rows = rows
                else:
                    continue
                _enter(group, calls, values)
        for name, running, calls in self._kept_up():
            for _, values, _ in running.snapshot():
                made.set(f"{name}_kept_group", group := space[f"{name}_new_group"]())
                _enter(group, calls, values)
        return made

    @staticmethod
    def _fill(space: dict[str, Any], kept: _Kept, known: dict[int, tuple[Any, ...]]) -> None:
        """The rows of a window into the fields of its operators. `known`: those that other windows hold, too."""
        name = kept.name
        by = f"{name.removesuffix('_window')}_by_"
        indexes = [each for each in space if each.startswith(by) and each.endswith("_insert")]
        held = space[f"s_{name}_rows"]
        times = {row.id: time for row, time in kept.window.snapshot()} if isinstance(kept.spec, Time) else {}
        for row in kept.window.content():
            values = known.setdefault(row.id, tuple([*row.values]))  # a tuple of its own: it is one row
            if isinstance(kept.spec, Unique):
                held[space[f"{name}_key"](values)] = values
            elif times:
                held.append(space[f"Stamped_{name}"](times[row.id], values))
            else:
                held.append(values)
            for index in indexes:
                space[index](values)

    # from the program to rows

    def hand_back(self) -> None:
        """The rows go on where the program stands."""
        if self._running is None:
            return
        self._events, self._enough = 0, None
        made, self._running = self._running, None
        made = made if made.mode == "interpreted" else made.moved("interpreted")
        known, row = dict[int, Row](), self._component.runner.row
        for name, field in made.program.variables.items():
            self._component.runner.environment.variables[name] = made.get(field)

        def back(values: tuple[Any, ...]) -> Row:
            return known.get(id(values)) or known.setdefault(id(values), row(values))

        for name, spec, window, owner in self._kept():
            held = made.get(f"{name}_rows")
            if isinstance(spec, Time):
                state: Any = [[back(each.row), each.time] for each in held]
            else:
                state = [back(each) for each in (held.values() if isinstance(spec, Unique) else held)]
            owner.restore_kept(state) if isinstance(owner, NamedWindow) else window.restore(state)
            owner.ask_timers()
        for name, instance, calls in self._groups():
            self._grouped(made, name, instance, calls)
        for _, _, instance in self._selects():
            instance.refill_pairs()
            for each in instance.inputs:
                each.refill()
        for name, running, calls in self._kept_up():
            group = made.get(f"{name}_kept_group")
            running.restore([] if group is None else [[(), _values(group, calls), 1]])
        self._component.changed += 1  # whoever has looked into the windows looks again

    @staticmethod
    def _grouped(made: Running, name: str, instance: SelectInstance, calls: Sequence[AggregateCall]) -> None:
        """The groups of a statement."""
        plan, width = instance.plan, 0
        if not plan.total:
            keys = plan.grouping.dimensions if plan.grouping is not None else plan.levels[0].keys
            width = len(keys)
        found = list[list[Any]]()
        some = [made.get(f"{name}_group")] if plan.total else made.get(f"{name}_groups").values()
        for group in some:
            if group is None:
                continue
            key = tuple(getattr(group, f"k{i}") for i in range(width))
            found.append([key, _values(group, calls), getattr(group, "rows", 0) or 1])
        if plan.total:
            instance.kind.restore([found])
        elif plan.grouping is None:
            instance.kind.restore([[found], []])
        else:
            instance.kind.restore([[found], [], [[0, key, _shown(instance, key)] for key, _, _ in found]])

    def _against(self) -> Unsupported | None:
        """Why a component stays as it is: columns carry it, or its state cannot be carried over; None where it goes over."""
        component = self._component
        if len(component.statements) > _MOST:
            return Unsupported("statement", f"more than {_MOST}")
        executors = {each.executor for each in self._other.placed()}
        if executors == {"columns"} or ("columns" in executors and not component.stores):
            return Unsupported("statement", "columns carry it")
        for name, deployed in component.statements.items():
            reason = None if component.is_store(name) else _against_state(component, deployed)
            if reason is not None:
                return Unsupported(*reason, place=name)
        return None


def _slots(calls: Sequence[AggregateCall]) -> list[str]:
    """The fields of a group that hold aggregates, in order."""
    return [f"a{i}_{slot}" for i, call in enumerate(calls) for slot in call.aggregate.slots]


def _enter(group: Any, calls: Sequence[AggregateCall], values: Sequence[Any]) -> None:
    """The values of aggregates into a group."""
    for slot, value in zip(_slots(calls), values, strict=True):
        if isinstance(kept := getattr(group, slot), int | float | None):
            setattr(group, slot, value)
        else:
            kept.update(map(ordered_value, value))


def _values(group: Any, calls: Sequence[AggregateCall]) -> list[Any]:
    """The values of a group's aggregates."""
    values = Fold(tuple(calls)).start()
    for place, slot in enumerate(_slots(calls)):
        value = getattr(group, slot)
        if isinstance(value, int | float | str | None):
            values[place] = value
        else:
            values[place].update(map(orderable, value))
    return values


def _shown(instance: SelectInstance, key: tuple[Any, ...]) -> tuple[Row, ...]:
    """Rows of a group, one for each input, which say no more than its key."""
    plan, found = instance.plan, list[Row]()
    dimensions = plan.grouping.dimensions if plan.grouping is not None else ()
    pairs = list(zip(dimensions, key, strict=True))
    for number in range(len(plan.inputs)):
        known = {each.index: value for each, value in pairs if isinstance(each, Field) and each.input == number}
        found.append(Row(0, tuple(known.get(i) for i in range(1 + max(known, default=-1)))))
    return tuple(found)


def _against_state(component: Component, deployed: Deployed) -> tuple[str, str] | None:
    """Why the state of a statement cannot be carried between rows and a program."""
    plan = deployed.plan
    if isinstance(plan, Select):
        windows = [each.window for each in (*plan.inputs, *plan.own_inputs) if isinstance(each, StreamInput)]
        if any(each is not None and not isinstance(each, _WINDOWS) for each in windows):
            return "window", "the state of a window"
        if sum(isinstance(each, StreamInput) for each in plan.inputs) > 1:
            return "join", "the state of two windows"
        called = descendants([plan.levels, plan.grouping, plan.lookups])
        if any(isinstance(each, AggregateCall) and each.distinct for each in called):
            return "aggregate", "the state of one over different values"
        levels = [*plan.levels, *(plan.grouping.levels if plan.grouping is not None else ())]
        if any(key.type == DOUBLE for level in levels for key in level.keys):
            return "groups", "the state of those by a double"
        return None
    if deployed.store is None or deployed.context is not None:
        return None
    store = component.store(deployed.store, component.root)
    plain = isinstance(store, NamedWindow) and isinstance(store.spec.window, _WINDOWS) and not store.unique
    return None if plain else ("store", deployed.store)
