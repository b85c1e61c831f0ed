"""What a reader of an answer should know beside the answer: columns that are not complete, sums that are none, and where
rows are when the answer has none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rollup.lifecycle.book import Book

if TYPE_CHECKING:
    import pyarrow as pa

    from rollup.ask import Asker
    from rollup.core.calendar import Duration
    from rollup.program import Program


def remarks(asker: Asker, text: str, answer: pa.Table) -> list[str]:
    """Remarks on the answer to a question; empty when nothing of it misleads."""
    from rollup.ask import asked_name, is_question
    from rollup.lifecycle.change import notes
    from rollup.lifecycle.replay.compare import readable
    from rollup.retrieval.merging import beyond, misleading

    program = asker.program
    pages = {name: Book.of(asker.conf, name).page() for name in program.aggregations}
    if is_question(text):
        if asked_name(text) not in program.aggregations:
            return []  # a named window or table of statements
        ask = asker.planner.ask(text)
        there = (
            []
            if answer.num_rows or ask.aggregation.visible is not None
            else _there(asker, ask.aggregation.name, ask.per, (ask.start, ask.end))
        )
        said = [*misleading(ask.aggregation, ask.selection), *beyond(ask.aggregation, ask.selection, answer)]
        return [*notes(pages[ask.aggregation.name], ask), *said, *there]
    return _added(program, text) + [
        f"{name}: {column} was added later and is complete from {readable(since)} on"
        for name, page in pages.items()
        if re.search(rf"\b{re.escape(name)}", text, re.IGNORECASE)
        for column, since in page.valid.items()
    ]


def _there(asker: Asker, name: str, level: Duration, asked: tuple[int, int]) -> list[str]:
    """Where an aggregation has rows of a level, when none of them can be in the range that was asked for."""
    from rollup.core.calendar import bucket_start
    from rollup.lifecycle.replay.compare import readable
    from rollup.plan.aggregation import TIMESTAMP, ZONE

    snapshot = asker.snapshot(name)
    opened = [rows for finer, rows in snapshot.loaded().state.open.items() if finer <= level]
    places = [
        place for rows in opened for place in zip(rows[TIMESTAMP].to_pylist(), rows[ZONE].to_pylist(), strict=True)
    ]
    starts = [*(snapshot.extent(level) or ()), *(bucket_start(instant, level, zone) for instant, zone in places)]
    if not starts:
        return [f"{name} has no {level.plural} yet"]
    low, high = min(starts), max(starts)
    if asked[0] <= high and low < asked[1]:
        return []
    return [
        f"{name} has {level.plural} from {readable(low, asker.zone)} to {readable(high, asker.zone)}, none in this range"
    ]


def _added(program: Program, text: str) -> list[str]:
    """Remarks on the sums and averages of a SELECT."""
    from rollup.core.errors import RollupError
    from rollup.lang.sql.within import Within, parse
    from rollup.retrieval.merging import added_in_sql

    try:
        tree = parse(text, list(program.aggregations), "duckdb")
    except RollupError:  # it has been answered: a form of DuckDB's own
        return []
    asked = dict.fromkeys(within.aggregation for within in tree.find_all(Within))
    return [remark for name in asked for remark in added_in_sql(program.aggregations[name], tree)]
