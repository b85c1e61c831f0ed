"""Aggregates or a window over the matches of a pattern: each match is an event of a stream, whose fields are those of its events.

State: that of the pattern, and that of the core that the matches go through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Batch, Output
from rollup.engine.columns.cores.core import BeforeAnother, Core
from rollup.engine.columns.cores.matched import Matched
from rollup.engine.columns.cores.patterns import flat, pattern_of, places_in
from rollup.engine.columns.cores.renewing import Renewing
from rollup.engine.columns.cores.rewriting import rewritten
from rollup.engine.columns.cores.selected import selected
from rollup.engine.columns.evaluate import carried
from rollup.engine.expressions import Field
from rollup.engine.rows.plans import Filter, PatternInput, Select, StreamInput
from rollup.engine.rows.windows.counted import KeepAll, Length, LengthBatch
from rollup.engine.rows.windows.timed import Time, TimeBatch
from rollup.engine.state import State
from rollup.engine.types import RowType

_MATCHES = "matches"
_WINDOWS = KeepAll | Length | LengthBatch | Time | TimeBatch


@dataclass(frozen=True)
class OfMatches(BeforeAnother):
    """The statement; `plan`: as one over the stream of matches, whose fields are of `type`."""

    pattern: Matched | Renewing
    main: Core
    plan: Select
    type: RowType

    @property
    def kinds(self) -> list[pa.DataType]:
        """What the fields of a match are carried as."""
        return [carried(kind) for kind in self.type.fields.values()]

    def start(self, now: int) -> State:
        """Nothing waits, nothing has matched."""
        return self.holding(self.pattern.start(now), self.main.start(now), now)

    def holding(self, pattern: State, main: State, now: int) -> State:
        """The state of both."""
        return State.holding({"pattern": pattern, "main": main}, {"now": now})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """What the matches that a batch completes bring about, and what the clock does."""
        held, now = state.held(), max(state.scalars["now"], batch.now)
        pattern, matches = self.pattern.step(held["pattern"], batch)
        given = Batch(matches.columns, matches.at, now, _MATCHES)
        main, output = self.main.step(held["main"], given)
        event = np.where(output.event >= 0, _placed(matches, output), TIMER)
        return self.holding(pattern, main, now), replace(output, event=event)

    @property
    def matches(self) -> bool:
        """It is a pattern."""
        return True

    def roomy(self, state: State, batch: Batch) -> bool:
        """Whether the pattern can take it."""
        return self.pattern.roomy(state.held()["pattern"], batch)


def _placed(matches: Output, output: Output) -> np.ndarray:
    """The batch's event that completed the match which brought each row."""
    return matches.event[np.maximum(output.event, 0)] if matches.rows else output.event


def of_matches(plan: Select, reads: Mapping[str, RowType]) -> OfMatches | str:
    """The core of a statement over a pattern with a window or aggregates, or the first reason against it."""
    (input,) = plan.inputs
    assert isinstance(input, PatternInput)
    if plan.projection.whole or plan.lookups or plan.rate.limited or input.prior:
        return "whole rows, look-ups or an output rate over a pattern with a window or aggregates"
    if not isinstance(input.window, _WINDOWS | None):
        return f"a pattern with the window {type(input.window).__name__}"
    pattern = pattern_of(plan, input.pattern, reads)
    if isinstance(pattern, str):
        return pattern
    places = places_in(pattern)
    kinds = [kind for each in pattern.types for kind in each.fields.values()]
    flattened = RowType(_MATCHES, {str(place): kind for place, kind in enumerate(kinds)})
    over = rewritten(plan, lambda expr: flat(expr, places))
    over = replace(over, inputs=(StreamInput(Filter(_MATCHES), input.window),))
    main = selected(over, flattened, False)
    if isinstance(main, str):
        return main
    fields = tuple(Field(0, place, kind) for place, kind in enumerate(kinds))
    return OfMatches(replace(pattern, columns=fields), main, over, flattened)
