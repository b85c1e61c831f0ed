"""What a database still has of an aggregation whose newest commit cannot be taken up: tables gone, a record damaged."""

from __future__ import annotations

import json
from typing import Any

from rollup.plan.aggregation import Aggregation
from rollup.retrieval.questions import open_schema, state_rows
from rollup.stores.salvage import Open, Salvage
from rollup.stores.sql.ddl import Tables
from rollup.stores.sql.session import Session


def look(session: Session, aggregation: Aggregation, tables: Tables) -> Salvage:
    """See `Salvage`; nothing is changed."""
    gone = frozenset(table for table in tables.all() if not session.columns(table))
    broken = {level.table_suffix for level in aggregation.levels if aggregation.table(level) in gone}
    broken |= {"LATE"} if tables.late in gone else set()
    record = None if tables.commit in gone else session.latest()
    if record is None:
        return Salvage(0, None, None, None, None, gone, frozenset(broken))
    clocks = _object(record.clocks)
    known = None if clocks is None else {level: clocks.get(level.name) for level in aggregation.levels}
    return Salvage(
        record.number,
        _object(record.source),
        known,
        None if tables.open in gone else _opened(session, aggregation, tables),
        record.resume,
        gone,
        frozenset(broken),
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
