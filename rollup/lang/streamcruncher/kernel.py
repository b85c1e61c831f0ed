"""StreamCruncher in this process: streams, tables, and running queries over rows that are handed to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import duckdb

from rollup.core.columns import close_at_exit
from rollup.core.errors import PlanError, QueryError
from rollup.engine.aggregates import Aggregate, custom
from rollup.engine.rows.cycles.partitions import earliest
from rollup.engine.rows.cycles.relating import Projected, Relation
from rollup.engine.rows.cycles.running import Batch, Policy, RunningQuery
from rollup.engine.rows.runner import Runner
from rollup.engine.state import State
from rollup.engine.types import RowType
from rollup.lang.fitting import fitting
from rollup.lang.streamcruncher import semantics
from rollup.lang.streamcruncher.direct import direct
from rollup.lang.streamcruncher.lowering import Known, Stream, lower
from rollup.lang.streamcruncher.reader import read_query


class Cruncher:
    """Streams and tables that running queries are registered over; time is what the rows are submitted with.

    >>> cruncher = Cruncher()
    >>> cruncher.define("test", {"id": "long", "at": "ts", "v": "double"}, time="at")
    >>> found = []
    >>> query = "select id from test (partition store last 2) as s where s.$row_status is dead;"
    >>> columns = cruncher.register(query, found.append)
    >>> cruncher.submit("test", [(1, 0, 1.0)], 0); cruncher.submit("test", [(2, 5, 1.0), (3, 5, 1.0)], 5); cruncher.finish()
    >>> found
    [Batch(at=5, rows=[(1,)])]
    """

    def __init__(self, start: int = 0) -> None:
        self._runner = Runner(start)
        self._streams: dict[str, Stream] = {}
        self._customs: dict[str, Callable[[Sequence[Any]], Aggregate]] = {}
        self._tables = duckdb.connect(":memory:")
        self._answers: dict[str, frozenset[Any]] = {}
        self._queries: list[tuple[RunningQuery, Callable[[Batch], None]]] = []
        self._open = False
        close_at_exit(self)

    def close(self) -> None:
        """Close the database of its tables; it is of no more use."""
        self._tables.close()
        del self._tables

    def define(self, name: str, columns: Mapping[str, str], time: str) -> None:
        """A stream: names and types (long, int, double, float, str, ts, bool) of its columns, and which one is its time."""
        for column, kind in columns.items():
            if kind not in semantics.TYPES:
                raise PlanError(f"{name}.{column}: unknown type {kind!r}", hint=f"one of {', '.join(semantics.TYPES)}")
        if time not in columns:
            raise PlanError(f"{name} has no column {time!r} for its time", hint=f"columns are {', '.join(columns)}")
        rows = RowType(name, {column: semantics.TYPES[kind] for column, kind in columns.items()})
        self._streams[name] = Stream(rows, rows.index[time])

    def aggregate(self, name: str, functions: Mapping[str, Callable[..., Any]]) -> None:
        """An aggregate of the user's own, for `custom(name, column)`: functions start, enter, leave and value."""
        missing = [word for word in ("start", "enter", "leave", "value") if word not in functions]
        if missing:
            raise PlanError(f"the aggregate {name!r} lacks {', '.join(missing)}", hint="start, enter, leave, value")
        self._customs[name] = lambda arguments: custom(name, functions, arguments)

    def sql(self, statement: str) -> None:
        """A statement over tables: create, insert, update, delete. Events that come later see its effect."""
        self._finish()
        try:
            self._tables.execute(statement)
        except duckdb.Error as problem:
            raise QueryError(str(problem).splitlines()[0]) from None
        self._answers.clear()

    def register(
        self,
        text: str,
        listener: Callable[[Batch], None],
        weights: Mapping[str, str | float] | None = None,
        policy: Policy | None = None,
    ) -> tuple[str, ...]:
        """A running query; `listener` gets each batch of rows. Weights are by stream, added exactly as written.

        Returns the names of its columns.

        Raises SyntaxProblem or PlanError with the place of what is wrong.
        """
        query = read_query(text)
        lowered = lower(query, Known(self._streams, self._customs, self._answer), policy or Policy())
        relation = Relation(query.select.sql("duckdb"), lowered.tables, self._tables)
        projection = direct(query.select, lowered.tables)
        select = relation.rows if projection is None else Projected(projection).rows
        exact = {stream: Fraction(str(weight)) for stream, weight in (weights or {}).items()}
        self._queries.append((RunningQuery(lowered.spec, self._runner, select, exact), listener))
        return relation.columns

    def submit(self, stream: str, rows: Sequence[Sequence[Any]], at: int) -> None:
        """Events of a stream at an instant in ms; those of one instant are one cycle, which runs when time goes on.

        Raises QueryError, before anything is changed, for an unknown stream and for values that do not fit.
        """
        if stream not in self._streams:
            raise QueryError(f"unknown stream {stream!r}", hint=f"streams are {', '.join(self._streams)}")
        rows = [self._fitting(stream, row) for row in rows]
        if at > self._runner.now:
            self.advance(at - 1)
            self._runner.environment.now = at
        for row in rows:
            for query, _ in self._queries:
                query.offer(stream, row)
        self._open = True

    def advance(self, to: int) -> None:
        """Time goes on to `to`, in ms, through every instant at which a row leaves or a tick is due."""
        self._finish()
        while (due := self._due()) is not None and due <= to:
            self._runner.environment.now = max(due, self._runner.now)
            self._open = True
            self._finish()
        self._runner.environment.now = max(to, self._runner.now)

    @property
    def now(self) -> int:
        """The clock, in ms."""
        return self._runner.now

    def finish(self) -> None:
        """Nothing more comes at the present instant."""
        self._finish()

    def snapshot(self) -> list[State]:
        """The state of every query, in the order of registration; an instant that is not over is part of it."""
        return [query.snapshot() for query, _ in self._queries]

    def restore(self, states: Sequence[State]) -> None:
        """Go on from a snapshot of the same queries."""
        for (query, _), state in zip(self._queries, states, strict=True):
            query.restore(state)
        self._open = any(query.open for query, _ in self._queries)

    def _fitting(self, stream: str, row: Sequence[Any]) -> tuple[Any, ...]:
        known = self._streams[stream]
        fields = known.rows.fields
        if len(row) != len(fields):
            raise QueryError(f"{stream} has {len(fields)} columns, not {len(row)}")
        values = tuple(
            fitting(stream, name, kind, value) for (name, kind), value in zip(fields.items(), row, strict=True)
        )
        if values[known.time] is None:
            raise QueryError(f"{stream}.{list(fields)[known.time]} is the time of an event and cannot be null")
        return values

    def _due(self) -> int | None:
        return earliest([query for query, _ in self._queries])

    def _finish(self) -> None:
        if self._open:
            self._open = False
            for query, listener in self._queries:
                for batch in query.finish():
                    listener(batch)

    def _answer(self, query: str) -> frozenset[Any]:
        if query not in self._answers:
            try:
                self._answers[query] = frozenset(row[0] for row in self._tables.execute(query).fetchall())
            except duckdb.Error as problem:
                raise PlanError(f"the sub-query cannot run: {str(problem).splitlines()[0]}") from None
        return self._answers[query]
