"""When rows leave: the output clause of the tree → a rate of the engine; and the variables that are set then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rollup.engine.expressions import Expr, Slot
from rollup.engine.rows.plans import Input, StoreInput
from rollup.engine.rows.selects.rate import Rate, Setting
from rollup.engine.types import LONG
from rollup.lang.epl.catalog import problem, unknown
from rollup.lang.epl.lowering.targets import assigned, fitting
from rollup.lang.epl.lowering.values.expressions import condition, lower
from rollup.lang.epl.lowering.values.times import crontab, span
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope, variable_of
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm

_COUNTERS = ("count_insert", "count_insert_total", "count_remove", "count_remove_total", "last_output_timestamp")


def lower_rate(output: sm.Output | None, scope: Scope, inputs: Sequence[Input]) -> Rate:
    """When rows leave."""
    if output is None:
        return Rate()
    scope = replace(scope, sources=(), slots=None, no_aggregates="in an output's condition")
    counters: dict[str, Expr] = {name: Slot(place, LONG) for place, name in enumerate(_COUNTERS)}
    counting = replace(scope, names=counters)
    every, after, end = output.every, output.after, output.terminated
    if every is not None and isinstance(every.events, ex.Constant) and not every.events.value:
        raise problem("`output every` needs an event or more", every.events, "output every 1 events")
    return Rate(
        output.mode,
        _interval(every.period, scope) if every is not None and every.period is not None else None,
        _events(every, scope),
        crontab(output.at_times, scope) if output.at_times is not None else None,
        condition(output.when, counting) if output.when is not None else None,
        settings(output.then, counting),
        span(after.period, scope, "output after") if after is not None and after.period is not None else None,
        _events(after, scope),
        end is not None,
        condition(end.condition, counting) if end is not None and end.condition is not None else None,
        settings(end.then, counting) if end is not None else (),
        bool(inputs) and all(isinstance(each, StoreInput) and not each.follow for each in inputs),
    )


def _interval(node: ex.Expression, scope: Scope) -> int:
    found = span(node, scope, "output every")
    if not found:
        raise problem("`output every` needs some time", node, "output every 1 sec")
    return found


def _events(given: sm.Span | None, scope: Scope) -> Expr | None:
    if given is None or given.events is None:
        return None
    found = lower(given.events, scope)
    if not found.type.integral:
        raise problem(f"`{render(given.events)}` is {found.type}, not a number of events", given.events)
    return found


def settings(assignments: Sequence[sm.Assignment], scope: Scope) -> tuple[Setting, ...]:
    """Variables that are set."""
    return tuple(Setting(*variable(each, scope)) for each in assignments)


def variable(assignment: sm.Assignment, scope: Scope) -> tuple[str, Expr]:
    """The variable of an assignment and its value. Raises PlanError for constants and names that are none."""
    target, value = assigned(assignment, scope)
    if not isinstance(target, ex.Reference) or target.name not in scope.catalog.variables:
        raise unknown("variable", render(target), scope.catalog.variables, assignment)
    info = variable_of(target.name, assignment, scope)
    if info.constant:
        raise problem(f"`{target.name}` is a constant", assignment, "create variable, without constant")
    return target.name, fitting(value, info.type, target.name, assignment)
