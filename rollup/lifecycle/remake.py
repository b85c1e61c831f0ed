"""Tables that are gone, or lack files, made anew beside a commit record that is whole.

A level's table is the merge of the next finer one, as far as the level's clock has passed; the record has its open rows.
So nothing is lost of a coarser level, except where retention has removed the finer rows. The finest level has no finer
one: its rows that are gone come back by a replay. All of it is one commit, which keeps clocks, open rows and marks.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

import pyarrow as pa

from rollup.aggregation.cascade import Cascade, narrowed
from rollup.aggregation.recovery import rebuild
from rollup.aggregation.state import State
from rollup.core.calendar import Duration, bucket_end
from rollup.core.columns import ColumnEngine
from rollup.lifecycle.book import Page
from rollup.lifecycle.replay.compare import readable
from rollup.plan.aggregation import Aggregation
from rollup.stores.base import Commit, FiledStore, SalvagedStore
from rollup.stores.salvage import Salvage

Rows = Mapping[Duration, pa.Table]
_REPLAYED = "is lost: bring it back with `rollup replay`"


def remake(store: FiledStore, page: Page, broken: Mapping[str, str]) -> list[str]:
    """Make the broken tables (by suffix) of a store anew; what was done, for people to read."""
    aside = store.records.folder / f"aside-{int(time.time() * 1000)}"
    loaded = store.remake(broken, aside)
    made, lines = _made(store, page, broken, loaded.state)
    store.commit(Commit(loaded.number + 1, loaded.state, made, None, loaded.source))
    if aside.exists():
        lines.append(f"what was left of the old tables is in {aside}")
    return [*lines, _same(loaded.number + 1)]


def mend(store: SalvagedStore, page: Page, found: Salvage) -> list[str] | None:
    """Make whole what a database has lost of an aggregation, in one transaction; what was done, for people to read.

    None, and nothing done, where its place in the streams is not known or too much else is gone: then the finest rows
    that were open cannot be kept without counting them twice.
    """
    aggregation = store.aggregation
    if found.source is None:
        return None
    state = found.state({level: store.newest(level) for level in aggregation.levels})
    if state is not None:
        made, lines = _made(store, page, found.broken, state)
    elif found.clocks is not None:
        state, made, lines = _reopened(store, found.clocks, found.resume)
    else:
        return None
    store.commit(Commit(found.number + 1, state, made, None, found.source))
    if found.clocks is None:
        lines.append(f"the clocks of commit {found.number} were read from its open rows and the tables")
    return [*lines, _same(found.number + 1)]


def _same(number: int) -> str:
    return f"commit {number} has the same open rows and goes on at the same place"


def _made(
    store: FiledStore | SalvagedStore, page: Page, broken: Collection[str], state: State
) -> tuple[Rows, list[str]]:
    """The rows of tables (by suffix), each from the next finer one, and what is to be said of it."""
    aggregation = store.aggregation
    made: dict[Duration, pa.Table] = {}
    lines: list[str] = []
    for finer, level in zip([None, *aggregation.levels], aggregation.levels, strict=False):
        if level.table_suffix not in broken:
            continue
        if finer is None:
            lines.append(f"{level.plural}: what was stored and is gone {_REPLAYED}")
            continue
        children = made[finer] if finer in made else store.rows_after(finer, None)
        made[level] = _closed(store.engine, aggregation, level, state, children)
        lines.append(
            f"{level.plural}: {made[level].num_rows} rows made anew from {aggregation.table(finer)}"
            + _lost(page, finer, broken)
        )
    if "LATE" in broken:
        lines.append("late events: the counts that are gone are lost")
    return made, lines


def _closed(
    engine: ColumnEngine, aggregation: Aggregation, level: Duration, state: State, children: pa.Table
) -> pa.Table:
    """The rows of a level that its clock has passed, from all rows of the next finer one."""
    cascade = Cascade(aggregation)
    whole = cascade.merge(engine, level, [children.cast(aggregation.state_schema)])
    _, closed = cascade.split(engine, level, whole, state.clocks[level])
    return narrowed(aggregation, closed)


def _reopened(
    store: SalvagedStore, clocks: Mapping[Duration, int | None], resume: int | None
) -> tuple[State, Rows, list[str]]:
    """Open rows that are gone, from the finer tables; those of the finest level cannot be had, and it says which."""
    aggregation = store.aggregation
    root = aggregation.root
    rebuilt, closed = rebuild(store.engine, Cascade(aggregation), store)
    lines = [
        f"{level.plural}: {rebuilt.open[level].num_rows} open rows from {aggregation.table(finer)}"
        for finer, level in zip(aggregation.levels, aggregation.levels[1:], strict=False)
    ]
    start, clock = rebuilt.resume, clocks[root]
    begin = "" if start is None else f" from {readable(start)}"
    end = "" if clock is None else f" to {readable(bucket_end(clock, root, aggregation.zone))}"
    lines.append(f"{root.plural}: what was open,{begin}{end}, {_REPLAYED} once the job runs")
    return State(clocks, rebuilt.open, resume), closed.rows, lines


def _lost(page: Page, finer: Duration, broken: Collection[str]) -> str:
    if finer.table_suffix in broken and finer is min(Duration, key=int):
        return "; those of files that are gone there come with the replay"
    if finer.name in page.purged:
        return f"; those before {readable(page.purged_before(finer))} are lost: retention has removed what they were made of"
    return ""
