"""on … select, delete, update, merge, set and split → the engine's actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rollup.engine.expressions import Expr
from rollup.engine.folding import Fold
from rollup.engine.rows.actions import (
    Action,
    DeleteAction,
    InsertAction,
    Merge,
    MergeCase,
    OnSelect,
    Reset,
    Set,
    SetVariables,
    Split,
    SplitBranch,
    StreamUpdate,
    UpdateAction,
)
from rollup.engine.rows.plans import Input, StoreInput, Unnest
from rollup.engine.rows.selects.joining import JoinSpec, Side
from rollup.engine.types import RowType
from rollup.lang.epl.catalog import StoreInfo, problem, unknown
from rollup.lang.epl.lowering.rates import variable
from rollup.lang.epl.lowering.select import assemble
from rollup.lang.epl.lowering.streams import columns_of, lower_contained, lower_stream
from rollup.lang.epl.lowering.targets import assigned, fitting, name_of, placed, target_of
from rollup.lang.epl.lowering.values.expressions import condition
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope, Source, in_context
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.streams import Item, Stream, Trigger


def _trigger(trigger: Trigger, scope: Scope) -> tuple[Input, Source]:
    scope.registry.outer = 1
    found, source = lower_stream(Stream(trigger.source, alias=trigger.alias, at=trigger.at), scope, 0)
    return found, source


def _store(store: sm.Store, scope: Scope) -> tuple[StoreInfo, Source]:
    info = scope.catalog.store(store.name, store)
    in_context(info, store.name, store, scope, only=True)
    return info, Source(store.alias or store.name, info.type, windowed=True, stream=store.name, alias=store.alias)


def lower_on_select(body: sm.OnSelect, scope: Scope) -> OnSelect:
    """A select that an event asks for."""
    trigger, source = _trigger(body.trigger, scope)
    _, held = _store(body.store, scope)
    scope.registry.outer = 2
    named = (replace(source, alias=source.alias or "stream_1"), replace(held, alias=held.alias or "stream_0"))
    inside = replace(scope, sources=named)  # `*` has the store first, as in Esper
    inputs = (trigger, StoreInput(body.store.name, follow=False))
    select = assemble(body.query, inside, inputs, JoinSpec((Side(),), 0))
    return OnSelect(trigger, body.store.name, replace(select, join=None), body.delete)


def lower_merge(body: sm.OnMerge | sm.OnUpdate | sm.OnDelete, scope: Scope) -> Merge:
    """Merge, update and delete of a store by an event."""
    trigger, source = _trigger(body.trigger, scope)
    info, held = _store(body.store, scope)
    both = replace(scope, sources=(source, held), slots=None, no_aggregates="in this condition")
    where = condition(body.where, both) if body.where is not None else None
    doing = _Doing(body.store.name, info, source, held, scope)
    if isinstance(body, sm.OnMerge):
        for each in (action for case in body.cases if body.always for action in case.actions):
            if isinstance(each, sm.MergeInsert) and each.where is not None:
                raise problem("a merge that always inserts has no `where`", each.where, "on S(…) merge W insert …")
        cases = tuple(doing.case(each) for each in body.cases)
        always = body.always
    else:
        action: Action = DeleteAction()
        if isinstance(body, sm.OnUpdate):
            action = doing.update(sm.MergeUpdate(body.assignments, at=body.at), False)
        cases, always = (MergeCase(True, None, (action,)),), False
    registry = scope.registry
    return Merge(
        trigger,
        body.store.name,
        info.type,
        where,
        cases,
        always,
        isinstance(body, sm.OnDelete),
        tuple(registry.lookups),
        tuple(registry.own_inputs),
    )


class _Doing:
    """The actions of one on-statement."""

    def __init__(self, name: str, info: StoreInfo, source: Source, held: Source, scope: Scope) -> None:
        self.name, self.info, self.source, self.held, self.scope = name, info, source, held, scope
        self.both = replace(scope, sources=(source, held), slots=None, no_aggregates="in a merge")
        self.inserting = replace(self.both, sources=(source, replace(held, hidden=True, optional=True)))
        initial = Source("initial", held.type, hidden=True)
        self.updating = replace(self.both, sources=(replace(source, hidden=True), held, initial))

    def case(self, case: sm.MergeCase) -> MergeCase:
        """One `when`."""
        scope = self.both if case.matched else self.inserting
        test = condition(case.condition, scope) if case.condition is not None else None
        return MergeCase(case.matched, test, tuple(self._action(each, case.matched) for each in case.actions))

    def _action(self, action: sm.MergeAction, matched: bool) -> Action:
        if isinstance(action, sm.MergeInsert):
            return self._insert(action, matched)
        if isinstance(action, sm.MergeUpdate):
            return self.update(action)
        return DeleteAction(condition(action.where, self.both) if action.where is not None else None)

    def _insert(self, action: sm.MergeInsert, matched: bool) -> Action:
        where = condition(action.where, self.inserting) if action.where is not None else None
        selecting = self.inserting
        if not matched or any(isinstance(item.value, ex.Star) for item in action.items):
            selecting = replace(self.inserting, sources=(self.source,))
        columns, names = columns_of(action.items, selecting)
        name = action.target or self.name
        own = action.target is None or action.target == self.name
        columns = _arranged(name, columns, names, action, self.scope)
        return InsertAction(tuple(columns), None if own else name, where)

    def update(self, action: sm.MergeUpdate, merging: bool = True) -> UpdateAction:
        """`update set …`, of a merge or of an `on … update`."""
        where = condition(action.where, self.both) if action.where is not None else None
        return UpdateAction(tuple(self._set(each, merging) for each in action.assignments), where)

    def _set(self, assignment: sm.Assignment, merging: bool) -> Set | Reset:
        if assignment.value is None:
            return self._reset(assignment.target)
        target, value = assigned(assignment, self.updating)
        column = self._column(target)
        if merging and column in self.info.keys:
            raise problem(
                f"`{column}` is a key of the table, which a merge cannot change", assignment, "delete, insert"
            )
        if column in self.info.aggregated:
            raise problem(
                f"`{column}` is an aggregate, which nobody sets", assignment, f"into table, or {column}.reset()"
            )
        value = fitting(value, self.info.type.fields[column], column, assignment)
        return Set(self.info.type.index[column], value)

    def _reset(self, target: ex.Expression) -> Reset:
        if not isinstance(target, ex.Call) or target.name.lower() != "reset" or target.of is None:
            raise problem(f"`{render(target)}` sets nothing", target, "column = value, or column.reset()")
        column = self._column(target.of)
        call: Any = self.info.aggregated.get(column)
        if call is None:
            raise unknown("aggregated column", column, self.info.aggregated, target)
        return Reset(column, Fold((call,)))

    def _column(self, target: ex.Expression) -> str:
        name = name_of(target)
        qualified = isinstance(target, ex.Member) and render(target.of) != self.held.name
        if name not in self.info.type.fields or qualified:
            raise unknown(f"column of `{self.name}`", render(target), self.info.type.fields, target)
        return name


def _arranged(
    name: str, columns: Sequence[Expr], names: Sequence[str], action: sm.MergeInsert, scope: Scope
) -> list[Expr]:
    """The columns as the target has them."""
    made = RowType(name, {n: c.type for n, c in zip(names, columns, strict=True)})
    insert = sm.InsertInto(name, action.columns, at=action.at)
    target, known = target_of(insert, made, scope)
    scope.catalog.imply(name, known)
    return placed(columns, target, known)


def lower_set(body: sm.OnSet, scope: Scope) -> SetVariables:
    """Variables that an event sets."""
    trigger, source = _trigger(body.trigger, scope)
    inside = replace(scope, sources=(source,))
    found = tuple(variable(each, inside) for each in body.assignments)
    plain = [
        name for each, (name, _) in zip(body.assignments, found, strict=True) if not isinstance(each.target, ex.Index)
    ]
    kinds = RowType("variables", {name: scope.catalog.variables[name].type for name in plain})
    return SetVariables(trigger, kinds, found, tuple(scope.registry.lookups), tuple(scope.registry.own_inputs))


def lower_update_stream(body: sm.UpdateStream, scope: Scope) -> StreamUpdate:
    """Events that are changed before anybody sees them."""
    if body.type in scope.catalog.stores:
        raise problem(f"`{body.type}` is no stream", body, "on … update")
    kinds = scope.catalog.row_type(body.type, body)
    inside = replace(scope, sources=(Source(body.alias or body.type, kinds),), no_aggregates="in an update")
    where = condition(body.where, inside) if body.where is not None else None
    sets: list[Set] = []
    for each in body.assignments:
        target, value = assigned(each, inside)
        name = name_of(target)
        if name not in kinds.fields:
            raise unknown(f"property of `{body.type}`", name, kinds.fields, each)
        sets.append(Set(kinds.index[name], fitting(value, kinds.fields[name], name, each)))
    registry = scope.registry
    return StreamUpdate(body.type, kinds, tuple(sets), where, tuple(registry.lookups), tuple(registry.own_inputs))


def lower_split(body: sm.Split, scope: Scope) -> Split:
    """An event that goes to streams."""
    trigger, source = _trigger(body.trigger, scope)
    inside = replace(scope, sources=(source,), slots=None, no_aggregates="in a split stream")
    branches = tuple(_branch(each, inside, source) for each in body.branches)
    registry = scope.registry
    return Split(trigger, source.type, branches, body.every_branch, tuple(registry.lookups), tuple(registry.own_inputs))


def _branch(branch: sm.Branch, scope: Scope, source: Source) -> SplitBranch:
    unnest: Unnest | None = None
    if len(branch.contained) > 1:
        raise problem("a branch reads events of one level inside the event", branch.contained[1])
    for contained in branch.contained:
        unnest, inner = lower_contained(
            contained, replace(source, name=source.name or "event"), source.name or "event", scope
        )
        if unnest.columns is not None or unnest.where is not None:
            raise problem(
                "a branch takes the inner events as they are", contained, "insert into X select … from [items]"
            )
        scope = replace(scope, sources=(Source(branch.alias, inner), replace(source, hidden=True)))
    where = condition(branch.where, scope) if branch.where is not None else None
    selecting = replace(scope, sources=scope.sources[:1]) if _star(branch.items) else scope
    columns, names = columns_of(branch.items, selecting)
    action = sm.MergeInsert(branch.items, branch.insert.target, branch.insert.columns, at=branch.at)
    arranged = _arranged(branch.insert.target, columns, names, action, scope)
    return SplitBranch(branch.insert.target, tuple(arranged), where, unnest)


def _star(items: Sequence[Item]) -> bool:
    return any(isinstance(item.value, ex.Star) for item in items)
