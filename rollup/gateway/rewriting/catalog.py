"""What tools see of the aggregations in the private server: views, columns, types, comments and functions.

The schema `public` is for people and their tools: a view a level, a view named as the aggregation, and functions to
call. Tools that look nowhere else find them there, and each is in their lists once. The schema `pg_rollup` holds what
stands behind them: the functions that ask, and the tables of loaded rows. Tools leave schemas of such names out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping

from rollup.core.calendar import Duration
from rollup.core.errors import ConfigError
from rollup.gateway.rewriting.mentions import Source, by_name, columns, view_name
from rollup.plan.aggregation import TIME, TIMESTAMP, Aggregation
from rollup.plan.app import StreamDef
from rollup.plan.types import Type
from rollup.stores.sql.ddl import statements, template
from rollup.stores.sql.types import check_name, quoted

SCHEMA, INNER = "public", "pg_rollup"
_EARLIER = "rollup, _rollup"
"""The schemas of earlier versions, whose server this may be."""

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
    """Statements that make both schemas anew; `mail` is the folder of replies, `patience` the seconds one may take.

    A schema whose name begins with `pg_` is the system's, so making one takes a word.
    """
    return [
        f"drop schema if exists {SCHEMA}, {INNER}, {_EARLIER} cascade",
        f"create schema {SCHEMA}",
        "set allow_system_table_mods = on",
        f"create schema {INNER}",
        "reset allow_system_table_mods",
        f"create domain {BOUND} as text",
        *statements("gateway/time_bucket.sql", schema=SCHEMA),
        template("gateway/wait.sql", schema=INNER, mail=text(mail), patience=str(max(1, round(patience)))),
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
    ask, shown = name(f"ask {aggregation.name}"[:63], INNER), _columns(aggregation)
    for begin, kinds in (("ask", shown), ("all", f"{shown}, {_typed(by_name(aggregation))}")):
        inner = name(f"{begin} {aggregation.name}"[:63], INNER)
        yield template("gateway/answer.sql", schema=INNER, ask=inner, name=text(aggregation.name), columns=kinds)
    yield from _calls(name(aggregation.name, SCHEMA), aggregation, ask, shown, spec=False)
    yield from _calls(name(aggregation.name, INNER), aggregation, ask, shown, spec=True)
    yield from _calls(_with_all(aggregation.name), aggregation, inner, kinds, spec=True)
    for level in aggregation.levels:
        yield from _view(aggregation, level, view_name(aggregation, level), ask)
    yield from _view(aggregation, aggregation.levels[-1], aggregation.name, ask)


def kept_ddl(kept: StreamDef, about: str) -> Iterator[str]:
    """The view of a table beside aggregations. Raises ConfigError when a name is too long for PostgreSQL."""
    for each in (kept.name, *kept.attributes):
        check_name(each, f"of {kept.name}:", "postgresql")
    ask = name(f"ask {kept.name}"[:63], INNER)
    yield template("gateway/answer.sql", schema=INNER, ask=ask, name=text(kept.name), columns=_typed(kept.attributes))
    note = text(f"{kept.name}: {about}")
    yield f"create view {name(kept.name, SCHEMA)} as select * from {ask}('{{}}', null, null, null)"
    yield f"comment on view {name(kept.name, SCHEMA)} is {note}"


def _columns(aggregation: Aggregation) -> str:
    return f"{_typed(columns(aggregation))}, {name(TIME)} timestamptz"


def _typed(kinds: Mapping[str, Type]) -> str:
    return ", ".join(f"{name(column)} {kind.postgres}" for column, kind in kinds.items())


def _with_all(aggregation: str) -> str:
    """The function that gives the columns which a text has to name, too."""
    return name(f"{aggregation[:58]} all", INNER)


def _calls(function: str, aggregation: Aggregation, ask: str, shown: str, spec: bool) -> Iterator[str]:
    """The ways to call an aggregation: for people in the schema that is theirs, with a spec before for the rewriter."""
    first = 1 if spec else 0
    given = "$1" if spec else "'{}'"
    note = f"rows of {aggregation.name} of a time range per level, open buckets included"

    def call(kinds: list[str], low: str, high: str) -> str:
        per = f"${len(kinds) + first}"
        parameters = ", ".join([*["text"] * first, *kinds])
        arguments = f"{given}, {low}, {high}, {per}"
        return template(
            "gateway/call.sql", function=function, parameters=parameters, columns=shown,
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


def call_of(source: Source, aggregation: Aggregation) -> str:
    """The call that asks when the query is executed."""
    arguments = ", ".join([text(source.spec), *_arguments(source)])
    named = source.given.get("named")
    if not named:
        return f"{name(source.aggregation, INNER)}({arguments})"
    shown = ", ".join(map(name, [*columns(aggregation), TIME, *named]))
    return f"lateral (select {shown} from {_with_all(source.aggregation)}({arguments}))"


def _arguments(source: Source) -> list[str]:
    start_only = source.high == "null"
    return [source.low, source.per] if start_only else [source.low, source.high, source.per]


def select_from(aggregation: Aggregation, loaded: frozenset[str], table: str, named: Collection[str] = ()) -> str:
    """A query over a table of loaded rows with all columns of an answer, and those `named`; what nobody reads is null."""

    def listed(kinds: Mapping[str, Type]) -> list[str]:
        return [name(c) if c in loaded else f"null::{kind.postgres} as {name(c)}" for c, kind in kinds.items()]

    time = f"to_timestamp({name(TIMESTAMP)} / 1000.0) as {name(TIME)}"
    further = {each: kind for each, kind in by_name(aggregation).items() if each in named}
    shown = [*listed(columns(aggregation)), time, *listed(further)]
    return f"select {', '.join(shown)} from {name(table, INNER)}"


def select_kept(kept: StreamDef, table: str) -> str:
    """A query over a loaded copy of a table beside aggregations."""
    return f"select {', '.join(map(name, kept.attributes))} from {name(table, INNER)}"


def table_ddl(kinds: Mapping[str, Type], table: str) -> str:
    """The table of loaded rows, with these columns."""
    return f"create table {name(table, INNER)} ({_typed(kinds)})"
