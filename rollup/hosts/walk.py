"""The way of events through an app: from the stream of a source to every stream that they reach, and there into partial
rows. Tasks of Spark and the local host walk the same way; they differ in where events come from and where rows go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from rollup.aggregation.partials import Partials
from rollup.core.columns import ColumnEngine
from rollup.program import Program, renumbered


@dataclass(frozen=True)
class Folded:
    """What the events of a stream are to one aggregation: its partial rows, and those whose time cannot be read."""

    rows: pa.Table
    refused: pa.Table | None


@dataclass(frozen=True)
class Walk:
    """A program's way over an engine, which keeps the views of the events that went it last."""

    program: Program
    engine: ColumnEngine

    @cached_property
    def partials(self) -> dict[str, Partials]:
        """How events become partial rows, by aggregation."""
        return {name: Partials(aggregation) for name, aggregation in self.program.aggregations.items()}

    def views(self, stream: str, relation: str) -> dict[str, str]:
        """The relations of all streams that the events of a stream's relation reach, with arrivals as `Program.numbered`
        has them. Names are made here, so no user's name is one."""
        scale, connection = self.program.scale(stream), self.engine.connection
        views, parts = {stream: relation}, dict[str, list[str]]()
        if scale > 1:
            connection.execute(f"CREATE OR REPLACE TEMP VIEW __sent AS {renumbered(relation, scale)}")
            views[stream] = "__sent"
        for number, step in enumerate(self.program.numbered(stream)):
            derivation, name = step.derivation, f"__derived_{number}"
            made = derivation.statement(views[derivation.source], step.copies, scale)
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {made}")
            parts.setdefault(derivation.target, []).append(name)
            union = " UNION ALL ".join(f"SELECT * FROM {each}" for each in parts[derivation.target])
            connection.execute(f"CREATE OR REPLACE TEMP VIEW __all_{number} AS {union}")
            views[derivation.target] = f"__all_{number}"
        return views

    def fed(self, views: dict[str, str]) -> Iterator[tuple[str, Partials, str]]:
        """The aggregations that events reach, each with the view of those events."""
        for name, partials in self.partials.items():
            if (view := views.get(partials.aggregation.stream)) is not None:
                yield name, partials, view

    def folded(self, partials: Partials, view: str, events: int | None = None) -> Folded:
        """One aggregation's share; `events`, where it is known, is how many there are, so that none need be looked for."""
        rows = partials.fold(self.engine, view)
        none = events is not None and partials.hold_all(rows, events)
        refused = None if none else partials.refused(self.engine, view)
        return Folded(rows, refused)

    def rehearse(self, stream: str) -> None:
        """Go the way without an event, so that what is made once, as queries and what prints them, is there."""
        kinds = [(name, kind.arrow) for name, kind in self.program.streams[stream].attributes.items()]
        schema = pa.schema([*kinds, ("__arrival", pa.int64()), ("__received", pa.int64())])
        with self.engine.tables({"__rehearsal": schema.empty_table()}):
            for _, partials, view in self.fed(self.views(stream, "__rehearsal")):
                self.folded(partials, view)
