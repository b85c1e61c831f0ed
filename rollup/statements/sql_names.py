"""What a block of streaming SQL may name: streams, levels of aggregations, and what its own text defines.

A stream with @PrimaryKey and a materialized view are tables; a name that is none of these is refused with what does the
same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

from sqlglot import exp

from rollup.core.errors import PlanError
from rollup.lang.calcite.reader import streaming
from rollup.lang.calcite.semantics import refused
from rollup.lang.calcite.targets import target_of
from rollup.statements.component import Streams

_TABLES = (
    "tables and windows of other languages are theirs alone: join where they are, or insert what they give into a stream "
    "(with @PrimaryKey it is a table); "
    "constants are a table as (VALUES ('a', 1), ('b', 2)) AS t (k, v)"
)


def stands(statement: exp.Expr) -> bool:
    """Whether rows leave a statement as the input goes on: of the others, views are only names."""
    return isinstance(statement, (exp.Insert, exp.Query)) or _keeps(statement)


def _keeps(statement: exp.Expr) -> bool:
    """Whether a statement is a materialized view of a stream; one of a query that does not stream is a view."""
    kept = isinstance(statement, exp.Create) and statement.find(exp.MaterializedProperty) is not None
    return kept and isinstance(statement.expression, exp.Query) and streaming(statement.expression)


def target(statement: exp.Expr) -> str | None:
    """The stream that a statement inserts into, if it says one."""
    return target_of(statement).name if isinstance(statement, exp.Insert) or _keeps(statement) else None


def defined(statement: exp.Expr) -> set[str]:
    """The names that a statement has for itself or for those behind it."""
    own = {each.alias for each in statement.find_all(exp.CTE)}
    is_view = isinstance(statement, exp.Create) and not _keeps(statement)
    return own | ({statement.this.find(exp.Table).name} if is_view else set())


def read(statement: exp.Expr) -> Iterator[exp.Table]:
    """What stands in a statement for the tables that it reads."""
    query = statement.expression if isinstance(statement, (exp.Insert, exp.Create)) else statement
    return iter(()) if query is None else query.find_all(exp.Table)


def check(statements: Sequence[exp.Expr], streams: Streams) -> None:
    """Raises PlanError, with the place, for what a block of an app cannot do."""
    own = {name.lower() for each in statements for name in defined(each)}
    for statement in statements:
        _check_target(statement, streams)
        for table in read(statement):
            if table.name not in streams and table.name.lower() not in own:
                raise _unknown(table, streams)
    if all(isinstance(each, exp.Create) and each.kind == "VIEW" and not stands(each) for each in statements):
        raise refused(statements[-1], "the block defines views and asks nothing", "SELECT STREAM … FROM …")


def _check_target(statement: exp.Expr, streams: Streams) -> None:
    """A table takes UPSERT, a stream INSERT; a materialized view is neither yet."""
    if not isinstance(statement, (exp.Insert, exp.Create, exp.Update, exp.Delete)):
        return
    node = target_of(statement)
    stream = streams.get(node.name)
    if isinstance(statement, exp.Create):
        if _keeps(statement) and stream is not None:
            raise refused(node, f"{node.name} is a stream of the app already", "another name for the view")
    elif isinstance(statement, (exp.Update, exp.Delete)):
        if stream is not None and stream.table is not None:
            said = f"{statement.key.upper()} runs once, and {node.name} changes as events come"
            raise refused(node, said, f"UPSERT INTO {node.name} SELECT STREAM …; tables of `rollup sql` take it")
    elif statement.args.get("alternative") is not None:
        if stream is None or not stream.table:
            said = f"UPSERT needs a primary key; {node.name} has none"
            raise refused(node, said, f"@PrimaryKey('column') define stream {node.name} (column type, …)")
    elif stream is not None and stream.table is not None:
        what = "has a primary key: of each there is the last row" if stream.table else "is a materialized view"
        cure = f"UPSERT INTO {node.name}" if stream.table else "INSERT INTO a stream"
        raise refused(node, f"{node.name} {what}", cure)


def check_streams(query: exp.Expr, tables: Collection[str]) -> None:
    """Raises PlanError for a query that reads tables and nothing that streams."""
    found = list(query.find_all(exp.Table))
    if found and all(table.name in tables for table in found) and streaming(query):
        said = f"{found[0].name} is a table, whose changes are no stream to SQL"
        cure = "join it to a stream, or INSERT INTO a stream what is put into the table"
        raise refused(found[0], said, cure)


def _unknown(table: exp.Table, streams: Streams) -> PlanError:
    alike = [name for name in streams if name.lower() == table.name.lower()]
    levels = [name for name, stream in streams.items() if stream.keys is not None]
    mine = _levels_of(table.name, levels)
    known = ", ".join(name for name in streams if name not in levels) or "none"
    if alike:
        hint = f"it is called {alike[0]}"
    elif mine:
        hint = f"the levels of the aggregation are {', '.join(mine)}"
    else:
        close = get_close_matches(table.name, list(streams), 1)
        hint = (f"is it {close[0]}? " if close else "") + f"streams are {known}; {_TABLES}"
    return refused(table, f"there is no stream {table.name} in the app", hint)


def _levels_of(name: str, levels: Collection[str]) -> list[str]:
    """The levels of the aggregation that a name means: its own name, or that and a level which there is not."""
    wanted = {name.lower(), name.lower().rpartition("_")[0]}
    return [level for level in levels if level.lower().rpartition("_")[0] in wanted - {""}]
