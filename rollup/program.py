"""An app with every name resolved: streams, the stateless queries between them, aggregations, and joins that ask them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from rollup.core.calendar import normal_zone
from rollup.core.dialects import to_sql
from rollup.core.errors import PlanError, RollupError
from rollup.core.nesting import nests
from rollup.core.periods import Calendar
from rollup.lang.sections import Section, sections
from rollup.lang.siddhi.apps import parse_app
from rollup.lang.sql.declarations import in_sql, parse_created
from rollup.plan.aggregation import Aggregation, column, compile_aggregation, defined
from rollup.plan.annotations import check_stream, notices, stream_time, stream_zone
from rollup.plan.app import SIGN, Annotation, App, Item, JoinQuery, Source, StreamDef, StreamQuery, check_columns
from rollup.plan.expressions import FILTER, Scope, bind, condition
from rollup.plan.filled import Filled, names_of
from rollup.plan.functions import Bound
from rollup.plan.lateness import UNSAID, Lateness
from rollup.plan.names import check_distinct
from rollup.plan.types import Type
from rollup.retrieval.requests import Requests

if TYPE_CHECKING:
    from rollup.statements.compiled import Statements

PASSED = ("__arrival", "__received")
"""What every relation of events carries beside the attributes of its stream."""


@dataclass(frozen=True)
class Derivation:
    """A stateless query: the events of `target` as SQL over the relation `source`."""

    source: str
    target: str
    query: exp.Select

    def statement(self, relation: str, copies: Sequence[int] = (0,), scale: int = 1, passed: Sequence[str] = ()) -> str:
        """The SQL of the events that `relation` has of the source; for `copies` and `scale` see `Program.numbered`.

        `passed` are columns of the relation that they have beside those of every relation.
        """
        query = self.query.select(*passed)
        query.set("from_", exp.From(this=exp.to_table(relation, quoted=True)))
        if scale > 1:
            query.set("expressions", [_copied(node, copies, scale) for node in query.expressions])
        return to_sql(query)


def _copied(node: exp.Expr, copies: Sequence[int], scale: int) -> exp.Expr:
    """The arrival of a copy: that of its event, and its own place among the copies that the target gets of it."""
    arrival = exp.column("__arrival")
    if node != arrival:
        return node
    place = exp.paren(exp.Mod(this=arrival.copy(), expression=exp.Literal.number(scale)))
    cases = [exp.If(this=exp.Literal.number(i), true=exp.Literal.number(to - i)) for i, to in enumerate(copies)]
    return exp.alias_(exp.Add(this=arrival, expression=exp.Case(this=place, ifs=cases)), "__arrival")


@dataclass(frozen=True)
class Step:
    """A derivation among those that events of a stream go through: the place of each copy of its source in its target."""

    derivation: Derivation
    copies: tuple[int, ...]


@dataclass(frozen=True)
class Declaration:
    """An app as it is written, the zone that a configuration declares, and what it says of late events.

    All that a program is made from: it travels to tasks and shards, whose processes compile it once. Its text is a
    kilobyte and takes them some 20 ms; a plan is made of trees many times as large.
    """

    text: str
    zone: str | None = None
    lateness: Lateness = UNSAID
    heard: tuple[str, ...] = ()
    """The streams that the statements of the whole app read, where the text is what tasks need of it."""
    changes: tuple[str, ...] = ()
    """The streams whose sources also take rows back."""
    tables: tuple[Filled, ...] = ()
    """The tables of the configuration that statements may read."""
    calendars: tuple[Calendar, ...] = ()
    """The tables of the configuration that may list periods of questions."""

    def program(self) -> Program:
        """The app, compiled; see `compile_app`."""
        return _compiled(self)


@dataclass(frozen=True)
class Program:
    """What an app runs. `derivations` are in such an order that each comes after the one that feeds it.

    `streams` has also what `statements` insert into; they are None in an app that has none. `rollups` declares the
    app without them: what tasks and shards need of it.
    """

    app: App
    rollups: Declaration
    streams: Mapping[str, StreamDef]
    aggregations: Mapping[str, Aggregation]
    derivations: tuple[Derivation, ...]
    statements: Statements | None = None
    sinks: Mapping[str, Annotation] = field(default_factory=dict[str, Annotation])
    """By stream of statements, its `@sink`."""

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
        if self.statements is not None:
            fed |= self.statements.streams.keys()
        return tuple(name for name in self.streams if name not in fed)

    @property
    def notices(self) -> list[str]:
        """What of the app has no effect, each with its place: to be said, since it is not refused."""
        return [said for definition in self.app.aggregations for said in notices(definition)]

    @property
    def times(self) -> Mapping[str, str]:
        """For statements, the attribute that is the time of a stream's events: what `@time` says, or what aggregations
        of it go by; a stream that has none goes by arrival. Raises PlanError for an `@time` that names no attribute."""
        found = dict[str, str]()
        for aggregation in self.aggregations.values():
            if isinstance(aggregation.time, exp.Column):
                found.setdefault(aggregation.stream, aggregation.time.name)
        for stream in self.streams.values():
            if (name := stream_time(stream)) is not None:
                found[stream.name] = name
        return found

    @property
    def zones(self) -> Mapping[str, str]:
        """By stream, the zone that it declares or has from those that feed it; others have the configuration's."""
        return _zones(self.streams, self.derivations)

    @cached_property
    def clocked(self) -> frozenset[str]:
        """The streams whose events must say their time: those that statements read, and those that give these theirs.

        An event that another one causes has the time of its cause, unless its stream has a time of its own.
        """
        found, times = set(self.rollups.heard), self.times
        for derivation in reversed(self.derivations):
            if derivation.target in found and derivation.target not in times:
                found.add(derivation.source)
        return frozenset(found)

    def fed_by(self, stream: str) -> tuple[Derivation, ...]:
        """The derivations that events of a stream go through, in order."""
        reached, found = {stream}, list[Derivation]()
        for derivation in self.derivations:
            if derivation.source in reached:
                reached.add(derivation.target)
                found.append(derivation)
        return tuple(found)

    def scale(self, stream: str) -> int:
        """How many arrival numbers each event of a stream takes: as many as copies of it reach one other stream."""
        return self._numbered(stream)[0]

    def numbered(self, stream: str) -> tuple[Step, ...]:
        """`fed_by` with the arrival of every copy.

        Where two queries feed one stream from one event, that event arrives there twice, in the order of the queries
        (each one's copy goes all its way before the next). So events of `stream` are numbered `scale` apart, and the
        copy with place i in a stream has the number of its event and i.
        """
        return self._numbered(stream)[1]

    def _numbered(self, stream: str) -> tuple[int, tuple[Step, ...]]:
        along = self.fed_by(stream)
        counts, places = dict[str, int](), {id(each): list[int]() for each in along}

        def arrive(at: str) -> int:
            place = counts[at] = counts.get(at, -1) + 1
            for each in along:
                if each.source == at:
                    places[id(each)].append(arrive(each.target))
            return place

        arrive(stream)
        return max(counts.values()) + 1, tuple(Step(each, tuple(places[id(each)])) for each in along)


def _zones(streams: Mapping[str, StreamDef], derivations: Sequence[Derivation]) -> dict[str, str]:
    """What `@zone` says of streams; one that says nothing has the zone of the stream that it is derived from.

    Raises PlanError where it is derived from several of different zones.
    """
    declared = {name: stream_zone(name, stream.annotations) for name, stream in streams.items()}
    found = {name: zone for name, zone in declared.items() if zone is not None}
    for each in derivations:  # in the order in which events go through them
        zone = found.get(each.source)
        if zone is None or declared.get(each.target) is not None:
            continue
        if found.setdefault(each.target, zone) != zone:
            stream = streams[each.target]
            said = f"{each.target} is fed by streams of the zones {found[each.target]} and {zone}"
            raise PlanError(said, hint=f"@zone('…') on {each.target}").at(stream.line, stream.column)
    return found


def _feeding(stream: str, derivations: Sequence[Derivation]) -> set[str]:
    """A stream, and all whose events reach it."""
    found = {stream}
    for derivation in reversed(derivations):
        if derivation.target in found:
            found.add(derivation.source)
    return found


def renumbered(relation: str, scale: int) -> str:
    """SQL of a relation of a source's events with their arrivals `scale` apart."""
    arrival = exp.Mul(this=exp.column("__arrival"), expression=exp.Literal.number(scale))
    star = exp.Star(replace=[exp.alias_(arrival, "__arrival")])
    return to_sql(exp.select(star).from_(exp.to_table(relation, quoted=True)))


def compile_app(text: str, zone: str | None = None) -> Program:
    """The program of an app's text; `zone` is the declared one. Raises SyntaxProblem or PlanError with the position of what is wrong.

    >>> program = compile_app('''
    ... define stream Trades (symbol string, price double, ts long);
    ... define aggregation TradeAgg from Trades select symbol, avg(price) as avgPrice
    ... group by symbol aggregate by ts every sec ... year;''')
    >>> program.aggregations["TradeAgg"].table(program.aggregations["TradeAgg"].root)
    'TradeAgg_SECONDS'
    """
    return Declaration(text, zone).program()


@nests
def _compiled(declaration: Declaration) -> Program:
    parts = sections(declaration.text, names_of(declaration.tables))
    if parts.statements and not parts.rollups.strip():
        raise PlanError("the app defines no stream", line=1, column=1, hint="define stream S (k string, v double);")
    app = parse_created(parts.rollups) if in_sql(parts.rollups) else parse_app(parts.rollups)
    _check_answers(app)
    streams = dict(app.streams)
    for stream in streams.values():
        _check_attributes(stream)
    queries = _ordered(app.queries, streams)
    changes = _changes(declaration.changes, queries)
    for name in changes & streams.keys():
        streams[name] = _signed(streams[name])
    derivations = tuple(_derivation(query, streams, changes) for query in queries)
    declared = [
        declaration.lateness.declared(a, lambda stream: _feeding(stream, derivations)) for a in app.aggregations
    ]
    zones = _zones(streams, derivations)
    calendars = {calendar.name: calendar for calendar in declaration.calendars}
    compiled = (compile_aggregation(a, streams, zones.get(a.source.stream, declaration.zone)) for a in declared)
    aggregations = {each.name: replace(each, calendars=calendars) for each in compiled}
    for name, stream in streams.items():
        feeding = (a for a in aggregations.values() if name in (a.stream, *_feeding(a.stream, derivations)))
        cut = {a.zone for a in feeding if not a.own_zones}
        declared_zone = zones.get(name, declaration.zone)
        if declared_zone is not None or len(cut) == 1:
            streams[name] = replace(stream, zone=normal_zone(declared_zone or cut.pop()))
    statements = _statements(parts.statements, streams, aggregations, declaration.tables) if parts.statements else None
    for name in aggregations:
        if name in streams:
            raise PlanError(f"{name!r} is both a stream and an aggregation", hint="rename one of them")
    for join in app.joins:
        _check_join(join, streams, aggregations)
        if join.source.stream in changes:
            raise PlanError(
                f"{join.source.stream} is a stream of changes, and cannot ask an aggregation",
                line=join.source.line,
                column=join.source.column,
                hint="aggregations read it, and queries that feed them",
            )
    if statements is not None:
        streams = {**streams, **statements.streams}
        _check_fed(app, aggregations, statements)
        _check_answers(app, statements.reads)
        _check_sinks(parts.sinks, statements)
        _check_told(statements, changes, aggregations)
    sinks = {name: given[0] for name, given in parts.sinks.items()}
    heard = declaration.heard if statements is None else tuple(sorted(statements.reads & streams.keys()))
    rollups = replace(declaration, text=parts.rollups, heard=heard, tables=(), calendars=())
    made = Program(app, rollups, streams, aggregations, derivations, statements, sinks)
    _ = made.times  # refuses an @time that names none
    return made


def _statements(
    parts: Sequence[Section],
    streams: Mapping[str, StreamDef],
    aggregations: Mapping[str, Aggregation],
    tables: Sequence[Filled],
) -> Statements:
    """The statements of an app that has some: only then are their languages loaded."""
    from rollup.aggregation.closings import closing_streams
    from rollup.statements.compiled import compile_statements

    closing = [item for aggregation in aggregations.values() for item in closing_streams(aggregation).items()]
    return compile_statements(parts, {**dict(closing), **streams}, tables)


def _check_sinks(sinks: Mapping[str, Sequence[Annotation]], statements: Statements) -> None:
    for name, given in sinks.items():
        if name not in statements.streams:
            check_stream(name, given)
        if len(given) > 1:
            raise given[1].refuse(f"{name} has two sinks", "one @sink a stream")


def _changes(declared: Collection[str], queries: Sequence[StreamQuery]) -> frozenset[str]:
    """The streams of which rows are taken back: those declared, and what is derived from them."""
    found = set(declared)
    for query in queries:  # in the order in which events go through them
        if query.source.stream in found:
            found.add(query.target)
    return frozenset(found)


def _signed(stream: StreamDef) -> StreamDef:
    """A stream whose rows say whether they come or are taken back."""
    return replace(stream, attributes={**stream.attributes, SIGN: Type.INT})


def _check_told(statements: Statements, changes: Collection[str], aggregations: Mapping[str, Aggregation]) -> None:
    """Refuse statements that read or feed a stream of changes, or what an aggregation of one closes."""
    from rollup.aggregation.closings import closing_streams

    told = {name: f"{name}, a stream of changes" for name in changes}
    for aggregation in aggregations.values():
        if aggregation.stream in changes:
            told |= dict.fromkeys(
                closing_streams(aggregation),
                f"what {aggregation.name} closes of {aggregation.stream}, a stream of changes",
            )
    for name in sorted(told.keys() & (statements.reads | statements.streams.keys())):
        raise PlanError(
            f"statements read or feed {told[name]}: windows and patterns take no row back",
            hint="aggregations read it, and queries that feed them",
        )


def _check_fed(app: App, aggregations: Mapping[str, Aggregation], statements: Statements) -> None:
    """Refuse what would be fed by statements and cannot be."""
    from rollup.aggregation.closings import closing_streams

    for definition in app.aggregations:
        made = aggregations[definition.name]
        read = sorted(statements.reads & closing_streams(made).keys())
        if made.stream in statements.streams and read:
            raise PlanError(
                f"statements read {read[0]}, and {made.name} is itself fed by statements, through {made.stream}",
                line=definition.line,
                column=definition.column,
                hint="statements read what aggregations of a source's streams close",
            )
    for join in app.joins:
        if join.source.stream in statements.streams:
            raise PlanError(
                f"{join.source.stream} is fed by statements and cannot ask an aggregation",
                line=join.source.line,
                column=join.source.column,
                hint="ask for the events of a stream that a source feeds",
            )


def _check_attributes(stream: StreamDef) -> None:
    for name in stream.attributes:
        if name.startswith("__"):
            problem = PlanError(f"attribute {name!r} of {stream.name}: names that start with __ are ours")
            raise problem.at(stream.line, stream.column)
    check_distinct(stream.attributes, f"the attributes of {stream.name}", stream.line, stream.column)


def _ordered(queries: tuple[StreamQuery, ...], streams: Mapping[str, StreamDef]) -> list[StreamQuery]:
    """Queries in the order in which events reach them; a circle is refused."""
    waiting, ready, done = list(queries), list[StreamQuery](), set(streams) - {query.target for query in queries}
    while waiting:
        runnable = [q for q in waiting if q.source.stream in done or q.source.stream not in {w.target for w in waiting}]
        if not runnable:
            names = ", ".join(sorted(query.target for query in waiting))
            first = waiting[0].source
            cure = "one of the queries inserts into another stream"
            raise PlanError(f"the streams {names} feed each other in a circle", hint=cure).at(first.line, first.column)
        ready += runnable
        waiting = [query for query in waiting if query not in runnable]
        done |= {query.target for query in runnable}
    return ready


def _derivation(query: StreamQuery, streams: dict[str, StreamDef], changes: Collection[str] = ()) -> Derivation:
    source = defined(query.source, streams)
    selection = query.selection
    if selection.group_by or selection.having or selection.order_by or selection.limit or selection.offset:
        raise PlanError(
            "a query between streams is stateless: select … insert into …",
            line=query.source.line,
            column=query.source.column,
        )
    scope = Scope.of(source.attributes, source.name)
    items = selection.items or tuple(Item(name, column(name)) for name in source.own)
    bound = [bind(item.expression, scope) for item in items]
    check_columns(items)
    given = {item.name: found.type for item, found in zip(items, bound, strict=True)}
    attributes = {name: kind or Type.STRING for name, kind in given.items()}
    made = StreamDef(query.target, attributes, line=query.source.line, column=query.source.column)
    _check_attributes(made)
    if query.target in changes:
        made, given = _signed(made), {**given, SIGN: Type.INT}
        sign = column(SIGN) if SIGN in source.attributes else exp.Literal.number(1)
        bound = [*bound, Bound(sign, Type.INT)]
    target = streams.setdefault(query.target, made)
    _fits(target, given, query.source)
    columns = [
        exp.alias_(exp.cast(found.sql, kind.sql), name, quoted=True)
        for found, (name, kind) in zip(bound, target.attributes.items(), strict=True)
    ]
    select = exp.select(*columns, *PASSED).from_(exp.to_table(query.source.stream, quoted=True))
    if query.source.filter is not None:
        select = select.where(condition(query.source.filter, scope, FILTER))
    return Derivation(query.source.stream, target.name, select)


def _fits(target: StreamDef, given: Mapping[str, Type | None], source: Source) -> None:
    """Refuse what is not the target's attributes, in their order; a null, whose type is None, fits everywhere."""
    fits = list(given) == list(target.attributes) and all(
        kind in (None, wanted) for kind, wanted in zip(given.values(), target.attributes.values(), strict=True)
    )
    if not fits:
        wanted = ", ".join(f"{name} {kind}" for name, kind in target.own.items())
        selected = ", ".join(f"{name} {kind or 'null'}" for name, kind in given.items() if name != SIGN)
        raise PlanError(
            f"the query selects ({selected}), but {target.name} is defined as ({wanted})",
            line=source.line,
            column=source.column,
            hint="rename columns with `as`, change their type with convert(x, 'double')",
        )


def _check_answers(app: App, read: Collection[str] = ()) -> None:
    """Refuse readers of what joins answer, queries and the statements that `read` some: nothing would reach them, since
    an answer is of the newest commit."""
    asking = [definition.source for definition in (*app.queries, *app.aggregations, *app.joins)]
    for join in app.joins:
        found = [source for source in asking if source.stream == join.target] or [join.source] * (join.target in read)
        if found:
            asked = next(each for each in app.aggregations if each.name == join.retrieval.aggregation)
            raise PlanError(
                f"{join.target} has answers of {asked.name}, which go to sinks and listeners, and no query reads them",
                line=found[0].line,
                column=found[0].column,
                hint="select what is wanted in the join, or read the rows that the aggregation closes: "
                f"from {asked.name}_{asked.levels[0].table_suffix}",
            )


def _check_join(join: JoinQuery, streams: Mapping[str, StreamDef], aggregations: Mapping[str, Aggregation]) -> None:
    stream = defined(join.source, streams)
    try:
        requests = Requests.of(join, stream, aggregations[join.retrieval.aggregation])
    except RollupError as problem:
        raise problem.at(join.source.line, join.source.column) from None
    if join.target in streams:
        _fits(streams[join.target], requests.outputs, join.source)
