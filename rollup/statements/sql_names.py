"""What a block of streaming SQL may name: streams, levels of aggregations, and what its own text defines.

An app has no tables that several blocks share, so a name that is none of these is refused with what does the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

from sqlglot import exp

from rollup.core.errors import PlanError
from rollup.lang.calcite.semantics import refused
from rollup.statements.component import Streams

_TABLES = (
    "tables and windows of other statements are theirs alone: join where they are, or insert what they give into a stream; "
    "constants are a table as (VALUES ('a', 1), ('b', 2)) AS t (k, v)"
)


def target(statement: exp.Expr) -> str | None:
    """The stream that a statement inserts into, if it says one."""
    if not isinstance(statement, exp.Insert):
        return None
    return (statement.this.this if isinstance(statement.this, exp.Schema) else statement.this).name


def defined(statement: exp.Expr) -> set[str]:
    """The names that a statement has for itself or for those behind it."""
    own = {each.alias for each in statement.find_all(exp.CTE)}
    return own | ({statement.this.find(exp.Table).name} if isinstance(statement, exp.Create) else set())


def read(statement: exp.Expr) -> Iterator[exp.Table]:
    """The tables that a statement reads."""
    query = statement.expression if isinstance(statement, (exp.Insert, exp.Create)) else statement
    return iter(()) if query is None else query.find_all(exp.Table)


def check(statements: Sequence[exp.Expr], streams: Streams) -> None:
    """Raises PlanError, with the place, for what a block of an app cannot do."""
    own = {name.lower() for each in statements for name in defined(each)}
    for statement in statements:
        _check_kind(statement)
        for table in read(statement):
            if table.name not in streams and table.name.lower() not in own:
                raise _unknown(table, streams)
    if all(isinstance(each, exp.Create) and each.kind == "VIEW" for each in statements):
        raise refused(statements[-1], "the block defines views and asks nothing", "SELECT STREAM … FROM …")


def _check_kind(statement: exp.Expr) -> None:
    if isinstance(statement, exp.Create) and statement.find(exp.MaterializedProperty):
        hint = "INSERT INTO a stream, or let an aggregation keep it (define aggregation …)"
        raise refused(statement, "a materialized view is a table, and an app has streams", hint)
    if isinstance(statement, exp.Insert) and statement.args.get("alternative") is not None:
        hint = "INSERT INTO; a reader that wants the last row of each key takes it from the sink"
        raise refused(statement.this, "UPSERT changes rows of a table, and an app has streams", hint)


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
