"""Where the state of a component is: with its instances on rows, or with its program.

A component goes over to its program with a batch that is large beside its state, once the program's machine code is there
(a thread makes it meanwhile). Whoever then wants anything but a batch of events gives the state back to the rows first.
The state passes through the interpreted mode, whose rows and groups are objects of Python as those of the rows are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.groups import Ints
from rollup.engine.compiler.cache import Code, later
from rollup.engine.programs.lowering.components import Program, TypeOf, lowered
from rollup.engine.programs.lowering.unsupported import Unsupported
from rollup.engine.programs.runtime.running import Mode, Running
from rollup.engine.rows.actions import Merge
from rollup.engine.rows.component import Component, Deployed
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.stores.named import NamedWindow
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Unique
from rollup.engine.rows.windows.timed import Time

_LEAST = 512
"""Smaller batches go to the rows, unless the state is with the program already."""
_WORTH = 4
"""A batch of so many events for each row of the state gains more than it costs to carry the state over and back."""
_MOST = 50
"""So many statements are one program: machine code takes time in proportion to its text."""
_WINDOWS = KeepAll | Length | Unique | Time


@dataclass(frozen=True)
class Emitted:
    """What a statement made of a batch, row by row: the instants, the signs (1 comes, -1 leaves), and the columns."""

    statement: str
    at: Ints
    sign: Ints
    columns: Sequence[pa.Array]

    @staticmethod
    def of(statement: str, output: Sequence[pa.Array]) -> Emitted:
        """A program's output; in each delivery rows that come stand before those that leave."""
        at, place, sign = (each.to_numpy() for each in output[:3])
        columns = output[3:]
        if len(sign) and bool((sign < 0).any()):
            turns = np.lexsort((-sign, place))
            at, sign = at[turns], sign[turns]
            columns = [each.take(pa.array(turns)) for each in columns]
        return Emitted(statement, at, sign, columns)


class Residence:
    """A component and its program. `least` None: it never goes over."""

    waits = False
    """Whether the first batch waits for machine code."""
    mode: Mode = "compiled"

    def __init__(self, component: Component, type_of: TypeOf, least: int | None) -> None:
        self._component, self._type_of, self._least = component, type_of, least
        self._program: Program | Unsupported | None = None
        self._code: Future[Code] | None = None
        self._running: Running | None = None

    def forget(self) -> None:
        """Statements begin or end: the state is with the rows, and the program is no longer theirs."""
        self.hand_back()
        self._program = self._code = None

    @property
    def program(self) -> Program | Unsupported:
        """The program of the component, or why it has none."""
        if self._program is None:
            self._program = _against(self._component) or lowered(self._component, self._type_of)
        return self._program

    @property
    def goes_over(self) -> bool:
        """Whether the component goes over to its program with a large batch."""
        return self._least is not None and isinstance(self.program, Program)

    def takes(self, stream: str, events: int) -> bool:
        """Whether a batch of so many events of a stream goes to the program."""
        if self._least is None or events < max(self._least, _LEAST):
            return False
        program = self.program
        if not isinstance(program, Program) or stream not in program.streams:
            return False
        if self._running is not None:
            return True
        if stream not in program.storing:
            return False
        if events < _WORTH * sum(len(store.content()) for _, store, _ in self._stores()):
            return False
        self._code = self._code or later(program.source, self.mode == "checked")
        return self.waits or self._code.done()

    def send(self, stream: str, columns: Sequence[pa.Array], times: Ints) -> list[Emitted]:
        """A batch of a stream, each event at its instant; what statements make of it."""
        program, running = self.program, self._running or self._go_over()
        assert isinstance(program, Program)
        running.send(stream, columns, pa.array(times))
        runner = self._component.runner
        runner.environment.now = max(runner.now, int(times[-1]))
        runner.rows += len(times)
        return [Emitted.of(name, each) for name, each in running.taken().items()]

    def _stores(self) -> Iterator[tuple[str, NamedWindow, Deployed]]:
        """The named windows, by the names of their windows' operators."""
        for name, deployed in self._component.statements.items():
            if deployed.store is not None and not self._component.is_store(name):
                store = self._component.store(deployed.store, self._component.root)
                assert isinstance(store, NamedWindow)
                yield f"store{deployed.order}_window", store, deployed

    def _totals(self) -> Iterator[tuple[str, SelectInstance, list[str]]]:
        """The statements that keep a total, by the names of their operators, with the names of its slots."""
        for name, deployed in self._component.statements.items():
            plan = deployed.plan
            if isinstance(plan, Select) and plan.levels:
                instance = self._component.root.instances[name]
                assert isinstance(instance, SelectInstance)
                calls = enumerate(plan.levels[0].calls)
                slots = [f"a{i}_{slot}" for i, call in calls for slot in call.aggregate.slots]
                yield f"select{deployed.order}", instance, slots

    # from rows to the program

    def _go_over(self) -> Running:
        """The program goes on where the rows stand; their timers rest."""
        program, runner = self.program, self._component.runner
        assert isinstance(program, Program)
        assert self._code is not None
        self._code.result()
        made = Running(program, "interpreted", runner.now)
        space = made.functions
        for name, store, _ in self._stores():
            self._fill(space, name, store)
            runner.timers.forget(store)
        for name, instance, slots in self._totals():
            for _, values, _ in instance.kind.snapshot()[0]:
                group = space[f"{name}_new_group"]()
                for slot, value in zip(slots, values, strict=True):
                    setattr(group, slot, value)
                made.set(f"{name}_group", group)
        self._running = made.moved(self.mode)
        return self._running

    @staticmethod
    def _fill(space: dict[str, Any], name: str, store: NamedWindow) -> None:
        """The rows of a named window into the fields of its operators."""
        by = f"{name.removesuffix('_window')}_by_"
        indexes = [each for each in space if each.startswith(by) and each.endswith("_insert")]
        held = space[f"s_{name}_rows"]
        times = {row.id: time for row, time in store.window.snapshot()} if isinstance(store.spec.window, Time) else {}
        for row in store.content():
            kept = tuple([*row.values])  # a tuple of its own: it is one row
            if isinstance(store.spec.window, Unique):
                held[space[f"{name}_key"](kept)] = kept
            elif times:
                held.append(space[f"Stamped_{name}"](times[row.id], kept))
            else:
                held.append(kept)
            for index in indexes:
                space[index](kept)

    # from the program to rows

    def hand_back(self) -> None:
        """The rows go on where the program stands."""
        if self._running is None:
            return
        made, self._running = self._running.moved("interpreted"), None
        runner = self._component.runner
        for name, store, _ in self._stores():
            held, spec = made.get(f"{name}_rows"), store.spec.window
            if isinstance(spec, Time):
                store.restore_kept([[runner.row(each.row), each.time] for each in held])
            else:
                rows = held.values() if isinstance(spec, Unique) else held
                store.restore_kept([runner.row(each) for each in rows])
            store.ask_timers()
        for name, instance, slots in self._totals():
            group = made.get(f"{name}_group")
            values = [] if group is None else [[(), [getattr(group, slot) for slot in slots], 1]]
            instance.kind.restore([values])
        self._component.changed += 1  # whoever has looked into the windows looks again


def _against(component: Component) -> Unsupported | None:
    """Why a component stays as it is: columns carry it, or its state cannot be carried over; None where it goes over."""
    if not component.stores:
        return Unsupported("store", "none: columns carry such statements")
    if len(component.statements) > _MOST:
        return Unsupported("statement", f"more than {_MOST}")
    for name, deployed in component.statements.items():
        reason = None if component.is_store(name) else _against_state(component, deployed)
        if reason is not None:
            return Unsupported(*reason, place=name)
    return None


def _against_state(component: Component, deployed: Deployed) -> tuple[str, str] | None:
    """Why the state of a statement cannot be carried between rows and a program."""
    plan = deployed.plan
    if isinstance(plan, Select):
        if plan.grouping is not None or (plan.levels and not plan.total):
            return "groups", "the state of groups"
        if any(isinstance(each, StreamInput) and each.window is not None for each in plan.inputs):
            return "window", "the state of a window"
        slots = {start for level in plan.levels for call in level.calls for start in call.aggregate.slots.values()}
        return None if slots <= {"0", "0.0"} else ("aggregate", "the state of numbers in order")
    if deployed.store is None or deployed.context is not None:
        return None if isinstance(plan, Merge) else ("statement", type(plan).__name__)
    store = component.store(deployed.store, component.root)
    plain = isinstance(store, NamedWindow) and isinstance(store.spec.window, _WINDOWS) and not store.unique
    return None if plain else ("store", deployed.store)
