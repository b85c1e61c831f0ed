"""When rows leave: at once, or when an output is due (every so often, at times of day, when something holds, at the end)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, Literal

from rollup.engine.compiling import compiled, predicate
from rollup.engine.expressions import Variable, walk
from rollup.engine.row import Rows
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.selects.collecting import Collector, Everything, FirstOfUnits, Groups, Shown, collector, outs
from rollup.engine.rows.selects.pergroup import PerGroup
from rollup.engine.rows.selects.projecting import Out
from rollup.engine.rows.selects.rate import Rate, Setting
from rollup.engine.rows.selects.selecting import Change, Changes, Kind, PerRow

INSERTED, INSERTED_EVER, REMOVED, REMOVED_EVER, LAST_OUTPUT = range(5)
"""The slots that a condition of an output sees: rows since the last output and ever, the time of the last output."""


class Saved(IntEnum):
    """Where what is kept for outputs stands in their snapshot."""

    COLLECTED = 0
    COUNTS = 1
    OPEN = 2
    WAITS = 3
    SEEN = 4
    BEGUN = 5
    SINCE = 6
    UNITS = 7
    PENDING = 8
    ASKED = 9
    DUE = 10
    LIMIT = 11


class Outputs:
    """The rate of one partition of a statement. `emit` gets every output, `set_variable` what a condition sets.

    `update` makes rows of a change of the input. Where the aggregates are not needed before an output, the changes wait
    for it as they are, and are evaluated then: what a row shows of its surroundings is what holds at the output.
    """

    def __init__(
        self,
        rate: Rate,
        kind: Kind,
        update: Callable[[Sequence[Rows], Sequence[Rows]], Changes],
        content: Callable[[], Sequence[Change]],
        environment: Environment,
        emit: Callable[[Shown, bool], None],
        set_variable: Callable[[str, Any], None],
        emitted: Literal["new", "both", "old"] = "new",
        ordered: bool = False,
        told: bool = True,
    ) -> None:
        self._rate, self._kind, self._environment, self._emit = rate, kind, environment, emit
        self.update, self._set, self._emitted = update, set_variable, emitted
        self.variables = {each.name for each in walk(rate.when) if isinstance(each, Variable)} if rate.when else set()
        """The variables that the condition of an output reads."""
        self._plain = isinstance(kind, PerRow) and kind.plain
        self._policy = _policy(rate, kind, self._plain, ordered)
        self._events = compiled(rate.events) if rate.events is not None else None
        self._when = predicate(rate.when) if rate.when is not None else None
        self._end_when = predicate(rate.end_when)
        self._after_events = compiled(rate.after_events) if rate.after_events is not None else None
        firsts = FirstOfUnits(isinstance(kind, PerGroup), self._passes) if self._policy == "units" else None
        self._collector: Collector = firsts or collector(rate.mode, kind, content, ordered, told)
        self._take = self._collected
        if update == kind.update and not self._collector.keeps:
            self._take = kind.count
        elif isinstance(kind, PerGroup) and update == kind.update and isinstance(self._collector, Groups) and not told:
            self._take = self._collector.touching
        elif update == kind.update and type(self._collector) is Everything and not (told or ordered):
            self._take = partial(_added, kind, self._collector)
        self._counts: list[Any] = [0, 0, 0, 0, environment.now]
        self._open = True
        self._waits, self._seen = rate.after_span is not None or rate.after_events is not None, 0
        self._begun = self._since = environment.now
        self._units: dict[Any, list[Any]] = {}
        self._pending: list[tuple[Sequence[Rows], Sequence[Rows]]] = []
        self._asked = False
        self._limit = 0
        """So many rows bring an output, as was known last: a variable that is null says nothing."""
        self.due: int | None = None
        self.take = self._changed
        """The input has changed."""
        at_once = self._policy == "snapshot" or (self._policy == "kept" and not self._plain)
        if at_once and not (self._waits or rate.events is not None or rate.when is not None):
            self.take = self._changed_until_due
        if rate.starts_at_once:
            self._start_clock()

    @property
    def direct(self) -> bool:
        """Whether nothing waits: what `update` makes of a change leaves with it."""
        return self._policy == "direct" and not self._waits

    def _changed_until_due(self, new: Sequence[Rows], old: Sequence[Rows], forced: bool = False) -> None:
        """What the clock or the end alone shows, where aggregates go along."""
        self._take(new, old)
        if self.due is None:
            self._start_clock()
        _add(self._counts, len(new), len(old))

    def _changed(self, new: Sequence[Rows], old: Sequence[Rows], forced: bool = False) -> None:
        if self._policy == "direct":
            changes = self.update(new, old)
            if self._let(len(changes.new)) and (changes.new or changes.old or forced):
                self._emit(Shown(outs(changes.new), outs(changes.old)), forced)
        elif self._policy == "first":
            if self._let(len(new)) and self._first(new, old):
                self._count(new, old)
        elif self._keep(new, old):
            self._count(new, old)

    def fire(self, now: int) -> None:
        """The clock of the outputs is due; what was shown already at this instant is not shown again."""
        if self.due is None or self.due > now:
            return
        if self._asked:
            self._asked, self.due = False, None
            self._show()
        elif self._rate.span is not None:
            periods = (now - self._since) // self._rate.span + 1
            self.due = self._since + periods * self._rate.span
            self._show()
        elif self._rate.schedule is not None:
            self.due = self._rate.schedule.after(now)
            self._show()

    @property
    def waiting(self) -> bool:
        """Whether changes wait as they are."""
        return bool(self._pending)

    def settle(self) -> None:
        """Evaluate the changes that wait as they are."""
        pending, self._pending = self._pending, []
        for new, old in pending:
            self._take(new, old)

    def variable_changed(self) -> None:
        """A variable has another value: a condition that holds now is shown when the clock moves next."""
        if self._when is not None and not self._asked and self._when((), self._counts, self._environment):
            self._asked, self.due = True, self._environment.now
            self._assign(self._rate.then)

    def end(self) -> None:
        """The partition ends."""
        if self._rate.at_end and self._end_when((), self._counts, self._environment):
            self._show()
            self._assign(self._rate.end_then)

    def snapshot(self) -> Any:
        """As `Saved` says what stands where."""
        units = list(self._units.items())
        kept = [self._collector.snapshot(), self._counts, self._open, self._waits, self._seen, self._begun, self._since]
        pending = [[list(new), list(old)] for new, old in self._pending]
        return [*kept, units, pending, self._asked, self.due, self._limit]

    def restore(self, state: Any) -> None:
        kept, self._counts[:], self._open, self._waits, self._seen, self._begun, self._since = state[:7]
        units, pending, self._asked, self.due, *limit = state[7:]
        self._limit = limit[0] if limit else 0  # an earlier version's had none
        self._collector.restore(kept)
        self._units = {unit: list(counts) for unit, counts in units}
        self._pending = [(new, old) for new, old in pending]

    def _keep(self, new: Sequence[Rows], old: Sequence[Rows]) -> bool:
        """Keep a change for the next output; whether it counts, `after` being over."""
        let = self._let(len(new))
        if self._policy == "snapshot" or (self._policy == "kept" and not self._plain):
            self._take(new, old)
        elif let or not self._plain or self._policy == "kept":
            self._pending.append((new, old))
        return let

    def _collected(self, new: Sequence[Rows], old: Sequence[Rows]) -> None:
        self._collector.take(self.update(new, old))

    def _let(self, arrived: int) -> bool:
        """Whether `after` is over: the change that ends it passes whole."""
        if not self._waits:
            return True
        if self._rate.after_span is not None:
            self._waits = self._environment.now < self._begun + self._rate.after_span
        elif self._after_events is not None:
            self._seen += arrived
            self._waits = self._seen <= self._after_events((), (), self._environment)
        return not self._waits

    def _start_clock(self) -> None:
        if self.due is not None:
            return
        now = self._environment.now
        if self._rate.span is not None:
            self._since, self.due = now, now + self._rate.span
        elif self._rate.schedule is not None:
            self.due = self._rate.schedule.after(now)

    def _count(self, new: Sequence[Rows], old: Sequence[Rows]) -> None:
        """Count a change; the output that it brings about."""
        if self._policy == "units":
            self._show(False)
            return
        self._start_clock()
        _add(self._counts, len(new), len(old))
        if self._events is not None:
            limit = self._many()
            if self._counts[INSERTED] >= limit or self._counts[REMOVED] >= limit:
                self._show(False)
        elif self._when is not None and self._when((), self._counts, self._environment):
            self._assign(self._rate.then)
            self._show()

    def _many(self) -> int:
        """How many rows bring an output now."""
        found = None if self._events is None else self._events((), (), self._environment)
        if found is not None:
            self._limit = found
        return self._limit

    def _show(self, forced: bool = True) -> None:
        self._open = True
        if self._policy != "first":
            self.settle()
            self._emit(self._collector.show(), forced)
        self._counts[INSERTED] = self._counts[REMOVED] = 0
        self._counts[LAST_OUTPUT] = self._environment.now

    def _assign(self, settings: Sequence[Setting]) -> None:
        for setting in settings:
            self._set(setting.variable, compiled(setting.value)((), self._counts, self._environment))

    # `first`: what comes first goes through, the rest of the interval does not.

    def _first(self, new: Sequence[Rows], old: Sequence[Rows]) -> bool:
        """Let a change through that is the first of its interval; one that shows nothing begins no interval."""
        changes = self.update(new, old)
        if not self._open:
            return True
        if not ((changes.new and self._emitted != "old") or (changes.old and self._emitted != "new")):
            return False
        self._open = False
        self._emit(Shown(outs(changes.new), outs(changes.old)), True)
        return True

    def _passes(self, unit: Any, arrived: int, left: int) -> bool:
        """Whether an interval of the unit begins: its first row, or enough rows or time since its last one."""
        now = self._environment.now
        known = self._units.get(unit)
        if self._when is not None:
            return self._unit_holds(unit, known, arrived, left)
        if known is None:
            self._units[unit] = [0, 0, now]
            return True
        known[0] += arrived
        known[1] += left
        if self._events is not None:
            limit = self._many()
            passes = known[0] >= limit or known[1] >= limit
        elif self._rate.schedule is not None:
            edge = self._rate.schedule.after(known[2])
            passes = edge is not None and edge <= now
        else:
            passes = self._rate.span is not None and now - known[2] >= self._rate.span
        if passes:
            self._units[unit] = [0, 0, now]
        return passes

    def _unit_holds(self, unit: Any, known: list[Any] | None, arrived: int, left: int) -> bool:
        """Whether the condition holds for the rows of a unit."""
        counts = self._units[unit] = known or [0, 0, 0, 0, self._environment.now]
        _add(counts, arrived, left)
        if self._when is None or not self._when((), counts, self._environment):
            return False
        counts[INSERTED] = counts[REMOVED] = 0
        counts[LAST_OUTPUT] = self._environment.now
        self._assign(self._rate.then)
        return True


def _added(kind: Kind, collector: Everything, new: Sequence[Rows], old: Sequence[Rows]) -> None:
    """The rows that come of a change are kept for the next output; nobody gets those that leave."""
    collector.add([Out(row) for row in kind.at_once(new, old)[0]], ())


def _add(counts: list[Any], arrived: int, left: int) -> None:
    """Count rows that came and left."""
    if arrived:
        counts[INSERTED] += arrived
        counts[INSERTED_EVER] += arrived
    if left:
        counts[REMOVED] += left
        counts[REMOVED_EVER] += left


Policy = Literal["direct", "snapshot", "first", "units", "kept", "pending"]
"""How changes wait: not at all; for what is there; not at all but the first; the first of each unit; as rows (`kept`);
as they are (`pending`)."""


def _policy(rate: Rate, kind: Kind, plain: bool, ordered: bool) -> Policy:
    if not rate.limited:
        return "direct"
    if rate.mode == "snapshot":
        return "snapshot"
    if rate.mode == "first":
        return "units" if kind.grouped else "first"
    if (plain and rate.mode == "last") or (rate.mode in ("last", "all") and not ordered):
        return "kept"
    return "pending"
