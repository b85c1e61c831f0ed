"""SiddhiQL: the text of an app or of an on-demand query, read into `rollup.plan.app`."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lark import Lark, Token, v_args
from lark.tree import Meta
from sqlglot import exp

from rollup.core.calendar import Duration
from rollup.core.errors import PlanError, QueryError
from rollup.lang.reading import grammar_of, read
from rollup.lang.siddhi import tree
from rollup.lang.siddhi.expressions import sql_of
from rollup.lang.siddhi.mistakes import DEFINED, DEFINITIONS, explained
from rollup.lang.siddhi.reading import ReadExpressions
from rollup.plan.annotations import KEY, check_app, check_query, check_stream, primary_key
from rollup.plan.app import (
    AggregationDef,
    Annotation,
    App,
    Item,
    JoinQuery,
    Retrieval,
    Selection,
    Source,
    StreamDef,
    StreamQuery,
)
from rollup.plan.types import Type


class Clause(NamedTuple):
    """A clause that has been read, on its way into the statement it belongs to."""

    name: str
    value: Any


@cache
def siddhi_grammar() -> Lark:
    """The grammar of apps and of questions."""
    folder = Path(__file__).parent
    return grammar_of(folder / "siddhi.lark", folder / "expressions.lark", start=["app", "on_demand"])


@cache
def keywords() -> frozenset[str]:
    """The words that stand in backticks where they are names, in lower case."""
    values = (str(terminal.pattern.value).removesuffix(r"\b") for terminal in siddhi_grammar().terminals)
    return frozenset(value.lower() for value in values if value.isidentifier())


def parse_app(text: str) -> App:
    """The app that a text defines, with names still unresolved.

    Raises SyntaxProblem with the position and what was expected there.

    >>> app = parse_app("define stream S (x int, ts long); define aggregation A from S select sum(x) as s aggregate by ts every sec ... min;")
    >>> app.aggregations[0].levels
    (<Duration.SECONDS: 0>, <Duration.MINUTES: 1>)
    """
    app: App = _read(text, "app")
    return App(app.name, app.streams, app.aggregations, app.queries, app.joins, text)


def parse_query(text: str) -> Retrieval:
    """The on-demand query that a text asks: `from A on … within … per … select …`.

    Raises SyntaxProblem, or QueryError when `within` or `per` is missing.
    """
    query: Retrieval = _read(text, "on_demand")
    if not query.within or query.per is None:
        missing = "within" if not query.within else "per"
        raise QueryError(f"the query lacks its `{missing}` clause", hint="from A within <time> per <duration> select …")
    return query


def _read(text: str, start: str) -> Any:
    return read(text, siddhi_grammar(), Reader(text), partial(explained, grammar=siddhi_grammar()), start)


class Reader(ReadExpressions):
    """What is made of expressions: clauses, definitions, queries, annotations."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def _words(self, meta: Meta) -> str:
        return " ".join(self._text[meta.start_pos : meta.end_pos].split())

    def name(self, meta: Meta, parts: list[Token]) -> Token:
        token = parts[0]
        return token.update(value=super().name(meta, parts))

    # clauses

    def item(self, meta: Meta, parts: list[Any]) -> Item:
        expression, name = parts
        if name is None:
            name = expression.attribute if isinstance(expression, tree.Name) else self._words(meta)
        return Item(str(name), sql_of(expression))

    def select(self, meta: Meta, parts: list[Item]) -> Clause:
        return Clause("items", tuple(parts) or None)

    def group_by(self, meta: Meta, parts: list[tree.Expression]) -> Clause:
        return Clause("group_by", tuple(map(sql_of, parts)))

    def having(self, meta: Meta, parts: list[tree.Expression]) -> Clause:
        return Clause("having", sql_of(parts[0]))

    def order_by(self, meta: Meta, parts: list[exp.Ordered]) -> Clause:
        return Clause("order_by", tuple(parts))

    def ordering(self, meta: Meta, parts: list[Any]) -> exp.Ordered:
        return exp.Ordered(this=sql_of(parts[0]), desc=len(parts) > 1 and parts[1].type == "DESC")

    def limit(self, meta: Meta, parts: list[tree.Expression]) -> Clause:
        return Clause("limit", sql_of(parts[0]))

    def offset(self, meta: Meta, parts: list[tree.Expression]) -> Clause:
        return Clause("offset", sql_of(parts[0]))

    def within(self, meta: Meta, parts: list[tree.Expression]) -> Clause:
        return Clause("within", tuple(map(sql_of, parts)))

    def within_last(self, meta: Meta, parts: list[Token]) -> Clause:
        node = exp.Literal.string(f"last {str(parts[0])[1:-1]}")
        node.meta.update(line=meta.line, column=meta.column)
        return Clause("within", (node,))

    def per(self, meta: Meta, parts: list[Any]) -> Clause:
        per, more = sql_of(parts[0]), parts[1:]
        if more:
            if not isinstance(per, exp.Literal) or not per.is_string:
                raise QueryError(
                    "`over`, `by` and `in zone` follow a text", hint="per 'days' in zone 'Asia/Kolkata'"
                ).at(meta.line, meta.column)
            per.set("this", " ".join((per.name, *more)))
        return Clause("per", per)

    def over(self, meta: Meta, parts: list[Token]) -> str:
        return f"over {str(parts[0])[1:-1]}"

    def by(self, meta: Meta, parts: list[Token]) -> str:
        return f"by ({', '.join(f'`{part}`' for part in parts)})"

    def zone(self, meta: Meta, parts: list[Token]) -> str:
        return f"in {str(parts[0])[1:-1]}"

    def fill(self, meta: Meta, parts: list[Token]) -> Clause:
        words = " ".join(str(part).lower() for part in parts)
        return Clause("fill", parts[0].update(value=words))  # still a token, so that it can be pointed at

    def as_of(self, meta: Meta, parts: list[Token]) -> Clause:
        text = parts[0].update(value=f"commit {parts[1]}") if len(parts) > 1 else parts[0].update(value=parts[0][1:-1])
        return Clause("as_of", text)

    def filter(self, meta: Meta, parts: list[tree.Expression]) -> Clause:
        return Clause("filter", sql_of(parts[0]))

    def window(self, meta: Meta, parts: list[Any]) -> Clause:
        space, name, size = str(parts[0]), str(parts[1]), parts[2]
        literal = isinstance(size, tree.Constant) and type(size.value) is int and size.value > 0
        if (space, name) != ("window", "length") or not literal or len(parts) > 3:
            raise PlanError(
                f"#{space}.{name} cannot stand at a stream that asks an aggregation",
                line=meta.line,
                column=meta.column,
                hint="only #window.length(<number>)",
            )
        return Clause("window", meta)  # an event asks when it comes, however many are kept

    def source(self, meta: Meta, parts: list[Any]) -> Source:
        return Source(str(parts[0]), self._passing(meta, parts), meta.line, meta.column)

    def _passing(self, meta: Meta, parts: list[Any]) -> exp.Expr | None:
        """What the filters of a source ask together; None: there are none."""
        filters = [part.value for part in parts if isinstance(part, Clause) and part.name == "filter"]
        for each in filters:
            each.meta["filter"] = True  # so that a refusal does not call it an operand of `and`
        return exp.and_(*filters, copy=False) if len(filters) > 1 else filters[0] if filters else None

    # definitions

    def stream_definition(self, meta: Meta, parts: list[Any]) -> Callable[[tuple[Annotation, ...]], StreamDef]:
        name, attributes = str(parts[0]), parts[1:]
        seen: dict[str, Type] = {}
        for attribute, kind in attributes:
            if attribute in seen:
                raise PlanError(
                    f"stream {name} has the attribute {attribute!r} twice",
                    line=meta.line,
                    column=meta.column,
                    hint="rename one of them",
                )
            seen[attribute] = kind

        def made(annotations: tuple[Annotation, ...]) -> StreamDef:
            check_stream(name, annotations)
            key = primary_key(name, seen, annotations)
            return StreamDef(name, seen, annotations, table=key, line=meta.line, column=meta.column)

        return made

    def other_definition(self, meta: Meta, parts: list[Any]) -> Any:
        close = get_close_matches(str(parts[0]).lower(), DEFINED, 1, 0.7)
        raise PlanError(
            f"`define {parts[0]}` is not supported",
            line=meta.line,
            column=meta.column,
            hint=f"did you mean `define {close[0]}`?" if close else f"known are {DEFINITIONS}",
        )

    def duration_range(self, meta: Meta, parts: list[Token]) -> tuple[Duration, ...]:
        first, last = (duration_of(part) for part in parts)
        if first > last:
            raise PlanError(
                f"the range {parts[0]} ... {parts[1]} starts after its end",
                line=meta.line,
                column=meta.column,
                hint="write the finer duration first, as in sec ... year",
            )
        return tuple(Duration(value) for value in range(first, last + 1))

    def duration_list(self, meta: Meta, parts: list[Token]) -> tuple[Duration, ...]:
        levels = sorted(duration_of(part) for part in parts)
        whole = tuple(Duration(value) for value in range(levels[0], levels[-1] + 1))
        if tuple(levels) != whole:
            what = "repeats" if len(set(levels)) < len(levels) else "skips"
            raise PlanError(
                f"the list of durations {what} one",
                line=meta.line,
                column=meta.column,
                hint=f"write every {', '.join(level.unit for level in whole)}",
            )
        return whole

    def aggregation_definition(
        self, meta: Meta, parts: list[Any]
    ) -> Callable[[tuple[Annotation, ...]], AggregationDef]:
        name, source = str(parts[0]), parts[1]
        by = expression_of(parts)
        selection = selection_of(parts)
        levels = parts[-1]
        return lambda annotations: AggregationDef(
            name, source, selection, by, levels, annotations, meta.line, meta.column
        )

    def stream_query(self, meta: Meta, parts: list[Any]) -> Callable[[tuple[Annotation, ...]], StreamQuery]:
        query = StreamQuery(parts[0], selection_of(parts), str(parts[-1]))
        return _plain(query)

    def join_query(self, meta: Meta, parts: list[Any]) -> Callable[[tuple[Annotation, ...]], Any]:
        join, selection, target = parts[0], selection_of(parts), str(parts[-1])
        return _plain((join, selection, target))

    def side(self, meta: Meta, parts: list[Any]) -> dict[str, Any]:
        clauses = dict(part for part in parts if isinstance(part, Clause))
        alias = next((part for part in parts[1:] if isinstance(part, Token) and part.type != "UNIDIRECTIONAL"), None)
        source = self.source(meta, parts)
        unidirectional = next((p for p in parts if isinstance(p, Token) and p.type == "UNIDIRECTIONAL"), None)
        refused = {"#window": clauses.get("window"), "unidirectional": unidirectional}
        return {"source": source, "alias": str(alias or parts[0]), "of a stream": refused}

    def join(self, meta: Meta, parts: list[Any]) -> dict[str, Any]:
        clauses = dict(part for part in parts if isinstance(part, Clause))
        on = expression_of(parts)
        return {"left": parts[0], "kind": parts[1], "right": parts[2], "on": on, "meta": meta, **clauses}

    def on_demand(self, meta: Meta, parts: list[Any]) -> Retrieval:
        clauses = dict(part for part in parts if isinstance(part, Clause))
        explain = isinstance(parts[0], Token) and parts[0].type == "EXPLAIN"
        name = parts[1] if explain else parts[0]
        on = expression_of(parts)
        return Retrieval(
            name, on, clauses.get("within", ()), clauses.get("per"), selection_of(parts), clauses.get("fill"), explain,
            clauses.get("as_of"),
        )  # fmt: skip

    # annotations

    def dotted(self, meta: Meta, parts: list[Token]) -> str:
        return self._words(meta).replace(" ", "")

    def element(self, meta: Meta, parts: list[Any]) -> tuple[str, str] | Annotation:
        if isinstance(parts[0], Annotation):
            return parts[0]
        return parts[0] or "", str(parts[-1])[1:-1]

    def annotation(self, meta: Meta, parts: list[Any]) -> Annotation:
        space, of, *rest = parts
        given = [part for part in rest if isinstance(part, tuple)]
        nested = tuple(part for part in rest if isinstance(part, Annotation))
        listed = tuple(value for key, value in given if not key)
        name = str(space) if of is None else f"{space}:{of}".lower()
        made = Annotation(name, dict(given), nested, meta.line, meta.column, listed)
        again = len(given) - len(made.values) - (max(0, len(listed) - 1) if made.name.lower() == KEY else 0)
        if again:
            raise made.refuse(f"@{made.name} has two values of one name", "leave one of them out")
        return made

    # the whole

    def statement(self, meta: Meta, parts: list[Any]) -> tuple[tuple[Annotation, ...], Any]:
        annotations = tuple(part for part in parts if isinstance(part, Annotation))
        own = tuple(a for a in annotations if not a.name.startswith("app:"))
        return tuple(a for a in annotations if a.name.startswith("app:")), parts[-1](own)

    def app(self, meta: Meta, parts: list[tuple[tuple[Annotation, ...], Any]]) -> App:
        app_level = [annotation for annotations, _ in parts for annotation in annotations]
        name = next((a.values.get("", "app") for a in app_level if a.name == "app:name"), "app")
        whole = [part for _, part in parts]
        aggregations = tuple(part for part in whole if isinstance(part, AggregationDef))
        check_app(app_level, aggregations)
        known = {aggregation.name for aggregation in aggregations}
        joins = tuple(_join(known, *part) for part in whole if isinstance(part, tuple))
        streams = _unique([part for part in whole if isinstance(part, StreamDef)])
        _unique(list(aggregations))
        return App(name, streams, aggregations, tuple(p for p in whole if isinstance(p, StreamQuery)), joins)


v_args(meta=True)(Reader)  # in place: as a decorator it would hide the type of the class


def duration_of(word: Token) -> Duration:
    """The level that a word names. Raises PlanError at the word."""
    try:
        return Duration.parse(str(word))
    except QueryError as problem:
        raise PlanError(problem.message, line=word.line, column=word.column, hint=problem.hint) from None


def expression_of(parts: list[Any]) -> exp.Expr | None:
    """The expression among what has been read of a statement, in SQL."""
    return next((sql_of(part) for part in parts if isinstance(part, tree.Expression)), None)


def selection_of(parts: list[Any]) -> Selection:
    """The clauses of a selection among what has been read of a statement."""
    names = ("items", "group_by", "having", "order_by", "limit", "offset")
    return Selection(**{part.name: part.value for part in parts if isinstance(part, Clause) and part.name in names})


_Made = TypeVar("_Made")


def _plain(query: _Made) -> Callable[[tuple[Annotation, ...]], _Made]:
    """A query, of whose annotations there is nothing to keep."""

    def made(annotations: tuple[Annotation, ...]) -> _Made:
        check_query(annotations)
        return query

    return made


_Named = TypeVar("_Named", StreamDef, AggregationDef)


def _unique(definitions: list[_Named]) -> dict[str, _Named]:
    found: dict[str, _Named] = {}
    for definition in definitions:
        if found.get(definition.name, definition) != definition:
            twice = PlanError(f"{definition.name!r} is defined twice, and not alike", hint="rename one")
            raise twice.at(definition.line, definition.column)
        found[definition.name] = definition
    return found


def _passing(aggregation: dict[str, Any], on: exp.Expr | None) -> exp.Expr | None:
    """What a join asks of an aggregation's rows: the filter at it, whose bare names are the aggregation's own, and `on`."""
    passes: exp.Expr | None = aggregation["source"].filter
    if passes is None:
        return on
    for node in passes.find_all(exp.Column):
        if not node.table:
            node.set("table", exp.to_identifier(aggregation["alias"]))
    passes.meta["filter"] = True
    return exp.And(this=passes, expression=exp.true() if on is None else on)


def _join(aggregations: set[str], join: dict[str, Any], selection: Selection, target: str) -> JoinQuery:
    left, right, meta = join["left"], join["right"], join["meta"]
    stream_first = right["source"].stream in aggregations
    stream, aggregation = (left, right) if stream_first else (right, left)
    name = aggregation["source"].stream
    if name not in aggregations:
        raise PlanError(
            f"neither {left['source'].stream} nor {right['source'].stream} is an aggregation",
            line=meta.line,
            column=meta.column,
            hint="a join with `within … per …` needs one: " + (", ".join(sorted(aggregations)) or "none is defined"),
        )
    if join.get("per") is None:
        raise PlanError("the join lacks its `per` clause", line=meta.line, column=meta.column)
    for word, place in aggregation["of a stream"].items():
        if place is not None:
            hint = f"leave it out, or write it at {stream['source'].stream}: its events are what asks"
            raise PlanError(f"{word} cannot stand at the aggregation {name}", hint=hint).at(place.line, place.column)
    retrieval = Retrieval(name, _passing(aggregation, join["on"]), join["within"], join["per"], selection)
    return JoinQuery(
        stream["source"],
        stream["alias"],
        aggregation["alias"],
        stream_first,
        join["kind"],
        retrieval,
        target,
    )
