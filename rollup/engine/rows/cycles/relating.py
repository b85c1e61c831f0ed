"""SQL over the contents of windows: each is a table with the status of its rows, the query is any that DuckDB runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from rollup.core.errors import PlanError, QueryError, said_by_duckdb
from rollup.engine.compiling import compiled_row, predicate
from rollup.engine.expressions import Expr
from rollup.engine.room import Counter
from rollup.engine.row import Row
from rollup.engine.rows.cycles.partitions import Seen
from rollup.engine.sizes import bounded
from rollup.engine.trying import LIFTING, tried
from rollup.engine.types import RowType

STATUS, AGE = "__row_status", "__age"
"""Columns of every window's table: 1 new, 0 in from before, -1 left; and the place of the row in the window."""


@dataclass(frozen=True)
class Projection:
    """A select over one window that needs no database: the statuses that are asked for (1, 0, -1), a condition and the
    columns over a row as input 0, and the columns' names."""

    table: str
    statuses: frozenset[int]
    test: Expr | None
    columns: tuple[Expr, ...]
    names: tuple[str, ...]


class Projected:
    """A projection at work; it answers as the same select in the database does, oldest row first."""

    def __init__(self, spec: Projection) -> None:
        self._spec, self.columns = spec, spec.names
        self._passes, self._values = predicate(spec.test), compiled_row(spec.columns)

    def rows(self, seen: Mapping[str, Seen]) -> list[tuple[Any, ...]]:
        """The answer over the window as a cycle shows it."""
        shown, asked = seen[self._spec.table], self._spec.statuses
        rows = list(shown.dead) if -1 in asked else []
        if 0 in asked:
            rows += shown.old
        if 1 in asked:
            rows += shown.new
        passes, values = self._passes, self._values
        return [values(r, (), None) for row in rows if passes(r := (row,), (), None)]


class Relation:
    """The query, prepared over empty tables so that what cannot run is refused at once."""

    forgiven: list[str] | None = None
    """Where it is a list, what cannot be computed is null, and what DuckDB says of it is in the list."""

    def __init__(
        self, query: exp.Expr, types: Mapping[str, RowType], connection: duckdb.DuckDBPyConnection, counter: Counter
    ) -> None:
        self._query = query = bounded(query)
        self._sql = sql = query.sql("duckdb")
        self._types, self._connection, self._counter = types, connection, counter
        try:
            for rows in (_unknown, lambda kind: []):  # texts that are no numbers tell themselves only beside a row
                self._run(sql, {name: Seen(rows(kind), [], []) for name, kind in types.items()})
            self.schema: pa.Schema = connection.sql(sql).limit(0).to_arrow_table().schema
            """The answer's columns."""
        except duckdb.Error as problem:
            raise PlanError(f"the select cannot run: {said_by_duckdb(problem)}") from None

    def rows(self, seen: Mapping[str, Seen]) -> list[tuple[Any, ...]]:
        """The answer over the windows as a cycle shows them; where they show nothing, there is none.

        Raises QueryError for values that the select cannot compute with: a text that is no number, one beyond its type.
        """
        if not any(each.new or each.old or each.dead for each in seen.values()):
            return []
        try:
            return self._run(self._sql, seen)
        except (duckdb.DataError, duckdb.InvalidInputException) as problem:
            said = f"the select cannot compute: {said_by_duckdb(problem)}"
            if self.forgiven is None:
                raise QueryError(said, hint="try_cast(x as double), nullif(x, 0)") from None
            self.forgiven.append(said)
            return self._tried(seen)

    def _tried(self, seen: Mapping[str, Seen]) -> list[tuple[Any, ...]]:
        """The answer with nulls."""
        self._connection.execute(f"SET disabled_optimizers = '{LIFTING}'")
        try:
            return self._run(tried(self._query)[0].sql("duckdb"), seen)
        except duckdb.Error as problem:
            raise QueryError(f"the select cannot compute: {said_by_duckdb(problem)}") from None
        finally:
            self._connection.execute("RESET disabled_optimizers")

    def _run(self, sql: str, seen: Mapping[str, Seen]) -> list[tuple[Any, ...]]:
        for name, shown in seen.items():
            self._connection.register(name, _table(self._types[name], shown))
        with self._counter.counting():
            return self._connection.execute(sql).fetchall()


def _table(kind: RowType, seen: Seen) -> pa.Table:
    """Rows oldest first: those that left, those that were in, those that came."""
    rows: list[Row] = [*seen.dead, *seen.old, *seen.new]
    status = [-1] * len(seen.dead) + [0] * len(seen.old) + [1] * len(seen.new)
    columns = [pa.array([row.values[place] for row in rows], of.arrow) for place, of in enumerate(kind.fields.values())]
    extra = [pa.array(status, pa.int8()), pa.array(range(len(rows)), pa.int64())]
    return pa.table([*columns, *extra], names=[*kind.fields, STATUS, AGE])


def _unknown(kind: RowType) -> list[Row]:
    """A row of which nothing is known."""
    return [Row(0, (None,) * len(kind.fields))]
