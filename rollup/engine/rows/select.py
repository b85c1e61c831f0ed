"""A select in one partition: inputs → join → condition → rows → rate → listeners and targets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from rollup.engine.compiling import compiled, predicate
from rollup.engine.reals import orderable
from rollup.engine.row import NOTHING, Delta, Row, Rows, comparable
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.pairing import pairs
from rollup.engine.rows.plans import Finish, PatternInput, Select, StoreInput, StreamInput
from rollup.engine.rows.seeking import seeking
from rollup.engine.rows.selects.collecting import Shown, outs
from rollup.engine.rows.selects.grouping import Aggregation, groups_of
from rollup.engine.rows.selects.joining import Join
from rollup.engine.rows.selects.pergroup import PerGroup
from rollup.engine.rows.selects.projecting import Out, Projector
from rollup.engine.rows.selects.rates import Outputs
from rollup.engine.rows.selects.selecting import Change, Changes, Kind, PerRow, Total
from rollup.engine.rows.stores.tabling import TableGroups
from rollup.engine.timers import Order, Phase

if TYPE_CHECKING:
    from rollup.engine.rows.contexts.partitions import Partition


class SelectInstance(Instance):
    """A select at work."""

    asked = False
    """Whether something else than its inputs makes it say what it has."""

    def __init__(self, name: str, plan: Select, where: Partition, order: Order) -> None:
        width = 0 if self.asked else len(plan.inputs)
        super().__init__(name, (*plan.inputs, *plan.own_inputs), plan.lookups, where, order, width)
        self.plan = plan
        self._width = len(plan.inputs)
        self._where = predicate(plan.where) if plan.where is not None else None
        self._join = Join(plan.join, self.environment) if plan.join is not None else None
        self.pairs = pairs(plan.inputs, plan.join, plan.where, self.environment, lambda name: self.store(name).told)
        """The combinations of a join of windows; None where it is no such join."""
        self.seeking = seeking(plan.inputs, plan.join, plan.where, self.environment) if not self.asked else None
        """The combinations of a join of events with the rows of a store; None where it is no such join."""
        found = self.pairs is not None or self.seeking is not None
        self._alone = None if found or plan.join is None else plan.join.only
        """The one input of a join that brings rows about, where nothing is kept of the others but their windows."""
        self.kind = self._kind()
        alone = plan.join is not None and (plan.join.only is not None or (plan.join.alone and not plan.rate.limited))
        self.clocked = plan.rate.ticks or plan.rate.when is not None
        window = self.inputs[0].window if self.clocked and plan.join is None else None
        if window is not None and window.keyed and window.timed:
            self.window_phase = Phase.KEYS  # windows that are made after the clock of the outputs
        self._released: dict[int, Delta] = {}
        """The change at hand: what comes in it is the content of a window that has just let a batch out."""
        self._plain = plan.finish == Finish()
        self._sole = self.inputs[0] if _sole(plan) and not self.asked else None
        self._contained = any(isinstance(each, StreamInput) and each.unnest for each in plan.inputs)
        self._adds_up = not alone or _adds_up(plan, self.kind)
        self.outputs = Outputs(
            plan.rate,
            self.kind,
            self.kind.update if self._adds_up else self._update,
            self.content,
            self.environment,
            self._emit,
            lambda name, value: self.component.assign(name, value, self.partition),
            plan.emitted,
            bool(plan.finish.descending),
            plan.tells_what_leaves,
        )
        self._direct = self.outputs.direct
        """Whether nothing ever waits for an output."""
        self._leaves = not plan.comes_alone
        """Whether rows that leave make a difference."""

    def _kind(self) -> Kind:
        plan, e = self.plan, self.environment
        projector = Projector(plan.projection, e, self.runner.row)
        kept = [TableGroups(plan.into, self)] if plan.into is not None else None
        if plan.grouping is not None:
            ever = plan.unbounded or plan.rate.mode in ("all", "last")
            levels = Aggregation(kept or groups_of(plan.grouping.levels, e))
            own = Aggregation(groups_of(plan.grouping.own, e))
            mode, told = plan.rate.mode, plan.projection.having is not None and plan.makes_what_leaves
            again = told and mode == ("all" if plan.grouping.whole else "last")
            stepwise = plan.rate.limited and (mode == "first" or again)
            return PerGroup(projector, plan.grouping, levels, own, ever, plan.makes_what_leaves, stepwise)
        found = Aggregation(kept or groups_of(plan.levels, e)) if kept or plan.levels else None
        if plan.total and found is not None:
            return Total(projector, found, self._width, plan.makes_what_leaves)
        return PerRow(projector, found, plan.grouped, plan.rate.mode == "all", plan.makes_what_leaves)

    def start(self) -> None:
        """Hear of variables where an output depends on them."""
        super().start()
        self._hear(True)

    def stop(self) -> None:
        """Hear of nothing."""
        super().stop()
        self._hear(False)

    def _hear(self, hears: bool) -> None:
        if self.plan.rate.when is not None:
            self.component.hears_variables(self, hears)

    def asks(self, number: int) -> bool:
        """Whether an input is that of a sub-query."""
        return number >= self._width

    @property
    def joins(self) -> bool:
        """Whether inputs that change at one instant make one change together."""
        return self._join is not None

    @property
    def takes_together(self) -> bool:
        """Whether the matches of one event, or what the windows of several keys let out, are ordered and limited together."""
        return self.joins or bool(self.plan.finish.descending)

    # changes

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """An event; where nothing is kept of it, what it makes leaves at once."""
        if self._sole is None:
            super().receive(inputs, row)
        elif self.alive:
            window = self._sole.window
            if window is None:
                self._moved(Delta((row,), ()))
            else:
                self._moved(window.enter((row,), self.environment.clock.now))
            if self._timed or self.clocked:
                self.ask_timers()

    def arrived(self, number: int, turns: Sequence[Sequence[Row]]) -> None:
        """Rows of an input, turn by turn, that are one change."""
        if self._sole is None:
            super().arrived(number, turns)
        else:
            self._moved(self._sole.in_turn(turns))

    def followed(self, numbers: Sequence[int], delta: Delta) -> None:
        """A store that some inputs follow has changed."""
        if self._sole is None:
            super().followed(numbers, delta)
        elif self.alive and (part := self._sole.follow(delta)):
            self._moved(part)
            if self.clocked:
                self.ask_timers()

    def _moved(self, delta: Delta) -> None:
        """The only input has changed."""
        new, old, forced = delta
        came: Sequence[Rows] = [*zip(new)]
        left: Sequence[Rows] = [*zip(old)]
        if self._where is not None:
            came, left = self._passing(came), self._passing(left, False)
            forced = forced and bool(came or left)
        if not (came or left or forced):
            return
        if self._direct or self.outputs.direct:
            self._at_once(came, left, forced)
        else:
            self._released = {0: delta}
            self.outputs.take(came, left, forced)
            self._released = {}

    def changed(self, deltas: dict[int, Delta]) -> None:
        """The statement's own inputs have changed; those of sub-queries matter only when they are asked."""
        if self._sole is not None:
            for delta in deltas.values():
                self._moved(delta)
            return
        own = deltas
        if self.plan.own_inputs:
            own = {number: delta for number, delta in deltas.items() if number < self._width}
        if self._alone is not None and self._alone not in own:
            return
        new, old = self._rows(own)
        forced = False
        passes = self._where is None or new or old  # a condition lets a change through that has rows
        if self._join is None and passes:
            for delta in own.values():
                forced = forced or delta.forced
        if forced and not (new or old) and self._contained:  # only a total says something of a change without rows
            forced = isinstance(self.kind, Total)
        if new or old or forced:
            self._released = own
            if self.outputs.direct:
                self._at_once(new, old, forced)
            else:
                self.outputs.take(new, old, forced)
            self._released = {}

    def _at_once(self, new: Sequence[Rows], old: Sequence[Rows], forced: bool) -> None:
        """What a change makes leaves with it: no output has to be waited for."""
        if self._plain and self._adds_up:
            come, leave = self.kind.at_once(new, old)
            if come or leave or forced:
                self._give(come, leave, forced)
            return
        changes = self.outputs.update(new, old)
        if changes.new or changes.old or forced:
            come, leave = [change.out for change in changes.new], [change.out for change in changes.old]
            self._give(self.finished(come), self.finished(leave), forced)

    def _update(self, new: Sequence[Rows], old: Sequence[Rows]) -> Changes:
        """Nothing is kept of a join that one input alone brings about, or each by itself: see `_adds_up`."""
        self.kind.clear()
        return self.kind.update(new, old)

    def fill(self, number: int, rows: Sequence[Row]) -> None:
        """What a store held counts for the aggregates; in a join it is kept, or looked at when it is needed."""
        if self.pairs is not None and number < self._width:
            self.pairs.fill(number, sorted(rows, key=lambda row: row.id))
        elif self._join is None and number < self._width:
            self.kind.fill(self._passing([(row,) for row in rows]))

    def _rows(self, deltas: dict[int, Delta]) -> tuple[Sequence[Rows], Sequence[Rows]]:
        if self.pairs is not None:
            new, old = self.pairs.change(deltas, self._leaves)
            if self.pairs.exact:
                return new, old
        elif self.seeking is not None:
            new, old = self.seeking.change(deltas, self.held_for)
        elif self._join is not None:
            new, old = self._join.change(deltas, lambda number: self._content_of(number, deltas))
        else:
            delta = deltas.get(0, NOTHING)
            new, old = [(row,) for row in delta.new], [(row,) for row in delta.old]
        return self._passing(new), self._passing(old, False)

    def left(self, number: int, rows: Sequence[Row]) -> None:
        """Rows have left the window of an input, and nobody hears of it."""
        if self.pairs is not None:
            self.pairs.drop(number, rows)

    def _content_of(self, number: int, deltas: dict[int, Delta]) -> Sequence[Row]:
        """What an input of a join holds; without a window it is what comes now, while all inputs come together."""
        state = self.inputs[number]
        if state.window is None and not isinstance(state.spec, StoreInput):
            return deltas[number].new if number in deltas else ()
        return self.held(number)

    def _passing(self, rows: Sequence[Rows], arriving: bool = True) -> Sequence[Rows]:
        where, e = self._where, self.environment
        e.arriving = arriving
        return rows if where is None else [r for r in rows if where(r, (), e)]

    # outputs

    def fire(self, phase: Phase, now: int) -> None:
        """Timers. An output of a join shows what was joined before the windows of that instant let rows out."""
        if phase is Phase.WINDOW and self.alive and self._join is not None:
            self.outputs.fire(now)
        window = None if self._sole is None else self._sole.window
        if phase is not Phase.WINDOW or window is None or window.keyed:
            super().fire(phase, now)
        elif self.alive:
            while (due := window.due) is not None and due <= now:
                self._moved(window.fire(now))
            self.ask_timers()

    def fire_outputs(self, now: int) -> None:
        """The clock of the outputs."""
        self.outputs.fire(now)

    @property
    def waiting(self) -> bool:
        """Whether changes wait for an output that evaluates them."""
        return self.outputs.waiting

    def due_output(self) -> int | None:
        """The clock of the outputs."""
        return self.outputs.due

    def variables_set(self, names: Collection[str]) -> None:
        """An output may depend on them."""
        if self.outputs.variables & set(names):
            self.outputs.variable_changed()
            self.ask_timers()

    def end(self) -> None:
        """What is shown at the end."""
        self.outputs.end()

    def _emit(self, shown: Shown, forced: bool) -> None:
        self._give(self.finished(shown.new), self.finished(shown.old), forced)

    def _give(self, new: list[Row], old: list[Row], forced: bool) -> None:
        target = self.plan.target
        if target is not None:
            for rows in (new if target.arriving else (), old if target.leaving else ()):
                for row in rows:
                    self.component.insert(target.name, self.partition, self.runner.row(target.of(row.values)))
        emitted = self.plan.emitted
        if emitted == "old":
            new, old = old, []
        self.runner.deliver(self.name, Delta(new, old if emitted == "both" else (), forced))

    def finished(self, found: Sequence[Out]) -> list[Row]:
        """The rows of one output: in order, of these those within the limit, and of them each once."""
        if self._plain:
            return [out.row for out in found]
        finish = self.plan.finish
        rows = list(found)
        if finish.descending and len(rows) > 1:
            rows.sort(key=cmp_to_key(lambda a, b: compare(a.order, b.order, finish.descending)))
        if finish.limit is not None:
            start = compiled(finish.offset)((), (), self.environment) if finish.offset is not None else 0
            count = compiled(finish.limit)((), (), self.environment)
            rows = rows[start or 0 : None if count is None or count < 0 else (start or 0) + count]
        if finish.distinct:
            seen: dict[Any, Out] = {}
            for out in rows:
                seen.setdefault(comparable(out.row.values), out)
            rows = list(seen.values())
        return [out.row for out in rows]

    # what is there

    def content(self) -> list[Change]:
        """The rows as they are now."""
        if self._join is not None:
            rows = self._join.all(lambda number: self._content_of(number, {}))
        elif self.inputs[0].window is None and not isinstance(self.inputs[0].spec, StoreInput):
            return self.kind.content(None)
        else:
            rows = [(row,) for row in self._kept_now()]
        return self.kind.content(self._passing(rows))

    def _kept_now(self) -> Sequence[Row]:
        """What the input holds; a batch that is being let out is there until the change is over.

        Of a named window of batches that is what waits for the next one.
        """
        state = self.inputs[0]
        window, released = state.window, self._released.get(0, NOTHING).new
        if isinstance(state.spec, StoreInput):
            return state.passing(self.store(state.spec.store).content())
        if window is None:
            return self.held(0)
        if not released or not window.in_batches or window.moved_on:
            return list(window.content())
        return [*window.content(), *released] if window.keyed else released

    def rows(self) -> list[Row]:
        """What the statement would show now; of groups without a window nothing is known."""
        unbounded = isinstance(self.inputs[0].spec, (StreamInput, PatternInput)) and self.inputs[0].window is None
        if isinstance(self.kind, PerGroup) and unbounded and self._join is None and self.plan.rate.mode != "snapshot":
            return []
        return self.finished(outs(self.content()))

    def kept(self) -> Any:
        """Aggregates and outputs."""
        return [self.kind.snapshot(), self.outputs.snapshot()]

    def refill_pairs(self) -> None:
        """The combinations of a join are those of what its inputs hold."""
        if self.pairs is not None:
            self.pairs.clear()
            for place in range(self._width):
                self.pairs.fill(place, sorted(self.held(place), key=lambda row: row.id))

    def restore_kept(self, state: Any) -> None:
        """Aggregates and outputs."""
        self.refill_pairs()
        self.kind.restore(state[0])
        self.outputs.restore(state[1])
        self._hear(True)


def _sole(plan: Select) -> bool:
    """Whether there is one input, of which nothing is kept but its window."""
    match plan.inputs:
        case (StreamInput(unnest=(), prior=0) | PatternInput(prior=0) | StoreInput(prior=0),):
            return plan.join is None and not plan.own_inputs
        case _:
            return False


def _adds_up(plan: Select, kind: Kind) -> bool:
    """Whether what one input alone brings about counts on between its events: where an output waits for groups."""
    rate = plan.rate
    if not rate.limited:
        return False
    if plan.grouping is not None and len(plan.grouping.sets) > 1:
        return True
    if rate.mode == "first":
        return kind.grouped
    return rate.mode in ("last", "all") and (kind.grouped or isinstance(kind, Total))


def compare(a: Sequence[Any], b: Sequence[Any], descending: Sequence[bool]) -> int:
    """The order of two rows; null stands before all else, after all else when descending; NaN behind all numbers."""
    for one, other, down in zip(map(orderable, a), map(orderable, b), descending, strict=True):
        if one == other:
            continue
        if one is None or other is None:
            less = one is None
        else:
            less = one < other
        return (1 if less else -1) if down else (-1 if less else 1)
    return 0
