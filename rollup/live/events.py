"""Events from outside: dicts and Arrow tables as the values of their stream's type, refused where they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rollup.core.errors import QueryError
from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.evaluate import field
from rollup.engine.columns.groups import Ints
from rollup.engine.row import Row
from rollup.engine.types import DataType, Kind, RowType
from rollup.lang.fitting import READ, fits, fitting_columns, say_rounded, say_undeclared
from rollup.plan.reading import Unreadable, is_rounded, is_text, read

Make = Callable[[Sequence[Any]], Row]


def values(kinds: RowType, event: Any, make: Make) -> list[Any]:
    """The values of an event. Raises QueryError for one that does not fit its stream."""
    if not isinstance(event, Mapping):
        raise QueryError(f"an event of `{kinds.name}` is a dict, not {type(event).__name__}")
    fields = kinds.fields
    if not event.keys() <= fields.keys():
        _say_undeclared(kinds, event)
    return [
        value
        if (value := event.get(name)) is None or fits(value, kind.kind)
        else _value(value, kind, f"{kinds.name}.{name}", make)
        for name, kind in fields.items()
    ]


def _value(value: Any, kind: DataType, what: str, make: Make) -> Any:
    if value is None:
        return None
    if kind.kind is Kind.LIST:
        if not isinstance(value, (list, tuple)):
            raise QueryError(f"`{what}` is {kind}, and {value!r} is no list")
        element = kind.element or DataType(Kind.ANY)
        return [_value(each, element, what, make) for each in value]
    if kind.row is not None:
        return make(values(kind.row, value, make))
    return converted(value, kind, what)


def converted(value: Any, kind: DataType, what: str) -> Any:
    """A value of an event as one of its declared type. Raises QueryError when it does not fit."""
    try:
        match kind.kind:
            case Kind.DECIMAL if isinstance(value, (int, float, str, Decimal)) and not isinstance(value, bool):
                number = _decimal(str(value))
                if number is not None and number.is_finite():
                    return number
            case Kind.DECIMAL if isinstance(value, np.generic):
                return converted(value.item(), kind, what)
            case Kind.ANY | Kind.NULL if not isinstance(value, str) or is_text(value):
                return value
            case known if known in READ:
                found = read(value, READ[known])
                if is_rounded(value, found):
                    say_rounded(*what.split(".", 1), READ[known])
                return found
            case _:
                pass
    except Unreadable:
        pass
    wanted = "; an instant is a whole number of milliseconds since 1970" if kind.kind is Kind.TIMESTAMP else ""
    raise QueryError(f"`{what}` is {kind}, and {value!r} is not", hint=f"the event was refused{wanted}")


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


@dataclass(frozen=True)
class Events:
    """Events of a stream; `columns` where they are known to fit as whole columns."""

    kinds: RowType
    given: Sequence[Any]
    columns: tuple[pa.Array, ...] | None

    @classmethod
    def of(cls, kinds: RowType, given: Any) -> Events:
        """A dict, several dicts, or an Arrow table or whatever gives one (a frame of pandas or Polars). Raises QueryError
        for anything else."""
        if isinstance(given, Mapping):
            return cls(kinds, [given], None)
        if isinstance(given, pa.RecordBatch) or hasattr(given, "__arrow_c_stream__"):
            table = given if isinstance(given, pa.Table) else _table(kinds, given)
            columns = _columns(kinds, table)
            return cls(kinds, range(table.num_rows) if columns is not None else table.to_pylist(), columns)
        if not isinstance(given, Iterable):
            what = f"events of `{kinds.name}` are no {type(given).__name__}"
            raise QueryError(what, hint="a dict, several dicts, an Arrow table or a frame")
        found: Iterable[Any] = given
        return cls(kinds, found if isinstance(found, Sequence) else list(found), None)

    def __len__(self) -> int:
        return len(self.given)

    def slice(self, begin: int, size: int) -> Events:
        """Some of them."""
        columns = None if self.columns is None else tuple(column.slice(begin, size) for column in self.columns)
        return Events(self.kinds, self.given[begin : begin + size], columns)

    def where(self, mask: pa.Array) -> Events:
        """Those of a mask, which are known as columns."""
        columns = tuple(column.filter(mask) for column in self.columns or ())
        return Events(self.kinds, range(mask.true_count), columns)

    def rows(self, make: Make) -> Iterable[Sequence[Any]]:
        """The values of each event; one that does not fit is refused when it is reached."""
        if self.columns is not None:
            return zip(*(column.to_pylist() for column in self.columns), strict=True)
        return (values(self.kinds, event, make) for event in self.given)

    def batch(self, stream: str, times: Ints, make: Make) -> Batch | None:
        """The events as a batch, each at its instant; None where one of them does not fit."""
        if self.columns is not None:
            return Batch.of(self.columns, times, stream=stream)
        try:
            found = [values(self.kinds, event, make) for event in self.given]
        except QueryError:
            return None
        kinds = self.kinds.fields.values()
        columns = [field(column, kind) for column, kind in zip(zip(*found, strict=True), kinds, strict=True)]
        whole = all(kind.arrow is not None for kind in kinds)
        return Batch.of(columns, times, stream=stream, given=None if whole else found)


def _table(kinds: RowType, frame: Any) -> pa.Table:
    try:
        table = pa.table(frame)
        unnamed = [
            name for name in table.column_names if name.startswith("__index_level_") and name not in kinds.fields
        ]
        return table.drop_columns(unnamed)  # row numbers of pandas
    except (pa.ArrowException, ValueError, TypeError) as problem:
        said = " ".join(str(each) for each in problem.args)
        raise QueryError(f"events of `{kinds.name}`: Arrow makes no table of this frame: {said}") from None


def instants(given: Any, count: int, unit: Literal["ms", "us"]) -> Ints | None:
    """Instants of events in a unit since 1970: one for all, or a column of one each. None for what holds others, or gaps.

    >>> from datetime import datetime
    >>> instants(datetime(1970, 1, 2), 2, "ms").tolist(), instants([1.5], 1, "ms")
    ([86400000, 86400000], None)
    """
    if is_whole(given) or is_time(given):
        given = [given] * count
    column: Any
    try:
        if isinstance(given, np.ndarray):
            column = given
        elif isinstance(given, Sequence) and all(map(is_whole, given)):
            column = np.array(given, np.int64)
        elif hasattr(given, "__arrow_c_stream__") or isinstance(given, pa.ChunkedArray):
            column = pa.chunked_array(given)
        elif hasattr(given, "__array__") or (isinstance(given, Sequence) and all(map(is_time, given))):
            column = pa.array(given)
        else:
            return None
    except (pa.ArrowException, ValueError, OverflowError):
        return None
    if isinstance(column, pa.Array | pa.ChunkedArray):
        if column.null_count or not (pa.types.is_timestamp(column.type) or pa.types.is_integer(column.type)):
            return None
        column = column.to_numpy()
    if column.dtype.kind == "M":
        return None if np.isnat(column).any() else column.astype(f"datetime64[{unit}]").astype(np.int64)
    return column.astype(np.int64) if column.dtype.kind in "iu" else None


def is_whole(given: Any) -> bool:
    """Whether a value is a whole number."""
    return isinstance(given, (int, np.integer)) and not isinstance(given, bool)


def is_time(given: Any) -> bool:
    """Whether a value is a time of Python, pandas or NumPy."""
    return isinstance(given, datetime | np.datetime64)


def _columns(kinds: RowType, table: pa.Table) -> tuple[pa.Array, ...] | None:
    """The columns of a table as the types of a stream; None where only its values, one by one, can tell."""
    _say_undeclared(kinds, table.column_names)
    return fitting_columns(kinds, table)


def _say_undeclared(kinds: RowType, names: Iterable[Any]) -> None:
    for name in names:
        if name not in kinds.fields:
            say_undeclared(kinds.name, str(name), tuple(kinds.fields))
