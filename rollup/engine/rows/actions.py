"""What an event does to a store or a variable: select, delete, update, merge, set; and to streams: split."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollup.engine.compiling import compiled, compiled_row, predicate
from rollup.engine.expressions import Expr
from rollup.engine.folding import Fold
from rollup.engine.row import Delta, Row, Rows
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.keyed import ByKey
from rollup.engine.rows.plans import Input, Lookup, Select, StoreInput, Unnest
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.stores.named import Table
from rollup.engine.timers import Order
from rollup.engine.types import RowType

if TYPE_CHECKING:
    from rollup.engine.rows.contexts.partitions import Partition


@dataclass(frozen=True)
class Set:
    """A column gets a value. Expressions see the trigger (0), the row as it is now (1), and as it was before (2)."""

    place: int
    value: Expr


@dataclass(frozen=True)
class Reset:
    """An aggregated column begins again."""

    column: str
    fold: Fold


@dataclass(frozen=True)
class InsertAction:
    """A row for the store, or, with `target`, for another stream or store; `columns` over the trigger (0) and the row (1)."""

    columns: tuple[Expr, ...]
    target: str | None = None
    where: Expr | None = None


@dataclass(frozen=True)
class UpdateAction:
    """The row gets other values, left to right."""

    sets: tuple[Set | Reset, ...]
    where: Expr | None = None


@dataclass(frozen=True)
class DeleteAction:
    """The row is taken out."""

    where: Expr | None = None


Action = InsertAction | UpdateAction | DeleteAction


@dataclass(frozen=True)
class MergeCase:
    """The actions for a row that is (not) there."""

    matched: bool
    condition: Expr | None
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class Merge:
    """For each row of the store that fulfils `where`, the first case that holds; `always`: as if none did."""

    trigger: Input
    store: str
    type: RowType
    where: Expr | None
    cases: tuple[MergeCase, ...]
    always: bool = False
    gone_as_new: bool = False
    """Whether rows that are taken out are delivered as if they came."""
    lookups: tuple[Lookup, ...] = ()
    own_inputs: tuple[Input, ...] = ()


@dataclass(frozen=True)
class SetVariables:
    """Variables get values, one after the other; the row has the values of all of them."""

    trigger: Input
    type: RowType
    settings: tuple[tuple[str, Expr], ...]
    lookups: tuple[Lookup, ...] = ()
    own_inputs: tuple[Input, ...] = ()


@dataclass(frozen=True)
class StreamUpdate:
    """The events of a stream get other values before anybody sees them, left to right; of several the highest
    `priority` has the last word."""

    stream: str
    type: RowType
    sets: tuple[Set, ...]
    where: Expr | None = None
    lookups: tuple[Lookup, ...] = ()
    own_inputs: tuple[Input, ...] = ()
    priority: int = 0


@dataclass(frozen=True)
class SplitBranch:
    """Rows for a stream: `columns` over the event, or over the event and each row inside it."""

    target: str
    columns: tuple[Expr, ...]
    where: Expr | None
    unnest: Unnest | None = None


@dataclass(frozen=True)
class Split:
    """An event goes to the first branch that takes it, or to every one."""

    trigger: Input
    type: RowType
    branches: tuple[SplitBranch, ...]
    every: bool
    lookups: tuple[Lookup, ...] = ()
    own_inputs: tuple[Input, ...] = ()


@dataclass(frozen=True)
class OnSelect:
    """A select over the trigger (0) and the store (1), made anew for every event; `delete`: its rows leave the store."""

    trigger: Input
    store: str
    select: Select
    delete: bool = False

    @property
    def type(self) -> RowType:
        """The type of its rows."""
        return self.select.type


class ActionInstance(Instance):
    """What all actions do with their trigger: one row after the other."""

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
        self._cases = [
            (case.matched, predicate(case.condition), [_Doing(action, self) for action in case.actions])
            for case in plan.cases
        ]

    def act(self, row: Row) -> None:
        """One event: its rows are found, then all is changed at once."""
        store, e, filtered = self.store(self.plan.store), self.environment, self.plan.where is not None
        work, rows = _Work(self), list[Row]()
        if not self.plan.always:
            found = self._by_key.rows(store, (row,), e)
            rows = [
                each for each in (store.asked(filtered) if found is None else found) if self._where((row, each), (), e)
            ]
        for each in rows:
            self._first(True, (row, each, each), work)
        if not rows:
            self._first(False, (row, None, None), work)
        if work.touched:
            delta = store.change(work.coming, work.updates, work.leaving)
            reset = work.reset(store)
            again = {row.id for row in reset}
            new, old = [*(row for row in delta.new if row.id not in again), *reset], [*delta.old, *work.before]
            self.runner.deliver(self.name, Delta([*new, *old], ()) if self.plan.gone_as_new else Delta(new, old))

    def _first(self, matched: bool, r: Rows, work: _Work) -> None:
        for when, condition, actions in self._cases:
            if when is matched and condition(r, (), self.environment):
                for doing in actions:
                    doing.do(r, work)
                return


class _Work:
    """What one event asks of a store."""

    def __init__(self, home: Instance) -> None:
        self.home = home
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
        values = next((known for each, known in self.updates if each is row), None)
        return row if values is None else Row(row.id, tuple(values.get(n, old) for n, old in enumerate(row.values)))

    def reset(self, store: Any) -> list[Row]:
        """Begin columns again; the rows concerned."""
        rows: dict[int, Row] = {}
        for row, reset in self.resets:
            if row.id not in rows and not any(updated is row for updated, _ in self.updates):
                self.before.append(row)
            if isinstance(store, Table):
                start = reset.fold.start
                rows[row.id] = store.reset(row, reset.column, start, reset.fold.values(start())[0])
        return list(rows.values())


class _Doing:
    """One action."""

    def __init__(self, action: Action, home: Instance) -> None:
        self._action, self._home = action, home
        self._where = predicate(action.where)
        self._columns = compiled_row(action.columns) if isinstance(action, InsertAction) else None
        sets = action.sets if isinstance(action, UpdateAction) else ()
        self._sets = [(each.place, compiled(each.value)) for each in sets if isinstance(each, Set)]
        self._resets = [each for each in sets if isinstance(each, Reset)]

    def do(self, r: Rows, work: _Work) -> None:
        """For one row of the store, or none."""
        e, row = self._home.environment, r[1]
        seen = r if row is None else (r[0], work.as_updated(row), *r[2:])
        if not self._where(seen, (), e):
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

    def _update(self, r: Rows, row: Row, work: _Work) -> None:
        values = next((known for each, known in work.updates if each is row), None)
        changed = dict(values or {})
        for place, value in self._sets:
            now = Row(row.id, tuple(changed.get(n, old) for n, old in enumerate(row.values)))
            changed[place] = value((r[0], now, row), (), self._home.environment)
        if values is not None:
            values.update(changed)
        elif changed:
            work.updates.append((row, changed))
        work.resets += [(row, reset) for reset in self._resets]


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
            self.component.assign(variable, value((row,), (), e))
        values = [e.variables[variable] for variable in self.plan.type.fields]
        self.runner.deliver(self.name, Delta([self.row(values)], ()))
        self.component.tell_variables({variable for variable, _ in self._settings})

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

    def __init__(self, name: str, plan: OnSelect, where: Partition, order: Order) -> None:
        super().__init__(name, plan.select, where, order)
        self._action, self._by_key = plan, ByKey(plan.select.where, 1)

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

    def _asked(self, row: Row) -> None:
        found = self._passing([(row, each) for each in self.held_for(1, self._by_key, (row,))])
        self.kind.clear()
        if found or self.plan.total:
            self.outputs.take(found, ())
        self.kind.clear()
        if self._action.delete and found:
            self.store(self._action.store).change((), (), [r[1] for r in found if r[1] is not None])
