"""Tables: rows by key that statements share, some columns of which may be aggregates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollup.engine.compiling import is_key
from rollup.engine.folding import Fold
from rollup.engine.row import Delta, Row, comparable, listed
from rollup.engine.rows.keyed import Key, KeyIndex
from rollup.engine.rows.stores.named import Store, UniqueIndex, Updates, updated
from rollup.engine.timers import Order
from rollup.engine.types import RowType

if TYPE_CHECKING:
    from rollup.engine.rows.contexts.partitions import Partition


@dataclass(frozen=True)
class TableStore:
    """A table: its rows' type, the places of its keys, and the aggregated columns."""

    type: RowType
    keys: tuple[int, ...]
    aggregated: tuple[str, ...] = ()
    starts: tuple[tuple[int, Any], ...] = ()
    """The values, by place, that aggregated columns of a new row have; the others are null."""


class Table(Store):
    """Rows by key, or one row at most. A row never changes: an update puts another with its number in its place."""

    def __init__(self, name: str, statement: str, spec: TableStore, where: Partition, order: Order) -> None:
        super().__init__(name, where, order)
        self.spec, self.statement = spec, statement
        self.unique.append(UniqueIndex(name, spec.keys))
        kinds = list(spec.type.fields.values())
        self._keys = all(is_key(kinds[place]) for place in spec.keys)
        """Whether the values are keys as they are."""
        self._rows: dict[Key, Row] = {}
        self._slots: dict[Key, dict[str, list[Any]]] = {}

    def content(self) -> Sequence[Row]:
        """In the order in which keys came."""
        return list(self._rows.values())

    def find(self, key: Key) -> Row | None:
        """The row of a key."""
        return self._rows.get(key)

    def by(self, places: Collection[int]) -> tuple[int, ...]:
        return self.spec.keys if set(self.spec.keys) <= set(places) else ()

    def having(self, places: tuple[int, ...], key: Key) -> Sequence[Row]:
        row = self._rows.get(key)
        return () if row is None else (row,)

    def index_by(self, places: tuple[int, ...]) -> KeyIndex:
        return KeyIndex(lambda key: self.having(places, key), self.find, single=True)

    def _known(self, index: UniqueIndex, keys: set[Key], gone: set[int]) -> set[Key]:
        if index.places != self.spec.keys:
            return super()._known(index, keys, gone)
        return {key for key in keys if (row := self._rows.get(key)) is not None and row.id not in gone}

    def change(self, coming: Sequence[Row], updates: Updates = (), leaving: Sequence[Row] = ()) -> Delta:
        """A row that is updated keeps its number and its place."""
        coming = [self._started(row) for row in coming] if self.spec.starts else coming
        before = [row for row, _ in updates]
        after = [Row(row.id, updated(row, values)) for row, values in updates]
        new, old = [*coming, *after], [*leaving, *before]
        stay = len(self.unique) == 1 and all(values.keys().isdisjoint(self.spec.keys) for _, values in updates)
        if coming or not stay:  # rows that stay where they are break no key
            self.check(new, old)
        for row in leaving:
            self._rows.pop(self._key_of(row), None)
            self._slots.pop(self._key_of(row), None)
        if stay:
            for row in after:
                self._rows[self._key_of(row)] = row
        else:
            self._move(before, after)
        for row in coming:
            self._rows[self._key_of(row)] = row
        return Delta(new, old)

    def _move(self, before: Sequence[Row], after: Sequence[Row]) -> None:
        """Rows in the places of others, whose aggregates they take over. One may go where another stood."""
        places = [(self._key_of(one), self._key_of(other), other) for one, other in zip(before, after, strict=True)]
        left = [was for was, key, _ in places if was != key]
        slots = {was: self._slots.pop(was) for was in left if was in self._slots}
        for was in left:
            self._rows.pop(was, None)
        for was, key, row in places:
            self._rows[key] = row
            if was in slots:
                self._slots[key] = slots[was]

    def slots(self, key: Key, columns: Sequence[str], folds: Sequence[Fold]) -> list[list[Any]]:
        """The slots of aggregated columns of a row, which is made when it is not there."""
        if key not in self._rows:
            values: list[Any] = [None] * len(self.spec.type.fields)
            for place, value in zip(self.spec.keys, key, strict=True):
                values[place] = value if self._keys else listed(value)
            self._rows[key] = self._started(self.row(values))
        found = self._slots.setdefault(key, {})
        for column, fold in zip(columns, folds, strict=True):
            if column not in found:
                found[column] = fold.start()
        return [found[column] for column in columns]

    def _started(self, row: Row) -> Row:
        values = list(row.values)
        for place, start in self.spec.starts:
            values[place] = start if values[place] is None else values[place]
        return Row(row.id, tuple(values))

    def put(self, key: Key, columns: Sequence[str], values: Sequence[Any]) -> None:
        """The values of some columns."""
        row, index = self._rows[key], self.spec.type.index
        changed = list(row.values)
        for column, value in zip(columns, values, strict=True):
            changed[index[column]] = value
        self._rows[key] = Row(row.id, tuple(changed))

    def reset(self, row: Row, column: str, start: Callable[[], list[Any]], value: Any) -> Row:
        """An aggregated column begins again; the row as it is then."""
        key = self._key_of(row)
        self._slots.setdefault(key, {})[column] = start()
        self.put(key, (column,), (value,))
        return self._rows[key]

    def rows(self) -> list[Row]:
        """The content."""
        return list(self.content())

    def kept(self) -> Any:
        """Rows and slots."""
        return [list(self._rows.items()), [[key, list(slots.items())] for key, slots in self._slots.items()]]

    def restore_kept(self, state: Any) -> None:
        """Rows and slots."""
        self._rows = dict(state[0])
        self._slots = {key: dict(slots) for key, slots in state[1]}

    def _key_of(self, row: Row) -> Key:
        key = tuple([row.values[place] for place in self.spec.keys])
        return key if self._keys else comparable(key)
