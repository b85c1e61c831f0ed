"""A running query: when its cycles come, what each takes in, and what the select makes of it.

Everything that is submitted at one instant is one cycle, so an instant is held back until a later one, or a flush, shows
that it is over. A cycle after which rows still wait is followed by another at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from rollup.core.errors import PlanError, QueryError
from rollup.engine.row import Row
from rollup.engine.rows.cycles.correlation import Correlation, CorrelationSpec
from rollup.engine.rows.cycles.partitions import Chain, PartitionSpec, Seen, earliest
from rollup.engine.rows.runner import Runner
from rollup.engine.state import Packer, State, Unpacker


@dataclass(frozen=True)
class Policy:
    """When cycles come: at arrivals (`weights`), on ticks alone (`fixed`), or at arrivals and `period` after the last."""

    kind: Literal["weights", "fixed", "sooner"] = "weights"
    period: int = 0

    def __post_init__(self) -> None:
        """Refuses a period in which time would not go on. Raises PlanError."""
        if self.kind != "weights" and self.period < 1:
            raise PlanError(f"{self.kind} at {self.period} ms", hint="a period of at least 1 ms")


@dataclass(frozen=True)
class ChainSpec:
    """The partitions over a stream, and the name of the table that the select knows them by."""

    stream: str
    parts: tuple[PartitionSpec, ...]
    table: str


@dataclass(frozen=True)
class RunningSpec:
    """A query: its chains, the correlation over them if it is an alert, and its policy."""

    chains: tuple[ChainSpec, ...]
    correlation: CorrelationSpec | None = None
    policy: Policy = Policy()
    alert: str = ""


class Batch(NamedTuple):
    """What a cycle gives: the instant, and the rows of the select."""

    at: int
    rows: list[tuple[Any, ...]]


Select = Callable[[Mapping[str, Seen]], Sequence[tuple[Any, ...]]]


class RunningQuery:
    """A query at work."""

    def __init__(
        self, spec: RunningSpec, runner: Runner, select: Select, weights: Mapping[str, Fraction], proves: bool = False
    ) -> None:
        self.proves = proves
        """Whether `prove` is asked after each batch."""
        self._entered: list[Row] = []
        self._spec, self._runner, self._select = spec, runner, select
        self._chains = [Chain(each.stream, each.parts, runner) for each in spec.chains]
        self._correlation = None if spec.correlation is None else Correlation(spec.correlation, runner)
        self._weights = weights if not self._ignores_weights() else {}
        self._weight: Fraction | int = 0
        self._begun = self._last = runner.now
        self._arrived = False

    def _ignores_weights(self) -> bool:
        return any(part.window.expires for chain in self._spec.chains for part in chain.parts)

    @property
    def due(self) -> int | None:
        """The next instant at which a cycle comes by itself."""
        if self._spec.policy.kind == "fixed":
            return self._last + self._spec.policy.period
        due = earliest(self._chains)
        if self._spec.policy.kind == "sooner":
            tick = self._last + self._spec.policy.period
            return tick if due is None else min(due, tick)
        return due

    @property
    def open(self) -> bool:
        """Whether events of the present instant wait for its end."""
        return self._arrived

    @property
    def beyond(self) -> int:
        """How many values of its partitions 64 bits did not hold so far."""
        return sum(part.beyond for chain in self._chains for part in chain.parts)

    def offer(self, stream: str, values: Sequence[Any]) -> None:
        """An event of the present instant."""
        row = self._runner.row(values)
        taken = [chain.offer(row, self._runner.now) for chain in self._chains if chain.stream == stream]
        if any(taken):  # an event that several partitions of its stream take weighs once
            self._weight += self._weights.get(stream, 1)
            self._arrived = True

    def finish(self) -> list[Batch]:
        """The present instant is over: its cycles, as many as it takes until nothing waits."""
        if not self._runs():
            return []
        batches = [self._cycle()]
        while any(chain.waiting for chain in self._chains):
            batches.append(self._cycle())
        self._weight, self._arrived, self._last = 0, False, self._runner.now
        return [batch for batch in batches if batch.rows]

    def _runs(self) -> bool:
        now, due = self._runner.now, self.due
        if due is not None and due <= now:
            return True
        return self._spec.policy.kind != "fixed" and self._arrived and self._weight >= 1

    def prove(self, copy: RunningQuery) -> None:
        """Raise QueryError where the select could not compute at the end of the present instant, or, once they are old or
        dead, with rows let in since the last call; `copy` is the query as it is now."""
        copy.finish()
        rows, self._entered = [*self._entered, *copy._entered], []
        try:
            self._prove(rows)
        except QueryError:
            for row in rows:  # together they may make what none of them does
                self._prove([row])

    def _prove(self, rows: list[Row]) -> None:
        for seen in (Seen([], rows, []), Seen([], [], rows)):
            self._select({self._spec.chains[0].table: seen})

    def _cycle(self) -> Batch:
        return Batch(self._runner.now, list(self._select(self._shown())))

    def _shown(self) -> Mapping[str, Seen]:
        """The windows after a cycle of each, as the select sees them."""
        seen = [chain.cycle(self._runner.now) for chain in self._chains]
        if self._correlation is not None:
            return {self._spec.alert: Seen(self._correlation.cycle(seen), [], [])}
        if self.proves and len(seen) == 1:
            self._entered += seen[0].new
        return {spec.table: each for spec, each in zip(self._spec.chains, seen, strict=True)}

    def snapshot(self) -> State:
        """The whole state: named tables and scalars."""
        packer = Packer()
        for place, chain in enumerate(self._chains):
            packer.node(f"chain/{place}", chain.snapshot())
        packer.node("correlation", None if self._correlation is None else self._correlation.snapshot())
        packer.node("weight", [self._weight.numerator, self._weight.denominator, self._arrived])
        return packer.state({"now": self._runner.now, "rows": self._runner.rows, "last": self._last})

    def restore(self, state: State) -> None:
        """Go on from a snapshot of the same query."""
        unpacker = Unpacker(state)
        for place, chain in enumerate(self._chains):
            chain.restore(unpacker.node(f"chain/{place}"))
        if self._correlation is not None:
            self._correlation.restore(unpacker.node("correlation"))
        top, bottom, self._arrived = unpacker.node("weight")
        self._weight, self._last = Fraction(top, bottom), state.scalars["last"]
        self._runner.environment.now, self._runner.rows = state.scalars["now"], state.scalars["rows"]
