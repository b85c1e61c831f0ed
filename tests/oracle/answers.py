"""`select … having … order by … limit … offset` over answer rows, and apps and cases run on the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from rollup.core.errors import RollupError
from rollup.lang.siddhi.apps import parse_app, parse_query
from rollup.plan.app import JoinQuery, Selection
from tests.conformance.siddhi.compare import Rows
from tests.oracle import local_time as time
from tests.oracle.event_at_a_time import Oracle, Refused, aggregates
from tests.oracle.expressions import evaluate
from tests.oracle.values import FINAL

Row = dict[tuple[str, str], Any]
"""A row by (qualifier, name); the qualifier is '' for names that may stand alone."""


class Unanswerable(Exception):
    """A question that must be refused."""


def find(row: Row, node: exp.Column) -> Any:
    """The value of a reference."""
    if (node.table, node.name) not in row:
        raise Unanswerable(f"unknown name {node.name!r}")
    return row[node.table, node.name]


def shape(rows: list[Row], selection: Selection, star: list[str]) -> Rows:
    """The select list and what follows it."""
    items = [(item.name, item.expression) for item in selection.items or ()] or [
        (name, exp.column(name)) for name in star
    ]
    grouped = selection.group_by or any(aggregates(node) for _, node in items)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for index, row in enumerate(rows):
        key = (
            tuple(evaluate(node, lambda node, row=row: find(row, node)) for node in selection.group_by)
            if grouped
            else (index,)
        )
        groups.setdefault(key, []).append(row)
    answers = [_answer(group, items) for group in groups.values()]
    if selection.having is not None:
        answers = [row for row in answers if evaluate(selection.having, lambda node, row=row: find(row, node)) is True]
    for ordering in reversed(selection.order_by):
        node = ordering.this
        answers.sort(
            key=lambda row: _rank(evaluate(node, lambda column: find(row, column))),
            reverse=bool(ordering.args.get("desc")),
        )
    low = int(selection.offset.name) if selection.offset is not None else 0
    high = low + int(selection.limit.name) if selection.limit is not None else None
    names = [name for name, _ in items]
    return Rows(names, [[row["", name] for name in names] for row in answers[low:high]])


def _answer(group: list[Row], items: list[tuple[str, exp.Expression]]) -> Row:
    newest = max(group, key=lambda row: row.get(("", "AGG_TIMESTAMP")) or 0)
    made = {
        ("", name): evaluate(node, lambda node: find(newest, node), lambda call: _fold(call, group))
        for name, node in items
    }
    return {**newest, **made}


def _fold(call: exp.Anonymous, group: list[Row]) -> Any:
    name = call.name.lower()
    if name == "count" and not call.expressions:
        return len(group)
    if name not in FINAL:
        return NotImplemented
    return FINAL[name]([evaluate(call.expressions[0], lambda node, row=row: find(row, node)) for row in group])


def _rank(value: Any) -> tuple[bool, Any]:
    return (value is not None, value)


def constant(node: exp.Expression | None, row: Row | None = None) -> Any:
    """A bound of `within` or the word of `per`."""
    if node is None:
        raise Unanswerable("a clause is missing")
    return evaluate(node, lambda column: find(row or {}, column))


def buckets(oracle: Oracle, bounds: list[Any], per: Any) -> list[dict[str, Any]]:
    """The answer's rows before the select list. Raises Unanswerable."""
    level = time.WORDS.get(per.lower()) if isinstance(per, str) else None
    if level not in oracle.levels:
        raise Unanswerable(f"per {per!r}")
    if any(not isinstance(bound, str) for bound in bounds) and len(bounds) == 1:
        raise Unanswerable("one bound that is no text")
    try:
        low, high = time.within(bounds)
    except time.NoTime as problem:
        raise Unanswerable(str(problem)) from None
    return oracle.buckets(level, low, high)


class App:
    """An app on oracles: streams in, rows and answers out."""

    def __init__(self, text: str, zone: str = "+00:00", kept: Mapping[str, Oracle] | None = None) -> None:
        self.app = parse_app(text)
        self.now = self.arrivals = 0
        self.oracles: dict[str, Oracle] = {}
        self.emitted: list[tuple[str, list[Any]]] = []
        for definition in self.app.aggregations:
            attributes = {
                name: str(kind) for name, kind in self.app.streams[definition.source.stream].attributes.items()
            }
            self.oracles[definition.name] = (kept or {}).get(definition.name) or Oracle(definition, attributes, zone)

    def send(self, stream: str, values: list[Any]) -> None:
        """One event. Raises Refused or Unanswerable."""
        self.arrivals += 1
        for oracle in self.oracles.values():
            if oracle.definition.source.stream == stream:
                oracle.send(values, self.arrivals, self.now)
        for query in self.app.queries:
            if query.source.stream == stream:
                self._derive(stream, query, values)
        for join in self.app.joins:
            if join.source.stream == stream:
                self._ask(join, dict(zip(self.app.streams[stream].attributes, values, strict=True)))

    def _derive(self, stream: str, query: Any, values: list[Any]) -> None:
        names = list(self.app.streams[stream].attributes)
        row = {("", name): value for name, value in zip(names, values, strict=True)}
        where = query.source.filter
        if where is None or evaluate(where, lambda node: find(row, node)) is True:
            for made in shape([row], query.selection, names).rows:
                self.emitted.append((query.target, made))
                self.send(query.target, made)

    def _ask(self, join: JoinQuery, event: dict[str, Any]) -> None:
        asked: Row = {
            (q, name): value for name, value in event.items() for q in ("", join.stream_alias, join.source.stream)
        }
        oracle, question = self.oracles[join.retrieval.aggregation], join.retrieval
        found = buckets(oracle, [constant(node, asked) for node in question.within], constant(question.per, asked))
        names = ["AGG_TIMESTAMP", *(item.name for item in oracle.items()), "AGG_EVENTS"]
        pairs = [asked | self._side(join, row, names) for row in found]
        rows = [
            row
            for row in pairs
            if question.on is None or evaluate(question.on, lambda node, row=row: find(row, node)) is True
        ]
        if not rows and join.kind in ("full", "left" if join.stream_first else "right"):
            rows = [asked | self._side(join, {}, names)]
        answer = shape(rows, question.selection, names[:-1])
        self.emitted += [(join.target, row) for row in answer.rows]

    @staticmethod
    def _side(join: JoinQuery, row: dict[str, Any], names: list[str]) -> Row:
        return {
            (q, name): row.get(name) for name in names for q in ("", join.aggregation_alias, join.retrieval.aggregation)
        }

    def query(self, text: str) -> Rows:
        """The answer to an on-demand query. Raises Unanswerable."""
        try:
            question = parse_query(text)
        except RollupError as problem:
            raise Unanswerable(str(problem)) from None
        oracle = self.oracles.get(question.aggregation)
        if oracle is None:
            raise Unanswerable(f"no aggregation {question.aggregation!r}")
        names = ["AGG_TIMESTAMP", *(item.name for item in oracle.items())]
        found = buckets(oracle, [constant(node) for node in question.within], constant(question.per))
        rows: list[Row] = [
            {(q, name): value for name, value in row.items() for q in ("", oracle.definition.name)} for row in found
        ]
        self._known(rows, question, names)
        if question.on is not None:
            rows = [row for row in rows if evaluate(question.on, lambda node, row=row: find(row, node)) is True]
        return shape(rows, question.selection, names)

    @staticmethod
    def _known(rows: list[Row], question: Any, names: list[str]) -> None:
        """Unknown names are refused whether there are rows or not."""
        nodes = [item.expression for item in question.selection.items or ()] + (
            [question.on] if question.on is not None else []
        )
        for node in nodes:
            for column in node.find_all(exp.Column):
                if column.name not in (*names, "AGG_EVENTS"):
                    raise Unanswerable(f"unknown name {column.name!r}")


__all__ = ["App", "Refused", "Unanswerable"]
