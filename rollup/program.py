"""An app with every name resolved: streams, the stateless queries between them, aggregations, and joins that ask them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from rollup.aggregation.requests import Requests
from rollup.calendar import GMT
from rollup.errors import PlanError
from rollup.lang.siddhi import parse_app
from rollup.plan.aggregation import Aggregation, column, compile_aggregation, defined, safe
from rollup.plan.app import App, Item, JoinQuery, Source, StreamDef, StreamQuery
from rollup.plan.expressions import Scope, bind, condition
from rollup.plan.types import Type

PASSED = ("__arrival", "__received")
"""What every relation of events carries beside the attributes of its stream."""


@dataclass(frozen=True)
class Derivation:
    """A stateless query: the events of `target` as SQL over the relation `source`."""

    source: str
    target: str
    query: exp.Select


@dataclass(frozen=True)
class Program:
    """What an app runs. `order` lists derivations so that each comes after the one that feeds it."""

    app: App
    streams: Mapping[str, StreamDef]
    aggregations: Mapping[str, Aggregation]
    derivations: tuple[Derivation, ...]

    def __repr__(self) -> str:
        return f"<Program: streams {', '.join(self.streams)}; aggregations {', '.join(self.aggregations) or 'none'}>"

    @property
    def joins(self) -> tuple[JoinQuery, ...]:
        """The queries that ask aggregations for every event of a stream."""
        return self.app.joins

    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams that only a source can feed."""
        fed = {derivation.target for derivation in self.derivations} | {join.target for join in self.joins}
        return tuple(name for name in self.streams if name not in fed)

    def fed_by(self, stream: str) -> tuple[Derivation, ...]:
        """The derivations that events of a stream go through, in order."""
        reached, found = {stream}, list[Derivation]()
        for derivation in self.derivations:
            if derivation.source in reached:
                reached.add(derivation.target)
                found.append(derivation)
        return tuple(found)


def compile_app(text: str, zone: str = GMT) -> Program:
    """The program of an app's text; `zone` is that of times that come without one. Raises SyntaxProblem or PlanError with the position of what is wrong.

    >>> program = compile_app('''
    ... define stream Trades (symbol string, price double, ts long);
    ... define aggregation TradeAgg from Trades select symbol, avg(price) as avgPrice
    ... group by symbol aggregate by ts every sec ... year;''')
    >>> program.aggregations["TradeAgg"].table(program.aggregations["TradeAgg"].root)
    'TradeAgg_SECONDS'
    """
    app = parse_app(text)
    streams = dict(app.streams)
    for stream in streams.values():
        for name in stream.attributes:
            if name.startswith("__"):
                raise PlanError(f"attribute {name!r} of {stream.name}: names that start with __ are ours")
    derivations = tuple(_derivation(query, streams) for query in _ordered(app.queries, streams))
    aggregations = {a.name: compile_aggregation(a, streams, zone) for a in app.aggregations}
    for name in aggregations:
        if name in streams:
            raise PlanError(f"{name!r} is both a stream and an aggregation")
    for join in app.joins:
        _check_join(join, streams, aggregations)
    return Program(app, streams, aggregations, derivations)


def _ordered(queries: tuple[StreamQuery, ...], streams: Mapping[str, StreamDef]) -> list[StreamQuery]:
    """Queries in the order in which events reach them; a circle is refused."""
    waiting, ready, done = list(queries), list[StreamQuery](), set(streams) - {query.target for query in queries}
    while waiting:
        runnable = [q for q in waiting if q.source.stream in done or q.source.stream not in {w.target for w in waiting}]
        if not runnable:
            names = ", ".join(sorted(query.target for query in waiting))
            raise PlanError(f"the streams {names} feed each other in a circle")
        ready += runnable
        waiting = [query for query in waiting if query not in runnable]
        done |= {query.target for query in runnable}
    return ready


def _derivation(query: StreamQuery, streams: dict[str, StreamDef]) -> Derivation:
    source = defined(query.source, streams)
    selection = query.selection
    if selection.group_by or selection.having or selection.order_by or selection.limit or selection.offset:
        raise PlanError(
            "a query between streams is stateless: select … insert into …",
            line=query.source.line,
            column=query.source.column,
        )
    scope = Scope.of(source.attributes, source.name)
    items = selection.items or tuple(Item(name, column(name)) for name in source.attributes)
    bound = [bind(item.expression, scope) for item in items]
    given = {item.name: found.type for item, found in zip(items, bound, strict=True)}
    made = StreamDef(query.target, {name: kind or Type.STRING for name, kind in given.items()})
    target = streams.setdefault(query.target, made)
    _fits(target, given, query.source)
    columns = [
        exp.alias_(exp.cast(safe(found.sql), kind.sql), name, quoted=True)
        for found, (name, kind) in zip(bound, target.attributes.items(), strict=True)
    ]
    select = exp.select(*columns, *PASSED).from_(exp.to_table(query.source.stream, quoted=True))
    if query.source.filter is not None:
        select = select.where(condition(query.source.filter, scope, "the filter of a source"))
    return Derivation(query.source.stream, target.name, select)


def _fits(target: StreamDef, given: Mapping[str, Type | None], source: Source) -> None:
    """Refuse what is not the target's attributes, in their order; a null, whose type is None, fits everywhere."""
    fits = list(given) == list(target.attributes) and all(
        kind in (None, wanted) for kind, wanted in zip(given.values(), target.attributes.values(), strict=True)
    )
    if not fits:
        wanted = ", ".join(f"{name} {kind}" for name, kind in target.attributes.items())
        selected = ", ".join(f"{name} {kind or 'null'}" for name, kind in given.items())
        raise PlanError(
            f"the query selects ({selected}), but {target.name} is defined as ({wanted})",
            line=source.line,
            column=source.column,
            hint="rename columns with `as`, change their type with convert(x, 'double')",
        )


def _check_join(join: JoinQuery, streams: Mapping[str, StreamDef], aggregations: Mapping[str, Aggregation]) -> None:
    requests = Requests.of(join, defined(join.source, streams), aggregations[join.retrieval.aggregation])
    if join.target in streams:
        _fits(streams[join.target], requests.outputs, join.source)
