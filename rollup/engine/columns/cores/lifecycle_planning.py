"""Which statements run in a context whose partitions begin and end, and as what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rollup.engine.columns.cores.by_partition import numbered, of_numbered
from rollup.engine.columns.cores.covering import KEYS, against, filtered, first, too_long
from rollup.engine.columns.cores.folded import Folded, folded
from rollup.engine.columns.cores.lifecycle import Lifecycle
from rollup.engine.columns.cores.lifecycle_statement import LifecycleStatement
from rollup.engine.columns.cores.partitioned import properties_behind
from rollup.engine.columns.cores.projecting import FilterProject, filter_project
from rollup.engine.columns.cores.rewriting import aggregates, whole_columns
from rollup.engine.compiling import compiled
from rollup.engine.expressions import Ask, Call, Expr, Field, Slot, inside, lasting, walk
from rollup.engine.rows.contexts.conditions import AfterCondition, Condition, EventCondition, NowCondition
from rollup.engine.rows.contexts.levels import Context, Lived
from rollup.engine.rows.plans import ContextValue, Filter, Lookup, Select, StreamInput
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.selects.rate import Rate
from rollup.engine.types import LONG, RowType

_PROPERTIES = "name", "id", "startTime", "endTime"


@dataclass(frozen=True)
class _Own:
    """What is asked of a partition by some look-ups; `tag`: the name of the event with which it begins."""

    level: str
    tag: str | None
    lookups: Sequence[Lookup]
    properties: list[str | int] = field(default_factory=list[str | int])
    """The properties that were rewritten, in order: of the event's fields their places."""

    def _name(self, expr: Expr) -> str | None:
        """Which property an expression is."""
        if not isinstance(expr, Ask):
            return None
        lookup = self.lookups[expr.index]
        return lookup.name.removeprefix(f"{self.level}.") if isinstance(lookup, ContextValue) else None

    def place(self, expr: Expr) -> int | None:
        """Which field of the event with which a partition begins an expression is."""
        match expr:
            case Call(args=(Ask(type=kind) as asked,)) if kind.row is not None and self._name(asked) == self.tag:
                return expr.op.field
            case _:
                return None

    def routed(self, filter: Filter) -> tuple[Filter, tuple[int, ...]]:
        """A filter without what makes fields equal to those of that event, and which fields these are."""
        places = tuple(place for place, value in filter.equals if self.place(value) == place)
        rest = tuple(pair for pair in filter.equals if pair[0] not in places)
        return replace(filter, equals=rest), places

    def rewritten(self, expr: Expr) -> Expr:
        """An expression that asks for properties by their places among `properties`."""
        found = self.place(expr)
        if found is None:
            found = name if (name := self._name(expr)) in _PROPERTIES else None
        if found is None:
            return inside(expr, self.rewritten)
        if found not in self.properties:
            self.properties.append(found)
        return Ask(self.properties.index(found), expr.type)

    def projection(self, given: Projection) -> Projection:
        """What is shown, so."""
        return given.changed(self.rewritten)


def lifecycle_statement(plan: Select, context: Context, type: RowType) -> LifecycleStatement | str:
    """The core of a statement in a context of one level whose partitions begin and end, or the first reason against it."""
    ((name, level),) = context.levels
    assert isinstance(level, Lived)
    reason = _unlike(plan)
    if reason is not None:
        return reason
    (input,) = plan.inputs
    assert isinstance(input, StreamInput)
    tag = next((each.tag for each in level.start if isinstance(each, EventCondition)), None)
    own = _Own(name, tag, plan.lookups)
    filter, route = own.routed(input.filter)
    projection = own.projection(plan.projection)
    wider = numbered(type)
    alone = replace(plan, projection=projection, rate=Rate(), lookups=())
    inner = _numbered_core(replace(alone, inputs=(replace(input, filter=Filter(input.filter.stream)),)), wider)
    if isinstance(inner, str):
        return inner
    if plan.rate.at_end and not isinstance(inner, Folded):
        return "rows that wait for the end of a partition"
    lives = _lives(context, type, own, route, filter.stream)
    if isinstance(lives, str):
        return lives
    seen = _seen(whole_columns(projection, type), inner, len(wider.fields))
    reason = filtered(filter) or _beside(plan, inner) or first(map(against, seen.evaluated))
    if reason is not None:
        return reason
    shows = isinstance(inner, Folded) and inner.by_group and (plan.total or plan.rate.mode == "snapshot")
    properties, at_end = tuple(own.properties), plan.rate.at_end
    return LifecycleStatement(lives, filter, bool(route), inner, wider, seen, properties, plan.emitted, at_end, shows)


def _numbered_core(plan: Select, wider: RowType) -> FilterProject | Folded | str:
    """The core of the statement by partitions, of which nothing is projected."""
    number = Field(0, len(wider.fields) - 1, LONG)
    inner = of_numbered(plan, number)
    if isinstance(inner, str) or not aggregates(plan):
        return inner if isinstance(inner, str) else filter_project(inner)
    core = folded(inner)
    return core if isinstance(core, str) or core.keys != (number,) else replace(core, kept=True)


def _seen(projection: Projection, inner: FilterProject | Folded, width: int) -> Projection:
    """A projection over what that core makes: `width` fields of a row, or the keys; the aggregates; then the properties of the
    partition."""
    calls, keys = (len(inner.calls), len(inner.keys)) if isinstance(inner, Folded) else (0, 0)
    by_group = isinstance(inner, Folded) and inner.by_group
    slots = 1 if by_group else width

    def read(expr: Expr) -> Expr:
        return Field(0, slots + expr.index, expr.type) if isinstance(expr, Slot) else inside(expr, read)

    return properties_behind(projection.changed(read), slots + calls + (keys - 1 if by_group else 0))


def _unlike(plan: Select) -> str | None:
    """The first reason against its input, its rate and what it emits."""
    input, rate = plan.inputs[0], plan.rate
    recalls = not all(isinstance(each, ContextValue) for each in plan.lookups)
    if not isinstance(input, StreamInput) or input != StreamInput(input.filter, input.window) or recalls:
        return "what came before, or another input than a stream, in a context whose partitions end"
    if input.window is not None:
        return "a window in a context whose partitions end"
    if rate not in (Rate(), Rate("snapshot", at_end=True), Rate("last", at_end=True)):
        return "a rate other than output last or snapshot when terminated, in a context whose partitions end"
    if rate.mode == "last" and plan.projection.having is not None:
        return "having with output last when terminated"
    return None if plan.emitted == "new" else "the remove stream without a window, in a context whose partitions end"


def _beside(plan: Select, inner: FilterProject | Folded) -> str | None:
    """The first reason against what is shown beside aggregates."""
    if not isinstance(inner, Folded) or not inner.by_group:
        return "one row a row, when a partition ends" if plan.rate.at_end else None
    fields = (each for column in plan.projection.evaluated for each in walk(column) if isinstance(each, Field))
    return "a column that is neither a key nor an aggregate" if any(fields) else None


def _lives(context: Context, type: RowType, own: _Own, route: tuple[int, ...], stream: str) -> Lifecycle | str:
    """How partitions begin and end, where a statement takes events by the key `route`, or all."""
    ((name, level),), kinds = context.levels, tuple(type.fields.values())
    assert isinstance(level, Lived)
    start, end = _start(level), _end(level.end)
    if isinstance(start, str) or isinstance(end, str):
        return start if isinstance(start, str) else str(end)
    asked = replace(own, lookups=level.lookups)
    stop, by = (None, ()) if end is None or isinstance(end, int) else asked.routed(end)
    apart = tuple(-1 if (place := asked.place(each)) is None else place for each in level.distinct)
    keys = {key for key in (route, by, tuple(sorted(apart))) if key}
    if len(keys) > 1 or any(kinds[place].kind not in KEYS for key in keys for place in key) or -1 in apart:
        return "partitions by several keys, or by what is no plain field"
    if "endTime" in own.properties and not isinstance(end, int):
        return "the end of a partition that no clock ends"
    if any(each is not None and each.stream != stream for each in (start, stop)):
        return "a stream outside the context"
    key = next(iter(keys), ())
    if own.tag is not None and any(kind.arrow is None for kind in kinds):
        return "an event with a field that no column holds, with which partitions begin"
    span = end if isinstance(end, int) else 0
    lives = Lifecycle(context.name, name, start, stop, span, level.overlap, key, apart, bool(by), own.tag, kinds)
    return first(filtered(each) for each in (start, stop) if each is not None) or lives


def _start(level: Lived) -> Filter | str | None:
    """The events with which partitions begin; None: they begin by themselves."""
    match level.start:
        case (EventCondition(filter=filter),):
            return filter
        case (NowCondition(),) if not level.overlap:
            return None
        case _:
            return "a context whose partitions begin otherwise than with an event or at once"


def _end(condition: Condition | None) -> Filter | int | str | None:
    """The events that end partitions, or the span after which the clock ends them."""
    match condition:
        case None:
            return None
        case EventCondition(filter=filter):
            return filter
        case AfterCondition(span=span) if lasting((span,)):
            found = compiled(span)((), (), None)
            if not isinstance(found, int) or found <= 0:
                return "a span of no time"
            return too_long(found) or found
        case _:
            return "a context whose partitions end otherwise than by an event or after a span of time"
