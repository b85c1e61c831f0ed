"""`order by`, `limit` and `distinct` over columns: what is done to the rows of each delivery once a core has made them.

What rows are ordered by a core makes as further columns, behind those that are shown; see `unfinished`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Output
from rollup.engine.columns.cores.rewriting import of_arrivals, of_numbers, of_rows
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.columns.numbering import ranked, told_apart
from rollup.engine.compiling import compiled
from rollup.engine.expressions import Call, Const, Expr, Field, walk
from rollup.engine.row import comparable
from rollup.engine.rows.plans import Finish, PatternInput, Select, StreamInput
from rollup.engine.rows.select import compare
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.ranked import Sorted
from rollup.engine.types import Kind, RowType

_BY_KEY = Unique, Grouped, Sorted
_SORT = """
def core(ranks, begins, places):
    for part in range(len(begins)):
        end = begins[part + 1] if part + 1 < len(begins) else len(places)
        rows = places[begins[part] : end].copy()
        places[begins[part] : end] = rows[np.argsort(ranks[rows], kind="mergesort")]
"""
"""Puts the places of each part in order, those of one rank as they were."""


def as_read(plan: Select, reads: Mapping[str, RowType]) -> Select:
    """A statement as cores read it: unfinished, and in the simplest form that says the same."""
    return of_numbers(of_rows(of_arrivals(unfinished(plan, reads))))


def unfinished(plan: Select, reads: Mapping[str, RowType]) -> Select:
    """A statement without them; what it orders by is shown behind its columns, `*` of one stream being those of its fields."""
    projection = plan.projection
    if plan.finish == Finish() and not projection.order:
        return plan
    if projection.whole and len(reads) == 1:
        (stream,) = reads.values()
        fields = (Field(0, place, kind) for place, kind in enumerate(stream.fields.values()))
        projection = replace(projection, columns=tuple(fields), whole=False)
    shown = replace(projection, columns=(*projection.columns, *projection.order), order=())
    return replace(plan, projection=shown, finish=Finish())


def against_finishing(plan: Select) -> str | None:
    """The first reason against what is done to the rows of a delivery; None when it can be done, or there is nothing to do."""
    finish, input = plan.finish, plan.inputs[0]
    if finish == Finish():
        return None
    pattern, ordering = isinstance(input, PatternInput), bool(finish.descending)
    single = isinstance(input, StreamInput) and input.window is None and plan.join is None and not plan.rate.limited
    # Their rows are held in another order than on rows, which decides what a limit leaves of equal ones that are shown.
    by_key = any(isinstance(each, StreamInput) and isinstance(each.window, _BY_KEY) for each in plan.inputs)
    lists = any(kind.kind in (Kind.LIST, Kind.ROW) for kind in plan.type.fields.values())
    reasons = (
        (finish.distinct and lists, "distinct rows with lists or rows"),
        (plan.into is not None or bool(plan.own_inputs), "order by, limit or distinct beside a sub-query"),
        (single, "order by, limit or distinct of rows that come one by one"),
        (pattern and not ordering, "limit or distinct of a pattern without order by"),
        (plan.projection.whole and (pattern or plan.join is not None), "order by, limit or distinct of whole rows"),
        (by_key and (finish.limit or finish.offset) is not None, "a limit over a window of keys"),
        (any(map(_unknown, (finish.limit, finish.offset))), "a limit that is not a literal"),
    )
    return next((reason for holds, reason in reasons if holds), None)


def _unknown(count: Expr | None) -> bool:
    return count is not None and not all(isinstance(each, Const | Call) for each in walk(count))


@dataclass(frozen=True)
class Finishing:
    """Puts the rows of each delivery in order, of these takes `count` from `begin` on, and of them each once.

    Null stands before all else, after all else where it is `descending`; NaN behind all numbers.
    """

    descending: tuple[bool, ...]
    begin: int
    count: int | None
    distinct: bool

    @classmethod
    def of(cls, finish: Finish) -> Finishing | None:
        """None where there is nothing to do."""
        if finish == Finish():
            return None
        begin, count = (
            None if each is None else compiled(each)((), (), None) for each in (finish.offset, finish.limit)
        )
        return cls(finish.descending, begin or 0, None if count is None or count < 0 else count, finish.distinct)

    def finished(self, output: Output) -> Output:
        """The rows of each delivery, without what they were ordered by."""
        width = len(output.columns) - len(self.descending)
        shown = replace(output, columns=output.columns[:width])
        if not output.rows:
            return shown
        part = _parts(output)
        places, begins = np.arange(output.rows), np.flatnonzero(np.diff(part, prepend=-1))
        for column, down in reversed(list(zip(output.columns[width:], self.descending, strict=True))):
            ranks = ranked(column)
            loop(_SORT)(~ranks if down else ranks, begins, places)
        rank = places_in(begins, len(part))
        within = rank >= self.begin
        if self.count is not None:
            within &= rank < self.begin + self.count
        places = places[within]
        if self.distinct:
            places = places[_firsts(part[places], [each.take(pa.array(places)) for each in shown.columns])]
        return shown.at_places(places)

    def of_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """The same of rows that are shown when somebody asks."""
        by = len(self.descending)
        found = list(rows)
        if by:
            found.sort(key=cmp_to_key(lambda one, other: compare(one[-by:], other[-by:], self.descending)))
        end = None if self.count is None else self.begin + self.count
        kept = [row[: len(row) - by] for row in found[self.begin : end]]
        return list({comparable(row): row for row in reversed(kept)}.values())[::-1] if self.distinct else kept


def _parts(output: Output) -> Ints:
    """The number of each row's delivery, counted apart for what comes and what leaves."""
    changed = np.zeros(output.rows, bool)
    for marks in (output.at, output.event, output.sign, output.part, output.early):
        if marks is not None:
            changed[1:] |= marks[1:] != marks[:-1]
    return np.cumsum(changed)


def places_in(begins: Ints, rows: int) -> Ints:
    """The place of each of `rows` rows in its part, from where the parts begin.

    >>> places_in(np.array([0, 2]), 5).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(rows) - np.repeat(begins, np.diff(begins, append=rows))


def _firsts(part: Ints, columns: Sequence[pa.Array]) -> Ints:
    """The places of the first of equal rows of a part, in order. Both zeros are one value, and so is what is no number."""
    return np.sort(np.unique(told_apart(columns, part), return_index=True)[1])
