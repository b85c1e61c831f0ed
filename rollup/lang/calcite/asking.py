"""A query over tables is answered; what cannot be computed is an error, a sum beyond 64 bits with its place."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from sqlglot import exp

from rollup.core.errors import QueryError, said_by_duckdb
from rollup.engine.flows.flow import Relational
from rollup.lang.calcite.semantics import refused
from rollup.lang.calcite.translation import narrowed, strict


def rows_of(query: exp.Query, engine: Relational) -> pa.Table:
    """The rows of a translated query. Raises QueryError for a value that cannot be computed."""
    engine.strict(True)
    try:
        return engine.ask(strict(query))
    except duckdb.Error as problem:
        raise _reason(query, engine, problem) from None
    finally:
        engine.strict(False)


def _reason(query: exp.Query, engine: Relational, problem: duckdb.Error) -> QueryError:
    """Why a query failed: it is asked once more with null for all sums that are too great, then with one of them strict."""
    other = _failing(query, engine)
    if other is not None:
        return QueryError(_sentence(other))
    for place, part in enumerate(narrowed(query)):
        if _failing(strict(query, only=place), engine) is not None:
            where = refused(part, "")
            cure = "SUM(CAST(x AS DECIMAL(38, 0))) is exact"
            return QueryError("the sum is beyond 64 bits", line=where.line, column=where.column, hint=cure)
    return QueryError(_sentence(problem))


def _failing(query: exp.Query, engine: Relational) -> duckdb.Error | None:
    try:
        engine.ask(query)
    except duckdb.Error as problem:
        return problem
    return None


def _sentence(problem: Exception) -> str:
    words = said_by_duckdb(problem)
    return "division by zero" if words.startswith("Division by zero") else words
