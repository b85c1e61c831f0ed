"""What a database still has of an aggregation whose newest commit cannot be taken up: tables gone, a record damaged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rollup.aggregation.state import State
from rollup.core.calendar import Duration
from rollup.plan.aggregation import TIMESTAMP, Aggregation
from rollup.retrieval.questions import open_schema, state_rows
from rollup.stores.sql.ddl import Tables
from rollup.stores.sql.session import Session

Clocks = Mapping[Duration, int | None]
Open = Mapping[Duration, pa.Table]


@dataclass(frozen=True)
class Salvage:
    """The newest record (None when there is none, or its place in the streams cannot be read), its number, what it says,
    and the open rows that belong to it; what is None cannot be read. `gone` are tables that commits were written to.
    """

    number: int
    source: Mapping[str, Any] | None
    clocks: Clocks | None
    open: Open | None
    resume: int | None
    gone: frozenset[str]

    @property
    def whole(self) -> bool:
        """Whether there is nothing to mend."""
        return not self.gone and None not in (self.source, self.clocks, self.open)

    def state(self, newest: Mapping[Duration, Mapping[str, int]]) -> State | None:
        """The state of the record, its open rows included; None when it cannot be told. `newest` has the newest bucket
        starts of each level's table.

        Clocks that cannot be read are those that rows tell: the root's newest bucket is always open, and a coarser
        level's clock is the newest row that the finer one has handed on.
        """
        if self.open is None or (self.clocks is None and self.gone):
            return None
        clocks = self.clocks if self.clocks is not None else _told(self.open, newest)
        return None if clocks is None else State(clocks, self.open, self.resume)


def _told(opened: Open, newest: Mapping[Duration, Mapping[str, int]]) -> Clocks | None:
    root, *coarser = opened
    if not opened[root].num_rows:
        return None
    clocks: dict[Duration, int | None] = {root: max(opened[root][TIMESTAMP].to_pylist())}
    return clocks | {
        level: max(newest[finer].values(), default=None) for finer, level in zip(opened, coarser, strict=False)
    }


def look(session: Session, aggregation: Aggregation, tables: Tables) -> Salvage:
    """See `Salvage`; nothing is changed."""
    gone = frozenset(table for table in tables.all() if not session.columns(table))
    record = None if tables.commit in gone else session.latest()
    if record is None:
        return Salvage(0, None, None, None, None, gone)
    clocks = _object(record.clocks)
    known = None if clocks is None else {level: clocks.get(level.name) for level in aggregation.levels}
    return Salvage(
        record.number,
        _object(record.source),
        known,
        None if tables.open in gone else _opened(session, aggregation, tables),
        record.resume,
        gone,
    )


def _opened(session: Session, aggregation: Aggregation, tables: Tables) -> Open:
    return state_rows(aggregation, session.read(tables.open, open_schema(aggregation)))


def _object(text: str) -> dict[str, Any] | None:
    """A JSON object, None when the text is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
