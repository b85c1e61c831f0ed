"""Aggregate calls of the tree → calls of the engine, and the slots in which expressions find their values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rollup.core.errors import PlanError
from rollup.engine import operators as op
from rollup.engine.aggregates.declaration import Aggregate
from rollup.engine.aggregates.known import COUNT
from rollup.engine.aggregates.known import rate as RATE
from rollup.engine.aggregates.known import rate_by as RATE_BY
from rollup.engine.expressions import Ask, Call, Const, Expr, Now, Slot, inputs_read, walk
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.plans import Previous
from rollup.engine.types import ANY, DECIMAL, DOUBLE, FLOAT, INT, LONG, DataType, Kind
from rollup.lang.epl.accessing import IDENTITY, KEY, RANKED, kept, ranked
from rollup.lang.epl.catalog import ordered, problem, unknown
from rollup.lang.epl.lowering.values.expressions import condition, key, lower
from rollup.lang.epl.lowering.values.times import span
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Collected, Scope, aggregates, windowed
from rollup.lang.epl.semantics import AGGREGATES, AGGREGATING, OF_DECIMALS, OF_FLOATS, OF_LONGS
from rollup.lang.epl.tree import expressions as ex


def collect(
    nodes: Iterable[Any], scope: Scope, base: int, dimensions: tuple[Expr, ...]
) -> tuple[list[Collected], dict[str, Slot]]:
    """The aggregate calls of expressions, those of the statement's own grouping first, and their slots from `base` on.

    Raises PlanError for arguments that do not fit.
    """
    inside = replace(scope, slots=None, no_aggregates="inside another aggregate")
    found = [_collected(node, inside, dimensions) for node in aggregates(nodes, scope)]
    found.sort(key=lambda each: each.keys is not None)
    groups = list(dict.fromkeys(each.keys for each in found))
    ordered = [each for keys in groups for each in found if each.keys == keys]
    slots = {each.text: Slot(base + place, each.call.type) for place, each in enumerate(ordered)}
    return ordered, slots


def _collected(node: ex.Call, scope: Scope, dimensions: tuple[Expr, ...]) -> Collected:
    named = {each.name: each.value for each in node.arguments if isinstance(each, ex.Named)}
    extra = set(named) - {"group_by", "filter"}
    if extra:
        raise unknown("parameter of an aggregate", min(extra), ["group_by", "filter"], node)
    plain = [each for each in node.arguments if not isinstance(each, ex.Named)]
    where = condition(named["filter"], scope) if "filter" in named else None
    if where is None and len(plain) == 2 and _takes_condition(node.name.lower(), plain[0]):
        where = condition(plain.pop(), scope)
    try:
        call = _call(node, plain, where, scope)
        _ = call.type
    except PlanError as found:
        raise found.at(*node.at) from None
    asked = [scope.registry.lookups[i.index] for arg in call.args for i in walk(arg) if isinstance(i, Ask)]
    if any(isinstance(each, Previous) for each in asked):
        hint = "prior(1, x), or insert into a stream and add that up"
        raise problem(f"`{render(node)}` adds up what `prev` finds, which is no property of the event", node, hint)
    keys: tuple[Expr, ...] | None = None
    if "group_by" in named:
        by = named["group_by"]
        keys = tuple(key(each, scope) for each in (by.items if isinstance(by, ex.Group) else (by,)))
        keys = None if keys == dimensions else keys
    return Collected(render(node), call, keys)


_EXTREMES = {"min", "max", "fmin", "fmax"}
_ORDERED = {*_EXTREMES, "minever", "maxever", "fminever", "fmaxever", "median"}


def _takes_condition(name: str, first: ex.Expression) -> bool:
    if name == "rate":
        return isinstance(first, (ex.Constant, ex.Period))
    return name in AGGREGATES and name not in ("min", "max")


def _call(node: ex.Call, plain: list[ex.Expression], where: Expr | None, scope: Scope) -> AggregateCall:
    name = node.name.lower()
    if name in ("first", "last", "nth", "window"):
        return _access(node, name, plain, where, scope)
    if name in RANKED:
        return _ranked(node, name, plain, where, scope)
    if name == "rate":
        return _rate(node, plain, where, scope)
    if name not in AGGREGATES:
        raise unknown("aggregate", node.name, AGGREGATING, node)
    if node.distinct and any(isinstance(each, ex.Star) for each in plain):
        raise problem("`distinct` tells values apart, not rows", node, f"{name}(distinct x)")
    if len(plain) == 1 and isinstance(plain[0], (ex.Star, ex.StreamStar)) and name in ("count", "countever"):
        return AggregateCall(_function(name, scope), (), where=where)
    if name in ("count", "countever") and not plain:
        raise problem(f"`{name}` takes what it counts", node, f"{name}(*)")
    if name == "countever" and node.distinct:
        raise problem("`countever` keeps no values to tell apart", node, "count(distinct x)")
    if any(isinstance(each, ex.Star) for each in plain):
        raise problem(f"`{render(node)}` needs a property, not `*`", node)
    if name in ("min", "max") and scope.filling and not windowed(scope):
        hint = f"{name}ever(…) in the table and here, or a window on the stream"
        raise problem(f"`{render(node)}` of a table lets values go, and without a window none leaves", node, hint)
    args = tuple(lower(each, scope) for each in plain)
    if name not in ("count", "countever") and any(arg.type.kind is Kind.NULL for arg in args):
        raise problem(f"`{render(node)}` of null, of which there is none", node, "a property")
    if node.distinct and name == "count" and args[0].type.kind is Kind.LIST:
        args = (Call(op.AS_KEY, args[:1], args[0].type),)
    elif name in _ORDERED or node.distinct:
        for arg in args[:1]:
            ordered(arg.type, node, render(plain[0]))
    if name in ("stddev", "avedev", "median") and args and args[0].type == DECIMAL:
        args = (to_double(args[0]), *args[1:])
    exact = {FLOAT: OF_FLOATS, DECIMAL: OF_DECIMALS, LONG: OF_LONGS}.get(args[0].type, {}) if args else {}
    if args and args[0].type == INT and _computed(args[0]):
        exact = OF_LONGS
    if name in _EXTREMES and not (windowed(scope) or scope.filling or node.distinct):
        name = f"{name}ever"  # nothing leaves, so no other value need be kept
    return AggregateCall(exact.get(name) or _function(name, scope), args, node.distinct, where)


def _computed(value: Expr) -> bool:
    """Whether whole numbers are worked out, which may have as many as 64 bits."""
    return any(isinstance(each, Call) and each.op in op.WRAPPING.values() for each in walk(value))


def _function(name: str, scope: Scope) -> Aggregate:
    """The function; what a table has counted may be reset in between, so that more leaves than has come."""
    return COUNT if name == "count" and scope.filling else AGGREGATES[name]


def _rate(node: ex.Call, plain: list[ex.Expression], where: Expr | None, scope: Scope) -> AggregateCall:
    """`rate(10)`: of what comes, by the engine's clock; `rate(time)` and `rate(time, amount)`: of what a window holds."""
    if not 1 <= len(plain) <= 2:
        raise problem("`rate` takes a number of seconds, or a property with a time", node, "rate(10)")
    second = scope.catalog.second
    values = [Const(None, DOUBLE) if isinstance(each, ex.Period) else lower(each, scope) for each in plain]
    if isinstance(values[0], Const) and len(values) == 1:
        seconds = span(plain[0], scope, "`rate`")
        if not seconds:
            raise problem("`rate` needs some time", plain[0], "rate(10)")
        return AggregateCall(RATE(second, seconds), (Now(),), where=where)
    if not windowed(scope):
        raise problem("`rate` of a property needs a window on the stream", node, "rate(10), Stream#time(10)")
    if values[0].type.kind not in (Kind.LONG, Kind.ANY):
        raise problem(f"`{render(plain[0])}` is {values[0].type}, not a time of type long", plain[0])
    amount = to_double(values[1]) if len(values) > 1 else Const(1.0, DOUBLE)
    return AggregateCall(RATE_BY(second), (values[0], amount), where=where)


def _identity(scope: Scope) -> Expr:
    rows = tuple(scope.row(place) for place in range(scope.outer, len(scope.sources)))
    return Call(IDENTITY, rows, ANY)


def _value(node: ex.Expression, scope: Scope) -> Expr:
    if not isinstance(node, ex.Star):
        return lower(node, scope)
    if len(scope.sources) - scope.outer != 1:
        raise problem("`*` is the row of one stream, and there are several", node, "first(a.*)")
    return scope.row(scope.outer)


def _access(node: ex.Call, name: str, plain: list[ex.Expression], where: Expr | None, scope: Scope) -> AggregateCall:
    place = 0
    if len(plain) == 2 and name != "window":
        offset = plain.pop()
        if not isinstance(offset, ex.Constant) or not isinstance(offset.value, int):
            raise problem(f"the place in `{render(node)}` must be a constant number", offset)
        place = offset.value
    elif name == "nth":
        raise problem("`nth` takes a property and a place", node, "nth(price, 1)")
    if len(plain) != 1:
        raise problem(f"`{node.name}` takes a property or `*`", node, f"{node.name}(price)")
    leaves = windowed(scope)
    if name == "window" and not (leaves or scope.filling):
        raise problem("`window` needs a window on the stream", node, "Stream#length(10)")
    value = _value(plain[0], scope)
    if name in ("first", "last") and not leaves:
        return AggregateCall(AGGREGATES[f"{name}ever"], (value,), where=where)
    streams = {input for input in inputs_read([value]) if input >= scope.outer}
    if name == "window" and not scope.filling and not all(scope.sources[place].windowed for place in streams):
        raise problem("`window` needs a window on the stream", node, "Stream#length(10)")
    if len(scope.sources) - scope.outer > 1 and len(streams) == 1 and name != "nth":
        row = scope.row(streams.pop())
        return AggregateCall(kept(name, place, True), (Call(IDENTITY, (row,), ANY), value), where=where)
    return AggregateCall(kept(name, place), (_identity(scope), value), where=where)


def _ranked(node: ex.Call, name: str, plain: list[ex.Expression], where: Expr | None, scope: Scope) -> AggregateCall:
    if not plain:
        raise problem(f"`{node.name}` needs something to sort by", node, f"{node.name}(price)")
    down = [isinstance(each, ex.Sorted) and each.descending for each in plain]
    keys = tuple(lower(each.value if isinstance(each, ex.Sorted) else each, scope) for each in plain)
    for each in keys:
        ordered(each.type, node, render(node))
    if name == "sorted" and not (windowed(scope) or scope.filling):
        raise problem("`sorted` needs a window on the stream", node, "Stream#length(10)")
    if not windowed(scope) and not name.endswith("ever") and name != "sorted":
        name += "ever"  # nothing leaves
    joined = len(scope.sources) - scope.outer > 1
    streams = inputs_read(keys)
    inputs = sorted(place for place in streams if place >= scope.outer) if joined else [scope.outer]
    if len(inputs) != 1:
        raise problem(f"`{render(node)}` sorts by properties of one stream", node)
    row = scope.row(inputs[0])
    identity = Call(IDENTITY, (row,), ANY) if joined else _identity(scope)
    return AggregateCall(ranked(name, down, scope.filling), (identity, Call(KEY, keys, ANY), row), where=where)


def number_of(kind: DataType) -> DataType:
    """The type that an aggregated number has."""
    return DECIMAL if kind == DECIMAL else (kind if kind.numeric else INT)


def to_double(value: Expr) -> Expr:
    """A number as a double."""
    return Call(op.TO_DOUBLE, (value,), DOUBLE)
