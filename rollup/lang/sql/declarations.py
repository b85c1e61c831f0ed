"""An app in SQL: `CREATE STREAM …` and `CREATE AGGREGATION … AS SELECT … GROUP BY …, ROLLUP TIME ts EVERY SECOND TO YEAR`.

The texts become the same definitions as those of SiddhiQL, so all that follows the parser is one. Expressions are those of
SiddhiQL's grammar; only names, texts and types are written as SQL writes them.

    CREATE STREAM trades (symbol VARCHAR, price DOUBLE, ts TIMESTAMP);
    CREATE AGGREGATION trades_by_symbol AS
    SELECT symbol, avg(price) AS mean FROM trades
    GROUP BY symbol, ROLLUP TIME ts EVERY SECOND TO YEAR WITH (lateness = '10 seconds', zone = 'Europe/Berlin');
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from lark import Lark, Token, v_args
from lark.tree import Meta
from sqlglot import exp

from rollup.core.calendar import Duration, bucket_end
from rollup.core.errors import PlanError
from rollup.lang.reading import grammar_of, read
from rollup.lang.siddhi import apps, tree
from rollup.lang.siddhi.expressions import sql_of
from rollup.lang.siddhi.mistakes import told
from rollup.plan.annotations import ZONE
from rollup.plan.app import AggregationDef, Annotation, App, Source, StreamDef, StreamQuery
from rollup.plan.retention import period
from rollup.plan.types import Type, parse_type, written

_BEGINS = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*create\b", re.IGNORECASE | re.DOTALL)
_TYPES = {
    **dict.fromkeys(("varchar", "text", "string"), "string"),
    **dict.fromkeys(("int", "integer", "smallint", "tinyint"), "int"),
    **dict.fromkeys(("bigint", "long"), "long"),
    **dict.fromkeys(("real", "float"), "float"),
    **dict.fromkeys(("double", "double precision"), "double"),
    **dict.fromkeys(("boolean", "bool"), "bool"),
    **dict.fromkeys(("timestamp", "timestamptz", "timestamp with time zone"), "timestamp"),
    "date": "date",
}
"""What SQL calls types, by our names; decimals have the same."""
_OPTIONS = "lateness = '10 seconds', late = 'correct' (or 'merge', 'drop'), zone = 'Europe/Berlin', retention = 'seconds 2 days, minutes 90 days', description = '…'"
_OF_STREAMS = ("zone", "time", "description")
_WORDS = {
    "define": "an app is in SiddhiQL or in SQL: here streams and aggregations are made by CREATE STREAM and CREATE AGGREGATION",
    "insert": 'standing queries stand in a file of their own: statements = ["hourly.sql"] in the configuration',
    "select": 'questions are asked of a running job: rollup query CONF "select …"',
    "table": "CREATE STREAM name (column type, …), or CREATE AGGREGATION name AS SELECT …",
    "view": "CREATE AGGREGATION name AS SELECT …, or CREATE STREAM name AS SELECT … for rows as they are",
    "materialized": "CREATE AGGREGATION name AS SELECT …",
    "rollup": "the time stands behind GROUP BY: GROUP BY symbol, ROLLUP TIME ts EVERY SECOND TO YEAR",
    "having": "a condition on totals stands in questions",
    "order": "questions order their rows",
    "limit": "questions limit their rows",
    "...": "EVERY SECOND TO YEAR",
}


class _Option(NamedTuple):
    """One of `WITH (name = 'value')`."""

    name: str
    value: str
    meta: Meta

    def annotation(self, name: str, value: str | None = None, *nested: Annotation) -> Annotation:
        """The annotation that SiddhiQL has for it."""
        given = {} if nested else {"": self.value if value is None else value}
        return Annotation(name, given, nested, self.meta.line, self.meta.column)

    def refuse(self, message: str, hint: str) -> PlanError:
        """The error that points at this option."""
        return PlanError(message, line=self.meta.line, column=self.meta.column, hint=hint)


def in_sql(text: str) -> bool:
    """Whether the text of an app is SQL, which begins with CREATE.

    >>> in_sql("-- trades\\nCREATE STREAM s (v INT)"), in_sql("define stream S (v int)")
    (True, False)
    """
    return _BEGINS.match(text) is not None


def parse_condition(text: str) -> exp.Expr:
    """The condition that a text in SQL is, with names still unresolved. Raises SyntaxProblem with the place."""
    return sql_of(read(text, _grammar(), _Reader(text), partial(told, grammar=_grammar(), cure=_cure), "expression"))


def parse_created(text: str) -> App:
    """The app that a text in SQL creates. Raises SyntaxProblem or PlanError with the place."""
    app: App = read(text, _grammar(), _Reader(text), partial(told, grammar=_grammar(), cure=_cure), "created_app")
    return App(app.name, app.streams, app.aggregations, app.queries, app.joins, text)


@cache
def _grammar() -> Lark:
    folder = Path(apps.__file__).parent
    path = Path(__file__).parent / "declarations.lark"
    return grammar_of(path, start=["created_app", "expression"], import_paths=[str(folder)])


def _cure(found: str, before: str, rest: str, accepted: Collection[str], keywords: Collection[str]) -> str | None:
    if (found == ";" or not found) and re.search(r"\bfrom\b[^;]*$", before, re.IGNORECASE):
        return "an aggregation ends with its time: GROUP BY symbol, ROLLUP TIME ts EVERY SECOND TO YEAR"
    return _WORDS.get(found.lower())


class _Reader(apps.Reader):
    """What is made of the rules that only SQL has."""

    def __getattr__(self, name: str) -> Any:
        """The method of a rule that comes from SiddhiQL's grammar."""
        if not name.startswith("expressions__"):
            raise AttributeError(name)
        return getattr(self, name.removeprefix("expressions__"))

    def name(self, meta: Meta, parts: list[Token]) -> Token:
        token = parts[0]
        bare = token.value[1:-1].replace('""', '"') if token.value[0] in '"`' else token.value
        return token.update(value=bare)

    def string(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return super().string(meta, [parts[0].update(value=f"'{_text(parts[0])}'")])

    def sql_type(self, meta: Meta, parts: list[Any]) -> Type:
        words = " ".join(str(part) for part in parts[:-2]).lower()
        given = written([words, *parts[-2:]])
        if words in ("decimal", "numeric"):
            return parse_type(given, meta.line, meta.column)
        if given not in _TYPES:
            known = "VARCHAR, INT, BIGINT, FLOAT, DOUBLE, BOOLEAN, DECIMAL(p, s), TIMESTAMP, DATE"
            raise PlanError(f"unknown type {given.upper()}", line=meta.line, column=meta.column, hint=known)
        return parse_type(_TYPES[given])

    def primary_key(self, meta: Meta, parts: list[Token]) -> Annotation:
        names = tuple(str(part) for part in parts)
        return Annotation("PrimaryKey", {"": names[0]}, (), meta.line, meta.column, names)

    def where(self, meta: Meta, parts: list[tree.Expression]) -> apps.Clause:
        condition = sql_of(parts[0])
        condition.meta["filter"] = True
        return apps.Clause("where", condition)

    def keys(self, meta: Meta, parts: list[tree.Expression]) -> apps.Clause:
        return apps.Clause("group_by", tuple(map(sql_of, parts)))

    def rolled(self, meta: Meta, parts: list[tree.Expression]) -> apps.Clause:
        return apps.Clause("by", sql_of(parts[0]))

    def levels_between(self, meta: Meta, parts: list[Token]) -> tuple[Duration, ...]:
        return self.duration_range(meta, parts)

    def levels_listed(self, meta: Meta, parts: list[Token]) -> tuple[Duration, ...]:
        levels = [apps.duration_of(part) for part in parts]
        twice = next((part for at, part in enumerate(parts) if levels[at] in levels[:at]), None)
        if twice is not None:
            raise PlanError(f"{twice} stands here twice", line=twice.line, column=twice.column, hint="leave one out")
        return tuple(sorted(levels))

    def option(self, meta: Meta, parts: list[Token]) -> _Option:
        made = _Option(str(parts[0]).lower(), _text(parts[2]), meta)
        if parts[1] != "=":
            raise made.refuse(f"an option is {made.name} = '…', not {made.name} {parts[1]} '…'", _OPTIONS)
        return made

    def options(self, meta: Meta, parts: list[_Option]) -> apps.Clause:
        for at, each in enumerate(parts):
            if each.name in (other.name for other in parts[:at]):
                raise each.refuse(f"{each.name} stands here twice", "leave one out")
        return apps.Clause("options", tuple(parts))

    def created_stream(self, meta: Meta, parts: list[Any]) -> StreamDef:
        options = next((part.value for part in parts if isinstance(part, apps.Clause)), ())
        keys = [part for part in parts if isinstance(part, Annotation)]
        for each in options:
            if each.name not in _OF_STREAMS:
                raise each.refuse(f"a stream has no option {each.name!r}", ", ".join(_OF_STREAMS))
        attributes = [part for part in parts[1:] if type(part) is tuple]
        made: Callable[[tuple[Annotation, ...]], StreamDef] = self.stream_definition(meta, [parts[0], *attributes])
        return made((*keys, *(each.annotation(each.name) for each in options)))

    def derived_stream(self, meta: Meta, parts: list[Any]) -> StreamQuery:
        return StreamQuery(self._source(parts), apps.selection_of(parts), str(parts[0]))

    def created_aggregation(self, meta: Meta, parts: list[Any]) -> AggregationDef:
        clauses = dict(part for part in parts if isinstance(part, apps.Clause))
        levels = next(part for part in parts if type(part) is tuple)
        annotations = tuple(_annotation(each, levels) for each in clauses.get("options", ()))
        name, selection = str(parts[0]), apps.selection_of(parts)
        return AggregationDef(
            name, self._source(parts), selection, clauses.get("by"), levels, annotations, meta.line, meta.column
        )

    def _source(self, parts: list[Any]) -> Source:
        source = [part for part in parts if isinstance(part, Token)][1]
        passing = next((part.value for part in parts if isinstance(part, apps.Clause) and part.name == "where"), None)
        return Source(str(source), passing, source.line, source.column)

    def created(self, meta: Meta, parts: list[Any]) -> tuple[tuple[Annotation, ...], Any]:
        return (), parts[0]

    def created_app(self, meta: Meta, parts: list[Any]) -> App:
        return self.app(meta, parts)


v_args(meta=True)(_Reader)  # in place: as a decorator it would hide the type of the class


def _text(token: Token) -> str:
    return token.value[1:-1].replace("''", "'")


def _annotation(option: _Option, levels: tuple[Duration, ...]) -> Annotation:
    """The annotation that an option of an aggregation is. Raises PlanError for one that is not known."""
    plain = option.annotation(option.name)
    if option.name in (ZONE, "description"):
        return plain
    if option.name == "late":
        return option.annotation("OutOfOrder")
    if option.name == "lateness":
        length = period(plain, option.value)
        if length is None:
            raise option.refuse("lateness is a length of time", "lateness = '10 seconds'")
        return option.annotation("BufferSize", str(-(-length // bucket_end(0, levels[0]))))
    if option.name == "retention":
        kept = dict[str, str]()
        for part in option.value.split(","):
            word, _, length = part.strip().partition(" ")
            kept[word] = length.strip()
        return option.annotation("purge", None, Annotation("retentionPeriod", kept, (), plain.line, plain.column))
    raise option.refuse(f"an aggregation has no option {option.name!r}", _OPTIONS)
