"""A SiddhiQL app that runs in this process: events in, rows of streams out, on-demand queries of tables and windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from rollup.core.errors import QueryError
from rollup.core.nesting import nests
from rollup.engine.compiling import predicate
from rollup.engine.row import Row
from rollup.engine.rows.deliveries.app import DeliveryApp, circle
from rollup.engine.rows.deliveries.item import Item
from rollup.engine.rows.deliveries.selecting import Selected, Selector
from rollup.engine.rows.runner import Runner
from rollup.engine.state import State
from rollup.engine.types import DataType, RowType
from rollup.lang.fitting import fitting
from rollup.lang.siddhi import tree
from rollup.lang.siddhi.statements.annotations import check_alone
from rollup.lang.siddhi.statements.binding import Input, Scope, attributes_of, condition
from rollup.lang.siddhi.statements.lowering import lower, lower_change, lower_selection
from rollup.lang.siddhi.statements.reader import read_app, read_request
from rollup.lang.siddhi.statements.semantics import TYPES, text_of
from rollup.plan.app import StreamDef

Content = Callable[[], Iterable[Row]]


class Emitted(NamedTuple):
    """A row that a query inserted into a stream."""

    stream: str
    values: tuple[Any, ...]


class SiddhiApp:
    """The queries of an app over rows that are handed to it; aggregations are kept by the rollup pipeline beside it.

    >>> app = SiddhiApp("define stream S (k string, v int); from S#window.length(2) select sum(v) as t insert into Out;")
    >>> app.send("S", [("a", 1)]); app.send("S", [("a", 2)]); app.send("S", [("a", 4)])
    >>> [row.values for row in app.taken()]
    [(1,), (3,), (6,)]
    """

    @nests
    def __init__(
        self, text: str, start: int = 0, of_job: bool = False, filled: Mapping[str, Sequence[Sequence[Any]]] = {}
    ) -> None:
        """Begin at an instant, in ms; `of_job`: the streams' annotations are read by the job that it is a part of.

        `filled` are rows that tables have from the start; no state has them, so a restored app has those it is given.

        Raises SyntaxProblem or PlanError with the place of what cannot run.
        """
        app = read_app(text)
        if not of_job:
            check_alone(app)
        self.spec = lower(app)
        self._emitted: list[Emitted] = []
        self._fields: dict[str, list[tuple[str, DataType]]] = {}
        given = {name: [self._fitting(name, row) for row in rows] for name, rows in filled.items()}
        self._app = DeliveryApp(self.spec, self._note, start, given)

    @property
    def streams(self) -> dict[str, RowType]:
        """The rows of every stream, those that queries define included."""
        return self.spec.streams

    @property
    def stores(self) -> Mapping[str, Mapping[str, DataType]]:
        """The tables and shared windows, with the types of their columns."""
        return {name: attributes_of(rows) for name, rows in self.spec.stored.items()}

    def stored(self, name: str) -> list[tuple[Any, ...]]:
        """The rows that a table or shared window holds."""
        width = len(attributes_of(self._rows_of(name)))
        return [row.values[:width] for row in self._app.stored(name).content()]

    def send(self, stream: str, rows: Sequence[Sequence[Any]], at: int | None = None) -> None:
        """Events of a stream that arrive together, as rows of its attributes' values; `at` is their time in ms.

        The clock goes on to `at` first, so what is due by then fires before the events are seen. Raises QueryError for
        a stream that is not defined and for values that do not fit, before anything is changed.
        """
        rows = [self._fitting(stream, row) for row in rows]
        if at is not None:
            self.jump(at)
        self._ended(lambda: self._app.send(stream, rows, self._app.runner.now if at is None else at))

    def advance(self, to: int) -> None:
        """The clock goes on to `to`, in ms, through every instant at which something is due."""
        self._ended(lambda: self._app.runner.advance_span(to))

    def jump(self, to: int) -> None:
        """The clock goes to `to`, in ms, at once, as an event of that time moves it: what is due fires late. See `hurried`."""
        self._ended(lambda: self._app.advance(to))

    @property
    def hurried(self) -> bool:
        """Whether a jump since the last question had more silences to end than are ended of one: the rest ended at once."""
        clock = self._app.runner.environment.clock
        clock.hurried, found = False, clock.hurried
        return found

    def _ended(self, work: Callable[[], object]) -> None:
        """Work that ends. Raises QueryError where queries feed each other and none of them stops."""
        try:
            work()
        except RecursionError:
            path = circle(self.spec)
            if not path:
                raise
            raise QueryError(
                f"an event goes round more often than can be followed: {' -> '.join([*path, path[0]])}",
                hint="a filter lets it out, or sooner, [v < 100], or one of the queries inserts into another stream",
            ) from None

    @property
    def now(self) -> int:
        """The clock, in ms."""
        return self._app.runner.now

    def taken(self) -> list[Emitted]:
        """What queries have inserted into streams since the last call, in order."""
        emitted, self._emitted = self._emitted, []
        return emitted

    @nests
    def query(self, text: str) -> pa.Table:
        """The answer to an on-demand query of a table or shared window: `from T on … select …`.

        One that changes a table (`select 1 as k insert into T`, `update T set … on …`, `delete T on …`) is answered with
        no row, of what it selects or else of the table's columns.
        """
        request = read_request(text)
        return self._changed(request) if isinstance(request, tree.ChangeRequest) else self._asked(request)

    def _asked(self, request: tree.Request) -> pa.Table:
        if request.table not in self.spec.stored:
            known = f"there are {', '.join(self.spec.stored) or 'none'}"
            raise QueryError(f"{request.table!r} is neither a table nor a window", hint=known).at(*request.place)
        content = self._app.stored(request.table).content
        return _answered(request, self._rows_of(request.table), content, self._app.runner)

    def _changed(self, request: tree.ChangeRequest) -> pa.Table:
        selection, output, columns = lower_change(request, self.spec.stored, self.spec.tables)
        self._app.writer(output)(Selector(selection, self._app.runner).select([[Item((), False, self.now)]]))
        fields = RowType("", columns) if columns else self._rows_of(output.target)
        return _table([], attributes_of(fields))

    def snapshot(self) -> State:
        """The whole state: named tables and scalars."""
        return self._app.snapshot()

    def restore(self, state: State) -> None:
        """Go on from a snapshot of the same app."""
        self._app.restore(state)

    def _note(self, stream: str, rows: Sequence[Selected]) -> None:
        self._emitted += [Emitted(stream, made.row.values[:-1]) for made in rows]

    def _rows_of(self, name: str) -> RowType:
        return self.spec.stored[name]

    def _fitting(self, stream: str, row: Sequence[Any]) -> tuple[Any, ...]:
        fields = self._fields.get(stream) or self._fields_of(stream)
        if len(row) != len(fields):
            raise QueryError(f"{stream} takes {len(fields)} values, not {len(row)}")
        return tuple([fitting(stream, name, kind, value) for (name, kind), value in zip(fields, row, strict=True)])

    def _fields_of(self, stream: str) -> list[tuple[str, DataType]]:
        rows = self.spec.streams.get(stream) or self.spec.stored.get(stream)
        if rows is None:
            known = ", ".join([*self.spec.streams, *self.spec.stored])
            raise QueryError(f"stream {stream!r} is not defined", hint=f"defined are {known}")
        found = self._fields[stream] = list(attributes_of(rows).items())
        return found


@nests
def asked(text: str, table: StreamDef, rows: Callable[[], pa.Table], now: int) -> pa.Table:
    """The answer to an on-demand query, at an instant in ms, of a table that an app of any language has kept; `rows` are
    read when the text is right.

    Raises SyntaxProblem or PlanError with the place, and QueryError for a text that would change the table.
    """
    request = read_request(text)
    if isinstance(request, tree.ChangeRequest):
        raise QueryError(f"a question only reads {table.name}", hint=f"from {table.name} on … select …")
    kinds = RowType(table.name, {name: TYPES[kind] for name, kind in table.attributes.items()})
    runner = Runner(now, depth_first=True)
    return _answered(request, kinds, lambda: [runner.row(tuple(row.values())) for row in rows().to_pylist()], runner)


def _answered(request: tree.Request, kinds: RowType, content: Content, runner: Runner) -> pa.Table:
    """What a request selects of rows."""
    names = tuple(name for name in (request.alias, request.table) if name is not None)
    scope = Scope([Input(names, kinds)], [])
    test = None if request.on is None else condition(request.on, scope, "on")
    selection, columns = lower_selection(request.selection, scope, "current", asked=True)
    passes, environment = predicate(test), runner.environment
    now = environment.clock.now
    items = [Item((row,), False, now) for row in content() if passes((row,), (0,), environment)]
    made = Selector(selection, runner).select([items])
    return _table([each.row for each in made], columns)


def _table(rows: Iterable[Row], columns: dict[str, DataType]) -> pa.Table:
    values = [row.values for row in rows]
    arrays = [_column([row[place] for row in values], kind) for place, kind in enumerate(columns.values())]
    return pa.table(arrays, names=list(columns))


def _column(values: list[Any], kind: DataType) -> pa.Array:
    """A column of its type; objects as text."""
    if kind.arrow is not None:
        return pa.array(values, kind.arrow)
    return pa.array([None if value is None else text_of(value) for value in values], pa.string())
