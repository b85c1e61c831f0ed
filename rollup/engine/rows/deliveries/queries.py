"""A query at work: its input, its select, its rate, and where its rows go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rollup.engine.expressions import Expr
from rollup.engine.rows.deliveries.inputs import (
    Input,
    JoinInput,
    JoinSpec,
    PatternInput,
    SequenceInput,
    Stored,
    StreamInput,
    StreamSpec,
)
from rollup.engine.rows.deliveries.item import Chunk, Item
from rollup.engine.rows.deliveries.rates import Aggregated, Rate, Rates, Snapshots
from rollup.engine.rows.deliveries.selecting import Selected, Selection, Selector
from rollup.engine.rows.patterns.algebra import FilterNode, Pattern, nodes
from rollup.engine.rows.patterns.sequence import Sequence as SequenceSpec
from rollup.engine.rows.runner import Runner
from rollup.engine.timers import Order, Phase

InputSpec = StreamSpec | JoinSpec | Pattern | SequenceSpec


@dataclass(frozen=True)
class InsertSpec:
    """Rows go into a stream, a table or a shared window."""

    target: str


@dataclass(frozen=True)
class ChangeSpec:
    """Rows change a table: the condition and the new values see the table's row (input 0) and the query's (input 1).

    `inserted`: of a row that matches none, by column of the table, the place in the query's row, or None for null.
    """

    action: Literal["delete", "update", "upsert"]
    target: str
    on: Expr
    places: tuple[int, ...] = ()
    values: tuple[Expr, ...] = ()
    inserted: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class QuerySpec:
    """A query; `inner`: of the names in it, those of streams of its partition."""

    input: InputSpec
    selection: Selection
    rate: Rate | None
    output: InsertSpec | ChangeSpec


def streams_of(spec: InputSpec) -> list[str]:
    """The streams that an input reads."""
    match spec:
        case StreamSpec():
            return [spec.stream]
        case JoinSpec():
            return list(dict.fromkeys(side.stream.stream for side in (spec.left, spec.right) if side.listens))
        case Pattern():
            return list(dict.fromkeys(node.stream for node in nodes(spec.root) if isinstance(node, FilterNode)))
        case SequenceSpec():
            return list(dict.fromkeys(node.stream for step in spec.steps for node in step.nodes))


FindStored = Callable[[str], Stored]
Write = Callable[[Sequence[Selected]], None]


class Query:
    """A query of an app, or of one key of a partition."""

    def __init__(self, spec: QuerySpec, runner: Runner, order: Order, stored: FindStored, write: Write) -> None:
        self.spec, self.order, self._runner, self._write = spec, order, runner, write
        self._selector = Selector(spec.selection, runner)
        self._rates = self._rate()
        self._input = self._built(stored)
        self._asked = False

    def _rate(self) -> Rates | Snapshots | None:
        rate, selection = self.spec.rate, self.spec.selection
        if rate is None:
            return None
        if rate.mode == "snapshot":
            source = self.spec.input
            windowed = isinstance(source, JoinSpec) or (isinstance(source, StreamSpec) and source.window is not None)
            return Snapshots(rate, self._leave, self._runner.now, windowed, Aggregated(selection.columns))
        return Rates(rate, self._leave, self._runner)

    def _built(self, stored: FindStored) -> Input:
        match self.spec.input:
            case StreamSpec():
                return StreamInput(self.spec.input, self._runner, self._emit)
            case JoinSpec():
                return JoinInput(self.spec.input, self._runner, self._emit_each, stored)
            case Pattern():
                return PatternInput(self.spec.input, self._runner, self.order, self._emit_each)
            case SequenceSpec():
                return SequenceInput(self.spec.input, self._runner, self._emit)

    def start(self) -> None:
        """Begin: patterns look from now on, rates tick from now on."""
        if isinstance(self._input, PatternInput):
            self._input.start()
        self.ask()

    def stop(self) -> None:
        """End: nothing of it is due any more."""
        if isinstance(self._input, PatternInput):
            self._input.stop()
        self._runner.timers.forget(self)

    @property
    def waits(self) -> bool:
        """Whether its window gives something at an instant to come."""
        return self._input.due is not None

    def deliver(self, stream: str, chunk: Sequence[Item]) -> None:
        """A delivery of one of its streams."""
        self._input.deliver(stream, chunk)
        self.ask()

    def fire(self, phase: Phase, now: int) -> None:
        """A timer of its window or of its rate is due."""
        if phase is Phase.WINDOW:
            self._input.fire(now)
        elif self._rates is not None:
            self._rates.fire(now)
        self.ask()

    def ask(self) -> None:
        """Tell the timers what is due next."""
        due = self._input.due
        if due is not None or self._asked:
            self._asked = due is not None
            self._runner.timers.ask(self, Phase.WINDOW, due)
        if self._rates is not None:
            self._runner.timers.ask(self, Phase.OUTPUT, self._rates.due)

    def _emit(self, chunk: Chunk) -> None:
        self._emit_each([chunk])

    def _emit_each(self, chunks: list[Chunk]) -> None:
        rows = self._selector.select(chunks)
        if not rows:
            return
        if self._rates is None:
            self._leave(rows)
        else:
            self._rates.offer(rows)

    def _leave(self, rows: list[Selected]) -> None:
        self._write(rows)

    def snapshot(self) -> Any:
        """Input, groups, rate."""
        rates = None if self._rates is None else self._rates.snapshot()
        return [self._input.snapshot(), self._selector.snapshot(), rates]

    def restore(self, state: Any) -> None:
        """Go on from a snapshot."""
        self._input.restore(state[0])
        self._selector.restore(state[1])
        if self._rates is not None:
            self._rates.restore(state[2])
        self.ask()
