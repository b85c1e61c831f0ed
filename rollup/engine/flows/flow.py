"""What flows between the nodes: rows, each with the input position at which it left, and marks, which say how far time is.

A mark of a column says that from its position on no row has a value that lies before it. Marks are cumulative: the last
one holds. `Direction` says where "before" is: a column may fall instead of rise.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import ARROW, SPECIAL
from sqlglot import ErrorLevel, exp

from rollup.core.dialects import dialect
from rollup.core.errors import said_by_duckdb
from rollup.engine.flows.beyond import Narrowing
from rollup.engine.flows.database import Database
from rollup.engine.room import Counter
from rollup.engine.state import State
from rollup.engine.trying import LIFTING, tried

AT = "__at"
"""The position in the input at which a row left its node, or a mark was made."""
NUMBER = "__n"
"""The place of a row in the table that is asked about."""
END = 2**62
"""The position of the end of the input."""

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Monotone:
    """How a column moves: it rises or falls; `strict`: no two rows have the same value.

    `ordered`: rows come in that order; else only the marks move, and rows come as long as they are not behind them.
    """

    rising: bool = True
    strict: bool = False
    ordered: bool = True


@dataclass(frozen=True)
class Column:
    """A column of a flow: its generated name, its DuckDB type, and how it moves, if it does."""

    name: str
    type: str
    monotone: Monotone | None = None


@dataclass(frozen=True)
class Flow:
    """One batch between two nodes. `rows` and `marks` have `AT` as their last column, in which they are sorted."""

    rows: pa.Table
    marks: pa.Table
    ended: bool = False


class Node(Protocol):
    """A step: inputs in, output out. Frozen; `columns` are those of its output."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the output."""
        ...

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that it reads."""
        ...

    def start(self) -> State:
        """The state before the first batch."""
        ...

    def step(self, state: State, inputs: Sequence[Flow], engine: Relational) -> tuple[State, Flow]:
        """One batch."""
        ...


@dataclass
class Forgiven:
    """What DuckDB said of what had no answer, and where it is known the places (`AT`) of the rows that had none."""

    said: list[str] = field(default_factory=list[str])
    rows: set[int] = field(default_factory=set[int])


class Relational:
    """DuckDB: the tables that there are, and questions over them and over tables at hand."""

    def __init__(self) -> None:
        self.database = Database(_settings, self._counted)
        self._probes = False
        self._forgiven: Forgiven | None = None
        self.narrowing: Narrowing | None = None

    def _counted(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._counter = Counter(connection)

    def close(self) -> None:
        """Close the database; its tables are gone."""
        self.database.close()

    def use(self) -> AbstractContextManager[None]:
        """A piece of work, see `Database.use`."""
        return self.database.use()

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """What runs statements."""
        return self.database.connection

    @property
    def lost(self) -> int:
        """How many sums of sub-queries 64 bits did not hold until now."""
        return 0 if self.narrowing is None else self.narrowing.lost

    def narrows(self) -> None:
        """Queries may call `narrowed` from now on, which makes 64 bits of a sum, or null, and counts that."""
        if self.narrowing is None:
            self.narrowing = narrowing = Narrowing()
            self.database.make(
                lambda connection: connection.create_function(
                    "narrowed", narrowing, ["HUGEINT"], "BIGINT", type=ARROW, null_handling=SPECIAL
                )
            )

    def strict(self, on: bool) -> None:
        """Whether a division by zero is an error. In a stream it is a null: one row must not end what goes on."""
        self.connection.execute(f"SET error_on_division_by_zero = {'true' if on else 'false'}")

    @contextmanager
    def probing(self) -> Generator[None]:
        """In it every question is also asked of one row of nulls in place of the rows at hand: that a text is no number
        DuckDB says only beside a row."""
        self._probes = True
        try:
            yield
        finally:
            self._probes = False

    @contextmanager
    def forgiving(self) -> Generator[Forgiven]:
        """In it what has no answer is null."""
        with self.use():
            self.connection.execute(f"SET disabled_optimizers = '{LIFTING}'")
            self._forgiven = Forgiven()
            try:
                yield self._forgiven
            finally:
                self._forgiven = None
                self.connection.execute("RESET disabled_optimizers")

    def ask(self, query: exp.Expr, **tables: pa.Table) -> pa.Table:
        """The answer to a tree of SQL; `tables` are those it names besides the stored ones."""
        if self._probes:
            self._probed(query, tables)
        try:
            return self._answered(query, tables)
        except (duckdb.DataError, duckdb.InvalidInputException) as problem:
            if self._forgiven is None:
                raise
            self._forgiven.said.append(said_by_duckdb(problem))
            found = self._answered(_forgiven(query), tables)
            if _FAILED not in found.column_names:
                return found
            self._forgiven.rows |= set(found.filter(found.column(_FAILED)).column(AT).to_pylist())
            return found.drop_columns([_FAILED])

    def check(self, query: exp.Expr) -> None:
        """Raises DataError for what cannot be computed whatever the stored tables hold."""
        stored = dict[str, pa.Table]()
        for name in {table.name for table in query.find_all(exp.Table)}:
            with suppress(duckdb.CatalogException):  # one of the query's own
                stored[name] = self.ask(exp.select("*").from_(exp.table_(name, quoted=True)).limit(0))
        self._probed(query, stored)

    def _probed(self, query: exp.Expr, tables: Mapping[str, pa.Table]) -> None:
        nulls = {
            name: pa.table([pa.nulls(1, field.type) for field in table.schema], schema=table.schema)
            for name, table in tables.items()
        }
        try:
            self._answered(query, nulls)
        except duckdb.DataError:
            raise
        except duckdb.Error:
            pass  # a null where none can be; what is wrong with a type is said without rows

    def _answered(self, query: exp.Expr, tables: Mapping[str, pa.Table]) -> pa.Table:
        for name, table in tables.items():
            self.connection.register(name, table)
        try:
            with self._counter.counting():
                return self.connection.sql(query.sql(dialect("duckdb"))).to_arrow_table()
        finally:
            for name in tables:
                self.connection.unregister(name)

    def types(self, query: exp.Expr, **tables: pa.Table) -> list[str]:
        """DuckDB's types of a query's columns. Raises UnsupportedError for what DuckDB has no words for."""
        text = query.sql(dialect("duckdb"), unsupported_level=ErrorLevel.RAISE)
        for name, table in tables.items():
            self.connection.register(name, table)
        try:
            return [str(kind) for kind in self.connection.sql(text).types]
        finally:
            for name in tables:
                self.connection.unregister(name)


def _settings(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET TimeZone = 'UTC'; SET error_on_division_by_zero = false")


_FAILED = "__failed"


def _forgiven(query: exp.Expr) -> exp.Expr:
    """A query with nulls for what has no answer; of one that only computes with rows, `_FAILED` says which rows have one."""
    found, flags = tried(query)
    if isinstance(found, exp.Select) and not found.find(exp.AggFunc, exp.Window, exp.Subquery):
        failed = exp.alias_(exp.or_(*flags), _FAILED, quoted=True)
        return found.select(failed, copy=False) if AT in found.named_selects else found
    return found


def column(name: str) -> exp.Column:
    """A column by its generated name."""
    return exp.column(exp.to_identifier(name, quoted=True))


def numbered(rows: pa.Table) -> pa.Table:
    """The rows with their numbers, so that an answer can come in their order."""
    return rows.append_column(NUMBER, pa.array(np.arange(rows.num_rows)))


def empty(columns: Sequence[Column], engine: Relational) -> pa.Table:
    """No rows of some columns."""
    items = [exp.alias_(exp.cast(exp.Null(), c.type, dialect="duckdb"), c.name, quoted=True) for c in columns]
    items.append(exp.alias_(exp.cast(exp.Null(), "BIGINT"), AT, quoted=True))
    return engine.ask(exp.select(*items).where(exp.false()))


def joined(tables: Sequence[pa.Table | None]) -> pa.Table:
    """Tables one after the other; they have the same columns."""
    found = [table for table in tables if table is not None]
    some = [table for table in found if table.num_rows]
    return pa.concat_tables(some or found[:1], promote_options="permissive") if found else pa.table({})


def positions(marks: pa.Table, name: str, values: pa.ChunkedArray, rising: bool, reached: bool, ended: bool) -> Ints:
    """For each value the position of the first mark that has passed it, -1 where none has; `reached`: equal is enough.

    After the end of the input everything has been passed, at `END` what no mark had passed.
    """
    bounds = marks.column(name)
    known = bounds.is_valid()
    at = marks.column(AT).filter(known).to_numpy()
    line, points = _numbers(bounds.filter(known)), _numbers(values)
    if not rising:
        line, points = -line, -points
    place = np.searchsorted(line, points, side="left" if reached else "right")
    result = np.where(place < len(at), np.append(at, END)[np.minimum(place, len(at))], END if ended else -1)
    return result.astype(np.int64)


def _numbers(values: pa.ChunkedArray) -> Any:
    kind = values.type
    if pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    if pa.types.is_date(kind):
        return values.cast(pa.date32()).cast(pa.int32()).to_numpy().astype(np.int64)
    if pa.types.is_time(kind):
        return values.cast(pa.time64("us")).cast(pa.int64()).to_numpy()
    if pa.types.is_decimal(kind):
        return values.cast(pa.float64()).to_numpy()
    if pa.types.is_interval(kind):
        return np.array(numbers_of(values), np.int64)
    return values.to_numpy()


def numbers_of(values: pa.ChunkedArray) -> list[int | None]:
    """A column of times, dates or numbers as whole numbers, nulls kept."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us")).cast(pa.int64())
    elif pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    found = values.to_pylist()
    return (
        [None if each is None else _microseconds(each) for each in found]
        if pa.types.is_interval(values.type)
        else found
    )


def _microseconds(interval: pa.MonthDayNano) -> int:
    """The length of an interval, a month being 30 days as where DuckDB compares them."""
    return (interval.months * 30 + interval.days) * 86_400_000_000 + interval.nanoseconds // 1000


def typed_as(values: Any, kind: pa.DataType) -> pa.Array:
    """Whole numbers as the times, dates or numbers that they stand for."""
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(pa.timestamp("us")).cast(kind)
    if pa.types.is_interval(kind):
        return pa.array([None if each is None else pa.MonthDayNano((0, 0, int(each) * 1000)) for each in values], kind)
    return (
        pa.array(values, pa.int32()).cast(kind) if pa.types.is_date(kind) else pa.array(values, pa.int64()).cast(kind)
    )
