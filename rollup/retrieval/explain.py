"""`EXPLAIN from …`: what an answer is made of, as a table: levels, versions, files, rows stored and still open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from rollup.core.calendar import Duration, to_local
from rollup.plan.aggregation import TIMESTAMP, Aggregation, column
from rollup.retrieval.answer import END, LEVEL, START, between, bucket_column
from rollup.retrieval.questions import Ask, Question
from rollup.retrieval.trees import Asked, Sides, Value

SCHEMA = pa.schema(
    [
        ("level", pa.string()),
        ("reads", pa.string()),
        ("start", pa.string()),
        ("end", pa.string()),
        ("rows", pa.int64()),
        ("commit", pa.int64()),
        ("version", pa.int64()),
        ("files_read", pa.int64()),
        ("files_skipped", pa.int64()),
    ]
)
"""`level` of the answer; `reads`: its table, or `open buckets of` a level; rows that qualify; the commit that was read.
For Delta also the version of the table and how many of its files the range needs, unless a grant hides some of their rows."""


@dataclass(frozen=True)
class Count(Asked):
    """How many rows of a range there are: `level` -1 for the stored ones, otherwise the level they are open at."""

    aggregation: Aggregation
    per: Duration
    start: int
    end: int
    made: dict[object, object] = field(default_factory=dict[object, object], compare=False, repr=False)

    @property
    def values(self) -> Mapping[str, Value]:
        return {"start": self.start, "end": self.end}

    def tree(self, sides: Sides) -> exp.Query:
        """A query over `closed` and `open`, with parameters `start` and `end`: columns level, n."""
        within, n = between(START, END), exp.alias_(exp.Count(this=exp.Star()), "n")
        stored = (
            exp.select(exp.alias_(exp.Literal.number(-1), "level"), n)
            .from_("closed")
            .where(within(column(TIMESTAMP)), *self.aggregation.seen)
        )
        finer = exp.LTE(this=column(LEVEL), expression=exp.Literal.number(int(self.per)))
        opened = (
            exp.select(exp.alias_(column(LEVEL), "level"), n.copy())
            .from_("open")
            .where(within(column(bucket_column(self.per))), finer, *self.aggregation.seen)
        )
        return exp.union(stored, opened.group_by(column(LEVEL)), distinct=False)


class Filed(Protocol):
    """What is asked of a snapshot whose rows are files."""

    def version(self, level: Duration) -> int: ...
    def files(self, level: Duration, start: int | None = None, end: int | None = None) -> list[str]: ...


class Readable(Protocol):
    """What is asked of a snapshot."""

    @property
    def number(self) -> int: ...
    @property
    def in_files(self) -> Filed | None: ...
    def answer(self, question: Question, **tables: pa.Table) -> pa.Table: ...


def explain(snapshot: Readable, ask: Ask) -> pa.Table:
    """One row for every table and every level's open buckets that the answer reads, see SCHEMA."""
    rows: list[dict[str, Any]] = []
    for level in ask.relations.values():
        for start, end in ask.ranges(level):
            found = snapshot.answer(Count(ask.aggregation, level, start, end)).to_pylist()
            counts = {row["level"]: row["n"] for row in found}
            zone = ask.aggregation.zone
            common = {
                "level": level.plural,
                "start": _shown(start, zone),
                "end": _shown(end, zone),
                "commit": snapshot.number,
            }
            hidden = ask.aggregation.visible is not None
            files = {} if hidden else _files(snapshot.in_files, level, start, end)
            rows.append({**common, "reads": ask.aggregation.table(level), "rows": counts.get(-1, 0), **files})
            opened = [finer for finer in ask.aggregation.levels if counts.get(int(finer))]
            rows += [
                {**common, "reads": f"open buckets of {finer.plural}", "rows": counts[int(finer)]} for finer in opened
            ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _files(snapshot: Filed | None, level: Duration, start: int, end: int) -> dict[str, int]:
    if snapshot is None:
        return {}
    read, there = len(snapshot.files(level, start, end)), len(snapshot.files(level))
    return {"version": snapshot.version(level), "files_read": read, "files_skipped": there - read}


def _shown(instant: int, zone: str) -> str:
    try:
        return to_local(instant, zone).isoformat(sep=" ", timespec="seconds")
    except (OverflowError, ValueError):
        return str(instant)
