"""What every statement's partition has: environment, look-ups, inputs in the index, timers, state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rollup.engine.row import Delta, Row, Rows, together
from rollup.engine.rows.inputs import InputState, Listening, entry_of
from rollup.engine.rows.keyed import ByKey
from rollup.engine.rows.lookups import ask
from rollup.engine.rows.patterns.matcher import Matcher
from rollup.engine.rows.plans import Input, Lookup, PatternInput, StoreInput, StreamInput, Subquery
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.running import Running, running_of
from rollup.engine.timers import Order, Phase

if TYPE_CHECKING:
    from rollup.engine.rows.component import Component
    from rollup.engine.rows.contexts.partitions import Partition
    from rollup.engine.rows.stores.named import Store
    from rollup.engine.rows.windows.base import Window


class Instance:
    """A statement in one partition. Inputs are numbered: those of the statement, then those of its sub-queries.

    `width`: with how many rows look-ups are asked, where that is always the same.
    """

    def __init__(
        self,
        name: str,
        inputs: Sequence[Input],
        lookups: Sequence[Lookup],
        where: Partition,
        order: Order,
        width: int = 0,
    ) -> None:
        self.name, self.order, self.partition = name, order, where
        self.component: Component = where.component
        self.runner = self.component.runner
        self.environment: Environment = self.runner.environment.child(where.properties, where.variables)
        self.alive = False
        self.inputs = [InputState(spec, self) for spec in inputs]
        self.sole = len(inputs) == 1 and plain(inputs[0])
        """Whether there is one input, the events of a stream, of which nothing is kept."""
        asked = {each.input for each in lookups if isinstance(each, Subquery)}
        self._sought = {number for number in asked if self.inputs[number].findable}
        """The windows of sub-queries whose rows can be found by what they hold."""
        self._remembers = any(state.remembers for state in self.inputs)
        windows = enumerate(state.window for state in self.inputs)
        self._timed = [(number, window) for number, window in windows if window is not None and window.timed]
        """The windows that may ask for an instant, and their inputs."""
        running = (
            running_of(lookups, inputs, width, self.environment, self._followed) if width else [None] * len(lookups)
        )
        kept_up = [each for each in running if each is not None]
        self._running = sorted(kept_up, key=lambda each: isinstance(inputs[each.input], StoreInput))
        """What keeps up the aggregates of sub-queries, those over stores last."""
        self.environment.ask = [ask(lookup, self, kept) for lookup, kept in zip(lookups, running, strict=True)]
        self._listening = Listening(self.runner)
        self._matchers: dict[int, Matcher] = {}
        self._gone: list[tuple[int, Delta]] = []

    # what windows and look-ups ask of their home

    def row(self, values: Sequence[Any]) -> Row:
        """A new row."""
        return self.runner.row(values)

    def input(self, number: int) -> InputState:
        """One of the inputs."""
        return self.inputs[number]

    def store(self, name: str) -> Store:
        """A named window or table, as this partition sees it."""
        return self.component.store(name, self.partition)

    def running(self, number: int) -> Running | None:
        """What keeps up the aggregates over an input of a sub-query, where something does."""
        return next((each for each in self._running if each.input == number), None)

    def _followed(self, name: str) -> bool:
        return self.store(name).told

    def held(self, number: int) -> Sequence[Row]:
        """The rows that an input holds."""
        state = self.inputs[number]
        if isinstance(state.spec, StoreInput):
            return state.passing(self.store(state.spec.store).shown())
        return list(state.window.shown()) if state.window is not None else []

    def held_for(self, number: int, by_key: ByKey, r: Rows) -> Sequence[Row]:
        """The rows that an input holds, without those that cannot fulfil a condition over `r` and them."""
        state = self.inputs[number]
        if isinstance(state.spec, StoreInput):
            found = by_key.rows(self.store(state.spec.store), r, self.environment, shown=True)
            if found is not None:
                return state.passing(found)
        elif state.findable and (found := by_key.rows(state, r, self.environment)) is not None:
            return found
        return self.held(number)

    # life

    def start(self) -> None:
        """Begin to listen; `filled` gets what stores held before."""
        self.alive = True
        for number, state in enumerate(self.inputs):
            if isinstance(state.spec, StoreInput) and state.spec.follow:
                rows = state.passing(self.store(state.spec.store).content())
                if rows:
                    state.remember(rows)
                    self.fill(number, rows)
        for _, each in self._observing():
            self._fill(each)
        self.listen()
        for matcher in self._matchers.values():
            matcher.start()
        self.ask_timers()

    def listen(self) -> None:
        """Put filters into the index, follow stores, make patterns."""
        for number, state in enumerate(self.inputs):
            self._attach(number, state.spec)

        for store, each in self._observing():
            passing = self.inputs[each.input].condition
            store.observers[id(each)] = each.change if passing is None else partial(_passed, each, passing)

    def _observing(self) -> Iterator[tuple[Store, Running]]:
        """The stores of whose rows aggregates are kept up, and what keeps them."""
        for each in self._running:
            spec = self.inputs[each.input].spec
            if isinstance(spec, StoreInput):
                yield self.store(spec.store), each

    def _fill(self, running: Running) -> None:
        """What an input holds counts for a sub-query's aggregates, as it came."""
        held: list[Row] = sorted(self.held(running.input), key=lambda row: row.id)
        running.change(held, ())

    def _attach(self, number: int, spec: Input) -> None:
        if isinstance(spec, StreamInput):
            entry = entry_of(spec.filter, self, number, self.environment, self.partition.narrow)
            self._listening.add(spec.filter.stream, entry)
        elif isinstance(spec, PatternInput):
            self._matchers[number] = Matcher(
                spec.pattern,
                self.runner,
                self.order,
                partial(self._matched, number),
                self.partition.narrow,
                self.environment,
            )
        elif spec.follow:
            self.store(spec.store).consumers.append((self, number))

    def stop(self) -> None:
        """The partition ends."""
        self.alive = False
        self._listening.stop()
        for matcher in self._matchers.values():
            matcher.stop()
        for state in self.inputs:
            if isinstance(state.spec, StoreInput) and state.spec.follow:
                self.store(state.spec.store).leave(self)
        for store, each in self._observing():
            store.observers.pop(id(each), None)
        self.runner.timers.forget(self)

    def end(self) -> None:
        """The partition is about to end by itself: what is to be said at the end."""

    # events

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """An event that concerns some inputs; sub-queries see it before the statement."""
        if not self.alive:
            return
        if len(inputs) == 1:
            self._change({inputs[0]: self.inputs[inputs[0]].arrive((row,))})
        else:
            self._change({number: self.inputs[number].arrive((row,)) for number in sorted(inputs, reverse=True)})
        self.ask_timers()

    def followed(self, numbers: Sequence[int], delta: Delta) -> None:
        """A store that some inputs follow has changed, which is one change."""
        if self.alive:
            deltas = {number: part for number in numbers if (part := self.inputs[number].follow(delta))}
            if deltas:
                self._change(deltas)
                self.ask_timers()

    def fire(self, phase: Phase, now: int) -> None:
        """A timer is due: the windows that are due make one change together, those of several keys one after the other, of
        which then comes one delivery.
        """
        if not self.alive:
            return
        if phase is self.window_phase:
            begin = len(self.runner.deliveries)
            while due := self._due(now):
                deltas = {number: self._fired(window, now) for _, number, window in (due if self.joins else due[:1])}
                self._change({-number: delta for number, delta in deltas.items() if delta})
            if any(window.keyed for _, window in self._timed):
                self.runner.deliver_together(self.name, begin)
        else:
            self.fire_outputs(now)
        self.ask_timers()

    def _fired(self, window: Window, now: int) -> Delta:
        """What a window that is due lets out: of several keys each by itself, unless their rows are ordered together."""
        found = [window.fire(now)]
        while window.keyed and self.takes_together and window.due is not None and window.due <= now:
            found.append(window.fire(now))
        return found[0] if len(found) == 1 else together(found)

    def _due(self, now: int) -> list[tuple[int, int, Window]]:
        """The windows that are due, with minus the number of their input: at one instant sub-queries before the rest."""
        due: list[tuple[int, int, Window]] = []
        for number, window in self._timed:
            at = window.due
            if at is not None and at <= now:
                due.append((at, -number, window))
        due.sort()
        return due

    def _matched(self, number: int, matches: Sequence[Any]) -> None:
        """Each match is a change of its own, also where one event makes several; what comes of them is one delivery.

        A join makes one change of them, and so does an order; the window takes one after the other all the same. Where the
        pattern chooses among the matches of an event, those that it leaves come together.
        """
        runner = self.runner
        begin, pattern = len(runner.deliveries), self._matchers[number].pattern
        rows = [runner.row(match) for match in matches]
        turns = [rows] if pattern.suppress or pattern.discard else [[row] for row in rows]
        for change in [turns] if self.takes_together else [[turn] for turn in turns]:
            if self.alive:
                self.arrived(number, change)
        self.ask_timers()
        if len(runner.deliveries) > begin + 1:
            runner.deliver_together(self.name, begin)

    def arrived(self, number: int, turns: Sequence[Sequence[Row]]) -> None:
        """Rows of an input, turn by turn, that are one change."""
        self._change({number: self.inputs[number].in_turn(turns)})

    def _change(self, deltas: dict[int, Delta]) -> None:
        if self._remembers:
            self._forget()
        if self._sought or self._running:
            for number, delta in deltas.items():
                self.keep_up(number, delta)
        self.changed(deltas)
        if self._remembers:
            self._gone += deltas.items()

    def keep_up(self, number: int, delta: Delta) -> None:
        """An input has changed: what its sub-query keeps of it."""
        if number in self._sought:
            self.inputs[number].moved(delta)
        for each in self._running:
            if each.input == number:
                each.change(delta.new, delta.old)

    def _forget(self) -> None:
        """What left with the change before needs no earlier rows: an output may have asked for them until now.

        Without a window rows leave as they come, and are needed as long as they wait for an output.
        """
        kept = list[tuple[int, Delta]]()
        for number, delta in self._gone:
            if self.waiting and self.inputs[number].window is None:
                kept.append((number, delta))
            else:
                self.inputs[number].forget(delta)
        self._gone = kept

    def ask_timers(self) -> None:
        """Ask for the next instants."""
        if self._timed:
            self.runner.timers.ask(self, self.window_phase, self.due_window)
        if self.clocked:
            self.runner.timers.ask(self, Phase.OUTPUT, self.due_output())

    @property
    def due_window(self) -> int | None:
        """The next instant of the windows."""
        found: int | None = None
        for _, window in self._timed:
            due = window.due
            if due is not None and (found is None or due < found):
                found = due
        return found

    # what a statement makes of it

    def asks(self, number: int) -> bool:
        """Whether an input is that of a sub-query."""
        return False

    @property
    def joins(self) -> bool:
        """Whether inputs that change at one instant make one change together."""
        return True

    @property
    def takes_together(self) -> bool:
        """Whether the matches of one event, or what the windows of several keys let out, are ordered and limited together."""
        return False

    def changed(self, deltas: dict[int, Delta]) -> None:
        """Inputs have changed."""
        raise NotImplementedError

    def fill(self, number: int, rows: Sequence[Row]) -> None:
        """A store held rows before the statement began."""

    def fire_outputs(self, now: int) -> None:
        """The clock of the outputs is due."""

    @property
    def waiting(self) -> bool:
        """Whether changes wait for an output that evaluates them."""
        return False

    clocked = False
    """Whether the outputs have a clock."""
    window_phase = Phase.WINDOW
    """When, at one instant, the windows let rows out."""

    def due_output(self) -> int | None:
        """The next instant of the outputs' clock."""
        return None

    def variables_set(self, names: Collection[str]) -> None:
        """Variables have been set."""

    def rows(self) -> list[Row]:
        """What the statement would show now."""
        return []

    # state

    def snapshot(self) -> Any:
        """Inputs and patterns."""
        matchers = [[number, matcher.snapshot()] for number, matcher in self._matchers.items()]
        gone = [[number, list(delta.new), list(delta.old)] for number, delta in self._gone]
        running = [each.snapshot() for each in self._running]
        return [[state.snapshot() for state in self.inputs], matchers, self.kept(), gone, running]

    def restore(self, state: Any) -> None:
        """Go on, instead of `start`."""
        inputs, matchers, kept, gone, *running = state
        self._gone = [(number, Delta(new, old)) for number, new, old in gone]
        for each, inner in zip(self.inputs, inputs, strict=True):
            each.restore(inner)
        saved = running[0] if running else ()
        for place, each in enumerate(self._running):
            if place < len(saved):
                each.restore(saved[place])
            else:  # a state of before sub-queries kept theirs up
                self._fill(each)
        self.restore_kept(kept)
        self.alive = True
        self.listen()
        for number, inner in matchers:
            self._matchers[number].restore(inner)
        self.ask_timers()

    def kept(self) -> Any:
        """What the statement itself keeps."""
        return None

    def restore_kept(self, state: Any) -> None:
        """Go on with what the statement kept."""


def _passed(
    running: Running,
    passing: Callable[[Iterable[Row | None]], list[Row]],
    new: Iterable[Row | None],
    old: Iterable[Row | None],
) -> None:
    running.change(passing(new), passing(old))


def plain(input: Input) -> bool:
    """Whether an input is the events of a stream, of which nothing is kept."""
    return isinstance(input, StreamInput) and input.window is None and not input.unnest and not input.prior
