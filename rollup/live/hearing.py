"""What statements deliver, told to listeners: rows as dicts, or tables; what nobody listens to is kept for a while."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Output
from rollup.engine.columns.running.telling import Heap, Told
from rollup.engine.residence import Emitted
from rollup.engine.row import Row
from rollup.engine.rows.runner import Delivery
from rollup.engine.types import DataType, Kind, RowType

Values = dict[str, Any]
Listener = Callable[[list[Values], list[Values]], None]
"""Gets what comes and what leaves, as dicts by column."""
_KEPT = 100_000


@dataclass(frozen=True)
class Heard:
    """What a statement delivered at an instant: the rows of its insert stream and of its remove stream."""

    statement: str
    at: int
    new: list[Values]
    old: list[Values]


@dataclass(frozen=True)
class Arrived:
    """Rows that statements of one shape delivered for one call, in order: a row's statement, instant and sign (+1 comes,
    -1 leaves) stand beside it.
    """

    statement: pa.DictionaryArray
    at: pa.Array
    sign: pa.Array
    rows: pa.Table


ArrowListener = Callable[[Arrived], None]


class Hearing:
    """The listeners, and what has none. `types` are the rows of each statement."""

    def __init__(self, types: Mapping[str, RowType]) -> None:
        self._types = types
        self._listeners: dict[str, list[Listener]] = {}
        self._tables: dict[str | None, list[ArrowListener]] = {}
        self._kept = deque[Heard | tuple[Told, list[Heap]]]()
        self._weight = 0
        self._gone: set[str] | None = None
        """Statements that were undeployed since it began to be told what is told now; None while nothing is."""

    def listen(self, statement: str, listener: Listener) -> None:
        """Tell a function."""
        self._listeners.setdefault(statement, []).append(listener)

    def listen_arrow(self, listener: ArrowListener, statements: Sequence[str]) -> None:
        """Tell a function in tables; without statements, of all of them."""
        for name in statements or (None,):
            self._tables.setdefault(name, []).append(listener)

    def heard(self) -> list[Heard]:
        """What was kept, once."""
        kept, self._kept, self._weight = self._kept, deque(), 0
        found: list[Heard] = []
        for each in kept:
            if isinstance(each, Heard):
                found.append(each)
            else:
                told, heaps = each
                found += [self._heard(one) for one in told.merged(heaps) if not self._only_tables((_name(one),))]
        return found[-_KEPT:]

    @contextmanager
    def undeploying(self, statements: Sequence[str]) -> Generator[None]:
        """While these are undeployed: what was kept of them stays, and whoever is told now hears no more of them."""
        self._kept = deque(self.heard())
        self._weight = len(self._kept)
        yield
        if self._gone is not None:
            self._gone.update(statements)

    def _there(self, statement: str) -> bool:
        return not self._gone or statement not in self._gone

    def _telling(self, tell: Callable[..., None], *what: Any) -> None:
        """Who is told may undeploy statements, deploy others under their names, and send events that bring more."""
        outer, self._gone = self._gone, set()
        try:
            tell(*what)
        finally:
            if outer is not None:
                outer |= self._gone
            self._gone = outer

    def tell(self, told: Told) -> None:
        """What a batch, an event or the clock has brought."""
        self._telling(self._tell_all, told)

    def _tell_all(self, told: Told) -> None:
        if self._tables:
            self._tell_tables(told)
            if None in self._tables and not self._listeners:
                return
        named = [heap for heap in told.heaps if not self._only_tables(heap.concerned)]
        rows = [each for each in told.rows if not self._only_tables((each[1].statement,))]
        left = Told(rows, named, told.times)
        if named and not self._gone and not self._called(left):
            self._keep((left, named), len(rows) + sum(heap.output.rows for heap in named))
            return
        for each in left.merged(named):
            if self._there(_name(each)) and not self._only_tables((_name(each),)):
                self._tell(self._heard(each))

    def tell_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """What events or the clock have brought, in order."""
        self.tell(_told(deliveries))

    def tell_emitted(self, emitted: Sequence[Emitted]) -> None:
        """What a batch through the program of a component has brought."""
        told = [each for each in emitted if len(each.at)]
        if self._only_tables([each.statement for each in told]):
            self._telling(self._tell_each_emitted, told)
        else:
            placed = sorted((one for each in told for one in each.deliveries()), key=itemgetter(0))
            self.tell_deliveries([delivery for _, delivery in placed])

    def _tell_each_emitted(self, emitted: Sequence[Emitted]) -> None:
        arrived = [_of_emitted(each, self._of(each.statement)) for each in emitted]  # as long as all of them are there
        for each, table in zip(emitted, arrived, strict=True):
            for name in (None, each.statement) if self._there(each.statement) else ():
                self._give(self._tables.get(name, []), table)

    def _called(self, told: Told) -> bool:
        """Whether a function that takes rows hears any of it."""
        if not self._listeners:
            return False
        names = {name for heap in told.heaps for name in heap.concerned} | {each.statement for _, each in told.rows}
        return not names.isdisjoint(self._listeners)

    def _only_tables(self, names: Sequence[str]) -> bool:
        """Whether nobody but listeners to tables hears these statements."""
        if not self._tables:
            return False
        every = None in self._tables
        return all((every or name in self._tables) and name not in self._listeners for name in names)

    def _tell(self, heard: Heard) -> None:
        listeners = self._listeners.get(heard.statement)
        if listeners is None:
            self._keep(heard, 1)
            return
        for listener in listeners:
            listener(heard.new, heard.old)

    def _keep(self, what: Any, weight: int) -> None:
        self._kept.append(what)
        self._weight += weight
        while self._weight > 2 * _KEPT and len(self._kept) > 1:
            first = self._kept.popleft()
            self._weight -= 1 if isinstance(first, Heard) else len(first[0].rows) + sum(h.output.rows for h in first[1])

    def placed(self, told: Told) -> Iterator[tuple[int, Heard]]:
        """What a batch has brought, each with the number of the event that brought it, for one who wants it all himself."""
        for place, each in told.placed(told.heaps):
            yield place[0] // 2, self._heard(each)

    def _heard(self, each: Delivery | tuple[str, int, list[Any], list[Any]]) -> Heard:
        if isinstance(each, Delivery):
            kinds = self._types.get(each.statement, RowType("", {}))
            new, old = ([shown(row, kinds) for row in rows] for rows in (each.delta.new, each.delta.old))
            return Heard(each.statement, each.at, new, old)
        name, at, *parts = each
        columns = list(self._types[name].fields)
        new, old = ([dict(zip(columns, row, strict=True)) for row in rows] for rows in parts)
        return Heard(name, at, new, old)

    # tables

    def _tell_tables(self, told: Told) -> None:
        by_name: dict[str, list[Delivery]] = {}
        for _, delivery in told.rows:
            by_name.setdefault(delivery.statement, []).append(delivery)
        if every := self._tables.get(None, []):
            self._tell_every(every, told, by_name)
        for name, deliveries in by_name.items():
            if (listeners := self._tables.get(name, [])) and self._there(name):
                self._give(listeners, _of_rows(self._of(name), deliveries))
        for heap in told.heaps:
            self._tell_heap(heap)

    def _tell_every(
        self, listeners: Sequence[ArrowListener], told: Told, by_name: Mapping[str, list[Delivery]]
    ) -> None:
        """Statements of one shape are told together: a table for each of many would cost more than what made its rows."""
        shapes: dict[Any, dict[str, list[Delivery]]] = {}
        for name, deliveries in by_name.items():
            shapes.setdefault(tuple(self._of(name).fields.items()), {})[name] = deliveries
        for shape in shapes.values():
            alike = {name: deliveries for name, deliveries in shape.items() if self._there(name)}
            kinds = self._of(next(iter(alike), ""))
            if len(alike) > 1:
                arrived = _of_rows(kinds, [each for _, each in told.rows if each.statement in alike])
                if arrived is None or _declared(kinds, arrived.rows):
                    self._give(listeners, arrived)
                    continue
            for name, deliveries in alike.items():
                self._give(listeners, _of_rows(kinds, deliveries) if self._there(name) else None)

    def _of(self, name: str) -> RowType:
        """The rows of a statement; of one that is gone, none are known."""
        return self._types.get(name, RowType("", {}))

    def _tell_heap(self, heap: Heap) -> None:
        every = self._tables.get(None, [])
        whole = not self._gone or self._gone.isdisjoint(heap.names)
        given = every and heap.output.rows and whole  # a delivery of no rows is no table
        self._give(every, _of_heap(heap.names, heap.output, self._types[heap.names[0]]) if given else None)
        if whole and len(self._tables) == (None in self._tables):
            return
        for name, output in heap.parts():
            listeners = [*(every if output.rows and not whole else ()), *self._tables.get(name, ())]
            if listeners and self._there(name):
                self._give(listeners, _of_heap((name,), output, self._types[name]))

    def _give(self, listeners: Sequence[ArrowListener], arrived: Arrived | None) -> None:
        for listener in listeners if arrived is not None else ():
            listener(arrived)  # pyright: ignore[reportArgumentType]


def _told(deliveries: Sequence[Delivery]) -> Told:
    return Told([((0, 0, 0), each) for each in deliveries], [], np.empty(0, np.int64))


def _name(each: Any) -> str:
    return each.statement if isinstance(each, Delivery) else each[0]


def _of_heap(names: tuple[str, ...], output: Output, kinds: RowType) -> Arrived:
    of = _same(_FIRST, output.rows) if output.statement is None else pa.array(output.statement.astype(np.int32))
    statement = pa.DictionaryArray.from_arrays(of, _dictionary(names), safe=False)  # places of `names`
    sign = _same(_COMES, output.rows) if output.sign is None else pa.array(output.sign)
    rows = pa.table(list(output.columns), names=list(kinds.fields))
    return Arrived(statement, pa.array(output.at), sign, rows)


_FIRST, _COMES = pa.array(np.zeros(1024, np.int32)), pa.array(np.ones(1024, np.int8))


def _same(few: pa.Array, rows: int) -> pa.Array:
    """The value that stands in a few rows, for so many."""
    return few.slice(0, rows) if rows <= len(few) else pa.repeat(few[0], rows)


@lru_cache(maxsize=64)
def _dictionary(names: tuple[str, ...]) -> pa.Array:
    return pa.array(names, pa.string())


def _of_rows(kinds: RowType, deliveries: Sequence[Delivery]) -> Arrived | None:
    parts = [part for each in deliveries for part in each.delta[:2]]
    rows = [row.values for part in parts for row in part]
    if not rows:
        return None
    names, many = dict[str, int](), np.array([len(part) for part in parts])
    codes = np.array([names.setdefault(each.statement, len(names)) for each in deliveries], np.int32)
    statement = pa.DictionaryArray.from_arrays(
        pa.array(codes.repeat(2).repeat(many)), pa.array(list(names), pa.string())
    )
    at = pa.array(np.array([each.at for each in deliveries], np.int64).repeat(2).repeat(many))
    sign = pa.array(np.array([1, -1] * len(deliveries), np.int8).repeat(many))
    return Arrived(statement, at, sign, _table(rows, kinds))


def _of_emitted(emitted: Emitted, kinds: RowType) -> Arrived:
    """What a statement has emitted; a column whose values are beyond its type keeps that of the values."""
    statement = pa.DictionaryArray.from_arrays(_same(_FIRST, len(emitted.at)), _dictionary((emitted.statement,)))
    columns = [
        _cast(column, arrow_type(kind)) for column, kind in zip(emitted.columns, kinds.fields.values(), strict=True)
    ]
    rows = pa.table(columns, names=list(kinds.fields))
    return Arrived(statement, pa.array(emitted.at), pa.array(emitted.sign, pa.int8()), rows)


def _cast(column: pa.Array, wanted: pa.DataType | None) -> pa.Array:
    try:
        return column if wanted is None or column.type == wanted else column.cast(wanted)
    except pa.ArrowInvalid:
        return column


def _table(rows: Sequence[Sequence[Any]], kinds: RowType) -> pa.Table:
    values = zip(zip(*rows, strict=True), kinds.fields.values(), strict=True)
    return pa.table([_column(found, kind) for found, kind in values], names=list(kinds.fields))


def _declared(kinds: RowType, rows: pa.Table) -> bool:
    """Whether all columns have the type of their declaration, so that no statement's values change another's columns."""
    return all(
        arrow_type(kind) == column for kind, column in zip(kinds.fields.values(), rows.schema.types, strict=True)
    )


def _column(values: Sequence[Any], kind: DataType) -> pa.Array:
    """A column of its type; of the type of its values where they are wider, as sums may be; else of their texts."""
    wanted = arrow_type(kind)
    try:
        if wanted is not None and (kind.row is not None or kind.kind is Kind.LIST):
            return _nested(values, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError, AttributeError):
        pass  # a value is not what its type says
    seen = values if kind.arrow is not None else [_shown(value, kind) for value in values]
    for each in (wanted, None):
        try:
            return pa.array(seen, each)
        except (pa.ArrowException, OverflowError, TypeError):
            continue
    return pa.array([None if value is None else str(value) for value in seen], pa.string())


def _nested(values: Sequence[Any], kind: DataType) -> pa.Array:
    """A column of rows or of lists, made of the columns inside it. Raises what shows that a value is of another type."""
    missing = [value is None for value in values]
    if kind.row is not None and values and (width := len(kind.row.fields)):
        inner = [(None,) * width if value is None else value.values for value in values]
        columns = zip(zip(*inner, strict=True), kind.row.fields.items(), strict=True)
        arrays = [(name, _nested(found, each)) for found, (name, each) in columns]
        fields = [pa.field(name, array.type) for name, array in arrays]
        return pa.StructArray.from_arrays([array for _, array in arrays], fields=fields, mask=pa.array(missing))
    if kind.kind is not Kind.LIST or kind.element is None:
        if kind.row is not None and len(missing) > sum(missing):
            raise TypeError("a row without columns")
        return pa.array(values, arrow_type(kind))
    ends = np.cumsum([0, *(len(value) if value is not None else 0 for value in values)])
    flat = [each for value in values if value is not None for each in value]
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), _nested(flat, kind.element), mask=pa.array(missing))


def arrow_type(kind: DataType) -> pa.DataType | None:
    """The Arrow type of a delivered column; None where it depends on the values (decimals, values of any type)."""
    if kind.arrow is not None and kind.kind is not Kind.NULL:
        return kind.arrow
    if kind.row is not None:
        inner = {name: arrow_type(each) for name, each in kind.row.fields.items()}
        known = {name: each for name, each in inner.items() if each is not None}
        return pa.struct(list(known.items())) if len(known) == len(inner) else None
    if kind.kind is Kind.LIST and kind.element is not None:
        element = arrow_type(kind.element)
        return None if element is None else pa.list_(element)
    return None


def shown(row: Row, kinds: RowType) -> Values:
    """A row as a dict, rows inside it too."""
    return {name: _shown(value, kind) for (name, kind), value in zip(kinds.fields.items(), row.values, strict=True)}


def _shown(value: Any, kind: DataType) -> Any:
    if isinstance(value, Row):
        return shown(value, kind.row) if kind.row is not None else list(value.values)
    if isinstance(value, dict):
        return {key: _shown(each, kind.element or DataType(Kind.ANY)) for key, each in value.items()}
    if isinstance(value, list):
        element = kind.element or DataType(Kind.ANY)
        return [_shown(each, element) for each in value]
    return value
