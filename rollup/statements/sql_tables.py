"""The tables that a block of SQL reads: the events of a stream change each, and the state of its reader keeps it.

A stream with @PrimaryKey is a table of the last row of each key, a materialized view one of every row. A row sees a table
as the events before it have left it, so no cut of the input changes an answer. What a row joins is looked up among the
versions that a batch brings. Where a query needs more of a table, the batch is cut at each change of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.flows.flow import AT
from rollup.engine.flows.keyed import last_of
from rollup.lang.calcite.catalog import FROM, Catalog
from rollup.lang.calcite.model import Table
from rollup.plan.app import StreamDef
from rollup.statements.columns import batch_of
from rollup.statements.component import Event, Streams

Held = Mapping[str, pa.Table]
"""The rows of each table."""
_LONG_AGO = -1


class Tables:
    """The tables among the streams of a block."""

    def __init__(self, streams: Streams) -> None:
        self.streams = {name: stream for name, stream in streams.items() if stream.table is not None}
        self._shown: dict[str, pa.Table] = {}

    def declared(self, types: Mapping[str, Mapping[str, str]]) -> Iterator[Table]:
        """The tables of the model; `types` are those of their columns."""
        for name, stream in self.streams.items():
            rows = _since_ever(_changes(stream, (), 0))
            yield Table(
                name,
                tuple(types[name].items()),
                stream=False,
                table=True,
                key=stream.table or (),
                rows=lambda rows=rows: rows,
                moving=True,
            )

    def begun(self) -> Held:
        """Before the first event."""
        return {name: _changes(stream, (), 0).drop_columns([FROM]) for name, stream in self.streams.items()}

    def runs(self, events: Sequence[Event], catalog: Catalog) -> Iterator[list[Event]]:
        """The events in pieces: between two of them no table changes that a query asks as a whole."""
        for _, run in groupby(events, lambda event: event.stream in catalog.whole):
            yield list(run)

    def shown(self, held: Held, events: Sequence[Event], first: int, catalog: Catalog) -> Held:
        """Show queries the tables with what some events make of them, the first of which has a position; the tables then."""
        after = dict(held)
        changing = {event.stream for event in events}
        for name, stream in self.streams.items():
            if name not in changing:
                self._show(name, held[name], catalog)
                continue
            rows = pa.concat_tables([_since_ever(held[name]), _changes(stream, events, first)])
            self._shown.pop(name, None)
            catalog.replaced(name, rows)
            rows = rows.drop_columns([FROM]).combine_chunks()
            after[name] = last_of(rows, stream.table) if stream.table else rows
        return after

    def _show(self, name: str, rows: pa.Table, catalog: Catalog) -> None:
        if self._shown.get(name) is not rows:
            self._shown[name] = rows
            catalog.replaced(name, _since_ever(rows))

    @property
    def described(self) -> str:
        """What of them is kept, for `rollup plan`; nothing without tables."""
        kept = [f"{name} ({stream.kept})" for name, stream in self.streams.items()]
        return f"; tables {', '.join(kept)}" if kept else ""


def _changes(stream: StreamDef, events: Sequence[Event], first: int) -> pa.Table:
    """The rows that some events tell, each with the position from which on it holds: that behind its event."""
    found = batch_of(stream, events, first, AT)
    since = pc.add(found.column(found.num_columns - 1), 1)
    return found.select(list(range(len(stream.attributes)))).append_column(FROM, since)


def _since_ever(rows: pa.Table) -> pa.Table:
    return rows.append_column(FROM, pa.array([_LONG_AGO] * rows.num_rows, pa.int64()))
