"""Aggregate calls of the tree → calls of the engine, and the slots in which expressions find their values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rollup.core.errors import PlanError
from rollup.engine import operators as op
from rollup.engine.expressions import Call, Expr, Field, RowOf, Slot, walk
from rollup.engine.folding import AggregateCall
from rollup.engine.types import ANY, DECIMAL, INT, DataType
from rollup.lang.epl.accessing import IDENTITY, KEY, kept, ranked
from rollup.lang.epl.catalog import problem, unknown
from rollup.lang.epl.lower_expressions import condition, lower
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Collected, Scope, aggregates
from rollup.lang.epl.semantics import AGGREGATES, AGGREGATING
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
    if where is None and len(plain) == 2 and _takes_condition(node.name.lower()):
        where = condition(plain.pop(), scope)
    try:
        call = _call(node, plain, where, scope)
        _ = call.type
    except PlanError as found:
        raise found.at(*node.at) from None
    keys: tuple[Expr, ...] | None = None
    if "group_by" in named:
        by = named["group_by"]
        keys = tuple(lower(each, scope) for each in (by.items if isinstance(by, ex.Group) else (by,)))
        keys = None if keys == dimensions else keys
    return Collected(render(node), call, keys)


def _takes_condition(name: str) -> bool:
    return name in AGGREGATES and name not in ("min", "max")


def _call(node: ex.Call, plain: list[ex.Expression], where: Expr | None, scope: Scope) -> AggregateCall:
    name = node.name.lower()
    if name in ("first", "last", "nth", "window"):
        return _access(node, name, plain, where, scope)
    if name in ("sorted", "minby", "maxby", "minbyever", "maxbyever"):
        return _ranked(node, name, plain, where, scope)
    if name not in AGGREGATES:
        raise unknown("aggregate", node.name, AGGREGATING, node)
    if len(plain) == 1 and isinstance(plain[0], (ex.Star, ex.StreamStar)) and name in ("count", "countever"):
        return AggregateCall(AGGREGATES[name], (), where=where)
    if any(isinstance(each, ex.Star) for each in plain):
        raise problem(f"`{render(node)}` needs a property, not `*`", node)
    args = tuple(lower(each, scope) for each in plain)
    if name == "avg" and args and args[0].type.integral:
        args = (args[0],)
    return AggregateCall(AGGREGATES[name], args, node.distinct, where)


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
    if len(plain) != 1:
        raise problem(f"`{node.name}` takes a property or `*`", node, f"{node.name}(price)")
    windowed = scope.sources[scope.outer].windowed or len(scope.sources) - scope.outer > 1
    if name == "window" and not windowed:
        raise problem("`window` needs a window on the stream", node, "Stream#length(10)")
    value = _value(plain[0], scope)
    if name in ("first", "last") and not windowed:
        return AggregateCall(AGGREGATES[f"{name}ever"], (value,), where=where)
    streams = {each.input for each in walk(value) if isinstance(each, (Field, RowOf)) and each.input >= scope.outer}
    if len(scope.sources) - scope.outer > 1 and len(streams) == 1 and name != "nth":
        row = scope.row(streams.pop())
        return AggregateCall(kept(name, place, True), (Call(IDENTITY, (row,), ANY), value), where=where)
    return AggregateCall(kept(name, place), (_identity(scope), value), where=where)


def _ranked(node: ex.Call, name: str, plain: list[ex.Expression], where: Expr | None, scope: Scope) -> AggregateCall:
    if not plain:
        raise problem(f"`{node.name}` needs something to sort by", node, f"{node.name}(price)")
    down = [isinstance(each, ex.Sorted) and each.descending for each in plain]
    keys = tuple(lower(each.value if isinstance(each, ex.Sorted) else each, scope) for each in plain)
    inputs = [place for place in range(scope.outer, len(scope.sources))]
    if len(inputs) != 1:
        raise problem(f"`{node.name}` is not supported in a join", node)
    row = RowOf(inputs[0], scope.sources[inputs[0]].type.data_type)
    return AggregateCall(ranked(name, down), (_identity(scope), Call(KEY, keys, ANY), row), where=where)


def number_of(kind: DataType) -> DataType:
    """The type that an aggregated number has."""
    return DECIMAL if kind == DECIMAL else (kind if kind.numeric else INT)


def to_double(value: Expr) -> Expr:
    """A number as a double."""
    from rollup.engine.types import DOUBLE

    return Call(op.TO_DOUBLE, (value,), DOUBLE)
