"""What a store must do, whatever it is made of. One store keeps one aggregation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from rollup.aggregation.recovery import Tables
from rollup.aggregation.retrieval import Question
from rollup.aggregation.state import State
from rollup.calendar import Duration


@dataclass(frozen=True)
class Commit:
    """What one batch changes; it becomes visible whole or not at all.

    `number` counts commits of the aggregation from 1; `source` says what has been consumed, e.g. the id of the
    streaming query and its batch, so that a batch that comes again is known.
    """

    number: int
    state: State
    closed: Mapping[Duration, pa.Table]
    ledger: pa.Table | None = None
    source: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Loaded:
    """The newest commit of a store."""

    number: int
    state: State
    source: Mapping[str, Any]


class Snapshot(Protocol):
    """One consistent moment of a store: readers see every commit whole."""

    number: int

    def answer(self, question: Question, **tables: pa.Table) -> pa.Table:
        """The rows that answer a question; `tables` are further relations its query reads (`request`)."""
        ...


class Store(Tables, Protocol):
    """The tables of one aggregation."""

    def load(self) -> Loaded | None:
        """The newest commit, with all leftovers of an unfinished one removed; None when there is none."""
        ...

    def commit(self, commit: Commit) -> None:
        """Make a commit visible. Raises FencedError when its number is taken."""
        ...

    def snapshot(self) -> Snapshot:
        """The newest commit, to read from."""
        ...
