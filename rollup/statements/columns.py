"""What components over columns share: events as Arrow with the time of each, and what comes back as events."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rollup.plan.app import StreamDef
from rollup.plan.types import Type
from rollup.statements.component import Event, Streams
from rollup.statements.values import plain

ROWTIME = "rowtime"
"""The column of the time of an event."""
_TIME = pa.timestamp("us")


def batch_of(stream: StreamDef, events: Sequence[Event], first: int, position: str) -> pa.Table:
    """The events of a stream with their time, and in `position` their places among all, counted from `first`."""
    mine = [(first + place, event) for place, event in enumerate(events) if event.stream == stream.name]
    columns = [
        pa.array([event.values[i] for _, event in mine], kind.arrow)
        for i, kind in enumerate(stream.attributes.values())
    ]
    times = pa.array([event.at * 1000 for _, event in mine], pa.int64()).cast(_TIME)
    places = pa.array([place for place, _ in mine], pa.int64())
    return pa.table([*columns, times, places], names=[*stream.attributes, ROWTIME, position])


def stream_of(name: str, rows: pa.Table, names: Sequence[str]) -> StreamDef:
    """The stream that has the columns of a table; times are milliseconds since 1970."""
    return StreamDef(name, {column: _attribute(kind) for column, kind in zip(names, rows.schema.types, strict=True)})


def by_place(made: StreamDef, streams: Streams) -> StreamDef:
    """The stream that rows of such columns go to: the defined one where the types agree, since an insert goes by place."""
    wanted = streams.get(made.name)
    if wanted is None or list(wanted.attributes.values()) != list(made.attributes.values()):
        return made
    return wanted


def events_of(stream: StreamDef, rows: pa.Table, causes: Sequence[Event], number: int) -> list[Event]:
    """Rows as events of a stream, each right behind the event that caused it; `number` tells those of one cause apart."""
    columns = [
        [plain(value, kind) for value in _plain(column).to_pylist()]
        for column, kind in zip(rows.columns, stream.attributes.values(), strict=True)
    ]
    found = zip(causes, zip(*columns, strict=True), strict=True)
    return [
        Event((*cause.key, number + place), cause.at, stream.name, values)
        for place, (cause, values) in enumerate(found)
    ]


def _attribute(kind: pa.DataType) -> Type:
    if pa.types.is_boolean(kind):
        return Type.BOOL
    if pa.types.is_integer(kind):
        return Type.INT if kind.bit_width < 64 else Type.LONG
    if pa.types.is_timestamp(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
        return Type.LONG
    if pa.types.is_floating(kind):
        return Type.FLOAT if kind.bit_width == 32 else Type.DOUBLE
    return Type.DOUBLE if pa.types.is_decimal(kind) else Type.STRING


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    if pa.types.is_decimal(column.type):
        return column.cast(pa.int64() if column.type.scale == 0 else pa.float64())
    return column
