"""Which queries of a SiddhiQL app fall apart by keys: those of partitions by a value, and filters."""

from __future__ import annotations

from collections.abc import Iterator

from rollup.engine.dividing import Need
from rollup.engine.expressions import Field
from rollup.engine.rows.deliveries.app import AppSpec
from rollup.engine.rows.deliveries.inputs import StreamSpec
from rollup.engine.rows.deliveries.partitions import PartitionSpec
from rollup.engine.rows.deliveries.queries import InsertSpec, QuerySpec, streams_of

INNER = "#"
"""Begins the names of streams that a partition has for itself."""


def needs_of(spec: AppSpec) -> Iterator[Need | str]:
    """What each query needs of a key, or why it has none."""
    if spec.triggers:
        yield "a trigger ticks once for all keys"
    if spec.tables or spec.shared:
        yield "a table or a shared window is one for all keys"
    for each in spec.queries:
        yield _partition(spec, each) if isinstance(each, PartitionSpec) else _query(each)


def _partition(spec: AppSpec, made: PartitionSpec) -> Need | str:
    if made.ranges:
        return "a partition by ranges"
    keys = dict[str, tuple[str, ...] | None]()
    for stream, value in made.values.items():
        if not isinstance(value, Field):
            return f"the key of {stream} is an expression"
        keys[stream] = (list(spec.streams[stream].fields)[value.index],)
    read = {stream for query in made.queries for stream in streams_of(query.input)}
    beside = {stream for stream in read - keys.keys() if not stream.startswith(INNER)}
    return f"{min(beside)} goes to the partitions of all keys" if beside else keys


def _query(made: QuerySpec) -> Need | str:
    """The need of a filter, which has no memory."""
    source, selection = made.input, made.selection
    if not isinstance(source, StreamSpec) or source.window is not None:
        return "a query outside of partitions has a window or a pattern over all events"
    remembers = selection.calls or selection.group_by or selection.order_by or selection.limit or selection.offset
    if remembers or made.rate is not None or not isinstance(made.output, InsertSpec):
        return "a query outside of partitions has groups, an order or a rate over all events"
    return {source.stream: None}
