"""What stands in a source's place before a PostgreSQL store: a query that computes its rows in the store's own server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rollup.core.calendar import Duration
from rollup.core.errors import QueryError, RollupError
from rollup.core.periods import Period
from rollup.gateway.rewriting.catalog import name, text
from rollup.gateway.rewriting.loaded import asked_range
from rollup.gateway.rewriting.mentions import Source, view_name
from rollup.plan.aggregation import TIME, TIMESTAMP, Aggregation, column
from rollup.plan.app import Item, Selection
from rollup.retrieval.questions import AUTO, Ask, ask_for, level_or_period
from rollup.stores.base import newest_alone
from rollup.stores.postgres.text import encode
from rollup.stores.sql.ddl import Tables, answerable, stored_relations, with_keys

_ALWAYS = (-(2**63), 2**63 - 1)
_POINTS = 100_000
"""Buckets that `fill` may have here, since each is a number in the text that the server gets."""


def inside(aggregation: Aggregation, schema: str, source: Source) -> str:
    """The query of a source, in parentheses: a level's view, a call of the aggregation's function, or a whole question.

    Bounds that are no constants may be columns of what stands before the source, as a function's arguments may.

    Raises RollupError at the source's position when its constants are wrong.
    """
    try:
        given = source.given
        if given.get("as_of"):
            raise newest_alone(aggregation)
        named: Sequence[str] = given.get("named", ())
        if given.get("view"):
            return f"(select * from {_view(aggregation, schema, source, named)})"
        fill: str | None = given.get("fill")
        if source.values is None:
            if fill is not None:
                raise QueryError("FILL needs a constant range and level here", hint="leave FILL out")
            if named:
                hint = f'constants, or a level\'s view: "{aggregation.name}_per_days"'
                raise QueryError(f"{', '.join(named)}: the range and the level must be constants here", hint=hint)
            if source.high == "null":
                return f"lateral {_call(aggregation, schema, source.low, source.per)}"
            low, high = (_moment(aggregation, schema, bound) for bound in (source.low, source.high))
            return f"lateral {_call(aggregation, schema, low, high, source.per)}"
        start, end, per = asked_range(aggregation, given, source.values)
        if fill is None and not named and per in {level.plural for level in aggregation.levels}:
            return _call(aggregation, schema, f"({start})::bigint", f"({end})::bigint", f"'{per}'")
        if per != AUTO and isinstance(width := level_or_period(aggregation, per), Period):
            width.check(start, end, _POINTS)
        shown = replace(aggregation, outputs=answerable(aggregation)[0])
        return _whole(ask_for(shown, start, end, per, _selection(shown, named), fill), schema)
    except RollupError as problem:
        raise problem.at(*source.position) from None


def _selection(aggregation: Aggregation, named: Sequence[str]) -> Selection:
    """All that `select *` shows, and columns by their names."""
    shown = [TIMESTAMP, *(output.name for output in aggregation.outputs), *named]
    return Selection(tuple(Item(each, column(each)) for each in shown) if named else None)


def _view(aggregation: Aggregation, schema: str, source: Source, named: Sequence[str]) -> str:
    """The view of a level, or with columns by name the question that it stands for; the server puts the bounds into it."""
    level = source.per.strip("'")
    tests = [
        f"{name(TIMESTAMP)} {sign} {bound}"
        for sign, bound in ((">=", source.low), ("<", source.high))
        if bound != "null::bigint"
    ]
    where = f" where {' and '.join(tests)}" if tests else ""
    if not named:
        return f"{name(view_name(aggregation, Duration.parse(level)), schema)}{where}"
    shown = replace(aggregation, outputs=with_keys(aggregation, answerable(aggregation)[0]))
    return f"{_whole(ask_for(shown, *_ALWAYS, level, _selection(shown, named)), schema)} as v{where}"


def _moment(aggregation: Aggregation, schema: str, bound: str) -> str:
    """The instant of a bound: only the server knows of what type it is."""
    return f"{name('rollup_moment', schema)}({bound}, {text(aggregation.zone)})"


def _call(aggregation: Aggregation, schema: str, *arguments: str) -> str:
    return f"(select * from {name(aggregation.name, schema)}({', '.join(arguments)}))"


def _whole(ask: Ask, schema: str) -> str:
    """What the function cannot answer, several levels at once and gaps: the question itself."""
    tables = Tables(ask.aggregation, "postgresql")
    parts = stored_relations(tables, ask.relations, lambda table: name(table, schema), ask.late)
    for alias, rows in ask.tables().items():
        if rows.num_rows > _POINTS:
            raise QueryError(f"`fill` over more than {_POINTS:,} {ask.per.plural}", hint="a shorter range")
        points = {column: ",".join(map(str, rows[column].to_pylist())) for column in rows.column_names}
        columns = (f"unnest('{{{values}}}'::bigint[]) as {name(column)}" for column, values in points.items())
        parts.append(f"{alias} as (select {', '.join(columns)})")
    time = f"to_timestamp({name(TIMESTAMP)} / 1000.0) as {name(TIME)}"
    return f"(with {', '.join(parts)} select *, {time} from ({encode(ask.constant_sql(dialect='postgres'))}) as answer)"
