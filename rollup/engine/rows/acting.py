"""Actions at work, each as its plan in `rollup.engine.rows.actions` says."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rollup.engine.compiling import Evaluate, compiled, compiled_row, predicate
from rollup.engine.expressions import Expr
from rollup.engine.row import Delta, Row, Rows
from rollup.engine.rows.actions import (
    Action,
    DeleteAction,
    InsertAction,
    Merge,
    OnSelect,
    Reset,
    Set,
    SetVariables,
    Split,
    SplitBranch,
    StreamUpdate,
    UpdateAction,
)
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.keyed import ByKey
from rollup.engine.rows.plans import StoreInput
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.stores.named import Store, updated
from rollup.engine.rows.stores.tables import Table
from rollup.engine.timers import Order

if TYPE_CHECKING:
    from rollup.engine.rows.contexts.partitions import Partition


class ActionInstance(Instance):
    """What all actions do with their trigger: one row after the other."""

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """An event; where nothing is kept of it, it acts at once."""
        if not self.sole:
            super().receive(inputs, row)
        elif self.alive:
            self.act(row)

    def changed(self, deltas: dict[int, Delta]) -> None:
        """Events have come."""
        for row in deltas[0].new if 0 in deltas else ():
            self.act(row)

    def act(self, row: Row) -> None:
        """One event."""
        raise NotImplementedError


class MergeInstance(ActionInstance):
    """Merge, update and delete of a store."""

    def __init__(self, name: str, plan: Merge, where: Partition, order: Order) -> None:
        super().__init__(name, (plan.trigger, *plan.own_inputs), plan.lookups, where, order)
        self.plan = plan
        self._where, self._by_key = predicate(plan.where), ByKey(plan.where, 1)
        self._cases: dict[bool, list[tuple[Evaluate | None, list[_Doing]]]] = {True: [], False: []}
        for case in plan.cases:
            doing = [_Doing(action, self) for action in case.actions]
            self._cases[case.matched].append((_asked(case.condition), doing))
        whole = [(True, None, (DeleteAction(),))]
        self._takes_all = [(case.matched, case.condition, tuple(case.actions)) for case in plan.cases] == whole
        """Whether all that it does is to take out what it finds."""

    @cached_property
    def _store(self) -> Store:
        return self.store(self.plan.store)

    def act(self, row: Row) -> None:
        """One event: its rows are found, then all is changed at once."""
        store, work = self._store, self.work(row)
        if work.touched:
            delta = store.change(work.coming, work.updates, work.leaving)
            if work.resets:
                reset = work.reset(store)
                again = {row.id for row in reset}
                kept = [row for row in delta.new if row.id not in again]
                delta = Delta([*kept, *reset], [*delta.old, *work.before])
            self.runner.deliver(self.name, Delta([*delta.new, *delta.old], ()) if self.plan.gone_as_new else delta)

    def work(self, row: Row) -> Work:
        """What an event asks of the store."""
        store, e, filtered = self._store, self.environment, self.plan.where is not None
        work, rows = Work(), list[Row]()
        if not self.plan.always:
            found = self._by_key.rows(store, (row,), e)
            rows = [
                each for each in (store.asked(filtered) if found is None else found) if self._where((row, each), (), e)
            ]
        if self._takes_all:
            work.leaving += rows
            return work
        for each in rows:
            self._first(True, (row, each, each), work)
        if not rows:
            self._first(False, (row, None, None), work)
        return work

    def _first(self, matched: bool, r: Rows, work: Work) -> None:
        for condition, actions in self._cases[matched]:
            if condition is None or condition(r, (), self.environment):
                for doing in actions:
                    doing.do(r, work)
                return


class Work:
    """What one event asks of a store."""

    __slots__ = ("before", "coming", "leaving", "resets", "updates")

    def __init__(self) -> None:
        self.coming: list[Row] = []
        self.leaving: list[Row] = []
        self.updates: list[tuple[Row, dict[int, Any]]] = []
        self.resets: list[tuple[Row, Reset]] = []
        self.before: list[Row] = []

    @property
    def touched(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.coming or self.leaving or self.updates or self.resets)

    def as_updated(self, row: Row) -> Row:
        """A row with what the actions before have changed."""
        values = self.update_of(row)
        return row if values is None else Row(row.id, updated(row, values))

    def update_of(self, row: Row) -> dict[int, Any] | None:
        """What the actions before have changed in a row."""
        for each, known in self.updates:
            if each is row:
                return known
        return None

    def reset(self, store: Any) -> list[Row]:
        """Begin columns again; the rows concerned."""
        rows: dict[int, Row] = {}
        gone = {row.id for row in self.leaving}
        for row, reset in self.resets:
            if row.id in gone:
                continue
            if row.id not in rows and self.update_of(row) is None:
                self.before.append(row)
            if isinstance(store, Table):
                start, now = reset.fold.start, self.as_updated(row)  # its key may be another
                rows[row.id] = store.reset(now, reset.column, start, reset.fold.values(start())[0])
        return list(rows.values())


class _Doing:
    """One action."""

    def __init__(self, action: Action, home: Instance) -> None:
        self._action, self._home = action, home
        self._where = _asked(action.where)
        self._columns = compiled_row(action.columns) if isinstance(action, InsertAction) else None
        sets = action.sets if isinstance(action, UpdateAction) else ()
        self._sets = [(each.place, compiled(each.value)) for each in sets if isinstance(each, Set)]
        self._resets = [each for each in sets if isinstance(each, Reset)]

    def do(self, r: Rows, work: Work) -> None:
        """For one row of the store, or none."""
        e, row = self._home.environment, r[1]
        seen = r if row is None or not work.updates else (r[0], work.as_updated(row), *r[2:])
        if self._where is not None and not self._where(seen, (), e):
            return
        if self._columns is not None and isinstance(self._action, InsertAction):
            made = self._home.row(self._columns(seen, (), e))
            if self._action.target is None:
                work.coming.append(made)
            else:
                self._home.component.insert(self._action.target, self._home.partition, made)
        elif isinstance(self._action, DeleteAction) and row is not None:
            work.leaving.append(row)
        elif row is not None:
            self._update(r, row, work)

    def _update(self, r: Rows, row: Row, work: Work) -> None:
        values = work.update_of(row)
        changed = dict(values or {})
        for place, value in self._sets:
            now = Row(row.id, updated(row, changed)) if changed else row
            changed[place] = value((r[0], now, row), (), self._home.environment)
        if values is not None:
            values.update(changed)
        elif changed:
            work.updates.append((row, changed))
        work.resets += [(row, reset) for reset in self._resets]


def _asked(condition: Expr | None) -> Evaluate | None:
    return None if condition is None else predicate(condition)


class SetInstance(ActionInstance):
    """Variables are set."""

    def __init__(self, name: str, plan: SetVariables, where: Partition, order: Order) -> None:
        super().__init__(name, (plan.trigger, *plan.own_inputs), plan.lookups, where, order)
        self.plan = plan
        self._settings = [(variable, compiled(value)) for variable, value in plan.settings]

    def act(self, row: Row) -> None:
        """All are set before anybody hears of it."""
        e = self.environment
        for variable, value in self._settings:
            self.component.assign(variable, value((row,), (), e), self.partition)
        values = [e.variables[variable] for variable in self.plan.type.fields]
        self.runner.deliver(self.name, Delta([self.row(values)], ()))
        self.component.tell_variables({variable for variable, _ in self._settings}, self.partition)

    def rows(self) -> list[Row]:
        """The variables as they are."""
        return [self.row([self.environment.variables[variable] for variable in self.plan.type.fields])]


class StreamUpdateInstance(Instance):
    """Events are changed on their way in."""

    def __init__(self, name: str, plan: StreamUpdate, where: Partition, order: Order) -> None:
        super().__init__(name, plan.own_inputs, plan.lookups, where, order)
        self.plan = plan
        self._where = predicate(plan.where)
        self._sets = [(each.place, compiled(each.value)) for each in plan.sets]

    def listen(self) -> None:
        """The last that was deployed comes last of its priority."""
        super().listen()
        changes = self.runner.changes.setdefault(self.plan.stream, [])
        insort(changes, (self.plan.priority, self._change_row), key=lambda each: each[0])

    def stop(self) -> None:
        """Events stay as they are."""
        super().stop()
        self.runner.changes[self.plan.stream].remove((self.plan.priority, self._change_row))

    def changed(self, deltas: dict[int, Delta]) -> None:
        """Only sub-queries have inputs."""

    def _change_row(self, row: Row) -> Row:
        e = self.environment
        if not self._where((row,), (), e):
            return row
        changed = row
        for place, value in self._sets:
            values = list(changed.values)
            values[place] = value((changed,), (), e)
            changed = Row(row.id, tuple(values))
        self.runner.deliver(self.name, Delta([changed], [row]))
        return changed


class SplitInstance(ActionInstance):
    """An event goes to streams."""

    def __init__(self, name: str, plan: Split, where: Partition, order: Order) -> None:
        super().__init__(name, (plan.trigger, *plan.own_inputs), plan.lookups, where, order)
        self.plan = plan
        self._branches = [_Branch(branch, self) for branch in plan.branches]

    def act(self, row: Row) -> None:
        """The branches in their order; what none takes goes to the listeners."""
        taken = False
        for branch in self._branches:
            rows = branch.rows(row)
            for made in rows:
                if self.plan.same:
                    self.runner.hear_as(branch.target, Row(row.id, made.values))
                else:
                    self.component.insert(branch.target, self.partition, made)
            taken = taken or bool(rows)
            if rows and not self.plan.every:
                return
        if not taken:
            self.runner.deliver(self.name, Delta([row], ()))


class _Branch:
    def __init__(self, spec: SplitBranch, home: Instance) -> None:
        self.target, self._home, self._unnest = spec.target, home, spec.unnest
        self._columns, self._where = compiled_row(spec.columns), predicate(spec.where)
        self._inner = compiled(spec.unnest.rows) if spec.unnest is not None else None

    def rows(self, row: Row) -> list[Row]:
        """The rows that this branch takes of an event."""
        e = self._home.environment
        each: Sequence[Rows] = [(row,)]
        if self._inner is not None:
            each = [(inner, row) for inner in self._inner((row,), (), e) or ()]
        return [self._home.row(self._columns(r, (), e)) for r in each if self._where(r, (), e)]


class OnSelectInstance(SelectInstance):
    """A select that an event asks for."""

    asked = True

    def __init__(self, name: str, plan: OnSelect, where: Partition, order: Order) -> None:
        super().__init__(name, plan.select, where, order)
        self._action, self._by_key = plan, ByKey(plan.select.where, 1)

    def found(self, r: Rows) -> Sequence[Row]:
        """The rows of the store that an event may find."""
        return self.held_for(1, self._by_key, r)

    def changed(self, deltas: dict[int, Delta]) -> None:
        """Each event asks anew; nothing is kept."""
        for row in deltas[0].new if 0 in deltas else ():
            self._asked(row)

    def held(self, number: int) -> Sequence[Row]:
        """Of the store what an action finds."""
        state = self.inputs[number]
        if number != 1 or not isinstance(state.spec, StoreInput):
            return super().held(number)
        return state.passing(self.store(state.spec.store).asked(self.plan.where is not None))

    def held_for(self, number: int, by_key: ByKey, r: Rows) -> Sequence[Row]:
        """Of the store what it holds now, told or not."""
        state = self.inputs[number]
        if number != 1 or not isinstance(state.spec, StoreInput):
            return super().held_for(number, by_key, r)
        found = by_key.rows(self.store(state.spec.store), r, self.environment)
        return self.held(number) if found is None else state.passing(found)

    def _asked(self, row: Row) -> None:
        found = self._passing([(row, each) for each in self.found((row,))])
        self.kind.clear()
        if found or self.plan.total:
            self.outputs.take(found, ())
        self.kind.clear()
        if self._action.delete and found:
            self.store(self._action.store).change((), (), [r[1] for r in found if r[1] is not None])
