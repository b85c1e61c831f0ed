"""A program at work: batches go in, deliveries come out, and the state moves from one mode to the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

import pyarrow as pa

from rollup.core.garbage import uncollected
from rollup.engine.compiler.cache import Code, later
from rollup.engine.compiler.compiled import Compiled
from rollup.engine.compiler.interpreted import Interpreted
from rollup.engine.compiler.state import Tables, restore, save
from rollup.engine.programs.lowering.components import Program
from rollup.engine.programs.operators.base import FOREVER
from rollup.engine.timers import Phase

Mode = Literal["interpreted", "compiled", "checked"]


@dataclass(frozen=True)
class Delivery:
    """What a statement tells its listeners at once: the rows that come and those that leave."""

    statement: str
    at: int
    inserted: Sequence[tuple[Any, ...]]
    removed: Sequence[tuple[Any, ...]]


_COMPILED = 32
"""From so many events on a batch is worth machine code."""


class Running:
    """A program with a state, in one mode; `checked` is the compiled mode's checked build."""

    waits = False
    """Whether a large batch waits for machine code."""
    best: Mode = "compiled"
    """The mode of large batches."""

    def __init__(self, program: Program, mode: Mode = "interpreted", start: int = 0) -> None:
        self.program, self.mode = program, mode
        self._code: Future[Code] | None = None
        source = program.source
        self._at_work = Interpreted(source) if mode == "interpreted" else Compiled(source, mode == "checked")
        for name, value in program.constants.items():
            if name in source.layout.state.fields:
                self._at_work.set(name, value)
        self._at_work.set("now", start)

    @property
    def functions(self) -> dict[str, Any]:
        """The functions and structs of the interpreted mode, by name; fields of the state stand there as `s_…`."""
        assert isinstance(self._at_work, Interpreted)
        return self._at_work.space

    @property
    def live(self) -> int:
        """How many structs there are in the compiled mode."""
        assert isinstance(self._at_work, Compiled)
        return self._at_work.live

    def get(self, field: str) -> Any:
        """A field of the state."""
        return self._at_work.get(field)

    def set(self, field: str, value: Any) -> None:
        """A value into a field of the state."""
        self._at_work.set(field, value)

    def send(self, stream: str, columns: Sequence[pa.Array], at: pa.Array) -> None:
        """Events of a stream, each at its instant; the clock goes there before the event."""
        name, _ = self.program.streams[stream]
        self._at_work.feed(f"input_{name}", [*columns, at])
        with uncollected():
            self._at_work.call(f"run_{name}", 0, len(at))

    def advance(self, to: int, late: Phase | None = None) -> None:
        """The clock goes on through every instant that is due; `late`: at once, and what is due of a phase fires then."""
        if late is None:
            self._at_work.call("advance", to)
        else:
            self._at_work.call("jump", to, int(late))

    @property
    def dues(self) -> tuple[int | None, int | None]:
        """The next instants at which the clock lets rows out of windows, and brings an output."""
        self._at_work.call("note_due")
        window, output = (None if (due := self.get(each)) == FOREVER else due for each in ("due", "output_due"))
        return window, output

    def shown(self) -> Mapping[str, Sequence[pa.Array]]:
        """The rows that there are now, of a program whose output has been taken."""
        self._at_work.call("show")
        return self.taken()

    def taken(self) -> Mapping[str, Sequence[pa.Array]]:
        """What statements have made since the last time, column by column: instant, delivery, sign, values."""
        return {statement: self._at_work.take(field) for statement, field in self.program.outputs.items()}

    def deliveries(self) -> Iterator[Delivery]:
        """The same as deliveries, statement by statement."""
        for statement, columns in self.taken().items():
            rows = zip(*(each.to_pylist() for each in columns), strict=True)
            for _, some in groupby(rows, itemgetter(1)):
                found = list(some)
                inserted, removed = ([row[3:] for row in found if row[2] == sign] for sign in (1, -1))
                yield Delivery(statement, found[0][0], inserted, removed)

    def save(self) -> Tables:
        """The state, between two batches."""
        return save(self._at_work)

    def moved(self, mode: Mode) -> Running:
        """The program with its state in another mode, or in the same one anew."""
        made = Running(self.program, mode)
        made.restore(self.save())
        return made

    def fit(self, events: int) -> Running:
        """The program for a batch of so many events: from a large one on it is compiled, by a thread, and goes on as machine
        code when that is there."""
        if self.mode == self.best or events < _COMPILED:
            return self
        self._code = self._code or later(self.program.source, self.best == "checked")
        if not (self.waits or self._code.done()):
            return self
        self._code.result()  # raises what kept it from being made
        return self.moved(self.best)

    def restore(self, tables: Tables) -> None:
        """Go on from a state; nothing has been sent yet."""
        restore(self._at_work, tables)
