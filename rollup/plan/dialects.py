"""One SQL tree, three printers: the few nodes sqlglot does not know, and how DuckDB, PostgreSQL and Spark say them."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.spark import Spark
from sqlglot.expressions.core import Expression
from sqlglot.generator import Generator


class LastBy(Expression, exp.AggFunc):
    """The value, null included, of the row with the greatest (time, arrival); `first=True`: with the smallest."""

    arg_types = {"this": True, "time": True, "arrival": True, "first": False}


class Values(Expression, exp.AggFunc):
    """The distinct values of a column that are not null, as a sorted list; null when there is none."""

    arg_types = {"this": True}


class Union(Expression, exp.AggFunc):
    """The distinct elements of a column of lists, as a sorted list; null when there is none."""

    arg_types = {"this": True}


class Size(Expression, exp.Func):
    """The number of elements of a list, 0 for null."""

    arg_types = {"this": True}


def _duckdb_last(self: Generator, node: LastBy) -> str:
    name = "ARG_MIN_NULL" if node.args.get("first") else "ARG_MAX_NULL"
    order = exp.Tuple(expressions=[node.args["time"], node.args["arrival"]])
    return self.func(name, node.this, order)


def _postgres_last(self: Generator, node: LastBy) -> str:
    way = "ASC" if node.args.get("first") else "DESC"
    time, arrival, value = (self.sql(node, key) for key in ("time", "arrival", "this"))
    return f"(ARRAY_AGG({value} ORDER BY {time} {way}, {arrival} {way}))[1]"


def _spark_last(self: Generator, node: LastBy) -> str:
    name = "MIN_BY" if node.args.get("first") else "MAX_BY"
    return self.func(name, node.this, exp.func("STRUCT", node.args["time"], node.args["arrival"]))


class RollupDuckDB(DuckDB):
    """DuckDB, which runs every step and the default retrieval."""

    class Generator(DuckDB.Generator):
        TRANSFORMS: dict[Any, Any] = {
            **DuckDB.Generator.TRANSFORMS,
            LastBy: _duckdb_last,
            Values: lambda self, e: (
                f"LIST_SORT(LIST(DISTINCT {self.sql(e, 'this')}) FILTER (WHERE {self.sql(e, 'this')} IS NOT NULL))"
            ),
            Union: lambda self, e: (
                f"LIST_SORT(LIST_DISTINCT(FLATTEN(LIST({self.sql(e, 'this')}) FILTER (WHERE {self.sql(e, 'this')} IS NOT NULL))))"
            ),
            Size: lambda self, e: f"COALESCE(LEN({self.sql(e, 'this')}), 0)",
        }


class RollupPostgres(Postgres):
    """PostgreSQL; the union of sets is an aggregate that `ddl/postgres.sql` creates."""

    class Generator(Postgres.Generator):
        TRANSFORMS: dict[Any, Any] = {
            **Postgres.Generator.TRANSFORMS,
            LastBy: _postgres_last,
            Union: lambda self, e: f"ROLLUP_UNION({self.sql(e, 'this')})",
            Size: lambda self, e: f"COALESCE(CARDINALITY({self.sql(e, 'this')}), 0)",
        }


class RollupSpark(Spark):
    """Spark SQL, for large ranges and for joins with other DataFrames."""

    class Generator(Spark.Generator):
        TRANSFORMS: dict[Any, Any] = {
            **Spark.Generator.TRANSFORMS,
            LastBy: _spark_last,
            Union: lambda self, e: f"SORT_ARRAY(ARRAY_DISTINCT(FLATTEN(COLLECT_LIST({self.sql(e, 'this')}))))",
            Size: lambda self, e: f"COALESCE(SIZE({self.sql(e, 'this')}), 0)",
        }


DIALECTS = {"duckdb": RollupDuckDB, "postgres": RollupPostgres, "spark": RollupSpark}


def to_sql(tree: exp.Expr, dialect: str = "duckdb") -> str:
    """The text of a tree in one of the three dialects.

    >>> to_sql(LastBy(this=exp.column("x"), time=exp.column("t"), arrival=exp.column("a")), "spark")
    'MAX_BY(x, STRUCT(t, a))'
    """
    return tree.sql(dialect=DIALECTS[dialect], normalize_functions=False)
