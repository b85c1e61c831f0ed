"""Tables that queries read and change, and windows that they share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rollup.engine.compiling import compiled_row, predicate
from rollup.engine.row import Row, Rows, comparable
from rollup.engine.rows.deliveries.queries import ChangeSpec
from rollup.engine.rows.deliveries.selecting import Selected
from rollup.engine.rows.keyed import ByKey, Finder, Key, findable
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.windows.base import Host
from rollup.engine.types import RowType


class Table:
    """Rows by number; with `key`, places of fields, a second row of the same key is refused and counted.

    Conditions that say what some fields equal find the rows by these, so an event costs the same however many rows there are.
    """

    def __init__(self, kinds: RowType, key: Sequence[int], host: Host) -> None:
        self._kinds, self._key, self._host = kinds, tuple(key), host
        self._rows: dict[int, Row] = {}
        self._finders: dict[tuple[int, ...], Finder] = {}
        self._keys: dict[tuple[Any, ...], int] = {}
        self.refused = 0

    def content(self) -> Iterable[Row]:
        """The rows, oldest first."""
        return list(self._rows.values())

    def by(self, places: Collection[int]) -> tuple[int, ...]:
        """See `Findable`."""
        return findable(self._kinds, places)

    def having(self, places: tuple[int, ...], key: Key) -> Sequence[Row]:
        """See `Findable`."""
        finder = self._finders.get(places)
        if finder is None:
            finder = self._finders[places] = Finder(places, self._rows.values())
        return finder.having(key)

    def showing(self, places: tuple[int, ...], key: Key) -> Sequence[Row]:
        """See `Findable`."""
        return self.having(places, key)

    def matching(self, by_key: ByKey, rows: Rows, environment: Environment) -> Iterable[Row]:
        """The rows that may fulfil a condition, oldest first."""
        found = by_key.rows(self, rows, environment)
        return self.content() if found is None else found

    def insert(self, values: Sequence[Any]) -> bool:
        """A row more; False when its key is there already."""
        key = self._of(values)
        if self._key and key in self._keys:
            self.refused += 1
            return False
        row = self._host.row(values)
        self._rows[row.id] = row
        self._keys[key] = row.id
        for finder in self._finders.values():
            finder.change((row,), ())
        return True

    def delete(self, row: Row) -> None:
        """A row less."""
        self._rows.pop(row.id, None)
        for finder in self._finders.values():
            finder.change((), (row,))
        self._keys.pop(self._of(row.values), None)

    def change(self, row: Row, values: Sequence[Any]) -> None:
        """Other values for a row, in its place; to another row's key it is refused."""
        before, after = self._of(row.values), self._of(values)
        if self._key and after != before and after in self._keys:
            self.refused += 1
            return
        self._keys.pop(before, None)
        self._keys[after] = row.id
        self._rows[row.id] = changed = Row(row.id, tuple(values))
        for places, finder in list(self._finders.items()):
            if all(row.values[place] is changed.values[place] for place in places):
                finder.change((changed,), ())
            else:  # its place among the rows of another key is not known without a look at all
                del self._finders[places]

    def snapshot(self) -> Any:
        """The rows."""
        return [[list(self._rows.values())], self.refused]

    def restore(self, state: Any) -> None:
        """The rows."""
        self._rows, self._keys, self._finders = {row.id: row for row in state[0][0]}, {}, {}
        for row in self._rows.values():
            self._keys[self._of(row.values)] = row.id
        self.refused = state[1]

    def _of(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The key of a row."""
        return comparable([values[place] for place in self._key])


class Change:
    """What a query's rows do to a table: the condition and the assignments see the table's row, then the query's."""

    def __init__(self, table: Table, spec: ChangeSpec, host: Host) -> None:
        self._table, self._on, self._host, self._by_key = table, predicate(spec.on), host, ByKey(spec.on, 0)
        self._places, self._values, self._inserted = spec.places, compiled_row(spec.values), spec.inserted

    def delete(self, rows: Sequence[Selected]) -> None:
        """Rows of the table that match are gone."""
        for made in rows:
            for row in self._matching(made.row):
                self._table.delete(row)

    def update(self, rows: Sequence[Selected]) -> None:
        """Rows of the table that match have other values."""
        for made in rows:
            self._updated(made.row)

    def upsert(self, rows: Sequence[Selected]) -> None:
        """As update; a row that matches none is inserted, column by column."""
        for made in rows:
            if not self._updated(made.row):
                values = made.row.values
                self._table.insert([None if place is None else values[place] for place in self._inserted])

    def _updated(self, given: Row) -> bool:
        found = self._matching(given)
        for row in found:
            new = list(row.values)
            computed = self._values((row, given), (0,), self._host.environment)
            for place, value in zip(self._places, computed, strict=True):
                new[place] = value
            self._table.change(row, new)
        return bool(found)

    def _matching(self, given: Row) -> list[Row]:
        environment = self._host.environment
        rows = self._table.matching(self._by_key, (None, given), environment)
        return [row for row in rows if self._on((row, given), (0,), environment)]
