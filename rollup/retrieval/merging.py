"""`merge(x)`: the stored states of a column over fewer keys, or over a whole range, merged as those of a bucket are.

`sum(customers)` adds what rows of the answer show; `merge(customers)` counts different customers over all of them. The
states are exact for all but sketches, which keep their stated error.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from rollup.core.errors import PlanError, QueryError, RollupError
from rollup.plan.aggregation import EVENTS, TIME, TIMESTAMP, Aggregation, Key, column
from rollup.plan.app import Selection, position
from rollup.plan.expressions import Scope, condition
from rollup.retrieval.answer import Groups
from rollup.retrieval.selection import is_over_rows


def merged(aggregation: Aggregation, on: exp.Expr | None, selection: Selection) -> tuple[Groups, Selection] | None:
    """What a question with `merge(x)` merges to, and what it selects of that; None for a question without one.

    Raises PlanError at what is neither merged nor grouped by.
    """
    nodes = [item.expression for item in selection.items or ()]
    nodes += [*selection.order_by, *(node for node in (on, selection.having) if node is not None)]
    if not any(_is_merge(found) for node in nodes for found in node.walk()):
        return None
    shown = keys_shown(aggregation)
    for node in selection.group_by:
        if not isinstance(node, exp.Column) or node.name not in (TIMESTAMP, *shown):
            keys = ", ".join((TIMESTAMP, *shown))
            raise _at(node, PlanError("beside merge(…) an answer is grouped by its start and keys", hint=keys))
    names = {node.name for node in selection.group_by}
    groups = Groups(tuple(dict.fromkeys(shown[n] for n in shown if n in names)), TIMESTAMP in names, _passes(shown, on))
    states = _States(aggregation, groups)
    known = {*names, EVENTS, *([TIME] if TIMESTAMP in names else [])}
    items = tuple(replace(item, expression=states.of(item.expression, known)) for item in selection.items or ())
    known |= {item.name for item in items}
    having = None if selection.having is None else states.of(selection.having, known)
    order = tuple(exp.Ordered(this=states.of(o.this, known), desc=o.args.get("desc")) for o in selection.order_by)
    return groups, replace(selection, items=items, group_by=(), having=having, order_by=order)


def over_keys(aggregation: Aggregation, names: Collection[str], on: exp.Expr | None) -> Groups:
    """What `per 'days by country'` merges to, and `on` as the choice of what is merged. Raises QueryError or PlanError."""
    shown = keys_shown(aggregation)
    for name in names:
        if name not in shown:
            hint = f"its group keys are {', '.join(shown)}" if shown else "it has no group keys"
            raise QueryError(f"{aggregation.name} has no group key {name!r}", hint=hint)
    return Groups(tuple(dict.fromkeys(shown[name] for name in shown if name in names)), True, _passes(shown, on))


def keys_shown(aggregation: Aggregation) -> dict[str, Key]:
    """The outputs that show a group key as it is, each with the key."""
    return {o.name: key for o in aggregation.outputs for key in aggregation.keys if o.final == column(key.name)}


def _is_merge(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "merge"


def _at(node: exp.Expr, problem: PlanError) -> RollupError:
    return problem.at(*position(node))


def misleading(aggregation: Aggregation, selection: Selection) -> list[str]:
    """Sentences on what a question that groups rows does not say, though it looks as if they did."""
    items = [item.expression for item in selection.items or ()]
    over = [call for item in items for call in item.walk() if is_over_rows(call)]
    if not over and not selection.group_by:
        return []
    inside = [found.name for call in over for found in call.find_all(exp.Column) if call.name.lower() in ("sum", "avg")]
    shown = set(keys_shown(aggregation))
    grouped = {node.name for node in selection.group_by if isinstance(node, exp.Column)}
    bare = dict.fromkeys(item.name for item in items if isinstance(item, exp.Column))
    outputs = {output.name: output for output in aggregation.outputs if output.name not in shown | grouped}
    said = [
        f"{name} is that of one row of each group, of the newest bucket; merge({name}) is that of all its events"
        for name in bare
        if name in outputs
    ]
    said += [
        f"{name} is that of one row of each group, of the newest bucket; group by {by} gives each a row"
        for name in bare
        if (by := TIMESTAMP if name == TIME else name) in {TIMESTAMP, *shown} - grouped
    ]
    return said + added(aggregation, inside)


def added(aggregation: Aggregation, names: Collection[str], instead: str = "merge({})") -> list[str]:
    """Sentences on columns that are added up over rows although rows of different keys or buckets share what they count.

    `instead` is what a language has for that, with a place for the column.
    """
    computed = {output.name for output in aggregation.outputs if not isinstance(output.final, exp.Column)}
    return [
        f"{name} is added up as each row shows it; {instead.format(name)} is that of all events together"
        for name in dict.fromkeys(names)
        if name in computed
    ]


def added_in_sql(aggregation: Aggregation, statement: exp.Expr) -> list[str]:
    """As `added`, of the sums and averages of a statement in SQL."""
    calls = statement.find_all(exp.Sum, exp.Avg)
    names = [found.name for call in calls for found in call.find_all(exp.Column)]
    return added(aggregation, names, "PER 'days by (key)', with the keys that stay,")


def beyond(aggregation: Aggregation, selection: Selection, answer: pa.Table) -> list[str]:
    """Sentences on sums of whole numbers that an answer may lack because they have more than 64 bits."""
    exact = {
        output.name
        for output in aggregation.outputs
        if aggregation.exact.keys() & {found.name for found in output.final.find_all(exp.Column)}
    }
    items = selection.items or ()
    shown = {item.name for item in items if exact & {found.name for found in item.expression.find_all(exp.Column)}}
    return [
        f"{name} is null in {nulls} of {answer.num_rows} rows, where it has no values or their sum has more than 64 bits;"
        " where their attribute is a decimal(19, 0), sums have 29 digits"
        for name in answer.schema.names
        if name in (shown if items else exact) and (nulls := answer[name].null_count)
    ]


class _States:
    """Expressions over merged states, in which `merge(x)` is their column x."""

    def __init__(self, aggregation: Aggregation, groups: Groups) -> None:
        self._outputs = {output.name: output for output in aggregation.outputs}
        self._keys = keys_shown(aggregation)
        self._lost = {key.name for key in aggregation.keys} - {key.name for key in groups.keys}

    def of(self, node: exp.Expr, known: Collection[str]) -> exp.Expr:
        """The expression; of columns it may have the known ones. Raises PlanError."""
        if _is_merge(node):
            return self._column(node)
        if isinstance(node, exp.Column) and node.name not in known:
            by = TIMESTAMP if node.name == TIME else node.name
            hint = f"merge({by})" if by in self._outputs and by not in self._keys else f"group by {by}"
            raise _at(node, PlanError(f"{node.name} is neither merged nor grouped by", hint=hint))
        if is_over_rows(node):
            hint = "merge(x) of a sum is the sum of all, of a count the count of all"
            raise _at(node, PlanError(f"{node.name}(…) is over rows, and merge(…) leaves one a group", hint=hint))
        copy = node.copy()
        for child in list(copy.iter_expressions()):
            if not isinstance(copy, exp.Column):
                child.replace(self.of(child, known))
        return copy

    def _column(self, call: exp.Expr) -> exp.Expr:
        given = call.expressions
        if len(given) != 1 or not isinstance(given[0], exp.Column) or given[0].name not in self._outputs:
            known = ", ".join(self._outputs)
            raise _at(call, PlanError("merge takes a column of the aggregation", hint=f"columns are {known}"))
        read = {found.name for found in self._outputs[given[0].name].final.find_all(exp.Column)}
        if read & self._lost:
            raise _at(call, PlanError(f"{given[0].name} is a group key, which has no state", hint="group by it"))
        return given[0].copy()


def _passes(shown: dict[str, Key], on: exp.Expr | None) -> exp.Expr | None:
    """`on` as a filter of states, of which the group keys are known and the values are not yet."""
    if on is None:
        return None
    for found in on.find_all(exp.Column):
        if found.name not in shown:
            hint = f"having merge({found.name}) …, or a group key under `on`"
            raise _at(found, PlanError(f"`on` chooses what is merged, before there is a {found.name}", hint=hint))
    bound = condition(on, Scope.of({name: key.type for name, key in shown.items()}), "`on`")
    for found in bound.find_all(exp.Column):
        found.set("this", column(shown[found.name].name).this)
    return bound
