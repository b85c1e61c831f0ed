"""What tools see of the aggregations in the private server: views, columns, types, comments and functions.

The schema `rollup` is for people and their tools: a view a level, a view named as the aggregation, and functions to
call; `public` has the views once more. The schema `_rollup` holds what stands behind them: the functions that ask, and
the tables of loaded rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from rollup.core.calendar import Duration
from rollup.core.errors import ConfigError
from rollup.gateway.rewriting.mentions import Source, columns, view_name
from rollup.plan.aggregation import TIME, TIMESTAMP, Aggregation
from rollup.plan.app import StreamDef
from rollup.plan.types import Type
from rollup.stores.sql.ddl import statements, template
from rollup.stores.sql.types import check_name, quoted

SCHEMA, INNER, PUBLIC = "rollup", "_rollup", "public"
"""The third has the views once more, for tools that look nowhere else."""

BOUND = f"{INNER}.bound"
"""A domain over text, the type of parameters without a type of their own.

A driver that asks the server for the types of parameters (pgx does) does not know the domain. So it sends a number or a
time as its text."""

_BOUNDS = (
    (BOUND, BOUND),
    ("bigint", "bigint"),
    (BOUND, "bigint"),
    ("bigint", BOUND),
    ("timestamptz", "timestamptz"),
)
"""Of which types start and end may be."""


def name(text: str, schema: str | None = None) -> str:
    """A quoted name, with its schema if one is given."""
    return f"{quoted(schema, 'postgresql')}.{quoted(text, 'postgresql')}" if schema else quoted(text, "postgresql")


def text(value: str) -> str:
    """A string constant.

    >>> text("it's")
    "'it''s'"
    """
    return (
        "E'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        if "\\" in value
        else "'" + value.replace("'", "''") + "'"
    )


def setup_ddl(mail: str, patience: float) -> list[str]:
    """Statements that make both schemas anew; `mail` is the folder of replies, `patience` the seconds one may take."""
    return [
        f"drop schema if exists {SCHEMA}, {INNER}, {PUBLIC} cascade",
        f"create schema {SCHEMA}",
        f"create schema {PUBLIC}",
        f"create schema {INNER}",
        f"create domain {BOUND} as text",
        *statements("gateway/time_bucket.sql", schema=SCHEMA),
        template("gateway/wait.sql", mail=text(mail), patience=str(max(1, round(patience)))),
        f"alter default privileges in schema {INNER} grant select on tables to public",
    ]


def aggregation_ddl(aggregation: Aggregation) -> Iterator[str]:
    """The functions and views of an aggregation. Raises ConfigError when a name is too long for PostgreSQL."""
    for each in (
        aggregation.name,
        *(view_name(aggregation, level) for level in aggregation.levels),
        *columns(aggregation),
    ):
        check_name(each, f"of {aggregation.name}:", "postgresql")
    if TIME in columns(aggregation):
        raise ConfigError(f"{aggregation.name} has a column {TIME}, which is the endpoint's own")
    ask = name(f"ask {aggregation.name}"[:63], INNER)
    yield template("gateway/answer.sql", ask=ask, name=text(aggregation.name), columns=_columns(aggregation))
    for spec in (False, True):
        yield from _calls(aggregation, ask, spec)
    for level in aggregation.levels:
        yield from _view(aggregation, level, view_name(aggregation, level), ask)
    yield from _view(aggregation, aggregation.levels[-1], aggregation.name, ask)


def kept_ddl(kept: StreamDef, about: str) -> Iterator[str]:
    """The view of a table beside aggregations. Raises ConfigError when a name is too long for PostgreSQL."""
    for each in (kept.name, *kept.attributes):
        check_name(each, f"of {kept.name}:", "postgresql")
    ask = name(f"ask {kept.name}"[:63], INNER)
    yield template("gateway/answer.sql", ask=ask, name=text(kept.name), columns=_typed(kept.attributes))
    note = text(f"{kept.name}: {about}")
    for schema in (SCHEMA, PUBLIC):
        yield f"create view {name(kept.name, schema)} as select * from {ask}('{{}}', null, null, null)"
        yield f"comment on view {name(kept.name, schema)} is {note}"


def _columns(aggregation: Aggregation) -> str:
    return f"{_typed(columns(aggregation))}, {name(TIME)} timestamptz"


def _typed(kinds: Mapping[str, Type]) -> str:
    return ", ".join(f"{name(column)} {kind.postgres}" for column, kind in kinds.items())


def _calls(aggregation: Aggregation, ask: str, spec: bool) -> Iterator[str]:
    """The ways to call an aggregation: for people in the schema that is theirs, with a spec before for the rewriter."""
    function = name(aggregation.name, INNER if spec else SCHEMA)
    first = 1 if spec else 0
    given = "$1" if spec else "'{}'"
    note = f"rows of {aggregation.name} of a time range per level, open buckets included"

    def call(kinds: list[str], low: str, high: str) -> str:
        per = f"${len(kinds) + first}"
        parameters = ", ".join([*["text"] * first, *kinds])
        arguments = f"{given}, {low}, {high}, {per}"
        return template(
            "gateway/call.sql", function=function, parameters=parameters, columns=_columns(aggregation),
            ask=ask, arguments=arguments, comment=text(note),
        )  # fmt: skip

    yield call([BOUND, "text"], f"to_jsonb(${1 + first})", "null")
    for kinds in _BOUNDS:
        low, high = (_json(f"${index + first}", kind) for index, kind in enumerate(kinds, start=1))
        yield call([*kinds, "text"], low, high)


def _json(value: str, kind: str) -> str:
    if kind == "timestamptz":
        return f"to_jsonb(floor(extract(epoch from {value}) * 1000)::bigint)"
    return f"to_jsonb({value})"


def _view(aggregation: Aggregation, level: Duration, view: str, ask: str) -> Iterator[str]:
    kind = "one row a bucket and key" if aggregation.keys else "one row a bucket"
    own = view == aggregation.name
    note = f"{aggregation.name} per {level.plural}, {kind}, open buckets included"
    note += ". Ask other levels and ranges with within … per …" if own else ""
    spec = text(json.dumps({"view": True}))
    query = f"select {_digits(aggregation)} from {ask}({spec}, null, null, '{level.plural}')"
    yield f"create view {name(view, SCHEMA)} as {query}"
    yield f"comment on view {name(view, SCHEMA)} is {text(note)}"
    yield f"create view {name(view, PUBLIC)} as select * from {name(view, SCHEMA)}"
    yield f"comment on view {name(view, PUBLIC)} is {text(note)}"
    for column, remark in _remarks(aggregation, level).items():
        yield f"comment on column {name(view, SCHEMA)}.{name(column)} is {text(remark)}"


def _digits(aggregation: Aggregation) -> str:
    """All columns of an answer, decimals with their precision, which the columns of a function do not have."""
    kinds = columns(aggregation)
    if not any(kind.exact for kind in kinds.values()):
        return "*"
    exact = (f"{name(c)}::{kind.postgres} as {name(c)}" if kind.exact else name(c) for c, kind in kinds.items())
    return ", ".join([*exact, name(TIME)])


def _remarks(aggregation: Aggregation, level: Duration) -> dict[str, str]:
    remarks = {
        TIMESTAMP: f"start of the {level.unit}, milliseconds since 1970-01-01 UTC",
        TIME: f"start of the {level.unit}, as a time",
    }
    keys = {key.name for key in aggregation.keys}
    for column in columns(aggregation):
        if column in keys:
            remarks[column] = "group key"
        remarks.setdefault(column, f"aggregated over the {level.unit}")
    return remarks


# What stands in a source's place


def call_of(source: Source) -> str:
    """The call that asks when the query is executed."""
    return f"{name(source.aggregation, INNER)}({', '.join([text(source.spec), *_arguments(source)])})"


def _arguments(source: Source) -> list[str]:
    start_only = source.high == "null"
    return [source.low, source.per] if start_only else [source.low, source.high, source.per]


def select_from(aggregation: Aggregation, loaded: frozenset[str], table: str) -> str:
    """A query over a table of loaded rows with all columns of an answer; those that nobody reads are null."""
    kinds = columns(aggregation)
    listed = [name(c) if c in loaded else f"null::{kind.postgres} as {name(c)}" for c, kind in kinds.items()]
    time = f"to_timestamp({name(TIMESTAMP)} / 1000.0) as {name(TIME)}"
    return f"select {', '.join([*listed, time])} from {name(table, INNER)}"


def select_kept(kept: StreamDef, table: str) -> str:
    """A query over a loaded copy of a table beside aggregations."""
    return f"select {', '.join(map(name, kept.attributes))} from {name(table, INNER)}"


def table_ddl(kinds: Mapping[str, Type], table: str) -> str:
    """The table of loaded rows, with these columns."""
    return f"create table {name(table, INNER)} ({_typed(kinds)})"
