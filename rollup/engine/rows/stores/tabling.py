"""Aggregates that a table keeps: the groups of a statement are rows of the table, shared with other statements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rollup.engine.folding import Fold
from rollup.engine.row import Rows
from rollup.engine.rows.plans import TableTarget
from rollup.engine.rows.selects.grouping import Groups, Key, Level

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

    def _slots(self, key: Key) -> list[list[Any]]:
        return self._table.slots(key, self._target.columns, self._folds)

    def _write(self, key: Key, slots: Sequence[list[Any]]) -> None:
        values = [fold.values(each)[0] for fold, each in zip(self._folds, slots, strict=True)]
        self._table.put(key, self._target.columns, values)
