"""create context → the engine's contexts, and the properties that statements see."""

from __future__ import annotations

from dataclasses import replace

from rollup.core.descriptions import descendants
from rollup.engine.compiling import compiled
from rollup.engine.expressions import Ask, Call, Const, Expr, Field, Now, RowOf, Variable, inputs_read, inside, walk
from rollup.engine.rows.contexts.conditions import (
    AfterCondition,
    Condition,
    EventCondition,
    NowCondition,
    PatternCondition,
    ScheduleCondition,
)
from rollup.engine.rows.contexts.levels import Categories, Context, Hashed, Keyed, KeyedStream, Level, Lived
from rollup.engine.rows.patterns.algebra import EveryNode, FilterNode, IntervalNode, Pattern
from rollup.engine.rows.plans import Filter
from rollup.engine.types import INT, LONG, STRING, DataType, Kind, RowType
from rollup.lang.epl.catalog import Catalog, ContextInfo, problem, unknown
from rollup.lang.epl.lowering.patterns import lower_pattern
from rollup.lang.epl.lowering.streams import filter_of, source_filter
from rollup.lang.epl.lowering.values.expressions import key as keyed
from rollup.lang.epl.lowering.values.expressions import lower
from rollup.lang.epl.lowering.values.filtering import filter_condition
from rollup.lang.epl.lowering.values.times import crontab, span_expr
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Registry, Scope, Source
from rollup.lang.epl.semantics import HASHES
from rollup.lang.epl.tree import contexts as cx
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.streams import FilterSource, Stream, Trigger


def lower_context(body: cx.CreateContext, catalog: Catalog) -> tuple[Context, ContextInfo]:
    """A context with its levels."""
    if body.name in catalog.contexts:
        raise problem(f"context `{body.name}` is declared already", body, "undeploy it first")
    info = ContextInfo(body.name, {"name": STRING, "id": INT}, {})
    levels: list[tuple[str, Level]] = []
    for place, (name, form) in enumerate(body.levels, start=1):
        if any(name == other for other, _ in levels):
            raise problem(f"two levels are called `{name}`", body, "each a name of its own")
        lowering = _Level(name, catalog, info)
        levels.append((name, lowering.lower(form)))
        lowering.declare(len(body.levels) == 1, place == len(body.levels))
    if len(levels) > 1:
        info.keys.clear()  # only the keys of a context without levels make groups of what selects them
    return Context(body.name, tuple(levels)), info


def seen_as(
    context: Context | None, model: str | None, kinds: RowType, catalog: Catalog
) -> tuple[str, tuple[int | None, ...]] | None:
    """As whose event the partitions of a context see a row of a named window: of `model`, else of a stream they read.

    With where the columns of that stream stand in the row; None where a context reads no streams.
    """
    streams = [] if context is None else [stream for _, level in context.levels for stream in _streams(level)]
    if not streams:
        return None
    stream = model if model in streams else streams[0]
    return stream, tuple(kinds.index.get(column) for column in catalog.types[stream].fields)


def check_context(statement: sm.Statement, context: Context, catalog: Catalog) -> None:
    """Raise PlanError where a statement hears no stream by whose events the partitions of its context are told apart.

    Named windows and tables that it follows are no streams; a pattern over a named window hears its inserts, which in a
    window of the context belong to a partition by their keys.
    """
    nodes, body = list(descendants(statement.body)), statement.body
    followed = {id(each.source) for each in nodes if isinstance(each, (Stream, Trigger))}
    heard = {
        each.type
        for each in nodes
        if isinstance(each, FilterSource) and not (each.type in catalog.stores and id(each) in followed)
    }
    if isinstance(body, (sm.CreateWindow, sm.UpdateStream)) and body.type is not None:
        heard.add(body.type)
    own = any(each in catalog.stores and catalog.stores[each].context == context.name for each in heard)
    for name, level in context.levels:
        streams = _streams(level)
        if own and isinstance(level, Keyed):
            continue
        if heard and streams and heard.isdisjoint(streams):
            what = f"context {name} has partitions of {' and '.join(streams)}, and this reads {' and '.join(sorted(heard))}"
            raise problem(what, statement, f"name {min(heard)} in the context too, or leave `context {name}` out")
        if isinstance(level, (Keyed, Hashed)) and isinstance(body, sm.CreateWindow) and body.columns:
            what = f"a row of columns of its own belongs to no partition of context {name}"
            raise problem(what, statement, f"create window … as {streams[0]}")


def _streams(level: Level) -> list[str]:
    """The streams whose events belong to some partitions of a level and not to others."""
    match level:
        case Keyed():
            return [each.filter.stream for each in level.streams]
        case Hashed():
            return [filter.stream for filter, _ in level.streams]
        case Categories():
            return [level.filter.stream]
        case _:
            return []


class _Level:
    """One level; the properties of the levels above are known in it."""

    def __init__(self, name: str, catalog: Catalog, info: ContextInfo) -> None:
        self.name, self.catalog, self.info = name, catalog, info
        self.own: dict[str, DataType] = {"name": STRING, "id": INT}
        self.registry = Registry()

    @property
    def scope(self) -> Scope:
        """What conditions see: the properties of this level and those above; tags also by their bare names."""
        known = {**self.info.properties, **self.own}
        visible = ContextInfo(self.info.name, known, self.info.keys)
        scope = Scope(self.catalog, (), self.registry, visible)
        rows = {name: kind for name, kind in self.own.items() if kind.row is not None}
        from rollup.engine.rows.plans import ContextValue

        names: dict[str, Expr] = {name: self.registry.ask(ContextValue(name), kind) for name, kind in rows.items()}
        return replace(scope, names=names, no_aggregates="in a context")

    def declare(self, alone: bool, last: bool) -> None:
        """The properties are seen by statements under the level's name, and those of a level that is `alone` without it.

        Of several the `last` one has an id, since its partitions are those of the context.
        """
        for name, kind in self.own.items():
            if alone:
                self.info.properties.setdefault(name, kind)
            if alone or last or name != "id":
                self.info.properties[f"{self.name}.{name}"] = kind

    def lower(self, form: cx.ContextForm) -> Level:
        match form:
            case cx.Keyed():
                return self._keyed(form)
            case cx.Hashed():
                return self._hashed(form)
            case cx.Categories():
                return self._categories(form)
            case cx.StartEnd():
                return self._lived(form.start, form.end, False, ())
            case cx.Overlapping():
                return self._lived(form.start, form.end, True, form.distinct)

    # keys

    def _keyed(self, form: cx.Keyed) -> Level:
        streams: list[KeyedStream] = []
        width = len(form.streams[0].keys)
        for stream in form.streams:
            kinds, tests = source_filter(stream.source, self.scope)
            if any(stream.source.type == each.filter.stream for each in streams):
                raise problem(f"`{stream.source.type}` stands twice", stream, "one filter and one list of keys each")
            if len(stream.keys) != width:
                raise problem(f"{len(stream.keys)} key(s) of {stream.source.type}, {width} before", stream)
            places: list[int] = []
            for number, key in enumerate(stream.keys, start=1):
                found = keyed(key, replace(self.scope, sources=(Source(stream.source.type, kinds),)))
                if found.type.kind is Kind.LIST:
                    raise problem(
                        f"`{render(key)}` is {found.type}, which is no key of a partition", key, "one of its values"
                    )
                if not isinstance(found, Field):
                    raise problem(f"`{render(key)}` is no property", key, "partition by a property of the event")
                places.append(found.index)
                known = self.own.setdefault(f"key{number}", found.type)
                if known.kind is not found.type.kind:
                    raise problem(f"`{render(key)}` is {found.type}, the key of the stream before it {known}", key)
                name = list(kinds.fields)[found.index]
                nested = f"{self.name}.key{number}"
                self.info.keys.setdefault(stream.source.type, {})[name] = nested
            streams.append(KeyedStream(filter_of(stream.source.type, tests, self.registry), tuple(places)))
            if stream.alias:
                self.own[stream.alias] = kinds.data_type
        initiated = [self._event(each) for each in form.initiated]
        end = self._condition(form.terminated) if form.terminated is not None else None
        pairs = tuple((each.filter, each.tag) for each in initiated)
        return Keyed(tuple(streams), pairs, end, tuple(self.registry.lookups))

    def _hashed(self, form: cx.Hashed) -> Level:
        streams = []
        for stream in form.streams:
            call = stream.function
            if not isinstance(call, ex.Call) or call.name.lower() not in HASHES:
                raise unknown("hash function", render(call), HASHES, stream)
            kinds, tests = source_filter(stream.source, self.scope)
            value = lower(call, replace(self.scope, sources=(Source(stream.source.type, kinds),)))
            streams.append((filter_of(stream.source.type, tests, self.registry), value))
        if form.granularity < 1:
            raise problem("the granularity must be 1 or more", form)
        return Hashed(tuple(streams), form.granularity, form.preallocate, lookups=tuple(self.registry.lookups))

    def _categories(self, form: cx.Categories) -> Level:
        kinds, tests = source_filter(form.source, self.scope)
        scope = replace(self.scope, sources=(Source(form.source.type, kinds),))
        self.own["label"] = STRING
        found = tuple((label, filter_condition(test, scope)) for test, label in form.categories)
        filter = filter_of(form.source.type, tests, self.registry)
        return Categories(filter, found, lookups=tuple(self.registry.lookups))

    # beginnings and ends

    def _lived(
        self, start: cx.Start, end: cx.Condition | None, overlap: bool, distinct: tuple[ex.Expression, ...]
    ) -> Level:
        if start.now and overlap and start.condition is None:
            raise problem("`initiated @now` needs what begins the next", start, "@now and pattern […], or start @now")
        if start.now and isinstance(start.condition, cx.FilterCondition):
            raise problem(
                "`@now and` goes with a pattern, a time or a crontab, not with a stream", start, "initiated by S"
            )
        conditions: list[Condition] = [NowCondition()] if start.now else []
        if start.condition is not None:
            condition = self._condition(start.condition)
            conditions.append(_of_each_event(condition) if overlap else condition)
        self.own |= {"startTime": LONG, "endTime": LONG}
        keys = tuple(self._distinct(each, start) for each in distinct)
        found = self._condition(end) if end is not None else None
        if not overlap and found is not None and all(any(map(self._at_once, each)) for each in (conditions, [found])):
            raise problem("a partition that lasts no time would begin again for ever", start, "end after 1 sec")
        return Lived(tuple(conditions), found, overlap, keys, tuple(self.registry.lookups))

    def _at_once(self, condition: Condition) -> bool:
        """Whether a condition holds as soon as it is waited for, without an event, where that is known now."""
        match condition:
            case NowCondition():
                return True
            case AfterCondition(span) | PatternCondition(Pattern(IntervalNode(span) | EveryNode(IntervalNode(span)))):
                if not all(isinstance(each, (Const, Call)) for each in walk(span)):
                    return False
                lasts = compiled(span)((), (), self.catalog.beginning())
                return lasts is not None and lasts <= 0
            case _:
                return False

    def _distinct(self, node: ex.Expression, start: cx.Start) -> Expr:
        """A property of the event that begins, with or without its tag."""
        scope = self.scope
        if (
            isinstance(node, ex.Reference)
            and node.name not in scope.names
            and isinstance(start.condition, cx.FilterCondition)
        ):
            alias = start.condition.alias
            if alias is None:
                raise problem("distinct needs a name for the event", start, "initiated by distinct(id) Login as login")
            node = ex.Member(ex.Reference(alias, at=node.at), node.name, at=node.at)
        return lower(node, scope)

    def _event(self, node: cx.FilterCondition) -> EventCondition:
        kinds, tests = source_filter(node.source, self.scope)
        if node.alias:
            self.own[node.alias] = kinds.data_type
        return EventCondition(filter_of(node.source.type, tests, self.registry), node.alias)

    def _condition(self, node: cx.Condition) -> Condition:
        match node:
            case cx.FilterCondition():
                return self._event(node)
            case cx.PatternCondition():
                pattern, tags = lower_pattern(node.source, self.scope)
                self.own |= {node.alias: RowType(node.alias, dict(tags)).data_type} if node.alias else dict(tags)
                return PatternCondition(pattern, tuple(name for name, _ in tags), node.alias, node.inclusive)
            case cx.AfterCondition():
                span = span_expr(node.period, self.scope, "after")
                return AfterCondition(span)
            case cx.CrontabCondition():
                return ScheduleCondition(tuple(crontab(each, self.scope) for each in node.crontabs))


def _of_each_event(condition: Condition) -> Condition:
    """What begins a partition with every event that a pattern finds alone, and names, begins it with the event."""
    match condition:
        case PatternCondition(pattern=Pattern(root=EveryNode(FilterNode(stream, 0, equals, test, 0), None)), name=None):
            read = [expr for expr in (test, *(value for _, value in equals)) if expr is not None]
            asks = any(isinstance(each, Ask | Variable | Now) for expr in read for each in walk(expr))
            if not asks and 0 not in inputs_read(read):  # 0 is the tag, 1 the event that it may come to name
                return EventCondition(Filter(stream, equals, test and _of_the_event(test)), condition.tags[0])
        case _:
            pass
    return condition


def _of_the_event(test: Expr) -> Expr:
    """The test of a pattern with one tag, as one of the event alone."""
    return replace(test, input=0) if isinstance(test, Field | RowOf) else inside(test, _of_the_event)
