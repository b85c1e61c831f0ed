"""Requests that arrive as a stream: `from S as b join A as a on … within … per … select … insert into T`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from rollup.core.calendar import Duration, whole_pattern
from rollup.core.errors import QueryError
from rollup.core.periods import is_said
from rollup.plan.aggregation import TIMESTAMP, Aggregation, column
from rollup.plan.app import JoinQuery, StreamDef, position
from rollup.plan.expressions import Scope, bind, condition
from rollup.plan.functions import Bound
from rollup.plan.types import Type
from rollup.retrieval.answer import END, LATE, REVISION, START, Groups, Part, between, level_rows, row_order
from rollup.retrieval.questions import attributes, bounds, named_extras, per_level
from rollup.retrieval.selection import outputs, shape
from rollup.retrieval.trees import Asked, Sides, Value


@dataclass(frozen=True)
class Request(Asked):
    """One event's question: the range and level it names, and the query that joins it with the answer.

    Its query also reads the relation `request`: the asking event as a table of one row.
    """

    requests: Requests
    start: int
    end: int
    per: Duration

    @property
    def aggregation(self) -> Aggregation:
        """The aggregation that is asked."""
        return self.requests.aggregation

    @property
    def late(self) -> bool:
        return any(name in LATE or name == REVISION for name in self.requests.extras)

    @property
    def made(self) -> dict[object, object]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What all requests of a join share."""
        return self.requests.made

    @property
    def form(self) -> object:
        return self.per

    @property
    def values(self) -> Mapping[str, Value]:
        return {"start": self.start, "end": self.end}

    def tree(self, sides: Sides) -> exp.Select:
        """The query over `closed`, `open`, `request` and perhaps `late`, with places `start` and `end`."""
        return self.requests.query(self.per)


@dataclass(frozen=True)
class Requests:
    """A checked join: how an event of the asking stream becomes a request."""

    join: JoinQuery
    stream: StreamDef
    aggregation: Aggregation
    scope: Scope
    made: dict[object, object] = field(default_factory=dict[object, object])

    @classmethod
    def of(cls, join: JoinQuery, stream: StreamDef, aggregation: Aggregation) -> Requests:
        """Raises PlanError or QueryError when a name, a type or a constant is wrong."""
        requests = cls(join, stream, aggregation, _scope(join, stream, aggregation))
        constants = [requests._constant(node) for node in join.retrieval.within]
        if len(constants) == 1 and requests._type(join.retrieval.within[0]) is not Type.STRING:
            raise QueryError("a single `within` is a text pattern").at(*position(join.retrieval.within[0]))
        if all(value is not None for value in constants):
            _range(constants, aggregation.zone, join.retrieval.within[0])
        assert join.retrieval.per is not None
        per = requests._constant(join.retrieval.per)
        if per is not None:
            per_level(aggregation, per, join.retrieval.per)
        elif requests._type(join.retrieval.per) is not Type.STRING:
            raise QueryError("`per` takes a text").at(*position(join.retrieval.per))
        requests.query(aggregation.root)
        return requests

    def inputs(self) -> exp.Select:
        """The bounds and `per` of every event in the relation `events`: columns w0, w1 (or only w0) and p."""
        nodes = [*self.join.retrieval.within, self.join.retrieval.per]
        names = [*["w0", "w1"][: len(self.join.retrieval.within)], "p"]
        stream = Scope.of(self.stream.attributes, self.join.stream_alias, self.stream.name)
        bound = [bind(node, stream).sql for node in nodes if node is not None]
        query = exp.select(*(exp.alias_(sql, name) for sql, name in zip(bound, names, strict=True))).from_("events")
        where = self.join.source.filter
        passes = exp.true() if where is None else condition(where, stream, "the filter of a source")
        return query.select(exp.alias_(passes, "asks"))

    def request(self, values: dict[str, object]) -> Request:
        """The request of one row of `inputs`. Raises QueryError naming the value that is wrong."""
        raw = [values[name] for name in ("w0", "w1") if name in values]
        start, end = _range(raw, self.aggregation.zone)
        per = per_level(self.aggregation, values["p"])
        return Request(self, start, end, per)

    @property
    def extras(self) -> tuple[str, ...]:
        """The columns that only answer by name, of those the join names."""
        return named_extras(self.join.retrieval.on, self.join.retrieval.selection)

    def _constant(self, node: exp.Expr) -> object | None:
        if isinstance(node, exp.Literal):
            return node.name if node.is_string else int(node.name) if node.is_int else float(node.name)
        return None

    def _type(self, node: exp.Expr) -> Type | None:
        return bind(node, Scope.of(self.stream.attributes, self.join.stream_alias, self.stream.name)).type

    def query(self, per: Duration) -> exp.Select:
        """The query of a request at a level."""
        part = Part(per, "closed", "open", between(START, END))
        rows = level_rows(self.aggregation, [part], self.aggregation.outputs, self.extras, keys=True)
        join, on = self.join, self.join.retrieval.on
        keeps = join.kind == "full" or join.kind == ("left" if join.stream_first else "right")
        matches = condition(on, self.scope, "`on`") if on is not None else exp.true()
        query = (
            exp.select()
            .from_("request AS b")
            .join(rows.subquery("a"), on=matches, join_type="left" if keeps else "inner")
        )
        order = row_order(Groups(self.aggregation.keys), self.extras, "a")
        return shape(query, self.scope, join.retrieval.selection, self._star, order)

    @property
    def outputs(self) -> dict[str, Type | None]:
        """The columns of an answer, with their types."""
        return outputs(self.scope, self.join.retrieval.selection, self._star)

    @property
    def _star(self) -> list[str]:
        return [TIMESTAMP, *(output.name for output in self.aggregation.outputs)]


def _scope(join: JoinQuery, stream: StreamDef, aggregation: Aggregation) -> Scope:
    """Names of both sides; a name that both have must be qualified."""
    names: dict[tuple[str, str], Bound] = {}
    sides = (
        ("b", stream.attributes, (join.stream_alias, stream.name)),
        ("a", attributes(aggregation), (join.aggregation_alias, aggregation.name)),
    )
    for table, columns, qualifiers in sides:
        for name, kind in columns.items():
            bound = Bound(exp.column(column(name).this, table=table), kind)
            for qualifier in qualifiers:
                names[qualifier, name] = bound
            if ("", name) in names:
                del names["", name]
            else:
                names["", name] = bound
    return Scope(names)


def _range(values: Sequence[object], zone: str, node: exp.Expr | None = None) -> tuple[int, int]:
    """The range of a request. Forms that are short for people are none of a stream's: there the document's hold.

    Raises QueryError.
    """
    problem = None
    if any(map(is_said, values)):
        problem = QueryError(
            f"{values[0]!r} depends on the present, and a stream is replayed later", hint="name the time"
        )
    elif len(values) == 1 and isinstance(values[0], str) and (meant := whole_pattern(values[0])) != values[0]:
        problem = QueryError(f"{values[0]!r} is no whole time pattern", hint=f"a request of a stream says {meant!r}")
    if problem is None:
        return bounds(values, zone, node)
    raise problem if node is None else problem.at(*position(node))
