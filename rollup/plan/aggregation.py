"""An aggregation with every name resolved: what its rows hold, how they are made, merged and read.

`compile_aggregation` is the only way to build one; it refuses everything that cannot run, with its position.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from rollup.core.calendar import GMT, Duration, normal_zone
from rollup.core.dialects import Checked, Compensated, InOrder, LastBy, Mean, Milliseconds
from rollup.core.errors import PlanError
from rollup.core.periods import Calendar
from rollup.engine.aggregates.partials import (
    COMOMENT,
    COUNT,
    HELPER,
    PAIR,
    Find,
    Moment,
    Partial,
    Shape,
    own,
    second,
    weighted,
)
from rollup.plan.aggregates import (
    AGGREGATES,
    DOUBLE,
    EXACT,
    LONG,
    WIDE,
    Gives,
    Kind,
    Summary,
    aggregate,
    arguments_of,
    check_constant,
    column_of,
    guarded,
    kind_of,
    narrowed,
)
from rollup.plan.app import SIGN, AggregationDef, Annotation, Item, Source, StreamDef, check_columns, position
from rollup.plan.composed import COMPOSED, composed
from rollup.plan.expressions import FILTER, Scope, bind, condition
from rollup.plan.functions import Bound
from rollup.plan.names import check_distinct, key_names, suffixes
from rollup.plan.options import Clock, Options, Policy
from rollup.plan.retention import retention
from rollup.plan.types import Type

TIMESTAMP, ZONE, EVENTS = "AGG_TIMESTAMP", "AGG_TIMEZONE", "AGG_EVENTS"
TIME = "AGG_TIME"
"""AGG_TIMESTAMP once more, as a timestamptz, in all that speaks PostgreSQL's SQL: what charts want on their axis."""
KIND, COMMIT = "AGG_KIND", "AGG_COMMIT"
"""Columns of the ledger of late events: what was done with them, and in which commit."""
CAME, BACK = "AGG_COUNT", "AGG_BACK"
"""Of a stream of changes: how many rows came, and how many of them were taken back."""
SHARED = tuple(f"AGG_{which}_{what}" for which in ("FIRST", "LAST") for what in ("EVENT_TIMESTAMP", "ARRIVAL"))
"""The columns that first, last and plain values are chosen by; all arguments share them."""
ARRIVED = Moment(exp.column("__ts"), exp.column("__arrival"))
"""When an event of a batch came."""
_RESERVED = re.compile(r"AGG_|__", re.IGNORECASE)


def column(name: str) -> exp.Column:
    """A quoted column, so that every dialect keeps the case of the name."""
    return exp.column(exp.to_identifier(name, quoted=True))


@dataclass(frozen=True)
class Key:
    """A group key: stored under its name, computed from an event by `expression`."""

    name: str
    type: Type
    expression: exp.Expr

    @property
    def kind(self) -> Kind:
        return Kind.of(self.type)


@dataclass(frozen=True)
class Value:
    """A partial column of a row: its SQL over events (`prepare`) and over partial rows (`merge`)."""

    name: str
    kind: Kind
    prepare: exp.Expr
    merge: exp.Expr
    helpers: tuple[tuple[str, exp.Expr, exp.Expr], ...] = ()
    """The weighted means of a group that `merge` needs: name, numerator and denominator."""


@dataclass(frozen=True)
class Output:
    """A column of an answer: its value over merged partial columns."""

    name: str
    type: Type
    final: exp.Expr


@dataclass(frozen=True, eq=False)
class Aggregation:
    """Everything that is decided once about an aggregation, so that nothing is decided per batch or per query.

    Two aggregations are equal only when they are the same object, so that what is derived from one can be cached.
    """

    name: str
    stream: str
    filter: exp.Expr | None
    clock: Clock
    time: exp.Expr | None
    keys: tuple[Key, ...]
    values: tuple[Value, ...]
    outputs: tuple[Output, ...]
    levels: tuple[Duration, ...]
    buffer: int
    policy: Policy
    store: Mapping[str, str]
    purge: Annotation | None = None
    zone: str = GMT
    own_zones: bool = False
    """Whether each row is cut in the zone of its own text: where no zone is declared."""
    visible: exp.Expr | None = None
    """A condition over group keys, of the rows that whoever asks may see; None where that is all of them."""
    calendars: Mapping[str, Calendar] = field(default_factory=dict[str, "Calendar"], repr=False)
    """The tables of periods that a question may name, `per 'fiscal'`."""

    @property
    def row_zone(self) -> exp.Expr:
        """The zone of a row in SQL: a literal when all rows have the same one."""
        return column(ZONE) if self.own_zones else exp.Literal.string(self.zone)

    @property
    def root(self) -> Duration:
        """The finest level: the one that events enter."""
        return self.levels[0]

    def table(self, level: Duration) -> str:
        """Name of a level's table, as the page has it: `TradeAggregation_SECONDS`."""
        return f"{self.name}_{level.table_suffix}"

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """The columns that make a row: bucket start, zone and group keys."""
        return (TIMESTAMP, ZONE, *(key.name for key in self.keys))

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """Every column of a level's row in the order of its table, with what it is made of."""
        return {
            TIMESTAMP: LONG,
            ZONE: Kind.of(Type.STRING),
            **{key.name: key.kind for key in self.keys},
            **{value.name: value.kind for value in self.values},
        }

    @cached_property
    def exact(self) -> Mapping[str, str]:
        """The sums of whole numbers, each with the column that says it left 64 bits."""
        return {value.name: overflow_of(value.name) for value in self.values if value.kind == EXACT}

    @cached_property
    def state_schema(self) -> pa.Schema:
        """Arrow schema of open rows."""
        return pa.schema([(name, kind.arrow) for name, kind in self.kinds.items()])

    @cached_property
    def table_schema(self) -> pa.Schema:
        """Arrow schema of closed rows."""
        return pa.schema([(name, kind.table) for name, kind in self.kinds.items()])

    @property
    def left(self) -> exp.Expr | None:
        """Of an aggregation of changes, whether a merged row has a row of the stream left; None where none is taken back."""
        return exp.NEQ(this=column(CAME), expression=column(BACK)) if BACK in self.kinds else None

    @property
    def seen(self) -> list[exp.Expr]:
        """The conditions of rows that whoever asks may see."""
        return [] if self.visible is None else [self.visible.copy()]

    @property
    def sketches(self) -> bool:
        """Whether a column holds a sketch, which only Python and DuckDB can merge."""
        return any(pa.types.is_binary(value.kind.arrow) for value in self.values)


def defined(source: Source, streams: Mapping[str, StreamDef]) -> StreamDef:
    """The stream that a query reads. Raises PlanError where it is named when there is none of that name."""
    if source.stream not in streams:
        raise PlanError(
            f"stream {source.stream!r} is not defined",
            line=source.line,
            column=source.column,
            hint=f"streams are {', '.join(streams) or 'none'}",
        )
    return streams[source.stream]


def compile_aggregation(
    definition: AggregationDef, streams: Mapping[str, StreamDef], zone: str | None = None
) -> Aggregation:
    """The aggregation that a definition describes, over the streams of its app; `zone` is declared for it elsewhere.

    Raises PlanError with the position of what is wrong.
    """
    stream = defined(definition.source, streams)
    scope = Scope.of(stream.attributes, stream.name)
    options = Options.read(definition)
    clock, time = _clock(definition, scope)
    options.check(definition, clock)
    if SIGN in stream.attributes:
        _check_changes(definition, clock, options.policy)
    retention(options.purge, definition.levels)
    where = definition.source.filter
    items = _items(definition, stream)
    builder = _Builder(definition, scope, items)
    outputs = builder.outputs(items)
    declared = options.zone or zone
    made = Aggregation(
        name=definition.name,
        stream=stream.name,
        filter=None if where is None else condition(where, scope, FILTER),
        clock=clock,
        time=time,
        keys=builder.keys,
        values=builder.values(),
        outputs=outputs,
        levels=definition.levels,
        buffer=options.buffer,
        policy=options.policy,
        store=options.store,
        purge=options.purge,
        zone=normal_zone(declared or GMT),
        own_zones=clock is Clock.STRING and declared is None,
    )
    check_distinct(made.kinds, f"the columns that {definition.name} stores", definition.line, definition.column)
    return made


def _check_changes(definition: AggregationDef, clock: Clock, policy: Policy) -> None:
    """Refuse what would not take a row back where it has been counted."""
    problem = None
    if clock is Clock.ARRIVAL:
        problem = "by the time of arrival", "`aggregate by` a time that rows have"
    elif policy is not Policy.CORRECT:
        problem = (
            f"with the policy {policy} for late events",
            "@OutOfOrder('correct'), or `policy = \"correct\"` in [late]",
        )
    if problem is not None:
        raise PlanError(
            f"{definition.source.stream} is a stream of changes, and {definition.name} aggregates it {problem[0]}: "
            "a row would be taken back from another bucket than its own",
            line=definition.line,
            column=definition.column,
            hint=problem[1],
        )


def _items(definition: AggregationDef, stream: StreamDef) -> Sequence[Item]:
    chosen = definition.selection.items
    items = chosen if chosen is not None else [Item(name, column(name)) for name in stream.own]
    check_columns(items)
    items = [Item(item.name, composed(item.expression)) for item in items]
    for item in items:
        line, col = position(item.expression)
        if _RESERVED.match(item.name):
            raise PlanError(
                f"the name {item.name!r} is ours", line=line, column=col, hint="names must not start with AGG_ or __"
            )
    names = [item.name for item in items]
    check_distinct(names, f"the columns of {definition.name}", definition.line, definition.column)
    return items


def _clock(definition: AggregationDef, scope: Scope) -> tuple[Clock, exp.Expr | None]:
    if definition.by is None:
        return Clock.ARRIVAL, None
    bound = bind(definition.by, scope)
    if bound.type is Type.LONG:
        return Clock.LONG, bound.sql
    if bound.type is Type.TIMESTAMP:
        return Clock.LONG, Milliseconds(this=bound.sql)
    if bound.type is Type.STRING:
        return Clock.STRING, bound.sql
    if bound.type is Type.DATE:
        return Clock.STRING, exp.cast(bound.sql, Type.STRING.sql)
    line, col = position(definition.by)
    raise PlanError(
        f"`aggregate by` takes a timestamp, date, long or string, not {bound.type}",
        line=line,
        column=col,
        hint="long has milliseconds since 1970, string an ISO 8601 text; convert(x, 'long')",
    )


class _Builder:
    """Collects the columns that a select list needs; aggregates that share a partial share its column."""

    def __init__(self, definition: AggregationDef, scope: Scope, items: Sequence[Item]) -> None:
        self._changes = ("", SIGN) in scope.columns
        self._stream = definition.source.stream
        self._scope = Scope(scope.columns, self._aggregate)
        self._plain_scope = Scope(scope.columns, self._no_aggregate)
        attributes = [name for qualifier, name in scope.columns if not qualifier]
        names = key_names(definition.selection.group_by, attributes)
        pairs = zip(definition.selection.group_by, names, strict=True)
        self.keys = tuple(self._key(node, name) for node, name in pairs)
        self._suffixes = suffixes([item.expression for item in items], arguments_of)
        self._plain: dict[str, Value] = {}
        self._partials: dict[str, Value] = {}
        self._order: set[str] = set()

    def outputs(self, items: Sequence[Item]) -> tuple[Output, ...]:
        return tuple(self._output(item) for item in items)

    def values(self) -> tuple[Value, ...]:
        """Plain values, the columns that order them, base columns, the count of events, and which sums are lost."""
        if self._changes:
            self._partials |= {CAME: _count_all(CAME, _only(1)), BACK: _count_all(BACK, _only(-1))}
        overflows = [_overflow(value.name) for value in self._partials.values() if value.kind == EXACT]
        return (*self._plain.values(), *self._ordering(), *self._partials.values(), _count_all(EVENTS), *overflows)

    def _key(self, node: exp.Expr, name: str) -> Key:
        bound = bind(node, self._plain_scope)
        if bound.type is None:
            raise PlanError("a group key that is null has no type").at(*position(node))
        if _RESERVED.match(name):
            hint = "names must not start with AGG_ or __"
            raise PlanError(f"the name {name!r} of a group key is ours", hint=hint).at(*position(node))
        return Key(name, bound.type, bound.sql)

    def _output(self, item: Item) -> Output:
        key = next(
            (k for k in self.keys if isinstance(item.expression, exp.Column) and k.name == item.expression.name), None
        )
        if key is not None:
            return Output(item.name, key.type, column(key.name))
        if any(aggregate(call.name) for call in item.expression.find_all(exp.Anonymous)):
            bound = bind(item.expression, Scope(_keys_only(self.keys), self._aggregate))
            return Output(item.name, bound.type or Type.DOUBLE, bound.sql)
        return self._plain_output(item)

    def _plain_output(self, item: Item) -> Output:
        """A plain value is that of the greatest (event time, arrival) of the bucket."""
        if item.name in {key.name for key in self.keys}:
            raise PlanError(f"the name {item.name!r} is that of a group key", hint="rename the column with `as`").at(
                *position(item.expression)
            )
        if self._changes:
            raise self._lasting(f"{item.name} is the value of the latest event, which may go").at(
                *position(item.expression)
            )
        bound = bind(item.expression, self._plain_scope)
        kind = bound.type or Type.STRING
        prepared = _event(exp.cast(bound.sql, kind.sql))
        self._plain[item.name] = Value(item.name, Kind.of(kind), prepared, _last(item.name))
        self._order.add("last")
        return Output(item.name, kind, column(item.name))

    def _no_aggregate(self, call: exp.Anonymous, scope: Scope) -> Bound | None:
        if aggregate(call.name):
            raise PlanError(
                f"{call.name}(…) cannot stand inside another aggregate or a group key",
                hint="select it under a name of its own",
            ).at(*position(call))
        return None

    def _aggregate(self, call: exp.Anonymous, scope: Scope) -> Bound | None:
        found = aggregate(call.name)
        if found is None:
            if ":" not in call.name and call.name.lower() not in _SCALARS:
                raise PlanError(
                    f"{call.name!r} is neither an aggregate nor a function",
                    hint=f"aggregates are {', '.join((*AGGREGATES, *COMPOSED))}; functions are {', '.join(sorted(_SCALARS))}",
                )
            return None
        if call.name.lower() == "count" and not call.expressions:
            if self._changes:
                return Bound(exp.paren(exp.Sub(this=column(CAME), expression=column(BACK))), Type.LONG)
            self._partials.setdefault(CAME, _count_all(CAME))
            return Bound(column(CAME), Type.LONG)
        given, most = found.kept.arguments, (found.constant or found).kept.constants[1]
        if not found.kept.constants[0] <= len(call.expressions) - given <= most:
            raise PlanError(
                f"{call.name} takes {given + most} argument(s), not {len(call.expressions)}",
                hint=f"{call.name}(x{', y' if given > 1 else ''}{', n' if most else ''})",
            )
        return self._bound(call, found, self._arguments(call, found))

    def _arguments(self, call: exp.Anonymous, found: Summary) -> list[_Argument]:
        """What a call is computed from, in the order of `arguments_of`."""
        made = list[_Argument]()
        for node in call.expressions[: found.kept.arguments]:
            bound = bind(node, self._plain_scope)
            if bound.type is None:
                raise PlanError(f"{call.name} of null has no type", hint="cast(null, 'double')")
            found.type(call.name, bound.type)
            made.append(_Argument((bound.sql,), bound.type, self._suffixes(node)))
        if len(made) > 1:
            suffix = self._suffixes(arguments_of(call)[PAIR])
            made.append(_Argument(tuple(each.sql[0] for each in made), Type.DOUBLE, suffix))
        return made

    def _bound(self, call: exp.Anonymous, found: Summary, arguments: Sequence[_Argument]) -> Bound:
        constants = [_constant(node, call.name) for node in call.expressions[found.kept.arguments :]]
        if found.constant is not None and constants:
            found = found.constant
        result = found.type(call.name, arguments[0].kind)
        partials = {partial.key: partial for partial in found.kept.partials}
        if self._changes:
            if any(partial.less is None for partial in partials.values()):
                raise self._lasting(f"what {call.name} keeps of a bucket does not tell its value without one row")
            find = self._left(partials, arguments)
        else:
            find = self._kept(partials.values(), arguments)
        if result.exact and found.gives is Gives.MEAN:
            return Bound(Mean(this=find("sum"), expression=find("count"), to=result.sql), result)
        value = found.kept.value(find, constants)
        return Bound(exp.cast(value, result.sql) if found.kept.text else value, result)

    def _lasting(self, said: str) -> PlanError:
        return PlanError(
            f"{self._stream} is a stream of changes, of which rows are taken back, and {said}",
            hint="sum, count, avg, stdDev, variance, covariance, corr, mode, weightedAvg, histogram, and group keys",
        )

    def _kept(self, partials: Iterable[Partial], arguments: Sequence[_Argument], back: bool = False) -> Find:
        """The columns of partials of some arguments, by their names."""
        names = {partial.key: self._partial(partial, arguments, back) for partial in partials}
        return lambda partial: column(names[partial])

    def _left(self, partials: Mapping[str, Partial], arguments: Sequence[_Argument]) -> Find:
        """What partials are of what is left: of the rows that came without those that were taken back."""
        with_count = {**partials, COUNT.key: COUNT}
        came, gone = (
            self._kept(with_count.values(), [each.only(sign) for each in arguments], sign < 0) for sign in (1, -1)
        )

        def wide(side: Find) -> Find:
            return lambda name: exp.cast(side(name), WIDE)

        def find(name: str) -> exp.Expr:
            partial, kind = with_count[name], self._partials[came(name).name].kind
            less, sides = partial.less, (own(came, partial.of), own(gone, partial.of))
            assert less is not None
            if kind == EXACT:
                return Checked(this=less(*map(wide, sides)), to=Type.LONG.sql)
            return exp.cast(less(*sides), kind.sql)

        return find

    def _partial(self, partial: Partial, arguments: Sequence[_Argument], back: bool) -> str:
        mine = arguments[partial.of]
        argument, kind = mine.sql[0], mine.kind
        name = f"{_column_of(partial.name, back)}_{mine.suffix}"
        if partial.shape is Shape.ARGUMENTS and kind is Type.TIMESTAMP:
            # As numbers: no server's clock makes one of two of them, as the hour that comes twice would.
            argument, kind = exp.Anonymous(this="EPOCH_US", expressions=[argument.copy()]), Type.LONG
        typed = [exp.cast(each.copy(), kind.sql) for each in (argument, *mine.sql[1:])]
        prepared = partial.prepare(typed[0] if len(typed) == 1 else exp.Tuple(expressions=typed), ARRIVED)
        if partial.name in _CHOSEN:
            self._order.add(partial.name)
        siblings = own(_siblings(arguments, back), partial.of)
        stored = kind_of(partial, kind)
        helpers = tuple(
            (_helper(arguments[of].suffix, back), *weighted(own(_siblings(arguments, back), of)))
            for of in (partial.means if partial.of == PAIR else (partial.of,) * len(partial.means))
        )
        merge = partial.merge(siblings)
        if stored == DOUBLE and isinstance(merge, exp.Sum):
            merge, prepared = InOrder(this=merge.this), Compensated(this=prepared.this)
        if stored == EXACT:
            merge = guarded(merge, column(overflow_of(name)))
        self._partials[name] = Value(name, stored, exp.cast(prepared, stored.sql), exp.cast(merge, stored.sql), helpers)
        return name

    def _ordering(self) -> Iterable[Value]:
        """The (event time, arrival) that plain, first and last values are chosen by, so that parts still merge."""
        for which, pick in _CHOSEN.items():
            if which in self._order:
                time, arrival = (column_of(f"{which}_{what}") for what in ("event_timestamp", "arrival"))
                first = which == "first"
                rows = LastBy(this=column(arrival), time=column(time), arrival=column(arrival), first=first)
                yield Value(time, LONG, pick(this=ARRIVED.time.copy()), pick(this=column(time)))
                yield Value(arrival, LONG, _event(ARRIVED.arrival.copy(), first), rows)


_CHOSEN = {"last": exp.Max, "first": exp.Min}
"""What chooses one event of a bucket, and how the time of that event is found."""
_SCALARS = {"coalesce", "default", "ifthenelse", "cast", "convert", "maximum", "minimum"} | {
    f"instanceof{kind}" for kind in ("boolean", "double", "float", "integer", "long", "string")
}


def _keys_only(keys: Sequence[Key]) -> Mapping[tuple[str, str], Bound]:
    return {("", key.name): Bound(column(key.name), key.type) for key in keys}


def _only(sign: int, argument: exp.Expr | None = None) -> exp.Expr:
    """An argument (or 1) of the rows that came, or of those that were taken back; null of the others."""
    kind = exp.GT if sign > 0 else exp.LT
    mine = kind(this=column(SIGN), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=mine, true=exp.Literal.number(1) if argument is None else argument.copy())])


def _column_of(partial: str, back: bool) -> str:
    """What the column of a partial begins with; `back`: of the rows that were taken back."""
    return column_of(f"back_{partial}" if back else partial)


def _helper(suffix: str, back: bool) -> str:
    """The weighted mean of a group, while its rows are merged."""
    return f"__{_column_of('mean', back)}_{suffix}"


def _siblings(arguments: Sequence[_Argument], back: bool) -> Find:
    """The columns of partials by their names: those of the pair by names that no argument has."""

    def find(key: str) -> exp.Expr:
        first, found = key.removeprefix(second("")), key.startswith(second(""))
        mine = arguments[1 if found else PAIR if first == COMOMENT.name else 0]
        name = _column_of(first, back)
        if first == HELPER:
            return column(_helper(mine.suffix, back))
        return column(name if name in SHARED else f"{name}_{mine.suffix}")

    return find


@dataclass(frozen=True)
class _Argument:
    """What partials are of: one expression, or the two of a pair; their type, and how their columns end."""

    sql: tuple[exp.Expr, ...]
    kind: Type
    suffix: str

    def only(self, sign: int) -> _Argument:
        """Of the rows that came, or of those that were taken back."""
        return replace(self, sql=tuple(_only(sign, each) for each in self.sql))


def _event(value: exp.Expr, first: bool = False) -> exp.Expr:
    """The value of a bucket's last event, or of its first."""
    return LastBy(this=value, time=ARRIVED.time.copy(), arrival=ARRIVED.arrival.copy(), first=first)


def _last(name: str) -> exp.Expr:
    return LastBy(this=column(name), time=column("AGG_LAST_EVENT_TIMESTAMP"), arrival=column("AGG_LAST_ARRIVAL"))


def _count_all(name: str, what: exp.Expr | None = None) -> Value:
    """How many events there are, or those that are something."""
    return Value(name, LONG, exp.Count(this=what or exp.Star()), exp.cast(exp.Sum(this=column(name)), LONG.sql))


def overflow_of(total: str) -> str:
    """The column that goes with an exact sum: true where the sum left 64 bits and is null, otherwise null."""
    return total.replace("SUM", "OVERFLOW", 1)


def _overflow(total: str) -> Value:
    """No event has lost a sum; a level's row has, when it was stored with a sum beyond 64 bits."""
    kind, name = Kind.of(Type.BOOL), overflow_of(total)
    return Value(name, kind, exp.cast(exp.Null(), kind.sql), exp.LogicalOr(this=column(name)))


def _constant(node: exp.Expr, name: str) -> exp.Expr:
    """The second argument of a sketch. Raises PlanError for what is no rank, or no number of values."""
    text = node.name if isinstance(node, exp.Literal) and not node.is_string else None
    try:
        check_constant(name, None if text is None else int(text) if text.isdigit() else float(text))
    except PlanError as problem:
        raise problem.at(*position(node)) from None
    return exp.Literal.number(text)


def read_column(aggregation: Aggregation, name: str) -> exp.Expr:
    """A merged state column as answers have it: exact sums as longs."""
    return narrowed(column(name), aggregation.kinds[name])
