"""Stream functions: what `#pol2Cart(theta, rho[, z])` adds to a stream is written out where a query names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rollup.core.errors import PlanError
from rollup.engine.types import DOUBLE
from rollup.lang.siddhi import tree
from rollup.lang.siddhi.statements.binding import Input, Scope, attributes_of, bind
from rollup.lang.siddhi.statements.names import Names

Added = Mapping[str, tree.Expression]


def spelled_out(made: tree.Query, names: Names) -> tree.Query:
    """The query without stream functions: filters behind them and the select have the functions' expressions in place.

    Raises PlanError for arguments that do not fit, and for a name that the stream has already.
    """
    stream = made.input
    if not isinstance(stream, tree.Stream) or all(each.kind != "function" for each in stream.handlers):
        return made
    rows = names.rows(stream)
    scope, fields = Scope([Input((stream.name,), rows)]), list(attributes_of(rows))
    added, handlers = dict[str, tree.Expression](), list[tree.Handler]()
    for handler in stream.handlers:
        expression = _within(handler.expression, added)
        if handler.kind == "function" and isinstance(expression, tree.Function):
            _check_doubles(expression, scope)
            added |= _cartesian(expression, {*fields, *added})
        else:
            handlers.append(replace(handler, expression=expression))
    return replace(
        made,
        input=replace(stream, handlers=tuple(handlers)),
        selection=_selected(made.selection, added, fields),
    )


def _check_doubles(call: tree.Function, scope: Scope) -> None:
    for argument in call.arguments:
        kind = bind(argument, scope).type
        if kind != DOUBLE:
            problem = f"#{call.name} takes doubles, not {kind}"
            raise PlanError(problem, hint="convert(x, 'double')").at(*argument.place)


def _cartesian(call: tree.Function, known: set[str]) -> Added:
    """x and y of an angle in degrees and a distance, and z as it is."""
    if len(call.arguments) not in (2, 3):
        problem = f"#{call.name} takes 2 or 3 arguments, not {len(call.arguments)}"
        raise PlanError(problem, hint="#pol2Cart(theta, rho)").at(*call.place)
    angle, distance, *height = call.arguments
    radians = tree.Function("math:toRadians", (angle,), call.place)
    made: Added = {
        **{
            name: tree.Operation("*", (distance, tree.Function(f"math:{function}", (radians,), call.place)), call.place)
            for name, function in (("x", "cos"), ("y", "sin"))
        },
        **dict(zip("z", height, strict=False)),
    }
    twice = next((name for name in made if name in known), None)
    if twice is not None:
        problem = f"#{call.name} adds {twice}, which the stream has already"
        raise PlanError(problem, hint="a stream with other names").at(*call.place)
    return made


def _selected(made: tree.Selection, added: Added, fields: list[str]) -> tree.Selection:
    """The select with columns and groups written out; `having` and `order by` name columns."""
    items = made.items or tuple(tree.Item(tree.Name(name, None, None, (1, 1)), None) for name in (*fields, *added))
    return replace(
        made,
        items=tuple(tree.Item(_within(item.expression, added), item.name) for item in items),
        group_by=tuple(_within(each, added) for each in made.group_by),
    )


def _within(node: tree.Expression, added: Added) -> tree.Expression:
    """An expression with what was added in place of its name."""
    match node:
        case tree.Name(attribute=str(name), index=None) if name in added:
            return added[name]
        case tree.Operation(operands=operands):
            return replace(node, operands=tuple(_within(each, added) for each in operands))
        case tree.Function(arguments=arguments):
            where = None if node.where is None else _within(node.where, added)
            return replace(node, arguments=tuple(_within(each, added) for each in arguments), where=where)
        case tree.InTable(condition=condition):
            return replace(node, condition=_within(condition, added))
        case _:
            return node
