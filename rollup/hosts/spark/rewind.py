"""At the start of a job its streams go back to where the tables are that are behind them.

Spark's log may know more than the tables: commits trail, or a backup was brought back. The tables may know more than
Spark's log: the log was brought back, or a power cut took its end. Each of several aggregations may be somewhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import structlog

from rollup.checkpoint.checksums import sealed, unsealed
from rollup.checkpoint.marks import Mark, Plans, Unknown, lost, lowered, meant, none, unknown
from rollup.core.errors import StoreError
from rollup.core.objects import replace_durably
from rollup.hosts.spark.log_sums import LogSums
from rollup.hosts.spark.query_log import beyond, entries, query_of, remove

_PLANS = "rollup-plans.json"
_KEPT = 64


class Marked(Protocol):
    """An aggregation, or the statements of an app: what it holds of each stream."""

    @property
    def source(self) -> Mapping[str, Any]:
        """By stream, its mark."""
        ...

    def remark(self, source: Mapping[str, Any]) -> None:
        """Change nothing but the marks, in a commit of its own."""
        ...


@dataclass(frozen=True)
class Place:
    """Up to which batch all aggregations of a stream have everything, and the last whose plan stays as it is.

    `marks` are those of aggregations that are further than that: what they hold of batches that are planned anew. A
    start that was killed may have written them and nothing else; then they are written again.
    """

    batch: int
    planned: int
    marks: Mapping[str, Mark]


def plans_of(checkpoint: Path) -> Plans:
    """How often the log of a query went back, and to where; see `rollup.checkpoint.marks`. Raises StoreError."""
    path = checkpoint / _PLANS
    try:
        return [(str(name), int(batch)) for name, batch in unsealed(path.read_bytes(), ["plans"])["plans"]]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError) as problem:
        raise StoreError(
            f"{path} is damaged: {problem}", hint="bring the checkpoint back, or remove it to read from the start"
        ) from None


def place(stream: str, checkpoint: Path, marks: Mapping[str, Mark]) -> Place | None:
    """Where a stream goes on; None before its first batch. `marks` are those of its query, by aggregation.

    Raises StoreError when an aggregation that is ahead does not say what it holds.
    """
    if not marks:
        return None
    plans = plans_of(checkpoint)
    planned = max((int(path.name) for path in entries(checkpoint / "offsets")), default=-1)
    now = {name: _known(stream, name, mark, lambda mark: meant(mark, plans)) for name, mark in marks.items()}
    batch = min(planned, *(int(mark["batch"]) for mark in now.values()))
    kept = min(planned, batch + 1)
    found = {name: _known(stream, name, mark, lambda mark: lowered(mark, kept)) for name, mark in now.items()}
    changed = {name for name, mark in found.items() if mark is not marks[name] or unknown(mark, plans)}
    return Place(batch, kept, {name: found[name] for name in changed})


def _known(stream: str, name: str, mark: Mark, action: Callable[[Mark], Mark]) -> Mark:
    try:
        return action(mark)
    except Unknown:
        raise StoreError(
            f"{name} ends with batch {mark['batch']} of {stream}, which goes on before it, and does not say which of "
            "what comes again it has",
            hint=f"bring back tables and checkpoint of one moment, or `rollup recover CONF --rebuild --aggregation {name}`, "
            "then `rollup replay`",
        ) from None


def rewind(stream: str, checkpoint: Path, pipelines: Mapping[str, Marked], forget: Callable[[str, int], None]) -> Plans:
    """Let a stream's query go on after what all pipelines have; `forget` takes back what else its batches left.

    Marks are lowered in commits before the log is cut: killed in between, the next start does the rest. Returns the
    plans for the marks to come.
    """
    query = query_of(checkpoint)
    found = {name: one.source[stream] for name, one in pipelines.items() if stream in one.source}
    # To who holds events of a query before this one, its checkpoint is lost: it takes this one from its start.
    marks = {name: none(query, -1) if lost(mark, query) and query else mark for name, mark in found.items()}
    where = place(stream, checkpoint, {name: mark for name, mark in marks.items() if mark["query"] == query})
    plans = plans_of(checkpoint)
    if query is None or where is None:
        return plans
    later = beyond(checkpoint, where.batch)
    if not later and not where.marks:
        return plans
    plans = [*plans, (uuid4().hex[:8], where.planned)][-_KEPT:]
    for name, mark in where.marks.items():
        pipelines[name].remark({**pipelines[name].source, stream: {**mark, "plans": plans}})
    note_plans(checkpoint, plans)
    forget(query, where.batch)
    LogSums(checkpoint).forget(later)
    remove(later)
    structlog.get_logger("rollup").info(
        "the stream goes back to the tables", stream=stream, batch=where.batch, ahead=sorted(where.marks)
    )
    return plans


def note_plans(checkpoint: Path, plans: Plans) -> None:
    """Note, beside a query's log, that batches are planned anew."""
    replace_durably(checkpoint / _PLANS, sealed({"plans": plans}))
