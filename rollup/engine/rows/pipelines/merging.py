"""Merges, updates and deletes of one row that is found by what it holds: each event does one thing to one row at most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from rollup.engine.compiling import Same, Source, compiled_row, predicate, row_key
from rollup.engine.expressions import Field, RowOf, walk
from rollup.engine.row import Row
from rollup.engine.rows.acting import MergeInstance
from rollup.engine.rows.actions import Action, InsertAction, Merge, Set, UpdateAction
from rollup.engine.rows.keyed import MANY, ByKey
from rollup.engine.rows.pipelines.steps import Take, Told
from rollup.engine.rows.pipelines.tapes import Tape
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.stores.named import NamedWindow
from rollup.engine.rows.stores.tables import Table

Change = Callable[[int, Row | None, Row | None], None]
"""By the event at a place a row comes, and another is taken out or makes room for it."""
Do = Callable[[int, Row, Row | None], None]
"""An action for the event at a place and the row that it has found."""


def against(plan: Merge, keys: Sequence[int]) -> str | None:
    """The first reason why a merge is more than one thing done to one row; `keys`: places that tell the store's rows apart."""
    if plan.lookups or plan.own_inputs:
        return "a sub-query"
    if plan.where is None and not plan.always:
        return "no condition"
    for case in plan.cases:
        if len(case.actions) != 1:
            return "several actions"
        (action,) = case.actions
        if action.where is not None:
            return "a condition of an action"
        if not case.matched and not isinstance(action, InsertAction):
            return "an action for a row that is not there"
        if isinstance(action, InsertAction) and action.target is not None:
            return "insert into elsewhere"
        if isinstance(action, UpdateAction) and any(
            not isinstance(each, Set) or each.place in keys for each in action.sets
        ):
            return "an update of keys or aggregates"
    return None


def merging(
    instance: MergeInstance, store: Table | NamedWindow, change: Change, several: Take = lambda place, row: False
) -> Take:
    """A merge against which there is nothing; `several` takes an event that finds more than one row."""
    plan, e = instance.plan, instance.environment
    keeps, find = isinstance(store, Table), _finding(plan, store, e)
    asked = [
        (
            case.matched,
            predicate(case.condition) if case.condition is not None else None,
            _doing(case.actions[0], instance, change, keeps),
        )
        for case in plan.cases
    ]
    there, missing = ([(test, do) for when, test, do in asked if when is matched] for matched in (True, False))

    def take(place: int, row: Row) -> bool:
        each = find(row)
        if each is MANY:
            return several(place, row)
        for test, do in missing if each is None else there:
            if test is None or test((row, each, each), (), e):
                do(place, row, each)
                break
        return True

    return take


def _finding(plan: Merge, store: Table | NamedWindow, e: Environment) -> Callable[[Row], Any]:
    """The row of the store that an event is about, None or MANY."""
    if plan.always:
        return lambda row: None
    places, exprs, whole = ByKey(plan.where, 1).key(store)
    sole = store.find if isinstance(store, Table) else store.finder(places).sole
    key, where = row_key(exprs)(e), predicate(plan.where)

    def found(row: Row) -> Any:
        values = key(row)
        each = sole(values)
        passes = each is None or each is MANY or (None not in values if whole else where((row, each), (), e))
        return each if passes else None

    return found


def _doing(action: Action, instance: MergeInstance, change: Change, keeps: bool) -> Do:
    """What one action does; `keeps`: a row that is updated keeps its number."""
    make, e = instance.runner.row, instance.environment
    if isinstance(action, InsertAction):
        columns = compiled_row(action.columns)
        return lambda place, row, each: change(place, make(columns((row, each, each), (), e)), None)
    if not isinstance(action, UpdateAction):
        return lambda place, row, each: change(place, None, each)
    sets = [each for each in action.sets if isinstance(each, Set)]
    places, exprs = tuple(each.place for each in sets), Same(tuple(each.value for each in sets))
    values = _updated(len(instance.plan.type.fields), places, exprs)(e)

    def update(place: int, row: Row, each: Row | None) -> None:
        if each is not None:
            new = values(row, each)
            change(place, Row(each.id, new) if keeps else make(new), each)

    return update


@lru_cache(maxsize=4096)
def _updated(width: int, places: tuple[int, ...], exprs: Same) -> Callable[..., Callable[[Row, Row], tuple[Any, ...]]]:
    """Generated: `bind(e)` gives the function of the event and a row of the store to the row's values, set left to right."""
    source, known = Source({0: "row", 1: "now", 2: "each"}), dict[int, str]()
    source.objects["Row"] = Row

    def values() -> str:
        return f"({''.join(known.get(place, f'each.values[{place}]') + ', ' for place in range(width))})"

    def body() -> None:
        source.line("r, s, now = (row, each, each), (), each")
        for number, (place, expr) in enumerate(zip(places, exprs.items, strict=True)):
            name = source.temporary()
            source.line(f"{name} = {source.emit(expr)}")
            known[place] = name
            if any(_reads_updated(each) for each in exprs.items[number + 1 :]):
                source.line(f"now = Row(each.id, {values()})")
        source.line(f"return {values()}")

    source.block("def updated(row, each):", body)
    source.line("return updated")
    return source.function("bind", "e")


def _reads_updated(expr: Any) -> bool:
    return any(isinstance(each, Field | RowOf) and each.input == 1 for each in walk(expr))


def of_table(instance: MergeInstance, table: Table, tape: Tape) -> Change:
    """The row of a table comes, goes, or is replaced."""
    note, gone = tape.note, 1 if instance.plan.gone_as_new else -1

    def change(place: int, new: Row | None, old: Row | None) -> None:
        if new is not None:
            if old is not None:
                table.replace(new)
            else:
                (new,) = table.change((new,)).new  # as it begins
            note((place, 1, new.values))
        elif old is not None:
            table.change((), (), (old,))
        if old is not None:
            note((place, gone, old.values))

    return change


def of_window(instance: MergeInstance, told: Told, tape: Tape) -> Change:
    """Rows come into a named window and are taken out; who follows it is told at once."""
    exchange, tell, followed, note = told.change, told.tell, bool(told.consumers), tape.note
    gone = 1 if instance.plan.gone_as_new else -1

    def change(place: int, new: Row | None, old: Row | None) -> None:
        delta = exchange(place, () if new is None else (new,), () if old is None else (old,))
        if new is not None:
            note((place, 1, new.values))
        if old is not None:
            note((place, gone, old.values))
        if followed:
            tell(place, delta)

    return change
