"""Aggregates that a table keeps: the groups of a statement are rows of the table, shared with other statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from rollup.engine.compiling import Same, compiled_row, is_key
from rollup.engine.expressions import Expr
from rollup.engine.folding import Fold
from rollup.engine.row import Row, Rows
from rollup.engine.rows.plans import TableTarget
from rollup.engine.rows.selects.grouping import Groups, Key, Level, StepOfGroup

if TYPE_CHECKING:
    from rollup.engine.rows.instance import Instance
    from rollup.engine.rows.stores.tables import Table


class TableGroups(Groups):
    """Groups whose slots stand in a table; a group that has emptied stays there."""

    def __init__(self, target: TableTarget, home: Instance) -> None:
        super().__init__(Level(target.keys, ()), home.environment)
        self._target, self._home = target, home
        self.enter, self.leave = self._enter, self._leave
        self._folds = [Fold((call,)) for call in target.calls]
        self._enters, self._leaves = [fold.enter for fold in self._folds], [fold.leave for fold in self._folds]

    @cached_property
    def _table(self) -> Table:
        from rollup.engine.rows.stores.tables import Table

        store = self._home.store(self._target.table)
        assert isinstance(store, Table)
        return store

    def _enter(self, r: Rows) -> Key:
        key, e = self.key(r), self._environment
        slots = self._slots(key)
        for enter, each in zip(self._enters, slots, strict=True):
            enter(each, r, e)
        self._write(key, slots)
        return key

    def _leave(self, r: Rows) -> Key:
        key, e = self.key(r), self._environment
        slots = self._slots(key)
        for leave, each in zip(self._leaves, slots, strict=True):
            leave(each, r, e)
        self._write(key, slots)
        return key

    def values(self, key: Key) -> tuple[Any, ...]:
        """The values as the table has them."""
        if self._table.find(key) is None:
            return tuple(fold.values(fold.start())[0] for fold in self._folds)
        return tuple(fold.values(slots)[0] for fold, slots in zip(self._folds, self._slots(key), strict=True))

    def clear(self) -> None:
        """The table goes on."""

    def __contains__(self, key: Key) -> bool:
        return self._table.find(key) is not None

    def snapshot(self) -> Any:
        """The table has it all."""
        return None

    def restore(self, state: Any) -> None:
        """The table has it all."""

    def step(self, shown: Sequence[Expr], nothing: Rows | None = None) -> StepOfGroup | None:
        """As one generated function, where the aggregates bring no objects of their own and the keys are keys as they are."""
        calls, keys = self._target.calls, self._target.keys
        if any(call.aggregate.objects for call in calls) or not all(is_key(each.type) for each in keys):
            return None
        form = _Form(
            Same(calls), Same(keys), Same(tuple(shown)), self._target.columns, tuple(self._table.spec.type.fields)
        )
        return _generated(form)(self._table, self._anew(shown, nothing), nothing)

    def _anew(self, shown: Sequence[Expr], nothing: Rows | None) -> StepOfGroup:
        """The same for a row whose group may have to be made."""
        columns = compiled_row(shown)

        def step(r: Rows, e: Any) -> tuple[Key, tuple[Any, ...]]:
            key = self._enter(r)
            return key, columns(r if nothing is None else nothing, (*key, *self.values(key)), e)

        return step

    def _slots(self, key: Key) -> list[list[Any]]:
        return self._table.slots(key, self._target.columns, self._folds)

    def _write(self, key: Key, slots: Sequence[list[Any]]) -> None:
        values = [fold.values(each)[0] for fold, each in zip(self._folds, slots, strict=True)]
        self._table.put(key, self._target.columns, values)


@dataclass(frozen=True)
class _Form:
    """What a step is made of; `columns` of the `fields` of the table have the aggregates."""

    calls: Same
    keys: Same
    shown: Same
    columns: tuple[str, ...]
    fields: tuple[str, ...]


@lru_cache(maxsize=4096)
def _generated(form: _Form) -> Callable[[Table, StepOfGroup, Rows | None], StepOfGroup]:
    """Generated: `bind(table, anew, nothing)` gives the step; `nothing`: what is shown sees that instead of the row."""
    calls, keys = form.calls.items, form.keys.items
    values, of_key = [f"a{i}" for i in range(len(calls))], [f"k[{i}]" for i in range(len(keys))]
    source = Fold(calls).source((*of_key, *values))
    source.objects["Row"] = Row

    def step() -> None:
        key = "".join(f"{source.emit(each)}, " for each in keys)
        source.line(f"rows, slots, k = *table.rows_and_slots, ({key})")
        source.line("row, own = rows.get(k), slots.get(k)")
        source.line("if row is None or own is None: return anew(r, e)")
        for i, column in enumerate(form.columns):
            source.line(f"g{i} = own.get({source.name(column)})")
        source.line(f"if {' or '.join(f'g{i} is None' for i in range(len(calls)))}: return anew(r, e)")
        for i, call in enumerate(calls):
            source.line(f"g = g{i}")
            fold = Fold((call,))
            fold.changes(source, "enter")
            source.line(f"a{i} = {fold.value(0)}")
        made = dict(zip(form.columns, values, strict=True))
        fields = "".join(f"{made.get(name, f'v[{i}]')}, " for i, name in enumerate(form.fields))
        source.line("v = row.values")
        source.line(f"rows[k] = Row(row.id, ({fields}))")
        source.line("if nothing is not None: r = nothing")
        source.line(f"return k, ({''.join(f'{source.emit(each)}, ' for each in form.shown.items)})")

    source.block("def step(r, e):", step)
    source.line("return step")
    return source.function("bind", "table, anew, nothing")
