"""What an app defines, by name."""

from __future__ import annotations

from dataclasses import dataclass, field

from rollup.core.errors import PlanError
from rollup.engine.expressions import Expr
from rollup.engine.types import RowType
from rollup.lang.siddhi import tree


@dataclass
class Names:
    """What an app defines so far, by name; queries define the streams they insert into."""

    streams: dict[str, RowType] = field(default_factory=dict[str, RowType])
    tables: dict[str, RowType] = field(default_factory=dict[str, RowType])
    shared: dict[str, RowType] = field(default_factory=dict[str, RowType])
    inner: dict[str, RowType] = field(default_factory=dict[str, RowType])
    """Streams of partitions that have been read: no other query knows them."""
    asks: list[tuple[str, Expr]] = field(default_factory=list[tuple[str, Expr]])

    def rows(self, stream: tree.Stream) -> RowType:
        """The rows of what a query reads. Raises PlanError with the known names."""
        name = qualified(stream)
        for known in (self.streams, self.shared, self.tables):
            if name in known:
                return known[name]
        every = [*self.streams, *self.shared, *self.tables]
        raise PlanError(f"{name!r} is not defined", hint=f"defined are {', '.join(every)}").at(*stream.place)


def qualified(stream: tree.Stream) -> str:
    """The name that the engine knows a stream by; an inner one has its sign."""
    return f"#{stream.name}" if stream.inner else stream.name
