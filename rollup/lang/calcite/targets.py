"""Where the rows of INSERT and UPSERT go: the target, and the columns that it lists."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
from sqlglot import exp

from rollup.lang.calcite.semantics import refused


def target_of(statement: exp.Expr) -> exp.Expr:
    """The node that names what INSERT fills or CREATE makes."""
    return statement.this.this if isinstance(statement.this, exp.Schema) else statement.this


def tables_read(statement: exp.Expr) -> set[str]:
    """The names that a statement reads, in lower case."""
    query = statement.expression if isinstance(statement, (exp.Insert, exp.Create)) else statement
    return set() if query is None else {table.name.lower() for table in query.find_all(exp.Table)}


def nodes_of(statement: exp.Expr) -> list[exp.Expr]:
    """The columns that a statement lists behind its target, as they stand there."""
    return list(statement.this.expressions) if isinstance(statement.this, exp.Schema) else []


def listed(statement: exp.Expr, width: int) -> tuple[str, ...]:
    """The columns in `INSERT INTO T (a, b)` and in `CREATE VIEW V (a, b)`, none where no list is.

    Raises PlanError where the query gives another number of columns than `width`, and for a name twice.
    """
    nodes = nodes_of(statement)
    names = tuple(node.name for node in nodes)
    if names and len(names) != width:
        said = f"{target_of(statement).name} lists {len(names)} columns, the query gives {width}"
        raise refused(nodes[0], said, "as many names as columns")
    seen = set[str]()
    for node in nodes:
        if node.name.lower() in seen:
            raise refused(node, f"{node.name} is listed twice", "each column once")
        seen.add(node.name.lower())
    return names


def check_listed(statement: exp.Expr, columns: Sequence[str], key: Collection[str]) -> None:
    """Raises PlanError, with its place, for a listed name that is no column, and for a list without the key."""
    nodes = nodes_of(statement)
    name, known = target_of(statement).name, {column.lower() for column in columns}
    for node in nodes:
        if node.name.lower() not in known:
            raise refused(node, f"{name} has no column {node.name}", f"known: {', '.join(columns)}")
    lacking = [column for column in key if column.lower() not in {node.name.lower() for node in nodes}]
    if nodes and lacking:
        raise refused(nodes[0], f"the list lacks {lacking[0]}, of the primary key of {name}", "list the key as well")


def arranged(rows: pa.Table, names: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Rows whose columns have some names, as rows of a table: its columns in order, null those that are not named.

    >>> arranged(pa.table({"_": [1], "__": [2]}), ["b", "a"], ["a", "b", "c"]).to_pylist()
    [{'a': 2, 'b': 1, 'c': None}]
    """
    place = {name.lower(): i for i, name in enumerate(names)}
    nothing = pa.chunked_array([pa.nulls(rows.num_rows)])
    found = [rows.column(place[c.lower()]) if c.lower() in place else nothing for c in columns]
    return pa.table(found, names=list(columns))
