"""Aggregates that a table keeps: the groups of a statement are rows of the table, shared with other statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollup.engine.folding import Fold
from rollup.engine.row import Rows
from rollup.engine.rows.plans import TableTarget
from rollup.engine.rows.selects.grouping import Groups, Key, Level

if TYPE_CHECKING:
    from rollup.engine.rows.instance import Instance
    from rollup.engine.rows.stores.named import Table


class TableGroups(Groups):
    """Groups whose slots stand in a table; a group that has emptied stays there."""

    def __init__(self, target: TableTarget, home: Instance) -> None:
        super().__init__(Level(target.keys, ()), home.environment)
        self._target, self._home = target, home
        self.enter, self.leave = self._enter, self._leave
        self._folds = [Fold((call,)) for call in target.calls]

    @property
    def _table(self) -> Table:
        from rollup.engine.rows.stores.named import Table

        store = self._home.store(self._target.table)
        assert isinstance(store, Table)
        return store

    def _enter(self, r: Rows) -> Key:
        key = self.key(r)
        for fold, slots in zip(self._folds, self._slots(key), strict=True):
            fold.enter(slots, r, self._environment)
        self._write(key)
        return key

    def _leave(self, r: Rows) -> Key:
        key = self.key(r)
        for fold, slots in zip(self._folds, self._slots(key), strict=True):
            fold.leave(slots, r, self._environment)
        self._write(key)
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

    def _write(self, key: Key) -> None:
        for column, fold, slots in zip(self._target.columns, self._folds, self._slots(key), strict=True):
            self._table.put(key, column, fold.values(slots)[0])
