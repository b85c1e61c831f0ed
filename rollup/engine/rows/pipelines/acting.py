"""What an event does to a named window, or asks of one or of a table, beside others that hear of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rollup.engine.compiling import compiled, predicate, row_key
from rollup.engine.row import Row, Rows, delta_of
from rollup.engine.rows.acting import MergeInstance, OnSelectInstance, SetInstance
from rollup.engine.rows.instance import plain
from rollup.engine.rows.keyed import ByKey
from rollup.engine.rows.pipelines.following import values_at_once
from rollup.engine.rows.pipelines.merging import merging
from rollup.engine.rows.pipelines.steps import Take, Told
from rollup.engine.rows.pipelines.tapes import Tape, Values
from rollup.engine.rows.plans import Finish, StoreInput
from rollup.engine.rows.selects.projecting import ValuesOf
from rollup.engine.rows.selects.rate import Rate
from rollup.engine.rows.selects.selecting import PerRow
from rollup.engine.rows.stores.named import Change as Changed
from rollup.engine.rows.stores.named import NamedWindow, Store
from rollup.engine.rows.stores.tables import Table


class Telling:
    """Named windows that an event has changed, whose followers are told when all have heard of the event."""

    def __init__(self, times: list[int]) -> None:
        self.waiting: list[Told] = []
        self.unheard: list[tuple[Told, Changed]] = []
        """Changes of the event at hand that nobody follows."""
        self.read = False
        """Whether others look at named windows as those know them who follow them."""
        self._times = times

    def later(self, told: Told, delta: Changed) -> None:
        """Those who follow a window do not know of a change yet."""
        told.store.tell_later(delta_of(delta))
        self.waiting.append(told)

    def changed(self, told: Told, delta: Changed) -> None:
        """An event has changed a window, of which who looks at it or follows it hears later."""
        if told.consumers or self.read:
            self.later(told, delta)
        else:
            self.unheard.append((told, delta))

    def refused(self) -> None:
        """The event goes no further: those who follow do not know of its changes, be it those who come later."""
        for told, delta in self.unheard:
            told.store.tell_later(delta_of(delta))
        self.unheard.clear()
        self.waiting.clear()

    def now(self) -> None:
        """They are told: of each window all that has changed, as one change with a place of its own."""
        times = self._times
        for told in self.waiting:
            if told.store.untold:
                times.append(times[-1])
                told.tell(len(times) - 1, told.store.told_now())
        self.waiting.clear()


def changing(instance: MergeInstance, told: Told, tape: Tape, telling: Telling) -> Take:
    """A merge into a named window, be it of several rows; those who follow hear of it later."""
    gone, note, exchange = 1 if instance.plan.gone_as_new else -1, tape.note, told.change

    def change(place: int, new: Row | None, old: Row | None) -> None:
        delta = exchange(place, () if new is None else (new,), () if old is None else (old,))
        if new is not None:
            note((place, 1, new.values))
        if old is not None:
            note((place, gone, old.values))
        telling.changed(told, delta)

    def several(place: int, row: Row) -> bool:
        work = instance.work(row)
        if work.touched:
            new, old, _ = told.store.asked_for(work.coming, work.updates, work.leaving)
            delta = exchange(place, new, old)
            for each in new:
                note((place, 1, each.values))
            for each in old:
                note((place, gone, each.values))
            telling.changed(told, delta)
        return True

    return merging(instance, told.store, change, several)


def anew(take: Take, times: list[int]) -> Take:
    """An event as one with a place of its own, since its deliveries stand after those of others."""

    def taken(_: int, row: Row) -> bool:
        times.append(times[-1])
        return take(len(times) - 1, row)

    return taken


def newest(take: Take, times: list[int]) -> Take:
    """An event at the newest place, which one who has heard of it has made."""
    return lambda _, row: take(len(times) - 1, row)


def setting(instance: SetInstance, tapes: Mapping[str, Tape], tape: Tape) -> Take:
    """Variables of all, each set once, get values; `tapes`: where each says its new value and the one before."""
    e, note, shown = instance.environment, tape.note, tuple(instance.plan.type.fields)
    variables = instance.runner.environment.variables
    settings = [(variable, compiled(value), tapes[variable].note) for variable, value in instance.plan.settings]

    def take(place: int, row: Row) -> bool:
        r = (row,)
        for variable, value_of, say in settings:
            value = value_of(r, (), e)
            say((place, 1, (value,)))
            say((place, -1, (variables[variable],)))
            variables[variable] = value
        note((place, 1, tuple([variables[each] for each in shown])))
        return True

    return take


def askable(instance: OnSelectInstance) -> bool:
    """Whether what an event finds is shown with it, and nothing else is but that it may leave the store."""
    plan = instance.plan
    if not plain(plan.inputs[0]) or plan.inputs[1] != StoreInput(instance.asks_of, follow=False):
        return False
    if plan.lookups or plan.own_inputs or plan.into is not None or plan.emitted != "new":
        return False
    return plan.rate == Rate() and instance.outputs.direct


def finds_one(instance: OnSelectInstance, store: Store) -> bool:
    """Whether an event finds a row at most, or makes one."""
    places = ByKey(instance.plan.where, 1).key(store)[0]
    if instance.plan.total or not places:
        return instance.plan.total
    return isinstance(store, Table) or (isinstance(store, NamedWindow) and store.finder(places) is store.window)


def taking(instance: OnSelectInstance, told: Told, tape: Tape, telling: Telling) -> Take:
    """A select on an event whose rows leave the window when they have been shown."""

    def leave(place: int, found: Sequence[Rows]) -> None:
        gone = [row for _, row in found if row is not None]
        telling.changed(told, told.change(place, (), gone))

    return asking(instance, told.store, tape, None, leave)


def asking(
    instance: OnSelectInstance,
    store: Store,
    tape: Tape,
    put: Callable[[Values], None] | None,
    leave: Callable[[int, Sequence[Rows]], None] | None = None,
) -> Take:
    """A select on an event; `put`: where its rows go, `leave`: what happens to what it has found."""
    plan, kind, e, note = instance.plan, instance.kind, instance.environment, tape.note
    find, where = _finding(instance, store), predicate(plan.where)
    if isinstance(kind, PerRow) and kind.values_of is not None and plan.finish == Finish():
        return _each(instance, kind.values_of, find, tape, put, leave)

    def finished(found: Sequence[Rows]) -> Sequence[Values]:
        return [row.values for row in instance.finished([each.out for each in instance.outputs.update(found, ()).new])]

    at_once = values_at_once(kind)
    made = finished if plan.finish != Finish() else lambda found: at_once(found, ())[0]

    def take(place: int, row: Row) -> bool:
        e.arriving = True
        found: list[Rows] = [r for other in find(row) if where(r := (row, other), (), e)]
        if found or plan.total:
            kind.clear()
            new = made(found)
            kind.clear()
            for values in new:
                if put is not None:
                    put(values)
                note((place, 1, values))
        if found and leave is not None:
            leave(place, found)
        return True

    return take


def _each(
    instance: OnSelectInstance,
    values_of: ValuesOf,
    find: Callable[[Row], Sequence[Row]],
    tape: Tape,
    put: Callable[[Values], None] | None,
    leave: Callable[[int, Sequence[Rows]], None] | None,
) -> Take:
    """A row for each that is found."""
    e, note, where = instance.environment, tape.note, predicate(instance.plan.where)

    def take(place: int, row: Row) -> bool:
        e.arriving = True
        found: list[Rows] = [r for other in find(row) if where(r := (row, other), (), e)]
        for values in [values for r in found if (values := values_of(None, r)) is not None]:
            if put is not None:
                put(values)
            note((place, 1, values))
        if found and leave is not None:
            leave(place, found)
        return True

    return take


def _finding(instance: OnSelectInstance, store: Store) -> Callable[[Row], Sequence[Row]]:
    """The rows that an event may find."""
    e = instance.environment
    places, exprs, _ = ByKey(instance.plan.where, 1).key(store)
    if not places or not isinstance(store, Table | NamedWindow):
        return lambda row: instance.found((row,))
    sole: Callable[[Any], Any] = store.find if isinstance(store, Table) else store.finder(places).sole
    key = row_key(exprs)(e)

    def found(row: Row) -> Sequence[Row]:
        other = sole(key(row))
        if other is None:
            return ()
        return (other,) if isinstance(other, Row) else instance.found((row,))

    return found
