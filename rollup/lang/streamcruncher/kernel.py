"""StreamCruncher in this process: streams, tables, and running queries over rows that are handed to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from rollup.core.columns import close_at_exit
from rollup.core.errors import PlanError, QueryError, said_by_duckdb
from rollup.core.nesting import nests
from rollup.engine.aggregates.declaration import Aggregate
from rollup.engine.aggregates.known import custom
from rollup.engine.columns.cycles.clocked import Events
from rollup.engine.columns.cycles.planning import core_of
from rollup.engine.columns.evaluate import arrow, plain
from rollup.engine.dividing import Need
from rollup.engine.room import Counter
from rollup.engine.rows.cycles.relating import Projected, Relation
from rollup.engine.rows.cycles.running import Batch, Policy, RunningQuery
from rollup.engine.rows.runner import Runner
from rollup.engine.state import State
from rollup.engine.types import RowType
from rollup.lang.fitting import fitting, fitting_columns
from rollup.lang.streamcruncher import semantics
from rollup.lang.streamcruncher.direct import direct
from rollup.lang.streamcruncher.dividing import need_of
from rollup.lang.streamcruncher.lowering import Known, Stream, lower
from rollup.lang.streamcruncher.queries import Placed, Queries, pieces
from rollup.lang.streamcruncher.reader import read_query

_LEAST = 256
"""From batches of so many events on, what columns cover goes over to them."""


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

    def __init__(self, start: int = 0, columns: int | None = _LEAST, proves: bool = False) -> None:
        self._proves, self._runner = proves, Runner(start)
        self._streams: dict[str, Stream] = {}
        self._customs: dict[str, Callable[[Sequence[Any]], Aggregate]] = {}
        self._tables = duckdb.connect(":memory:")
        self._tables.execute("SET enable_external_access = false")  # a name of a file is no table
        self._tables.execute("SET integer_division = true")  # as in pre-filters: whole numbers divide to whole numbers
        self._counter = Counter(self._tables)
        self._answers: dict[str, frozenset[Any]] = {}
        self._queries = Queries(self._runner, columns)
        self._open = False
        self._relations = list[Relation]()
        self.answers: list[pa.Schema] = []
        """The columns of each query's answer, in the order of registration."""
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

    @nests
    def sql(self, statement: str) -> None:
        """A statement over tables: create, insert, update, delete. Events that come later see its effect."""
        self._finish()
        try:
            self._tables.execute(statement)
        except duckdb.Error as problem:
            raise QueryError(said_by_duckdb(problem)) from None
        self._answers.clear()
        self._queries.forget()

    @nests
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
        try:
            relation = Relation(query.select, lowered.tables, self._tables, self._counter)
        except PlanError as problem:
            raise _located(problem, text, lowered.tables) from None
        self._relations.append(relation)
        projection = direct(query.select, lowered.tables)
        select = relation.rows if projection is None else Projected(projection).rows
        exact = {stream: Fraction(str(weight)) for stream, weight in (weights or {}).items()}
        kinds = {chain.stream: self._streams[chain.stream].rows for chain in lowered.spec.chains}
        core = core_of(lowered.spec, [kinds[chain.stream] for chain in lowered.spec.chains], projection)
        begin = partial(
            RunningQuery, lowered.spec, select=select, weights=exact, proves=self._proves and not projection
        )
        self._queries.add(begin, listener, core, kinds)
        self.answers.append(relation.schema)
        return tuple(relation.schema.names)

    def need(self, text: str) -> Need | str:
        """What a running query needs of a key to be divided by it, or why it has none."""
        query = read_query(text)
        tables = lower(query, Known(self._streams, self._customs, self._answer), Policy()).tables
        columns = {
            name: [column for place, column in enumerate(stream.rows.fields) if place != stream.time]
            for name, stream in self._streams.items()
        }
        return need_of(query, direct(query.select, tables), columns)

    def columns(self, stream: str) -> dict[str, pa.DataType]:
        """The columns of a stream, with the Arrow types that its tables have. Raises QueryError for an unknown stream."""
        self._unknown((stream,))
        return {name: arrow(kind) for name, kind in self._streams[stream].rows.fields.items()}

    def plan(self) -> list[Placed]:
        """For each query, in the order of registration, where its batches run and the first reason against columns."""
        return self._queries.placed()

    def submit(self, stream: str, rows: Sequence[Sequence[Any]], at: int) -> None:
        """Events of a stream at an instant in ms; those of one instant are one cycle, which runs when time goes on.

        Raises QueryError, before anything is changed, for an unknown stream and for values that do not fit.
        """
        self._unknown((stream,))
        rows = [self.fitting(stream, row) for row in rows]
        if at > self._runner.now:
            self.advance(at - 1)
            self._runner.environment.now = at
        for row in rows:
            self._queries.offer(stream, row)
        self._open = True

    def send(self, tables: Mapping[str, pa.Table], at: Mapping[str, Sequence[int]] | None = None) -> None:
        """Events of many instants: by stream an Arrow table in the order of its instants, which are the times of its rows
        unless `at` says others. The last instant is not over: more of it may come.

        Raises QueryError, before anything is changed, for an unknown stream, values that do not fit, instants that go back.
        """
        self.take(self.fitted(tables, at))

    def fitted(
        self, tables: Mapping[str, pa.Table], at: Mapping[str, Sequence[int]] | None = None
    ) -> dict[str, Events]:
        """Events for `take`; see `send`."""
        self._unknown(tables)
        events = {stream: self._events(stream, table, (at or {}).get(stream)) for stream, table in tables.items()}
        return {stream: part for stream, part in events.items() if len(part.times)}

    def take(self, events: Mapping[str, Events]) -> None:
        """Events that fit. Raises QueryError where a select cannot compute: the kernel is then to be restored."""
        if not events:
            return
        if min(int(part.times[0]) for part in events.values()) > self._runner.now:
            self._finish()
        for part, until, to in pieces(events):
            self._queries.send(part, until, to)
        self._open = True

    def advance(self, to: int) -> None:
        """Time goes on to `to`, in ms, through every instant at which a row leaves or a tick is due."""
        self._finish()
        self._queries.advance(to)
        self._runner.environment.now = max(to, self._runner.now)

    @property
    def now(self) -> int:
        """The clock, in ms."""
        return self._runner.now

    @property
    def beyond(self) -> int:
        """How many sums of partitions are null so far since 64 bits did not hold them."""
        return self._queries.beyond

    def finish(self) -> None:
        """Nothing more comes at the present instant."""
        self._finish()

    def snapshot(self) -> list[State]:
        """The state of every query, in the order of registration; an instant that is not over is part of it."""
        return self._queries.snapshot()

    def restore(self, states: Sequence[State]) -> None:
        """Go on from a snapshot of the same queries, whatever has come since or went wrong."""
        self._queries.restore(states)
        self._open = self._queries.open

    @contextmanager
    def forgiving(self) -> Generator[list[str]]:
        """In it what a select cannot compute is null; what was wrong, once for each cycle."""
        said = list[str]()
        for each in self._relations:
            each.forgiven = said
        try:
            yield said
        finally:
            for each in self._relations:
                each.forgiven = None

    def prove(self, states: Sequence[State]) -> None:
        """Raise QueryError for an event since the last call with which a select could not compute later on; `states` is the
        snapshot of now. For a kernel that `proves`."""
        self._queries.prove(states)

    def _unknown(self, streams: Iterable[str]) -> None:
        for stream in streams:
            if stream not in self._streams:
                raise QueryError(f"unknown stream {stream!r}", hint=f"streams are {', '.join(self._streams)}")

    def _events(self, stream: str, table: pa.Table, at: Sequence[int] | None) -> Events:
        known = self._streams[stream]
        columns = self._columns(stream, table)
        name = list(known.rows.fields)[known.time]
        if columns[known.time].null_count:
            raise QueryError(f"{stream}.{name} is the time of an event and cannot be null")
        times = np.asarray(plain(columns[known.time]) if at is None else at, np.int64)
        if len(times) != table.num_rows:
            raise QueryError(f"{table.num_rows} events of {stream} need as many instants, not {len(times)}")
        times = np.maximum(times, self._runner.now)
        if len(times) > 1 and bool((times[1:] < times[:-1]).any()):
            raise QueryError(f"the instants of {stream} go back", hint=f"order its events by {name}")
        return Events(columns, times)

    def _columns(self, stream: str, table: pa.Table) -> tuple[pa.Array, ...]:
        rows = self._streams[stream].rows
        if set(table.column_names) != set(rows.fields) or table.num_columns != len(rows.fields):
            given, wanted = ", ".join(table.column_names), ", ".join(rows.fields)
            raise QueryError(f"{stream} has the columns {wanted}, the table {given}")
        columns = fitting_columns(rows, table)
        if columns is not None:
            return columns
        values = [self.fitting(stream, tuple(row[name] for name in rows.fields)) for row in table.to_pylist()]
        kinds = enumerate(rows.fields.values())
        return tuple(pa.array([row[place] for row in values], arrow(kind)) for place, kind in kinds)

    def fitting(self, stream: str, row: Sequence[Any]) -> tuple[Any, ...]:
        """A row as its stream holds it. Raises QueryError for an unknown stream and for values that do not fit."""
        self._unknown((stream,))
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

    def _finish(self) -> None:
        if self._open:
            self._open = False
            self._queries.finish()

    def _answer(self, query: str) -> frozenset[Any]:
        if query not in self._answers:
            try:
                found = self._tables.execute(query)
            except duckdb.Error as problem:
                cure = (
                    "a sub-query of a partition reads tables alone, as in (select k from t); scripts have tables "
                    "(`rollup try FILE.cruncher`), blocks in apps have none"
                )
                raise PlanError(f"the sub-query cannot run: {said_by_duckdb(problem)}", hint=cure) from None
            if len(found.description or ()) != 1:
                said = f"the sub-query gives {len(found.description or ())} columns"
                raise PlanError(said, hint="one column, as in (select k from t)")
            self._answers[query] = frozenset(row[0] for row in found.fetchall())
        return self._answers[query]


def _located(problem: PlanError, text: str, tables: Mapping[str, RowType]) -> PlanError:
    """What the database says of the select outside, at the word of the text that it names, with the columns there are."""
    named = re.search(r'"(\w+)"| name (\w+)', problem.message)
    found = re.search(rf"\b{named[1] or named[2]}\b" if named else r"\bselect\b", text)
    before = text[: found.start() if found else 0]
    known = f"columns are {', '.join(dict.fromkeys(name for kinds in tables.values() for name in kinds.fields))}"
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return PlanError(problem.message, line=line, column=column, hint=known)
