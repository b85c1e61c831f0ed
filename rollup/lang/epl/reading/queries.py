"""Queries: from `select` to the rate of their output, one method a rule of the grammar."""

from __future__ import annotations

from typing import Any

from lark import v_args
from lark.tree import Meta

from rollup.lang.epl.reading.clause import Clause, clauses, others
from rollup.lang.epl.reading.expressions import Parts, has, nodes, place, problem_at, token
from rollup.lang.epl.reading.streams import ReadStreams
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.streams import Join, Stream


class ReadQueries(ReadStreams):
    """The grammar's parts "select" and "output"."""

    def query(self, meta: Meta, parts: Parts) -> sm.Query:
        found = clauses(parts)
        return query_of(found, meta)

    def subselect(self, meta: Meta, parts: Parts) -> sm.Query:
        return query_of(clauses(parts), meta)

    def select(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("select", (token(parts, "SELECTOR"), has(parts, "DISTINCT"), clauses(parts)["items"]))

    def from_(self, meta: Meta, parts: Parts) -> Clause:
        streams = tuple(part for part in parts if isinstance(part, Stream))
        joins = tuple(part for part in parts if isinstance(part, Join))
        return Clause("from", (streams, joins))

    def outer_join(self, meta: Meta, parts: Parts) -> Join:
        kind, stream = others(parts)
        return Join(kind, stream, clauses(parts).get("on"), at=place(meta))

    def left(self, meta: Meta, parts: Parts) -> str:
        return "left"

    def right(self, meta: Meta, parts: Parts) -> str:
        return "right"

    def full(self, meta: Meta, parts: Parts) -> str:
        return "full"

    def inner(self, meta: Meta, parts: Parts) -> str:
        return "inner"

    def on(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("on", parts[0])

    def insert_into(self, meta: Meta, parts: Parts) -> Clause:
        selector: Any = token(parts, "SELECTOR")
        return Clause("insert", sm.InsertInto(parts[-2], parts[-1] or (), selector, at=place(meta)))

    def into_table(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("insert", sm.InsertInto(parts[0], table=True, at=place(meta)))

    def where(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("where", parts[0])

    def having(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("having", parts[0])

    def group_by(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("group_by", tuple(parts))

    def plain_grouping(self, meta: Meta, parts: Parts) -> sm.Grouping:
        return sm.Grouping("value", (parts[0],), at=place(meta))

    def no_grouping(self, meta: Meta, parts: Parts) -> sm.Grouping:
        return sm.Grouping("combined", at=place(meta))

    def combined_grouping(self, meta: Meta, parts: Parts) -> sm.Grouping:
        return sm.Grouping("combined", tuple(parts), at=place(meta))

    def rollup(self, meta: Meta, parts: Parts) -> sm.Grouping:
        return sm.Grouping("rollup", parts=nodes(parts), at=place(meta))

    def cube(self, meta: Meta, parts: Parts) -> sm.Grouping:
        return sm.Grouping("cube", parts=nodes(parts), at=place(meta))

    def grouping_sets(self, meta: Meta, parts: Parts) -> sm.Grouping:
        return sm.Grouping("sets", parts=nodes(parts), at=place(meta))

    def order_by(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("order_by", tuple(parts))

    def ordering(self, meta: Meta, parts: Parts) -> sm.Ordering:
        return sm.Ordering(parts[0], has(parts, "DESC"), at=place(meta))

    def limit(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("limit", sm.Limit(parts[0], parts[1], at=place(meta)))

    def limit_from(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("limit", sm.Limit(parts[1], parts[0], at=place(meta)))

    # output

    def output(self, meta: Meta, parts: Parts) -> Clause:
        found = clauses(parts)
        if not found:
            raise problem_at("`output` needs a rate", meta, "output last every 5 sec, at (…), when …, after …")
        when, then = found.get("when", (None, ()))
        return Clause(
            "output",
            sm.Output(
                found.get("after"),
                token(parts, "RATE") or "default",  # pyright: ignore[reportArgumentType]  # one of the four words
                found.get("every"),
                found.get("at"),
                when,
                then,
                found.get("terminated"),
                at=place(meta),
            ),
        )

    def after(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("after", parts[0])

    def every(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("every", parts[0])

    def at(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("at", parts[0])

    def when(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("when", (parts[0], clauses(parts).get("then", ())))

    def also_when_terminated(self, meta: Meta, parts: Parts) -> Clause:
        return self.when_terminated(meta, parts)

    def when_terminated(self, meta: Meta, parts: Parts) -> Clause:
        found = clauses(parts)
        return Clause("terminated", sm.OutputEnd(found.get("and"), found.get("then", ()), at=place(meta)))

    def and_condition(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("and", parts[0])

    def then_set(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("then", clauses(parts)["assignments"])

    def span(self, meta: Meta, parts: Parts) -> sm.Span:
        return sm.Span(parts[0], at=place(meta))

    def events(self, meta: Meta, parts: Parts) -> sm.Span:
        return sm.Span(events=parts[0], at=place(meta))


def query_of(found: dict[str, Any], meta: Meta) -> sm.Query:
    """The query of some clauses."""
    selector, distinct, items = found["select"]
    streams, joins = found["from"]
    kept = {
        name: found[name]
        for name in ("insert", "where", "group_by", "having", "output", "order_by", "limit")
        if name in found
    }
    return sm.Query(items, streams, joins, selector=selector, distinct=distinct, at=place(meta), **kept)


v_args(meta=True)(ReadQueries)  # in place: as a decorator it would hide the type of the class
