"""What stands in a source's place before a PostgreSQL store: a query that computes its rows in the store's own server."""

from __future__ import annotations

from dataclasses import replace

from rollup.aggregation.retrieval import AUTO, Ask, ask_for, bounds, per_level
from rollup.errors import QueryError, RollupError
from rollup.gateway.catalog import name
from rollup.gateway.sources import TIME, Source
from rollup.plan.aggregation import TIMESTAMP, Aggregation
from rollup.plan.app import Selection
from rollup.stores.sql_ddl import Tables, answerable
from rollup.stores.sql_text import encode

_SHOWN = f"select *, to_timestamp({name(TIMESTAMP)} / 1000.0) as {name(TIME)}"
_POINTS = 100_000
"""Buckets that `fill` may have here, since each is a number in the text that the server gets."""


def inside(aggregation: Aggregation, schema: str, source: Source) -> str:
    """The query of a source, in parentheses: a level's view, a call of the aggregation's function, or a whole question.

    Raises RollupError at the source's position when its constants are wrong.
    """
    try:
        if source.given.get("view"):
            return f"({_SHOWN} from {_view(aggregation, schema, source)})"
        ask = _question(aggregation, source)
        if ask is None:
            return f"({_SHOWN} from {name(aggregation.name, schema)}({', '.join(_arguments(aggregation, source))}))"
        return f"({_relations(ask, schema)} {_SHOWN} from ({encode(ask.constant_sql(dialect='postgres'))}) as answer)"
    except RollupError as problem:
        raise problem.at(*source.position) from None


def _view(aggregation: Aggregation, schema: str, source: Source) -> str:
    level = source.per.strip("'")
    tests = [
        f"{name(TIMESTAMP)} {sign} {bound}"
        for sign, bound in ((">=", source.low), ("<", source.high))
        if bound != "null::bigint"
    ]
    where = f" where {' and '.join(tests)}" if tests else ""
    return f"{name(f'{aggregation.name}_{level}', schema)}{where}"


def _arguments(aggregation: Aggregation, source: Source) -> list[str]:
    if source.values is None:
        return [source.low, *([source.high] if source.high != "null" else []), source.per]
    low, high, per = source.values
    level = per_level(aggregation, per)
    found = bounds([low] if high is None else [low, high])
    return [f"({found[0]})::bigint", f"({found[1]})::bigint", f"'{level.plural}'"]


def _question(aggregation: Aggregation, source: Source) -> Ask | None:
    """What the function cannot answer: several levels at once, and gaps. None for all else."""
    word: str | None = source.given.get("fill")
    if source.values is None:
        if word is not None:
            raise QueryError("FILL needs a constant range and level here", hint="leave FILL out")
        return None
    low, high, per = source.values
    if word is None and not (isinstance(per, str) and per.strip().lower() == AUTO):
        return None
    start, end = bounds([low] if high is None else [low, high])
    shown = replace(aggregation, outputs=answerable(aggregation)[0])
    return ask_for(shown, start, end, per, Selection(), word)


def _relations(ask: Ask, schema: str) -> str:
    """The `with` clause that the question's query reads from."""
    tables = Tables(ask.aggregation, "postgresql")
    stored = {alias: ask.aggregation.table(level) for alias, level in ask.relations.items()}
    parts = [
        f"{alias} as not materialized (select * from {name(table, schema)})"
        for alias, table in {**stored, "open": tables.open}.items()
    ]
    for alias, rows in ask.tables().items():
        if rows.num_rows > _POINTS:
            raise QueryError(f"`fill` over more than {_POINTS:,} {ask.per.plural}", hint="a shorter range")
        points = ",".join(map(str, rows[TIMESTAMP].to_pylist()))
        parts.append(f"{alias} as (select unnest('{{{points}}}'::bigint[]) as {name(TIMESTAMP)})")
    return f"with {', '.join(parts)}"
