"""Look-ups that an expression makes when it is evaluated: sub-queries, earlier rows, tables, the partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

from rollup.engine.compiling import compiled, compiled_key, compiled_row, predicate
from rollup.engine.expressions import Const, RowOf
from rollup.engine.folding import Fold
from rollup.engine.row import Row, Rows
from rollup.engine.rows.finding import finding
from rollup.engine.rows.inputs import InputState
from rollup.engine.rows.keyed import ByKey, Shared
from rollup.engine.rows.plans import (
    Arriving,
    ContextValue,
    Earlier,
    Lookup,
    Previous,
    StoreInput,
    Subquery,
    TableRow,
)
from rollup.engine.rows.runner import Ask, Environment
from rollup.engine.rows.running import Running


class Asked(Protocol):
    """The partition of a statement that look-ups belong to."""

    @property
    def environment(self) -> Environment:
        """The clock, variables, look-ups."""
        ...

    def row(self, values: Sequence[Any]) -> Row:
        """A new row."""
        ...

    def input(self, number: int) -> InputState:
        """One of the inputs."""
        ...

    def held_for(self, number: int, by_key: ByKey, r: Rows) -> Sequence[Row]:
        """The rows that an input holds, without those that cannot fulfil a condition over `r` and them."""
        ...

    def store(self, name: str) -> Shared:
        """A named window or table."""
        ...


def ask(lookup: Lookup, home: Asked, running: Running | None = None) -> Ask:
    """The function of a look-up; `running` keeps its aggregates, where something does."""
    match lookup:
        case Subquery():
            if running is not None and lookup.mode == "value" and len(lookup.columns) == 1 and not lookup.keys:
                return _kept_up(running)
            asked = _subquery(lookup, home, running)
            return asked if running is not None else _by_key(lookup, home, asked)
        case Previous(input=0, what="row", value=RowOf(input=0), offset=Const(value=int(back))):
            return _row_before(back, home)
        case Previous():
            return _previous(lookup, home)
        case Earlier():
            return _earlier(lookup, home)
        case TableRow():
            return _table_row(lookup, home)
        case ContextValue():
            return lambda r, s, e: e.context.get(lookup.name)
        case Arriving():
            return lambda r, s, e: e.arriving


def _table_row(plan: TableRow, home: Asked) -> Ask:
    """The row of a key; where there is none, one of nulls."""
    keys, nothing = compiled_key(plan.keys), Row(0, (None,) * plan.width)
    find = cache(lambda: home.store(plan.table).find)

    def evaluate(r: Rows, s: Any, e: Environment) -> Row:
        return find()(keys(r, s, e)) or nothing

    return evaluate


def _by_key(plan: Subquery, home: Asked, otherwise: Ask) -> Ask:
    """A sub-query whose rows are found by key, where that is how; the store is known once it is asked first."""
    made: Ask | None = None

    def evaluate(r: Rows, s: Any, e: Environment) -> Any:
        nonlocal made
        if made is None:
            state = home.input(plan.input)
            if not isinstance(state.spec, StoreInput):
                found = finding(plan, state, len(r), otherwise)
            elif state.spec.condition is None:
                found = finding(plan, home.store(state.spec.store), len(r), otherwise)
            else:
                found = None
            made = found or otherwise
        return made(r, s, e)

    return evaluate


def _kept_up(running: Running) -> Ask:
    """The one value of aggregates over all rows, which are kept up."""

    def evaluate(r: Rows, s: Any, e: Environment) -> Any:
        found = running.answers(r)
        return found[0][0] if found else None

    return evaluate


def _subquery(plan: Subquery, home: Asked, running: Running | None) -> Ask:
    where, having = predicate(plan.where), predicate(plan.having)
    columns, keys = compiled_row(plan.columns), compiled_key(plan.keys)
    fold = Fold(plan.calls) if plan.calls or plan.keys else None
    single = len(plan.columns) == 1
    by_key = cache(lambda place: ByKey(plan.where, place))

    def held(r: Rows) -> Sequence[Row]:
        return home.held_for(plan.input, by_key(len(r)), r)

    def found(r: Rows, e: Environment) -> list[Rows]:
        return [(*r, row) for row in held(r) if where((*r, row), (), e)]

    def answers(r: Rows, e: Environment) -> list[Any]:
        rows = found(r, e)
        pairs: list[tuple[Rows, Any]]
        if fold is None:
            pairs = [(each, ()) for each in rows]
        else:
            rows.sort(key=lambda each: each[-1].id if each[-1] is not None else 0)  # as they came
            pairs = _folded(fold, keys, rows, bool(plan.keys), r, e)
        return [columns(each, s, e) for each, s in pairs if having(each, s, e)]

    def listed(r: Rows, e: Environment) -> list[Any]:
        kept = answers(r, e) if running is None else running.answers(r)
        return [values[0] if single else home.row(values) for values in kept]

    def evaluate(r: Rows, s: Any, e: Environment) -> Any:
        if plan.mode == "exists" and plan.calls and not plan.keys:
            return bool(listed(r, e))  # aggregates have values, whatever there is
        if plan.mode == "exists":
            return any(where((*r, row), (), e) for row in held(r))
        values = listed(r, e)
        if plan.mode == "list":
            return values
        if plan.mode == "rows":  # groups that `having` leaves out are known to be none
            return values or ([] if plan.keys and found(r, e) else None)
        if len(values) == 1:
            return values[0]
        return None if single or plan.whole or plan.keys else home.row([None] * len(plan.columns))

    return evaluate


def _folded(
    fold: Fold, keys: Callable[..., Any], rows: list[Rows], keyed: bool, r: Rows, e: Environment
) -> list[tuple[Rows, Any]]:
    groups: dict[Any, tuple[Rows, Any]] = {} if keyed else {(): ((*r, None), fold.start())}
    for each in rows:
        key = keys(each, (), e)
        if key not in groups:
            groups[key] = (each, fold.start())
        fold.enter(groups[key][1], each, e)
    return [(each, fold.values(group)) for each, group in groups.values()]


def _previous(plan: Previous, home: Asked) -> Ask:
    value = compiled(plan.value) if plan.value is not None else None
    offset = compiled(plan.offset) if plan.offset is not None else None

    def at(r: Rows, row: Row, s: Any, e: Environment) -> Any:
        there = (*r[: plan.input], row, *r[plan.input + 1 :])
        return value(there, s, e) if value is not None else None

    def before(r: Rows, s: Any, e: Environment) -> Any:
        row, window = r[plan.input], home.input(plan.input).window
        if row is None or window is None or not e.arriving:
            return None
        back = offset(r, s, e) if offset is not None else 0
        found = None if back is None else window.behind(row, back)
        return None if found is None else at(r, found, s, e)

    def around(r: Rows, s: Any, e: Environment) -> Any:
        row, window = r[plan.input], home.input(plan.input).window
        if row is None or window is None or not e.arriving:
            return None
        rows = window.around(row)
        if not rows:
            return None
        if plan.what == "count":
            return len(rows)
        if plan.what == "window":
            return [at(r, each, s, e) for each in reversed(rows)]
        back = offset(r, s, e) if offset is not None else 0
        return at(r, rows[back], s, e) if 0 <= back < len(rows) else None

    return before if plan.what == "row" else around


def _row_before(back: int, home: Asked) -> Ask:
    """The row itself that stands so many before that of the first input."""
    known = cache(lambda: home.input(0).window)

    def before(r: Rows, s: Any, e: Environment) -> Any:
        row, window = r[0], known()
        return None if row is None or window is None or not e.arriving else window.behind(row, back)

    return before


def _earlier(plan: Earlier, home: Asked) -> Ask:
    value = compiled(plan.value)

    def evaluate(r: Rows, s: Any, e: Environment) -> Any:
        row = r[plan.input]
        before = home.input(plan.input).earlier(row, plan.offset) if row is not None else None
        if before is None:
            return None
        return value((*r[: plan.input], before, *r[plan.input + 1 :]), s, e)

    return evaluate
